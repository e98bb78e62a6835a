// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/rule_words.h"
#include "rule/iptables.h"
#include "unit/asking.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

using namespace words;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr BackendKind legacy = BackendKind::iptables_legacy;

// Another program's rules, of which not every word is known.
Live foreign() {
  const AddressRange pods = *AddressRange::parse("10.0.0.0/8");
  Live live;
  live.backend = BackendKind::iptables_nft;
  live.chains = {
      chain(Family::ipv4, Table::nat, "POSTROUTING", false, {{{source(pods)}, UnknownTarget{"-j MASQUERADE"}}}),
      chain(Family::ipv4, Table::mangle, "KUBE-MARK", false,
            {{{UnknownMatch{"-m addrtype --dst-type LOCAL"}}, SetMark{16384}}})};
  return live;
}

constexpr const char* foreign_shown = R"(packets  bytes  iptables-nft, ipv4
                POSTROUTING
                  nat POSTROUTING
      0      0         1  -s 10.0.0.0/8 -j MASQUERADE                            [other]
                not reached from any hook
                  mangle KUBE-MARK [other]
      0      0         1  -m addrtype --dst-type LOCAL -j MARK --set-mark 16384
)";

constexpr const char* istio_1_1_shown = R"(packets  bytes  iptables-legacy, ipv4
                PREROUTING
                  nat PREROUTING
      0      0         1  -p tcp -j ISTIO_INBOUND                        [Istio or Sidetrack]  inbound TCP is checked (-b)
                      nat ISTIO_INBOUND [Istio or Sidetrack]
      0      0             1  -p tcp --dport 80 -j ISTIO_IN_REDIRECT     inbound to port 80 goes to the proxy (-b 80)
                          nat ISTIO_IN_REDIRECT [Istio or Sidetrack]
      0      0                 1  -p tcp -j REDIRECT --to-ports 15001    to the proxy's inbound listener, port 15001 (-z 15001) [15001 Envoy outbound]
                OUTPUT
                  nat OUTPUT
      0      0         1  -p tcp -j ISTIO_OUTPUT                         [Istio or Sidetrack]  outbound TCP is checked
                      nat ISTIO_OUTPUT [Istio or Sidetrack]
      0      0             1  ! -d 127.0.0.1/32 -o lo -j ISTIO_REDIRECT  what goes to the pod's own address, not loopback, goes to the proxy (Istio 1.0 to 1.2)
                          nat ISTIO_REDIRECT [Istio or Sidetrack]
      0      0                 1  -p tcp -j REDIRECT --to-ports 15001    to the proxy's outbound listener, port 15001 (-p 15001) [15001 Envoy outbound]
      1     60             2  -m owner --uid-owner 1337 -j RETURN        the proxy's own traffic (uid 1337) goes out as it is (-u 1337)
      2    120             3  -m owner --gid-owner 1337 -j RETURN        traffic of gid 1337, the proxy's or an excluded group's, goes out as it is (-g 1337)
      3    180             4  -d 127.0.0.1/32 -j RETURN                  loopback is never captured
      4    240             5  -j ISTIO_REDIRECT                          all other outbound TCP goes to the proxy (-i '*')
)";

TEST(Show, NothingProgrammed) {
  const std::vector<Live> live;
  const Routing routing;
  EXPECT_EQ("\n" + show(live, routing, {}), R"(
no rules

policy rules, routes, addresses
  none of ours

inbound       nothing is captured
outbound      nothing is captured
not captured  everything
)");
}

TEST(Show, Istio11) {
  const std::vector<Live> live{istio_1_1()};
  const Routing routing;
  EXPECT_EQ("\n" + show(live, routing, {}), "\n" + std::string(istio_1_1_shown) + R"(
policy rules, routes, addresses
  none of ours

inbound       IPv4 only: TCP to port 80 goes to port 15001 (Envoy outbound)
outbound      IPv4 only: TCP goes to port 15001 (Envoy outbound)
not captured  IPv4 only: sent by uid 1337, gid 1337
release       Istio 1.0 to 1.2
)");
}

TEST(Show, ForeignRulesAlone) {
  const std::vector<Live> live{foreign()};
  const Routing routing;
  EXPECT_EQ("\n" + show(live, routing, {}), "\n" + std::string(foreign_shown) + R"(
policy rules, routes, addresses
  none of ours

inbound       nothing is captured
outbound      nothing is captured
not captured  everything
)");
}

