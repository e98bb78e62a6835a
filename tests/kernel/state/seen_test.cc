// SPDX-License-Identifier: GPL-2.0-or-later
// What others have that decides about traffic, beside rules that are as asked: rules that cannot be read, rules for
// answers and later packets, routes, the loopback interface, neighbours, rules in our own chains. It is seen by every
// command, named, and never taken for ours.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <regex>
#include <span>

#include "support/listing.h"
#include "support/quiet_pod.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
const Words net_admin_alone{"setpriv", "--bounding-set", "-all,+net_admin"};

const std::string by_nftables = "--backend nftables --ip-families ipv4 -i * -b *";

struct SeenEdit {
  const char* edit;
  const char* undo;
  const char* named;      // by verify, diff and apply
  const char* packet;     // a packet that it is about
  const char* explained;  // of which explain says this
};

struct Seen : KernelTest {
  QuietPod pod{Families::both()};

  // `line` begins with the command; those that take the options of the rules are given them.
  [[nodiscard]] Output run(const std::string& line, const Words& before = {}) const {
    return pod.run(before + words("sidetrack " + line));
  }
  [[nodiscard]] std::string explained(const std::string& packet, const Words& before = {}) const {
    const Output output = run("explain --brief " + packet, before);
    EXPECT_EQ(output.exit_code, 0) << packet << output.err;
    return output.out;
  }
  void shell(const std::string& commands) const { pod.ns().must({"sh", "-ec", commands}); }
  // Without counters: the kernel itself sends packets of IPv6.
  [[nodiscard]] std::string listed() const {
    static const std::regex counters(R"(\[\d+:\d+\]|packets \d+ bytes \d+)");
    return std::regex_replace(listing(pod.ns()), counters, "");
  }

  void expect_as_requested(const std::string& options) const {
    const std::string before = listed();
    for (const char* command : {"verify ", "diff ", "apply "}) {
      const Output output = run(command + options);
      EXPECT_EQ(output.exit_code, 0) << command << output.out << output.err;
      EXPECT_THAT(output.err, Not(HasSubstr("warning"))) << command;
    }
    EXPECT_EQ(listed(), before);
  }

  // The rules are as asked, and something that is not ours to change is in the way.
  void expect_in_the_way(const std::string& options, const std::string& named) const {
    const std::string before = listed();
    for (const char* command : {"verify ", "diff "}) {
      const Output output = run(command + options);
      EXPECT_EQ(output.exit_code, 6) << command << output.out << output.err;
      EXPECT_THAT(output.out + output.err, HasSubstr(named)) << command;
    }
    const Output strict = run("apply --strict " + options);
    EXPECT_EQ(strict.exit_code, 6) << strict.err;
    EXPECT_THAT(strict.err, AllOf(HasSubstr(named), HasSubstr("nothing was changed")));
    const Output applied = run("apply " + options);
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_THAT(applied.err, AllOf(HasSubstr("warning: "), HasSubstr(named)));
    EXPECT_EQ(listed(), before);
  }

  void expect_each_in_the_way(std::span<const SeenEdit> edits) const {
    ASSERT_EQ(run("apply " + by_nftables).exit_code, 0);
    for (const auto& [edit, undo, named, packet, says] : edits) {
      SCOPED_TRACE(edit);
      shell(edit);
      expect_in_the_way(by_nftables, named);
      EXPECT_THAT(explained(packet), HasSubstr(says));
      shell(undo);
      expect_as_requested(by_nftables);
    }
  }
};

