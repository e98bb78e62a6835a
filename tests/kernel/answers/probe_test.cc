// SPDX-License-Identifier: GPL-2.0-or-later
// verify --probe: what it finds, and that finding it disturbs no program.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/network.h"
#include "support/quiet_pod.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

using Names = std::vector<std::string>;

// The names of the results of one verdict: "outbound tcp ipv4". A line is "ok  0.1 ms  outbound tcp ipv4:  FINDING".
Names named(const Output& output, const std::string& verdict) {
  constexpr std::size_t columns = 19;  // before the name
  Names names;
  std::istringstream lines(output.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(verdict + " ")) names.push_back(line.substr(columns, line.find(':') - columns));
  }
  return names;
}

Names in_both(const Names& names) {
  Names all;
  for (const char* family : {" ipv4", " ipv6"})
    for (const std::string& name : names) all.push_back(name + family);
  return all;
}

Names together(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

const Names tried{"inbound tcp",      "outbound tcp", "dns tcp", "dns udp", "outbound excluded port tcp",
                  "app to itself tcp"};
const Names tried_transparent = together(tried, {"tproxy tcp", "tproxy excluded port tcp", "tproxy route tcp"});
const Names not_tried{"inbound from outside tcp"};

const std::string ports = "-p 15001 -z 15006 -u 1337 --dual-stack ";
const std::string traffic = ports + "-i * -x 10.9.0.0/16 -b * -d 15033 -o 9443 --redirect-dns ";
const std::string options = traffic + "--dns-server 10.96.0.53,fd00:96::53 ";

class Probe : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) pod_.emplace(Families::both());
  }
  [[nodiscard]] static std::string backend() { return GetParam(); }
  [[nodiscard]] static bool native() { return backend() == "nftables"; }
  [[nodiscard]] static std::vector<std::string> command(const std::string& verb, const std::string& arguments) {
    return words("sidetrack " + verb + " --backend " + backend() + " " + arguments);
  }
  void apply(const std::string& arguments) const {
    const Output output = pod_->run(command("apply", arguments));
    ASSERT_EQ(output.exit_code, 0) << output.err;
  }
  [[nodiscard]] Output verify(const std::string& arguments) const {
    return pod_->run(command("verify --probe", arguments));
  }
  [[nodiscard]] Output verify_confined(const std::string& arguments, unsigned uid) const {
    return pod_->run(confined(command("verify --probe", arguments), uid));
  }
  // Of one family; a native rule that serves both is gone for both.
  void take_away_ipv4(const std::string& table, const std::string& chain, const std::string& listed,
                      const std::string& listed_by_nft) const {
    take_away(pod_->ns(), backend(), Family::ipv4, chain, native() ? listed_by_nft : listed, table);
  }

  std::optional<QuietPod> pod_;
};
INSTANTIATE_TEST_SUITE_P(, Probe, ::testing::ValuesIn(backends), backend_name);

// ---- All is well.

TEST_P(Probe, FindsAllWell) {
  apply(options);
  const auto start = std::chrono::steady_clock::now();
  const Output output = verify(options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));  // it takes some milliseconds
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both(tried)));
  EXPECT_THAT(named(output, "unknown"), UnorderedElementsAreArray(in_both(not_tried)));
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("uid 1337 to 127.0.0.6:15002 lands on 127.0.0.1:15006 with its original destination"),
                    HasSubstr("uid 0 to 192.0.2.1:80 lands on 127.0.0.1:15001 with its original destination"),
                    HasSubstr("uid 0 to [fd00:96::53]:53 lands on [::1]:15053"),
                    HasSubstr("uid 1337 to [::6]:9443 is left alone")));
  EXPECT_THAT(output.err, HasSubstr("probes: 12 ok, 0 failed, 2 unknown; rules and routes are as requested"));
  EXPECT_EQ(pod_->came_out(), 0);
}

TEST_P(Probe, FindsTproxyWell) {
  apply(options + "-m TPROXY");
  const Output output = verify(options + "-m TPROXY");
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both(tried_transparent)));
  EXPECT_THAT(named(output, "unknown"), UnorderedElementsAre());
  EXPECT_EQ(pod_->came_out(), 0);
  apply(options + "-m TPROXY --capture-udp 443");
  const Output with_udp = verify(options + "-m TPROXY --capture-udp 443");
  EXPECT_EQ(with_udp.exit_code, 0) << with_udp.out << with_udp.err;
  EXPECT_THAT(named(with_udp, "unknown"), UnorderedElementsAreArray(in_both({"inbound from outside udp"})));
}