TEST(Show, SeveralBackendsAndOurRouting) {
  const std::vector<Live> live{istio_1_1(), foreign()};
  const Routing routing{.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133)},
                        .local_routes = {local_default(Family::ipv4, 133)},
                        .loopback_addresses = {*Address::parse("::6")}};
  EXPECT_EQ("\n" + show(live, routing, {}), "\n" + std::string(istio_1_1_shown) + "\n" + foreign_shown + R"(
policy rules, routes, addresses
  ipv4  rule fwmark 1337 lookup 133: what TPROXY has marked stays in the pod
  ipv4  route local default dev lo table 133
  ipv6  address ::6/128 dev lo: the proxy's source towards the app

inbound       IPv4 only: TCP to port 80 goes to port 15001 (Envoy outbound)
outbound      IPv4 only: TCP goes to port 15001 (Envoy outbound)
not captured  IPv4 only: sent by uid 1337, gid 1337
release       Istio 1.0 to 1.2
)");
}

TEST(Show, Ours) {
  const Plan plan = planned("-b * -d 15021 -i 10.0.0.0/8 -x 10.1.0.0/16 --ip-families ipv4");
  const std::vector<Live> live{as_live(plan.ruleset, BackendKind::iptables_nft)};
  const Routing routing;
  EXPECT_EQ("\n" + show(live, routing, {}), R"(
packets  bytes  iptables-nft, ipv4
                PREROUTING
                  nat PREROUTING
      0      0         1  -p tcp -j ISTIO_INBOUND                          [Istio or Sidetrack]  inbound TCP is checked (-b)
                      nat ISTIO_INBOUND [Istio or Sidetrack]
      0      0             1  -p tcp --dport 15008 -j RETURN               the tunnel's port: the proxy listens there itself (-e 15008) [15008 HBONE tunnel]
      0      0             2  -p tcp --dport 15021 -j RETURN               inbound to port 15021 is left to the app (-d 15021) [15021 readiness]
      0      0             3  -p tcp -j ISTIO_IN_REDIRECT                  all other inbound TCP goes to the proxy (-b '*')
                          nat ISTIO_IN_REDIRECT [Istio or Sidetrack]
      0      0                 1  -p tcp -j REDIRECT --to-ports 15006      to the proxy's inbound listener, port 15006 (-z 15006) [15006 Envoy inbound]
                OUTPUT
                  nat OUTPUT
      0      0         1  -j ISTIO_OUTPUT                                  [Istio or Sidetrack]  outbound traffic is checked
                      nat ISTIO_OUTPUT [Istio or Sidetrack]
      0      0             1  -o lo -s 127.0.0.6/32 -j RETURN              the proxy passes inbound traffic on to the app from 127.0.0.6
      0      0             2  -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT  the proxy (uid 1337) calling this pod's own address: inbound through the proxy (-u 1337) [15008 HBONE tunnel]
      0      0             3  -o lo -m owner ! --uid-owner 1337 -j RETURN  the app talking to itself (not uid 1337) bypasses the proxy (-u 1337)
      0      0             4  -m owner --uid-owner 1337 -j RETURN          the proxy's own traffic (uid 1337) goes out as it is (-u 1337)
      0      0             5  -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT  the proxy (gid 1337) calling this pod's own address: inbound through the proxy (-g 1337) [15008 HBONE tunnel]
      0      0             6  -o lo -m owner ! --gid-owner 1337 -j RETURN  the app talking to itself (not gid 1337) bypasses the proxy (-g 1337)
      0      0             7  -m owner --gid-owner 1337 -j RETURN          the proxy's own traffic (gid 1337) goes out as it is (-g 1337)
      0      0             8  -d 127.0.0.1/32 -j RETURN                    loopback is never captured
      0      0             9  -d 10.1.0.0/16 -j RETURN                     outbound to 10.1.0.0/16 bypasses the proxy (-x 10.1.0.0/16)
      0      0            10  -d 10.0.0.0/8 -j ISTIO_REDIRECT              outbound TCP to 10.0.0.0/8 goes to the proxy (-i 10.0.0.0/8)
                          nat ISTIO_REDIRECT [Istio or Sidetrack]
      0      0                 1  -p tcp -j REDIRECT --to-ports 15001      to the proxy's outbound listener, port 15001 (-p 15001) [15001 Envoy outbound]

policy rules, routes, addresses
  none of ours

inbound       IPv4 only: TCP goes to port 15006 (Envoy inbound)
outbound      IPv4 only: TCP to 10.0.0.0/16, 10.2.0.0-10.255.255.255 goes to port 15001 (Envoy outbound)
not captured  IPv4 only: inbound to port 15008, 15021; sent by uid 1337, gid 1337
)");
}

