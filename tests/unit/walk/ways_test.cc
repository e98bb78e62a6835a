// SPDX-License-Identifier: GPL-2.0-or-later
// The way of packets through rules of others, step by step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "mesh/rule_words.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

// What happens to the packet, and where it ends.
std::string steps(const Trace& trace) {
  static constexpr const char* kinds[] = {"", "", "no: ", "unknown: ", "yes: ", "yes: "};
  std::string all;
  for (const Step& step : trace.steps) {
    const bool is_rule = step.kind >= Step::Kind::passed;
    all += std::string(step.kind == Step::Kind::hook ? 0 : 2 + 2 * step.depth, ' ');
    if (is_rule) all += fmt::format("{} {} {}: ", step.table, step.chain, step.number);
    all += fmt::format("{}{}\n", kinds[static_cast<std::size_t>(step.kind)], step.text);
  }
  for (const std::string& doubt : trace.doubts) all += fmt::format("  but: {}\n", doubt);
  return all + fmt::format("= {}\n", sentence(trace.outcome));
}

using Edit = std::function<void(PodView&)>;

std::string way(const Live& live, const char* packet, const Edit& edit = nullptr) {
  PodView pod = assumed_pod(planned(""));
  if (edit) edit(pod);
  return fmt::format("# {}\n{}", packet, steps(explain(packet_of(packet), pod, {&live, 1})));
}

