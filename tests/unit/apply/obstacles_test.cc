// SPDX-License-Identifier: GPL-2.0-or-later
// What of others is in the way of a plan, and a packet that shows it.
#include "apply/obstacles.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernel/survey.h"
#include "rule/iptables.h"
#include "text/read_rule.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using Edit = std::function<void(PodView&)>;

struct Others {
  Table table;
  const char* rule;
  Family family = Family::ipv4;
};

std::string found(const char* options, const std::vector<Others>& others, const Edit& edit = nullptr) {
  const Plan plan = planned(options);
  std::vector<Live> live{as_live(plan.ruleset, BackendKind::iptables_nft)};
  for (const Others& one : others) add_first(live, one.family, one.table, one.rule);
  PodView pod = assumed_pod(plan);
  if (edit) edit(pod);
  std::string all;
  for (const Obstacle& obstacle : obstacles(plan, BackendKind::iptables_nft, pod, live)) {
    if (!obstacle.is_unknown()) {
      EXPECT_EQ(sentence(explain(packet_of(obstacle.packet), pod, live).outcome), obstacle.instead) << text(obstacle);
    }
    all += text(obstacle) + "\n";
  }
  return all;
}

constexpr const char* usual = "-i * -b * -d 15090 -x 10.99.0.0/16 --ip-families ipv4";

TEST(Obstacles, NothingIsInTheWayOfWhatStandsAlone) {
  EXPECT_EQ(found(usual, {}), "");
  EXPECT_EQ(found("-m TPROXY -i * -b * --redirect-dns --capture-all-dns", {}), "");
}

TEST(Obstacles, IsNoTranslationToWhereAPacketGoesAnyway) {
  EXPECT_EQ(found("-m TPROXY -i * -b * -d 15021 --ip-families ipv4",
                  {{Table::nat, "-A PREROUTING -p tcp --dport 8080 -j REDIRECT --to-ports 8080"}}),
            "");
}

// The rules about what the pod asks are not met by what others ask it, but by what it asks from that port.
TEST(Obstacles, AreNotForPacketsThatNoOptionCaptures) {
  constexpr const char* dns = "-i * -b * --redirect-dns --dns-server 10.96.0.10 --ip-families ipv4";
  EXPECT_EQ(found(dns, {{Table::filter, "-A INPUT -p udp --dport 53 -j DROP"}}), "");
  const std::string by_source = found(dns, {{Table::filter, "-A OUTPUT -p udp --sport 53 -j DROP"}});
  EXPECT_EQ(std::ranges::count(by_source, '\n'), 1) << by_source;
  EXPECT_NE(by_source.find("`out udp 10.96.0.10:53 --from-port 53"), std::string::npos) << by_source;
}