TEST_F(Seen, LegacyRulesThatCannotBeReadMayDoAnything) {
  shell("iptables-legacy -P OUTPUT DROP");
  const std::string before = listed();
  const std::string options = "--ip-families ipv4 -i * -b *";
  const Output strict = run("apply --strict " + options, net_admin_alone);
  EXPECT_EQ(strict.exit_code, 6) << strict.err;
  EXPECT_THAT(strict.err, HasSubstr("CAP_NET_RAW"));
  EXPECT_EQ(listed(), before);

  const Output applied = run("apply " + options, net_admin_alone);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, AllOf(HasSubstr("warning: "), HasSubstr("CAP_NET_RAW")));
  for (const char* command : {"verify ", "diff "}) {
    const Output output = run(command + options, net_admin_alone);
    EXPECT_EQ(output.exit_code, 4) << command << output.out << output.err;
    EXPECT_THAT(output.err, HasSubstr("CAP_NET_RAW")) << command;
  }
  EXPECT_THAT(explained("out tcp 10.96.0.10:443", net_admin_alone),
              AllOf(StartsWith("unknown: "), HasSubstr("CAP_NET_RAW")));
  EXPECT_THAT(explained("out tcp 10.96.0.10:443"), AllOf(StartsWith("dropped"), HasSubstr("policy")));
  EXPECT_EQ(run("clean", net_admin_alone).exit_code, 0);
  EXPECT_EQ(listed(), before);
}

// A packet that is sent, and lands at the proxy, while its answers or what follows it are dropped.
TEST_F(Seen, AnswersAndLaterPackets) {
  const SeenEdit edits[] = {
      {"iptables-legacy -A INPUT -p tcp --sport 443 -j DROP", "iptables-legacy -F INPUT", "rule 1 of filter INPUT",
       "out tcp 10.96.0.10:443", "replies are lost"},
      {"iptables-legacy -A INPUT -p tcp --dport 15001 -m conntrack --ctstate ESTABLISHED -j DROP",
       "iptables-legacy -F INPUT",
       "rule 1 of filter INPUT: -A INPUT -p tcp --dport 15001 -m conntrack --ctstate ESTABLISHED -j DROP",
       "out tcp 10.96.0.10:443 --state established", "dropped"},
  };
  expect_each_in_the_way(edits);
}

// A rule of another program that is about no source: of those that are captured, too.
TEST_F(Seen, WhatKeepsTheSourcesThatAreCapturedFromTheProxy) {
  const std::string options =
      by_nftables + " --include-inbound-ranges 10.0.0.0/8 --exclude-inbound-ranges 10.200.0.0/16";
  ASSERT_EQ(run("apply " + options).exit_code, 0);
  expect_as_requested(options);
  shell("iptables-legacy -t raw -A PREROUTING -p tcp --dport 8443 -j DROP");
  expect_in_the_way(options, "rule 1 of raw PREROUTING");
}

TEST_F(Seen, RoutesAndTheLoopbackInterface) {
  const char* app = "out tcp 10.96.0.10:443";
  const SeenEdit edits[] = {
      {"ip route add blackhole 10.96.0.0/16", "ip route del blackhole 10.96.0.0/16",
       "ip route blackhole 10.96.0.0/16 table main", app,
       "never sent: no route to 10.96.0.10 (ip route blackhole 10.96.0.0/16 table main)"},
      {"ip route add local 10.96.0.10 dev lo", "ip route del local 10.96.0.10 dev lo", "ip route local 10.96.0.10", app,
       "lands on 10.96.0.10:443 (the app), untouched"},
      {"ip link set lo down", "ip link set lo up", "interface lo is down", app, "dropped: interface lo is down"},
      {"ip addr del 127.0.0.1/8 dev lo", "ip addr add 127.0.0.1/8 dev lo", "lo has no address 127.0.0.1", app,
       "leaves the pod by eth0 to 127.0.0.1:15001"},
  };
  expect_each_in_the_way(edits);
  EXPECT_THAT(explained(app), HasSubstr("lands on 127.0.0.1:15001"));
}

// Others' rules in the chains that have Istio's names are not Istio's by that.
struct InOurChains : Seen, ::testing::WithParamInterface<const char*> {};