// Each kind of match, of packets that have what it asks for, that have something else, and that have nothing of it.
TEST(Ways, SayOfEachMatchWhyItDoesNotHold) {
  Live live = rules_of_others(BackendKind::iptables_legacy, Family::ipv4,
                              {"mangle -A OUTPUT -i eth0 -j LOG",
                               "mangle -A OUTPUT -o eth0 -j LOG",
                               "mangle -A OUTPUT ! -o eth+ -j LOG",
                               "mangle -A OUTPUT -s 192.0.2.0/24 -j LOG",
                               "mangle -A OUTPUT ! -d 10.0.0.0/8 -j LOG",
                               "mangle -A OUTPUT -p tcp -j LOG",
                               "mangle -A OUTPUT ! -p tcp -j LOG",
                               "mangle -A OUTPUT --dport 443 -j LOG",
                               "mangle -A OUTPUT -m multiport ! --dports 1:442,444 -j LOG",
                               "mangle -A OUTPUT --sport 1000 -j LOG",
                               "mangle -A OUTPUT --sport 32768:60999 -j LOG",
                               "mangle -A OUTPUT ! --sport 40000 -j LOG",
                               "mangle -A OUTPUT -m owner --uid-owner 7 -j LOG",
                               "mangle -A OUTPUT -m owner ! --uid-owner 7 -j LOG",
                               "mangle -A OUTPUT -m owner --gid-owner 8-9 -j LOG",
                               "mangle -A OUTPUT -m conntrack --ctstate NEW -j LOG",
                               "mangle -A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j LOG",
                               "mangle -A OUTPUT -m conntrack ! --ctstate INVALID,UNTRACKED -j LOG",
                               "mangle -A OUTPUT -m conntrack --ctdir ORIGINAL -j LOG",
                               "mangle -A OUTPUT -m conntrack --ctdir REPLY -j LOG",
                               "mangle -A OUTPUT -m mark --mark 0x10/0xf0 -j LOG",
                               "mangle -A OUTPUT -m mark ! --mark 5 -j LOG",
                               "mangle -A OUTPUT -m connmark --mark 6 -j LOG",
                               "mangle -A OUTPUT -m connmark ! --mark 6 -j LOG",
                               "mangle -A OUTPUT -m cgroup --path a/b -j LOG",
                               "mangle -A OUTPUT -m cgroup ! --path a/b -j LOG",
                               "mangle -A OUTPUT -m comment --comment words -j LOG",
                               "mangle -A OUTPUT -m bpf -j LOG",
                               "raw -A OUTPUT -m conntrack --ctstate INVALID -j LOG",
                               "raw -A OUTPUT -m conntrack --ctdir ORIGINAL -j LOG",
                               "raw -A OUTPUT -m connmark ! --mark 6 -j LOG",
                               "raw -A OUTPUT -m owner --uid-owner 9 -j CT --notrack"});
  const auto add = [&](Match match) {
    LiveRule one = live.chains.front().rules.front();
    one.rule.matches = {std::move(match)};
    live.chains.front().rules.push_back(one);
  };
  const std::vector<AddressRange> members{*AddressRange::parse("10.96.0.0/16")};
  const std::vector<AddressRange> of_ipv6{*AddressRange::parse("fd00::/8")};
  add(SocketMatch{});
  add(SocketMatch{true});
  add(SetMatch{End::destination, "s", 1, members, false});
  add(SetMatch{End::source, "s", 1, members, true});
  add(SetMatch{End::destination, "s", 1, std::vector<AddressRange>{}, true});
  add(SetMatch{End::destination, "t", 2, of_ipv6, false});
  add(SetMatch{End::destination, "t", 2, of_ipv6, true});
  add(SetMatch{End::destination, "u", 3, std::nullopt, false});
  std::string all = "\n";
  for (const char* packet :
       {"out tcp 10.96.0.10:443 --uid 7 --gid 8 --mark 5 --cgroup /a/b/c", "out udp 10.1.0.1:80 no-socket --mark 0x12",
        "out icmp 198.51.100.1 --uid 9", "lo tcp :443 --state established connmark 6 --cgroup /a",
        "out tcp 10.96.0.10:443 sport 1000 --state reply connmark 7 --uid 1 --gid 9",
        "out tcp 10.96.0.10:444 --state invalid"})
    all += way(live, packet);
  EXPECT_EQ(all, R"(
# out tcp 10.96.0.10:443 --uid 7 --gid 8 --mark 5 --cgroup /a/b/c
OUTPUT, out by eth0
  raw OUTPUT 1: yes: goes on
  raw OUTPUT 2: no: it is not tracked yet
  raw OUTPUT 3: no: it is not tracked yet
  raw OUTPUT 4: no: its uid is 7
  conntrack: a new connection
  mangle OUTPUT 1: no: no interface yet: it is sent from here
  mangle OUTPUT 2: yes: goes on
  mangle OUTPUT 3: no: it goes out by eth0
  mangle OUTPUT 4: yes: goes on
  mangle OUTPUT 5: no: its destination is 10.96.0.10
  mangle OUTPUT 6: yes: goes on
  mangle OUTPUT 7: no: it is tcp
  mangle OUTPUT 8: yes: goes on
  mangle OUTPUT 9: yes: goes on
  mangle OUTPUT 10: no: its source port is one that the kernel chose
  mangle OUTPUT 11: yes: goes on
  mangle OUTPUT 12: unknown: whether `! --sport 40000` holds is unknown
  mangle OUTPUT 13: yes: goes on
  mangle OUTPUT 14: no: its uid is 7
  mangle OUTPUT 15: yes: goes on
  mangle OUTPUT 16: yes: goes on
  mangle OUTPUT 17: no: the connection is new
  mangle OUTPUT 18: yes: goes on
  mangle OUTPUT 19: yes: goes on
  mangle OUTPUT 20: no: it is no answer
  mangle OUTPUT 21: no: its mark is 5
  mangle OUTPUT 22: no: its mark is 5
  mangle OUTPUT 23: no: its connection has no mark
  mangle OUTPUT 24: yes: goes on
  mangle OUTPUT 25: yes: goes on
  mangle OUTPUT 26: no: its cgroup is /a/b/c
  mangle OUTPUT 27: yes: goes on
  mangle OUTPUT 28: unknown: whether `-m bpf` holds is unknown
  mangle OUTPUT 29: yes: goes on
  mangle OUTPUT 30: no: a process of this namespace sent it
  mangle OUTPUT 31: yes: goes on
  mangle OUTPUT 32: yes: goes on
  mangle OUTPUT 33: yes: goes on
  mangle OUTPUT 34: no: its destination is 10.96.0.10
  mangle OUTPUT 35: yes: goes on
  mangle OUTPUT 36: unknown: whether `-m set --match-set u dst` holds is unknown
= leaves the pod by eth0 to 10.96.0.10:443, untouched
# out udp 10.1.0.1:80 no-socket --mark 0x12
OUTPUT, out by eth0
  raw OUTPUT 1: yes: goes on
  raw OUTPUT 2: no: it is not tracked yet
  raw OUTPUT 3: no: it is not tracked yet
  raw OUTPUT 4: no: no process sent it, so it has no uid
  conntrack: a new connection
  mangle OUTPUT 1: no: no interface yet: it is sent from here
  mangle OUTPUT 2: yes: goes on
  mangle OUTPUT 3: no: it goes out by eth0
  mangle OUTPUT 4: yes: goes on
  mangle OUTPUT 5: no: its destination is 10.1.0.1
  mangle OUTPUT 6: no: it is udp
  mangle OUTPUT 7: yes: goes on
  mangle OUTPUT 8: no: its destination port is 80
  mangle OUTPUT 9: no: its destination port is 80
  mangle OUTPUT 10: no: its source port is one that the kernel chose
  mangle OUTPUT 11: yes: goes on
  mangle OUTPUT 12: unknown: whether `! --sport 40000` holds is unknown
  mangle OUTPUT 13: no: no process sent it, so it has no uid
  mangle OUTPUT 14: yes: goes on
  mangle OUTPUT 15: no: no process sent it, so it has no gid
  mangle OUTPUT 16: yes: goes on
  mangle OUTPUT 17: no: the connection is new
  mangle OUTPUT 18: yes: goes on
  mangle OUTPUT 19: yes: goes on
  mangle OUTPUT 20: no: it is no answer
  mangle OUTPUT 21: yes: goes on
  mangle OUTPUT 22: yes: goes on
  mangle OUTPUT 23: no: its connection has no mark
  mangle OUTPUT 24: yes: goes on
  mangle OUTPUT 25: no: no process sent it, so it has no cgroup
  mangle OUTPUT 26: no: no process sent it, so it has no cgroup
  mangle OUTPUT 27: yes: goes on
  mangle OUTPUT 28: unknown: whether `-m bpf` holds is unknown
  mangle OUTPUT 29: no: no process of this namespace sent it
  mangle OUTPUT 30: yes: goes on
  mangle OUTPUT 31: no: its destination is 10.1.0.1
  mangle OUTPUT 32: yes: goes on
  mangle OUTPUT 33: yes: goes on
  mangle OUTPUT 34: no: its destination is 10.1.0.1
  mangle OUTPUT 35: yes: goes on
  mangle OUTPUT 36: unknown: whether `-m set --match-set u dst` holds is unknown
= leaves the pod by eth0 to 10.1.0.1:80, untouched
# out icmp 198.51.100.1 --uid 9
OUTPUT, out by eth0
  raw OUTPUT 1: yes: goes on
  raw OUTPUT 2: no: it is not tracked yet
  raw OUTPUT 3: no: it is not tracked yet
  raw OUTPUT 4: yes: exempt from connection tracking
  conntrack: not tracked
  mangle OUTPUT 1: no: no interface yet: it is sent from here
  mangle OUTPUT 2: yes: goes on
  mangle OUTPUT 3: no: it goes out by eth0
  mangle OUTPUT 4: yes: goes on
  mangle OUTPUT 5: yes: goes on
  mangle OUTPUT 6: no: it is icmp
  mangle OUTPUT 7: yes: goes on
  mangle OUTPUT 8: no: it has no ports
  mangle OUTPUT 9: no: it has no ports
  mangle OUTPUT 10: no: it has no ports
  mangle OUTPUT 11: no: it has no ports
  mangle OUTPUT 12: no: it has no ports
  mangle OUTPUT 13: no: its uid is 9
  mangle OUTPUT 14: yes: goes on
  mangle OUTPUT 15: yes: goes on
  mangle OUTPUT 16: no: it is not tracked
  mangle OUTPUT 17: no: it is not tracked
  mangle OUTPUT 18: no: it is not tracked
  mangle OUTPUT 19: no: it is not tracked
  mangle OUTPUT 20: no: it is not tracked
  mangle OUTPUT 21: no: it has no mark
  mangle OUTPUT 22: yes: goes on
  mangle OUTPUT 23: no: it is not tracked
  mangle OUTPUT 24: no: it is not tracked
  mangle OUTPUT 25: unknown: whether `-m cgroup --path a/b` holds is unknown
  mangle OUTPUT 26: unknown: whether `-m cgroup ! --path a/b` holds is unknown
  mangle OUTPUT 27: yes: goes on
  mangle OUTPUT 28: unknown: whether `-m bpf` holds is unknown
  mangle OUTPUT 29: yes: goes on
  mangle OUTPUT 30: no: a process of this namespace sent it
  mangle OUTPUT 31: no: its destination is 198.51.100.1
  mangle OUTPUT 32: yes: goes on
  mangle OUTPUT 33: yes: goes on
  mangle OUTPUT 34: no: its destination is 198.51.100.1
  mangle OUTPUT 35: yes: goes on
  mangle OUTPUT 36: unknown: whether `-m set --match-set u dst` holds is unknown
= leaves the pod by eth0 to 198.51.100.1, untouched; unknown whether replies arrive: a rule exempts them from connection tracking
# lo tcp :443 --state established connmark 6 --cgroup /a
OUTPUT, out by lo: the destination is the pod itself
  raw OUTPUT 1: yes: goes on
  raw OUTPUT 2: no: it is not tracked yet
  raw OUTPUT 3: no: it is not tracked yet
  raw OUTPUT 4: no: its uid is 0
  conntrack: an established connection
  mangle OUTPUT 1: no: no interface yet: it is sent from here
  mangle OUTPUT 2: no: it goes out by lo
  mangle OUTPUT 3: yes: goes on
  mangle OUTPUT 4: no: its source is 127.0.0.1
  mangle OUTPUT 5: yes: goes on
  mangle OUTPUT 6: yes: goes on
  mangle OUTPUT 7: no: it is tcp
  mangle OUTPUT 8: yes: goes on
  mangle OUTPUT 9: yes: goes on
  mangle OUTPUT 10: no: its source port is one that the kernel chose
  mangle OUTPUT 11: yes: goes on
  mangle OUTPUT 12: unknown: whether `! --sport 40000` holds is unknown
  mangle OUTPUT 13: no: its uid is 0
  mangle OUTPUT 14: yes: goes on
  mangle OUTPUT 15: no: its gid is 0
  mangle OUTPUT 16: no: the connection is established
  mangle OUTPUT 17: yes: goes on
  mangle OUTPUT 18: yes: goes on
  mangle OUTPUT 19: yes: goes on
  mangle OUTPUT 20: no: it is no answer
  mangle OUTPUT 21: no: it has no mark
  mangle OUTPUT 22: yes: goes on
  mangle OUTPUT 23: yes: goes on
  mangle OUTPUT 24: no: its connection's mark is 6
  mangle OUTPUT 25: no: its cgroup is /a
  mangle OUTPUT 26: yes: goes on
  mangle OUTPUT 27: yes: goes on
  mangle OUTPUT 28: unknown: whether `-m bpf` holds is unknown
  mangle OUTPUT 29: yes: goes on
  mangle OUTPUT 30: no: a process of this namespace sent it
  mangle OUTPUT 31: no: its destination is 127.0.0.1
  mangle OUTPUT 32: yes: goes on
  mangle OUTPUT 33: yes: goes on
  mangle OUTPUT 34: no: its destination is 127.0.0.1
  mangle OUTPUT 35: yes: goes on
  mangle OUTPUT 36: unknown: whether `-m set --match-set u dst` holds is unknown
PREROUTING, in by lo
  conntrack: tracked already, in OUTPUT
= lands on 127.0.0.1:443 (the app), untouched
# out tcp 10.96.0.10:443 sport 1000 --state reply connmark 7 --uid 1 --gid 9
OUTPUT, out by eth0
  raw OUTPUT 1: yes: goes on
  raw OUTPUT 2: no: it is not tracked yet
  raw OUTPUT 3: no: it is not tracked yet
  raw OUTPUT 4: no: its uid is 1
  conntrack: a reply of an established connection
  mangle OUTPUT 1: no: no interface yet: it is sent from here
  mangle OUTPUT 2: yes: goes on
  mangle OUTPUT 3: no: it goes out by eth0
  mangle OUTPUT 4: yes: goes on
  mangle OUTPUT 5: no: its destination is 10.96.0.10
  mangle OUTPUT 6: yes: goes on
  mangle OUTPUT 7: no: it is tcp
  mangle OUTPUT 8: yes: goes on
  mangle OUTPUT 9: yes: goes on
  mangle OUTPUT 10: yes: goes on
  mangle OUTPUT 11: no: its source port is 1000
  mangle OUTPUT 12: yes: goes on
  mangle OUTPUT 13: no: its uid is 1
  mangle OUTPUT 14: yes: goes on
  mangle OUTPUT 15: yes: goes on
  mangle OUTPUT 16: no: the connection is established
  mangle OUTPUT 17: yes: goes on
  mangle OUTPUT 18: yes: goes on
  mangle OUTPUT 19: no: it is an answer
  mangle OUTPUT 20: yes: goes on
  mangle OUTPUT 21: no: it has no mark
  mangle OUTPUT 22: yes: goes on
  mangle OUTPUT 23: no: its connection's mark is 7
  mangle OUTPUT 24: yes: goes on
  mangle OUTPUT 25: unknown: whether `-m cgroup --path a/b` holds is unknown
  mangle OUTPUT 26: unknown: whether `-m cgroup ! --path a/b` holds is unknown
  mangle OUTPUT 27: yes: goes on
  mangle OUTPUT 28: unknown: whether `-m bpf` holds is unknown
  mangle OUTPUT 29: yes: goes on
  mangle OUTPUT 30: no: a process of this namespace sent it
  mangle OUTPUT 31: yes: goes on
  mangle OUTPUT 32: yes: goes on
  mangle OUTPUT 33: yes: goes on
  mangle OUTPUT 34: no: its destination is 10.96.0.10
  mangle OUTPUT 35: yes: goes on
  mangle OUTPUT 36: unknown: whether `-m set --match-set u dst` holds is unknown
= leaves the pod by eth0 to 10.96.0.10:443, untouched
# out tcp 10.96.0.10:444 --state invalid
OUTPUT, out by eth0
  raw OUTPUT 1: yes: goes on
  raw OUTPUT 2: no: it belongs to no known connection
  raw OUTPUT 3: no: it belongs to no known connection
  raw OUTPUT 4: no: its uid is 0
  conntrack: invalid: it belongs to no known connection
  mangle OUTPUT 1: no: no interface yet: it is sent from here
  mangle OUTPUT 2: yes: goes on
  mangle OUTPUT 3: no: it goes out by eth0
  mangle OUTPUT 4: yes: goes on
  mangle OUTPUT 5: no: its destination is 10.96.0.10
  mangle OUTPUT 6: yes: goes on
  mangle OUTPUT 7: no: it is tcp
  mangle OUTPUT 8: no: its destination port is 444
  mangle OUTPUT 9: no: its destination port is 444
  mangle OUTPUT 10: no: its source port is one that the kernel chose
  mangle OUTPUT 11: yes: goes on
  mangle OUTPUT 12: unknown: whether `! --sport 40000` holds is unknown
  mangle OUTPUT 13: no: its uid is 0
  mangle OUTPUT 14: yes: goes on
  mangle OUTPUT 15: no: its gid is 0
  mangle OUTPUT 16: no: it belongs to no known connection
  mangle OUTPUT 17: no: it belongs to no known connection
  mangle OUTPUT 18: no: it belongs to no known connection
  mangle OUTPUT 19: no: it belongs to no known connection
  mangle OUTPUT 20: no: it belongs to no known connection
  mangle OUTPUT 21: no: it has no mark
  mangle OUTPUT 22: yes: goes on
  mangle OUTPUT 23: no: it belongs to no known connection
  mangle OUTPUT 24: no: it belongs to no known connection
  mangle OUTPUT 25: unknown: whether `-m cgroup --path a/b` holds is unknown
  mangle OUTPUT 26: unknown: whether `-m cgroup ! --path a/b` holds is unknown
  mangle OUTPUT 27: yes: goes on
  mangle OUTPUT 28: unknown: whether `-m bpf` holds is unknown
  mangle OUTPUT 29: yes: goes on
  mangle OUTPUT 30: no: a process of this namespace sent it
  mangle OUTPUT 31: yes: goes on
  mangle OUTPUT 32: yes: goes on
  mangle OUTPUT 33: yes: goes on
  mangle OUTPUT 34: no: its destination is 10.96.0.10
  mangle OUTPUT 35: yes: goes on
  mangle OUTPUT 36: unknown: whether `-m set --match-set u dst` holds is unknown
= leaves the pod by eth0 to 10.96.0.10:444, untouched
)");
}

