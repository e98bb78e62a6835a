// SPDX-License-Identifier: GPL-2.0-or-later
// Options and a packet in, the end of its way out: for both families, and for each backend's way of holding the rules.
// That the kernel agrees is the matter of tests/kernel/explain_test.cc.
#include "walk/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/error.h"
#include "model/printable.h"
#include "render/render.h"
#include "rule/iptables.h"
#include "unit/asking.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// $POD, $LO, … stand for an address of the family, in brackets in IPv6 where a port follows.
std::string in_family(std::string text, Family family) {
  static const std::map<std::string, std::pair<std::string, std::string>> addresses{
      {"$POD", {"192.0.2.2", "2001:db8::2"}},           {"$LO", {"127.0.0.1", "::1"}},
      {"$NET1", {"198.18.2.2", "2001:db8:1:2::2"}},     {"$SERVICE", {"10.96.0.10", "fd00:96::10"}},
      {"$ELSEWHERE", {"172.16.0.1", "fd00:172::1"}},    {"$CLIENT", {"10.1.2.3", "fd00:1::3"}},
      {"$DNS", {"10.96.0.53", "fd00:96::53"}},          {"$PASSTHROUGH", {"127.0.0.6", "::6"}},
      {"$OWN_RANGE", {"10.96.0.0/16", "fd00:96::/32"}},
  };
  for (const auto& [word, both] : addresses) {
    const std::string& address = family == Family::ipv4 ? both.first : both.second;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + address.size())) {
      const bool port_follows =
          at + word.size() < text.size() && text[at + word.size()] == ':' && text[at + word.size() + 1] != ' ';
      const bool bracket = port_follows && family == Family::ipv6;
      text.replace(at, word.size(), bracket ? "[" + address + "]" : address);
    }
  }
  return text;
}

struct Row {
  const char* options;
  const char* packet;
  const char* end;
};

constexpr const char* injected = "-i * -b * -d 15090,15021,15020";
constexpr const char* dns = "-i * -b * --redirect-dns --dns-server 10.96.0.53,fd00:96::53";
constexpr const char* all_dns = "-i * -b * --redirect-dns --capture-all-dns";
constexpr const char* tproxy = "-m TPROXY -i * -b * -d 15021";
constexpr const char* virtual_machine = "-i * -b * -k net1";

constexpr const char* to_outbound = "lands on $LO:15001 (Envoy outbound); original destination $SERVICE:443";
constexpr const char* to_inbound = "lands on $POD:15006 (Envoy inbound); original destination $POD:8080";
constexpr const char* to_inbound_by_lo = "lands on $LO:15006 (Envoy inbound); original destination $POD:8080";
constexpr const char* to_app = "lands on $POD:8080 (the app), untouched";
constexpr const char* to_service = "leaves the pod by eth0 to $SERVICE:443, untouched";
constexpr const char* to_transparent = "lands on port 15006 (Envoy inbound) by TPROXY; original destination $POD:8080";