TEST(Show, SaysFromWhomInboundIsCaptured) {
  const auto said = [](const char* options) {
    const std::vector<Live> live{as_live(planned(options).ruleset, BackendKind::iptables_nft)};
    return show(live, {}, {});
  };
  const std::string some =
      said("-b * --include-inbound-ranges 10.0.0.0/8 --exclude-inbound-ranges 10.9.0.0/16 --ip-families ipv4");
  EXPECT_THAT(some,
              HasSubstr("inbound       IPv4 only: TCP from 10.0.0.0-10.8.255.255, 10.10.0.0-10.255.255.255 goes to "
                        "port 15006 (Envoy inbound)\n"));
  const std::string tproxy = said("-m TPROXY -b 80 --include-inbound-ranges 10.0.0.0/8 --ip-families ipv4");
  EXPECT_THAT(tproxy, HasSubstr("TCP to port 80 from 10.0.0.0/8 goes to port 15006 (Envoy inbound) by TPROXY"));
}

TEST(Show, OursInOneTableForBothFamilies) {
  const Plan plan = planned("-m TPROXY -b 80,443");
  const std::vector<Live> live{as_live(plan.ruleset, BackendKind::nftables)};
  const Routing routing;
  EXPECT_EQ("\n" + show(live, routing, {}), R"(
packets  bytes  nftables, ipv4 and ipv6
                PREROUTING
                  mangle PREROUTING
      0      0         1  -p tcp -j ISTIO_INBOUND                                    [Sidetrack]  inbound TCP is checked (-b)
                      mangle ISTIO_INBOUND [Sidetrack]
      0      0             1  -p tcp -m mark --mark 1337 -j RETURN                   what the proxy passes on is not captured again (-t 1337)
      0      0             2  (ipv4) -p tcp -s 127.0.0.6/32 -i lo -j RETURN          the proxy passes inbound traffic on to the app from 127.0.0.6
      0      0             3  (ipv6) -p tcp -s ::6/128 -i lo -j RETURN               the proxy passes inbound traffic on to the app from ::6
      0      0             4  -p tcp -i lo -m mark ! --mark 1338 -j RETURN           the app talking to itself over lo bypasses the proxy
      0      0             5  -p tcp -m multiport --dports 80,443 -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT  packets of a connection that the proxy already has (-b 80,443)
                          mangle ISTIO_DIVERT [Sidetrack]
      0      0                 1  -j MARK --set-mark 1337                            marked, so that the policy route brings it to the proxy's open connection (-t 1337)
      0      0                 2  -j ACCEPT                                          accepted as marked (-m TPROXY)
      0      0             6  -p tcp -m multiport --dports 80,443 -j ISTIO_TPROXY    inbound to port 80, 443 goes to the proxy (-b 80,443)
                          mangle ISTIO_TPROXY [Sidetrack]
      0      0                 1  (ipv4) ! -d 127.0.0.1/32 -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006  to the proxy's transparent inbound listener, port 15006 (-m TPROXY) [15006 Envoy inbound]
      0      0                 2  (ipv6) ! -d ::1/128 -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006  to the proxy's transparent inbound listener, port 15006 (-m TPROXY) [15006 Envoy inbound]
      0      0         2  -p tcp -m mark --mark 1337 -j CONNMARK --save-mark         [Sidetrack]  a connection that the proxy opened with the client's address keeps its mark (-t 1337)
                OUTPUT
                  mangle OUTPUT
      0      0         1  -p tcp -o lo -m mark --mark 1337 -j RETURN                 [Sidetrack]  what the proxy passes on to the app keeps its mark (-t 1337)
      0      0         2  (ipv4) ! -d 127.0.0.1/32 -p tcp -o lo -m owner --uid-owner 1337 -j MARK --set-mark 1338  [Sidetrack]  the proxy calling this pod's own address: marked, so that it counts as inbound (-u 1337)
      0      0         3  (ipv6) ! -d ::1/128 -p tcp -o lo -m owner --uid-owner 1337 -j MARK --set-mark 1338  [Sidetrack]  the proxy calling this pod's own address: marked, so that it counts as inbound (-u 1337)
      0      0         4  (ipv4) ! -d 127.0.0.1/32 -p tcp -o lo -m owner --gid-owner 1337 -j MARK --set-mark 1338  [Sidetrack]  the proxy calling this pod's own address: marked, so that it counts as inbound (-g 1337)
      0      0         5  (ipv6) ! -d ::1/128 -p tcp -o lo -m owner --gid-owner 1337 -j MARK --set-mark 1338  [Sidetrack]  the proxy calling this pod's own address: marked, so that it counts as inbound (-g 1337)
      0      0         6  -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark  [Sidetrack]  the app's answers to such a connection go back to the proxy (-t 1337)
                  nat OUTPUT
      0      0         1  -j ISTIO_OUTPUT                                            [Sidetrack]  outbound traffic is checked
                      nat ISTIO_OUTPUT [Sidetrack]
      0      0             1  (ipv4) -o lo -s 127.0.0.6/32 -j RETURN                 the proxy passes inbound traffic on to the app from 127.0.0.6
      0      0             2  (ipv6) -o lo -s ::6/128 -j RETURN                      the proxy passes inbound traffic on to the app from ::6
      0      0             3  (ipv4) -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT  the proxy (uid 1337) calling this pod's own address: inbound through the proxy (-u 1337) [15008 HBONE tunnel]
                          nat ISTIO_IN_REDIRECT [Sidetrack]
      0      0                 1  -p tcp -j REDIRECT --to-ports 15006                to the proxy's inbound listener, port 15006 (-z 15006) [15006 Envoy inbound]
      0      0             4  (ipv6) -o lo ! -d ::1/128 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT  the proxy (uid 1337) calling this pod's own address: inbound through the proxy (-u 1337) [15008 HBONE tunnel]
      0      0             5  -o lo -m owner ! --uid-owner 1337 -j RETURN            the app talking to itself (not uid 1337) bypasses the proxy (-u 1337)
      0      0             6  -m owner --uid-owner 1337 -j RETURN                    the proxy's own traffic (uid 1337) goes out as it is (-u 1337)
      0      0             7  (ipv4) -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT  the proxy (gid 1337) calling this pod's own address: inbound through the proxy (-g 1337) [15008 HBONE tunnel]
      0      0             8  (ipv6) -o lo ! -d ::1/128 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT  the proxy (gid 1337) calling this pod's own address: inbound through the proxy (-g 1337) [15008 HBONE tunnel]
      0      0             9  -o lo -m owner ! --gid-owner 1337 -j RETURN            the app talking to itself (not gid 1337) bypasses the proxy (-g 1337)
      0      0            10  -m owner --gid-owner 1337 -j RETURN                    the proxy's own traffic (gid 1337) goes out as it is (-g 1337)
      0      0            11  (ipv4) -d 127.0.0.1/32 -j RETURN                       loopback is never captured
      0      0            12  (ipv6) -d ::1/128 -j RETURN                            loopback is never captured
                not reached from any hook
                  nat ISTIO_INBOUND [Sidetrack]
      0      0         1  -p tcp --dport 15008 -j RETURN                             the tunnel's port: the proxy listens there itself (-e 15008) [15008 HBONE tunnel]
                  nat ISTIO_REDIRECT [Sidetrack]
      0      0         1  -p tcp -j REDIRECT --to-ports 15001                        to the proxy's outbound listener, port 15001 (-p 15001) [15001 Envoy outbound]

policy rules, routes, addresses
  none of ours

inbound       TCP to port 80, 443 goes to port 15006 (Envoy inbound) by TPROXY
outbound      nothing is captured
not captured  nothing
)");
}

