// SPDX-License-Identifier: GPL-2.0-or-later
// The order and the words of the rules, step by step. Whole scenarios are compared in tests/golden.
#include "mesh/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.h"
#include "rule/iptables.h"
#include "unit/asking.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The rules of one chain, in build order, as text.
std::vector<std::string> lines_of_chain(const Plan& plan, Table table, std::string_view chain,
                                        Family family = Family::ipv4) {
  std::vector<std::string> result;
  for (const Rule& rule : plan.ruleset.rules) {
    if (rule.table == table && rule.chain == chain && rule.families.contains(family))
      result.push_back(iptables_words(rule));
  }
  return result;
}

TEST(Plan, WithoutAnyOptionCapturesNothingButHasItsChains) {
  EXPECT_EQ(
      iptables_restore(plan(usual(), {}).ruleset, Family::ipv4),
      "*nat\n"
      "-N ISTIO_INBOUND\n"
      "-N ISTIO_REDIRECT\n"
      "-N ISTIO_IN_REDIRECT\n"
      "-N ISTIO_OUTPUT\n"
      "-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN\n"
      "-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001\n"
      "-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006\n"
      "-A OUTPUT -j ISTIO_OUTPUT\n"
      "-A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN\n"
      "-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT\n"
      "-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN\n"
      "-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN\n"
      "-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT\n"
      "-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN\n"
      "-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN\n"
      "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN\n"
      "COMMIT\n");
  EXPECT_EQ(iptables_restore(plan(usual(), {}).ruleset, Family::ipv6), "");
}

TEST(Plan, NoneIsNothing) {
  Config config = usual();
  config.mode = Mode::none;
  config.inbound_ports.all = true;
  const Plan nothing = plan(config, dual_stack());
  EXPECT_THAT(nothing.ruleset.rules, IsEmpty());
  EXPECT_EQ(nothing.routing, Routing{});
}

// Of interfaces and ranges each pair is a rule: few words may ask for more than any memory holds.
TEST(Plan, TooManyRulesAreRefusedBeforeTheyAreBuilt) {
  Config config = usual();
  config.most_rules = 1'000;
  for (std::size_t i = 0; i < 100'000; ++i) {
    config.virtual_interfaces.push_back(fmt::format("e{}", i));
    config.outbound_ranges.list.push_back(AddressRange::single({Family::ipv4, {10, 0, 0, 1}}));
  }
  try {
    (void)plan(config, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("more than 1000 rules"));
  }
  config.most_rules = 20;
  config.virtual_interfaces.clear();
  config.outbound_ranges.list.resize(1);
  const std::size_t rules = plan(config, {}).ruleset.rules.size();
  config.most_rules = rules;
  EXPECT_EQ(plan(config, {}).ruleset.rules.size(), rules);
  config.most_rules = rules - 1;
  EXPECT_THROW((void)plan(config, {}), Error);
}

TEST(Plan, EachFamilyHasItsOwnLoopback) {
  const Plan both = plan(usual(), dual_stack());
  EXPECT_EQ(lines_of_chain(both, Table::nat, "ISTIO_OUTPUT", Family::ipv4).back(),
            "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN");
  EXPECT_EQ(lines_of_chain(both, Table::nat, "ISTIO_OUTPUT", Family::ipv6).back(),
            "-A ISTIO_OUTPUT -d ::1/128 -j RETURN");
  EXPECT_EQ(lines_of_chain(both, Table::nat, "ISTIO_OUTPUT", Family::ipv6).front(),
            "-A ISTIO_OUTPUT -o lo -s ::6/128 -j RETURN");
  EXPECT_THAT(both.routing.loopback_addresses, ElementsAre(*Address::parse("::6")));
}

TEST(Plan, VirtualInterfacesAreInsertedBeforeTheirReturn) {
  Config config = usual();
  config.virtual_interfaces = {"net1"};
  config.outbound_ranges.all = true;
  const Plan made = plan(config, {});
  EXPECT_THAT(lines_of_chain(made, Table::nat, "PREROUTING"),
              ElementsAre("-I PREROUTING 1 -i net1 -j RETURN", "-I PREROUTING 1 -i net1 -j ISTIO_REDIRECT"));
  const Chain prerouting = chains(made.ruleset, Table::nat, Family::ipv4).front();
  EXPECT_EQ(iptables_words(prerouting.rules.front()->target), "-j ISTIO_REDIRECT");
}

