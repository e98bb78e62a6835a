// SPDX-License-Identifier: GPL-2.0-or-later
// Rules of others on the real kernel, loaded by the tools of others, as the backends read them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "mesh/istio_rules.h"
#include "rule/iptables.h"
#include "support/backends.h"
#include "support/kernel_test.h"
#include "support/namespace.h"

namespace sidetrack::netns {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Read : public KernelTest {
 protected:
  // The rules of a chain that has no others, in the words of the model, each with the families it is for if they are
  // not all of the chain's.
  static std::vector<std::string> rules(const LiveChain& chain) {
    std::vector<std::string> lines;
    for (const LiveRule& live : chain.rules) {
      const std::string families = live.rule.families == chain.families ? "" : names(live.rule.families) + " ";
      lines.push_back(families + iptables_words(live.rule).substr(("-A " + chain.name + " ").size() - 1));
      if (lines.back().starts_with(families + " ")) lines.back().erase(families.size(), 1);
    }
    return lines;
  }
  static nft::LiveNfTables read(const Namespace& space) {
    return space.run([] { return nft::NfTables(istio_rules).read(); });
  }
  static Live legacy(const Namespace& space) {
    return space.run([] { return open_iptables_legacy({})->read(); });
  }
  static const LiveChain& chain(const Live& live, const std::string& table, const std::string& name) {
    for (const LiveChain& each : live.chains) {
      if (each.table_name == table && each.name == name) return each;
    }
    throw std::runtime_error("no chain " + table + " " + name);
  }
  // What one rule of nft in `table inet t { chain c … }` is read as.
  static std::vector<std::string> of_nft(const std::string& rule, const std::string& before = "") {
    const Namespace space;
    space.must({"nft", "-f", "-"},
               "table inet t {\n" + before +
                   "\nchain c { type filter hook output priority 0; }\nchain d { }\n}\nadd rule inet t c " + rule +
                   "\n");
    return rules(chain(read(space).nftables, "inet t", "c"));
  }
};

struct Case {
  const char* nft;
  std::vector<std::string> read;
};

TEST_F(Read, WhatNftRulesSay) {
  const Case cases[] = {
      {"tcp dport 80 accept", {"-p tcp --dport 80 -j ACCEPT"}},
      {"tcp dport >= 1024 accept", {"-p tcp --dport 1024:65535 -j ACCEPT"}},
      {"tcp dport < 1024 drop", {"-p tcp --dport 0:1023 -j DROP"}},
      {"tcp dport > 1024 drop", {"-p tcp --dport 1025:65535 -j DROP"}},
      {"udp sport <= 53 drop", {"-p udp --sport 0:53 -j DROP"}},
      {"tcp dport 1000-2000 drop", {"-p tcp --dport 1000:2000 -j DROP"}},
      {"tcp dport != 1000-2000 drop", {"-p tcp ! --dport 1000:2000 -j DROP"}},
      {"tcp dport { 80, 443, 1000-2000 } drop", {"-p tcp -m multiport --dports 80,443,1000:2000 -j DROP"}},
      {"tcp sport 5 tcp dport 6 drop", {"-p tcp --sport 5 --dport 6 -j DROP"}},
      {"ip saddr 10.0.0.1 ip daddr 10.0.0.2 drop", {"ipv4 -s 10.0.0.1/32 -d 10.0.0.2/32 -j DROP"}},
      {"ip daddr 10.0.0.0/8 drop", {"ipv4 -d 10.0.0.0/8 -j DROP"}},
      {"ip daddr 10.0.0.0/12 drop", {"ipv4 -d 10.0.0.0/12 -j DROP"}},
      {"ip daddr >= 10.0.0.5 drop", {"ipv4 -d 10.0.0.5-255.255.255.255 -j DROP"}},
      {"ip6 daddr fd00::/8 drop", {"ipv6 -d fd00::/8 -j DROP"}},
      {"ip6 saddr != { fd00::1, fd00::8-fd00::f } drop", {"ipv6 ! -s fd00::1/128,fd00::8/125 -j DROP"}},
      {"meta l4proto { tcp, udp } th dport 53 drop", {"-p tcp --dport 53 -j DROP", "-p udp --dport 53 -j DROP"}},
      {"meta l4proto != { tcp, udp } drop", {"! -p tcp ! -p udp -j DROP"}},
      {"meta l4proto 47 drop", {"-p 47 -j DROP"}},
      {"ip protocol tcp drop", {"ipv4 -p tcp -j DROP"}},
      {"meta nfproto ipv6 drop", {"ipv6 -j DROP"}},
      {"meta protocol ip drop", {"ipv4 -j DROP"}},
      {"oifname \"eth0\" drop", {"-o eth0 -j DROP"}},
      {"oifname \"eth*\" drop", {"-o eth+ -j DROP"}},
      {"oifname != { \"lo\", \"eth1\" } drop", {"! -o eth1 ! -o lo -j DROP"}},
      {"oif lo accept", {"-o lo -j ACCEPT"}},
      {"meta mark 5 drop", {"-m mark --mark 5 -j DROP"}},
      {"meta mark & 0xff == 5 drop", {"-m mark --mark 0x5/0xff -j DROP"}},
      {"meta mark and 0xff != 5 drop", {"-m mark ! --mark 0x5/0xff -j DROP"}},
      {"ct mark 5 drop", {"-m connmark --mark 5 -j DROP"}},
      {"meta skuid 1000-2000 drop", {"-m owner --uid-owner 1000-2000 -j DROP"}},
      {"meta skgid != 5 drop", {"-m owner ! --gid-owner 5 -j DROP"}},
      {"meta skuid < 1000 drop", {"-m owner --uid-owner 0-999 -j DROP"}},
      {"tcp flags syn drop", {"-p tcp ! --tcp-flags SYN NONE -j DROP"}},
      {"tcp flags & (fin | syn | rst | ack) == syn drop", {"-p tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP"}},
      {"ct state established,related accept", {"-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"}},
      {"ct direction reply drop", {"-m conntrack --ctdir REPLY -j DROP"}},
      {"ct direction != reply drop", {"-m conntrack --ctdir ORIGINAL -j DROP"}},
      {"ct state != new drop", {"-m conntrack --ctstate INVALID,RELATED,ESTABLISHED,UNTRACKED -j DROP"}},
      {"ct state vmap { established : accept, invalid : drop }",
       {"-m conntrack --ctstate INVALID -j DROP", "-m conntrack --ctstate ESTABLISHED -j ACCEPT"}},
      {"tcp dport vmap { 22 : accept, 80 : jump d }", {"-p tcp --dport 22 -j ACCEPT", "-p tcp --dport 80 -j d"}},
      {"ip daddr . tcp dport { 10.0.0.1 . 80, 10.0.0.2 . 443 } drop",
       {"ipv4 -p tcp -d 10.0.0.1/32 --dport 80 -j DROP", "ipv4 -p tcp -d 10.0.0.2/32 --dport 443 -j DROP"}},
      {"ip daddr . tcp dport { 10.0.0.0/8 . 80-90 } drop", {"ipv4 -p tcp -d 10.0.0.0/8 --dport 80:90 -j DROP"}},
      {"meta mark set 7 accept", {"-j MARK --set-mark 7", "-j ACCEPT"}},
      {"meta mark set meta mark & 0xfffffff0 ^ 0x3", {"-j MARK --set-xmark 0x3/0xf"}},
      {"meta mark set ct mark", {"-j CONNMARK --restore-mark"}},
      {"ct mark set 9", {"-j CONNMARK --set-xmark 0x9/0xffffffff"}},
      {"reject", {"reject with icmpx port-unreachable"}},
      {"ip daddr 10.0.0.1 reject with icmp host-prohibited", {"ipv4 -d 10.0.0.1/32 reject with icmp host-prohibited"}},
      {"ip6 daddr fd00::1 reject with icmpv6 no-route", {"ipv6 -d fd00::1/128 reject with icmpv6 no-route"}},
      {"meta l4proto tcp reject with tcp reset", {"-p tcp reject with tcp reset"}},
      {"ct mark set meta mark & 0xff", {"-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xffffffff"}},
      {"goto d", {"-g d"}},
      {"counter", {""}},
      {"return", {"-j RETURN"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.nft);
    std::vector<std::string> read = of_nft(each.nft);
    std::ranges::sort(read);
    std::vector<std::string> expected = each.read;
    std::ranges::sort(expected);
    EXPECT_EQ(read, expected);
  }
}

// What the model has no words for is there all the same, and said to be unknown.
TEST_F(Read, WhatIsNotUnderstoodIsOpaque) {
  const char* const rules_of_others[] = {
      "limit rate 5/second accept",
      "ip daddr & 255.0.255.0 == 10.0.1.0 drop",
      "tcp dport & 1 == 1 drop",
      "meta mark > 5 drop",
      "numgen random mod 2 == 0 drop",
      "ct original zone 5 drop",
      "meta pkttype broadcast drop",
      "meta length > 100 drop",
      "ip ttl 64 drop",
      "icmp type echo-request drop",
      "quota over 10 kbytes drop",
      "meta oiftype loopback drop",
      "th dport 53 meta mark > 1 drop",
      "socket transparent 1 drop",
      "ct expiration 10s drop",
      "meta mark set numgen inc mod 4",
      "ip daddr . tcp dport != { 10.0.0.1 . 80 } drop",
      "ip ttl set 5",
      "meta cgroup 5 drop",
  };
  for (const char* each : rules_of_others) {
    SCOPED_TRACE(each);
    const Namespace space;
    space.must(
        {"nft", "-f", "-"},
        fmt::format("table inet t {{\nchain c {{ type filter hook output priority 0; }}\n}}\nadd rule inet t c {}\n",
                    each));
    const Live live = read(space).nftables;
    const LiveChain& in = chain(live, "inet t", "c");
    ASSERT_FALSE(in.rules.empty());
    EXPECT_TRUE(std::ranges::any_of(in.rules, [](const LiveRule& rule) { return !is_understood(rule.rule); }))
        << iptables_words(in.rules.front().rule);
  }
}

TEST_F(Read, StatementsBehindEachOtherAreRulesBehindEachOther) {
  // What was matched before the mark is set holds after it.
  EXPECT_THAT(of_nft("tcp dport 80 meta mark 1 meta mark set 2 accept"),
              ElementsAre("-p tcp --dport 80 -m mark --mark 1 -j MARK --set-mark 2",
                          "-p tcp --dport 80 -m mark --mark 1 -j ACCEPT"));
  EXPECT_THAT(of_nft("meta mark set 2 meta mark 2 accept"),
              ElementsAre("-j MARK --set-mark 2", "-m mark --mark 2 -j ACCEPT"));
  const auto logged = of_nft("tcp dport 80 log prefix \"x\" drop");
  ASSERT_EQ(logged.size(), 2U);
  EXPECT_THAT(logged[0], HasSubstr("log"));
  EXPECT_EQ(logged[1], "-p tcp --dport 80 -j DROP");
}

TEST_F(Read, PortsWithoutAProtocol) {
  EXPECT_THAT(of_nft("@th,16,16 53 drop"), ElementsAre("-p tcp --dport 53 -j DROP", "-p udp --dport 53 -j DROP",
                                                       "! -p tcp ! -p udp ports of any protocol -j DROP"));
}

TEST_F(Read, NamedSets) {
  EXPECT_THAT(of_nft("ip daddr @s drop", "set s { type ipv4_addr; }"), ElementsAre(HasSubstr("@s is empty")));
  EXPECT_THAT(of_nft("ip daddr @s drop", "set s { type ipv4_addr; elements = { 10.0.0.1 } }"),
              ElementsAre("ipv4 -d 10.0.0.1/32 -j DROP"));
  EXPECT_THAT(of_nft("ip daddr @s drop", "set s { type ipv4_addr; timeout 1h; elements = { 10.0.0.1 } }"),
              ElementsAre(HasSubstr("@s: its elements expire")));
  EXPECT_THAT(
      of_nft("ip daddr @s drop", "set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.168.0.1 } }"),
      ElementsAre("ipv4 -d 10.0.0.0/8,192.168.0.1/32 -j DROP"));
}

// What packets put into it is another thing in the next moment.
TEST_F(Read, SetsThatChangeByThemselves) {
  for (const char* flags : {"flags dynamic;", "flags timeout;", "timeout 1h;", "flags dynamic, timeout;"})
    EXPECT_THAT(of_nft("ip daddr @s drop", fmt::format("set s {{ type ipv4_addr; {} }}", flags)),
                ElementsAre("ipv4 @s: packets and time change what it holds -j DROP"))
        << flags;
}

// A table of many chains is asked chain by chain.
TEST_F(Read, ManyChains) {
  const Namespace space;
  for (const unsigned count : {2U, 63U, 64U, 70U}) {
    std::string script = "table inet t\ndelete table inet t\ntable inet t {\n";
    for (unsigned i = 0; i < count; ++i)
      script += fmt::format("chain c{} {{ meta mark {} accept; meta mark {} drop; }}\n", i, i, i + 1000);
    space.must({"nft", "-f", "-"}, script + "chain empty { }\n}\n");
    const Live live = read(space).nftables;
    ASSERT_EQ(live.chains.size(), count + 1);
    for (unsigned i = 0; i < count; ++i) {
      EXPECT_THAT(rules(chain(live, "inet t", fmt::format("c{}", i))),
                  ElementsAre(fmt::format("-m mark --mark {} -j ACCEPT", i),
                              fmt::format("-m mark --mark {} -j DROP", i + 1000)));
    }
    EXPECT_THAT(rules(chain(live, "inet t", "empty")), IsEmpty());
  }
}

// Whether a rule looks them up or not.
TEST_F(Read, WhereTheMapsOfATableLead) {
  const Namespace space;
  space.must({"nft", "-f", "-"}, R"(
table inet t {
  map unused { type inet_service : verdict; elements = { 80 : jump a, 81 : goto b, 82 : jump a, 83 : drop }; }
  map rest { type inet_service : verdict; elements = { * : jump b }; }
  map numbers { type inet_service : mark; elements = { 80 : 5 }; }
  set ports { type inet_service; elements = { 80 }; }
  chain a { }
  chain b { }
  chain c { tcp dport vmap { 90 : jump b } ; }
}
table inet plain {
  chain a { tcp dport { 80, 81 } accept; }
}
)");
  const auto tables = read(space).nftables.tables;
  ASSERT_EQ(tables.size(), 2U);
  std::vector<std::string> jumps;
  for (const MapJump& each : tables[0].jumps) {
    if (!each.map.starts_with("__")) jumps.push_back(each.map + " " + each.chain);
  }
  EXPECT_THAT(jumps, ::testing::UnorderedElementsAre("unused a", "unused b", "rest b"));
  EXPECT_EQ(tables[0].jumps.size(), 4U);
  EXPECT_TRUE(tables[0].other_objects);
  EXPECT_THAT(tables[1].jumps, IsEmpty());
  EXPECT_FALSE(tables[1].other_objects);
}

// A counter or a comment decides nothing.
TEST_F(Read, ElementsOfSets) {
  const auto dropped = [](const std::string& rule, const std::string& set) {
    return of_nft(rule + " drop", "set s { type " + set + " }");
  };
  const auto addresses = [&](const std::string& more) { return dropped("ip daddr @s", "ipv4_addr; " + more); };
  EXPECT_THAT(addresses("counter; elements = { 10.0.0.1, 10.0.0.3 };"),
              ElementsAre("ipv4 -d 10.0.0.1/32,10.0.0.3/32 -j DROP"));
  EXPECT_THAT(addresses("elements = { 10.0.0.4, 10.0.0.2, 10.0.0.5, 10.0.0.1, 10.0.0.6, 10.0.0.3 };"),
              ElementsAre("ipv4 -d 10.0.0.1/32,10.0.0.2/32,10.0.0.3/32,10.0.0.4/32,10.0.0.5/32,10.0.0.6/32 -j DROP"));
  EXPECT_THAT(addresses("elements = { 10.0.0.1 comment \"a\" };"), ElementsAre("ipv4 -d 10.0.0.1/32 -j DROP"));
  EXPECT_THAT(addresses("limit rate 1/second; elements = { 10.0.0.1 };"),
              ElementsAre(HasSubstr("@s: its elements have conditions")));
  EXPECT_THAT(addresses("counter; limit rate 1/second; elements = { 10.0.0.1 };"),
              ElementsAre(HasSubstr("@s: its elements have conditions")));
  EXPECT_THAT(addresses("limit rate 1/second; quota over 100 bytes; elements = { 10.0.0.1 };"),
              ElementsAre(HasSubstr("@s: its elements have conditions")));
  EXPECT_THAT(addresses("flags timeout; elements = { 10.0.0.1 timeout 1h };"),
              ElementsAre(HasSubstr("@s: its elements expire")));
  EXPECT_THAT(addresses("flags interval; elements = { 10.0.0.1-10.0.0.255, 10.0.1.0/24, 240.0.0.0/4 };"),
              ElementsAre("ipv4 -d 10.0.0.1-10.0.0.255,10.0.1.0/24,240.0.0.0/4 -j DROP"));
  EXPECT_THAT(addresses("elements = { * };"), ElementsAre("ipv4 -j DROP"));
  EXPECT_THAT(dropped("tcp dport @s", "inet_service; flags interval; elements = { 0-79, 81, 65535 };"),
              ElementsAre("-p tcp -m multiport --dports 0:79,81,65535 -j DROP"));
  EXPECT_THAT(dropped("ip daddr . tcp dport @s",
                      "ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 80-90 };"),
              ElementsAre("ipv4 -p tcp -d 10.0.0.0/8 --dport 80:90 -j DROP"));
  EXPECT_THAT(
      of_nft("ip daddr vmap @m", "map m { type ipv4_addr : verdict; elements = { * : drop, 10.0.0.1 : accept }; }"),
      ElementsAre("ipv4 -d 10.0.0.1/32 -j ACCEPT", "ipv4 -j DROP"));
}

// Where no socket takes the packet, it goes on: that is TPROXY only where the next rule drops it.
TEST_F(Read, TproxyWithoutADropBehindIt) {
  const Namespace space;
  space.must({"nft", "-f", "-"}, R"(
table inet t {
  chain c {
    type filter hook prerouting priority mangle
    tcp dport 80 tproxy to :15001 accept
    tcp dport 80 drop
    tcp dport 81 tproxy to :15002 accept
    tcp dport 82 drop
    tcp dport 83 tproxy to :15003 accept
    tcp dport 83 accept
    tcp dport 84 tproxy to :15004
    tcp dport 85 tproxy to :15005 accept
  }
}
)");
  EXPECT_THAT(rules(chain(read(space).nftables, "inet t", "c")),
              ElementsAre("-p tcp --dport 80 -j TPROXY --tproxy-mark 0/0x0 --on-port 15001",
                          "-p tcp --dport 81 tproxy to :15002, or else pass", "-p tcp --dport 82 -j DROP",
                          "-p tcp --dport 83 tproxy to :15003, or else pass", "-p tcp --dport 83 -j ACCEPT",
                          "-p tcp --dport 84 tproxy to :15004 without accept",
                          "-p tcp --dport 85 tproxy to :15005, or else pass"));
}

TEST_F(Read, AChainOfSeveralDevicesIsOneOfEach) {
  const Namespace space;
  space.must({"sh", "-ec", "ip link add eth0 type veth peer name eth1"});
  space.must({"nft", "-f", "-"}, R"(
table netdev n {
  chain c {
    type filter hook ingress devices = { lo, eth0, eth1 } priority 5; policy drop
    ip daddr 10.0.0.1 accept
  }
}
)");
  std::vector<std::string> devices;
  for (const LiveChain& each : read(space).nftables.chains) {
    EXPECT_EQ(each.hook->hook, Hook::ingress);
    EXPECT_EQ(each.policy, Verdict::drop);
    EXPECT_THAT(rules(each), ElementsAre("ipv4 -d 10.0.0.1/32 -j ACCEPT"));
    devices.push_back(each.hook->device);
  }
  EXPECT_THAT(devices, ::testing::UnorderedElementsAre("lo", "eth0", "eth1"));
}

// Of a map the keys alone count where a rule asks whether something is in it; what it gives has no words.
TEST_F(Read, MapsOfOtherThings) {
  EXPECT_THAT(
      of_nft("ip daddr @m drop", "counter a { }\nmap m { type ipv4_addr : counter; elements = { 10.0.0.1 : \"a\" } }"),
      ElementsAre(HasSubstr("@m: its elements have the attribute ")));
  EXPECT_THAT(of_nft("ip daddr @m drop", "map m { type ipv4_addr : mark; elements = { 10.0.0.1 : 5 } }"),
              ElementsAre("ipv4 -d 10.0.0.1/32 -j DROP"));
  const auto set = of_nft("meta mark set tcp dport map { 80 : 5, 81 : 6 } accept");
  ASSERT_EQ(set.size(), 1U);
  EXPECT_THAT(set.front(), HasSubstr("-p tcp -m multiport --dports 80,81 meta mark set lookup ["));
}

TEST_F(Read, TablesOfOthersWithHooksPoliciesAndFlags) {
  const Namespace space;
  space.must({"nft", "-f", "-"}, R"(
table inet f {
  chain o { type filter hook output priority -7; policy drop; tcp dport 80 accept; }
  chain i { type filter hook input priority 3; }
}
table ip n {
  chain o { type nat hook output priority -101; tcp dport 80 dnat to 10.0.0.1:81; }
}
table ip6 m {
  chain o { type route hook output priority -150; }
}
table netdev d {
  chain in { type filter hook ingress device "lo" priority 5; ip daddr 10.0.0.1 drop; }
}
table inet idle {
  flags dormant;
  chain o { type filter hook output priority 0; policy drop; }
}
table ip filter {
  chain FORWARD { type filter hook forward priority 0; policy drop; }
}
)");
  const nft::LiveNfTables both = read(space);
  const LiveChain& output = chain(both.nftables, "inet f", "o");
  EXPECT_EQ(output.hook, (HookPoint{Hook::output, -7, ChainType::filter, {}}));
  EXPECT_EQ(output.policy, Verdict::drop);
  EXPECT_FALSE(output.ours);
  EXPECT_EQ(output.table, Table::other);
  EXPECT_EQ(chain(both.nftables, "inet f", "i").policy, Verdict::accept);
  const LiveChain& nat = chain(both.nftables, "ip n", "o");
  EXPECT_EQ(nat.families, Families(Family::ipv4));
  const auto& target = std::get<Nat>(nat.rules.at(0).rule.target);
  EXPECT_EQ(target.end, End::destination);
  EXPECT_EQ(target.addresses, AddressRange::parse("10.0.0.1"));
  EXPECT_EQ(target.ports, (PortRange{81, 81}));
  EXPECT_EQ(chain(both.nftables, "ip6 m", "o").hook, (HookPoint{Hook::output, -150, ChainType::route, {}}));
  const LiveChain& ingress = chain(both.nftables, "netdev d", "in");
  EXPECT_EQ(ingress.hook, (HookPoint{Hook::ingress, 5, ChainType::filter, "lo"}));
  EXPECT_THAT(rules(ingress), ElementsAre("ipv4 -d 10.0.0.1/32 -j DROP"));
  EXPECT_TRUE(chain(both.nftables, "inet idle", "o").dormant);
  EXPECT_THAT(both.nftables.tables, Contains(LiveTable{"inet idle", true, false, 0}));
  EXPECT_THAT(both.nftables.own_tables, IsEmpty());
  const LiveChain& forward = chain(both.iptables_nft, "ip filter", "FORWARD");
  EXPECT_EQ(forward.table, Table::filter);
  EXPECT_EQ(forward.policy, Verdict::drop);
  EXPECT_THAT(both.iptables_nft.own_tables, IsEmpty());
}

// The same rules by both kinds of iptables are read as the same.
TEST_F(Read, WhatIptablesRulesSay) {
  const Case cases[] = {
      {"-p tcp -m tcp --dport 80 -j ACCEPT", {"-p tcp --dport 80 -j ACCEPT"}},
      {"-p tcp -m multiport --dports 80 -j ACCEPT", {"-p tcp --dport 80 -j ACCEPT"}},
      {"-m owner --uid-owner 5 --gid-owner 6 -j DROP", {"-m owner --uid-owner 5 -m owner --gid-owner 6 -j DROP"}},
      {"-m state --state NEW -j DROP", {"-m conntrack --ctstate NEW -j DROP"}},
      {"-m iprange --dst-range 10.0.0.1-10.0.0.9 -j DROP", {"-d 10.0.0.1-10.0.0.9 -j DROP"}},
      {"-p 47 -j DROP", {"-p 47 -j DROP"}},
      {"-o eth+ -j DROP", {"-o eth+ -j DROP"}},
      {"-d 10.0.0.0/255.0.255.0 -j DROP", {}},
      {"-j CONNMARK --set-xmark 0x5/0xf", {"-j CONNMARK --set-xmark 0x5/0xf"}},
      {"-m comment --comment x -j DROP", {"-m comment --comment x -j DROP"}},
      {"-m statistic --mode nth --every 2 --packet 0 -j DROP", {}},
      {"-p tcp --syn -j DROP", {"-p tcp --tcp-flags FIN,SYN,RST,ACK SYN -j DROP"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.nft);
    for (const char* tool : {"iptables-legacy-restore", "iptables-nft-restore"}) {
      SCOPED_TRACE(tool);
      const Namespace space;
      space.must({tool}, fmt::format("*filter\n:OUTPUT DROP\n-A OUTPUT {}\nCOMMIT\n", each.nft));
      const bool is_legacy = std::string_view(tool) == "iptables-legacy-restore";
      const Live live = is_legacy ? legacy(space) : read(space).iptables_nft;
      const LiveChain& output = chain(live, is_legacy ? "filter" : "ip filter", "OUTPUT");
      EXPECT_EQ(output.policy, Verdict::drop);
      EXPECT_EQ(output.table, Table::filter);
      ASSERT_EQ(output.rules.size(), 1U);
      if (each.read.empty()) {
        EXPECT_FALSE(is_understood(output.rules.front().rule)) << iptables_words(output.rules.front().rule);
      } else {
        EXPECT_EQ(rules(output), each.read);
      }
    }
  }
}

// Rules for fragments, and one that no packet meets, which the tools write each in its own way.
TEST_F(Read, UnusualHeadersOfIptables) {
  const Namespace space;
  for (const char* of : {"! -i +", "-f", "! -f", "-i e", "-i eth0.100+", "-s 10.0.0.1/255.0.0.255", "! -p 47"}) {
    for (const std::string tool : {"iptables-legacy", "iptables-nft"})
      space.must({"sh", "-ec", tool + " -A INPUT " + of + " -j DROP"});
  }
  const nft::LiveNfTables both = read(space);
  EXPECT_THAT(rules(chain(legacy(space), "filter", "INPUT")),
              ElementsAre("! -i + -j DROP", "-f -j DROP", "! -f -j DROP", "-i e -j DROP", "-i eth0.100+ -j DROP",
                          "-s 10.0.0.1/255.0.0.255 -j DROP", "! -p 47 -j DROP"));
  const LiveChain& nft = chain(both.iptables_nft, "ip filter", "INPUT");
  std::vector<bool> understood;
  for (const LiveRule& each : nft.rules) understood.push_back(is_understood(each.rule));
  EXPECT_THAT(understood, ElementsAre(true, false, false, true, true, false, true));
  EXPECT_THAT(rules(nft), ::testing::IsSupersetOf({"-i e -j DROP", "-i eth0.100+ -j DROP", "! -p 47 -j DROP"}));
}

TEST_F(Read, NothingIsNothing) {
  const Namespace space;
  const nft::LiveNfTables both = read(space);
  EXPECT_THAT(both.nftables.chains, IsEmpty());
  EXPECT_THAT(both.iptables_nft.chains, IsEmpty());
}

}  // namespace
}  // namespace sidetrack::netns