// Of a connection, what decides about its later packets and its answers, too.
TEST(Ways, OfConnectionsThatOthersTranslate) {
  const Live masquerading =
      rules_of_others(BackendKind::iptables_legacy, Family::ipv4,
                      {"nat -A POSTROUTING -d 10.1.0.0/16 -j MASQUERADE",
                       "nat -A POSTROUTING -d 10.2.0.0/16 -j SNAT --to-source 192.0.2.77",
                       "nat -A POSTROUTING -d 10.3.0.0/16 -j SNAT --to-source 192.0.2.0-192.0.2.127",
                       "nat -A OUTPUT -d 10.4.0.0/16 -j DNAT --to-destination 10.2.0.9",
                       "nat -A PREROUTING -d 10.5.0.0/16 -j DNAT --to-destination 192.0.2.2",
                       "nat -A PREROUTING -d 10.6.0.0/16 -j DNAT --to-destination 10.1.0.6",
                       "nat -A OUTPUT -d 10.7.0.0/16 -j DNAT --to-destination 10.2.0.0/31",
                       "filter -A INPUT -d 192.0.2.2/32 -j LOG", "filter -A FORWARD -d 10.1.0.6/32 -j LOG"});
  std::string all = "\n";
  for (const char* packet :
       {"out tcp 10.1.0.1:80", "out tcp 10.1.0.1:80 --state established", "out tcp 10.2.0.1:80 --from-port 4000",
        "out tcp 10.2.0.1:80 --state established", "in tcp 192.0.2.77:4000 --from 10.2.0.1 --state reply",
        "out tcp 10.3.0.1:80", "out tcp 10.4.0.1:80", "out tcp 10.4.0.1:80 --state established", "in tcp 10.5.0.1:80",
        "in tcp 10.5.0.1:80 --state established", "in tcp 10.6.0.1:80", "in tcp 10.6.0.1:80 --state established",
        "out tcp 10.7.0.1:80", "out tcp 10.7.0.1:80 --state established", "out tcp 10.4.0.1:80 --state invalid"})
    all += way(masquerading, packet);
  EXPECT_EQ(all, R"(
# out tcp 10.1.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT 1: no: its destination is 10.1.0.1
  nat OUTPUT 2: no: its destination is 10.1.0.1
POSTROUTING, out by eth0
  nat POSTROUTING 1: yes: its source is now 192.0.2.2
= leaves the pod by eth0 to 10.1.0.1:80, untouched
# out tcp 10.1.0.1:80 --state established
OUTPUT, out by eth0
  conntrack: an established connection
  nat OUTPUT is skipped: only the first packet of a connection passes nat
POSTROUTING, out by eth0
  nat POSTROUTING is skipped: only the first packet of a connection passes nat
  its source is translated, as the first packet's was
= leaves the pod by eth0 to 10.1.0.1:80, untouched
# out tcp 10.2.0.1:80 --from-port 4000
OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT 1: no: its destination is 10.2.0.1
  nat OUTPUT 2: no: its destination is 10.2.0.1
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.2.0.1
  nat POSTROUTING 2: yes: its source is now 192.0.2.77:4000
= leaves the pod by eth0 to 10.2.0.1:80, from 192.0.2.77; unknown whether replies arrive: replies to 192.0.2.77 go to whichever host has that address
# out tcp 10.2.0.1:80 --state established
OUTPUT, out by eth0
  conntrack: an established connection
  nat OUTPUT is skipped: only the first packet of a connection passes nat
POSTROUTING, out by eth0
  nat POSTROUTING is skipped: only the first packet of a connection passes nat
  its source is translated, as the first packet's was
= leaves the pod by eth0 to 10.2.0.1:80, from 192.0.2.77
# in tcp 192.0.2.77:4000 --from 10.2.0.1 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: 192.0.2.77 is not the pod's
FORWARD, in by eth0, out by eth0
  filter FORWARD 1: no: its destination is 192.0.2.77
POSTROUTING, out by eth0
  nat POSTROUTING is skipped: only the first packet of a connection passes nat
= is not for this pod: goes on by eth0 to 192.0.2.77:4000 if the pod forwards, else it is dropped
# out tcp 10.3.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT 1: no: its destination is 10.3.0.1
  nat OUTPUT 2: no: its destination is 10.3.0.1
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.3.0.1
  nat POSTROUTING 2: no: its destination is 10.3.0.1
  nat POSTROUTING 3: yes: the kernel chooses its source
= leaves the pod by eth0 to 10.3.0.1:80, from an address that the kernel chooses; unknown whether replies arrive: replies to an address that the kernel chooses go to whichever host has that address
# out tcp 10.4.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT 1: yes: translated to 10.2.0.9:80
  routing again, as the destination changed: out by eth0
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.2.0.9
  nat POSTROUTING 2: yes: its source is now 192.0.2.77
= leaves the pod by eth0 to 10.2.0.9:80, from 192.0.2.77; original destination 10.4.0.1:80; unknown whether replies arrive: replies to 192.0.2.77 go to whichever host has that address
# out tcp 10.4.0.1:80 --state established
OUTPUT, out by eth0
  conntrack: an established connection
  nat OUTPUT is skipped: only the first packet of a connection passes nat
  redirected to 10.2.0.9:80, as the first packet was, by rule 1 of nat OUTPUT
  routing again, as the destination changed: out by eth0
POSTROUTING, out by eth0
  nat POSTROUTING is skipped: only the first packet of a connection passes nat
  its source is translated, as the first packet's was
= leaves the pod by eth0 to 10.2.0.9:80, from 192.0.2.77; original destination 10.4.0.1:80
# in tcp 10.5.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  nat PREROUTING 1: yes: translated to 192.0.2.2:80
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: yes: goes on
= lands on 192.0.2.2:80; original destination 10.5.0.1:80
# in tcp 10.5.0.1:80 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  redirected to 192.0.2.2:80, as the first packet was, by rule 1 of nat PREROUTING
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: yes: goes on
= lands on 192.0.2.2:80; original destination 10.5.0.1:80
# in tcp 10.6.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  nat PREROUTING 1: no: its destination is 10.6.0.1
  nat PREROUTING 2: yes: translated to 10.1.0.6:80
  routing: 10.1.0.6 is not the pod's
FORWARD, in by eth0, out by eth0
  filter FORWARD 1: yes: goes on
POSTROUTING, out by eth0
  nat POSTROUTING 1: yes: its source is now 192.0.2.2
= is not for this pod: goes on by eth0 to 10.1.0.6:80, from 192.0.2.2 if the pod forwards, else it is dropped
# in tcp 10.6.0.1:80 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  redirected to 10.1.0.6:80, as the first packet was, by rule 2 of nat PREROUTING
  routing: 10.1.0.6 is not the pod's
FORWARD, in by eth0, out by eth0
  filter FORWARD 1: yes: goes on
POSTROUTING, out by eth0
  nat POSTROUTING is skipped: only the first packet of a connection passes nat
  its source is translated, as the first packet's was
= is not for this pod: goes on by eth0 to 10.1.0.6:80, from 192.0.2.2 if the pod forwards, else it is dropped
# out tcp 10.7.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT 1: no: its destination is 10.7.0.1
  nat OUTPUT 2: unknown: what becomes of the packet then is unknown
= unknown: what `-j DNAT --to-destination 10.2.0.0/31` of rule 2 of nat OUTPUT does
# out tcp 10.7.0.1:80 --state established
OUTPUT, out by eth0
  conntrack: a new connection
  nat OUTPUT 1: no: its destination is 10.7.0.1
  nat OUTPUT 2: unknown: what becomes of the packet then is unknown
= unknown: what `-j DNAT --to-destination 10.2.0.0/31` of rule 2 of nat OUTPUT does
# out tcp 10.4.0.1:80 --state invalid
OUTPUT, out by eth0
  conntrack: invalid: it belongs to no known connection
  nat OUTPUT is skipped: an untracked packet is not translated
POSTROUTING, out by eth0
  nat POSTROUTING is skipped: an untracked packet is not translated
= leaves the pod by eth0 to 10.4.0.1:80, untouched
)");
}