TEST(Plan, ALoopbackRangeToCaptureIsNotReturned) {
  Config config = usual();
  config.outbound_ranges.list = {*AddressRange::parse("127.1.2.0/24")};
  for (const std::string& line : lines_of_chain(plan(config, {}), Table::nat, "ISTIO_OUTPUT")) {
    EXPECT_EQ(line.find("! --uid-owner"), std::string::npos) << line;
  }
}

TEST(Plan, OwnerGroups) {
  const auto groups = [](Config config) {
    std::vector<std::string> all = lines_of_chain(plan(config, {}), Table::nat, "ISTIO_OUTPUT");
    return std::vector<std::string>(all.begin() + 7, all.end() - 1);  // between the proxy's rules and LO's
  };
  Config config = usual();
  config.owner_groups_exclude = {888, 889};
  EXPECT_THAT(groups(config), ElementsAre("-A ISTIO_OUTPUT -m owner --gid-owner 888 -j RETURN",
                                          "-A ISTIO_OUTPUT -m owner --gid-owner 889 -j RETURN"));
  config.owner_groups = {false, {5, 6}};
  EXPECT_THAT(groups(config),
              ElementsAre("-A ISTIO_OUTPUT -m owner ! --gid-owner 5 -m owner ! --gid-owner 6 -j RETURN"));
  EXPECT_THAT(plan(config, {}).warnings, ElementsAre(HasSubstr("OWNER_GROUPS_EXCLUDE has no effect")));
  config.owner_groups.list.clear();
  EXPECT_THAT(groups(config), ElementsAre("-A ISTIO_OUTPUT -j RETURN"));
}

TEST(Plan, DnsOfAServerIsCapturedInItsFamilyAlone) {
  Config config = usual();
  config.redirect_dns = true;
  HostFacts facts = dual_stack();
  facts.dns_servers = {*Address::parse("10.96.0.10")};
  const Plan made = plan(config, facts);
  EXPECT_THAT(lines_of_chain(made, Table::nat, "ISTIO_OUTPUT_DNS"),
              ElementsAre("-A ISTIO_OUTPUT_DNS -p tcp --dport 53 -d 10.96.0.10/32 -j REDIRECT --to-ports 15053",
                          "-A ISTIO_OUTPUT_DNS -p udp --dport 53 -d 10.96.0.10/32 -j REDIRECT --to-ports 15053"));
  EXPECT_THAT(lines_of_chain(made, Table::nat, "ISTIO_OUTPUT_DNS", Family::ipv6), IsEmpty());
  EXPECT_THAT(lines_of_chain(made, Table::raw, "ISTIO_OUTPUT_DNS"),
              ElementsAre("-A ISTIO_OUTPUT_DNS -p udp --dport 53 -m owner --uid-owner 1337 -j CT --zone 1",
                          "-A ISTIO_OUTPUT_DNS -p udp --sport 15053 -m owner --uid-owner 1337 -j CT --zone 2",
                          "-A ISTIO_OUTPUT_DNS -p udp --dport 53 -m owner --gid-owner 1337 -j CT --zone 1",
                          "-A ISTIO_OUTPUT_DNS -p udp --sport 15053 -m owner --gid-owner 1337 -j CT --zone 2",
                          "-A ISTIO_OUTPUT_DNS -p udp --dport 53 -d 10.96.0.10/32 -j CT --zone 2"));
  EXPECT_THAT(lines_of_chain(made, Table::raw, "ISTIO_INBOUND"),
              ElementsAre("-A ISTIO_INBOUND -p udp --sport 53 -s 10.96.0.10/32 -j CT --zone 1"));
}

TEST(Plan, DnsWithoutAKnownServerIsNotCaptured) {
  Config config = usual();
  config.redirect_dns = true;
  EXPECT_THAT(lines_of_chain(plan(config, {}), Table::raw, "OUTPUT"), IsEmpty());
}