// Nothing comes in to the proxy then, and no route is needed for it.
TEST_P(Probe, TriesNoTproxyWhereNoInboundPortIsAskedFor) {
  for (const auto& [asked, probes] :
       {std::pair{ports + "-i * -m TPROXY", Names{"inbound tcp", "outbound tcp", "app to itself tcp"}},
        std::pair{ports + "-m TPROXY", Names{"inbound tcp", "app to itself tcp"}}}) {
    apply(asked);
    const Output output = verify(asked);
    EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
    EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both(probes)));
    EXPECT_THAT(named(output, "unknown"), Names{});
  }
}

// What is excluded, included and given to groups decides what can be tried. Port 80 is excluded, 15002 as well.
TEST_P(Probe, FindsTrafficThatTheOptionsCatch) {
  const std::string few = ports + "-i 10.96.0.0/16,fd00:96::/64 -q 8443 -b 8080 -o 80,15002";
  apply(few);
  const Output output = verify(few);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("uid 0 to 192.0.2.1:8443 lands on 127.0.0.1:15001"),
                                HasSubstr("uid 1337 to 127.0.0.6:15003 lands on 127.0.0.1:15006"),
                                HasSubstr("uid 1337 to 127.0.0.6:80 is left alone")));
}

// Also where options name every port that could be tried instead.
TEST_P(Probe, TriesRangesOfPorts) {
  for (const char* ranges : {"-i * -b 1-65535 -o 9000-9443", "-b * -d 15000-15100 -q 8000-8443"}) {
    SCOPED_TRACE(ranges);
    apply(ports + ranges);
    const Output output = verify(ports + ranges);
    EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
    EXPECT_THAT(named(output, "ok"), IsSupersetOf(in_both({"inbound tcp", "outbound tcp"}))) << output.out;
  }
}

TEST_P(Probe, TriesTheFamiliesInUseAlone) {
  const std::string one = "-i * -b * --ip-families ipv4";
  apply(one);
  const Output output = verify(one);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "ok"),
              UnorderedElementsAre("inbound tcp ipv4", "outbound tcp ipv4", "app to itself tcp ipv4"));
  EXPECT_THAT(output.out, Not(HasSubstr("ipv6")));
}

// The proxy's call to its own pod by port 15008 is not caught, so that `-o 15008` changes nothing about it.
TEST_P(Probe, SaysWhichExcludedPortsCannotBeTold) {
  const std::string tunnel = ports + "-i * -b * -o 15008";
  apply(tunnel);
  const Output output = verify(tunnel);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "unknown"), IsSupersetOf(in_both({"outbound excluded port tcp"})));
  EXPECT_THAT(output.out, HasSubstr("-o 15008: with these options it would be left alone anyway: not tried"));
}

TEST_P(Probe, SaysWhatCannotBeToldWithoutLo) {
  const std::string elsewhere = ports + "-i * -b * -d 15033 -o 9443 -c lo -m TPROXY";
  apply(elsewhere);
  const Output output = verify(elsewhere);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(
      named(output, "unknown"),
      UnorderedElementsAreArray(in_both({"outbound excluded port tcp", "tproxy tcp", "tproxy excluded port tcp"})));
  EXPECT_THAT(output.out, AllOf(HasSubstr("-b *: with these options it would be left alone anyway: not tried"),
                                HasSubstr("-d 15033: with these options it would be left alone anyway: not tried")));
}

TEST_P(Probe, PrintsJson) {
  apply(options);
  take_away_ipv4("nat", "ISTIO_REDIRECT", "-j REDIRECT", "redirect to");
  const Output output = verify(options + "--json");
  EXPECT_EQ(output.exit_code, 6) << output.err;
  const auto document = nlohmann::json::parse(output.out);
  EXPECT_FALSE(document["equal"]);
  const auto probe = [&](const std::string& name) {
    for (const auto& each : document["probes"])
      if (each["name"] == name) return each;
    throw std::runtime_error("no " + name);
  };
  EXPECT_EQ(probe("inbound tcp ipv4")["verdict"], "ok");
  EXPECT_GT(probe("inbound tcp ipv4")["milliseconds"], 0);
  EXPECT_EQ(probe("inbound from outside tcp ipv4")["verdict"], "unknown");
  const auto failed = probe("outbound tcp ipv4");
  EXPECT_EQ(failed["verdict"], "failed");
  EXPECT_THAT(failed["missing"].dump(), HasSubstr("-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001 (-p 15001)"));
}