TEST(Obstacles, AreRulesOfOthersThatDecideOtherwise) {
  std::string all = "\n";
  for (const Others& one : std::initializer_list<Others>{
           {Table::filter, "-A OUTPUT -p tcp -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp --dport 443 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp --dport 15001 -j REJECT --reject-with tcp-reset"},
           {Table::filter, "-A OUTPUT -p tcp ! --dport 80 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp ! --dport 443 -j DROP"},
           {Table::filter, "-A OUTPUT -d 203.0.113.7/32 -p tcp -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp -m owner --uid-owner 7 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp -m owner --gid-owner 8 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp -m mark --mark 5 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp ! --dport 80 -m owner --uid-owner 7 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp ! --dport 70:90 -m owner --uid-owner 7 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp ! --dport 443 -m owner --uid-owner 7 -j DROP"},
           {Table::mangle, "-A OUTPUT -p tcp --dport 0:79 -j DROP"},
           {Table::mangle, "-A OUTPUT -p tcp ! --dport 80:65535 -j DROP"},
           {Table::filter, "-A OUTPUT -p udp -j DROP"},
           {Table::filter, "-A INPUT -p tcp --dport 15006 -j DROP"},
           {Table::filter, "-A INPUT -p tcp --dport 9999 -j DROP"},
           {Table::filter, "-A INPUT -s 198.51.100.9/32 -p tcp -j DROP"},
           {Table::filter, "-A INPUT -p tcp --sport 443 -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp -m conntrack --ctstate ESTABLISHED -j DROP"},
           {Table::filter, "-A OUTPUT -p tcp -j ACCEPT"},
           {Table::filter, "-A OUTPUT -p tcp -m bpf --bytecode x -j DROP"},
           {Table::nat, "-A OUTPUT -p tcp --dport 8080 -j RETURN"},
           {Table::nat, "-A OUTPUT -p tcp --dport 8080 -j REDIRECT --to-ports 9000"},
           {Table::nat, "-A PREROUTING -p tcp --dport 8080 -j ACCEPT"},
           {Table::mangle, "-A OUTPUT -p tcp -j DROP"},
           {Table::raw, "-A PREROUTING -p tcp -j DROP"},
       })
    all += fmt::format("# {} {}\n{}", name(one.table), one.rule, found(usual, {one}));
  EXPECT_EQ(all, R"(
# filter -A OUTPUT -p tcp -j DROP
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: dropped: by rule 1 of filter OUTPUT: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: dropped: by rule 1 of filter OUTPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# filter -A OUTPUT -p tcp --dport 443 -j DROP
# filter -A OUTPUT -p tcp --dport 15001 -j REJECT --reject-with tcp-reset
rule 1 of filter OUTPUT: -A OUTPUT -p tcp --dport 15001 -j REJECT --reject-with tcp-reset: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: by rule 1 of filter OUTPUT (REJECT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp ! --dport 80 -j DROP
rule 1 of filter OUTPUT: -A OUTPUT -p tcp ! --dport 80 -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: dropped: by rule 1 of filter OUTPUT: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: dropped: by rule 1 of filter OUTPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# filter -A OUTPUT -p tcp ! --dport 443 -j DROP
rule 1 of filter OUTPUT: -A OUTPUT -p tcp ! --dport 443 -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: dropped: by rule 1 of filter OUTPUT: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: dropped: by rule 1 of filter OUTPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# filter -A OUTPUT -d 203.0.113.7/32 -p tcp -j DROP
return path: dropped: by rule 1 of filter OUTPUT: `in tcp 192.0.2.2:80 --from 203.0.113.7` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: dropped: by rule 1 of filter OUTPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# filter -A OUTPUT -p tcp -m owner --uid-owner 7 -j DROP
return path: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT): `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; unknown whether replies arrive: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -m owner --uid-owner 7 -j DROP: `out tcp 198.51.100.1:80 --uid 7 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp -m owner --gid-owner 8 -j DROP
return path: whether `-m owner --gid-owner 8` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT): `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; unknown whether replies arrive: whether `-m owner --gid-owner 8` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -m owner --gid-owner 8 -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 8` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp -m mark --mark 5 -j DROP
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -m mark --mark 5 -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000 --mark 5` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp ! --dport 80 -m owner --uid-owner 7 -j DROP
return path: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT): `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; unknown whether replies arrive: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
rule 1 of filter OUTPUT: -A OUTPUT -p tcp ! --dport 80 -m owner --uid-owner 7 -j DROP: `out tcp 198.51.100.1:80 --uid 7 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp ! --dport 70:90 -m owner --uid-owner 7 -j DROP
return path: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT): `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; unknown whether replies arrive: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
rule 1 of filter OUTPUT: -A OUTPUT -p tcp ! --dport 70:90 -m owner --uid-owner 7 -j DROP: `out tcp 198.51.100.1:80 --uid 7 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp ! --dport 443 -m owner --uid-owner 7 -j DROP
return path: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT): `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; unknown whether replies arrive: whether `-m owner --uid-owner 7` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
rule 1 of filter OUTPUT: -A OUTPUT -p tcp ! --dport 443 -m owner --uid-owner 7 -j DROP: `out tcp 198.51.100.1:80 --uid 7 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# mangle -A OUTPUT -p tcp --dport 0:79 -j DROP
rule 1 of mangle OUTPUT: -A OUTPUT -p tcp --dport 0:79 -j DROP: `out tcp 198.51.100.1:1 --uid 1000 --gid 1000` dropped: by rule 1 of mangle OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:1
# mangle -A OUTPUT -p tcp ! --dport 80:65535 -j DROP
rule 1 of mangle OUTPUT: -A OUTPUT -p tcp ! --dport 80:65535 -j DROP: `out tcp 198.51.100.1:1 --uid 1000 --gid 1000` dropped: by rule 1 of mangle OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:1
# filter -A OUTPUT -p udp -j DROP
# filter -A INPUT -p tcp --dport 15006 -j DROP
rule 1 of filter INPUT: -A INPUT -p tcp --dport 15006 -j DROP: `in tcp 192.0.2.2:80 --from 203.0.113.1` dropped: by rule 1 of filter INPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# filter -A INPUT -p tcp --dport 9999 -j DROP
# filter -A INPUT -s 198.51.100.9/32 -p tcp -j DROP
return path: dropped: by rule 1 of filter INPUT: `out tcp 198.51.100.9:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.9:80; replies are lost: dropped: by rule 1 of filter INPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.9:80
rule 1 of filter INPUT: -A INPUT -s 198.51.100.9/32 -p tcp -j DROP: `in tcp 192.0.2.2:80 --from 198.51.100.9` dropped: by rule 1 of filter INPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# filter -A INPUT -p tcp --sport 443 -j DROP
rule 1 of filter INPUT: -A INPUT -p tcp --sport 443 -j DROP: `out tcp 198.51.100.1:80 --from-port 443 --uid 1000 --gid 1000` dropped: by rule 1 of filter INPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: dropped: by rule 1 of filter INPUT: `out tcp 198.51.100.1:443 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:443; replies are lost: dropped: by rule 1 of filter INPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:443
# filter -A OUTPUT -p tcp -m conntrack --ctstate ESTABLISHED -j DROP
return path: dropped: by rule 1 of filter OUTPUT: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; replies are lost: dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -m conntrack --ctstate ESTABLISHED -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000 --state established` dropped: by rule 1 of filter OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# filter -A OUTPUT -p tcp -j ACCEPT
# filter -A OUTPUT -p tcp -m bpf --bytecode x -j DROP
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -m bpf --bytecode x -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` unknown: whether `-m bpf --bytecode x` of rule 1 of filter OUTPUT holds (if it does not: lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: whether `-m bpf --bytecode x` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT): `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; unknown whether replies arrive: whether `-m bpf --bytecode x` of rule 1 of filter OUTPUT holds (if it does not: they arrive; if it does: dropped: by rule 1 of filter OUTPUT); as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# nat -A OUTPUT -p tcp --dport 8080 -j RETURN
rule 1 of nat OUTPUT: -A OUTPUT -p tcp --dport 8080 -j RETURN: `out tcp 198.51.100.1:8080 --uid 1000 --gid 1000` leaves the pod by eth0 to 198.51.100.1:8080, untouched; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:8080
# nat -A OUTPUT -p tcp --dport 8080 -j REDIRECT --to-ports 9000
rule 1 of nat OUTPUT: -A OUTPUT -p tcp --dport 8080 -j REDIRECT --to-ports 9000: `out tcp 198.51.100.1:8080 --uid 1000 --gid 1000` lands on 127.0.0.1:9000; original destination 198.51.100.1:8080; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:8080
# nat -A PREROUTING -p tcp --dport 8080 -j ACCEPT
rule 1 of nat PREROUTING: -A PREROUTING -p tcp --dport 8080 -j ACCEPT: `in tcp 192.0.2.2:8080 --from 203.0.113.1` lands on 192.0.2.2:8080 (the app), untouched; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:8080
# mangle -A OUTPUT -p tcp -j DROP
rule 1 of mangle OUTPUT: -A OUTPUT -p tcp -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: by rule 1 of mangle OUTPUT; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: dropped: by rule 1 of mangle OUTPUT: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: dropped: by rule 1 of mangle OUTPUT; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# raw -A PREROUTING -p tcp -j DROP
rule 1 of raw PREROUTING: -A PREROUTING -p tcp -j DROP: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: by rule 1 of raw PREROUTING; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
)");
}