TEST_P(InOurChains, RulesOfOthersAreKeptOrNamed) {
  const std::string program = std::string(GetParam()) == "iptables-nft" ? "iptables-nft" : "iptables-legacy";
  const std::string backend = std::string("--backend ") + GetParam() + " ";
  const struct {
    const char* chain;
    const char* rule;
    const char* before;   // what it needs
    const char* refused;  // why clean refuses it; else it is kept
  } cases[] = {
      {"ISTIO_OUTPUT", "-p tcp -m tcp --dport 9999 -j ACCEPT", "", nullptr},
      {"ISTIO_INBOUND", "-p tcp -m tcp --dport 2222 -j ACCEPT", "", nullptr},
      {"ISTIO_OUTPUT", "-p tcp -j MINE", "-N MINE", nullptr},
      {"OUTPUT", "-p tcp -m tcp --dport 8443 -j ISTIO_REDIRECT", "", "-A OUTPUT -p tcp --dport 8443 -j ISTIO_REDIRECT"},
  };
  for (const auto& [chain, rule, needs, refused] : cases) {
    SCOPED_TRACE(rule);
    const QuietPod fresh(Family::ipv4);
    const auto sidetrack = [&](const std::string& line) { return fresh.run(words("sidetrack " + line)); };
    const auto iptables = [&](const std::string& line) { return fresh.ns().must(words(program + " -t nat " + line)); };
    const std::string whole = fmt::format("-A {} {}\n", chain, rule);
    ASSERT_EQ(sidetrack("apply " + backend + "--ip-families ipv4 -i * -b *").exit_code, 0);
    if (*needs != '\0') iptables(needs);
    iptables(fmt::format("-I {} 1 {}", chain, rule));

    // Other rules of ours, around it.
    const std::string other = backend + "--ip-families ipv4 -i 10.96.0.0/16 -b 8080 -o 25 -p 16001";
    const Output applied = sidetrack("apply " + other);
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_THAT(iptables(std::string("-S ") + chain), HasSubstr(whole));
    EXPECT_THAT(iptables("-S"), AllOf(HasSubstr("--to-ports 16001"), Not(HasSubstr("--to-ports 15001"))));

    const std::string before = listing(fresh.ns());
    const Output cleaned = sidetrack("clean");
    if (refused != nullptr) {
      EXPECT_EQ(cleaned.exit_code, 1) << cleaned.err;
      EXPECT_THAT(cleaned.err, AllOf(HasSubstr(refused), HasSubstr("nothing was changed")));
      EXPECT_EQ(listing(fresh.ns()), before);
      iptables(fmt::format("-D {} {}", chain, rule));
      EXPECT_EQ(sidetrack("clean").exit_code, 0);
      EXPECT_THAT(listing(fresh.ns()), Not(HasSubstr("ISTIO_")));
    } else {
      EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
      EXPECT_EQ(iptables(std::string("-S ") + chain), fmt::format("-N {}\n{}", chain, whole));
      EXPECT_THAT(iptables("-S OUTPUT") + iptables("-S PREROUTING"), Not(HasSubstr("ISTIO_")));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, InOurChains, ::testing::Values("iptables-legacy", "iptables-nft"), backend_name);

TEST_F(Seen, ARuleOfSomebodyElseInOurTable) {
  ASSERT_EQ(run("apply " + by_nftables).exit_code, 0);
  shell("nft add rule inet sidetrack nat-ISTIO_OUTPUT tcp dport 82 counter drop");
  const std::string named = "-A ISTIO_OUTPUT -p tcp --dport 82 -j DROP";
  const std::string other = "--backend nftables --ip-families ipv4 -i * -b 8080";
  const std::string before = listed();

  const Output verified = run("verify " + other);
  EXPECT_EQ(verified.exit_code, 6) << verified.err;
  EXPECT_THAT(verified.err, AllOf(HasSubstr("apply would refuse"), HasSubstr(named),
                                  HasSubstr("'sidetrack apply' would refuse to change that")));
  const Output differs = run("diff " + other);
  EXPECT_EQ(differs.exit_code, 6) << differs.err;
  EXPECT_THAT(differs.err, AllOf(HasSubstr("apply would refuse"), HasSubstr(named)));
  for (const std::string& line : {"apply " + other, std::string("clean"), "apply --backend iptables-nft " + other}) {
    const Output refused = run(line);
    EXPECT_EQ(refused.exit_code, 1) << line << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(named), HasSubstr("nothing was changed"))) << line;
    EXPECT_EQ(listed(), before) << line;
  }
}