TEST(Plan, TproxyMarksAndRoutes) {
  Config config = usual();
  config.mode = Mode::tproxy;
  config.inbound_ports.all = true;
  config.inbound_exclude_ports = {15021};
  const Plan made = plan(config, dual_stack());
  std::vector<std::string> resolved;
  for (const Chain& chain : chains(made.ruleset, Table::mangle, Family::ipv6)) {
    if (chain.name != "ISTIO_INBOUND") continue;
    for (const Rule* rule : chain.rules) resolved.push_back(iptables_words(*rule));
  }
  EXPECT_THAT(resolved,
              ElementsAre("-I ISTIO_INBOUND 1 -p tcp -m mark --mark 1337 -j RETURN",
                          "-I ISTIO_INBOUND 2 -p tcp -s ::6/128 -i lo -j RETURN",
                          "-I ISTIO_INBOUND 3 -p tcp -i lo -m mark ! --mark 1338 -j RETURN",
                          "-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN",
                          "-A ISTIO_INBOUND -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT",
                          "-A ISTIO_INBOUND -p tcp -j ISTIO_TPROXY"));
  EXPECT_THAT(made.routing.policy_rules,
              ElementsAre(fwmark_rule(Family::ipv4, 1337, 133), fwmark_rule(Family::ipv6, 1337, 133)));
  config.inbound_ports = {};
  EXPECT_THAT(plan(config, dual_stack()).routing.policy_rules, IsEmpty());
}

TEST(Plan, OfAnAmbientPod) {
  Config config = usual();
  config.dataplane = Dataplane::ambient;
  config.redirect_dns = true;
  config.virtual_interfaces = {"net1"};
  const Plan made = plan(config, dual_stack());
  EXPECT_EQ(iptables_restore(made.ruleset, Family::ipv6),
            "*mangle\n"
            "-N ISTIO_PRERT\n"
            "-N ISTIO_OUTPUT\n"
            "-A PREROUTING -j ISTIO_PRERT\n"
            "-A OUTPUT -j ISTIO_OUTPUT\n"
            "-A ISTIO_PRERT -m mark --mark 0x539/0xfff -j CONNMARK --set-xmark 0x111/0xfff\n"
            "-A ISTIO_OUTPUT -m connmark --mark 0x111/0xfff -j CONNMARK --restore-mark\n"
            "COMMIT\n"
            "*nat\n"
            "-N ISTIO_PRERT\n"
            "-N ISTIO_OUTPUT\n"
            "-A OUTPUT -j ISTIO_OUTPUT\n"
            "-A PREROUTING -j ISTIO_PRERT\n"
            "-A ISTIO_PRERT -i net1 -p tcp -j REDIRECT --to-ports 15001\n"
            "-A ISTIO_PRERT -i net1 -p tcp -j RETURN\n"
            "-A ISTIO_PRERT -s fd16:9254:7127:1337:ffff:ffff:ffff:ffff/128 -p tcp -j ACCEPT\n"
            "-A ISTIO_OUTPUT -d fd16:9254:7127:1337:ffff:ffff:ffff:ffff/128 -p tcp -j ACCEPT\n"
            "-A ISTIO_PRERT ! -d ::1/128 -p tcp ! --dport 15008 -m mark ! --mark 0x539/0xfff -j REDIRECT "
            "--to-ports 15006\n"
            "-A ISTIO_OUTPUT ! -o lo -p udp -m mark ! --mark 0x539/0xfff --dport 53 -j REDIRECT --to-ports 15053\n"
            "-A ISTIO_OUTPUT ! -d ::1/128 -p tcp --dport 53 -m mark ! --mark 0x539/0xfff -j REDIRECT "
            "--to-ports 15053\n"
            "-A ISTIO_OUTPUT -p tcp -m mark --mark 0x111/0xfff -j ACCEPT\n"
            "-A ISTIO_OUTPUT ! -d ::1/128 -o lo -j ACCEPT\n"
            "-A ISTIO_OUTPUT ! -d ::1/128 -p tcp -m mark ! --mark 0x539/0xfff -j REDIRECT --to-ports 15001\n"
            "COMMIT\n"
            "*raw\n"
            "-N ISTIO_OUTPUT\n"
            "-N ISTIO_PRERT\n"
            "-A PREROUTING -j ISTIO_PRERT\n"
            "-A OUTPUT -j ISTIO_OUTPUT\n"
            "-A ISTIO_OUTPUT -p udp -m mark --mark 0x539/0xfff --dport 53 -j CT --zone 1\n"
            "-A ISTIO_PRERT -p udp -m mark ! --mark 0x539/0xfff --sport 53 -j CT --zone 1\n"
            "COMMIT\n");
  EXPECT_THAT(ip_commands(made.routing), ElementsAre("ip rule add pref 32764 fwmark 0x111/0xfff lookup 100",
                                                     "ip -6 rule add pref 32764 fwmark 0x111/0xfff lookup 100",
                                                     "ip route add local default dev lo table 100",
                                                     "ip -6 route add local default dev lo table 100"));
  EXPECT_THAT(made.warnings, IsEmpty());
}