// What TPROXY makes of packets for which there is a socket already, with an address that it has or has not.
TEST(Ways, OfLaterPacketsThatMeetTproxy) {
  std::string all = "\n";
  for (const BackendKind backend : {BackendKind::iptables_legacy, BackendKind::nftables}) {
    const Live tproxy = rules_of_others(backend, Family::ipv4,
                                        {"mangle -A PREROUTING ! -p icmp -j TPROXY --tproxy-mark 1 --on-port 15006",
                                         "nat -A PREROUTING -p tcp --dport 81 -j REDIRECT --to-ports 8081",
                                         "nat -A PREROUTING -p tcp --dport 82 -j REDIRECT --to-ports 15006",
                                         "nat -A POSTROUTING -d 10.2.0.0/16 -j SNAT --to-source 192.0.2.77"});
    all += fmt::format("## {}\n", name(backend));
    for (const char* packet :
         {"in tcp :80", "in tcp :80 --state established", "in tcp :81 --state established",
          "in tcp :82 --state established", "in tcp :15006 --state established", "in udp :80 --state established",
          "in tcp :4000 --from 10.2.0.1 --state reply", "in udp :4000 --from 10.2.0.1 --state reply",
          "in tcp 10.9.0.1:80", "in tcp 10.9.0.1:80 --state reply", "out tcp 10.1.0.1:80", "out tcp 10.2.0.1:80",
          "lo tcp :80", "out udp 10.1.0.1:80", "in icmp 192.0.2.2"})
      all += way(tproxy, packet);
  }
  EXPECT_EQ(all, R"(
## iptables-legacy
# in tcp :80
PREROUTING, in by eth0
  conntrack: a new connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING 1: no: its destination port is 80
  nat PREROUTING 2: no: its destination port is 80
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# in tcp :80 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: given to the socket of its connection, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# in tcp :81 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: dropped: the connection's socket has other addresses, and the listener on port 15006 resets it
= dropped: by rule 1 of mangle PREROUTING
# in tcp :82 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: dropped: the connection's socket has other addresses, and the listener on port 15006 resets it
= dropped: by rule 1 of mangle PREROUTING
# in tcp :15006 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: given to the socket of its connection, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:15006
# in udp :80 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# in tcp :4000 --from 10.2.0.1 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  mangle PREROUTING 1: yes: dropped: the socket of the connection is not transparent
= dropped: by rule 1 of mangle PREROUTING
# in udp :4000 --from 10.2.0.1 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:4000
# in tcp 10.9.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING 1: no: its destination port is 80
  nat PREROUTING 2: no: its destination port is 80
  routing: 10.9.0.1 is not the pod's
= dropped: a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here
# in tcp 10.9.0.1:80 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: 10.9.0.1 is not the pod's
= dropped: a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here
# out tcp 10.1.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.1.0.1
= leaves the pod by eth0 to 10.1.0.1:80, untouched; replies are lost: dropped: by rule 1 of mangle PREROUTING
# out tcp 10.2.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
POSTROUTING, out by eth0
  nat POSTROUTING 1: yes: its source is now 192.0.2.77
= leaves the pod by eth0 to 10.2.0.1:80, from 192.0.2.77; unknown whether replies arrive: replies to 192.0.2.77 go to whichever host has that address
# lo tcp :80
OUTPUT, out by lo: the destination is the pod itself
  conntrack: a new connection
POSTROUTING, out by lo
  nat POSTROUTING 1: no: its destination is 127.0.0.1
PREROUTING, in by lo
  conntrack: tracked already, in OUTPUT
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: nat has already decided about this connection in OUTPUT
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 127.0.0.1:80; replies are lost: dropped: by rule 1 of mangle PREROUTING
# out udp 10.1.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.1.0.1
= leaves the pod by eth0 to 10.1.0.1:80, untouched; replies are lost: they go to the listener on port 15006, by rule 1 of mangle PREROUTING
# in icmp 192.0.2.2
PREROUTING, in by eth0
  conntrack: a new connection
  mangle PREROUTING 1: no: it is icmp
  nat PREROUTING 1: no: it is icmp
  nat PREROUTING 2: no: it is icmp
  routing: stays here: the destination is the pod itself
= lands on 192.0.2.2 (the kernel), untouched
## nftables
# in tcp :80
PREROUTING, in by eth0
  conntrack: a new connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING 1: no: its destination port is 80
  nat PREROUTING 2: no: its destination port is 80
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# in tcp :80 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: given to the socket of its connection, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# in tcp :81 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: dropped: the connection's socket has other addresses, and the listener on port 15006 resets it
= dropped: by rule 1 of mangle PREROUTING
# in tcp :82 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: dropped: the connection's socket has other addresses, and the listener on port 15006 resets it
= dropped: by rule 1 of mangle PREROUTING
# in tcp :15006 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: given to the socket of its connection, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:15006
# in udp :80 --state established
PREROUTING, in by eth0
  conntrack: an established connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 192.0.2.2:80
# in tcp :4000 --from 10.2.0.1 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  mangle PREROUTING 1: yes: no effect: the socket of the connection is not transparent
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: stays here: the destination is the pod itself
= lands on 192.0.2.2:4000 (the socket that opened the connection), untouched
# in udp :4000 --from 10.2.0.1 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  mangle PREROUTING 1: unknown: whether the socket that it answers is connected is unknown
= unknown: whether the socket that it answers is connected, which `-j TPROXY --tproxy-mark 1/0xffffffff --on-port 15006` of rule 1 of mangle PREROUTING leaves alone
# in tcp 10.9.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING 1: no: its destination port is 80
  nat PREROUTING 2: no: its destination port is 80
  routing: 10.9.0.1 is not the pod's
= dropped: a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here
# in tcp 10.9.0.1:80 --state reply
PREROUTING, in by eth0
  conntrack: a reply of an established connection
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: only the first packet of a connection passes nat
  routing: 10.9.0.1 is not the pod's
= dropped: a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here
# out tcp 10.1.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.1.0.1
= leaves the pod by eth0 to 10.1.0.1:80, untouched
# out tcp 10.2.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
POSTROUTING, out by eth0
  nat POSTROUTING 1: yes: its source is now 192.0.2.77
= leaves the pod by eth0 to 10.2.0.1:80, from 192.0.2.77; unknown whether replies arrive: replies to 192.0.2.77 go to whichever host has that address
# lo tcp :80
OUTPUT, out by lo: the destination is the pod itself
  conntrack: a new connection
POSTROUTING, out by lo
  nat POSTROUTING 1: no: its destination is 127.0.0.1
PREROUTING, in by lo
  conntrack: tracked already, in OUTPUT
  mangle PREROUTING 1: yes: given to the transparent listener on port 15006, marked 1
  nat PREROUTING is skipped: nat has already decided about this connection in OUTPUT
= lands on port 15006 (Envoy inbound) by TPROXY; original destination 127.0.0.1:80
# out udp 10.1.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
POSTROUTING, out by eth0
  nat POSTROUTING 1: no: its destination is 10.1.0.1
= leaves the pod by eth0 to 10.1.0.1:80, untouched; unknown whether replies arrive: whether the socket that it answers is connected, which `-j TPROXY --tproxy-mark 1/0xffffffff --on-port 15006` of rule 1 of mangle PREROUTING leaves alone
# in icmp 192.0.2.2
PREROUTING, in by eth0
  conntrack: a new connection
  mangle PREROUTING 1: no: it is icmp
  nat PREROUTING 1: no: it is icmp
  nat PREROUTING 2: no: it is icmp
  routing: stays here: the destination is the pod itself
= lands on 192.0.2.2 (the kernel), untouched
)");
}