// The host at the other end of eth0 is found by packets of their own, which others' rules drop.
TEST_F(Seen, Neighbours) {
  const std::string options = "--backend nftables --ip-families ipv4,ipv6 -i * -b *";
  ASSERT_EQ(run("apply " + options).exit_code, 0);
  const SeenEdit edits[] = {
      {"ip6tables-nft -P INPUT DROP; ip6tables-nft -A INPUT -p tcp -j ACCEPT",
       "ip6tables-nft -P INPUT ACCEPT; ip6tables-nft -F INPUT", "INPUT", "in tcp [fd00:1::2]:8080",
       "unknown: whether a neighbour at eth0 is found"},
      {"ip6tables-legacy -P INPUT DROP; ip6tables-legacy -A INPUT -p tcp -j ACCEPT",
       "ip6tables-legacy -P INPUT ACCEPT; ip6tables-legacy -F INPUT", "INPUT", "in tcp [fd00:1::2]:8080",
       "unknown: whether a neighbour at eth0 is found"},
      {"ip6tables-nft -A INPUT -s fe80::/10 -p icmpv6 -j ACCEPT; ip6tables-nft -A INPUT -p icmpv6 -j DROP",
       "ip6tables-nft -F INPUT", "INPUT", "out tcp [fd00:1::99]:80 --uid 1337",
       "unknown: whether a neighbour at eth0 is found"},
      {"nft 'table arp t { chain c { type filter hook input priority 0; policy drop; }; }'", "nft delete table arp t",
       "the policy of arp t c", "in tcp 10.1.0.2:8080", "unknown: whether a neighbour at eth0 is found"},
      {"nft 'table arp t { chain c { type filter hook output priority 0; arp operation request drop; }; }'",
       "nft delete table arp t", "rule 1 of arp t c", "out tcp 10.96.0.10:443 --uid 1337",
       "unknown: whether a neighbour at eth0 is found"},
      {"nft 'table netdev t { chain c { type filter hook ingress device eth0 priority 0; meta protocol arp drop; }; }'",
       "nft delete table netdev t", "rule 1 of netdev t c", "in tcp 10.1.0.2:8080",
       "unknown: whether a neighbour at eth0 is found"},
      {"nft 'table netdev t { chain c { type filter hook egress device eth0 priority 0; policy drop; "
       "meta protocol { ip, ip6 } accept; }; }'",
       "nft delete table netdev t", "the policy of netdev t c", "out tcp 10.96.0.10:443 --uid 1337",
       "unknown: whether a neighbour at eth0 is found"},
  };
  for (const char* dropped :
       {"meta protocol vmap { arp : drop, ip : accept };", "meta protocol vmap { ip : accept, arp : drop };"}) {
    shell(fmt::format("nft 'table netdev t {{ chain c {{ type filter hook egress device eth0 priority 0; {} }}; }}'",
                      dropped));
    EXPECT_EQ(run("verify " + options).exit_code, 6) << dropped;
    shell("nft delete table netdev t");
  }
  for (const char* harmless : {
           "policy drop; meta protocol arp accept; meta protocol { ip, ip6 } accept;",
           "policy drop; meta protocol { arp, ip } accept; meta protocol ip6 accept; counter drop;",
           "policy accept; meta protocol != { arp, ip, ip6 } drop; ip protocol sctp drop; meta l4proto sctp drop;",
       }) {
    shell(fmt::format("nft 'table netdev t {{ chain c {{ type filter hook ingress device eth0 priority 0; {} }}; }}'",
                      harmless));
    expect_as_requested(options);
    shell("nft delete table netdev t");
  }
  for (const auto& [edit, undo, named, packet, says] : edits) {
    SCOPED_TRACE(edit);
    EXPECT_THAT(explained(packet), Not(HasSubstr("unknown: ")));
    shell(edit);
    expect_in_the_way(options, named);
    EXPECT_THAT(explained(packet), HasSubstr(says));
    shell(undo);
    expect_as_requested(options);
  }
}