// A rule of the plan for the answers of a name server is about packets that come in: nothing here has that source.
TEST(Obstacles, AreNotPacketsThatNobodySends) {
  const Plan plan = planned("-i * -b * --redirect-dns --dns-server 10.96.0.10 --ip-families ipv4");
  const std::vector<Live> live{
      as_live(plan.ruleset, BackendKind::iptables_nft),
      rules_of_others(BackendKind::iptables_legacy, Family::ipv4, {"nat -A POSTROUTING -o eth0 -j MASQUERADE"})};
  for (const Obstacle& one : obstacles(plan, BackendKind::iptables_nft, assumed_pod(plan), live))
    ADD_FAILURE() << text(one);
}

// Nor a broadcast address as the source.
TEST(Obstacles, AreNotPacketsFromABroadcastAddress) {
  for (const char* rule : {"-A INPUT -m addrtype --dst-type BROADCAST -j DROP",
                           "-A INPUT -m addrtype --src-type BROADCAST -j DROP", "-A OUTPUT -s 127.255.255.255 -j DROP"})
    EXPECT_EQ(found(usual, {{Table::filter, rule}}), "");
}

// What hosts behind the pod send to others, as containers in it do.
TEST(Obstacles, AreRulesForWhatIsForwarded) {
  const Edit with_containers = [](PodView& pod) {
    pod.interface("net1")->addresses = {{*Address::parse("172.17.0.1"), 16}};
    std::erase_if(pod.routes, [](const Route& route) { return route.device == "net1"; });
    pod.routes.push_back({*AddressRange::parse("172.17.0.0/16"), "net1"});
  };
  const std::string options = std::string(usual) + " -k net1";
  EXPECT_EQ(found(options.c_str(), {}, with_containers), "");
  EXPECT_EQ(
      found(options.c_str(), {{Table::raw, "-A PREROUTING -d 203.0.113.0/24 -i net1 -p tcp -j DROP"}}, with_containers),
      "rule 1 of raw PREROUTING: -A PREROUTING -d 203.0.113.0/24 -i net1 -p tcp -j DROP: `in tcp 203.0.113.1:80 "
      "--from 172.17.0.3 --in-interface net1` dropped: by rule 1 of raw PREROUTING; as requested it lands on "
      "172.17.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80\n");
}

// By a route to the server as an address of the pod, queries that are marked get replies that they lack as planned.
TEST(Obstacles, AreNotRepliesThatArrive) {
  const std::string all = found("-m TPROXY -i * -b * --redirect-dns --dns-server 10.96.0.10", {}, [](PodView& pod) {
    Route local{*AddressRange::parse("10.0.0.0/8"), "lo"};
    local.kind = Route::Kind::local;
    local.table = local_table;
    pod.routes.push_back(local);
  });
  EXPECT_NE(all, "");
  EXPECT_EQ(all.find("return path: :"), std::string::npos) << all;
}