TEST(Ways, OfWhatIsTrackedElsewhereOrNotAtAll) {
  const Live zones = rules_of_others(
      BackendKind::iptables_legacy, Family::ipv4,
      {"raw -A OUTPUT -p udp --dport 53 -j CT --zone 1", "raw -A OUTPUT -p udp -j CT --zone 2",
       "raw -A OUTPUT -p udp -j CT --notrack", "raw -A OUTPUT -d 10.9.0.0/16 -j CT --notrack",
       "raw -A OUTPUT -d 10.9.0.0/16 -j CT --zone 3", "raw -A PREROUTING -p tcp --sport 8080 -j CT --notrack",
       "mangle -A OUTPUT -j CT --notrack", "mangle -A OUTPUT -j CT --zone 4",
       "mangle -A OUTPUT -j CONNMARK --save-mark", "mangle -A OUTPUT -j CONNMARK --set-xmark 1/1",
       "nat -A OUTPUT -d 10.0.0.0/8 -p tcp -j REDIRECT --to-ports 15001"});
  std::string all = "\n";
  for (const char* packet : {"out udp 10.1.0.1:53", "out udp 10.1.0.1:54", "out tcp 10.9.0.1:80", "out tcp 10.1.0.1:80",
                             "out tcp 172.16.0.1:8080", "out tcp 10.1.0.1:80 --state invalid"})
    all += way(zones, packet);
  EXPECT_EQ(all, R"(
# out udp 10.1.0.1:53
OUTPUT, out by eth0
  raw OUTPUT 1: yes: tracked in zone 1
  raw OUTPUT 2: yes: no effect: its zone is 1 already
  raw OUTPUT 3: yes: no effect: it is tracked already
  raw OUTPUT 4: no: its destination is 10.1.0.1
  raw OUTPUT 5: no: its destination is 10.1.0.1
  conntrack: a new connection, in zone 1
  mangle OUTPUT 1: yes: no effect: it is tracked already
  mangle OUTPUT 2: yes: no effect: it is tracked already
  mangle OUTPUT 3: yes: its connection is marked 0
  mangle OUTPUT 4: yes: its connection is marked 1
  nat OUTPUT 1: no: it is udp
= leaves the pod by eth0 to 10.1.0.1:53, untouched
# out udp 10.1.0.1:54
OUTPUT, out by eth0
  raw OUTPUT 1: no: its destination port is 54
  raw OUTPUT 2: yes: tracked in zone 2
  raw OUTPUT 3: yes: no effect: it is tracked already
  raw OUTPUT 4: no: its destination is 10.1.0.1
  raw OUTPUT 5: no: its destination is 10.1.0.1
  conntrack: a new connection, in zone 2
  mangle OUTPUT 1: yes: no effect: it is tracked already
  mangle OUTPUT 2: yes: no effect: it is tracked already
  mangle OUTPUT 3: yes: its connection is marked 0
  mangle OUTPUT 4: yes: its connection is marked 1
  nat OUTPUT 1: no: it is udp
= leaves the pod by eth0 to 10.1.0.1:54, untouched
# out tcp 10.9.0.1:80
OUTPUT, out by eth0
  raw OUTPUT 1: no: it is tcp
  raw OUTPUT 2: no: it is tcp
  raw OUTPUT 3: no: it is tcp
  raw OUTPUT 4: yes: exempt from connection tracking
  raw OUTPUT 5: yes: no effect: it is exempt from connection tracking
  conntrack: not tracked
  mangle OUTPUT 1: yes: exempt from connection tracking
  mangle OUTPUT 2: yes: no effect: it is exempt from connection tracking
  mangle OUTPUT 3: yes: no effect: it is not tracked
  mangle OUTPUT 4: yes: no effect: it is not tracked
  nat OUTPUT is skipped: an untracked packet is not translated
= leaves the pod by eth0 to 10.9.0.1:80, untouched; unknown whether replies arrive: a rule exempts them from connection tracking
# out tcp 10.1.0.1:80
OUTPUT, out by eth0
  raw OUTPUT 1: no: it is tcp
  raw OUTPUT 2: no: it is tcp
  raw OUTPUT 3: no: it is tcp
  raw OUTPUT 4: no: its destination is 10.1.0.1
  raw OUTPUT 5: no: its destination is 10.1.0.1
  conntrack: a new connection
  mangle OUTPUT 1: yes: no effect: it is tracked already
  mangle OUTPUT 2: yes: no effect: it is tracked already
  mangle OUTPUT 3: yes: its connection is marked 0
  mangle OUTPUT 4: yes: its connection is marked 1
  nat OUTPUT 1: yes: redirected to 127.0.0.1:15001
  routing again, as the destination changed: out by lo: the destination is the pod itself
PREROUTING, in by lo
  raw PREROUTING 1: no: its source port is one that the kernel chose
  conntrack: tracked already, in OUTPUT
= lands on 127.0.0.1:15001 (Envoy outbound); original destination 10.1.0.1:80
# out tcp 172.16.0.1:8080
OUTPUT, out by eth0
  raw OUTPUT 1: no: it is tcp
  raw OUTPUT 2: no: it is tcp
  raw OUTPUT 3: no: it is tcp
  raw OUTPUT 4: no: its destination is 172.16.0.1
  raw OUTPUT 5: no: its destination is 172.16.0.1
  conntrack: a new connection
  mangle OUTPUT 1: yes: no effect: it is tracked already
  mangle OUTPUT 2: yes: no effect: it is tracked already
  mangle OUTPUT 3: yes: its connection is marked 0
  mangle OUTPUT 4: yes: its connection is marked 1
  nat OUTPUT 1: no: its destination is 172.16.0.1
= leaves the pod by eth0 to 172.16.0.1:8080, untouched; unknown whether replies arrive: a rule exempts them from connection tracking
# out tcp 10.1.0.1:80 --state invalid
OUTPUT, out by eth0
  raw OUTPUT 1: no: it is tcp
  raw OUTPUT 2: no: it is tcp
  raw OUTPUT 3: no: it is tcp
  raw OUTPUT 4: no: its destination is 10.1.0.1
  raw OUTPUT 5: no: its destination is 10.1.0.1
  conntrack: invalid: it belongs to no known connection
  mangle OUTPUT 1: yes: exempt from connection tracking
  mangle OUTPUT 2: yes: no effect: it is exempt from connection tracking
  mangle OUTPUT 3: yes: no effect: it is not tracked
  mangle OUTPUT 4: yes: no effect: it is not tracked
  nat OUTPUT is skipped: an untracked packet is not translated
= leaves the pod by eth0 to 10.1.0.1:80, untouched
)");
}