// Rules that let neighbour discovery pass by its ICMPv6 types.
TEST_F(Seen, TypesOfNeighbourDiscovery) {
  const auto by_iptables = [](std::string program) {
    return fmt::format(
        "{0} -P INPUT DROP; {0} -A INPUT -p tcp -j ACCEPT; {0} -A INPUT -p icmpv6 --icmpv6-type neighbour-solicitation "
        "-m hl --hl-eq 255 -j ACCEPT; {0} -A INPUT -p icmpv6 --icmpv6-type 136/0 -j ACCEPT",
        program);
  };
  const std::pair<std::string, const char*> edits[] = {
      {by_iptables("ip6tables-nft"), "ip6tables-nft -P INPUT ACCEPT; ip6tables-nft -F INPUT"},
      {by_iptables("ip6tables-legacy"), "ip6tables-legacy -P INPUT ACCEPT; ip6tables-legacy -F INPUT"},
      {"nft 'table inet f { chain c { type filter hook input priority 0; policy drop; meta l4proto tcp accept; ip6 "
       "hoplimit 255 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept; }; }'",
       "nft delete table inet f"}};
  for (const auto& [edit, undo] : edits) {
    SCOPED_TRACE(edit);
    shell(edit);
    EXPECT_THAT(explained("out tcp [fd00:1::99]:80 --uid 1337"), StartsWith("leaves the pod by eth0"));
    EXPECT_THAT(explained("in tcp [fd00:1::2]:8080"), StartsWith("lands on"));
    shell(undo);
  }
}

// Below a bridge and below a macvlan, as a real connection shows.
TEST_F(Seen, RulesForFrames) {
  const Namespace other;
  shell(fmt::format(
      "ip link add br0 up type bridge; ip link add v1 up type veth peer name v2; ip link set v1 master br0; "
      "ip address add 10.9.0.2/24 dev br0; ip link set v2 netns /proc/{}/fd/{}; "
      "ip link add t0 link eth0 up type macvlan; ip address add 10.8.0.2/24 dev t0",
      getpid(), other.fd()));
  other.must({"ip", "address", "add", "10.9.0.7/24", "dev", "v2"});
  other.must({"ip", "link", "set", "v2", "up"});
  const auto connects = [&] {  // to a port that nobody listens to: refused, unless nothing comes back
    return other.program({"timeout", "2", "bash", "-c", ": < /dev/tcp/10.9.0.2/99"}).exit_code == 1;
  };
  ASSERT_EQ(run("apply " + by_nftables).exit_code, 0);
  EXPECT_THAT(explained("in tcp 10.9.0.2:99"), StartsWith("lands on 10.9.0.2:15006"));
  EXPECT_TRUE(connects());

  const std::string of_bridge = "nft 'table bridge b {{ chain c {{ type filter hook {}; }}; }}'";
  for (const char* passes : {"output priority 0; counter accept", "input priority 0; counter"}) {
    shell(fmt::format(fmt::runtime(of_bridge), passes));
    expect_as_requested(by_nftables);
    EXPECT_THAT(run("show").out, HasSubstr("bridge b c"));
    EXPECT_TRUE(connects());
    shell("nft delete table bridge b");
  }
  const char* says = "unknown: whether it gets in by br0";
  const char* gone = "nft delete table bridge b";
  const std::string edits[] = {
      fmt::format(fmt::runtime(of_bridge), "output priority 0; counter drop"),
      fmt::format(fmt::runtime(of_bridge), "input priority 0; ether type ip counter drop"),
      fmt::format(fmt::runtime(of_bridge), "prerouting priority 0; ip daddr 10.9.0.2 tcp dport 99 drop"),
  };
  for (const std::string& edit : edits) {
    expect_each_in_the_way(std::array{
        SeenEdit{edit.c_str(), gone, "rule 1 of bridge b c", "in tcp 10.9.0.2:99", says},
        SeenEdit{edit.c_str(), gone, "rule 1 of bridge b c", "out tcp 10.9.0.7:99 --uid 1337", "unknown: "}});
    shell(edit);
    EXPECT_FALSE(connects()) << edit;
    EXPECT_THAT(run("show").out, HasSubstr("bridge b c"));
    shell(gone);
  }
  const SeenEdit below[] = {
      {"nft 'table netdev b { chain c { type filter hook ingress device v1 priority 0; counter drop; }; }'",
       "nft delete table netdev b", "rule 1 of netdev b c", "in tcp 10.9.0.2:99", says},
      {"nft 'table netdev b { chain c { type filter hook ingress device eth0 priority 0; ip daddr 10.8.0.2 drop; }; }'",
       "nft delete table netdev b", "rule 1 of netdev b c", "in tcp 10.8.0.2:99", "unknown: whether it gets in by t0"},
  };
  expect_each_in_the_way(below);
}

