// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/fold.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "mesh/catalogue.h"
#include "mesh/rule_words.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

using namespace words;
using ::testing::ElementsAre;

const Families both = Families::both();

AddressRange range(const char* text) { return *AddressRange::parse(text); }

Rule rule(std::vector<Match> matches, Target target, MeshRule made_as = {}) {
  Families families = both;
  for (const Match& match : matches) {
    if (const auto* address = std::get_if<AddressMatch>(&match)) families = address->ranges.front().family();
  }
  return {families, Table::nat, output, std::move(matches), std::move(target), {made_as, nullptr, {}}, {}};
}

std::vector<std::string> folded(std::vector<Rule> rules) {
  std::vector<std::string> texts;
  const Ruleset once = fold({std::move(rules)});
  for (const Rule& each : once.rules) texts.push_back(iptables_words(each));
  EXPECT_TRUE(once.folded);
  EXPECT_EQ(fold(once).rules, once.rules) << "folding again changes nothing";
  return texts;
}

constexpr Verdict go_back = Verdict::return_;

TEST(Fold, JoinsRangesThatEndAlikeSortedAndMerged) {
  EXPECT_THAT(
      folded({rule({destination(range("192.168.0.0/16"))}, go_back),
              rule({destination(range("10.128.0.0/9"))}, go_back), rule({destination(range("10.0.0.0/9"))}, go_back)}),
      ElementsAre("-A OUTPUT -d 10.0.0.0/8,192.168.0.0/16 -j RETURN"));
}

TEST(Fold, KeepsFamiliesApartHoweverTheyAreMixed) {
  EXPECT_THAT(
      folded({rule({destination(range("10.0.0.0/8"))}, go_back), rule({destination(range("fd00::/8"))}, go_back),
              rule({destination(range("172.16.0.0/12"))}, go_back), rule({destination(range("fe80::/10"))}, go_back)}),
      ElementsAre("-A OUTPUT -d 10.0.0.0/8,172.16.0.0/12 -j RETURN", "-A OUTPUT -d fd00::/8,fe80::/10 -j RETURN"));
}

TEST(Fold, JoinsAlternatingProtocols) {
  EXPECT_THAT(folded({rule({tcp, dport(53)}, go_back), rule({udp, dport(53)}, go_back), rule({tcp, dport(22)}, go_back),
                      rule({udp, dport(22)}, go_back)}),
              ElementsAre("-A OUTPUT -p tcp -m multiport --dports 22,53 -j RETURN",
                          "-A OUTPUT -p udp -m multiport --dports 22,53 -j RETURN"));
}

std::vector<Rule> of_ports(const std::vector<int>& ports) {
  std::vector<Rule> rules;
  for (const int port : ports) rules.push_back(rule({tcp, dport(static_cast<std::uint16_t>(port))}, go_back));
  return rules;
}

TEST(Fold, MakesRangesOfNeighbouringPortsInALongList) {
  std::vector<int> ports = {65535, 80, 443, 65534, 1};
  for (int port = 7011; port >= 7000; --port) ports.push_back(port);
  EXPECT_THAT(folded(of_ports(ports)),
              ElementsAre("-A OUTPUT -p tcp -m multiport --dports 1,80,443,7000:7011,65534:65535 -j RETURN"));
  ports.assign(20, 80);
  ports.push_back(81);
  EXPECT_THAT(folded(of_ports(ports)), ElementsAre("-A OUTPUT -p tcp -m multiport --dports 80,81 -j RETURN"));
  ports.resize(65535);
  std::iota(ports.begin(), ports.end(), 1);
  EXPECT_THAT(folded(of_ports(ports)), ElementsAre("-A OUTPUT -p tcp --dport 1:65535 -j RETURN"));
}

