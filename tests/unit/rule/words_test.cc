// SPDX-License-Identifier: GPL-2.0-or-later
// Rules in the words of iptables.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rule/hook.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

AddressRange range_of(const char* text) { return *AddressRange::parse(text); }

TEST(IptablesWords, OfEachMatch) {
  std::string all = "\n";
  for (const Match& match : std::initializer_list<Match>{
           InterfaceMatch{InterfaceDirection::in, "eth0", false},
           InterfaceMatch{InterfaceDirection::out, "e\x1b", true},
           AddressMatch{End::source, {range_of("10.0.0.0/8")}, false},
           AddressMatch{End::destination, {range_of("fd00::/8"), range_of("::1")}, true},
           ProtocolMatch{Protocol::icmpv6, false},
           ProtocolMatch{static_cast<Protocol>(132), true},
           PortMatch{End::source, {{53, 53}}, true},
           PortMatch{End::destination, {{80, 90}}, false},
           PortMatch{End::destination, {{80, 90}, {443, 443}}, true},
           OwnerMatch{OwnerKind::uid, {{0, 0}}, true},
           OwnerMatch{OwnerKind::gid, {{5, 9}, {11, 11}}, false},
           ConntrackStateMatch{31, false},
           ConntrackStateMatch{ConntrackStateMatch::related | ConntrackStateMatch::established, true},
           ConntrackStateMatch{ConntrackStateMatch::invalid, false},
           ConntrackDirectionMatch{true},
           ConntrackDirectionMatch{false},
           MarkMatch{1337, ~0U, false},
           MarkMatch{0x10, 0xf0, true},
           ConnmarkMatch{7, ~0U, true},
           ConnmarkMatch{1, 1, false},
           SocketMatch{},
           SocketMatch{true},
           SetMatch{End::destination, "probes", 3, {}, false},
           SetMatch{End::source, "", 3, {}, true},
           CgroupMatch{"a/b", 0, false},
           CgroupMatch{"a 'b'\\", 0, true},
           CgroupMatch{"a\"\t", 0, false},
           CgroupMatch{"", 77, true},
           CommentMatch{"plain_Words-09"},
           CommentMatch{""},
           CommentMatch{"it's a \"quote\"\x1b"},
           CommentMatch{"{zero}"},
           CommentMatch{"[`@"},
           UnknownMatch{"-m bpf \x1b"},
       })
    all += iptables_words(match) + "\n";
  EXPECT_EQ(all, R"(
-i eth0
! -o e\x1b
-s 10.0.0.0/8
! -d fd00::/8,::1/128
-p ipv6-icmp
! -p 132
! --sport 53
--dport 80:90
-m multiport ! --dports 80:90,443
-m owner ! --uid-owner 0
-m owner --gid-owner 5-9,11
-m conntrack --ctstate INVALID,NEW,RELATED,ESTABLISHED,UNTRACKED
-m conntrack ! --ctstate RELATED,ESTABLISHED
-m conntrack --ctstate INVALID
-m conntrack --ctdir REPLY
-m conntrack --ctdir ORIGINAL
-m mark --mark 1337
-m mark ! --mark 0x10/0xf0
-m connmark ! --mark 7
-m connmark --mark 0x1/0x1
-m owner --socket-exists
-m owner ! --socket-exists
-m set --match-set probes dst
-m set ! --match-set [number 3] src
-m cgroup --path a/b
-m cgroup ! --path "a \'b\'\\"
-m cgroup --path "a\"\x09"
! [cgroup 77, whose path is not known]
-m comment --comment plain_Words-09
-m comment --comment ""
-m comment --comment "it\'s a \"quote\"\x1b"
-m comment --comment "{zero}"
-m comment --comment "[`@"
-m bpf \x1b
)");
}