TEST(Ways, OfMarksThatTakeAnotherRoute) {
  const Live marks = rules_of_others(
      BackendKind::iptables_legacy, Family::ipv4,
      {"mangle -A OUTPUT -d 10.1.0.0/16 -j MARK --set-xmark 1/0xffffffff",
       "mangle -A OUTPUT -d 10.2.0.0/16 -j MARK --set-xmark 2/0xf",
       "mangle -A OUTPUT -d 10.3.0.0/16 -j MARK --set-xmark 3/0xf",
       "mangle -A OUTPUT -d 10.4.0.0/16 -j MARK --set-xmark 4/0",
       "mangle -A OUTPUT -m connmark --mark 5/5 -j CONNMARK --restore-mark",
       "mangle -A OUTPUT -d 10.5.0.0/16 -j CONNMARK --set-xmark 5/7",
       "mangle -A OUTPUT -d 10.6.0.0/16 -j CONNMARK --save-mark", "filter -A OUTPUT -m mark --mark 0x13 -j LOG"});
  const auto rule = [](std::uint32_t mark, PolicyRule::Action action, const char* more) {
    PolicyRule made;
    made.priority = 100 + mark;
    made.mark = mark;
    made.mask = 0xf;
    made.action = action;
    made.table = 200;
    made.more = more;
    return made;
  };
  const Edit edit = [&](PodView& pod) {
    assume_interface(pod, "net1");
    pod.routes.push_back({*AddressRange::parse("0.0.0.0/0"), "net1", Route::Kind::unicast, 200});
    pod.routes.back().other_devices = {"eth0"};
    pod.rules.insert(pod.rules.begin() + 1,
                     {rule(1, PolicyRule::Action::lookup, ""), rule(2, PolicyRule::Action::unreachable, ""),
                      rule(3, PolicyRule::Action::lookup, "uidrange 1-1")});
  };
  std::string all = "\n";
  for (const char* packet : {"out tcp 10.1.0.1:80", "out tcp 10.2.0.1:80", "out tcp 10.3.0.1:80 --mark 0x10",
                             "out tcp 10.4.0.1:80 --mark 16", "out tcp 10.5.0.1:80",
                             "out tcp 10.5.0.1:80 --state established", "out tcp 10.6.0.1:80 --mark 7",
                             "out tcp 10.6.0.1:80 --mark 7 --state established", "out tcp 10.6.0.1:80 --state invalid"})
    all += way(marks, packet, edit);
  EXPECT_EQ(all, R"(
# out tcp 10.1.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  mangle OUTPUT 1: yes: marked 1
  mangle OUTPUT 2: no: its destination is 10.1.0.1
  mangle OUTPUT 3: no: its destination is 10.1.0.1
  mangle OUTPUT 4: no: its destination is 10.1.0.1
  mangle OUTPUT 5: no: its connection has no mark
  mangle OUTPUT 6: no: its destination is 10.1.0.1
  mangle OUTPUT 7: no: its destination is 10.1.0.1
  routing again, as the mark is now 1: out by net1
  filter OUTPUT 1: no: its mark is 1
  but: `ip route default dev net1 table 200` has next hops by other interfaces, too, of which each connection gets one
= leaves the pod by eth0 or net1 to 10.1.0.1:80, untouched
# out tcp 10.2.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  mangle OUTPUT 1: no: its destination is 10.2.0.1
  mangle OUTPUT 2: yes: marked 2
  mangle OUTPUT 3: no: its destination is 10.2.0.1
  mangle OUTPUT 4: no: its destination is 10.2.0.1
  mangle OUTPUT 5: no: its connection has no mark
  mangle OUTPUT 6: no: its destination is 10.2.0.1
  mangle OUTPUT 7: no: its destination is 10.2.0.1
= dropped: the mark is now 2, and there is no route to 10.2.0.1 (ip rule 102: fwmark 0x2/0xf unreachable)
# out tcp 10.3.0.1:80 --mark 0x10
OUTPUT, out by eth0
  conntrack: a new connection
  mangle OUTPUT 1: no: its destination is 10.3.0.1
  mangle OUTPUT 2: no: its destination is 10.3.0.1
  mangle OUTPUT 3: yes: marked 19
  mangle OUTPUT 4: no: its destination is 10.3.0.1
  mangle OUTPUT 5: no: its connection has no mark
  mangle OUTPUT 6: no: its destination is 10.3.0.1
  mangle OUTPUT 7: no: its destination is 10.3.0.1
= unknown: the route to 10.3.0.1: `ip rule 103: fwmark 0x3/0xf uidrange 1-1 lookup 200`
# out tcp 10.4.0.1:80 --mark 16
OUTPUT, out by eth0
  conntrack: a new connection
  mangle OUTPUT 1: no: its destination is 10.4.0.1
  mangle OUTPUT 2: no: its destination is 10.4.0.1
  mangle OUTPUT 3: no: its destination is 10.4.0.1
  mangle OUTPUT 4: yes: marked 20
  mangle OUTPUT 5: no: its connection has no mark
  mangle OUTPUT 6: no: its destination is 10.4.0.1
  mangle OUTPUT 7: no: its destination is 10.4.0.1
  routing again, as the mark is now 20: out by eth0
  filter OUTPUT 1: no: its mark is 20
= leaves the pod by eth0 to 10.4.0.1:80, untouched
# out tcp 10.5.0.1:80
OUTPUT, out by eth0
  conntrack: a new connection
  mangle OUTPUT 1: no: its destination is 10.5.0.1
  mangle OUTPUT 2: no: its destination is 10.5.0.1
  mangle OUTPUT 3: no: its destination is 10.5.0.1
  mangle OUTPUT 4: no: its destination is 10.5.0.1
  mangle OUTPUT 5: no: its connection has no mark
  mangle OUTPUT 6: yes: its connection is marked 5
  mangle OUTPUT 7: no: its destination is 10.5.0.1
  filter OUTPUT 1: no: it has no mark
= leaves the pod by eth0 to 10.5.0.1:80, untouched
# out tcp 10.5.0.1:80 --state established
OUTPUT, out by eth0
  conntrack: an established connection
  mangle OUTPUT 1: no: its destination is 10.5.0.1
  mangle OUTPUT 2: no: its destination is 10.5.0.1
  mangle OUTPUT 3: no: its destination is 10.5.0.1
  mangle OUTPUT 4: no: its destination is 10.5.0.1
  mangle OUTPUT 5: yes: marked 5, as its connection is
  mangle OUTPUT 6: yes: its connection is marked 5
  mangle OUTPUT 7: no: its destination is 10.5.0.1
  routing again, as the mark is now 5: out by eth0
  filter OUTPUT 1: no: its mark is 5
= leaves the pod by eth0 to 10.5.0.1:80, untouched
# out tcp 10.6.0.1:80 --mark 7
OUTPUT, out by eth0
  conntrack: a new connection
  mangle OUTPUT 1: no: its destination is 10.6.0.1
  mangle OUTPUT 2: no: its destination is 10.6.0.1
  mangle OUTPUT 3: no: its destination is 10.6.0.1
  mangle OUTPUT 4: no: its destination is 10.6.0.1
  mangle OUTPUT 5: no: its connection has no mark
  mangle OUTPUT 6: no: its destination is 10.6.0.1
  mangle OUTPUT 7: yes: its connection is marked 7
  filter OUTPUT 1: no: its mark is 7
= leaves the pod by eth0 to 10.6.0.1:80, untouched
# out tcp 10.6.0.1:80 --mark 7 --state established
OUTPUT, out by eth0
  conntrack: an established connection
  mangle OUTPUT 1: no: its destination is 10.6.0.1
  mangle OUTPUT 2: no: its destination is 10.6.0.1
  mangle OUTPUT 3: no: its destination is 10.6.0.1
  mangle OUTPUT 4: no: its destination is 10.6.0.1
  mangle OUTPUT 5: yes: marked 7, as its connection is
  mangle OUTPUT 6: no: its destination is 10.6.0.1
  mangle OUTPUT 7: yes: its connection is marked 7
  filter OUTPUT 1: no: its mark is 7
= leaves the pod by eth0 to 10.6.0.1:80, untouched
# out tcp 10.6.0.1:80 --state invalid
OUTPUT, out by eth0
  conntrack: invalid: it belongs to no known connection
  mangle OUTPUT 1: no: its destination is 10.6.0.1
  mangle OUTPUT 2: no: its destination is 10.6.0.1
  mangle OUTPUT 3: no: its destination is 10.6.0.1
  mangle OUTPUT 4: no: its destination is 10.6.0.1
  mangle OUTPUT 5: no: it belongs to no known connection
  mangle OUTPUT 6: no: its destination is 10.6.0.1
  mangle OUTPUT 7: yes: no effect: it belongs to no known connection
  filter OUTPUT 1: no: it has no mark
= leaves the pod by eth0 to 10.6.0.1:80, untouched
)");
}