// ---- Something is wrong.

// What the rules would have caught leaves the pod, and is the next hop's to drop.
TEST_P(Probe, WithoutRulesNothingGetsBeyondTheNextHop) {
  const Output output = verify(options + "-m TPROXY");
  EXPECT_EQ(output.exit_code, 6) << output.err;
  EXPECT_THAT(
      named(output, "failed"),
      IsSupersetOf(in_both({"inbound tcp", "outbound tcp", "dns tcp", "dns udp", "tproxy tcp", "tproxy route tcp"})));
  EXPECT_THAT(output.out, HasSubstr("192.0.2.1:80 leaves the pod instead of being redirected to port 15001"));
  EXPECT_THAT(output.out, HasSubstr("missing: ip rule add fwmark 1337 lookup 133"));
  EXPECT_THAT(output.out, HasSubstr("::6 is not an address of this pod"));
  EXPECT_GT(pod_->came_out(), 0);
  EXPECT_EQ(pod_->could_go_on(), 0);
}

struct Part {
  const char* table;
  const char* chain;
  const char* listed;         // by iptables
  const char* listed_by_nft;  // by nft
  Names failed;
  const char* named;  // as missing, after its chain
};
const std::vector<Part> parts{
    {"nat",
     "ISTIO_REDIRECT",
     "-j REDIRECT",
     "redirect to",
     {"outbound tcp"},
     "-j REDIRECT --to-ports 15001 (-p 15001)"},
    {"nat",
     "ISTIO_IN_REDIRECT",
     "-j REDIRECT",
     "redirect to",
     {"inbound tcp"},
     "-j REDIRECT --to-ports 15006 (-z 15006)"},
    {"nat", "ISTIO_OUTPUT_DNS", "-p tcp", "tcp dport 53", {"dns tcp"}, "-j REDIRECT --to-ports 15053 (--redirect-dns)"},
    {"nat", "ISTIO_OUTPUT_DNS", "-p udp", "udp dport 53", {"dns udp"}, "-j REDIRECT --to-ports 15053 (--redirect-dns)"},
    {"nat",
     "ISTIO_OUTPUT",
     "tcp --dport 9443",
     "tcp dport 9443",
     {"outbound excluded port tcp"},
     "-j RETURN (-o 9443)"},
    {"mangle", "ISTIO_TPROXY", "-j TPROXY", "tproxy ip to :15006", {"tproxy tcp"}, "--on-port 15006 (-m TPROXY)"},
    {"mangle",
     "ISTIO_INBOUND",
     "--dport 15033",
     "tcp dport 15033",
     {"tproxy excluded port tcp"},
     "-j RETURN (-d 15033)"},
};

// The connection that needs the rule fails, and no other does.
TEST_P(Probe, NamesTheRuleThatIsMissing) {
  for (const Part& part : parts) {
    SCOPED_TRACE(std::string(part.chain) + " " + part.listed);
    pod_.emplace(Families::both());  // in which conntrack does not know yet what became of a connection
    apply(options + "-m TPROXY");
    take_away_ipv4(part.table, part.chain, part.listed, part.listed_by_nft);
    const Output output = verify(options + "-m TPROXY");
    EXPECT_EQ(output.exit_code, 6) << output.err;
    Names ipv4;
    for (const std::string& name : part.failed) ipv4.push_back(name + " ipv4");
    const Names failed = named(output, "failed");
    EXPECT_THAT(failed, IsSupersetOf(ipv4)) << output.out;
    EXPECT_THAT(in_both(part.failed), IsSupersetOf(failed)) << output.out;
    EXPECT_THAT(output.out, ::testing::ContainsRegex(std::string("        missing: -t ") + part.table + " -A " +
                                                     part.chain + " .*"));
    EXPECT_THAT(output.out, HasSubstr(part.named));
    EXPECT_THAT(output.out, Not(HasSubstr("likely missing")));
  }
}