TEST(IptablesWords, OfEachTarget) {
  std::string all = "\n";
  for (const Target& target : std::initializer_list<Target>{Verdict::accept,
                                                            Verdict::drop,
                                                            Verdict::return_,
                                                            Jump{"CHAIN"},
                                                            Jump{"C\x1b", true},
                                                            Redirect{15001},
                                                            Tproxy{15006, 1337, ~0U},
                                                            Tproxy{15006, 1, 0xff},
                                                            SetMark{7, ~0U},
                                                            SetMark{0x10, 0xf0},
                                                            Connmark::save,
                                                            Connmark::restore,
                                                            CtZone{2},
                                                            NonTerminating{"-j LOG"},
                                                            SetConnmark{1, 0xff},
                                                            SetConnmark{7, ~0U},
                                                            Notrack{},
                                                            Reject{"-j REJECT --reject-with tcp-reset"},
                                                            source_nat(*Address::parse("10.0.0.1")),
                                                            UnknownTarget{"-j QUEUE\n"}})
    all += iptables_words(target) + "\n";
  EXPECT_EQ(all, R"(
-j ACCEPT
-j DROP
-j RETURN
-j CHAIN
-g C\x1b
-j REDIRECT --to-ports 15001
-j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006
-j TPROXY --tproxy-mark 1/0xff --on-port 15006
-j MARK --set-mark 7
-j MARK --set-xmark 0x10/0xf0
-j CONNMARK --save-mark
-j CONNMARK --restore-mark
-j CT --zone 2
-j LOG
-j CONNMARK --set-xmark 0x1/0xff
-j CONNMARK --set-xmark 0x7/0xffffffff
-j CT --notrack
-j REJECT --reject-with tcp-reset
-j SNAT --to-source 10.0.0.1
-j QUEUE\x0a
)");
}

TEST(IptablesWords, OfRules) {
  Rule rule{Families::both(), Table::nat, "C\n", {ProtocolMatch{Protocol::tcp, false}}, NonTerminating{}, {}, {}};
  EXPECT_EQ(iptables_words(rule), "-A C\\x0a -p tcp");
  rule.insert_at = 3;
  rule.matches.emplace_back(PortMatch{End::destination, {{80, 80}}, false});
  rule.target = Verdict::drop;
  EXPECT_EQ(iptables_words(rule), "-I C\\x0a 3 -p tcp --dport 80 -j DROP");
}

TEST(IptablesWords, OfRulesetsAreOfOneFamily) {
  Ruleset rules;
  const auto add = [&](Families families, Table table, const char* chain, Target target) {
    rules.rules.push_back({families, table, chain, {}, std::move(target), {}, {}});
  };
  add(Family::ipv6, Table::raw, "OUTPUT", CtZone{1});
  add(Families::both(), Table::nat, "OUTPUT", Jump{"ISTIO_OUTPUT"});
  add(Family::ipv4, Table::nat, "ISTIO_OUTPUT", Jump{"ISTIO_REDIRECT"});
  add(Family::ipv4, Table::mangle, "PREROUTING", Verdict::accept);
  EXPECT_EQ("\n" + iptables_restore(rules, Family::ipv4), R"(
*mangle
-A PREROUTING -j ACCEPT
COMMIT
*nat
-N ISTIO_OUTPUT
-N ISTIO_REDIRECT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
COMMIT
)");
  EXPECT_EQ("\n" + iptables_restore(rules, Family::ipv6), R"(
*nat
-N ISTIO_OUTPUT
-A OUTPUT -j ISTIO_OUTPUT
COMMIT
*raw
-A OUTPUT -j CT --zone 1
COMMIT
)");
}

TEST(Hook, OfEachBuiltInChain) {
  std::string all = "\n";
  for (const Table table : {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security, Table::other}) {
    for (const Hook hook : all_hooks) {
      const auto point = builtin_hook(table, name(hook));
      EXPECT_EQ(hook_named(name(hook)), hook);
      if (!point) continue;
      EXPECT_EQ(point->hook, hook);
      all += fmt::format("{} {} {} {}\n", name(table), name(hook), point->priority, name(point->type));
    }
  }
  EXPECT_EQ(builtin_hook(Table::nat, "ISTIO_OUTPUT"), std::nullopt);
  EXPECT_EQ(hook_named("output"), std::nullopt);
  EXPECT_EQ(all, R"(
raw PREROUTING -300 filter
raw OUTPUT -300 filter
mangle PREROUTING -150 filter
mangle INPUT -150 filter
mangle FORWARD -150 filter
mangle OUTPUT -150 route
mangle POSTROUTING -150 filter
nat PREROUTING -100 nat
nat INPUT 100 nat
nat OUTPUT -100 nat
nat POSTROUTING 100 nat
filter INPUT 0 filter
filter FORWARD 0 filter
filter OUTPUT 0 filter
security INPUT 50 filter
security FORWARD 50 filter
security OUTPUT 50 filter
)");
}

TEST(Address, OfIpv4InIpv6) {
  EXPECT_EQ(Address::parse("::ffff:10.1.2.3")->unmapped(), Address::parse("10.1.2.3"));
  for (const char* other : {"::fffe:10.1.2.3", "1::ffff:10.1.2.3", "::1:ffff:10.1.2.3", "::10.1.2.3", "10.1.2.3",
                            "0:0:0:0:100:ffff:a01:203"})
    EXPECT_EQ(Address::parse(other)->unmapped(), std::nullopt) << other;
}

}  // namespace
}  // namespace sidetrack