const Row rows[] = {
    // Nothing asked for: only the chains are there.
    {"", "out tcp $SERVICE:443", to_service},
    {"", "in tcp $POD:8080", to_app},
    {"", "lo tcp $POD:8080 --uid 1337", to_inbound_by_lo},
    {"-m NONE -i * -b *", "out tcp $SERVICE:443", to_service},

    // What the injector passes.
    {injected, "out tcp $SERVICE:443", to_outbound},
    {injected, "out tcp $SERVICE:443 --uid 1000", to_outbound},
    {injected, "out tcp $SERVICE:443 --uid 1337", to_service},
    {injected, "out tcp $SERVICE:443 --uid 2000 --gid 1337", to_service},
    {injected, "out tcp $SERVICE:443 --uid 1337 --gid 2000", to_service},
    {injected, "out udp $SERVICE:443", to_service},
    {injected, "out icmp $SERVICE", "leaves the pod by eth0 to $SERVICE, untouched"},
    {injected, "in tcp $POD:8080 --from $CLIENT", to_inbound},
    {injected, "in tcp $POD:15021", "lands on $POD:15021 (readiness), untouched"},
    {injected, "in tcp $POD:15090", "lands on $POD:15090 (Envoy Prometheus telemetry), untouched"},
    {injected, "in tcp $POD:15008", "lands on $POD:15008 (HBONE tunnel), untouched"},
    {injected, "in udp $POD:8080", to_app},
    {injected, "in icmp $POD", "lands on $POD (the kernel), untouched"},
    {injected, "in tcp $ELSEWHERE:80", "lands on $POD:15006 (Envoy inbound); original destination $ELSEWHERE:80"},
    {injected, "in udp $ELSEWHERE:80",
     "is not for this pod: goes on by eth0 to $ELSEWHERE:80 if the pod forwards, else it is dropped"},
    {injected, "lo tcp $LO:8080", "lands on $LO:8080 (the app), untouched"},
    {injected, "lo tcp $POD:8080", to_app},
    {injected, "out tcp $POD:8080", to_app},
    {injected, "lo tcp $LO:8080 --uid 1337", "lands on $LO:8080 (the app), untouched"},
    {injected, "lo tcp $POD:8080 --uid 1337", to_inbound_by_lo},
    {injected, "lo tcp $POD:15008 --uid 1337", "lands on $POD:15008 (HBONE tunnel), untouched"},
    {injected, "lo tcp $POD:8080 --from $PASSTHROUGH --uid 1337", to_app},
    {injected, "lo tcp $POD:8080 --uid 2000 --gid 1337", to_app},  // the uid's RETURN comes before the gid's redirect
    {injected, "in tcp $POD:15001", "lands on $POD:15006 (Envoy inbound); original destination $POD:15001"},

    // Only the first packet of a connection is decided about; the others follow it.
    {injected, "out tcp $SERVICE:443 --state established", to_outbound},
    {injected, "in tcp $POD:8080 --state established", to_inbound},
    {injected, "in tcp $POD:8080 --state invalid", to_app},
    {injected, "out tcp $SERVICE:443 --state invalid", to_service},
    {injected, "out tcp $CLIENT:5000 --state reply", "leaves the pod by eth0 to $CLIENT:5000, untouched"},
    {injected, "in tcp $POD:5000 --state reply",
     "lands on $POD:5000 (the socket that opened the connection), untouched"},
    {"-b * --drop-invalid", "in tcp $POD:8080 --state invalid", "dropped: by rule 1 of mangle ISTIO_DROP"},
    {"-b * --drop-invalid", "in tcp $POD:8080", to_inbound},

    // Ports, lists, ranges.
    {"-b 8080,9090", "in tcp $POD:8080", to_inbound},
    {"-b 8080,9090", "in tcp $POD:80", "lands on $POD:80 (the app), untouched"},
    {"-i * -o 3306,443", "out tcp $SERVICE:443", to_service},
    {"-i * -o 3306,443", "out udp $SERVICE:443", to_service},
    {"-i * -o 3306", "out tcp $SERVICE:443", to_outbound},
    {"-i * -x $OWN_RANGE", "out tcp $SERVICE:443", to_service},
    {"-i * -x $OWN_RANGE", "out tcp $ELSEWHERE:80",
     "lands on $LO:15001 (Envoy outbound); original destination $ELSEWHERE:80"},
    {"-i $OWN_RANGE", "out tcp $SERVICE:443", to_outbound},
    {"-i $OWN_RANGE", "out tcp $ELSEWHERE:80", "leaves the pod by eth0 to $ELSEWHERE:80, untouched"},
    {"-i $OWN_RANGE", "out udp $SERVICE:443", to_service},
    {"-q 443", "out tcp $SERVICE:443", to_outbound},
    {"-q 443", "out tcp $SERVICE:80", "leaves the pod by eth0 to $SERVICE:80, untouched"},
    {"-q 443 -x $OWN_RANGE", "out tcp $SERVICE:443", to_service},
    {"-i * -p 16001", "out tcp $SERVICE:443",
     "lands on $LO:16001 (the proxy's outbound listener); original destination $SERVICE:443"},
    {"-b * -z 16006", "in tcp $POD:8080",
     "lands on $POD:16006 (the proxy's inbound listener); original destination $POD:8080"},
    {"-b * -e 15108", "in tcp $POD:15108", "lands on $POD:15108 (the app), untouched"},

    // A captured loopback range: what goes over lo is not returned at once.
    {"-i 127.1.2.0/24,::1/128", "lo tcp $POD:8080 --uid 2000 --gid 1337", to_inbound_by_lo},
    {"-i 127.1.2.0/24", "lo tcp 127.1.2.3:80",
     "lands on 127.0.0.1:15001 (Envoy outbound); original destination 127.1.2.3:80"},
    {"-i 127.1.2.0/24,10.0.0.0/8", "lo tcp $LO:8080", "lands on $LO:8080 (the app), untouched"},
    {"-i * ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/8", "lo tcp 127.4.4.4:80 --uid 1337",
     "lands on 127.4.4.4:80 (the app), untouched"},
    {"-i *", "lo tcp 127.4.4.4:80 --uid 1337",
     "lands on 127.0.0.1:15006 (Envoy inbound); original destination 127.4.4.4:80"},

    // Owners.
    {"-i * -u 1,2", "out tcp $SERVICE:443 --uid 2 --gid 7", to_service},
    {"-i * -u 1,2", "lo tcp $POD:8080 --uid 1", to_inbound_by_lo},
    {"-i * -u 1,2", "lo tcp $POD:8080 --uid 2 --gid 7", to_app},  // the first uid's RETURN comes first
    {"-i * -u 1 -g 2", "out tcp $SERVICE:443 --uid 7 --gid 2", to_service},
    {"-i * ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=888", "out tcp $SERVICE:443 --gid 888", to_service},
    {"-i * ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=888", "out tcp $SERVICE:443 --gid 889", to_outbound},
    {"-i * ISTIO_OUTBOUND_OWNER_GROUPS=5,6", "out tcp $SERVICE:443 --gid 6", to_outbound},
    {"-i * ISTIO_OUTBOUND_OWNER_GROUPS=5,6", "out tcp $SERVICE:443 --gid 7", to_service},
    {"-i * ISTIO_OUTBOUND_OWNER_GROUPS=", "out tcp $SERVICE:443", to_service},

    // Interfaces.
    {"-i * -b * -c eth1", "in tcp $POD:8080 --in-interface eth1", to_app},
    {"-i * -b * -c eth1", "out tcp $SERVICE:443 --out-interface eth1",
     "leaves the pod by eth1 to $SERVICE:443, untouched"},
    {"-i * -b * -c eth1", "in tcp $POD:8080", to_inbound},
    {virtual_machine, "in tcp $SERVICE:443 --in-interface net1",
     "lands on $NET1:15001 (Envoy outbound); original destination $SERVICE:443"},
    {virtual_machine, "in udp $POD:8080 --in-interface net1", to_app},
    {"-i $OWN_RANGE -b * -k net1", "in tcp $SERVICE:443 --in-interface net1",
     "lands on $NET1:15001 (Envoy outbound); original destination $SERVICE:443"},
    {"-i $OWN_RANGE -b * -k net1", "in tcp $POD:8080 --in-interface net1", to_app},

    // DNS.
    {dns, "out udp $DNS:53", "lands on $LO:15053 (DNS); original destination $DNS:53"},
    {dns, "out tcp $DNS:53", "lands on $LO:15053 (DNS); original destination $DNS:53"},
    {dns, "out udp $SERVICE:53", "leaves the pod by eth0 to $SERVICE:53, untouched"},
    {dns, "out udp $DNS:53 --uid 1337", "leaves the pod by eth0 to $DNS:53, untouched"},
    {dns, "out udp $DNS:53 --uid 2000 --gid 1337", "leaves the pod by eth0 to $DNS:53, untouched"},
    {dns, "lo udp $LO:9000", "lands on $LO:9000 (the app), untouched"},
    {dns, "lo tcp $POD:8080", to_app},
    {dns, "lo tcp $POD:8080 --uid 1337", to_inbound_by_lo},
    {dns, "lo tcp $POD:53 --uid 1337", "lands on $POD:53 (the app), untouched"},
    {dns, "out udp $CLIENT:4000 sport 15053 --uid 1337", "leaves the pod by eth0 to $CLIENT:4000, untouched"},
    {dns, "out udp $CLIENT:4000 sport 15053 --uid 2000 --gid 1337",
     "leaves the pod by eth0 to $CLIENT:4000, untouched"},
    {dns, "in udp $POD:4000 --from $DNS sport 53 --state reply",
     "lands on $POD:4000 (the socket that opened the connection), untouched"},
    {all_dns, "out udp $SERVICE:53", "lands on $LO:15053 (DNS); original destination $SERVICE:53"},
    {all_dns, "out tcp $SERVICE:53", "lands on $LO:15053 (DNS); original destination $SERVICE:53"},
    {all_dns, "lo udp $LO:53", "lands on $LO:15053 (DNS); original destination $LO:53"},
    {all_dns, "lo tcp $LO:53", "lands on $LO:15053 (DNS); original destination $LO:53"},
    {all_dns, "in udp $POD:4000 --from $SERVICE sport 53 --state reply",
     "lands on $POD:4000 (the socket that opened the connection), untouched"},

    // TPROXY.
    {tproxy, "in tcp $POD:8080 --from $CLIENT", to_transparent},
    {tproxy, "in tcp $POD:8080 --from $CLIENT --state established", to_transparent},
    {tproxy, "in tcp $POD:15021", "lands on $POD:15021 (readiness), untouched"},
    {tproxy, "in tcp $ELSEWHERE:80",
     "lands on port 15006 (Envoy inbound) by TPROXY; original destination $ELSEWHERE:80"},
    {tproxy, "out tcp $SERVICE:443", to_outbound},
    {tproxy, "lo tcp $POD:8080", to_app},
    {tproxy, "lo tcp $LO:8080", "lands on $LO:8080 (the app), untouched"},
    {tproxy, "lo tcp $POD:8080 --uid 1337", to_inbound_by_lo},
    {tproxy, "lo tcp $POD:8080 --uid 2000 --gid 1337", to_transparent},  // nat leaves it alone, the gid's mark does not
    {tproxy, "lo tcp $POD:8080 --from $PASSTHROUGH --uid 1337", to_app},
    {tproxy, "lo tcp $POD:8080 --from $CLIENT --gid 1337 --mark 1337", to_app},
    {tproxy, "out tcp $CLIENT:5000 --state reply connmark 1337",
     "lands on $CLIENT:5000 (the socket that opened the connection), untouched"},
    {tproxy, "out tcp $CLIENT:5000 --state reply", "leaves the pod by eth0 to $CLIENT:5000, untouched"},
    {"-m TPROXY -b 8080", "in tcp $POD:8080", to_transparent},
    {"-m TPROXY -b 8080", "in tcp $POD:8080 --state established", to_transparent},
    {"-m TPROXY -b 8080", "in tcp $POD:80", "lands on $POD:80 (the app), untouched"},
    {"-m TPROXY -b * -c eth1", "in tcp $POD:8080 --in-interface eth1", to_app},
    {"-m TPROXY -i * -b * -c eth1", "out tcp $SERVICE:443 --out-interface eth1",
     "leaves the pod by eth1 to $SERVICE:443, untouched"},
    {"-m TPROXY -b * -t 7 -r 99", "out tcp $ELSEWHERE:80 --mark 7 --from $POD",
     "lands on $ELSEWHERE:80 (the app), untouched; unknown whether replies arrive: only a transparent socket "
     "answers from $ELSEWHERE, which is not the pod's"},  // by the policy rule for fwmark 7
};

// Rows of IPv4 addresses are for IPv4 alone.
bool is_for(const Row& row, Family family) {
  const std::string text = std::string(row.packet) + row.end;
  return family == Family::ipv4 || text.find("127.") == std::string::npos;
}

TEST(Explain, EndsWhereTheRulesSay) {
  for (const BackendKind backend : {BackendKind::iptables_legacy, BackendKind::iptables_nft, BackendKind::nftables}) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      for (const Row& row : rows) {
        if (!is_for(row, family)) continue;
        const std::string packet = in_family(row.packet, family);
        const Trace trace = ask(in_family(row.options, family), packet, backend);
        EXPECT_EQ(sentence(trace.outcome), in_family(row.end, family)) << row.options << "\n" << trace_text(trace, {});
        EXPECT_THAT(trace.doubts, IsEmpty()) << row.options << " " << packet;
      }
    }
  }
}

// The route of TPROXY's policy rule gives a socket without an address the destination's, which is not the pod's.
TEST(Explain, NothingIsSentFromAnAddressThatIsNotThePods) {
  for (const char* packet : {"out tcp 172.16.0.1:80 --mark 1337", "out tcp 10.96.0.10:443 --mark 1337 --uid 1337"}) {
    EXPECT_THAT(sentence(ask(tproxy, packet, BackendKind::nftables).outcome),
                testing::StartsWith("never sent: the route to 1"));
  }
}

// What a rule is, whatever its values: the kinds of its matches and its target.
std::string kind_of(const Rule& rule, Family family) {
  std::string kind = std::string(name(rule.table)) + " " + rule.chain + " " + std::string(name(family));
  for (const Match& match : rule.matches) {
    kind += " " + std::to_string(match.index());
    std::visit(
        [&](const auto& m) {
          if constexpr (requires { m.negated; }) kind += m.negated ? "!" : "";
          if constexpr (requires { m.kind; }) kind += m.kind == OwnerKind::uid ? "u" : "g";
          if constexpr (requires { m.direction; }) kind += m.name == "lo" ? "lo" : "";
          if constexpr (requires { m.protocol; }) kind += std::string(name(m.protocol));
        },
        match);
  }
  kind += " " + std::to_string(rule.target.index());
  if (const auto* jump = std::get_if<Jump>(&rule.target)) kind += jump->chain;
  return kind;
}

