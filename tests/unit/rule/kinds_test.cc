// SPDX-License-Identifier: GPL-2.0-or-later
// What every kind of match and target knows of itself. A new kind has its example here, or does not compile.
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "rule/iptables.h"
#include "rule/xt/rule_extensions.h"
#include "text/read_rule.h"

namespace sidetrack {
namespace {

const std::array<Match, std::variant_size_v<Match>> matches = {
    InterfaceMatch{InterfaceDirection::in, "eth0", false},
    AddressMatch{End::destination, {*AddressRange::parse("10.0.0.0/8")}, false},
    ProtocolMatch{Protocol::udp, false},
    PortMatch{End::destination, {{80, 90}}, true},
    EitherPortMatch{{{80, 84}, {443, 443}}, false},
    TcpFlagsMatch{0x12, 0x12, false},
    OwnerMatch{OwnerKind::gid, {{1337, 1337}}, false},
    ConntrackStateMatch{ConntrackStateMatch::related | ConntrackStateMatch::established, false},
    ConntrackDirectionMatch{true},
    ConnectionMatch{
        ConnectionMatch::Of::address, false, End::destination, false, {*AddressRange::parse("10.0.0.0/8")}, {}},
    MarkMatch{1, 3, false},
    ConnmarkMatch{1, 3, true},
    SocketMatch{false},
    SetMatch{End::source, "hosts", 7, std::vector{*AddressRange::parse("10.0.0.1")}, false},
    AddressTypeMatch{End::source, 1 << RTN_LOCAL | 1 << RTN_BROADCAST, true},
    CgroupMatch{"kubepods/pod1", 0, false},
    CommentMatch{"two words"},
    UnknownMatch{"-m something --else"},
};

const std::array<Target, std::variant_size_v<Target>> targets = {
    Verdict::drop,
    Redirect{15001},
    Tproxy{15006, 1337, 0xffffffff},
    SetMark{1, 3},
    Connmark::restore,
    CtZone{2},
    NonTerminating{"-j LOG --log-prefix x"},
    SetConnmark{1, 3},
    Notrack{},
    Reject{"-j REJECT --reject-with tcp-reset"},
    source_nat(*Address::parse("169.254.7.127")),
    Jump{"ISTIO_OUTPUT", true},
    UnknownTarget{"-j SOMETHING --else"},
};

Rule rule(const Match& match, const Target& target) {
  Rule made;
  made.families = Family::ipv4;
  made.chain = "OUTPUT";
  made.matches = {ProtocolMatch{Protocol::tcp, false}, match};
  made.target = target;
  return made;
}

// The packet that all of the examples are not about.
PacketAtHook packet() {
  PacketAtHook made;
  made.protocol = Protocol::tcp;
  made.source = {*Address::parse("192.0.2.1"), 40'000};
  made.destination = {*Address::parse("192.0.2.2"), 85};
  made.in = "eth1";
  made.connmark = 1;
  made.cgroup = "system";
  made.owner = Owner{1000, 1000};
  return made;
}

TEST(Kinds, TheirExamplesStandInTheOrderOfTheVariant) {
  for (std::size_t i = 0; i < matches.size(); ++i) EXPECT_EQ(matches[i].index(), i);
  for (std::size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(targets[i].index(), i);
}

TEST(Kinds, WordsAreReadBack) {
  for (const Match& match : matches) {
    // What a set holds is not read from words: such a match stays as it is written.
    const bool is_opaque = std::holds_alternative<SetMatch>(match);
    const Rule read = read_rule(iptables_words(rule(match, Verdict::return_)));
    ASSERT_EQ(read.matches.size(), 2U) << iptables_words(match);
    EXPECT_EQ(read.matches[1], is_opaque ? Match(UnknownMatch{iptables_words(match)}) : match) << iptables_words(match);
  }
  for (const Target& target : targets) {
    const Rule read = read_rule(iptables_words(rule(matches[0], target)));
    EXPECT_EQ(read.target, target) << iptables_words(target);
  }
}

TEST(Kinds, ExtensionsAreReadBack) {
  for (const Match& match : matches) {
    std::vector<xt::Extension> extensions;
    try {
      extensions = xt::matches_of(rule(match, Verdict::return_));
    } catch (const std::logic_error&) {
      EXPECT_TRUE(std::holds_alternative<CommentMatch>(match) || std::holds_alternative<UnknownMatch>(match) ||
                  std::holds_alternative<ConnectionMatch>(match));
      continue;
    }
    EXPECT_LE(extensions.size(), 1U);
    for (const xt::Extension& extension : extensions) {
      EXPECT_EQ(xt::decode_match(extension, Family::ipv4), std::vector{match}) << iptables_words(match);
      EXPECT_FALSE(xt::source_of(xt::ExtensionKind::match, extension.name).module.empty()) << extension.name;
    }
  }
}

TEST(Kinds, APacketThatDiffersIsNotMatchedAndSaysWhy) {
  for (const Match& match : matches) {
    const bool is_known = !std::holds_alternative<UnknownMatch>(match) && !std::holds_alternative<CommentMatch>(match);
    PacketAtHook differs = packet();
    if (std::holds_alternative<SocketMatch>(match)) differs.owner.reset();
    EXPECT_NE(truth(match, differs), is_known ? Truth::yes : Truth::no) << iptables_words(match);
    EXPECT_EQ(why_not(match, differs).empty(), !is_known) << iptables_words(match);
  }
}

TEST(Kinds, WhatATargetChangesIsWhatMatchesRead) {
  const auto changed_by = [](const Target& target) {
    std::string words;
    for (const Match& match : matches) {
      if ((changes(target) & reads(match)) != 0) words += iptables_words(match) + "; ";
    }
    return words;
  };
  EXPECT_EQ(changed_by(SetMark{1}), "-m mark --mark 0x1/0x3; ");
  EXPECT_EQ(changed_by(Connmark::restore), "-m mark --mark 0x1/0x3; ");
  EXPECT_EQ(changed_by(Connmark::save), "-m connmark ! --mark 0x1/0x3; ");
  EXPECT_EQ(changed_by(Notrack{}),
            "-m conntrack --ctstate RELATED,ESTABLISHED; -m conntrack --ctdir REPLY; "
            "-m conntrack --ctorigdst 10.0.0.0/8; -m connmark ! --mark 0x1/0x3; ");
  EXPECT_EQ(changed_by(Verdict::accept), "");
  EXPECT_EQ(changed_by(UnknownTarget{"-j X"}).find("comment"), std::string::npos);
}

}  // namespace
}  // namespace sidetrack