TEST(Plan, OfAGatewayInTheAmbientMeshLeavesInboundAlone) {
  Config config = usual();
  config.dataplane = Dataplane::ambient;
  config.ingress = true;
  const Plan made = plan(config, {});
  EXPECT_THAT(lines_of_chain(made, Table::nat, "ISTIO_PRERT"), IsEmpty());
  EXPECT_THAT(lines_of_chain(made, Table::nat, "PREROUTING"), ElementsAre("-A PREROUTING -j ISTIO_PRERT"));
  EXPECT_THAT(lines_of_chain(made, Table::nat, "ISTIO_OUTPUT"),
              ElementsAre("-A ISTIO_OUTPUT -d 169.254.7.127/32 -p tcp -j ACCEPT",
                          "-A ISTIO_OUTPUT -p tcp -m mark --mark 0x111/0xfff -j ACCEPT",
                          "-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -j ACCEPT",
                          "-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -p tcp -m mark ! --mark 0x539/0xfff -j REDIRECT "
                          "--to-ports 15001"));
}

std::vector<AddressRange> ranges(const std::vector<const char*>& texts) {
  std::vector<AddressRange> all;
  for (const char* text : texts) all.push_back(*AddressRange::parse(text));
  return all;
}

// Excluded sources are returned before any port is looked at, and included ones alone come to the chain.
TEST(Plan, InboundBySource) {
  Config config = usual();
  config.inbound_ports.all = true;
  config.inbound_exclude_ports = {15021};
  config.inbound_ranges.list = ranges({"10.0.0.0/8", "fd00::/8", "192.168.0.0/16"});
  config.inbound_exclude_ranges = ranges({"10.1.0.0/16", "::/0"});
  const Plan redirect = plan(config, dual_stack());
  EXPECT_THAT(lines_of_chain(redirect, Table::nat, "PREROUTING"),
              ElementsAre("-A PREROUTING -s 10.0.0.0/8 -p tcp -j ISTIO_INBOUND",
                          "-A PREROUTING -s 192.168.0.0/16 -p tcp -j ISTIO_INBOUND"));
  EXPECT_THAT(lines_of_chain(redirect, Table::nat, "PREROUTING", Family::ipv6),
              ElementsAre("-A PREROUTING -s fd00::/8 -p tcp -j ISTIO_INBOUND"));
  EXPECT_THAT(
      lines_of_chain(redirect, Table::nat, "ISTIO_INBOUND"),
      ElementsAre("-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN", "-A ISTIO_INBOUND -s 10.1.0.0/16 -p tcp -j RETURN",
                  "-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN", "-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT"));
  EXPECT_THAT(redirect.warnings, IsEmpty());

  config.mode = Mode::tproxy;
  config.inbound_ports = {};
  config.inbound_ports.list = {80};
  const Plan tproxy = plan(config, dual_stack());
  EXPECT_THAT(lines_of_chain(tproxy, Table::nat, "PREROUTING"), IsEmpty());
  EXPECT_THAT(lines_of_chain(tproxy, Table::mangle, "PREROUTING"),
              ElementsAre("-A PREROUTING -s 10.0.0.0/8 -p tcp -j ISTIO_INBOUND",
                          "-A PREROUTING -s 192.168.0.0/16 -p tcp -j ISTIO_INBOUND",
                          "-A PREROUTING -p tcp -m mark --mark 1337 -j CONNMARK --save-mark"));
  EXPECT_THAT(lines_of_chain(tproxy, Table::mangle, "ISTIO_INBOUND").at(0),
              "-A ISTIO_INBOUND -s 10.1.0.0/16 -p tcp -j RETURN");
}

TEST(Plan, WarnsOfSourcesWithoutEffect) {
  Config config = usual();
  config.inbound_ranges.list = ranges({"10.0.0.0/8"});
  config.inbound_exclude_ranges = ranges({"fd00::/8"});
  EXPECT_THAT(plan(config, dual_stack()).warnings,
              ElementsAre("--include-inbound-ranges has no effect: it is for --istio-inbound-ports",
                          "--exclude-inbound-ranges has no effect: it is for --istio-inbound-ports"));
  config.inbound_ports.all = true;
  EXPECT_THAT(plan(config, dual_stack()).warnings,
              ElementsAre("--include-inbound-ranges has no range of IPv6: no inbound TCP is captured there"));
  EXPECT_THAT(plan(config, {}).warnings, ElementsAre(HasSubstr("--exclude-inbound-ranges: 1 IPv6 range(s) not used")));
  config.inbound_ranges.list = ranges({"10.0.0.0/8", "fd00::/8"});
  EXPECT_THAT(plan(config, {}).warnings, ElementsAre(HasSubstr("--include-inbound-ranges: 1 IPv6 range(s) not used"),
                                                     HasSubstr("--exclude-inbound-ranges: 1 IPv6 range(s) not used")));
  config.mode = Mode::tproxy;
  config.capture_udp = {{443, 443}};
  EXPECT_THAT(
      plan(config, dual_stack()).warnings,
      ElementsAre("--include-inbound-ranges is for TCP: UDP to the ports of --capture-udp goes to the proxy from "
                  "every source",
                  "--exclude-inbound-ranges is for TCP: UDP to the ports of --capture-udp goes to the proxy from "
                  "every source"));
}