TEST(Obstacles, AreFoundByHostsThatThePodHasARouteTo) {
  const auto connected = [](const char* own, const char* network) {
    return [own, network](PodView& pod) {
      const Address address = *Address::parse(own);
      const AddressRange range = *AddressRange::parse(network);
      std::erase_if(pod.interface("eth0")->addresses,
                    [&](const InterfaceAddress& each) { return each.address.family == address.family; });
      pod.interface("eth0")->addresses.push_back({address, *range.prefix_length()});
      std::erase_if(pod.routes, [&](const Route& route) { return route.to.family() == address.family; });
      pod.routes.push_back({range, "eth0"});
    };
  };
  constexpr const char* both = "-i * -b * --ip-families ipv4,ipv6";
  const char* all = "-A OUTPUT -j RETURN";
  EXPECT_EQ(found(both, {{Table::nat, all, Family::ipv6}}, connected("fd00::5", "fd00::/64")),
            "rule 1 of nat OUTPUT: -A OUTPUT -j RETURN: `out tcp [fd00::6]:80 --uid 1000 --gid 1000` "
            "leaves the pod by eth0 to [fd00::6]:80, untouched; as requested it lands on [::1]:15001 (Envoy "
            "outbound); original destination [fd00::6]:80\n");
  EXPECT_EQ(found(both, {{Table::nat, all, Family::ipv4}}, connected("10.1.0.1", "10.1.0.0/24")),
            "rule 1 of nat OUTPUT: -A OUTPUT -j RETURN: `out tcp 10.1.0.2:80 --uid 1000 --gid 1000` leaves the pod "
            "by eth0 to 10.1.0.2:80, untouched; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original "
            "destination 10.1.0.2:80\n");
}

TEST(Obstacles, OfTheOtherFamilyAreAskedAboutThere) {
  constexpr const char* both = "-i * -b * --ip-families ipv4,ipv6";
  EXPECT_EQ("\n" + found(both, {{Table::filter, "-A OUTPUT -p tcp -j DROP", Family::ipv6}}), R"(
rule 1 of filter OUTPUT: -A OUTPUT -p tcp -j DROP: `out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000` dropped: by rule 1 of filter OUTPUT; as requested it lands on [::1]:15001 (Envoy outbound); original destination [2001:db8:ffff::1]:80
return path: dropped: by rule 1 of filter OUTPUT: `in tcp [2001:db8::2]:80 --from 2001:db8:ffff::1` lands on [2001:db8::2]:15006 (Envoy inbound); original destination [2001:db8::2]:80; replies are lost: dropped: by rule 1 of filter OUTPUT; as requested it lands on [2001:db8::2]:15006 (Envoy inbound); original destination [2001:db8::2]:80
)");
  EXPECT_EQ(found(usual, {{Table::filter, "-A OUTPUT -p tcp -j DROP", Family::ipv6}}), "");
}

// What is translated to where it was sent is not lost.
TEST(Obstacles, AreNoTranslationsThatChangeNothing) {
  EXPECT_EQ(found(usual, {{Table::nat, "-A PREROUTING -p tcp --dport 15008 -j REDIRECT"}}), "");
}

// The last packet of a connection is of it, too, with what it carries.
TEST(Obstacles, AreRulesOfThePacketThatEndsAConnection) {
  for (const char* flags : {"FIN FIN", "FIN,RST FIN", "SYN,FIN FIN"}) {
    const std::string rule = fmt::format("-A OUTPUT -p tcp --tcp-flags {} -j DROP", flags);
    EXPECT_NE(found(usual, {{Table::filter, rule.c_str()}}), "") << rule;
  }
  for (const char* flags :
       {"RST RST", "FIN,RST FIN,RST", "SYN,FIN SYN,FIN", "ACK,FIN FIN", "ALL NONE", "ALL FIN,PSH,URG"}) {
    const std::string rule = fmt::format("-A INPUT -p tcp --tcp-flags {} -j DROP", flags);
    EXPECT_EQ(found(usual, {{Table::filter, rule.c_str()}}), "") << rule;
  }
}

TEST(Obstacles, AreAllOfHundreds) {
  std::vector<std::string> rules;
  for (int i = 0; i < 300; ++i)
    rules.push_back(
        fmt::format("-A OUTPUT -d 10.1.{}.{}/32 -p tcp --dport {} -j ACCEPT", i / 200, 1 + i % 200, 1000 + i));
  std::vector<Others> others;
  for (const std::string& rule : rules) others.push_back({Table::nat, rule.c_str()});
  const std::string all = found(usual, others);
  EXPECT_EQ(std::ranges::count(all, '\n'), 300) << all;
}

TEST(Obstacles, ThatAreTooManyAreSaid) {
  const Plan plan = planned(usual);
  std::vector<Live> live{as_live(plan.ruleset, BackendKind::iptables_nft)};
  LiveChain many = chain(Family::ipv4, Table::raw, "OUTPUT", false, {});
  const auto add = [&](const std::string& words) {
    many.rules.push_back({read_rule("-A OUTPUT " + words), {}, false, 0});
    many.rules.back().rule.families = Family::ipv4;
  };
  // A rule of nf_tables that asks for what it changed itself: all of the chain are asked one by one.
  add("-j MARK --set-mark 1");
  add("-d 10.9.9.9/32 -m mark --mark 1 -j DROP");
  many.rules.front().handle = many.rules.back().handle = 1;
  for (unsigned port = 1; port <= 2000; ++port)
    add(fmt::format("-d 10.0.{}.{}/32 -p tcp --dport {} -j DROP", port / 250, port % 250, port));
  live.front().chains.push_back(many);
  const auto all = obstacles(plan, BackendKind::iptables_nft, assumed_pod(plan), live);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all.front().is_unknown());
  EXPECT_EQ(
      text(all.front()),
      "rules and routes of other programs: too many to follow every packet that is captured: unknown whether they "
      "keep traffic from the proxy");
}