// The steps of a trace by the rule that each is about.
const Rule& rule_of(const Live& live, const Step& step, Family family) {
  for (const LiveChain& chain : live.chains) {
    if (name(chain.table) == step.table && chain.name == step.chain && chain.families.contains(family)) {
      return chain.rules.at(step.number - 1).rule;
    }
  }
  throw std::out_of_range(step.chain);
}

TEST(Explain, EveryKindOfRuleOfThePlanMatchesSomePacketHere) {
  std::map<std::string, std::string> planned_kinds;  // and one such rule
  std::set<std::string> matched_kinds;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Row& row : rows) {
      if (!is_for(row, family)) continue;
      const Plan plan = planned(in_family(row.options, family));
      for (const Rule& rule : plan.ruleset.rules) {
        if (rule.families.contains(family)) planned_kinds[kind_of(rule, family)] = iptables_words(rule);
      }
      const Live live[] = {as_live(plan.ruleset, BackendKind::iptables_legacy)};
      const Trace trace = explain(packet_of(in_family(row.packet, family)), assumed_pod(plan), live);
      for (const Step& step : trace.steps) {
        if (step.kind < Step::Kind::matched) continue;
        matched_kinds.insert(kind_of(rule_of(live[0], step, family), family));
      }
    }
  }
  // The uid's rules for lo leave the gid's nothing: what is not of the proxy's uid is returned before, what is as well.
  const std::set<std::string> dead{"-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN",
                                   "-A ISTIO_OUTPUT -o lo -p tcp ! --dport 53 -m owner ! --gid-owner 1337 -j RETURN"};
  for (const auto& [kind, rule] : planned_kinds) {
    if (dead.contains(rule)) {
      EXPECT_FALSE(matched_kinds.contains(kind)) << rule;
    } else {
      EXPECT_TRUE(matched_kinds.contains(kind)) << rule;
    }
  }
}

// The rules that decide, in iptables' words.
std::vector<std::string> decisive(std::string_view options, std::string_view packet) {
  const Trace trace = ask(options, packet, BackendKind::iptables_legacy);
  std::vector<std::string> rules;
  for (std::size_t place : trace.decisive) {
    rules.push_back(trace.steps[place].table + " " + iptables_words(trace.steps[place]));
  }
  return rules;
}

TEST(Explain, NamesTheRulesThatDecide) {
  EXPECT_THAT(decisive(injected, "out tcp 10.96.0.10:443"),
              ElementsAre("nat -A ISTIO_OUTPUT -j ISTIO_REDIRECT",
                          "nat -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001"));
  EXPECT_THAT(decisive("-i * -x 10.0.0.0/8", "out tcp 10.96.0.10:443"),
              ElementsAre("nat -A ISTIO_OUTPUT -d 10.0.0.0/8 -j RETURN"));
  EXPECT_THAT(decisive("-i 11.0.0.0/8", "out tcp 10.96.0.10:443"), IsEmpty());
  EXPECT_THAT(decisive(tproxy, "lo tcp 192.0.2.2:80"),
              ElementsAre("nat -A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN",
                          "mangle -A ISTIO_INBOUND -p tcp -i lo -m mark ! --mark 1338 -j RETURN"));
  EXPECT_THAT(
      decisive("--drop-invalid", "in tcp :80 --state invalid"),
      ElementsAre("mangle -A PREROUTING -m conntrack --ctstate INVALID -j ISTIO_DROP", "mangle -A ISTIO_DROP -j DROP"));
}

// DNS of the app, of the proxy to the same server, and the proxy's answers are three flows.
TEST(Explain, DnsIsTrackedInZones) {
  const auto zone = [](const char* packet) {
    for (const Step& step : ask(dns, packet, BackendKind::iptables_legacy).steps) {
      const auto at = step.text.find("in zone ");
      if (step.kind == Step::Kind::kernel && at != std::string::npos) return step.text.substr(at);
    }
    return std::string("no zone");
  };
  EXPECT_EQ(zone("out udp 10.96.0.53:53"), "in zone 2");
  EXPECT_EQ(zone("out udp 10.96.0.53:53 --uid 1337"), "in zone 1");  // the first CT rule decides
  EXPECT_EQ(zone("out udp 10.1.2.3:4000 sport 15053 --uid 1337"), "in zone 2");
  EXPECT_EQ(zone("in udp 192.0.2.2:4000 --from 10.96.0.53 sport 53"), "in zone 1");
  EXPECT_EQ(zone("out tcp 10.96.0.53:53"), "no zone");
}

// `! --uid-owner` holds for a packet without a socket in xt; `meta skuid !=` does not in nf_tables.
TEST(Explain, APacketOfTheKernelHasNoOwner) {
  const char* packet = "lo tcp 192.0.2.2:8080 no-socket";
  const Trace xt = ask(injected, packet, BackendKind::iptables_nft);
  EXPECT_EQ(sentence(xt.outcome), "lands on 192.0.2.2:8080 (the app), untouched");
  const Trace native = ask(injected, packet, BackendKind::nftables);
  EXPECT_EQ(sentence(native.outcome), "lands on 127.0.0.1:15001 (Envoy outbound); original destination 192.0.2.2:8080");
}

// In mode TPROXY answers that pass through the pod are taken for packets of the proxy's own connections.
TEST(Explain, SaysWhenTheAnswersAreLost) {
  const char* passing = "in tcp 10.96.0.10:443 --from 198.51.100.9 --in-interface net1";
  const auto end = [&](const char* options, const char* packet) {
    const Plan plan = planned(options);
    PodView pod = assumed_pod(plan);
    std::erase_if(pod.interfaces, [](const Interface& interface) { return interface.name == "net1"; });
    pod.interfaces.push_back({"net1", {{*Address::parse("198.51.100.2"), 24}}});
    pod.routes.push_back({*AddressRange::parse("198.51.100.0/24"), "net1"});
    const Live live[] = {as_live(plan.ruleset, BackendKind::iptables_nft)};
    return sentence(explain(packet_of(packet), pod, live).outcome);
  };
  EXPECT_EQ(end("-m TPROXY -b * -c net1", passing),
            "is not for this pod: goes on by eth0 to 10.96.0.10:443 if the pod forwards, else it is dropped; replies "
            "are lost: they stay in the pod, by rule 2 of mangle ISTIO_DIVERT");
  EXPECT_THAT(end("-b * -c net1", passing), Not(HasSubstr("replies")));
  EXPECT_THAT(end("-m TPROXY -b * -c net1", "out tcp 10.96.0.10:443"), Not(HasSubstr("replies")));
}

TEST(Explain, WhatCannotComeInOrGoOut) {
  const auto end = [](const char* packet) { return sentence(ask("", packet, BackendKind::iptables_legacy).outcome); };
  EXPECT_EQ(end("in tcp 127.0.0.1:80"), "dropped: 127.0.0.1 cannot come in by eth0 (martian)");
  EXPECT_EQ(end("in tcp 192.0.2.2:80 --from 127.0.0.1"), "dropped: 127.0.0.1 cannot come in by eth0 (martian)");
  EXPECT_EQ(end("in tcp 192.0.2.2:80 --from 192.0.2.2"), "dropped: 192.0.2.2 cannot come in by eth0 (martian)");
  EXPECT_EQ(end("in tcp [::1]:80"), "dropped: loopback addresses do not come in by eth0");
  const Plan plan = planned("");
  const Live live[] = {as_live(plan.ruleset, BackendKind::iptables_legacy)};
  PodView ipv4_only = assumed_pod(plan);
  std::erase_if(ipv4_only.routes, [](const Route& route) { return route.to.family() == Family::ipv6; });
  EXPECT_EQ(sentence(explain(packet_of("out tcp [fd00::1]:80"), ipv4_only, live).outcome),
            "never sent: no route to fd00::1");
}