TEST(Plan, WarnsOfAddressesThatNoPacketHas) {
  Config config = usual();
  config.inbound_ports.all = true;
  config.outbound_ranges.list = ranges({"::ffff:10.0.0.0/104", "10.0.0.0/8"});
  config.outbound_exclude_ranges = ranges({"::ffff:10.3.0.2/128"});
  config.inbound_ranges.list = ranges({"::ffff:10.3.0.2/128", "10.0.0.0/8"});
  config.inbound_exclude_ranges = ranges({"::/0", "::ffff:10.3.0.2/128"});
  const auto said = [](const char* flag, const char* mapped, const char* ipv4) {
    return std::string(flag) + ": no packet has an address of " + mapped +
           ", by which sockets of IPv6 name IPv4: write " + ipv4;
  };
  EXPECT_THAT(plan(config, dual_stack()).warnings,
              ElementsAre(said("--istio-service-cidr", "::ffff:10.0.0.0/104", "10.0.0.0/8"),
                          said("--istio-service-exclude-cidr", "::ffff:10.3.0.2/128", "10.3.0.2/32"),
                          said("--include-inbound-ranges", "::ffff:10.3.0.2/128", "10.3.0.2/32"),
                          said("--exclude-inbound-ranges", "::ffff:10.3.0.2/128", "10.3.0.2/32")));
}

TEST(Plan, WarnsOfOnePortForTwoListenersOfZtunnel) {
  Config config = usual();
  config.dataplane = Dataplane::ambient;
  EXPECT_THAT(plan(config, {}).warnings, IsEmpty());
  config.proxy_port = config.inbound_port;
  EXPECT_THAT(plan(config, {}).warnings, ElementsAre("--envoy-port and --inbound-capture-port lead to one port, 15006: "
                                                     "ztunnel cannot tell what comes for which"));
  config.ingress = true;
  EXPECT_THAT(plan(config, {}).warnings, IsEmpty());
  config.proxy_port = 15053;
  EXPECT_THAT(plan(config, {}).warnings, IsEmpty());
  config.redirect_dns = true;
  EXPECT_THAT(plan(config, {}).warnings, ElementsAre(HasSubstr("--envoy-port and --redirect-dns lead to one port")));
}