// Of more marks than are told apart it is not known which packets have them.
TEST(Obstacles, ByManyMarksAreSaid) {
  const struct {
    std::string of_bit;  // a rule for each bit
    Table table;
    std::vector<Others> more;
  } cases[] = {
      {"-A INPUT -p tcp --dport 22 -m mark --mark {0}/{0} -j DROP",
       Table::filter,
       {{Table::nat, "-A OUTPUT -m mark --mark 0x10000/0x10000 -j RETURN"},
        {Table::mangle, "-A OUTPUT -p tcp --dport 443 -j MARK --set-xmark 0x10000/0x10000"}}},
      {"-A INPUT -p tcp --dport 22 -m mark --mark {0}/{0} -j DROP",
       Table::filter,
       {{Table::filter, "-A INPUT -m mark --mark 0x20000/0x20000 -j DROP"},
        {Table::raw, "-A PREROUTING -p tcp --dport 443 -j MARK --set-xmark 0x20000/0x20000"}}},
      {"-A OUTPUT -m mark --mark {0}/{0} -j DROP", Table::filter, {}},
      {"-A OUTPUT -p tcp --dport 443 -j MARK --set-xmark {0}/{0}",
       Table::mangle,
       {{Table::filter, "-A INPUT -m mark --mark 0x3ffff -j DROP"}}},
  };
  for (const auto& [of_bit, table, more] : cases) {
    std::vector<std::string> rules;
    for (unsigned bit = 0; bit < 18; ++bit) rules.push_back(fmt::format(fmt::runtime(of_bit), 1U << bit));
    for (const std::size_t count : {std::size_t{3}, rules.size()}) {
      std::vector<Others> others = more;
      for (std::size_t i = 0; i < count; ++i) others.push_back({table, rules[i].c_str()});
      const std::string all = found("-i * -b * --ip-families ipv4", others);
      SCOPED_TRACE(fmt::format("{} times {}: {}", count, of_bit, all));
      EXPECT_FALSE(all.empty());
    }
  }
}