TEST(Ways, OfWhatPassesThroughThePodOrNeverGetsIn) {
  const Live live = rules_of_others(BackendKind::iptables_legacy, Family::ipv4,
                                    {"filter -A FORWARD -o lo -j LOG", "filter -A FORWARD -d 10.1.0.0/16 -j DROP",
                                     "filter -A INPUT -p tcp --dport 22 -j REJECT", "filter -A INPUT -j CHAIN",
                                     "filter -A CHAIN -s 10.9.0.0/16 -g OTHER", "filter -A CHAIN -p tcp -j OTHER",
                                     "filter -A CHAIN -j OTHER", "filter -A CHAIN -p tcp --dport 443 -j ACCEPT",
                                     "filter -A OTHER -p udp -j RETURN", "filter -A INPUT -j NFQUEUE --queue-num 1"});
  const Edit edit = [](PodView& pod) {
    assume_interface(pod, "net1");
    pod.interface("net1")->up = false;
    pod.routes.insert(pod.routes.begin(), {{*AddressRange::parse("10.2.0.0/16"), "", Route::Kind::unreachable},
                                           {*AddressRange::parse("10.3.0.0/16"), "eth0", Route::Kind::unknown},
                                           {*AddressRange::parse("10.4.0.0/16"), "net1"}});
  };
  std::string all = "\n";
  for (const char* packet :
       {"in tcp 10.0.0.1:80", "in tcp 10.1.0.1:80", "in tcp 10.2.0.1:80", "in tcp 10.3.0.1:80", "out tcp 10.3.0.1:80",
        "out tcp 10.2.0.1:80", "out tcp 10.4.0.1:80", "in tcp :22", "in tcp :443", "in tcp :443 --from 10.9.0.1",
        "in tcp :80", "in udp :80", "in tcp 10.0.0.1:80 --in-interface eth0 --from 192.0.2.7"})
    all += way(live, packet, edit);
  EXPECT_EQ(all, R"(
# in tcp 10.0.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  routing: 10.0.0.1 is not the pod's
FORWARD, in by eth0, out by eth0
  filter FORWARD 1: no: it goes out by eth0
  filter FORWARD 2: no: its destination is 10.0.0.1
= is not for this pod: goes on by eth0 to 10.0.0.1:80 if the pod forwards, else it is dropped
# in tcp 10.1.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  routing: 10.1.0.1 is not the pod's
FORWARD, in by eth0, out by eth0
  filter FORWARD 1: no: it goes out by eth0
  filter FORWARD 2: yes: dropped
= dropped: by rule 2 of filter FORWARD
# in tcp 10.2.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
  routing: 10.2.0.1 is not the pod's
= dropped: there is no route to 10.2.0.1 (ip route unreachable 10.2.0.0/16 table main)
# in tcp 10.3.0.1:80
PREROUTING, in by eth0
  conntrack: a new connection
= unknown: the route to 10.3.0.1: `ip route 10.3.0.0/16 dev eth0 table main`
# out tcp 10.3.0.1:80
= unknown: the route to 10.3.0.1: `ip route 10.3.0.0/16 dev eth0 table main`
# out tcp 10.2.0.1:80
= never sent: no route to 10.2.0.1 (ip route unreachable 10.2.0.0/16 table main)
# out tcp 10.4.0.1:80
OUTPUT, out by net1
  conntrack: a new connection
= dropped: interface net1 is down
# in tcp :22
PREROUTING, in by eth0
  conntrack: a new connection
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: yes: rejected
= dropped: by rule 1 of filter INPUT (REJECT)
# in tcp :443
PREROUTING, in by eth0
  conntrack: a new connection
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: no: its destination port is 443
  filter INPUT 2: yes: on to CHAIN
    filter CHAIN 1: no: its source is 203.0.113.1
    filter CHAIN 2: yes: on to OTHER
      filter OTHER 1: no: it is tcp
    filter CHAIN 3: yes: on to OTHER: it was asked before, and no rule there decides
    filter CHAIN 4: yes: accepted: no further rule of this table is evaluated
= lands on 192.0.2.2:443 (the app), untouched
# in tcp :443 --from 10.9.0.1
PREROUTING, in by eth0
  conntrack: a new connection
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: no: its destination port is 443
  filter INPUT 2: yes: on to CHAIN
    filter CHAIN 1: yes: on to OTHER
      filter OTHER 1: no: it is tcp
  filter INPUT 3: unknown: what becomes of the packet then is unknown
= unknown: what `-j NFQUEUE --queue-num 1` of rule 3 of filter INPUT does
# in tcp :80
PREROUTING, in by eth0
  conntrack: a new connection
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: no: its destination port is 80
  filter INPUT 2: yes: on to CHAIN
    filter CHAIN 1: no: its source is 203.0.113.1
    filter CHAIN 2: yes: on to OTHER
      filter OTHER 1: no: it is tcp
    filter CHAIN 3: yes: on to OTHER: it was asked before, and no rule there decides
    filter CHAIN 4: no: its destination port is 80
  filter INPUT 3: unknown: what becomes of the packet then is unknown
= unknown: what `-j NFQUEUE --queue-num 1` of rule 3 of filter INPUT does
# in udp :80
PREROUTING, in by eth0
  conntrack: a new connection
  routing: stays here: the destination is the pod itself
INPUT, in by eth0
  filter INPUT 1: no: it is udp
  filter INPUT 2: yes: on to CHAIN
    filter CHAIN 1: no: its source is 203.0.113.1
    filter CHAIN 2: no: it is udp
    filter CHAIN 3: yes: on to OTHER
      filter OTHER 1: yes: back to CHAIN
    filter CHAIN 4: no: it is udp
  filter INPUT 3: unknown: what becomes of the packet then is unknown
= unknown: what `-j NFQUEUE --queue-num 1` of rule 3 of filter INPUT does
# in tcp 10.0.0.1:80 --in-interface eth0 --from 192.0.2.7
PREROUTING, in by eth0
  conntrack: a new connection
  routing: 10.0.0.1 is not the pod's
FORWARD, in by eth0, out by eth0
  filter FORWARD 1: no: it goes out by eth0
  filter FORWARD 2: no: its destination is 10.0.0.1
= is not for this pod: goes on by eth0 to 10.0.0.1:80 if the pod forwards, else it is dropped
)");
}