// Word by word: of options together that a person will not expect.
TEST(Plan, WarnsOfSurprises) {
  const std::string unused = ": 1 IPv6 range(s) not used: no rules are built for IPv6 here (see --dual-stack)";
  const std::string differ =
      "--proxy-uid and --proxy-gid differ: the uid's rules for lo decide before the gid's are evaluated";
  const auto several = [](const char* flag, const char* first) {
    return fmt::format(
        "{} has several values: traffic over lo of all but {} is returned by the first one's rule before the others "
        "are "
        "evaluated",
        flag, first);
  };
  const auto one_port = [](const char* one, const char* other, int port) {
    return fmt::format("{} and {} lead to one port, {}: ztunnel cannot tell what comes for which", one, other, port);
  };
  const std::string ambient = "--dataplane ambient --ip-families ipv4 ";
  for (const auto& [options, expected] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"-i * -b *", {}},
           {"-u 1,2 -g 1,2", {several("--proxy-uid", "uid 1"), several("--proxy-gid", "gid 1")}},
           {"-u 1 -g 2", {differ}},
           {"-u 1 -g 1", {}},
           {"-u 1,2 -g 1", {several("--proxy-uid", "uid 1"), differ}},
           {"--capture-all-dns", {"--capture-all-dns has no effect without --redirect-dns"}},
           {"--capture-all-dns --redirect-dns", {}},
           {"-d 80", {"--istio-local-exclude-ports has no effect: it is for --istio-inbound-ports '*'"}},
           // What an injector passes without being asked.
           {"-d 15090,15021,15020 -b 81", {}},
           {"-d 15090,15021,123 -b 81", {}},
           {"-d 15020,15021,15090 -b 81", {}},
           {"-i * -x 0.0.0.0/0",
            {"--istio-service-exclude-cidr 0.0.0.0/0 excludes all of IPv4: no outbound IPv4 is captured"}},
           {"-x 0.0.0.0/0", {}},
           {"-d 15090,15021,80,15020 -b 81",
            {"--istio-local-exclude-ports has no effect: it is for --istio-inbound-ports '*'"}},
           {"-d 80 -b 81", {"--istio-local-exclude-ports has no effect: it is for --istio-inbound-ports '*'"}},
           {"-d 80 -b *", {}},
           {"ISTIO_OUTBOUND_OWNER_GROUPS=1 ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=2",
            {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE has no effect: ISTIO_OUTBOUND_OWNER_GROUPS lists the groups"}},
           {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=2", {}},
           {"--include-inbound-ranges 10.0.0.0/8 --ip-families ipv4",
            {"--include-inbound-ranges has no effect: it is for --istio-inbound-ports"}},
           {"--include-inbound-ranges *", {}},
           {"--exclude-inbound-ranges 10.0.0.0/8 -b *", {}},
           {"-b * --include-inbound-ranges fd00::/8",
            {"--include-inbound-ranges has no range of IPv4: no inbound TCP is captured there"}},
           {"-i fd00::/8 --ip-families ipv4", {"--istio-service-cidr" + unused}},
           {"-i * -x fd00::/8 --ip-families ipv4", {"--istio-service-exclude-cidr" + unused}},
           {"-i * -x 10.0.0.0/8 --ip-families ipv4", {}},
           {"-x ::ffff:10.0.0.0/104",
            {"--istio-service-exclude-cidr: no packet has an address of ::ffff:10.0.0.0/104, by "
             "which sockets of IPv6 name IPv4: write 10.0.0.0/8"}},
           {"-x ::/0", {}},
           {ambient, {}},
           {ambient + "-p 1 -z 1", {one_port("--envoy-port", "--inbound-capture-port", 1)}},
           {ambient + "-p 1 -e 1", {one_port("--envoy-port", "--inbound-tunnel-port", 1)}},
           {ambient + "-z 1 -e 1", {one_port("--inbound-capture-port", "--inbound-tunnel-port", 1)}},
           {ambient + "-p 1 -z 1 -e 1",
            {one_port("--envoy-port", "--inbound-capture-port", 1),
             one_port("--envoy-port", "--inbound-tunnel-port", 1),
             one_port("--inbound-capture-port", "--inbound-tunnel-port", 1)}},
           {ambient + "-p 1 -z 1 -e 1 --ingress", {}},
           {ambient + "-z 15053", {}},
           {ambient + "-z 15053 --redirect-dns", {one_port("--inbound-capture-port", "--redirect-dns", 15053)}},
       })
    EXPECT_EQ(planned(options).warnings, expected) << options;
}

TEST(Plan, WarnsOfProxyIdsThatShadowEachOther) {
  Config config = usual();
  config.proxy_uids = {1337, 1338};
  EXPECT_THAT(plan(config, {}).warnings, ElementsAre(HasSubstr("--proxy-uid has several values"), HasSubstr("differ")));
}

// The same chain seen for both families at once (nf_tables) and for each alone (iptables) has the same order.
TEST(Chains, OfBothFamiliesAgreeWithEachFamilys) {
  Config config = usual();
  config.mode = Mode::tproxy;
  config.inbound_ports.all = true;
  config.virtual_interfaces = {"net1", "net2"};
  config.outbound_ranges.list = {*AddressRange::parse("10.0.0.0/8"), *AddressRange::parse("fd00::/8"),
                                 *AddressRange::parse("11.0.0.0/8")};
  const Ruleset ruleset = plan(config, dual_stack()).ruleset;
  for (Table table : all_tables) {
    for (const Chain& merged : chains(ruleset, table, Families::both())) {
      for (Family family : {Family::ipv4, Family::ipv6}) {
        std::vector<const Rule*> of_family;
        for (const Rule* rule : merged.rules) {
          if (rule->families.contains(family)) of_family.push_back(rule);
        }
        for (const Chain& single : chains(ruleset, table, family)) {
          if (single.name == merged.name) {
            EXPECT_EQ(single.rules, of_family) << merged.name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sidetrack