TEST(Obstacles, ArePartsOfThePod) {
  std::string all = "\n";
  const auto add_line = [&](const char* what, const char* options, const Edit& edit) {
    all += fmt::format("# {}\n{}", what, found(options, {}, edit));
  };
  const auto route = [](const char* to, const char* device, Route::Kind kind, std::uint32_t table) {
    return Route{*AddressRange::parse(to), device, kind, table};
  };
  using Kind = Route::Kind;
  constexpr const char* tproxy = "-m TPROXY -i * -b * --ip-families ipv4";
  add_line("lo is down", usual, [](PodView& pod) { pod.interface("lo")->up = false; });
  add_line("lo has no address", usual, [](PodView& pod) { pod.interface("lo")->addresses.clear(); });
  add_line("a blackhole", usual, [&](PodView& pod) {
    pod.routes.insert(pod.routes.begin(), route("203.0.113.0/24", "", Kind::blackhole, main_table));
  });
  add_line("a local route", usual, [&](PodView& pod) {
    pod.routes.insert(pod.routes.begin(), route("203.0.113.0/24", "lo", Kind::local, main_table));
  });
  add_line("an address of loopback goes elsewhere", usual, [&](PodView& pod) {
    pod.routes.insert(pod.routes.begin(), route("127.0.0.1/32", "", Kind::blackhole, local_table));
  });
  add_line("an earlier policy rule takes what is marked", tproxy, [](PodView& pod) {
    PolicyRule rule;
    rule.priority = 1;
    rule.table = main_table;
    rule.mark = 1337;
    rule.mask = 0xffffffff;
    pod.rules.insert(pod.rules.begin() + 1, rule);
  });
  add_line("one that takes a network", tproxy, [](PodView& pod) {
    PolicyRule rule;
    rule.priority = 1;
    rule.action = PolicyRule::Action::unreachable;
    rule.to = AddressRange::parse("203.0.113.0/24");
    pod.rules.insert(pod.rules.begin() + 1, rule);
  });
  const auto refusing = [](PolicyRule::Action action, const char* more) {
    return [action, more](PodView& pod) {
      PolicyRule rule;
      rule.priority = 1000;
      rule.action = action;
      if (*more == '\0') rule.to = AddressRange::parse("203.0.113.0/24");
      rule.more = more;
      pod.rules.insert(pod.rules.begin() + 1, rule);
    };
  };
  add_line("one that refuses a network", usual, refusing(PolicyRule::Action::blackhole, ""));
  const auto of_addresses = [](const char* from, const char* to, bool inverted) {
    return [from, to, inverted](PodView& pod) {
      PolicyRule rule;
      rule.priority = 1000;
      rule.action = PolicyRule::Action::blackhole;
      rule.from = AddressRange::parse(from);
      rule.to = AddressRange::parse(to);
      rule.inverted = inverted;
      pod.rules.insert(pod.rules.begin() + 1, rule);
    };
  };
  add_line("of some addresses", usual, of_addresses("192.0.2.2", "203.0.113.0/24", false));
  add_line("of all others", usual, of_addresses("10.0.0.0/8", "192.0.2.0/24", true));
  add_line("one that refuses who knows what", usual, refusing(PolicyRule::Action::prohibit, "uidrange 1000-1000"));
  add_line("one that goes elsewhere", usual, refusing(PolicyRule::Action::unknown, ""));
  add_line("one that refuses what others mark", usual, [](PodView& pod) {
    PolicyRule rule;
    rule.priority = 1000;
    rule.action = PolicyRule::Action::unreachable;
    rule.mark = 7;
    rule.mask = 0xffffffff;
    pod.rules.insert(pod.rules.begin() + 1, rule);
  });
  const auto without_table_local = [](Family family) {
    return [family](PodView& pod) {
      std::erase_if(pod.rules, [&](const PolicyRule& rule) { return rule.family == family && rule.priority == 0; });
    };
  };
  add_line("table local is not looked up", usual, without_table_local(Family::ipv4));
  add_line("of a family that is not captured", usual, without_table_local(Family::ipv6));
  add_line("the pod's address is not local", usual,
           [](PodView& pod) { pod.interface("eth0")->addresses.front().is_local = false; });
  const Edit sources_by_mark = [](PodView& pod) {
    for (Interface& interface : pod.interfaces) interface.src_valid_mark = true;
  };
  add_line("sources are looked up by mark", tproxy, sources_by_mark);
  add_line("of one interface", tproxy, [](PodView& pod) { pod.interface("eth0")->src_valid_mark = true; });
  add_line("but nothing is marked", usual, sources_by_mark);
  const Edit tcp_fwmark_accept = [](PodView& pod) { pod.tcp_fwmark_accept = true; };
  add_line("connections are accepted with the mark", tproxy, tcp_fwmark_accept);
  add_line("connections without one, too", usual, tcp_fwmark_accept);
  add_line("a route beside ours", tproxy, [&](PodView& pod) {
    pod.routes.insert(pod.routes.begin(), route("203.0.113.0/24", "eth0", Kind::unicast, 133));
  });
  add_line("an unknown one", tproxy, [&](PodView& pod) {
    pod.routes.insert(pod.routes.begin(), route("203.0.113.0/24", "eth0", Kind::unknown, 133));
  });
  EXPECT_EQ(all, R"(
# lo is down
interface lo is down: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: interface lo is down; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# lo has no address
lo has no address 127.0.0.1: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` leaves the pod by eth0 to 127.0.0.1:15001; original destination 198.51.100.1:80; replies are lost: no host takes what comes from outside to 127.0.0.1; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# a blackhole
ip route blackhole 203.0.113.0/24 table main: `out tcp 203.0.113.1:80 --uid 1000 --gid 1000` never sent: no route to 203.0.113.1 (ip route blackhole 203.0.113.0/24 table main); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80
return path: never sent: no route to 203.0.113.1 (ip route blackhole 203.0.113.0/24 table main): `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: never sent: no route to 203.0.113.1 (ip route blackhole 203.0.113.0/24 table main); as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# a local route
ip route local 203.0.113.0/24 dev lo table main: `out tcp 203.0.113.1:80 --uid 1000 --gid 1000` unknown: whether 203.0.113.1 counts as an address of the pod: `ip route local 203.0.113.0/24 dev lo table main` is in table main, which is one with table local until a policy rule is added; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80
203.0.113.1 cannot come in by eth0 (martian): `in tcp 192.0.2.2:80 --from 203.0.113.1` dropped: 203.0.113.1 cannot come in by eth0 (martian); as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# an address of loopback goes elsewhere
ip route blackhole 127.0.0.1/32 table local: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` dropped: the destination changed, and there is no route to 127.0.0.1 (ip route blackhole 127.0.0.1/32 table local); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
# an earlier policy rule takes what is marked
ip rule 1: fwmark 1337 lookup main: `out tcp 198.51.100.1:80 --from 192.0.2.2 --uid 1337 --gid 1000 --mark 1337` leaves the pod by eth0 to 198.51.100.1:80, untouched; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 198.51.100.1:80
# one that takes a network
ip rule 1: to 203.0.113.0/24 unreachable: `out tcp 203.0.113.1:80 --uid 1000 --gid 1000` never sent: no route to 203.0.113.1 (ip rule 1: to 203.0.113.0/24 unreachable); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80
return path: never sent: no route to 203.0.113.1 (ip rule 1: to 203.0.113.0/24 unreachable): `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80; replies are lost: never sent: no route to 203.0.113.1 (ip rule 1: to 203.0.113.0/24 unreachable); as requested it lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# one that refuses a network
ip rule 1000: to 203.0.113.0/24 blackhole: `out tcp 203.0.113.1:80 --uid 1000 --gid 1000` never sent: no route to 203.0.113.1 (ip rule 1000: to 203.0.113.0/24 blackhole); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80
return path: never sent: no route to 203.0.113.1 (ip rule 1000: to 203.0.113.0/24 blackhole): `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: never sent: no route to 203.0.113.1 (ip rule 1000: to 203.0.113.0/24 blackhole); as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# of some addresses
ip rule 1000: from 192.0.2.2/32 to 203.0.113.0/24 blackhole: `out tcp 203.0.113.1:80 --uid 1000 --gid 1000` never sent: no route to 203.0.113.1 (ip rule 1000: from 192.0.2.2/32 to 203.0.113.0/24 blackhole); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80
return path: never sent: no route to 203.0.113.1 (ip rule 1000: from 192.0.2.2/32 to 203.0.113.0/24 blackhole): `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: never sent: no route to 203.0.113.1 (ip rule 1000: from 192.0.2.2/32 to 203.0.113.0/24 blackhole); as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# of all others
ip rule 1000: not from 10.0.0.0/8 to 192.0.2.0/24 blackhole: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` never sent: no route to 198.51.100.1 (ip rule 1000: not from 10.0.0.0/8 to 192.0.2.0/24 blackhole); as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: never sent: no route to 203.0.113.1 (ip rule 1000: not from 10.0.0.0/8 to 192.0.2.0/24 blackhole): `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; replies are lost: never sent: no route to 203.0.113.1 (ip rule 1000: not from 10.0.0.0/8 to 192.0.2.0/24 blackhole); as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# one that refuses who knows what
ip rule 1000: uidrange 1000-1000 prohibit: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` unknown: the route to 198.51.100.1: `ip rule 1000: uidrange 1000-1000 prohibit`; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
return path: the route to 203.0.113.1: `ip rule 1000: uidrange 1000-1000 prohibit`: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; unknown whether replies arrive: the route to 203.0.113.1: `ip rule 1000: uidrange 1000-1000 prohibit`; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# one that goes elsewhere
ip rule 1000: to 203.0.113.0/24 an action that is not followed: `out tcp 203.0.113.1:80 --uid 1000 --gid 1000` unknown: the route to 203.0.113.1: `ip rule 1000: to 203.0.113.0/24 an action that is not followed`; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 203.0.113.1:80
return path: the route to 203.0.113.1: `ip rule 1000: to 203.0.113.0/24 an action that is not followed`: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80; unknown whether replies arrive: the route to 203.0.113.1: `ip rule 1000: to 203.0.113.0/24 an action that is not followed`; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
# one that refuses what others mark
# table local is not looked up
no host takes what comes from outside to 127.0.0.1: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` leaves the pod by eth0 to 127.0.0.1:15001; original destination 198.51.100.1:80; replies are lost: no host takes what comes from outside to 127.0.0.1; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
the host that the packet came from may answer without passing the pod: `in tcp 192.0.2.2:80 --from 203.0.113.1` is not for this pod: goes on by eth0 to 192.0.2.2:15006 if the pod forwards, else it is dropped; unknown whether replies arrive: the host that the packet came from may answer without passing the pod; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
dropped: 192.0.2.2 cannot come in by eth0 (martian): `in tcp 192.0.2.2:15008 --from 203.0.113.1` is not for this pod: goes on by eth0 to 192.0.2.2:15008 if the pod forwards, else it is dropped; replies are lost: dropped: 192.0.2.2 cannot come in by eth0 (martian); as requested it lands on 192.0.2.2:15008 (HBONE tunnel), untouched
no host takes what comes from outside to 127.0.0.2: `lo tcp 127.0.0.2:80 --uid 1337 --gid 1000` leaves the pod by eth0 to 127.0.0.2:80, untouched; replies are lost: no host takes what comes from outside to 127.0.0.2; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 127.0.0.2:80
what is sent from 127.0.0.8 cannot go out by eth0: `lo tcp 127.0.0.2:80 --from 127.0.0.8 --uid 1337 --gid 1000` never sent: what is sent from 127.0.0.8 cannot go out by eth0; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 127.0.0.2:80
# of a family that is not captured
# the pod's address is not local
return path: never sent: what is sent from 127.0.0.1 cannot go out by eth0: `out tcp 198.51.100.1:80 --uid 1000 --gid 1000` lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80; replies are lost: never sent: what is sent from 127.0.0.1 cannot go out by eth0; as requested it lands on 127.0.0.1:15001 (Envoy outbound); original destination 198.51.100.1:80
the host that the packet came from may answer without passing the pod: `in tcp 192.0.2.2:80 --from 203.0.113.1` is not for this pod: goes on by eth0 to 192.0.2.2:15006 if the pod forwards, else it is dropped; unknown whether replies arrive: the host that the packet came from may answer without passing the pod; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
rule 1 of nat ISTIO_INBOUND: -A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN: `in tcp 192.0.2.2:15008 --from 203.0.113.1` is not for this pod: goes on by eth0 to 192.0.2.2:15008 if the pod forwards, else it is dropped; as requested it lands on 192.0.2.2:15008 (HBONE tunnel), untouched
replies to 192.0.2.2 go to whichever host has that address: `out tcp 192.0.2.2:80 --uid 1337 --gid 1000` leaves the pod by eth0 to 192.0.2.2:80, untouched; unknown whether replies arrive: replies to 192.0.2.2 go to whichever host has that address; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 192.0.2.2:80
what is sent from 127.0.0.1 cannot go out by eth0: `out tcp 192.0.2.2:80 --from 127.0.0.1 --uid 1337 --gid 1000` never sent: what is sent from 127.0.0.1 cannot go out by eth0; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 192.0.2.2:80
# sources are looked up by mark
src_valid_mark of eth0 is 1: by the mark 0x539 its source is local (martian): `in tcp 192.0.2.2:80 --from 203.0.113.1` dropped: src_valid_mark of eth0 is 1: by the mark 0x539 its source is local (martian); as requested it lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# of one interface
src_valid_mark of eth0 is 1: by the mark 0x539 its source is local (martian): `in tcp 192.0.2.2:80 --from 203.0.113.1` dropped: src_valid_mark of eth0 is 1: by the mark 0x539 its source is local (martian); as requested it lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# but nothing is marked
# connections are accepted with the mark
return path: tcp_fwmark_accept is 1, so they have the mark 0x539: they stay in the pod, by rule 1 of mangle ISTIO_INBOUND: `in tcp 192.0.2.2:80 --from 203.0.113.1` lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80; replies are lost: tcp_fwmark_accept is 1, so they have the mark 0x539: they stay in the pod, by rule 1 of mangle ISTIO_INBOUND; as requested it lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# connections without one, too
# a route beside ours
ip route 203.0.113.0/24 dev eth0 table 133: `out tcp 203.0.113.1:80 --from 192.0.2.2 --uid 1337 --gid 1000 --mark 1337` leaves the pod by eth0 to 203.0.113.1:80, untouched; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 203.0.113.1:80
# an unknown one
ip route 203.0.113.0/24 dev eth0 table 133: `out tcp 203.0.113.1:80 --from 192.0.2.2 --uid 1337 --gid 1000 --mark 1337` unknown: the route to 203.0.113.1: `ip route 203.0.113.0/24 dev eth0 table 133`; as requested it lands on 127.0.0.1:15006 (Envoy inbound); original destination 203.0.113.1:80
)");
}