TEST_P(Probe, NamesTheRouteThatIsMissing) {
  apply(options + "-m TPROXY");
  ip(pod_->ns(), "rule del fwmark 1337 lookup 133\n");
  const Output output = verify(options + "-m TPROXY");
  EXPECT_EQ(output.exit_code, 6) << output.err;
  EXPECT_THAT(named(output, "failed"), UnorderedElementsAre("tproxy route tcp ipv4"));
  EXPECT_THAT(output.out, HasSubstr("with mark 1337 lands on 127.0.0.1:15001 instead of being delivered in this pod"));
  EXPECT_THAT(output.out, HasSubstr("        missing: ip rule add fwmark 1337 lookup 133"));
  EXPECT_THAT(output.out, Not(HasSubstr("missing: ip route add")));  // it is there
}

// A policy rule of another program leads nowhere: no packet is sent, so no rule is asked.
TEST_P(Probe, SaysWhatCannotBeTried) {
  apply(options);
  ip(pod_->ns(), "route add blackhole default table 9\nrule add priority 100 uidrange 0-0 lookup 9\n");
  const Output output = verify(options);
  EXPECT_EQ(output.exit_code, 6) << output.out << output.err;
  EXPECT_THAT(named(output, "unknown"), IsSupersetOf({"outbound tcp ipv4", "dns tcp ipv4", "dns udp ipv4"}));
  EXPECT_THAT(named(output, "ok"), IsSupersetOf({"outbound tcp ipv6", "dns udp ipv6", "inbound tcp ipv4"}));
  EXPECT_THAT(output.out, HasSubstr("uid 0 to 192.0.2.1:80 cannot be tried: Invalid argument (EINVAL)"));
}

TEST_P(Probe, RulesThatDifferAndWorkAreADifference) {
  apply(options);
  const Output output = verify(options + "-d 15034");
  EXPECT_EQ(output.exit_code, 6) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("15034"));
  EXPECT_THAT(named(output, "failed"), UnorderedElementsAre());
  EXPECT_THAT(output.err, HasSubstr("probes: 12 ok, 0 failed, 2 unknown; the pod differs from the requested rules"));
}

// What no probe can try, since it would have to come from outside, is seen in the rules.
TEST_P(Probe, WhatIsInTheWayIsADifferenceThoughNoProbeFails) {
  apply(options);
  pod_->ns().must({"nft", "-f", "-"}, R"(table inet other {
      chain first {
        type nat hook prerouting priority -150
        iifname "eth0" tcp dport 8080 redirect to :9
      }
    })");
  const Output output = verify(options);
  EXPECT_EQ(output.exit_code, 6) << output.out << output.err;
  EXPECT_THAT(named(output, "failed"), ::testing::IsEmpty());
  EXPECT_THAT(output.err, AllOf(HasSubstr(", 0 failed, "), HasSubstr(" unknown; the rules and routes are as requested, "
                                                                     "but something that Sidetrack must not change "
                                                                     "keeps traffic from ")));
}

// That takes a right which is missing, and no other fault.
TEST_P(Probe, RulesThatCannotBeReadAreNotLeftOutOfTheAnswer) {
  // The pod's addresses are not asked for before.
  std::vector<std::string> line = command("verify --probe", "-i * -b * --ip-families ipv4");
  line.front() = program_under_test();
  const Output output =
      pod_->ns().program(line, {}, {"LD_PRELOAD=" SIDETRACK_DISTURB, fmt::format("DISTURB=fails {} 1 1", ENOMEM)});
  EXPECT_EQ(output.exit_code, 1) << output.err;
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, AllOf(HasSubstr("ENOMEM"), Not(HasSubstr("not compared"))));
}

// TPROXY catches it then, and its destination is as good as its original one: still not what was asked.
TEST_P(Probe, DoesNotTakeTproxyForRedirect) {
  apply(options + "-m TPROXY");
  take_away_ipv4("nat", "ISTIO_IN_REDIRECT", "-j REDIRECT", "redirect to");
  const Output output = verify(options + "-m TPROXY");
  EXPECT_EQ(output.exit_code, 6) << output.out << output.err;
  EXPECT_THAT(output.out,
              HasSubstr("uid 1337 to 127.0.0.6:15002 reaches the transparent socket at port 15006 unchanged "
                        "instead of being redirected to port 15006"));
}