// Sixteen ports stand as they were asked for, unless there is a range among them; seventeen are a long list.
TEST(Fold, KeepsShortListsOfPorts) {
  const auto ports = [](int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 1);
    return folded(of_ports(all)).at(0);
  };
  EXPECT_EQ(ports(16), "-A OUTPUT -p tcp -m multiport --dports 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 -j RETURN");
  EXPECT_EQ(ports(17), "-A OUTPUT -p tcp --dport 1:17 -j RETURN");
  const auto ranges = [](std::vector<PortRange> all) {
    return folded({rule({tcp, PortMatch{End::destination, std::move(all), false}}, go_back)}).at(0);
  };
  EXPECT_EQ(ranges({1, 2}), "-A OUTPUT -p tcp -m multiport --dports 1,2 -j RETURN");
  EXPECT_EQ(ranges({{1, 2}, {3, 3}}), "-A OUTPUT -p tcp --dport 1:3 -j RETURN");
  EXPECT_EQ(ranges({{1, 2}, {4, 4}}), "-A OUTPUT -p tcp -m multiport --dports 1:2,4 -j RETURN");
  EXPECT_EQ(ranges({{1, 9}, {2, 4}}), "-A OUTPUT -p tcp --dport 1:9 -j RETURN");
  EXPECT_EQ(ranges({{1, 5}, {3, 9}}), "-A OUTPUT -p tcp --dport 1:9 -j RETURN");
}

// No farther back than sixteen rules, and over lists of no more than 4,096 comparisons: else it would not be linear.
TEST(Fold, LooksBackOnlySoFar) {
  const auto with_between = [](int count) {
    std::vector<Rule> rules{rule({tcp, dport(1)}, go_back)};
    for (int i = 0; i < count; ++i) rules.push_back(rule({udp}, Redirect{static_cast<std::uint16_t>(i + 1)}));
    rules.push_back(rule({tcp, dport(2)}, go_back));
    return folded(rules).size() - static_cast<std::size_t>(count);
  };
  EXPECT_EQ(with_between(15), 1U);
  EXPECT_EQ(with_between(16), 2U);
  const auto with_lists = [](std::uint32_t one, std::uint32_t other) {
    const auto ids = [](std::uint32_t first, std::uint32_t count) {
      OwnerMatch match{OwnerKind::uid, {}, false};
      for (std::uint32_t i = 0; i < count; ++i) match.ids.emplace_back(first + 2 * i);
      return match;
    };
    return folded({rule({ids(1000, one)}, go_back), rule({ids(5001, other)}, Verdict::drop),
                   rule({ids(9000, one)}, go_back)})
        .size();
  };
  EXPECT_EQ(with_lists(64, 64), 2U);
  EXPECT_EQ(with_lists(64, 65), 3U);
}

// What two rules have in common may be matched by both: their order counts.
TEST(Fold, KnowsWhichRulesMayChangePlaces) {
  const auto count = [](std::vector<Match> first, std::vector<Match> between, std::vector<Match> last,
                        const Target& other = Verdict::drop) {
    return folded({rule(std::move(first), go_back), rule(std::move(between), other), rule(std::move(last), go_back)})
        .size();
  };
  const Match low = PortMatch{End::destination, {{1, 10}}, false};
  const Match high = PortMatch{End::destination, {{20, 30}}, false};
  EXPECT_EQ(count({low}, {dport(15)}, {high}), 2U);
  EXPECT_EQ(count({low}, {dport(20)}, {high}), 3U);
  EXPECT_EQ(count({low}, {dport(30)}, {high}), 3U);
  EXPECT_EQ(count({low}, {dport(31)}, {high}), 2U);
  EXPECT_EQ(count({low}, {dport(19)}, {high}), 2U);
  EXPECT_EQ(count({low}, {sport(15)}, {high}), 3U) << "another port";
  EXPECT_EQ(count({low}, {except(dport(25))}, {high}), 3U);
  EXPECT_EQ(count({low}, {tcp}, {high}), 3U);
  EXPECT_EQ(count({low}, {dport(25)}, {high}, go_back), 1U) << "the same end";
  EXPECT_EQ(count({tcp, low}, {udp}, {tcp, high}), 2U);
  EXPECT_EQ(count({tcp, low}, {except(udp)}, {tcp, high}), 3U);
  EXPECT_EQ(
      count({destination(range("10.0.0.0/8"))}, {destination(range("fd00::/8"))}, {destination(range("11.0.0.0/8"))}),
      2U)
      << "another family";
  EXPECT_EQ(
      count({destination(range("10.0.0.0/8"))}, {destination(range("12.0.0.0/8"))}, {destination(range("11.0.0.0/8"))}),
      2U);
  EXPECT_EQ(
      count({destination(range("10.0.0.0/8"))}, {source(range("12.0.0.0/8"))}, {destination(range("11.0.0.0/8"))}), 3U);
}

TEST(Fold, KeepsNeighbouringIdsSingle) {
  EXPECT_THAT(folded({rule({owner(OwnerKind::uid, 8)}, go_back), rule({owner(OwnerKind::uid, 7)}, go_back),
                      rule({owner(OwnerKind::uid, 8)}, go_back)}),
              ElementsAre("-A OUTPUT -m owner --uid-owner 7,8 -j RETURN"));
}