TEST(Show, MarksTheCountersThatMoved) {
  const std::vector<Live> before{istio_1_1()};
  std::vector<Live> now = before;
  now[0].chains.back().rules[0].counters.packets += 1234;
  const ShowOptions options{.color = false, .all = false, .before = before};
  const std::string text = show(now, {}, options);
  EXPECT_THAT(text, HasSubstr("  +1,234  to the proxy's outbound listener"));
  EXPECT_THAT(text, Not(HasSubstr("+1,234  all")));
  EXPECT_THAT(show(before, {}, options), Not(HasSubstr("+")));
}

TEST(Show, LongListsAreOneLineUnlessAskedForInFull) {
  std::string ranges;
  for (int i = 0; i < 200; ++i) ranges += "10." + std::to_string(i) + ".0.0/24,";
  const Plan plan = planned("-i * -x " + ranges);
  const std::vector<Live> linear{as_live(plan.ruleset, legacy)};
  EXPECT_THAT(show(linear, {}, {}), HasSubstr("9-208  200 rules, the first: -d 10.0.0.0/24 -j RETURN"));
  EXPECT_THAT(show(linear, {}, {.color = false, .all = true, .before = {}}), HasSubstr("-d 10.123.0.0/24 -j RETURN"));
  const std::vector<Live> set{as_live(plan.ruleset, BackendKind::nftables)};
  EXPECT_THAT(show(set, {}, {}), HasSubstr(",...(+195) -j RETURN"));
}

