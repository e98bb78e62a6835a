// SPDX-License-Identifier: GPL-2.0-or-later
// Rules that are asked as one: each case is a chain, and what is left of it.
#include "space/join.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "mesh/describe.h"
#include "unit/live_rules.h"

namespace sidetrack::space {
namespace {

using ::testing::ElementsAre;

Match to(const char* range, bool negated = false) {
  return AddressMatch{End::destination, {*AddressRange::parse(range)}, negated};
}
Match from(const char* range) { return AddressMatch{End::source, {*AddressRange::parse(range)}, false}; }
Match port(std::uint16_t number, End end = End::destination) { return PortMatch{end, {{number, number}}, false}; }
Match uid(std::uint32_t id) { return OwnerMatch{OwnerKind::uid, {{id, id}}, false}; }
Match gid(std::uint32_t id) { return OwnerMatch{OwnerKind::gid, {{id, id}}, false}; }
const Match tcp = ProtocolMatch{Protocol::tcp, false};
const Target accept = Verdict::accept;

using Rules = std::vector<std::pair<std::vector<Match>, Target>>;

// "1 -d 10.0.0.0/8 -j ACCEPT", by the number of the first rule that it stands for.
std::vector<std::string> left_of(LiveChain chain) {
  Live live;
  live.chains.push_back(std::move(chain));
  std::vector<std::string> words;
  JoinedRules rules;
  const std::vector<Live> made = joined({live}, rules);
  for (const LiveRule& one : made.front().chains.front().rules)
    words.push_back(fmt::format("{} {}", one.number, short_words(one.rule)));
  return words;
}
std::vector<std::string> left_of(const Rules& rules) {
  return left_of(chain(Family::ipv4, Table::nat, "OUTPUT", false, rules));
}

TEST(Join, ListsOfOneKind) {
  EXPECT_THAT(left_of({{{to("10.1.0.0/16")}, accept}, {{to("10.3.0.0/16")}, accept}}),
              ElementsAre("1 -d 10.1.0.0/16,10.3.0.0/16 -j ACCEPT"));
  EXPECT_THAT(left_of({{{tcp, port(22)}, accept}, {{tcp, port(80)}, accept}, {{tcp, port(443)}, accept}}),
              ElementsAre("1 -p tcp -m multiport --dports 22,80,443 -j ACCEPT"));
  EXPECT_THAT(left_of({{{from("10.1.0.0/16")}, Redirect{15001}}, {{from("10.3.0.0/16")}, Redirect{15001}}}),
              ElementsAre("1 -s 10.1.0.0/16,10.3.0.0/16 -j REDIRECT --to-ports 15001"));
}

TEST(Join, AddressesThatTouchAreOneRange) {
  EXPECT_THAT(left_of({{{to("10.0.0.0/9")}, accept}, {{to("10.128.0.0/9")}, accept}}),
              ElementsAre("1 -d 10.0.0.0/8 -j ACCEPT"));
}

TEST(Join, NothingElse) {
  // Of two ends, two kinds, two families, or negated.
  EXPECT_EQ(left_of({{{to("10.1.0.0/16")}, accept}, {{from("10.3.0.0/16")}, accept}}).size(), 2);
  EXPECT_EQ(left_of({{{uid(1)}, accept}, {{gid(2)}, accept}}).size(), 2);
  EXPECT_EQ(left_of({{{to("10.1.0.0/16")}, accept}, {{to("fd00::/8")}, accept}}).size(), 2);
  EXPECT_EQ(left_of({{{to("10.1.0.0/16", true)}, accept}, {{to("10.3.0.0/16", true)}, accept}}).size(), 2);
  EXPECT_EQ(left_of({{{to("10.1.0.0/16")}, accept}, {{to("10.3.0.0/16", true)}, accept}}).size(), 2);
  // Of a source port it may only be known that it is one of many.
  EXPECT_EQ(left_of({{{tcp, port(1, End::source)}, accept}, {{tcp, port(3, End::source)}, accept}}).size(), 2);
  // That differ in more than one list, or in what is no list, or in what becomes of the packet.
  EXPECT_EQ(left_of({{{to("10.1.0.0/16"), port(1)}, accept}, {{to("10.3.0.0/16"), port(3)}, accept}}).size(), 2);
  EXPECT_EQ(left_of({{{to("10.1.0.0/16"), tcp}, accept}, {{to("10.3.0.0/16")}, accept}}).size(), 2);
  EXPECT_EQ(left_of({{{to("10.1.0.0/16")}, accept}, {{to("10.3.0.0/16")}, Verdict::drop}}).size(), 2);
  EXPECT_EQ(left_of({{{tcp}, accept}, {{ProtocolMatch{Protocol::udp, false}}, accept}}).size(), 2);
  // The packet goes on, or something is unknown.
  EXPECT_EQ(left_of({{{to("10.1.0.0/16")}, Jump{"CHAIN"}}, {{to("10.3.0.0/16")}, Jump{"CHAIN"}}}).size(), 2);
  const Match unknown = UnknownMatch{"-m other"};
  EXPECT_EQ(left_of({{{to("10.1.0.0/16"), unknown}, accept}, {{to("10.3.0.0/16"), unknown}, accept}}).size(), 2);
}

TEST(Join, TheListThatDiffersFirstIsTheOneThatGrows) {
  EXPECT_THAT(left_of({{{to("10.1.0.0/16"), uid(1)}, accept},
                       {{to("10.3.0.0/16"), uid(1)}, accept},
                       {{to("10.3.0.0/16"), uid(2)}, accept},
                       {{to("10.5.0.0/16"), uid(1)}, accept}}),
              ElementsAre("1 -d 10.1.0.0/16,10.3.0.0/16 -m owner --uid-owner 1 -j ACCEPT",
                          "3 -d 10.3.0.0/16 -m owner --uid-owner 2 -j ACCEPT",
                          "4 -d 10.5.0.0/16 -m owner --uid-owner 1 -j ACCEPT"));
}

TEST(Join, OursAndThoseOfOthersStayApart) {
  LiveChain made =
      chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{to("10.1.0.0/16")}, accept}, {{to("10.3.0.0/16")}, accept}});
  made.rules[1].ours = true;
  EXPECT_EQ(left_of(made).size(), 2);
  made.rules[0].ours = true;
  EXPECT_EQ(left_of(made).size(), 1);
}