TEST(Explain, RefusesAPacketThatThePodCannotHave) {
  const auto refusal = [](const char* packet) -> std::string {
    try {
      (void)ask("", packet, BackendKind::iptables_legacy);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refusal("lo tcp 10.1.2.3:80"), "10.1.2.3 is not an address of this pod: expected one of its own for 'lo'");
  EXPECT_EQ(refusal("in tcp :80 --in-interface net7"),
            "--in-interface 'net7': this pod has no such interface, it has lo, eth0");
  EXPECT_EQ(refusal("out tcp 10.1.2.3:80 --out-interface net7"),
            "--out-interface 'net7': this pod has no such interface, it has lo, eth0");
  EXPECT_EQ(refusal("in tcp :80 --in-interface lo"), "--in-interface 'lo': nothing comes in by lo from outside");
}

TEST(Explain, RefusesAPacketToAPodWithoutAnAddress) {
  PodView pod = assumed_pod(planned(""));
  const auto refusal = [&](const char* packet) -> std::string {
    try {
      (void)explain(packet_of(packet), pod, {});
    } catch (const Error& error) {
      EXPECT_EQ(error.hint(), "give the destination's address");
      return error.what();
    }
    return "taken";
  };
  std::erase_if(pod.interface("eth0")->addresses,
                [](const InterfaceAddress& one) { return one.address.family == Family::ipv6; });
  EXPECT_EQ(refusal("in tcp :80 --from 10.1.2.3"), "taken");
  EXPECT_EQ(refusal("in tcp :80 --from fd00:1::3"), "this pod has no ipv6 address that the packet could be for");
  pod.interface("eth0")->addresses.clear();
  EXPECT_EQ(refusal("in tcp :80"), "this pod has no address that the packet could be for");
  EXPECT_EQ(refusal("lo tcp :80"), "taken");
}

// The kernel asks the table that was registered last first, and does not say which that was.
TEST(Explain, SaysWhenTheOrderOfTheBackendsMatters) {
  const Plan older = planned("-i * -p 15001");
  const Plan newer = planned("-i * -p 16001");
  const std::vector<Live> live{as_live(newer.ruleset, BackendKind::nftables),
                               as_live(older.ruleset, BackendKind::iptables_legacy)};
  const Packet packet = packet_of("out tcp 10.96.0.10:443");
  const Trace trace = explain(packet, assumed_pod(newer), live);
  EXPECT_THAT(sentence(trace.outcome),
              AllOf(HasSubstr("unknown: which is asked first of nat OUTPUT (nftables) and nat OUTPUT "
                              "(iptables-legacy) (all at priority -100)"),
                    HasSubstr("if nat OUTPUT (nftables): lands on 127.0.0.1:16001"),
                    HasSubstr("if nat OUTPUT (iptables-legacy): lands on 127.0.0.1:15001")));

  const std::vector<Live> alike{as_live(older.ruleset, BackendKind::nftables),
                                as_live(older.ruleset, BackendKind::iptables_legacy)};
  EXPECT_THAT(sentence(explain(packet, assumed_pod(older), alike).outcome), HasSubstr("lands on 127.0.0.1:15001"));

  // ACCEPT and RETURN of one nat table do not keep the next one from being asked.
  const Plan excluded = planned("-i * -x 10.0.0.0/8");
  const std::vector<Live> both{as_live(excluded.ruleset, BackendKind::iptables_nft),
                               as_live(older.ruleset, BackendKind::iptables_legacy)};
  EXPECT_THAT(sentence(explain(packet, assumed_pod(older), both).outcome), HasSubstr("lands on 127.0.0.1:15001"));
}

// ---- Beside rules of others

LiveChain base(const char* table_name, const char* name, HookPoint hook, Verdict policy,
               const std::vector<std::pair<std::vector<Match>, Target>>& rules) {
  LiveChain made = chain(Families::both(), Table::other, name, false, rules);
  made.table_name = table_name;
  made.hook = std::move(hook);
  made.policy = policy;
  return made;
}

Live others(std::vector<LiveChain> chains) {
  Live live;
  live.backend = BackendKind::nftables;
  live.chains = std::move(chains);
  return live;
}

// Where a packet ends beside these rules.
Trace beside(const Live& live, const char* options, const char* packet) {
  const Plan plan = planned(options);
  const std::vector<Live> all{live, as_live(plan.ruleset, BackendKind::iptables_legacy)};
  return explain(packet_of(packet), assumed_pod(plan), all);
}
std::string end_beside(const Live& live, const char* options, const char* packet) {
  return sentence(beside(live, options, packet).outcome);
}

constexpr const char* a_service = "out tcp 10.96.0.10:443 --uid 1000";
const UnknownMatch limit{"-m limit --limit 5/sec"};
const HookPoint output{Hook::output, 0, ChainType::filter, {}};

TEST(Explain, KnowsNotWhatItDoesNotUnderstand) {
  const auto end = [](std::vector<Match> matches, Target target, const char* options = "-i *") {
    return end_beside(others({base("inet f", "out", output, Verdict::accept, {{matches, target}})}), options,
                      a_service);
  };
  const std::string lands = "lands on 127.0.0.1:15001 (Envoy outbound); original destination 10.96.0.10:443";
  EXPECT_EQ(end({limit}, Verdict::drop),
            "unknown: whether `-m limit --limit 5/sec` of rule 1 of inet f out holds "
            "(if it does not: " +
                lands + "; if it does: dropped: by rule 1 of inet f out)");
  EXPECT_EQ(end({}, UnknownTarget{"-j QUEUE"}), "unknown: what `-j QUEUE` of rule 1 of inet f out does");
  EXPECT_EQ(end({limit}, UnknownTarget{"-j QUEUE"}),
            "unknown: whether `-m limit --limit 5/sec` of rule 1 of inet f out holds (if it does not: " + lands +
                "; if it does: unknown: what `-j QUEUE` of rule 1 of inet f out does)");
  // What makes no difference need not be known.
  EXPECT_EQ(end({limit}, Verdict::accept), lands);
  EXPECT_EQ(end({limit}, NonTerminating{"-j LOG"}), lands);
  EXPECT_EQ(end({limit, ProtocolMatch{Protocol::udp}}, Verdict::drop), lands);
  EXPECT_EQ(end({PortMatch{End::destination, {{15001, 15001}}}}, Verdict::drop), "dropped: by rule 1 of inet f out");
  // A port that the kernel chooses may be any.
  EXPECT_THAT(end({PortMatch{End::source, {{40000, 50000}}}}, Verdict::drop), HasSubstr("unknown: whether"));
  EXPECT_THAT(end({PortMatch{End::source, {{40000, 50000}}, true}}, Verdict::drop), HasSubstr("unknown: whether"));
  EXPECT_EQ(end({PortMatch{End::source, {{1024, 65535}}}}, Verdict::drop), "dropped: by rule 1 of inet f out");
  EXPECT_THAT(end({PortMatch{End::source, {{443, 443}}}}, Verdict::drop), HasSubstr("lands on 127.0.0.1:15001"));
  // To the port: net.ipv4.ip_local_port_range is 32768 to 60999.
  EXPECT_EQ(end({PortMatch{End::source, {{32768, 60999}}}}, Verdict::drop), "dropped: by rule 1 of inet f out");
  for (const PortRange part : {PortRange{32769, 60999}, {32768, 60998}, {1, 32768}, {60999, 65535}})
    EXPECT_THAT(end({PortMatch{End::source, {part}}}, Verdict::drop), HasSubstr("unknown: whether")) << part.first;
  for (const PortRange part : {PortRange{1, 32767}, {61000, 65535}})
    EXPECT_THAT(end({PortMatch{End::source, {part}}}, Verdict::drop), StartsWith(lands)) << part.first;
}

// A connection does not begin by a way on which its first packet is dropped.
TEST(Explain, LaterPacketsEndAsTheFirstOneWhereItMayBeDropped) {
  const HookPoint before{Hook::output, -200, ChainType::filter, {}};
  const UnknownMatch limit{"-m limit"};
  const Trace trace = beside(others({base("inet f", "out", before, Verdict::accept, {{{limit}, Verdict::drop}})}),
                             "-i *", "out tcp 198.51.100.1:80 --state established");
  EXPECT_EQ(trace.outcome.kind, Outcome::Kind::unknown);
  EXPECT_THAT(trace.outcome.why, HasSubstr("if it does not: lands on 127.0.0.1:15001"));
  EXPECT_THAT(trace.outcome.why, HasSubstr("if it does: dropped"));
  EXPECT_THAT(trace.outcome.why, ::testing::Not(HasSubstr("untouched")));
  // One that began before the rules were there.
  const ConntrackStateMatch new_ones{ConntrackStateMatch::new_, false};
  const Trace of_before = beside(
      others({base("inet f", "out", before, Verdict::accept, {{{limit}, SetMark{1, 1}}, {{new_ones}, Verdict::drop}})}),
      "-m NONE", "out tcp 198.51.100.1:80 --state established");
  EXPECT_EQ(of_before.outcome.kind, Outcome::Kind::leaves) << sentence(of_before.outcome);
}

TEST(Explain, SaysWhyConnmarkHasNoEffect) {
  const auto said = [](std::int32_t priority, const char* packet) {
    const HookPoint hook{Hook::output, priority, ChainType::filter, {}};
    for (const Connmark connmark : {Connmark::save, Connmark::restore}) {
      const Trace trace =
          beside(others({base("inet f", "out", hook, Verdict::accept, {{{}, connmark}})}), "-i *", packet);
      for (const Step& step : trace.steps) {
        if (step.text.starts_with("no effect: it ")) return step.text;
      }
    }
    return std::string("has an effect");
  };
  EXPECT_EQ(said(-400, a_service), "no effect: it is not tracked yet");
  EXPECT_EQ(said(0, "out tcp 10.96.0.10:443 --state invalid"), "no effect: it belongs to no known connection");
  EXPECT_EQ(said(0, a_service), "has an effect");
}

// -m u32 is two thousand bytes.
TEST(Explain, SaysInShortWhatItDoesNotUnderstand) {
  const std::string words = "-m u32 [rev 0, 1984 bytes: " + std::string(1900, '7') + "]";
  const auto end = [](std::vector<Match> matches, Target target) {
    return end_beside(others({base("inet f", "out", output, Verdict::accept, {{matches, target}})}), "-i *", a_service);
  };
  EXPECT_THAT(end({UnknownMatch{words}}, Verdict::drop),
              StartsWith("unknown: whether `" + words.substr(0, 99) + "...(+1830)` of rule 1"));
  EXPECT_THAT(end({}, UnknownTarget{words}),
              StartsWith("unknown: what `" + words.substr(0, 100) + "...(+1828)` of rule 1"));
}

// "If it does not" is said of the last one: what may end it before that is named, too.
TEST(Explain, NamesAllThatIsUnknown) {
  const auto rules = [](Target target) {
    std::vector<std::pair<std::vector<Match>, Target>> made;
    for (const char* words : {"-m a", "-m b", "-m c"}) made.push_back({{UnknownMatch{words}}, target});
    return made;
  };
  const auto at = [&](Hook hook, Target target) {
    return beside(others({base("inet f", "x", {hook, 0, ChainType::filter, {}}, Verdict::accept, rules(target))}), "",
                  "in tcp 192.0.2.2:8080 --from 192.0.2.9");
  };
  const char* others_before =
      ", and before that whether `-m a` of rule 1 of inet f x holds, whether `-m b` of rule 2 of inet f x holds";
  const Trace dropped = at(Hook::input, Verdict::drop);
  EXPECT_EQ(dropped.outcome.why,
            "whether `-m c` of rule 3 of inet f x holds (if it does not: lands on 192.0.2.2:8080 (the app), untouched; "
            "if it does: dropped: by rule 3 of inet f x)" +
                std::string(others_before));
  EXPECT_EQ(dropped.decisive.size(), 3U);
  const Trace answers = at(Hook::output, Verdict::drop);
  EXPECT_EQ(answers.outcome.kind, Outcome::Kind::lands);
  EXPECT_THAT(answers.outcome.answers_why, ::testing::EndsWith(others_before));
  // Marks that nobody asks for are no reason.
  EXPECT_EQ(at(Hook::input, SetMark{1, 1}).outcome.kind, Outcome::Kind::lands);
}

TEST(Explain, UnknownMatchesTogetherAreTriedOnceEach) {
  std::vector<std::pair<std::vector<Match>, Target>> rules(40, {{limit}, SetMark{7}});
  EXPECT_THAT(end_beside(others({base("inet f", "out", output, Verdict::accept, rules)}), "-i *", a_service),
              HasSubstr("lands on 127.0.0.1:15001"));
}

// Of a local route by a mark, IPv6 takes an address of lo: the one that TPROXY's rules return.
TEST(Explain, AMarkedIPv6SocketHasTheAddressOfLo) {
  EXPECT_THAT(
      end_beside(others({}), "-m TPROXY -i * -b * --dual-stack", "out tcp [2001:db8:9::1]:8080 --uid 1337 --mark 1337"),
      HasSubstr("lands on [2001:db8:9::1]:8080"));
}

// TPROXY finds the socket that opened the connection; the native statement then does nothing.
TEST(Explain, TproxyDropsAnswersToOrdinarySockets) {
  const HookPoint mangle{Hook::prerouting, -150, ChainType::filter, {}};
  const ProtocolMatch of_tcp{Protocol::tcp, false};
  Live rules = others({base("inet m", "pre", mangle, Verdict::accept, {{{of_tcp}, Tproxy{15006, 1, 0xffffffff}}})});
  EXPECT_THAT(end_beside(rules, "", a_service), ::testing::Not(HasSubstr("replies are lost")));
  rules.backend = BackendKind::iptables_legacy;
  EXPECT_THAT(end_beside(rules, "", a_service), HasSubstr("replies are lost: dropped: by rule 1 of"));
}

// A TCP connection whose later packets end elsewhere than its first one is never answered.
TEST(Explain, SaysWhenLaterPacketsEndElsewhere) {
  const ProtocolMatch of_tcp{Protocol::tcp, false};
  const ConntrackStateMatch later{ConntrackStateMatch::established, false};
  const HookPoint mangle{Hook::prerouting, -150, ChainType::filter, {}};
  const HookPoint input{Hook::input, 0, ChainType::filter, {}};
  const char* connection = "in tcp 192.0.2.2:8080 --from 192.0.2.9";
  const Live drop = others({base("inet f", "in", input, Verdict::accept, {{{later}, Verdict::drop}})});
  EXPECT_EQ(end_beside(drop, "", connection),
            "lands on 192.0.2.2:8080 (the app), untouched; replies are lost: the later packets of its connection end "
            "elsewhere: dropped: by rule 1 of inet f in");
  EXPECT_EQ(end_beside(drop, "", "in udp 192.0.2.2:8080 --from 192.0.2.9"),
            "lands on 192.0.2.2:8080 (the app), untouched");
  const Live spare = others({base("inet f", "in", input, Verdict::accept, {{{later}, Verdict::accept}})});
  EXPECT_EQ(end_beside(spare, "", connection), "lands on 192.0.2.2:8080 (the app), untouched");
  const Live odd =
      others({base("inet f", "in", input, Verdict::accept, {{{later, UnknownMatch{"quota 9"}}, Verdict::drop}})});
  EXPECT_THAT(end_beside(odd, "", connection), HasSubstr("unknown whether replies arrive: whether `quota 9`"));

  // What TPROXY looks for is the socket of the connection: the app's is not transparent.
  Live transparent =
      others({base("inet m", "pre", mangle, Verdict::accept, {{{of_tcp, later}, Tproxy{15006, 1, 0xffffffff}}})});
  EXPECT_EQ(end_beside(transparent, "", connection), "lands on 192.0.2.2:8080 (the app), untouched")
      << "native: no effect";
  transparent.backend = BackendKind::iptables_legacy;
  EXPECT_THAT(end_beside(transparent, "", connection), HasSubstr("end elsewhere: dropped: by rule 1 of"));
  EXPECT_THAT(end_beside(transparent, "", "in tcp 192.0.2.2:15006 --from 192.0.2.9"), Not(HasSubstr("replies")));

  // UDP: answers to a query of the pod's own. The native statement leaves those of a connected socket alone.
  Live queries = others(
      {base("inet m", "pre", mangle, Verdict::accept, {{{ProtocolMatch{Protocol::udp}}, Tproxy{15006, 1, ~0U}}})});
  const char* query = "out udp 10.96.0.10:53 --uid 1000";
  EXPECT_THAT(end_beside(queries, "", query), HasSubstr("unknown whether replies arrive: whether the socket"));
  queries.backend = BackendKind::iptables_legacy;
  EXPECT_THAT(end_beside(queries, "", query),
              HasSubstr("replies are lost: they go to the listener on port 15006, by rule 1 of inet m pre"));
  // Of ours none is asked.
  EXPECT_THAT(ask("-m TPROXY -b * --capture-udp 1-65535", query, BackendKind::iptables_legacy).outcome.answers,
              Outcome::Answers::arrive);

  // Redirected after TPROXY: no socket has the addresses that the packet has there.
  const HookPoint nat{Hook::prerouting, -100, ChainType::nat, {}};
  Live both = others({base("inet m", "pre", mangle, Verdict::accept, {{{of_tcp}, Tproxy{15006, 1, 0xffffffff}}}),
                      base("inet n", "pre", nat, Verdict::accept, {{{of_tcp}, Redirect{15001}}})});
  EXPECT_THAT(end_beside(both, "", connection),
              HasSubstr("by TPROXY; original destination 192.0.2.2:15001; replies are lost: the later packets of its "
                        "connection end elsewhere: dropped: by rule 1 of inet m pre"));
}

// Neighbour discovery passes the same rules; what it meets there is nothing that the packet has met.
TEST(Explain, DoubtsOfNeighbourDiscoveryAreItsOwn) {
  const HookPoint mangle{Hook::output, -150, ChainType::route, {}};
  const HookPoint postrouting{Hook::postrouting, 100, ChainType::nat, {}};
  const Nat snat{End::source, AddressRange::parse("fd01::77"), {}, "-j SNAT --to-source fd01::77"};
  const Live rules = others({base("inet m", "out", mangle, Verdict::accept, {{{limit}, Verdict::return_}}),
                             base("inet n", "post", postrouting, Verdict::accept, {{{limit}, snat}})});
  EXPECT_THAT(end_beside(rules, "", "out tcp [2001:db8:9::1]:80 --uid 1000"),
              StartsWith("unknown: whether `-m limit --limit 5/sec` of rule 1 of inet n post holds"));
}

// Solicitations are from the address of the packet that waits, advertisements from that of the neighbour.
TEST(Explain, NeighboursAreFoundByAnyAddress) {
  const auto end = [](std::initializer_list<std::string_view> rules) {
    return end_beside(rules_of_others(BackendKind::iptables_nft, Family::ipv6, rules), "", "out tcp [2001:db8::99]:80");
  };
  const char* found = "leaves the pod by eth0";
  const char* perhaps = "unknown: whether a neighbour at eth0 is found: dropped: by rule";
  const char* drop_in = "filter -A INPUT -p ipv6-icmp -j DROP";
  const char* drop_out = "filter -A OUTPUT -p ipv6-icmp -j DROP";
  EXPECT_THAT(end({"filter -A INPUT -s fe80::/10 -p ipv6-icmp -j ACCEPT", drop_in}), StartsWith(perhaps));
  EXPECT_THAT(end({"filter -A INPUT -s 2001:db8::/64 -p ipv6-icmp -j ACCEPT", drop_in}), StartsWith(perhaps));
  EXPECT_THAT(end({"filter -A INPUT -s 2001:db8::/64 -p ipv6-icmp -j ACCEPT",
                   "filter -A INPUT -s fe80::/10 -p ipv6-icmp -j ACCEPT", drop_in}),
              StartsWith(found));
  // They come to the address itself, or to its group.
  EXPECT_THAT(end({"filter -A INPUT -d 2001:db8::2 -p ipv6-icmp -j ACCEPT", drop_in}), StartsWith(perhaps));
  EXPECT_THAT(end({"filter -A INPUT -d 2001:db8::2 -p ipv6-icmp -j ACCEPT",
                   "filter -A INPUT -d ff02::1:ff00:2 -p ipv6-icmp -j ACCEPT", drop_in}),
              StartsWith(found));
  EXPECT_THAT(end({"filter -A OUTPUT -d ff02::/16 -p ipv6-icmp -j ACCEPT", drop_out}), StartsWith(perhaps));
  EXPECT_THAT(end({"filter -A OUTPUT -s 2001:db8::2 -o eth0 -p ipv6-icmp -j ACCEPT", drop_out}), StartsWith(found));
}

// Rules that let discovery alone pass, as the textbooks have them.
TEST(Explain, NeighboursAreFoundIfTheirTypesPass) {
  const auto end = [](std::initializer_list<std::string_view> rules) {
    return end_beside(rules_of_others(BackendKind::iptables_nft, Family::ipv6, rules), "", "out tcp [2001:db8::99]:80");
  };
  const char* drop = "filter -A INPUT -p ipv6-icmp -j DROP";
  const char* solicited = "filter -A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 135 -m hl --hl-eq 255 -j ACCEPT";
  const char* answered = "filter -A INPUT -p ipv6-icmp --icmpv6-type neighbour-advertisement -j ACCEPT";
  const char* perhaps = "unknown: whether a neighbour at eth0 is found: dropped: by rule";
  EXPECT_THAT(end({solicited, answered, drop}), StartsWith("leaves the pod by eth0"));
  EXPECT_THAT(end({solicited, drop}), StartsWith(perhaps));
  EXPECT_THAT(end({answered, drop}), StartsWith(perhaps));
  EXPECT_THAT(end({"filter -A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j DROP"}), StartsWith("leaves the pod"));
  EXPECT_THAT(end({"filter -A OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 136 -j DROP"}), StartsWith(perhaps));
  // Of other packets the type is not known.
  EXPECT_THAT(end_beside(rules_of_others(BackendKind::iptables_nft, Family::ipv6,
                                         {"filter -A OUTPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j DROP"}),
                         "", "out icmp 2001:db8::99"),
              StartsWith("unknown: whether `-m icmp6 --icmpv6-type 128`"));
}

// Of any address of the interface, and without a route.
TEST(Explain, NeighboursLookForAnyAddress) {
  const Live rules = rules_of_others(
      BackendKind::iptables_nft, Family::ipv6,
      {"filter -A OUTPUT -s fe80::2 -p ipv6-icmp -j DROP", "filter -A INPUT -s 2001:db8:7::/64 -p ipv6-icmp -j DROP"});
  PodView pod = assumed_pod(planned(""));
  const auto end = [&] { return sentence(explain(packet_of("out tcp [2001:db8::99]:80"), pod, {{rules}}).outcome); };
  EXPECT_THAT(end(), StartsWith("leaves the pod by eth0"));
  pod.routes.push_back({*AddressRange::parse("2001:db8:7::/64"), "eth0", {}, main_table, Address::parse("fe80::9")});
  EXPECT_THAT(end(), StartsWith("leaves the pod by eth0"));
  pod.routes.back().gateway.reset();
  EXPECT_THAT(end(), HasSubstr("dropped: by rule 1 of filter INPUT"));
  pod.interface("eth0")->addresses.push_back({*Address::parse("fe80::2"), 64});
  EXPECT_THAT(end(), HasSubstr("dropped: by rule 1 of filter OUTPUT"));
  pod.routes = {{*AddressRange::parse("2001:db8::/64"), "eth0"}};
  EXPECT_THAT(end(), HasSubstr("dropped: by rule 1 of filter OUTPUT"));
}

TEST(Explain, SaysFromWhereAPacketLeaves) {
  const auto ends = [](const Nat& nat, const char* packet) {
    const HookPoint postrouting{Hook::postrouting, 100, ChainType::nat, {}};
    return end_beside(others({base("inet n", "post", postrouting, Verdict::accept, {{{}, nat}})}), "", packet);
  };
  const Nat snat{End::source, AddressRange::parse("192.0.2.77"), {}, "snat to 192.0.2.77"};
  EXPECT_THAT(ends(snat, a_service), HasSubstr("leaves the pod by eth0 to 10.96.0.10:443, from 192.0.2.77; unknown"));
  EXPECT_THAT(ends(snat, "in tcp 10.9.9.9:80"),
              HasSubstr("goes on by eth0 to 10.9.9.9:80, from 192.0.2.77 if the pod"));
  // As it was, or unknown.
  EXPECT_THAT(ends({End::source, {}, {}, "masquerade"}, a_service), HasSubstr("10.96.0.10:443, untouched"));
  EXPECT_THAT(ends({End::source, AddressRange::parse("192.0.2.2"), {}, ""}, a_service), HasSubstr(":443, untouched"));
  EXPECT_THAT(ends({End::source, {}, PortRange{1000, 1000}, ""}, a_service), HasSubstr(":443, untouched"));
  // The answer of one that came in is no new connection.
  EXPECT_THAT(ends(snat, "out tcp 203.0.113.1:50000 --state reply"), Not(HasSubstr("192.0.2.77")));
}

TEST(Explain, WalksBaseChainsByPriority) {
  const auto first = [](std::int32_t priority, const char* options) {
    const HookPoint hook{Hook::output, priority, ChainType::filter, {}};
    const Match redirected = PortMatch{End::destination, {{15001, 15001}}};
    return end_beside(others({base("inet f", "out", hook, Verdict::accept, {{{redirected}, Verdict::drop}})}), options,
                      a_service);
  };
  EXPECT_EQ(first(-99, "-i *"), "dropped: by rule 1 of inet f out");
  EXPECT_THAT(first(-101, "-i *"), HasSubstr("lands on 127.0.0.1:15001"));
  EXPECT_THAT(first(-100, "-i *"), HasSubstr("unknown: which is asked first of inet f out (nftables) and nat"));
  EXPECT_THAT(first(-100, ""), HasSubstr("leaves the pod"));

  // Before conntrack every packet is of no connection.
  const auto invalid = [](std::int32_t priority) {
    const HookPoint hook{Hook::output, priority, ChainType::filter, {}};
    const Match match = ConntrackStateMatch{ConntrackStateMatch::invalid};
    return end_beside(others({base("inet f", "out", hook, Verdict::accept, {{{match}, Verdict::drop}})}), "",
                      a_service);
  };
  EXPECT_EQ(invalid(-250), "dropped: by rule 1 of inet f out");
  EXPECT_EQ(invalid(-150), "leaves the pod by eth0 to 10.96.0.10:443, untouched");
}

TEST(Explain, SaysPolicies) {
  Live live =
      others({base("inet f", "out", output, Verdict::drop, {{{ProtocolMatch{Protocol::udp}}, Verdict::accept}})});
  const Trace trace = beside(live, "-i *", a_service);
  EXPECT_EQ(sentence(trace.outcome), "dropped: policy drop of inet f out");
  EXPECT_THAT(trace_text(trace, {}), AllOf(HasSubstr("policy  DROP"), HasSubstr("  by inet f out policy  DROP")));
  EXPECT_THAT(end_beside(live, "-i *", "out udp 10.96.0.10:443"), HasSubstr("leaves"));
  live.chains.front().dormant = true;
  EXPECT_THAT(end_beside(live, "-i *", a_service), HasSubstr("lands on 127.0.0.1:15001"));
}

TEST(Explain, FollowsTranslationsOfOthers) {
  const auto dnat = [](std::int32_t priority, Nat nat, const char* options = "-i *") {
    const HookPoint hook{Hook::output, priority, ChainType::nat, {}};
    return end_beside(others({base("inet n", "out", hook, Verdict::accept, {{{}, nat}})}), options, a_service);
  };
  const auto to = [](const char* range) { return AddressRange::parse(range); };
  const std::string other = "leaves the pod by eth0 to 10.7.7.7:80; original destination 10.96.0.10:443";
  EXPECT_EQ(dnat(-101, {End::destination, to("10.7.7.7"), PortRange{80, 80}, "dnat"}), other);
  EXPECT_THAT(dnat(-99, {End::destination, to("10.7.7.7"), PortRange{80, 80}, "dnat"}), HasSubstr("15001"));
  EXPECT_EQ(dnat(-99, {End::destination, to("10.7.7.7"), PortRange{80, 80}, "dnat"}, ""), other);
  EXPECT_EQ(dnat(-101, {End::destination, to("10.7.7.0/24"), {}, "dnat to 10.7.7.0/24"}),
            "unknown: which address the kernel chooses for `dnat to 10.7.7.0/24` of rule 1 of inet n out");
  EXPECT_EQ(dnat(-101, {End::destination, to("192.0.2.2"), PortRange{80, 80}, "dnat"}),
            "lands on 192.0.2.2:80; original destination 10.96.0.10:443");
}

TEST(Explain, SaysWhetherTheAnswersOfWhatLandsGetOut) {
  const auto end = [](std::vector<Match> matches, Target target, const char* packet) {
    return end_beside(others({base("inet f", "out", output, Verdict::accept, {{matches, target}})}), "-i * -b *",
                      packet);
  };
  const Match from_inbound = PortMatch{End::source, {{15006, 15006}}};
  const std::string lands = "lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80";
  EXPECT_EQ(end({from_inbound}, Verdict::drop, "in tcp :80"),
            lands + "; replies are lost: dropped: by rule 1 of inet f out");
  EXPECT_EQ(end({from_inbound, OwnerMatch{OwnerKind::uid, {{1337, 1337}}}}, Verdict::drop, "in tcp :80"),
            lands +
                "; unknown whether replies arrive: whether `-m owner --uid-owner 1337` of rule 1 of inet "
                "f out holds (if it does not: they arrive; if it does: dropped: by rule 1 of inet f out)");
  EXPECT_EQ(end({from_inbound}, Verdict::accept, "in tcp :80"), lands);
  // They go to the port that the packet came from.
  EXPECT_THAT(end({PortMatch{End::destination, {{5555, 5555}}}}, Verdict::drop, "in tcp :80 --from-port 5555"),
              HasSubstr("replies are lost"));
  EXPECT_EQ(end({PortMatch{End::destination, {{5555, 5555}}}}, Verdict::drop, "in tcp :80 --from-port 5556"), lands);
  // The source is that of the connection again after POSTROUTING's address translation, not before.
  EXPECT_THAT(end({PortMatch{End::source, {{15001, 15001}}}}, Verdict::drop, a_service), HasSubstr("replies are lost"));
  EXPECT_THAT(end({PortMatch{End::source, {{443, 443}}}}, Verdict::drop, a_service), Not(HasSubstr("replies")));
}

// Why something is not known counts where it is all that is known.
TEST(Outcome, IsEqualByWhatIsKnownOfIt) {
  const auto outcome = [](Outcome::Kind kind, const char* why, Outcome::Answers answers, const char* answers_why) {
    Outcome made;
    made.kind = kind;
    made.why = why;
    made.answers = answers;
    made.answers_why = answers_why;
    return made;
  };
  using Kind = Outcome::Kind;
  using Answers = Outcome::Answers;
  EXPECT_EQ(outcome(Kind::lands, "a", Answers::lost, "b"), outcome(Kind::lands, "c", Answers::lost, "d"));
  EXPECT_NE(outcome(Kind::lands, "a", Answers::lost, ""), outcome(Kind::leaves, "a", Answers::lost, ""));
  EXPECT_NE(outcome(Kind::lands, "", Answers::lost, "a"), outcome(Kind::lands, "", Answers::arrive, "a"));
  EXPECT_NE(outcome(Kind::unknown, "a", Answers::lost, ""), outcome(Kind::unknown, "b", Answers::lost, ""));
  EXPECT_NE(outcome(Kind::lands, "", Answers::unknown, "a"), outcome(Kind::lands, "", Answers::unknown, "b"));
  EXPECT_EQ(outcome(Kind::lands, "", Answers::unknown, "a"), outcome(Kind::lands, "", Answers::unknown, "a"));
}

TEST(Explain, DestinationsThatAreNoneOrMany) {
  const auto end = [](const char* packet) { return sentence(ask("-i *", packet, BackendKind::nftables).outcome); };
  EXPECT_EQ(end("out tcp 0.0.0.0:80"), "lands on 127.0.0.1:80 (the app), untouched");
  EXPECT_EQ(end("out tcp [::]:80"), "lands on [::1]:80 (the app), untouched");
  EXPECT_EQ(end("out tcp 224.0.0.1:80"), "never sent: no tcp connection to 224.0.0.1, a multicast address");
  EXPECT_EQ(end("out udp 192.0.2.255:53"),
            "unknown: which hosts receive what is sent to 192.0.2.255, a broadcast address");
  EXPECT_EQ(end("in udp 255.255.255.255:67"),
            "unknown: which hosts receive what is sent to 255.255.255.255, a broadcast address");
  EXPECT_EQ(end("in udp [ff02::1]:53"), "unknown: which hosts receive what is sent to ff02::1, a multicast address");
}

TEST(Explain, FollowsGoto) {
  const auto rule = [](const char* chain, std::vector<Match> matches, Target target) {
    return LiveRule{{Family::ipv4, Table::nat, chain, std::move(matches), std::move(target), {}, {}}, {}, false, 0};
  };
  Live live;
  live.chains = {{Family::ipv4,
                  Table::nat,
                  "OUTPUT",
                  false,
                  {rule("OUTPUT", {}, Jump{"MINE", true}), rule("OUTPUT", {}, Redirect{15001})},
                  Verdict::accept,
                  builtin_hook(Table::nat, "OUTPUT")},
                 {Family::ipv4, Table::nat, "MINE", false, {rule("MINE", {}, Verdict::return_)}}};
  const Live all[] = {live};
  const Trace trace = explain(packet_of("out tcp 10.96.0.10:443"), assumed_pod(planned("")), all);
  EXPECT_EQ(sentence(trace.outcome), "leaves the pod by eth0 to 10.96.0.10:443, untouched");
}

// The kernel walks all of them; where a chain has no effect once, it has none again.
TEST(Explain, ChainsThatJumpToEachOtherAreWalkedOnce) {
  const std::vector<Live> all{layered({{}, {}, {}, {}}, Verdict::return_)};
  const Trace trace = explain(packet_of("out tcp 10.96.0.10:443"), assumed_pod(planned("")), all);
  EXPECT_EQ(trace.outcome.kind, Outcome::Kind::leaves);
  EXPECT_THAT(trace.doubts, IsEmpty());
  EXPECT_LT(trace.steps.size(), 1000U);
}

// Legacy iptables has room for as many jumps as there are chains; nf_tables refuses more than 16.
TEST(Explain, FollowsJumpsAsDeepAsTheKernelDoes) {
  for (const int depth : {40, 2000}) {
    Live live;
    live.backend = BackendKind::iptables_legacy;
    live.chains.push_back(chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{}, Jump{"C0"}}}));
    for (int i = 0; i < depth; ++i) {
      const Target target = i + 1 < depth ? Target(Jump{"C" + std::to_string(i + 1)}) : Target(Redirect{9999});
      live.chains.push_back(chain(Family::ipv4, Table::nat, ("C" + std::to_string(i)).c_str(), false, {{{}, target}}));
    }
    const Trace trace =
        explain(packet_of("out tcp 10.96.0.10:443"), assumed_pod(planned("")), std::vector<Live>{std::move(live)});
    EXPECT_EQ(trace.outcome.kind, depth == 40 ? Outcome::Kind::lands : Outcome::Kind::unknown);
    if (depth > 40) {
      EXPECT_THAT(sentence(trace.outcome), HasSubstr("jumps nested deeper than 1000 are not followed"));
    }
  }
}