TEST(Show, AsJsonHoldsEveryRuleAndTheSummary) {
  const std::vector<Live> live{istio_1_1()};
  const std::string text = show_json(live, {}, {});
  EXPECT_THAT(text, HasSubstr(R"("rule": "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN")"));
  EXPECT_THAT(text, HasSubstr(R"("reason": "loopback is never captured")"));
  EXPECT_THAT(text, HasSubstr(R"x("inbound": "IPv4 only: TCP to port 80 goes to port 15001 (Envoy outbound)")x"));
}

std::string_view name_of(Maker maker) { return name(maker); }

TEST(Whose, IsSaidByTheBackendAndTheName) {
  const auto owner = [](BackendKind backend, const char* name, bool ours) {
    const Live live{backend, {}, 0, {}};
    return name_of(maker_of(live, chain(Family::ipv4, Table::nat, name, ours, {})));
  };
  EXPECT_EQ(owner(legacy, "ISTIO_OUTPUT", true), "Istio or Sidetrack");
  EXPECT_EQ(owner(BackendKind::iptables_nft, "OUTPUT", false), "other");
  EXPECT_EQ(owner(BackendKind::nftables, "ISTIO_OUTPUT", true), "Sidetrack");
  EXPECT_EQ(owner(BackendKind::nftables, "istio-output", true), "Istio");
}

TEST(Whose, IsSaidOfARuleByWhereItJumpsTo) {
  const LiveChain output = chain(Families::both(), Table::nat, "OUTPUT", true,
                                 {{{}, Jump{"istio-output"}}, {{}, Jump{"ISTIO_OUTPUT"}}, {{}, Verdict::return_}});
  Live live{BackendKind::nftables, {}, 0, {"inet istio-proxy-nat"}};
  EXPECT_EQ(maker_of(live, output, output.rules[0]), Maker::istio);
  EXPECT_EQ(maker_of(live, output, output.rules[1]), Maker::sidetrack);
  EXPECT_EQ(maker_of(live, output, output.rules[2]), Maker::istio);
  live.own_tables.emplace_back("inet sidetrack");
  EXPECT_EQ(maker_of(live, output, output.rules[2]), Maker::sidetrack);
}

TEST(Describe, KnowsTheChainsOfIstiosNftables) {
  const Rule rule{Families::both(), Table::nat, "istio-inbound", {tcp}, Jump{"istio-in-redirect"}, {}, {}};
  EXPECT_EQ(describe(rule).sentence, "all other inbound TCP goes to the proxy");
}

