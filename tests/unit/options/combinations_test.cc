// SPDX-License-Identifier: GPL-2.0-or-later
// Options together: which are taken, and what is said of those that exclude each other or would have no effect.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "options/flags.h"
#include "unit/options_text.h"

namespace sidetrack {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::parse_arguments;
using testing::parse_text;
using testing::Variables;

// "accepted", or what is said, and after a semicolon what to do.
std::string said_of(std::string_view arguments, const Variables& variables = {}) {
  try {
    parse_text("sidetrack " + std::string(arguments), variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  return "accepted";
}

struct Case {
  std::string_view arguments;
  std::string expected = "accepted";
};
void expect(const std::vector<Case>& cases) {
  for (const auto& [arguments, expected] : cases) EXPECT_EQ(said_of(arguments), expected) << arguments;
}

TEST(Combinations, OfWhatApplyDoesBeforeAndAfter) {
  const auto prove = [](const char* with) {
    return fmt::format(
        "--prove checks the rules after the change, {} changes no rules; sidetrack lint checks only options", with);
  };
  const auto wait = [](const char* with) {
    return fmt::format("--when-ready waits before rules are installed, {} installs none; leave one of them out", with);
  };
  const auto confirm = [](const char* with) {
    return fmt::format("--confirm rolls back what was installed, {} installs nothing; leave one of them out", with);
  };
  expect({
      {"apply --prove --dry-run", prove("--dry-run")},
      {"apply --prove --cleanup-only", prove("--cleanup-only")},
      {"apply --prove --skip-rule-apply", prove("--skip-rule-apply")},
      {"apply --prove --check"},
      {"apply --prove --confirm 5s --when-ready 80"},
      {"apply --when-ready 80 --dry-run", wait("--dry-run")},
      {"apply --when-ready 80 --cleanup-only", wait("--cleanup-only")},
      {"apply --when-ready 80 --skip-rule-apply", wait("--skip-rule-apply")},
      {"apply --when-ready 80 --check"},
      {"apply --confirm 5s --dry-run", confirm("--dry-run")},
      {"apply --confirm 5s --cleanup-only", confirm("--cleanup-only")},
      {"apply --confirm 5s --check", confirm("--check")},
      {"apply --confirm 5s --skip-rule-apply", confirm("--skip-rule-apply")},
      {"apply --check --dry-run", "--check and --dry-run exclude each other: give one of them"},
      {"apply --check --cleanup-only",
       "--check asks about rules to be installed, and cleaning installs none: leave one of them out"},
      {"apply --check --skip-rule-apply"},
      {"apply --dry-run --cleanup-only"},
      {"apply --dry-run --skip-rule-apply"},
  });
}

TEST(Combinations, OfPlaces) {
  const std::string one = "--netns, --pid and --network-namespace exclude each other: give one of them";
  expect({{"--netns a"},
          {"--pid 1"},
          {"--network-namespace a"},
          {"--netns a --pid 1", one},
          {"--netns a --network-namespace b", one},
          {"--pid 1 --network-namespace b", one},
          {"--pid 1 --netns a --network-namespace b", one},
          {"show --pid 1 --host"}});
}

TEST(Combinations, OfWhatIsPrinted) {
  const std::string family =
      "--family: apply installs both families; --family goes with render and --dry-run; to install only IPv4: "
      "--ip-families ipv4";
  const std::string format = "--format: apply prints no rules; --format and --json go with render and --dry-run";
  expect({
      {"apply --family ipv4", family},
      {"apply --family ipv6", family},
      {"apply --family ipv4 --dry-run"},
      {"render --family ipv6"},
      {"map --plan --family ipv6"},
      {"apply --format nft", format},
      {"apply --format text"},
      {"apply --json", format},
      {"apply --json=false"},
      {"apply --json -n"},
      {"map --json --format svg", "--json and --format svg exclude each other: give one of them"},
      {"map --format svg --json", "--json and --format svg exclude each other: give one of them"},
      {"show --json --format json"},
      {"show --json --format text --format json"},
      {"show --json=false --format text"},
      {"show --format text --json", "--json and --format text exclude each other: give one of them"},
  });
}

// What makes rules says nothing of those that are there.
TEST(Combinations, OfRulesThatAreThere) {
  const std::string effect = ": without effect on the live rules; ";
  const std::string plan = "--plan asks about the rules of the given options";
  expect({
      {"map -b 80", "-b, --istio-inbound-ports" + effect + plan},
      {"map --plan -b 80"},
      {"lint -b 80"},
      {"map --dataplane ambient", "--dataplane" + effect + plan},
      {"show --dataplane ambient"},
      {"clean --dataplane ambient"},
      {"diff -b 80"},
      {"diff --clean -b 80",
       "-b, --istio-inbound-ports" + effect + "diff --clean takes no options of the rules but --dataplane"},
      {"diff --clean --ingress", "--ingress" + effect + "diff --clean takes no options of the rules but --dataplane"},
      {"diff --clean --dataplane ambient"},
      {"diff --clean --mesh linkerd"},
      {"clean --mesh app-mesh"},
      {"diff --mesh linkerd", "--mesh: whose rules clean would remove; it goes with diff --clean, and with clean"},
      {"clean --mesh kuma --dataplane ambient",
       "--mesh and --dataplane ambient exclude each other: an ambient pod's rules are Istio's"},
      {"clean --mesh Linkerd",
       "--mesh: 'Linkerd': expected one of apisix|app-mesh|consul|kuma|linkerd|mirrord|osm|polaris|telepresence"},
      {"clean --mesh cilium",
       "--mesh: 'cilium': expected one of apisix|app-mesh|consul|kuma|linkerd|mirrord|osm|polaris|telepresence; "
       "Cilium's agent owns the rules of the node and of its pods, and writes them again: remove Cilium itself"},
      {"diff --effect"},
      {"diff --effect a b"},
      {"diff --effect - b"},
      {"diff --effect a -"},
      {"diff --effect a b -b 80", "-b, --istio-inbound-ports" + effect + "the files have the rules"},
      {"diff --effect a b --dataplane ambient", "--dataplane" + effect + "the files have the rules"},
  });
  const std::string two =
      "given: expected two, or none; each is a file that `sidetrack render --format json` or `sidetrack show --json` "
      "has written, or a pod: pid:PID, netns:NAME; without them, the live rules are compared with those that the "
      "options ask for";
  const std::string places =
      "diff --effect: --pid, --netns, --clean and --pod cannot be combined with two files or pods";
  expect({
      {"diff --effect a", "diff --effect: 1 file or pod " + two},
      {"diff --effect a b c", "diff --effect: 3 files or pods " + two},
      {"diff --effect - -", "diff --effect: standard input is given twice"},
      {"diff --effect a b --pid 1", places},
      {"diff --effect a b --netns c", places},
      {"diff --effect a b --clean", places},
      {"diff --effect --clean"},
      {"diff --effect --pid 1"},
  });
  EXPECT_THAT(parse_text("sidetrack diff --effect a b").compared, ElementsAre("a", "b"));
  EXPECT_THAT(parse_text("sidetrack explain out tcp :80").compared, IsEmpty());
}

// Of one host: no multicast, nothing reserved, nothing that is the same everywhere.
TEST(Combinations, OfRulesFromText) {
  const auto excludes = [](const char* option) {
    return fmt::format("--rules and {} exclude each other: the rules are those of the text", option);
  };
  const std::string of_no_pod = ": without a pod; it goes with --rules";
  const std::string without_effect =
      "--rules: expected --effect, and no files or pods besides; sidetrack diff --effect --rules FILE compares its "
      "rules "
      "with those of the options";
  expect({
      {"show --rules a --rules -"},
      {"map --rules a --address 10.0.0.1/24,fd00::1%net1 --route default --route 10.0.0.0/8 --family ipv4"},
      {"explain out tcp 10.0.0.1:80 --rules - --uid 5"},
      {"lint --rules a --json"},
      {"diff --effect --rules a -o 22 --backend nftables"},
      {"diff --effect --rules a --clean"},
      {"show --rules - --rules -", "--rules: standard input is given twice"},
      {"show --rules a --pid 5", excludes("--pid")},
      {"show --rules a --netns x", excludes("--netns")},
      {"show --rules a --watch", excludes("--watch")},
      {"map --rules a --plan", excludes("--plan")},
      {"lint --rules a -o 22", "--rules and options of rules exclude each other: the rules are those of the text"},
      {"map --rules a -o 22",
       "-o, --istio-local-outbound-ports-exclude: without effect on the live rules; --plan asks about the rules of the "
       "given options"},
      {"map --rules a --backend nftables",
       "--rules and --backend exclude each other: the text says of which backend its rules are"},
      {"diff --rules a -o 22", without_effect},
      {"diff --effect --rules a b c", without_effect},
      {"map --address 10.0.0.1", "--address" + of_no_pod},
      {"map --route default", "--route" + of_no_pod},
      {"verify --rules a", said_of("verify --rules a")},
  });
  EXPECT_THAT(said_of("verify --rules a"), HasSubstr("--rules"));
  const CommandLine line = parse_text("sidetrack map --rules a --address 10.0.0.1/24%net1,fd00::1");
  EXPECT_THAT(line.text.files, ElementsAre("a"));
  EXPECT_EQ(line.text.pod.addresses.at(0).interface, "net1");
  EXPECT_EQ(line.text.pod.addresses.at(0).address, (InterfaceAddress{*Address::parse("10.0.0.1"), 24}));
  EXPECT_EQ(line.text.pod.addresses.at(1).interface, "eth0");
  EXPECT_EQ(line.text.pod.addresses.at(1).address, (InterfaceAddress{*Address::parse("fd00::1"), 128}));
  for (const std::string address : {"10.0.0.1/0", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/x", "x", "/24", "%eth0"})
    EXPECT_EQ(
        said_of("map --rules a --address " + address),
        "--address: '" + address + "': expected an address of the pod, such as 10.244.1.7/24 or 10.244.1.7/24%eth0");
}

// As ip(8) prints them.
TEST(Combinations, RoutesOfAPodThatIsGiven) {
  const auto given = [](const std::string& words) {
    return parse_arguments({"sidetrack", "map", "--rules", "a", "--route", words}).text.pod;
  };
  const auto route = [&](const std::string& words) {
    const GivenPod pod = given(words);
    const Route& made = pod.routes.at(0);
    return ip_arguments(made) + (made.gateway ? " via " + made.gateway->text() : "") +
           (made.source ? " src " + made.source->text() : "");
  };
  EXPECT_EQ(route("default via 10.0.0.1 dev net1 proto static metric 100 onlink"),
            "default dev net1 table main via 10.0.0.1");
  EXPECT_EQ(route("default via fd00::1"), "default dev eth0 table main via fd00::1");
  EXPECT_EQ(given("default via fd00::1").routes.at(0).family(), Family::ipv6);
  EXPECT_EQ(route("10.0.0.0/8 dev eth1 proto kernel scope link src 10.0.0.2"),
            "10.0.0.0/8 dev eth1 table main src 10.0.0.2");
  EXPECT_EQ(route("local default dev lo table 133"), "local default dev lo table 133");
  EXPECT_EQ(route("unreachable 10.0.0.0/8"), "unreachable 10.0.0.0/8 table main");
  EXPECT_EQ(route("10.1.0.0/24 dev eth0 proto kernel scope link src 10.1.0.7 linkdown"),
            "10.1.0.0/24 dev eth0 table main src 10.1.0.7");
  EXPECT_EQ(route("fe80::/64 dev eth0 proto kernel metric 256 expires 86396sec hoplimit 64 pref medium"),
            "fe80::/64 dev eth0 table main");
  // The kernel asks those of the lowest metric first.
  const GivenPod several = parse_arguments({"sidetrack", "map", "--rules", "a", "--route", "default dev a metric 100",
                                            "--route", "default dev b metric 50", "--route", "default dev c metric 50",
                                            "--route", "default dev f metric 1 dead linkdown", "--route",
                                            "default dev d", "--route", "default via fd00::1 dev e"})
                               .text.pod;
  std::string devices;
  for (const Route& each : several.routes) devices += each.device;
  EXPECT_EQ(devices, "dbcae");
  const auto rules = [&](const std::string& words) {
    std::string all;
    for (const PolicyRule& rule : given(words).policy_rules) all += ip_words(rule) + "\n";
    return all;
  };
  EXPECT_EQ(rules("32766:\tfrom all lookup main "),
            "ip rule 32766: from all lookup main\nip -6 rule 32766: from all lookup main\n");
  EXPECT_EQ(rules("100: not from 10.0.0.0/8 fwmark 0x1/0xf iif lo lookup 7 suppress_prefixlength 0 proto static"),
            "ip rule 100: not from 10.0.0.0/8 fwmark 0x1/0xf iif lo lookup 7 suppress_prefixlength 0\n");
  EXPECT_EQ(rules("5: from all to fd00::/8 uidrange 0-0 prohibit"),
            "ip -6 rule 5: to fd00::/8 uidrange 0-0 prohibit\n");
  const GivenPod ruled = given("fwmark 0x111/0xfff lookup 100");
  ASSERT_EQ(ruled.policy_rules.size(), 2U);
  EXPECT_EQ(ruled.policy_rules.at(1), fwmark_rule(Family::ipv6, 0x111, 100, 0xfff));
  EXPECT_EQ(given("$ ip route\ndefault via 10.0.0.1 dev eth0 \n10.0.0.0/24 dev eth0 scope link\n").routes.size(), 2U);
  const GivenPod hops =
      given("10.14.0.0/16 \n\tnexthop via 10.0.0.3 dev eth0 weight 1 \n\tnexthop via 10.1.0.4 dev net1 weight 1 \n");
  ASSERT_EQ(hops.routes.size(), 1U);
  EXPECT_EQ(hops.routes.front().device, "eth0");
  EXPECT_EQ(hops.routes.front().other_devices, std::vector<std::string>{"net1"});
  for (const std::string words :
       {"default via", "default via fd00::1 src 10.0.0.1", "nowhere", "local", "default metric", "default nexthop via",
        "fwmark x lookup 1", "fwmark 1 lookup x", "32766: from all", "x: from all lookup main", "1: from x lookup 1",
        "1: from all lookup x", "1: from all fwmark x lookup 1", "1: lookup", "10.0.0.0/8 via fd00::1"})
    EXPECT_THAT(
        [&] { static_cast<void>(given(words)); },
        ::testing::ThrowsMessage<Error>("--route: '" + words + "': expected a route or a policy rule as ip prints it"));
}

TEST(Combinations, AddressesOfProbes) {
  const auto said = [](const char* option, const char* address) {
    return said_of(fmt::format("apply --dataplane ambient --{} {}", option, address));
  };
  for (const char* address : {"1.0.0.0", "223.255.255.255", "169.254.0.1", "10.0.0.1"})
    EXPECT_EQ(said("probe-address", address), "accepted") << address;
  for (const char* address : {"fd00::1", "2001:db8::1", "fec0::1", "fe00::1", "::2"})
    EXPECT_EQ(said("probe-address6", address), "accepted") << address;
  for (const char* address :
       {"0.0.0.0", "127.0.0.1", "127.255.255.255", "224.0.0.0", "239.1.1.1", "240.0.0.1", "255.255.255.255"})
    EXPECT_THAT(said("probe-address", address), HasSubstr("expected an IPv4 address, not loopback")) << address;
  for (const char* address : {"::", "::1", "ff00::1", "ff02::1", "fe80::1", "febf::1", "::ffff:127.0.0.1"})
    EXPECT_THAT(said("probe-address6", address), HasSubstr("expected an IPv6 address, not loopback")) << address;
  EXPECT_EQ(said_of("apply --dataplane ambient --probe-address ::ffff:10.0.0.1"),
            "--probe-address: '::ffff:10.0.0.1': expected an IPv4 address, not loopback, multicast or unspecified; for "
            "IPv6, use --probe-address6");
  EXPECT_EQ(said_of("apply --dataplane ambient --probe-address6 ::ffff:10.0.0.1"),
            "--probe-address6: '::ffff:10.0.0.1': expected an IPv6 address, not loopback, multicast, unspecified, "
            "link-local or of ::ffff:0:0/96; for IPv4, use --probe-address");
}

TEST(Combinations, OfThePluginOfTheNode) {
  for (const char* action : {"uninstall", "status"}) {
    for (const auto& [option, spelled] :
         std::vector<std::pair<std::string, std::string>>{{"--backend nftables", "--backend"},
                                                          {"--exclude-namespaces a", "--exclude-namespaces"},
                                                          {"--plugin-log /a", "--plugin-log"},
                                                          {"--allow-dynamic", "--allow-dynamic"},
                                                          {"-u 5", "-u, --proxy-uid"},
                                                          {"--dataplane ambient", "--dataplane"}})
      EXPECT_EQ(said_of(fmt::format("cni {} {}", action, option)),
                fmt::format("{}: without effect on cni {}; it is for cni install", spelled, action));
  }
  for (const char* action : {"install", "uninstall"}) {
    for (const char* option : {"--json", "--format json"})
      EXPECT_EQ(said_of(fmt::format("cni {} {}", action, option)),
                fmt::format("{}: cni {} prints no result; it goes with cni status",
                            std::string_view(option).substr(0, std::string_view(option).find(' ')), action));
    EXPECT_EQ(said_of(fmt::format("cni {} --watch --bin-dir /a --net-dir /b", action)), "accepted");
  }
  expect({{"cni install --now", "--now: without effect on cni install; it is for cni uninstall"},
          {"cni uninstall --now --records /a"},
          {"cni status --watch",
           "--watch: not for cni status, which looks once; --watch goes with cni install and cni uninstall"},
          {"cni status --json"},
          {"cni status --bin-dir /a --net-dir /b"},
          {"cni install --backend nftables --exclude-namespaces a --plugin-log /a --allow-dynamic -u 5 "
           "--dataplane=sidecar"}});
  const CommandLine line = parse_text(
      "sidetrack cni install --bin-dir /a/b// --net-dir /// --exclude-namespaces a,b-c --plugin-log /var/log/a "
      "--allow-dynamic --watch");
  EXPECT_EQ(line.cni.action, CniAction::install);
  EXPECT_EQ(line.cni.bin_dir, "/a/b");
  EXPECT_EQ(line.cni.net_dir, "/");
  EXPECT_THAT(line.cni.exclude_namespaces, ElementsAre("a", "b-c"));
  EXPECT_EQ(line.cni.plugin_log, "/var/log/a");
  EXPECT_TRUE(line.cni.allow_dynamic);
  EXPECT_TRUE(line.watch);
  EXPECT_EQ(parse_text("sidetrack cni status").cni.action, CniAction::status);
  std::string names;
  for (const Platform& platform : platforms) {
    names += (names.empty() ? "" : "|") + std::string(platform.name);
    const CniOptions cni = parse_text(fmt::format("sidetrack cni install --platform {}", platform.name)).cni;
    EXPECT_EQ(cni.bin_dir, platform.programs);
    EXPECT_EQ(cni.net_dir, platform.configurations);
    EXPECT_EQ(cni.standalone, platform.standalone);
  }
  EXPECT_EQ(names, platform_names);
  const CniOptions mixed = parse_text("sidetrack cni install --bin-dir /b --platform k3s").cni;
  EXPECT_EQ(mixed.bin_dir, "/b") << "what is named counts, wherever it stands";
  EXPECT_EQ(mixed.net_dir, "/var/lib/rancher/k3s/agent/etc/cni/net.d");
  EXPECT_EQ(said_of("cni install --platform openshft").substr(0, 22), "--platform: 'openshft'");
  EXPECT_EQ(said_of("cni install --bin-dir a/"), "--bin-dir: 'a/': expected an absolute path");
  EXPECT_EQ(said_of("cni install --bin-dir ''"), "--bin-dir: no value: expected an absolute path");
}

TEST(Combinations, OfManifests) {
  expect({
      {"args", "args: no file given; for example: sidetrack args -f deployment.yaml --why"},
      {"inject", "inject: no file given; for example: sidetrack inject -f deployment.yaml --template proxy.yaml"},
      {"inject -f a",
       "inject: no template given; for example: sidetrack inject -f deployment.yaml --template proxy.yaml"},
      {"inject -f a -f b --template c --set global.proxy.statusPort=5 --values d"},
      {"args -f ''", "-f, --filename: no value: expected the name of a file, or - for standard input"},
      {"args -f - --why --json"},
      {"render --values a", "--set, --values: Helm values without a pod; they go with --pod"},
      {"render --set global.proxy.statusPort=5", "--set, --values: Helm values without a pod; they go with --pod"},
      {"inject -f a --template b --template c", "--template: 'c': expected one file, and 'b' is given already"},
  });
  const CommandLine line = parse_text("sidetrack inject -f a -f - --template c --values d --values e");
  EXPECT_THAT(line.manifest.files, ElementsAre("a", "-"));
  EXPECT_EQ(line.manifest.injected, "c");
  EXPECT_THAT(line.manifest.values, ElementsAre("d", "e"));
  EXPECT_FALSE(line.manifest.why);
  EXPECT_TRUE(parse_text("sidetrack args -f a --why").manifest.why);
}

// The variable that gives an option its value is named, of two the one that counts.
TEST(Combinations, NameTheVariableThatSaysIt) {
  const std::string ambient =
      ": not with --dataplane ambient, whose rules do not depend on it; leave it out; ztunnel is "
      "known by the mark of its sockets, and captures all TCP";
  EXPECT_EQ(said_of("apply --dataplane ambient", {{"DROP_INVALID", "true"}}), "DROP_INVALID" + ambient);
  EXPECT_EQ(said_of("apply --dataplane ambient", {{"INVALID_DROP", "true"}}), "INVALID_DROP" + ambient);
  EXPECT_EQ(said_of("apply --dataplane ambient", {{"DROP_INVALID", "true"}, {"INVALID_DROP", "true"}}),
            "INVALID_DROP" + ambient);
  EXPECT_EQ(said_of("apply --dataplane ambient --drop-invalid", {{"INVALID_DROP", "true"}}),
            "--drop-invalid" + ambient);
  EXPECT_EQ(said_of("apply --dataplane ambient", {{"DROP_INVALID", "false"}, {"PROXY_UID", "1337"}}), "accepted");
  EXPECT_EQ(said_of("apply --dataplane ambient -u 1337,7"), "-u, --proxy-uid" + ambient);
  EXPECT_EQ(said_of("apply --dataplane ambient -u 1337 -g 1337 -p 1 -z 2 -e 3 --redirect-dns --dual-stack -k a"),
            "accepted");
  EXPECT_EQ(said_of("apply --dataplane ambient --run-validation"),
            "--run-validation: not with --dataplane ambient: it connects as a sidecar does; sidetrack verify --probe "
            "--dataplane ambient tries real connections");
  EXPECT_EQ(said_of("apply --ingress"),
            "--ingress: without effect on the rules of a sidecar; it goes with --dataplane ambient");
}

// The last of several counts, the empty one as if none were given.
TEST(Combinations, OfTheSameOptionTwice) {
  EXPECT_FALSE(parse_text("sidetrack --backend nftables --backend auto").applying.backend);
  EXPECT_FALSE(
      parse_text("sidetrack --force-iptables-binary nft --force-iptables-binary=").applying.force_iptables_binary);
  EXPECT_EQ(parse_text("sidetrack -m TPROXY -m ''").config.mode, Mode::redirect);
  EXPECT_EQ(parse_text("sidetrack -n --json --json=false").format, Format::json);
  EXPECT_EQ(parse_text("sidetrack pods --metrics a --metrics b").pods.metrics, "b");
  EXPECT_EQ(parse_text("sidetrack show --netns a --netns b").netns, "b");
}

TEST(Combinations, WhatCommandsAskForAlone) {
  const CommandLine pods = parse_text("sidetrack pods --repair --records /a/ --metrics m --pod-timeout 1500us");
  EXPECT_TRUE(pods.pods.repair);
  EXPECT_EQ(pods.pods.records, "/a");
  EXPECT_EQ(pods.pods.metrics, "m");
  EXPECT_EQ(pods.pods.pod_timeout, 2ms);
  EXPECT_EQ(parse_text("sidetrack pods").pods.pod_timeout, 5s);
  EXPECT_EQ(parse_text("sidetrack pods").pods.records, "/run/sidetrack/pods");
  EXPECT_FALSE(parse_text("sidetrack pods").pods.repair);
  const CommandLine packet = parse_text(
      "sidetrack explain out tcp :80 --from-port 9 --mark 0x10 --state reply --cgroup /a/ --out-interface b");
  EXPECT_EQ(packet.packet.from_port, 9);
  EXPECT_EQ(packet.packet.mark, 16U);
  EXPECT_EQ(packet.packet.state, ConnectionState::reply);
  EXPECT_EQ(packet.packet.cgroup, "a");
  EXPECT_EQ(packet.packet.given_cgroup, "/a/");
  EXPECT_EQ(packet.packet.out_interface, "b");
  for (const auto& [word, way] : {std::pair{"out", Direction::out}, {"in", Direction::in}, {"lo", Direction::lo}})
    EXPECT_EQ(parse_text("sidetrack map --way " + std::string(word)).way, way);
  EXPECT_FALSE(parse_text("sidetrack map").way);
  for (const auto& [word, format] : {std::pair{"text", Format::text}, {"json", Format::json}, {"svg", Format::svg}})
    EXPECT_EQ(parse_text("sidetrack map --format " + std::string(word)).format, format);
  for (const auto& [word, shell] : {std::pair{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}})
    EXPECT_EQ(parse_text("sidetrack completion " + std::string(word)).shell, shell);
  EXPECT_TRUE(parse_text("sidetrack show --no-sandbox").no_sandbox);
  EXPECT_TRUE(parse_text("sidetrack show --host").host);
  EXPECT_TRUE(parse_text("sidetrack apply --strict").applying.strict);
  EXPECT_TRUE(parse_text("sidetrack apply --prove").prove);
  EXPECT_EQ(parse_text("sidetrack --log_output_level a:b:default:warn").log.level, LogOptions::Level::info);
  EXPECT_EQ(said_of("--vklog 0"), "accepted");
}

// A value may begin with a dash and a digit: it is none of the options.
TEST(Combinations, NumbersBelowZeroAreValues) {
  for (const char* number : {"-0", "-1", "-9"}) {
    EXPECT_EQ(said_of(fmt::format("-p {}", number)),
              fmt::format("-p, --envoy-port: '{}': expected a port from 1 to 65535", number));
  }
  EXPECT_EQ(said_of("-p -n"), "-p, --envoy-port: no value: expected a port from 1 to 65535");
  EXPECT_EQ(said_of("-p -"), "-p, --envoy-port: '-': expected a port from 1 to 65535");
}

// Of words that a shell may have made of an asterisk, and of no others.
TEST(Combinations, SuspectAnAsteriskOfAWordWithLetters) {
  for (int c = '!'; c <= '~'; ++c) {
    if (c == ',' || c == '@' || c == '-') continue;  // they mean something themselves
    const std::string word(1, static_cast<char>(c));
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    std::string hint;
    try {
      parse_arguments({"sidetrack", "-x", word + "/"});
    } catch (const Error& error) {
      hint = error.hint();
    }
    EXPECT_EQ(hint.find("if the shell expanded") != std::string::npos, is_letter) << word;
  }
  const std::string range = "expected an address range such as 10.0.0.0/8 or fd00::/8";
  EXPECT_EQ(said_of("-x fd00:g"), "-x, --istio-service-exclude-cidr: 'fd00:g': " + range);
  EXPECT_EQ(said_of("apply", {{"ISTIO_SERVICE_EXCLUDE_CIDR", "a"}}), "ISTIO_SERVICE_EXCLUDE_CIDR: 'a': " + range);
  EXPECT_EQ(said_of("--dns-server a"), "--dns-server: 'a': expected an IPv4 or IPv6 address");
  EXPECT_EQ(said_of("-i a"), "-i, --istio-service-cidr: 'a': " + range +
                                 "; if the shell expanded a bare * to file names, quote it: -i '*'");
  EXPECT_EQ(said_of("-x a"), "-x, --istio-service-exclude-cidr: 'a': " + range +
                                 "; if the shell expanded a bare * to file names: this option takes no *; -x '' is the "
                                 "empty list");
}

TEST(Combinations, GroupsAreAtMostSixtyFour) {
  std::string groups = "0";
  for (int gid = 1; gid < 64; ++gid) groups += "," + std::to_string(gid);
  for (const char* variable : {"ISTIO_OUTBOUND_OWNER_GROUPS", "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE"}) {
    EXPECT_EQ(said_of("apply", {{variable, groups}}), "accepted");
    EXPECT_THAT(said_of("apply", {{variable, groups + ",64"}}),
                ::testing::HasSubstr("expected at most 64 groups, not 65"));
  }
}

TEST(Combinations, PathsOfCgroupsHaveAtMost511Characters) {
  for (const std::string& path : {std::string(511, 'a'), "/" + std::string(511, 'a') + "/", std::string("a/...")})
    EXPECT_EQ(said_of("--bypass-cgroup " + path), "accepted");
  for (const std::string& path : {std::string(512, 'a'), std::string("."), std::string(".."), std::string("a//b"),
                                  std::string("a/./b"), std::string("a\x7f"), std::string("a\\")})
    EXPECT_THAT(said_of("--bypass-cgroup " + path), ::testing::HasSubstr("expected the path of a cgroup")) << path;
  for (const std::string& path : {std::string("a!"), std::string("~"), std::string("a#b[]")})
    EXPECT_EQ(said_of("--bypass-cgroup " + path), "accepted") << path;
}

}  // namespace
}  // namespace sidetrack