TEST(Explain, SaysIfThereAreTooManyWays) {
  std::vector<Live> all{layered({{}, {}, {}, {}}, SetMark{0})};
  std::uint32_t mark = 0;
  for (LiveChain& each : all.front().chains) {  // each way gives the packet another mark
    const LiveRule last = each.rules.back();
    std::vector<LiveRule> rules;
    for (const LiveRule& rule : each.rules) {
      rules.push_back(last);
      rules.back().rule.target = SetMark{++mark};
      rules.push_back(rule);
    }
    each.rules = rules;
  }
  // What makes the kernel track connections: without, no chain of type nat is asked.
  all.front().chains.push_back(chain(Family::ipv4, Table::filter, "unused", false,
                                     {{{ConntrackStateMatch{ConntrackStateMatch::new_}}, NonTerminating{}}}));
  const Trace trace = explain(packet_of("out tcp 10.96.0.10:443"), assumed_pod(planned("")), all);
  EXPECT_EQ(trace.outcome.kind, Outcome::Kind::unknown);
  EXPECT_THAT(sentence(trace.outcome), HasSubstr("too many paths to follow them all"));
}

TEST(Explain, NamesArePrintable) {
  std::vector<Live> all{layered({{}, {}, {}, {}}, NonTerminating{"-j LOG --log-prefix \"\x1b[2J\""})};
  for (LiveChain& each : all.front().chains) {
    for (LiveRule& entry : each.rules) {
      if (auto* jump = std::get_if<Jump>(&entry.rule.target)) jump->chain += "\x1b]0;\n\xff";
    }
    if (each.name != "OUTPUT") each.name += "\x1b]0;\n\xff";
  }
  PodView pod = assumed_pod(planned(""));
  for (Route& route : pod.routes) route.device = "e\x9b\x1b";
  for (Interface& interface : pod.interfaces) {
    if (interface.name == "eth0") interface.name = "e\x9b\x1b";
  }
  const Trace trace = explain(packet_of("out tcp 10.96.0.10:443"), pod, all);
  const std::string shown = trace_text(trace, {});
  EXPECT_EQ(shown, printable_lines(shown));
  EXPECT_THAT(shown, HasSubstr(R"(nat L0-0\x1b]0;\x0a\xff)"));
  EXPECT_THAT(sentence(trace.outcome), HasSubstr(R"(leaves the pod by e\x9b\x1b)"));
  EXPECT_NO_THROW(static_cast<void>(json(trace)));
}