// Whatever the ports of the packets that show it.
TEST(Obstacles, OfANextHopAreOne) {
  const std::string all = found("-i * -b * -o 22 --ip-families ipv4",
                                {{Table::nat, "-A OUTPUT -o net1 -p tcp -j RETURN"}}, [](PodView& pod) {
                                  assume_interface(pod, "net1");
                                  pod.routes.front().other_devices = {"net1"};
                                });
  EXPECT_EQ(std::ranges::count(all, '\n'), 2) << all;
  EXPECT_TRUE(all.starts_with("which next hop it gets by `ip route default dev eth0 table main` (")) << all;
  EXPECT_NE(all.find("if that by net1: leaves the pod by net1 to 198.51.100.1"), std::string::npos) << all;
  EXPECT_NE(all.find("\nrule 1 of nat OUTPUT: "), std::string::npos) << all;  // to the network of net1
}

// What comes in by a bridge meets rules for frames.
TEST(Obstacles, AreRulesForFrames) {
  const Plan plan = planned(usual);
  PodView pod = assumed_pod(plan);
  pod.interface("eth0")->is_bridge = true;
  std::vector<Live> live{as_live(plan.ruleset, BackendKind::iptables_nft), {}};
  live.back().backend = BackendKind::nftables;
  LiveChain frames = chain({}, Table::other, "forward", false, {{{}, Verdict::drop}});
  frames.table_name = "bridge b";
  frames.hook = HookPoint{Hook::forward, 0, ChainType::filter, {}};
  live.back().chains = {frames};
  std::string all = "\n";
  for (const Obstacle& one : obstacles(plan, BackendKind::iptables_nft, pod, live)) all += text(one) + "\n";
  EXPECT_EQ(all, R"(
whether it gets in by eth0: rule 1 of bridge b forward: `in tcp 192.0.2.2:80 --from 203.0.113.1` unknown: whether it gets in by eth0: rule 1 of bridge b forward; as requested it lands on 192.0.2.2:15006 (Envoy inbound); original destination 192.0.2.2:80
)");
  pod.interface("eth0")->is_bridge = false;
  EXPECT_TRUE(obstacles(plan, BackendKind::iptables_nft, pod, live).empty());
}

// What is there already is the plan.
TEST(Obstacles, OfLiveRulesAreThoseOfTheirPlan) {
  const Plan plan = planned(usual);
  std::vector<Live> live{as_live(plan.ruleset, BackendKind::iptables_nft)};
  EXPECT_TRUE(obstacles(live, plan.routing, assumed_pod(plan)).empty());
  add_first(live, Family::ipv4, Table::filter, "-A OUTPUT -p tcp --dport 15001 -j DROP");
  std::string all;
  for (const Obstacle& one : obstacles(live, plan.routing, assumed_pod(plan))) all += text(one) + "\n";
  EXPECT_EQ(all, found(usual, {{Table::filter, "-A OUTPUT -p tcp --dport 15001 -j DROP"}}));
  EXPECT_NE(all, "");
  for (LiveChain& each : live.front().chains) std::erase_if(each.rules, &LiveRule::ours);
  EXPECT_TRUE(obstacles(live, plan.routing, assumed_pod(plan)).empty());
}

}  // namespace
}  // namespace sidetrack