// A datagram's socket may be connected: the route is looked up again then, with the source address that it has.
TEST(Ways, OfSocketsThatMayBeConnected) {
  const Live nothing = rules_of_others(BackendKind::iptables_legacy, Family::ipv4, {});
  const Edit by_source = [](PodView& pod) {
    assume_interface(pod, "net1");
    pod.routes.push_back({*AddressRange::parse("0.0.0.0/0"), "net1", Route::Kind::unicast, 200});
    PolicyRule rule;
    rule.priority = 100;
    rule.from = AddressRange::parse("192.0.2.2");
    rule.table = 200;
    pod.rules.insert(pod.rules.begin() + 1, rule);
  };
  std::string all = "\n";
  for (const char* packet :
       {"out udp 10.1.0.1:80", "out tcp 10.1.0.1:80", "out udp 10.1.0.1:80 --from 192.0.2.2", "out icmp 10.1.0.1"})
    all += way(nothing, packet, by_source);
  EXPECT_EQ(all, R"(
# out udp 10.1.0.1:80
= unknown: whether its socket is connected (if it is not: leaves the pod by eth0 to 10.1.0.1:80, untouched; if it is: leaves the pod by net1 to 10.1.0.1:80, untouched)
# out tcp 10.1.0.1:80
OUTPUT, out by net1
  conntrack: off, as no rule needs it
= leaves the pod by net1 to 10.1.0.1:80, untouched
# out udp 10.1.0.1:80 --from 192.0.2.2
OUTPUT, out by net1
  conntrack: off, as no rule needs it
= leaves the pod by net1 to 10.1.0.1:80, untouched
# out icmp 10.1.0.1
= unknown: whether its socket is connected (if it is not: leaves the pod by eth0 to 10.1.0.1, untouched; if it is: leaves the pod by net1 to 10.1.0.1, untouched)
)");
}

// A datagram's socket may be bound to no address: rules by source see none when it answers.
TEST(Ways, OfAnswersOfSocketsThatMayBeBound) {
  const Live nothing = rules_of_others(BackendKind::iptables_legacy, Family::ipv4, {});
  const Edit by_source = [](PodView& pod) {
    PolicyRule rule;
    rule.priority = 100;
    rule.from = AddressRange::parse("192.0.2.2");
    rule.action = PolicyRule::Action::prohibit;
    pod.rules.insert(pod.rules.begin() + 1, rule);
  };
  std::string all = "\n";
  for (const char* packet : {"in udp :80", "in tcp :80"}) all += way(nothing, packet, by_source);
  EXPECT_EQ(all, R"(
# in udp :80
PREROUTING, in by eth0
  conntrack: off, as no rule needs it
  routing: stays here: the destination is the pod itself
= lands on 192.0.2.2:80 (the app), untouched; unknown whether replies arrive: whether its socket is bound to an address (if it is not: they arrive; if it is: never sent: no route to 203.0.113.1 (ip rule 100: from 192.0.2.2/32 prohibit))
# in tcp :80
PREROUTING, in by eth0
  conntrack: off, as no rule needs it
  routing: stays here: the destination is the pod itself
= lands on 192.0.2.2:80 (the app), untouched; replies are lost: never sent: no route to 203.0.113.1 (ip rule 100: from 192.0.2.2/32 prohibit)
)");
}

// Ten times something that is unknown, and each time another mark: a thousand ways.
TEST(Ways, ThatAreMoreThanAreFollowed) {
  const auto end = [](int unknowns) {
    Live live = rules_of_others(BackendKind::iptables_legacy, Family::ipv4, {});
    std::vector<std::pair<std::vector<Match>, Target>> rules;
    for (int i = 0; i < unknowns; ++i)
      rules.push_back({{UnknownMatch{fmt::format("-m bpf {}", i)}}, SetMark{1U << i, 1U << i}});
    rules.push_back({{words::mark((1U << unknowns) - 1)}, Verdict::drop});
    live.chains = {chain(Family::ipv4, Table::mangle, "OUTPUT", false, rules)};
    const Outcome outcome = explain(packet_of("out tcp 10.1.0.1:80"), assumed_pod(planned("")), {&live, 1}).outcome;
    EXPECT_EQ(outcome.at.text(), "10.1.0.1:80");
    return sentence(outcome);
  };
  EXPECT_EQ(
      end(2),
      R"(unknown: whether `-m bpf 0` of rule 1 of mangle OUTPUT holds (if it does not: leaves the pod by eth0 to 10.1.0.1:80, untouched; if it does: dropped: by rule 3 of mangle OUTPUT))");
  EXPECT_EQ(end(10), "unknown: where it ends: more than 500 possible paths");
}

}  // namespace
}  // namespace sidetrack