TEST(Explain, IsReadable) {
  const Trace trace =
      ask("-i * -x 10.0.0.0/8 --ip-families ipv4", "out tcp 172.16.0.1:443 --uid 1000", BackendKind::iptables_legacy);
  EXPECT_EQ("\n" + trace_text(trace, {}), R"(
tcp from 192.0.2.2 to 172.16.0.1:443, sent by uid 1000 gid 1000, the first packet of a connection

OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT
      1  -j ISTIO_OUTPUT                                yes: on to ISTIO_OUTPUT: outbound traffic is checked
    nat ISTIO_OUTPUT
        1  -o lo -s 127.0.0.6/32 -j RETURN              no: it goes out by eth0
        2  -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT  no: it goes out by eth0
        3  -o lo -m owner ! --uid-owner 1337 -j RETURN  no: it goes out by eth0
        4  -m owner --uid-owner 1337 -j RETURN          no: its uid is 1000
        5  -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT  no: it goes out by eth0
        6  -o lo -m owner ! --gid-owner 1337 -j RETURN  no: it goes out by eth0
        7  -m owner --gid-owner 1337 -j RETURN          no: its gid is 1000
        8  -d 127.0.0.1/32 -j RETURN                    no: its destination is 172.16.0.1
        9  -d 10.0.0.0/8 -j RETURN                      no: its destination is 172.16.0.1
       10  -j ISTIO_REDIRECT                            yes: on to ISTIO_REDIRECT: all other outbound TCP goes to the proxy (-i '*')
      nat ISTIO_REDIRECT
          1  -p tcp -j REDIRECT --to-ports 15001        yes: redirected to 127.0.0.1:15001: to the proxy's outbound listener, port 15001 (-p 15001)
  routing again, as the destination changed: out by lo: the destination is the pod itself
PREROUTING, in by lo
  conntrack: tracked already, in OUTPUT

lands on 127.0.0.1:15001 (Envoy outbound); original destination 172.16.0.1:443
  by nat ISTIO_OUTPUT 10   all other outbound TCP goes to the proxy (-i '*')
  by nat ISTIO_REDIRECT 1  to the proxy's outbound listener, port 15001 (-p 15001)
)");
}