// A rule of another program, before ours: all of ours are there, and none is asked.
TEST_P(Probe, SeesWhatTheRulesAloneDoNotTell) {
  apply(options);
  pod_->ns().must({"nft", "-f", "-"}, R"(table ip other {
      chain first {
        type nat hook output priority -150
        meta skuid 0 tcp dport 80 redirect to :9
      }
    })");
  const Output output = verify(options);
  EXPECT_EQ(output.exit_code, 126) << output.out;
  EXPECT_THAT(named(output, "failed"), UnorderedElementsAre("outbound tcp ipv4"));
  EXPECT_THAT(output.out, HasSubstr("all its rules are there: rules of other programs may decide before them"));
  EXPECT_THAT(output.err, HasSubstr("1 failed, 2 unknown; the rules and routes are as requested"));
}

// ---- Without capabilities, on a read-only root.

TEST_P(Probe, TriesWhatItMayConfined) {
  apply(options);
  const Output as_proxy = verify_confined(options, 1337);
  EXPECT_EQ(as_proxy.exit_code, 0) << as_proxy.out << as_proxy.err;
  EXPECT_THAT(as_proxy.err, AllOf(HasSubstr("the rules are not compared"), HasSubstr("the rules cannot be read here")));
  EXPECT_THAT(named(as_proxy, "ok"), UnorderedElementsAreArray(in_both({"inbound tcp", "outbound excluded port tcp"})));
  EXPECT_THAT(as_proxy.out,
              HasSubstr("uid 65534 to 192.0.2.1:80: acting as that user needs CAP_SETUID and CAP_SETGID"));

  const Output as_app = verify_confined(options, 1000);
  EXPECT_EQ(as_app.exit_code, 0) << as_app.out << as_app.err;
  EXPECT_THAT(named(as_app, "ok"),
              UnorderedElementsAreArray(in_both({"outbound tcp", "dns tcp", "dns udp", "app to itself tcp"})));
  EXPECT_THAT(as_app.out, HasSubstr("uid 1337 to 127.0.0.6:15002: acting as that user needs CAP_SETUID"));
}

// It may not listen there: that no process does is enough.
TEST_P(Probe, TriesAPrivilegedPortConfined) {
  const std::string web = ports + "-i * -b * -o 80";
  apply(web);
  const Output output = verify_confined(web, 1337);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.out, HasSubstr("uid 1337 to 127.0.0.6:80 is left alone"));
}

TEST_P(Probe, SaysWhatNeedsAMarkConfined) {
  apply(options + "-m TPROXY");
  const Output output = verify_confined(options + "-m TPROXY", 1000);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "unknown"), IsSupersetOf(in_both({"tproxy tcp", "tproxy route tcp"})));
  EXPECT_THAT(output.out, HasSubstr("with mark 1338: setting a mark needs CAP_NET_ADMIN: not tried"));
}

TEST_P(Probe, FailsConfinedWithAllThatMayBeMissing) {
  ip(pod_->ns(), "addr add ::6/128 dev lo nodad\n");
  const Output output = verify_confined(options, 1337);
  EXPECT_EQ(output.exit_code, 126) << output.out << output.err;
  EXPECT_THAT(named(output, "failed"), UnorderedElementsAreArray(in_both({"inbound tcp"})));
  EXPECT_THAT(
      output.out,
      AllOf(HasSubstr("likely missing, one of: -t nat -A OUTPUT -j ISTIO_OUTPUT"),
            HasSubstr("likely missing, one of: -t nat -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006")));
}

TEST_P(Probe, KnowingNothingIsNoSuccess) {
  const Output output = verify_confined(options + "-m NONE", 1337);
  EXPECT_EQ(output.exit_code, 4) << output.out << output.err;
  EXPECT_THAT(output.err, HasSubstr("nothing is known"));
}

// ---- With a proxy that is there already.