TEST(Fold, JoinsAcrossAnotherTargetOnlyIfNoPacketMatchesBoth) {
  const Jump divert{istio_divert};
  const Jump proxy{istio_tproxy};
  EXPECT_THAT(folded({rule({tcp, dport(80)}, divert), rule({tcp, dport(80)}, proxy), rule({tcp, dport(443)}, divert),
                      rule({tcp, dport(443)}, proxy)}),
              ElementsAre("-A OUTPUT -p tcp -m multiport --dports 80,443 -j ISTIO_DIVERT",
                          "-A OUTPUT -p tcp -m multiport --dports 80,443 -j ISTIO_TPROXY"));
  EXPECT_THAT(
      folded(
          {rule({tcp, dport(80)}, divert), rule({owner(OwnerKind::uid, 7)}, proxy), rule({tcp, dport(443)}, divert)}),
      ElementsAre("-A OUTPUT -p tcp --dport 80 -j ISTIO_DIVERT", "-A OUTPUT -m owner --uid-owner 7 -j ISTIO_TPROXY",
                  "-A OUTPUT -p tcp --dport 443 -j ISTIO_DIVERT"));
  EXPECT_THAT(folded({rule({udp, dport(80)}, divert), rule({except(tcp)}, proxy), rule({udp, dport(443)}, divert)}),
              ElementsAre("-A OUTPUT -p udp --dport 80 -j ISTIO_DIVERT", "-A OUTPUT ! -p tcp -j ISTIO_TPROXY",
                          "-A OUTPUT -p udp --dport 443 -j ISTIO_DIVERT"));
}

TEST(Fold, JoinsAProductOfValuesStepByStep) {
  std::vector<Rule> rules;
  for (const char* server : {"10.0.0.1", "10.0.0.9"}) {
    for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{443}})
      rules.push_back(rule({tcp, destination(range(server)), dport(port)}, go_back));
  }
  EXPECT_THAT(folded(rules),
              ElementsAre("-A OUTPUT -p tcp -d 10.0.0.1/32,10.0.0.9/32 -m multiport --dports 80,443 -j RETURN"));
}

TEST(Fold, JoinsInOneMatchOnly) {
  EXPECT_THAT(folded({rule({tcp, destination(range("10.0.0.1")), dport(80)}, go_back),
                      rule({tcp, destination(range("10.0.0.2")), dport(80)}, go_back),
                      rule({tcp, destination(range("10.0.0.1")), dport(81)}, go_back)}),
              ElementsAre("-A OUTPUT -p tcp -d 10.0.0.1-10.0.0.2 --dport 80 -j RETURN",
                          "-A OUTPUT -p tcp -d 10.0.0.1/32 --dport 81 -j RETURN"));
}

TEST(Fold, LeavesNegatedRulesApartButJoinsNegationsInOneRule) {
  EXPECT_THAT(
      folded({rule({except(owner(OwnerKind::gid, 1))}, go_back), rule({except(owner(OwnerKind::gid, 2))}, go_back)}),
      ElementsAre("-A OUTPUT -m owner ! --gid-owner 1 -j RETURN", "-A OUTPUT -m owner ! --gid-owner 2 -j RETURN"));
  EXPECT_THAT(folded({rule({except(owner(OwnerKind::gid, 3)), except(owner(OwnerKind::uid, 3)),
                            except(owner(OwnerKind::gid, 1)), except(owner(OwnerKind::gid, 2))},
                           go_back)}),
              ElementsAre("-A OUTPUT -m owner ! --gid-owner 1,2,3 -m owner ! --uid-owner 3 -j RETURN"));
}

TEST(Fold, LeavesOutMatchesThatEveryPacketPasses) {
  EXPECT_THAT(folded({rule({destination(range("0.0.0.0/0"))}, go_back), rule({in("+")}, go_back)}),
              ElementsAre("-A OUTPUT -j RETURN", "-A OUTPUT -j RETURN"));
}

TEST(Fold, DropsARuleThatIsThereTwice) {
  EXPECT_THAT(folded({rule({tcp}, go_back), rule({tcp}, go_back)}), ElementsAre("-A OUTPUT -p tcp -j RETURN"));
}