// The kernel prefers any address to one that is deprecated, but nobody has a route to ::6.
TEST(Explain, RepliesToTheAddressOfTheProxyOnLoAreUnknown) {
  const Plan plan = planned(injected);
  PodView pod = assumed_pod(plan);
  const Live live = as_live(plan.ruleset, BackendKind::nftables);
  const auto answers = [&](const char* packet) { return explain(packet_of(packet), pod, {&live, 1}).outcome.answers; };
  const char* by_kernel = "out udp [2001:db8:ffff::1]:53 --uid 1337";
  EXPECT_EQ(answers(by_kernel), Outcome::Answers::arrive);
  for (Interface& interface : pod.interfaces) {
    for (InterfaceAddress& own : interface.addresses) own.deprecated = interface.name != "lo";
  }
  pod.interface("lo")->addresses.push_back({*Address::parse("::6"), 128});
  EXPECT_EQ(answers(by_kernel), Outcome::Answers::unknown);
  EXPECT_EQ(answers("out udp [2001:db8:ffff::1]:53 --uid 1337 --from 2001:db8::2"), Outcome::Answers::arrive);
}

// The longest prefix counts: 127.0.0.1 itself, then a route of others, then 127.0.0.0/8.
TEST(Explain, RoutesToPartsOfLoopback) {
  const Plan plan = planned(injected);
  PodView pod = assumed_pod(plan);
  const Live live = as_live(plan.ruleset, BackendKind::nftables);
  pod.routes.push_back({*AddressRange::parse("127.0.0.0/9"), "eth0", Route::Kind::unicast, local_table});
  const auto outcome = [&](const char* packet) { return explain(packet_of(packet), pod, {&live, 1}).outcome; };
  const char* captured = "out tcp 198.51.100.1:80 --uid 1000";
  const char* to_rest = "lo tcp 127.128.0.1:80 --uid 1000";
  EXPECT_EQ(outcome(captured).kind, Outcome::Kind::lands);
  EXPECT_EQ(outcome(to_rest).kind, Outcome::Kind::lands);
  EXPECT_EQ(outcome("out tcp 127.0.0.7:80 --uid 1337").kind, Outcome::Kind::leaves);
  pod.interface("lo")->addresses.front().is_local = false;
  EXPECT_EQ(outcome(captured).kind, Outcome::Kind::leaves);
  EXPECT_EQ(outcome(to_rest).kind, Outcome::Kind::lands);
}