// A socket that listens and never accepts.
FileDescriptor listening(Family family, std::uint16_t port) {
  const bool v6 = family == Family::ipv6;
  FileDescriptor socket(
      check(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
  const int on = 1;
  if (v6) check(setsockopt(socket.get(), SOL_IPV6, IPV6_V6ONLY, &on, sizeof on), "IPV6_V6ONLY");
  check(setsockopt(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, &on, sizeof on),
        "IP_TRANSPARENT");
  const sockaddr_storage any = Endpoint(v6 ? "::" : "0.0.0.0", port).socket_address();
  check(bind(socket.get(), pointer(any), socket_address_size), "bind");
  check(listen(socket.get(), SOMAXCONN), "listen");
  return socket;
}

// Connections from six of eight ports are known to conntrack still. Another one from there, to elsewhere, would look
// like the earlier one behind nat, and so gets another port.
TEST_P(Probe, IsNotMisledByEarlierConnections) {
  set_sysctl(pod_->ns(), "ipv4/ip_local_port_range", "40000 40007");
  apply(options);
  for (const auto& [family, from, to] :
       {std::tuple{Family::ipv4, "10.1.0.2", "198.51.100.1"}, std::tuple{Family::ipv6, "fd00:1::2", "2001:db8::2"}}) {
    const FileDescriptor proxy = pod_->ns().run([family = family] { return listening(family, 15001); });
    for (std::uint16_t port = 40000; port < 40006; ++port)
      Connection(pod_->ns(), app_identity, {.to = {to, 80}, .from = Endpoint(from, port)});
  }
  for (int i = 0; i < 3; ++i) {
    const Output output = verify(options);
    EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
    EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both(tried))) << output.out;
  }
}

// A name server that keeps silent: what reached it cannot be told, and it gets one datagram.
TEST_P(Probe, AsksANameServerOnce) {
  apply(options);
  const FileDescriptor server = pod_->ns().run([] {
    FileDescriptor socket(check(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
    const sockaddr_storage at = Endpoint("127.0.0.1", 15053).socket_address();
    check(bind(socket.get(), pointer(at), socket_address_size), "bind");
    return socket;
  });
  const Output output = verify(options);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "unknown"), Contains("dns udp ipv4"));
  char datagram[64];
  EXPECT_EQ(recv(server.get(), datagram, sizeof datagram, 0), 12);
  EXPECT_EQ(recv(server.get(), datagram, sizeof datagram, 0), -1);
}

class ProbeBesideAProxy : public Probe {
 protected:
  void SetUp() override {
    Probe::SetUp();
    if (!pod_) return;
    const Identity identity{.uid = 1337, .gid = 1337, .keep_capabilities = true};
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      for (const std::uint16_t port : std::initializer_list<std::uint16_t>{15001, 15006, 15053})
        proxy_.push_back(pod_->ns().run([&] { return listening(family, port); }, identity));
    }
  }
  void expect_no_connection() const {
    for (const FileDescriptor& socket : proxy_) {
      EXPECT_EQ(accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC), -1) << local_end(socket.get()).text();
      EXPECT_EQ(errno, EAGAIN);
    }
  }
  std::vector<FileDescriptor> proxy_;
};
INSTANTIATE_TEST_SUITE_P(, ProbeBesideAProxy, ::testing::ValuesIn(backends), backend_name);

TEST_P(ProbeBesideAProxy, HandsItNoConnection) {
  apply(options + "-m TPROXY");
  const Output output = verify(options + "-m TPROXY");
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both(tried_transparent)));
  EXPECT_THAT(output.out, HasSubstr("reaches the proxy's transparent socket unchanged"));
  expect_no_connection();
}

// What an earlier attempt left in the table of sockets is not taken for what becomes of a later one: there are not
// many more ports than attempts, 18 each time, and one more for each that is not answered at once.
TEST_P(ProbeBesideAProxy, TellsAttemptsApart) {
  set_sysctl(pod_->ns(), "ipv4/ip_local_port_range", "40000 40119");
  apply(options + "-m TPROXY");
  for (int i = 0; i < 4; ++i) {
    const Output output = verify(options + "-m TPROXY");
    EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
    EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both(tried_transparent))) << output.out;
  }
  expect_no_connection();
}

// Where no port is left, an attempt from one that was used would be taken for the earlier one.
TEST_P(ProbeBesideAProxy, SaysThatNoPortIsLeft) {
  set_sysctl(pod_->ns(), "ipv4/ip_local_port_range", "40000 40019");
  apply(options + "-m TPROXY");
  for (int i = 0; i < 3; ++i) {
    const Output output = verify(options + "-m TPROXY");
    EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
    EXPECT_THAT(named(output, "failed"), Names{}) << output.out;
    EXPECT_EQ(output.out.find("no port to try it from is left of net.ipv4.ip_local_port_range") != std::string::npos,
              i > 0)
        << output.out;
  }
  expect_no_connection();
}