// A map of another program, whether a rule looks into it or not.
TEST_F(Seen, AMapThatLeadsToOurChains) {
  ASSERT_EQ(run("apply --backend iptables-nft --ip-families ipv4 -i * -b *").exit_code, 0);
  const std::string unused =
      "nft 'add map ip nat m { type ipv4_addr : verdict; elements = { 1.1.1.1 : goto ISTIO_INBOUND }; }'";
  const std::string used = unused + "; nft add chain ip nat mine; nft add rule ip nat mine ip saddr vmap @m";
  const std::string rule = "nft 'add chain ip nat mine; add rule ip nat mine jump ISTIO_INBOUND'";
  const std::string undo = "; nft flush chain ip nat mine; nft delete chain ip nat mine";
  for (const auto& [edit, named, gone] :
       {std::array{unused, std::string("map leads to it: m"), std::string("nft delete map ip nat m")},
        std::array{used, std::string("leads to it: -A mine"), undo.substr(2) + "; nft delete map ip nat m"},
        std::array{rule, std::string("rule leads to it: -A mine -j ISTIO_INBOUND"), undo.substr(2)}}) {
    SCOPED_TRACE(edit);
    shell(edit);
    const std::string before = listed();
    for (const char* command : {"clean", "apply --backend nftables --ip-families ipv4 -i * -b * --wait 20s"}) {
      const auto start = std::chrono::steady_clock::now();
      const Output refused = run(command);
      EXPECT_EQ(refused.exit_code, 1) << command << refused.err;
      EXPECT_THAT(refused.err, AllOf(HasSubstr("ISTIO_INBOUND"), HasSubstr(named), HasSubstr("nothing was changed")));
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
      EXPECT_EQ(listed(), before);
    }
    EXPECT_EQ(run("apply --backend iptables-nft --ip-families ipv4 -i * -b * -d 9").exit_code, 0);
    EXPECT_EQ(run("apply --backend iptables-nft --ip-families ipv4 -i * -b *").exit_code, 0);
    shell(gone);
  }
  EXPECT_EQ(run("clean").exit_code, 0);
}