// The shapes say of a rule what the plan says of it, flag and sentence, for every kind of rule.
TEST(Describe, RecognisesEveryRuleOfThePlan) {
  for (const char* options :
       {"", "-i * -b * -d 15090,15021,15020 --drop-invalid",
        "-i 10.0.0.0/8,fd00::/8 -x 10.1.0.0/16 -b 80,443 -q 81 -o 82", "-m TPROXY -b * -c eth1 -d 15021 -t 7",
        "-m TPROXY -b 80", "-i * -k net1", "-i 10.0.0.0/8 -k net1,net2",
        "-i * --redirect-dns --dns-server 10.96.0.10,fd00::10", "-i * --redirect-dns --capture-all-dns",
        "-i * ISTIO_OUTBOUND_OWNER_GROUPS=5,6", "ISTIO_OUTBOUND_OWNER_GROUPS=", "-u 1,2 -g 3"}) {
    for (Rule rule : planned(options).ruleset.rules) {
      const Reason planned_reason = reason_of(rule);
      rule.origin = {};
      const Reason found = describe(rule);
      const std::string words = iptables_words(rule);
      // What the shape cannot tell: -k from -c, the proxy's gid from a group, --capture-all-dns in a jump.
      if (planned_reason.flag.starts_with("-k") && rule.target == Target(Verdict::return_)) continue;
      if (planned_reason.flag.starts_with("-g") && rule.matches.size() == 1) continue;
      EXPECT_EQ(found.sentence, planned_reason.sentence) << words;
      if (planned_reason.flag == "--capture-all-dns" && found.flag == "--redirect-dns") continue;
      EXPECT_EQ(found.flag, planned_reason.flag) << words;
    }
  }
}

TEST(Describe, SaysNothingOfAShapeThatItDoesNotKnow) {
  EXPECT_EQ(describe({Family::ipv4, Table::nat, "ISTIO_OUTPUT", {udp}, Verdict::drop, {}, {}}).sentence, "");
  EXPECT_EQ(describe({Family::ipv4, Table::nat, "POSTROUTING", {tcp}, Verdict::return_, {}, {}}).sentence, "");
  EXPECT_EQ(describe({Family::ipv4, Table::nat, "MY_CHAIN", {}, Verdict::drop, {{}, nullptr, "its own"}, {}}).sentence,
            "its own");
}

TEST(Describe, SaysInShortWhatIsNotUnderstood) {
  const std::string words = "-m u32 [rev 0, 1984 bytes: " + std::string(1900, '7') + "]";
  const Rule rule{Family::ipv4, Table::nat, "OUTPUT", {UnknownMatch{words}}, UnknownTarget{"-j X"}, {}, {}};
  EXPECT_EQ(short_words(rule), words.substr(0, 100) + "...(+1828) -j X");
  EXPECT_EQ(iptables_words(rule), "-A OUTPUT " + words + " -j X");
  EXPECT_EQ(in_short(std::string(100, 'a')), std::string(100, 'a'));
}

// ---- Hostile rules

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Show, ChainsThatJumpToEachOtherAreShownOnce) {
  const std::vector<Live> live{layered({{}, {}, {}, {}}, Redirect{15001})};
  const std::string shown = show(live, {}, {});
  for (int layer = 0; layer < 14; ++layer) EXPECT_EQ(occurrences(shown, "nat L" + std::to_string(layer) + "-0 ["), 1U);
  EXPECT_THAT(shown, HasSubstr("outbound      IPv4 only: TCP, UDP goes to port 15001 (Envoy outbound)\n"));
}

// No hook leads there, so the kernel has not looked at how deep they are nested.
TEST(Show, ChainsNestedDeeperThanTheKernelFollows) {
  Live live;
  constexpr int depth = 100'000;
  for (int i = 0; i < depth; ++i) {
    const std::string name = "C" + std::to_string(i);
    live.chains.push_back(
        chain(Family::ipv4, Table::nat, name.c_str(), false, {{{}, Jump{"C" + std::to_string(i + 1)}}}));
  }
  const std::vector<Live> all{live};
  const std::string shown = show(all, {}, {});
  EXPECT_EQ(occurrences(shown, " [other]"), std::size_t{depth});
}

TEST(Show, NamesAndCommentsArePrintable) {
  Live live = foreign();
  live.chains.front().rules.front().rule.matches.emplace_back(UnknownMatch{"-m comment --comment \"\x1b[2J\xff\""});
  live.chains.back().name = "KUBE\n[Sidetrack]\x9b";
  const std::vector<Live> all{live};
  EXPECT_THAT(show(all, {}, {}), ::testing::AllOf(HasSubstr(R"(--comment "\x1b[2J\xff")"),
                                                  HasSubstr(R"(mangle KUBE\x0a[Sidetrack]\x9b [other])")));
  EXPECT_NO_THROW(static_cast<void>(show_json(all, {}, {})));
}

}  // namespace
}  // namespace sidetrack