// A rule of nf_tables that is several here keeps its number, and its parts stay by themselves.
TEST(Join, PartsOfOneRuleHaveItsNumber) {
  LiveChain made = chain(Family::ipv4, Table::nat, "OUTPUT", false,
                         {{{to("10.1.0.0/16")}, accept},
                          {{to("10.3.0.0/16")}, accept},
                          {{to("10.5.0.0/16")}, accept},
                          {{to("10.7.0.0/16")}, accept},
                          {{to("10.9.0.0/16")}, accept}});
  const auto with_handles = [&](const std::vector<std::uint64_t>& handles) {
    for (std::size_t i = 0; i < handles.size(); ++i) made.rules[i].handle = handles[i];
    return left_of(made);
  };
  EXPECT_THAT(with_handles({7, 7, 8, 9, 10}), ElementsAre("1 -d 10.1.0.0/16 -j ACCEPT", "1 -d 10.3.0.0/16 -j ACCEPT",
                                                          "2 -d 10.5.0.0/16,10.7.0.0/16,10.9.0.0/16 -j ACCEPT"));
  EXPECT_THAT(with_handles({7, 8, 9, 9, 10}),
              ElementsAre("1 -d 10.1.0.0/16,10.3.0.0/16 -j ACCEPT", "3 -d 10.5.0.0/16 -j ACCEPT",
                          "3 -d 10.7.0.0/16 -j ACCEPT", "4 -d 10.9.0.0/16 -j ACCEPT"));
  EXPECT_THAT(with_handles({7, 8, 9, 10, 10}), ElementsAre("1 -d 10.1.0.0/16,10.3.0.0/16,10.5.0.0/16 -j ACCEPT",
                                                           "4 -d 10.7.0.0/16 -j ACCEPT", "4 -d 10.9.0.0/16 -j ACCEPT"));
  // None is known: rules of iptables.
  EXPECT_EQ(with_handles({0, 0, 0, 0, 0}).size(), 1);
}

}  // namespace
}  // namespace sidetrack::space