TEST(Explain, LongRunsOfPassedRulesAreOneLine) {
  std::string ranges;
  for (int i = 0; i < 200; ++i) ranges += "10." + std::to_string(i) + ".0.0/24,";
  const Trace trace = ask("-i * -x " + ranges, "out tcp 172.16.0.1:443", BackendKind::iptables_legacy);
  EXPECT_THAT(trace_text(trace, {}), HasSubstr("8-208  201 rules"));
  EXPECT_THAT(trace_text(trace, {.color = false, .all = true}), HasSubstr("-d 10.123.0.0/24 -j RETURN"));
}

TEST(Explain, AsJson) {
  const std::string text = json(ask(injected, "out tcp 10.96.0.10:443", BackendKind::iptables_legacy));
  EXPECT_THAT(text, HasSubstr(R"("original_destination": {)"));
  EXPECT_THAT(text, HasSubstr(R"x("sentence": "lands on 127.0.0.1:15001 (Envoy outbound); original)x"));
  EXPECT_THAT(text, HasSubstr(R"("text": "its uid is 0")"));
  EXPECT_THAT(text, HasSubstr(R"("flag": "-i *")"));
}

// A rule that may match, and lets the first packet through, has not dropped it: that no neighbour is found does.
TEST(Explain, LaterPacketsOfAFirstOneThatFindsNoNeighbour) {
  Live live = rules_of_others(
      BackendKind::iptables_legacy, Family::ipv6,
      {"nat -A POSTROUTING -m set --match-set foo src -j RETURN",
       "nat -A POSTROUTING -p ipv6-icmp -m conntrack --ctstate ESTABLISHED -j ACCEPT", "filter -A OUTPUT -j DROP"});
  const Trace trace = explain(packet_of("in icmp 2001:db8:ffff::1 --in-interface eth0 --state established"),
                              assumed_pod(planned("")), {&live, 1});
  EXPECT_TRUE(sentence(trace.outcome).starts_with("is not for this pod: goes on by eth0")) << sentence(trace.outcome);
}

}  // namespace
}  // namespace sidetrack