// The rules lead the app's call to itself, which they should leave alone, to the proxy.
TEST_P(ProbeBesideAProxy, HandsItNoConnectionWhenRulesAreWrong) {
  apply(options);
  take_away_ipv4("nat", "ISTIO_OUTPUT", "! --uid-owner 1337 -j RETURN", "skuid != 1337");
  take_away_ipv4("nat", "ISTIO_OUTPUT", "! --gid-owner 1337 -j RETURN", "skgid != 1337");
  const Output output = verify(options);
  EXPECT_EQ(output.exit_code, 6) << output.out << output.err;
  EXPECT_THAT(named(output, "failed"), Contains("app to itself tcp ipv4")) << output.out;
  EXPECT_THAT(output.out, HasSubstr("127.0.0.6:15002 lands on 127.0.0.1:15001 instead of being left alone"));
  expect_no_connection();
}

TEST_P(ProbeBesideAProxy, IsConfinedToo) {
  apply(options);
  const Output output = verify_confined(options, 1337);
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(named(output, "ok"), UnorderedElementsAreArray(in_both({"inbound tcp", "outbound excluded port tcp"})));
  EXPECT_THAT(output.out, HasSubstr("where the proxy listens"));
  expect_no_connection();
}

// In a pod at work: an app and a proxy that answer, and name servers that are the next hop itself.
class ProbeAtWork : public Traffic {
 protected:
  ProbeAtWork() : Traffic(Pod::Options{.transparent_proxy = true}) {}
  [[nodiscard]] static std::string arguments(const std::string& mode) {
    return ports + "-i * -b * -d 15020 -o 8080 --redirect-dns --dns-server " + both(&Addresses::dns) + " " + mode;
  }
  [[nodiscard]] Output verify(const std::string& mode) const {
    return pod_->ns().program(words(std::string("sidetrack verify --probe --backend ") +
                                    std::get<const char*>(GetParam()) + " " + arguments(mode)));
  }
};
INSTANTIATE_TEST_SUITE_P(, ProbeAtWork,
                         ::testing::Combine(::testing::ValuesIn(backends), ::testing::Values(Family::ipv4)),
                         setting_name);

TEST_P(ProbeAtWork, SeesWhereConnectionsGo) {
  apply(arguments("-m REDIRECT"));
  const Output redirected = verify("-m REDIRECT");
  EXPECT_EQ(redirected.exit_code, 0) << redirected.out << redirected.err;
  EXPECT_THAT(named(redirected, "ok"), UnorderedElementsAreArray(in_both(tried))) << redirected.out;
  EXPECT_THAT(redirected.out,
              AllOf(HasSubstr("where the proxy listens"), HasSubstr("10.96.0.53:53 is answered from inside the pod"),
                    HasSubstr("[fd00:96::53]:53 is answered from inside the pod")));

  // The app listens at the port of -d: to be left alone, and to be given to a transparent socket, look alike.
  apply(arguments("-m TPROXY"));
  const Output transparent = verify("-m TPROXY");
  EXPECT_EQ(transparent.exit_code, 0) << transparent.out << transparent.err;
  EXPECT_THAT(named(transparent, "ok"),
              UnorderedElementsAreArray(in_both(together(tried, {"tproxy tcp", "tproxy route tcp"}))));
  EXPECT_THAT(named(transparent, "unknown"), UnorderedElementsAreArray(in_both({"tproxy excluded port tcp"})));
  EXPECT_THAT(transparent.out, HasSubstr("-d 15020: a process listens there"));
}

// An answer is no proof: this one comes from the next hop.
TEST_P(ProbeAtWork, SeesThatSomebodyElseAnswers) {
  const Output output = verify("-m REDIRECT");
  EXPECT_EQ(output.exit_code, 6) << output.out << output.err;
  EXPECT_THAT(named(output, "failed"), IsSupersetOf(in_both({"inbound tcp", "outbound tcp", "dns udp"})));
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("10.96.0.53:53 leaves the pod instead of being redirected to port 15053"),
                    HasSubstr("[fd00:96::53]:53 leaves the pod instead of being redirected to port 15053")));
}

}  // namespace
}  // namespace sidetrack::netns