TEST(Fold, ResolvesInsertions) {
  Rule inserted = rule({in("eth0")}, go_back);
  inserted.insert_at = 1;
  EXPECT_THAT(folded({rule({tcp}, go_back), inserted}),
              ElementsAre("-A OUTPUT -i eth0 -j RETURN", "-A OUTPUT -p tcp -j RETURN"));
}

TEST(Fold, LeavesUnknownRulesAlone) {
  EXPECT_THAT(folded({rule({UnknownMatch{"-m time"}}, go_back), rule({UnknownMatch{"-m time"}}, go_back)}),
              ElementsAre("-A OUTPUT -m time -j RETURN", "-A OUTPUT -m time -j RETURN"));
}

TEST(Fold, LeavesDifferentRulesOfIstioApart) {
  EXPECT_THAT(folded({rule({destination(range("127.0.0.1"))}, go_back, MeshRule::loopback_return),
                      rule({destination(range("10.0.0.0/8"))}, go_back, MeshRule::outbound_excluded_range)}),
              ElementsAre("-A OUTPUT -d 127.0.0.1/32 -j RETURN", "-A OUTPUT -d 10.0.0.0/8 -j RETURN"));
}

// The reason of a folded rule names all its values.
TEST(Fold, KeepsWhatARuleWasMadeAs) {
  const auto reason = [](MeshRule made_as, std::vector<Rule> rules) {
    for (Rule& one : rules) {
      one.chain = istio_output;
      one.origin.rule = made_as;
    }
    return reason_of(fold({std::move(rules)}).rules.at(0));
  };
  const auto of_ports = [&](int count) {
    std::vector<Rule> rules;
    for (int i = count; i > 0; --i) rules.push_back(rule({tcp, dport(static_cast<std::uint16_t>(2 * i))}, go_back));
    return reason(MeshRule::outbound_excluded_port, std::move(rules));
  };
  EXPECT_EQ(of_ports(1).flag, "-o 2");
  EXPECT_EQ(of_ports(3).flag, "-o 2,4,6");
  EXPECT_EQ(of_ports(3).sentence, "outbound to port 2, 4, 6 bypasses the proxy");
  EXPECT_EQ(of_ports(200).option, "-o");
  EXPECT_EQ(of_ports(200).values, "… (200 ports)");
  EXPECT_EQ(of_ports(200).sentence, "outbound to port 2, 4, 6, 8, 10 and 195 more bypasses the proxy");
  const auto of_uid = [](std::uint32_t uid) {
    return rule({OwnerMatch{OwnerKind::uid, {{uid, uid}}, false}}, go_back);
  };
  EXPECT_EQ(reason(MeshRule::proxy_return, {of_uid(1337), of_uid(1338)}).sentence,
            "the proxy's own traffic (uid 1337, 1338) goes out as it is");
  // All addresses are no match.
  EXPECT_EQ(reason(MeshRule::outbound_excluded_range, {rule({destination(range("0.0.0.0/0"))}, go_back)}).flag,
            "-x 0.0.0.0/0");
}

TEST(Fold, ARuleIsForThoseFamiliesAloneThatComeToIt) {
  Rule jump = rule({}, Jump{istio_output});
  jump.families = Family::ipv4;
  Rule reached = rule({tcp}, go_back);
  reached.chain = istio_output;
  Rule unreached = reached;
  unreached.chain = istio_redirect;
  const Ruleset result = fold({{jump, reached, unreached}});
  EXPECT_EQ(result.rules.at(1).families, Families(Family::ipv4));
  EXPECT_EQ(result.rules.at(2).families, Families(Family::ipv4));
}

TEST(Fold, TakesAHundredThousandRangesAtOnce) {
  std::vector<Rule> rules;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const Address address{
        Family::ipv4,
        {10, static_cast<std::uint8_t>(i >> 15), static_cast<std::uint8_t>(i >> 7), static_cast<std::uint8_t>(i << 1)}};
    rules.push_back(rule({destination(AddressRange::single(address))}, go_back));
  }
  const auto start = std::chrono::steady_clock::now();
  const Ruleset result = fold({std::move(rules)});
  RecordProperty("milliseconds",
                 static_cast<int>((std::chrono::steady_clock::now() - start) / std::chrono::milliseconds(1)));
  ASSERT_EQ(result.rules.size(), 1U);
  EXPECT_EQ(std::get<AddressMatch>(result.rules[0].matches[0]).ranges.size(), 100'000U);
}

}  // namespace
}  // namespace sidetrack