// Of one family, and of what is not captured.
TEST_F(Seen, RulesOfIpv6Alone) {
  const std::string options = "--backend nftables --ip-families ipv4,ipv6 -i * -b *";
  ASSERT_EQ(run("apply " + options).exit_code, 0);
  for (const char* rule : {"INPUT -p tcp --dport 15006 -j DROP", "INPUT -p tcp --dport 15008 -j DROP",
                           "OUTPUT -m owner --uid-owner 1337 -j DROP", "OUTPUT -p tcp --sport 15006 -j DROP"}) {
    SCOPED_TRACE(rule);
    shell(fmt::format("ip6tables-nft -A {}", rule));
    expect_in_the_way(options, std::string("rule 1 of filter ") + (rule[0] == 'I' ? "INPUT" : "OUTPUT"));
    shell(fmt::format("ip6tables-nft -D {}", rule));
    expect_as_requested(options);
  }
}

TEST_F(Seen, AnAddressOfIpv4AsIpv6SocketsNameIt) {
  ASSERT_EQ(run("apply " + by_nftables).exit_code, 0);
  const std::string said = explained("out tcp 10.96.0.10:443");
  EXPECT_THAT(said, HasSubstr("lands on 127.0.0.1:15001"));
  EXPECT_EQ(explained("out tcp [::ffff:10.96.0.10]:443"), said);
  const Output in = run("explain in tcp [::ffff:10.1.0.2]:8080");
  EXPECT_EQ(in.exit_code, 2) << in.out;
  EXPECT_THAT(in.err, HasSubstr("::ffff:"));
}

// The policy route for packets with TPROXY's mark gives them a source that no socket of the app may have.
TEST_F(Seen, WhatIsSentWithTheMarkOfTproxyIsNeverSent) {
  ASSERT_EQ(run("apply -m TPROXY " + by_nftables).exit_code, 0);
  EXPECT_THAT(explained("out tcp 10.96.0.10:443 --mark 1337"), StartsWith("never sent: "));
  EXPECT_THAT(explained("out tcp 10.96.0.10:443"), HasSubstr("lands on 127.0.0.1:15001"));
  pod.ns().run([] {
    const FileDescriptor socket(check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    const int mark = 1337;
    check(setsockopt(socket.get(), SOL_SOCKET, SO_MARK, &mark, sizeof mark), "SO_MARK");
    sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(443), .sin_addr = {htonl(0x0a60000a)}, .sin_zero = {}};
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), -1);
    EXPECT_EQ(errno, ENETUNREACH);
  });
}

TEST_F(Seen, AnEmptyTableOfOursIsLeftOver) {
  const std::string options = "--backend iptables-nft --ip-families ipv4 -i * -b *";
  ASSERT_EQ(run("apply " + options).exit_code, 0);
  const std::string before = listed();
  shell("nft add table inet sidetrack");
  EXPECT_EQ(run("verify " + options).exit_code, 6);
  const Output differs = run("diff " + options);
  EXPECT_EQ(differs.exit_code, 6);
  EXPECT_THAT(differs.out, HasSubstr("-add table inet sidetrack"));
  const Output applied = run("apply " + options);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_EQ(listed(), before);
  expect_as_requested(options);
}

TEST_F(Seen, CleanupOnlyThatIsNotToHappen) {
  ASSERT_EQ(run("apply --backend iptables-nft -m TPROXY --ip-families ipv4 -i * -b *").exit_code, 0);
  const std::string before = listed();
  const Output dry = run("apply --cleanup-only --dry-run");
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, AllOf(HasSubstr("-A OUTPUT -j ISTIO_OUTPUT"), HasSubstr("ip rule add fwmark 1337 lookup 133")));
  EXPECT_EQ(listed(), before);
  const Output skipped = run("apply --cleanup-only --skip-rule-apply");
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(listed(), before);
  EXPECT_EQ(run("apply --cleanup-only").exit_code, 0);
  EXPECT_EQ(run("apply --cleanup-only --dry-run").out, "");
}

}  // namespace
}  // namespace sidetrack::netns
