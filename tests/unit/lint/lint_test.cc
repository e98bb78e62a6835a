// SPDX-License-Identifier: GPL-2.0-or-later
// Findings of options, manifests and live rules; and that they are true: an option or value that is said to have no
// effect can be left out, one that is not said to have none cannot.
#include "lint/lint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "host/host.h"
#include "inject/manifest/facts.h"
#include "inject/manifest/read.h"
#include "lint/invariants.h"
#include "options/flags.h"
#include "render/effect.h"
#include "render/render.h"
#include "support/amount.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "unit/usual_config.h"
#include "walk/explain.h"

namespace sidetrack::lint {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> words(const Findings& findings) {
  std::vector<std::string> all;
  for (const Finding& one : findings) all.push_back(fmt::format("{} {}", info(one.code).name, one.subject));
  return all;
}

Findings of_options(std::string_view options, std::optional<PodView> pod = {}, const PodFacts* manifest = nullptr) {
  CommandLine line;
  const HostFacts facts_of = asked(options, line);
  return lint_options({.config = line.config, .facts = facts_of, .pod = std::move(pod), .manifest = manifest});
}

constexpr const char* usual_options = "-i * -b * -d 15090,15021,15020";

PodView pod_with_ipv6() {
  PodView pod;
  pod.interfaces = {{"lo", {{*Address::parse("127.0.0.1"), 8}, {*Address::parse("::1"), 128}}},
                    {"eth0", {{*Address::parse("10.1.0.2"), 24}, {*Address::parse("fd00:1::2"), 64}}}};
  pod.routes = {{*AddressRange::parse("0.0.0.0/0"), "eth0"}, {*AddressRange::parse("::/0"), "eth0"}};
  return pod;
}

class WhatTheInjectorPasses : public ::testing::TestWithParam<const char*> {};

TEST_P(WhatTheInjectorPasses, IsNothingToBeFound) {
  EXPECT_THAT(words(of_options(fmt::format("{}{}", usual_options, GetParam()))), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    LintOptions, WhatTheInjectorPasses,
    ::testing::Values("", " --redirect-dns --dns-server 10.96.0.10", " -m TPROXY", " -o 22 -x 10.0.0.0/8",
                      " -c net1 -k net2", " --drop-invalid", " --exclude-uids 101,1000-1999", " --exclude-gids 101",
                      " --exclude-uid-ports 101:443,8000-8100,102:53",
                      " --exclude-uids 101 --exclude-uid-ports 102:53-80 --redirect-dns --capture-all-dns",
                      " -m TPROXY --capture-udp 443,8000-8100 --exclude-uids 101", " -u 1337 -g 2337",
                      " -p 16001 -z 16006"));

// An injector excludes ports of the proxy in every pod; what a person adds is without effect.
TEST(LintOptions, SaysNothingOfWhatAnInjectorPassesUnasked) {
  EXPECT_THAT(words(of_options("-u 1337 -i * -b 80 -d 15090,15021,123")), IsEmpty());
  EXPECT_THAT(words(of_options("-u 1337 -i * -b 80 -d 15090,15021,99,15020")),
              ElementsAre("ST001 -d 15090,15021,99,15020"));
}

// Beside the rule of its own a value may change others: loopback within -i takes a RETURN away, and a list with one
// value left is no restriction without it.
TEST(LintOptions, SaysNothingOfValuesThatChangeOtherRules) {
  for (const char* options : {"-b * -i 127.0.0.0/8,0.0.0.0/0", "-b * -i 127.0.0.1/32,10.1.2.3/32",
                              "-b * -m TPROXY --exclude-inbound-ranges 127.0.0.1/32,10.0.0.0/8",
                              "-b * --include-inbound-ranges 192.0.2.2/32"})
    EXPECT_THAT(words(of_options(fmt::format("{} --ip-families ipv4", options))), Not(Contains(HasSubstr("ST002"))))
        << options;
  EXPECT_THAT(words(of_options("-b * -i 10.0.0.0/8,10.1.0.0/16 --ip-families ipv4")), Contains("ST002 -i 10.1.0.0/16"));
}

TEST(LintOptions, SaysThatNothingIsCaptured) {
  const Findings found = of_options("-u 1337 -i * -x 0.0.0.0/0");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].message, "-x 0.0.0.0/0 excludes all of IPv4: no outbound IPv4 is captured");
}

TEST(LintOptions, FindsNothingInThoseOfAnAmbientPod) {
  for (const char* more : {"", " --redirect-dns", " --ingress", " -k net1", " -p 16001 -z 16006 -e 16008",
                           " --probe-address 10.9.9.9 --probe-address6 fd00::9"}) {
    EXPECT_THAT(words(of_options(fmt::format("--dataplane ambient{}", more))), IsEmpty()) << more;
  }
  EXPECT_THAT(words(of_options("--dataplane ambient --ip-families ipv4", pod_with_ipv6())),
              ElementsAre("ST005 outbound tcp, IPv6", "ST005 inbound tcp, IPv6"));
}

// Of IPv4 a marked packet may be left alone, too.
TEST(LintOptions, WitnessesHaveNoMarkUnlessItDecides) {
  for (const char* options :
       {"--dataplane ambient --ip-families ipv4", "-i * -b * -m TPROXY -d 15090,15021,15020 --ip-families ipv4"}) {
    const Findings found = of_options(options, pod_with_ipv6());
    EXPECT_EQ(found.size(), 2);
    for (const Finding& one : found) EXPECT_THAT(one.witness, Not(HasSubstr("--mark"))) << options;
  }
}

TEST(LintOptions, FindsValuesThatOthersCover) {
  const auto of = [](const char* more) { return words(of_options(fmt::format("{} {}", usual_options, more))); };
  EXPECT_THAT(of("-x 10.0.0.0/8,10.1.0.0/16"), ElementsAre("ST002 -x 10.1.0.0/16"));
  EXPECT_THAT(of("-x 10.1.0.0/16,10.0.0.0/8"), ElementsAre("ST002 -x 10.1.0.0/16"));
  EXPECT_THAT(of("-x 10.0.0.0/9,10.0.0.0/8,10.128.0.0/9"), ElementsAre("ST002 -x 10.128.0.0/9", "ST002 -x 10.0.0.0/9"));
  EXPECT_THAT(of("-o 22,22"), ElementsAre("ST002 -o 22"));
  EXPECT_THAT(of("-o 9000-9100,9050,22"), ElementsAre("ST002 -o 9050"));
  EXPECT_THAT(of("-o 9050,9000-9100"), ElementsAre("ST002 -o 9050"));
  EXPECT_THAT(of("-o 9000-9100,9000-9050"), ElementsAre("ST002 -o 9000-9050"));
  EXPECT_THAT(of("-o 1-100,50-150,101-200"), ElementsAre("ST002 -o 50-150"));
  EXPECT_THAT(of("-o 1-100,50-150"), IsEmpty());  // each has ports of its own
  EXPECT_THAT(of("-u 1337,1337"), ElementsAre("ST002 -u 1337"));
}

TEST(LintOptions, FindsWhatOtherOptionsDecideBefore) {
  EXPECT_THAT(words(of_options("-i 10.0.0.0/8 -o 443 -q 443,80")), ElementsAre("ST002 -q 443"));
  EXPECT_THAT(words(of_options("-i 10.0.0.0/8 -o 443 -q 443")), ElementsAre("ST001 -q 443"));
  EXPECT_THAT(words(of_options("-i * -q 443")), ElementsAre("ST001 -q 443"));
  EXPECT_THAT(words(of_options("-i * -b 80 -d 80")), ElementsAre("ST001 -d 80"));
  EXPECT_THAT(words(of_options("-x 10.0.0.0/8")), ElementsAre("ST001 -x 10.0.0.0/8"));
  EXPECT_THAT(words(of_options("-i 10.0.0.0/8 -x 192.168.0.0/16,10.1.0.0/16")), ElementsAre("ST002 -x 192.168.0.0/16"));
  EXPECT_THAT(words(of_options("-i * -b 80 --redirect-dns --dns-server 10.96.0.10 -o 53")),
              ElementsAre("ST001 --redirect-dns"));
  EXPECT_THAT(words(of_options("-i * -b 80 --capture-all-dns")), ElementsAre("ST001 --capture-all-dns"));
  EXPECT_THAT(words(of_options("-i * -b 80 -t 7")), ElementsAre("ST001 -t 7"));
  EXPECT_THAT(words(of_options("-i * -m TPROXY")), ElementsAre("ST001 -m TPROXY"));
  EXPECT_THAT(words(of_options("-i * -m NONE")), ElementsAre("ST001 -i '*'"));
  EXPECT_THAT(words(of_options("-i fd00::/8,10.0.0.0/8 --ip-families ipv4")), ElementsAre("ST002 -i fd00::/8"));
}

TEST(LintOptions, FindsExcludedOwnersWithoutEffect) {
  const auto of = [](const char* more) { return words(of_options(fmt::format("{} {}", usual_options, more))); };
  // The proxy's own rules come first.
  EXPECT_THAT(of("--exclude-uids 1337"), ElementsAre("ST001 --exclude-uids 1337"));
  EXPECT_THAT(of("--exclude-uids 101,1337"), ElementsAre("ST002 --exclude-uids 1337"));
  EXPECT_THAT(of("--exclude-gids 1337"), ElementsAre("ST001 --exclude-gids 1337"));
  EXPECT_THAT(of("--exclude-uid-ports 1337:443"), ElementsAre("ST001 --exclude-uid-ports 1337:443"));
  EXPECT_THAT(of("--exclude-uids 101,100-200"), ElementsAre("ST002 --exclude-uids 101"));
  EXPECT_THAT(of("--exclude-uids 101 --exclude-uid-ports 101:443"), ElementsAre("ST001 --exclude-uid-ports 101:443"));
  EXPECT_THAT(of("-o 443 --exclude-uid-ports 101:443"), ElementsAre("ST001 --exclude-uid-ports 101:443"));
  EXPECT_THAT(of("-m TPROXY --capture-udp 443,400-500"), ElementsAre("ST002 --capture-udp 443"));
  EXPECT_THAT(of("--bypass-cgroup a/b,a,a/b"), ElementsAre("ST002 --bypass-cgroup a/b", "ST002 --bypass-cgroup a/b"));
  EXPECT_THAT(of("--exclude-uid-ports 101:443,101:443"), ElementsAre("ST002 --exclude-uid-ports 101:443"));
  const Findings covered = of_options("-i * -c net+,net0,eth9,eth9");
  ASSERT_EQ(covered.size(), 2U);
  EXPECT_EQ(covered[0].message, "net+ covers it");
  EXPECT_EQ(covered[1].message, "it is given twice");
  const Findings twice = of_options("-i * -o 80,80,79-81");
  ASSERT_EQ(twice.size(), 2U);
  EXPECT_EQ(twice[0].message, "it is given twice");
  EXPECT_EQ(twice[1].message, "79-81 covers it");
  EXPECT_THAT(words(of_options("-b * -d 15090,15021,15020 --exclude-uids 101")),
              ElementsAre("ST001 --exclude-uids 101"));
  EXPECT_EQ(of_options("-m TPROXY -b * --capture-udp 443,443").at(0).witness,
            "in udp 192.0.2.2:443 --in-interface eth0");
  const Findings found = of_options("-i * --exclude-uids 1337");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message, HasSubstr("-u 1337 decides about the witness"));
}

TEST(LintOptions, ShowsUsersAndTheirPorts) {
  const auto only = [](const char* options) {
    const Findings found = of_options(options);
    EXPECT_EQ(found.size(), 1U) << options;
    return found.empty() ? Finding() : found.front();
  };
  const Finding by_port = only("-i * -o 443 --exclude-uid-ports 101:443");
  EXPECT_EQ(by_port.witness, "out tcp 198.51.100.1:443 --uid 101 --gid 1000");
  EXPECT_THAT(by_port.message, HasSubstr("-o 443 decides about the witness"));
  const Finding by_uid = only("-i * --exclude-uids 101-200 --exclude-uid-ports 150:8000-8100");
  EXPECT_EQ(by_uid.witness, "out tcp 198.51.100.1:8080 --uid 150 --gid 1000");
  EXPECT_THAT(by_uid.message, HasSubstr("--exclude-uids 101-200 decides about the witness"));
}

// Who leaves out all that is found must not have lost an exclusion.
TEST(LintOptions, LeavesOneOfTwoOptionsThatSayTheSame) {
  const auto of = [](const char* more) {
    return words(of_options(fmt::format("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE={}", more)));
  };
  EXPECT_THAT(of("5 -i * --exclude-gids 5"), ElementsAre("ST001 --exclude-gids 5"));
  EXPECT_THAT(of("5 -i * --exclude-gids 5,6"), ElementsAre("ST002 --exclude-gids 5"));
  EXPECT_THAT(of("5,7 -i * --exclude-gids 5"), ElementsAre("ST001 --exclude-gids 5"));
  EXPECT_THAT(of("5,7 -i * --exclude-gids 5,7"), ElementsAre("ST001 --exclude-gids 5,7"));
  EXPECT_THAT(of("5 -i * --exclude-gids 5-6"), ElementsAre("ST001 ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE 5"));
  EXPECT_THAT(of("5 -i * --exclude-gids 6"), IsEmpty());
  // Of several values each option is decided about by another.
  EXPECT_THAT(of("5 -i * --exclude-gids 1337,5"), ElementsAre("ST001 --exclude-gids 1337,5"));
}

TEST(LintOptions, KnowsSourcesThatAreLeftOutOrAloneCaptured) {
  const auto of = [](const char* more) {
    return words(of_options(fmt::format("{} --ip-families ipv4 {}", usual_options, more)));
  };
  EXPECT_THAT(of("--exclude-inbound-ranges 10.0.0.0/8,192.168.0.0/16"), IsEmpty());
  EXPECT_THAT(of("--exclude-inbound-ranges 10.1.0.0/16,10.0.0.0/8,fd00::/8"),
              ElementsAre("ST002 --exclude-inbound-ranges fd00::/8", "ST002 --exclude-inbound-ranges 10.1.0.0/16"));
  EXPECT_THAT(of("--include-inbound-ranges 10.0.0.0/8,192.168.0.0/16"), IsEmpty());
  EXPECT_THAT(of("--include-inbound-ranges *"), ElementsAre("ST001 --include-inbound-ranges '*'"));
  EXPECT_THAT(of("--include-inbound-ranges 0.0.0.0/0"), ElementsAre("ST001 --include-inbound-ranges 0.0.0.0/0"));
  // What is excluded wins.
  EXPECT_THAT(of("--include-inbound-ranges 10.0.0.0/8,192.168.0.0/16,192.168.1.0/24 "
                 "--exclude-inbound-ranges 10.0.0.0/7,172.16.0.0/12"),
              ElementsAre("ST002 --include-inbound-ranges 192.168.1.0/24", "ST002 --include-inbound-ranges 10.0.0.0/8",
                          "ST002 --exclude-inbound-ranges 172.16.0.0/12"));
  EXPECT_THAT(words(of_options("-i * --exclude-inbound-ranges 10.0.0.0/8")),
              ElementsAre("ST001 --exclude-inbound-ranges 10.0.0.0/8"));
  EXPECT_THAT(words(of_options("-i * --include-inbound-ranges 10.0.0.0/8")),
              ElementsAre("ST001 --include-inbound-ranges 10.0.0.0/8"));
}

TEST(LintOptions, KnowsPatternsOfInterfaces) {
  const auto of = [](const char* more) { return words(of_options(fmt::format("{} {}", usual_options, more))); };
  EXPECT_THAT(of("-c net+"), IsEmpty());
  EXPECT_THAT(of("-k net+"), IsEmpty());
  EXPECT_THAT(of("-c net+,net1"), ElementsAre("ST002 -c net1"));
  const Findings lacking = of_options(fmt::format("{} -c net+", usual_options), pod_with_ipv6());
  EXPECT_THAT(words(lacking), ElementsAre("ST001 -c net+"));
  EXPECT_EQ(lacking.front().message, "the pod has no interface whose name begins so");
}

// Each of them that lint takes, in options where it has no effect.
TEST(LintOptions, KnowsEachFlagOfThePlan) {
  const std::map<std::string, std::string> examples{
      {"-p", "-p 9"},
      {"-z", "-m NONE -z 9"},
      {"-e", "-m NONE -e 9"},
      {"-u", "-u 1,1"},
      {"-g", "-u 1 -g 2,2"},
      {"-m", "-m TPROXY"},
      {"-b", "-m NONE -b *"},
      {"-d", "-d 80"},
      {"--include-inbound-ranges", "--include-inbound-ranges 10.0.0.0/8"},
      {"--exclude-inbound-ranges", "--exclude-inbound-ranges 10.0.0.0/8"},
      {"-c", "-m NONE -c net1"},
      {"-i", "-m NONE -i *"},
      {"-x", "-x 10.0.0.0/8"},
      {"-q", "-i * -q 443"},
      {"-o", "-m NONE -o 22"},
      {"-k", "-m NONE -k net1"},
      {"-t", "-t 7"},
      {"-r", "-r 7"},
      {"--exclude-uids", "--exclude-uids 5"},
      {"--exclude-gids", "--exclude-gids 5"},
      {"--exclude-uid-ports", "--exclude-uid-ports 5:80"},
      {"--bypass-cgroup", "--bypass-cgroup a/b"},
      {"--capture-udp", "-m TPROXY --capture-udp 443,443"},
      {"--redirect-dns", "-m NONE --redirect-dns"},
      {"--capture-all-dns", "--capture-all-dns"},
      {"--track-forwarded-dns", "--track-forwarded-dns"},
      {"--drop-invalid", "-m NONE --drop-invalid"},
      {"--dual-stack", "--dual-stack --ip-families ipv4"},
      {"--probe-address6", "--dataplane ambient --probe-address6 fd00::9 --ip-families ipv4"},
      {"--dns-server", "-i * --dns-server 10.0.0.1"},
      {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "-m NONE ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/8"},
      {"ISTIO_OUTBOUND_OWNER_GROUPS", "ISTIO_OUTBOUND_OWNER_GROUPS=5"},
      {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=5"}};
  const std::vector<std::string> with_an_effect_always{"--dataplane", "--probe-address", "--ingress"};
  for (const Flag& flag : flags()) {
    if (flag.value_of.get == nullptr || !flag.commands.contains(Command::lint)) continue;
    if (std::ranges::find(with_an_effect_always, short_name(flag)) != with_an_effect_always.end()) continue;
    const auto example = examples.find(short_name(flag));
    ASSERT_NE(example, examples.end()) << spelled(flag);
    EXPECT_THAT(words(of_options(example->second)),
                Contains(MatchesRegex(fmt::format("ST00[12] {}( .*)?", example->first))))
        << example->second;
  }
}

TEST(LintOptions, LeavesWhatTheHostWouldDecideWithoutIt) {
  EXPECT_THAT(words(of_options(fmt::format("{} --redirect-dns --dns-server 10.96.0.10", usual_options))), IsEmpty());
  EXPECT_THAT(
      words(of_options(fmt::format("{} --redirect-dns --capture-all-dns --dns-server 10.96.0.10", usual_options))),
      ElementsAre("ST001 --dns-server 10.96.0.10"));
  CommandLine line;
  HostFacts facts_of = asked(fmt::format("{} --dual-stack", usual_options), line);
  line.config.families.reset();
  EXPECT_THAT(words(lint_options({.config = line.config, .facts = facts_of, .pod = {}, .manifest = nullptr})),
              IsEmpty());
}

TEST(LintOptions, SaysWhyWithAPacketThatShowsIt) {
  const Findings found = of_options("-i 10.0.0.0/8 -o 443 -q 443");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message, HasSubstr("-o 443 decides"));
  EXPECT_EQ(found[0].witness, "out tcp 198.51.100.1:443 --uid 1000 --gid 1000");
  EXPECT_EQ(found[0].ending, "leaves untouched, by eth0");
  EXPECT_THAT(lint_text(found, false), HasSubstr("ST001 option without effect: -q 443\n"));
  EXPECT_THAT(lint_json(found), HasSubstr(R"("code": "ST001")"));
  EXPECT_EQ(lint_text({}, false), "no findings\n");
  const Findings covered = of_options(fmt::format("{} -x 10.0.0.0/8,10.1.0.0/16 -o 80", usual_options));
  ASSERT_EQ(covered.size(), 1U);
  EXPECT_EQ(covered[0].message, "10.0.0.0/8 covers it");  // and not what decides about a port of them
}

TEST(LintOptions, FindsPortsOfTheProxyThatAreCaptured) {
  const Findings found = of_options("-i * -b * -d 15020");
  EXPECT_THAT(words(found), ElementsAre(HasSubstr("ST006 inbound tcp to port 15021"), HasSubstr("port 15090")));
  EXPECT_EQ(found[0].remedy, "add 15021 to -d; where -b is a list, leave 15021 out of that");
  EXPECT_THAT(words(of_options("-i * -b 80,15021")), ElementsAre(HasSubstr("ST006 inbound tcp to port 15021")));
}

TEST(LintOptions, FindsTheSecondProxyPastTheInboundListener) {
  const Findings found = of_options(fmt::format("{} -u 1337,1338 --ip-families ipv4", usual_options));
  EXPECT_THAT(words(found), ElementsAre("ST004 tcp of a proxy to this pod itself, IPv4"));
  EXPECT_EQ(found[0].witness, "lo tcp 192.0.2.2:80 --uid 1338 --gid 1337");
  EXPECT_EQ(found[0].ending, "reaches the pod untouched");
}

TEST(LintOptions, FindsIpv6PastTheProxy) {
  const std::string ipv4_only = fmt::format("{} --ip-families ipv4", usual_options);
  EXPECT_THAT(words(of_options(ipv4_only, pod_with_ipv6())),
              ElementsAre("ST005 outbound tcp, IPv6", "ST005 inbound tcp, IPv6"));
  EXPECT_THAT(words(of_options(usual_options, pod_with_ipv6())), IsEmpty());
  EXPECT_THAT(words(of_options(ipv4_only)), IsEmpty());  // nothing says that the pod has IPv6
}

// Of random options: without a value that is found, all is the same; without any other, it is not.
TEST(LintOptions, IsRightAboutEachValue) {
  std::mt19937 random(11);
  const auto some = [&](const std::vector<std::string>& of) {
    std::vector<std::string> taken;
    for (const std::string& one : of) {
      if (random() % 3 == 0) taken.push_back(one);
    }
    return taken;
  };
  for (unsigned round = amount("SIDETRACK_LINT_SETS", 1); round > 0; --round) {
    std::map<std::string, std::vector<std::string>> lists{
        {"-x", some({"10.0.0.0/8", "10.1.0.0/16", "127.0.0.0/8", "224.0.0.0/4", "192.0.2.0/24"})},
        {"-o", some({"22", "443", "53", "22", "400-500", "20-30"})},
        {"-q", some({"443", "80", "450-600"})},
        {"-d", some({"80", "15020", "8080", "8000-8100"})},
        {"--exclude-inbound-ranges", some({"10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24"})}};
    lists["-i"] =
        random() % 2 == 0 ? std::vector<std::string>{"*"} : some({"10.2.0.0/16", "10.0.0.0/8", "192.0.2.128/25"});
    lists["-b"] = random() % 2 == 0 ? std::vector<std::string>{"*"} : some({"80", "8080", "70-90"});
    const auto options = [&] {
      std::string text = "--ip-families ipv4";
      for (const auto& [flag, values] : lists) {
        if (!values.empty()) text += fmt::format(" {} {}", flag, fmt::join(values, ","));
      }
      return text;
    };
    SCOPED_TRACE(options());
    const auto side = [&] {
      const Plan plan = planned(options());
      return space::Side{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::iptables_nft)}};
    };
    const space::Side whole = side();
    for (const Finding& one : of_options(options())) {
      if (one.code != Code::value_without_effect && one.code != Code::option_without_effect) continue;
      const std::string flag = one.subject.substr(0, one.subject.find(' '));
      const auto kept = lists;
      if (one.code == Code::option_without_effect) {
        lists[flag].clear();
      } else {
        std::vector<std::string>& values = lists[flag];
        const auto value = std::ranges::find(values, one.subject.substr(flag.size() + 1));
        ASSERT_NE(value, values.end()) << one.subject;
        values.erase(value);
      }
      space::Regions regions({whole, side()});
      EXPECT_THAT(effect(regions), IsEmpty()) << one.subject;
      if (one.code == Code::option_without_effect) lists = kept;  // each is compared with all the others there
    }
    // What is left are values that count.
    for (const auto& [flag, values] : std::map(lists)) {
      const Findings left = of_options(options());
      for (const std::string& value : values) {
        if (value == "*" || std::ranges::any_of(left, [&](const Finding& one) {
              return one.code == Code::option_without_effect && one.subject.starts_with(flag);
            }))
          continue;
        const auto kept = lists;
        std::erase(lists[flag], value);
        space::Regions regions({whole, side()});
        EXPECT_FALSE(effect(regions).empty()) << flag << " " << value;
        lists = kept;
      }
    }
  }
}

// ---- A manifest

PodFacts facts_of(const std::string& manifest) {
  manifest::Documents documents = manifest::parse_documents(manifest, "pod.yaml");
  std::vector<std::string> skipped;
  return manifest::facts_of(manifest::pod_templates(documents, skipped).front(), "istio-proxy");
}

constexpr const char* web_pod = R"(apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {ANNOTATION: "true"}}
spec:
  securityContext: {runAsUser: 1000}
  initContainers:
  - {name: setup, securityContext: {runAsUser: 1337}}
  - {name: logs, restartPolicy: Always, securityContext: {runAsGroup: 1337}}
  containers:
  - name: web
    ports: [{name: http, containerPort: 8080}]
    livenessProbe: {httpGet: {port: http}}
    readinessProbe: {tcpSocket: {port: 9090}}
    startupProbe: {exec: {command: ["true"]}}
  - {name: cache, securityContext: {runAsUser: 1337}}
  - {name: istio-proxy, securityContext: {runAsUser: 1337}, readinessProbe: {httpGet: {port: 15021}}}
)";

TEST(LintManifest, FindsCapturedProbesAndContainersOfTheProxysIds) {
  const PodFacts manifest = facts_of(web_pod);
  const Findings found = of_options(fmt::format("{} --ip-families ipv4", usual_options), {}, &manifest);
  EXPECT_THAT(words(found), ElementsAre("ST007 container web: readinessProbe on port 9090",
                                        "ST007 container web: livenessProbe on port 8080", "ST008 container logs",
                                        "ST008 container cache"));
  EXPECT_EQ(found[1].witness, "in tcp 192.0.2.2:8080 --in-interface eth0");
  EXPECT_EQ(found[3].witness, "out tcp 198.51.100.1:80 --uid 1337 --gid 1000");
  EXPECT_EQ(found[3].ending, "leaves untouched, by eth0");
  EXPECT_THAT(words(of_options("-i * -b 80 --ip-families ipv4", {}, &manifest)),
              ElementsAre("ST008 container logs", "ST008 container cache"));
}

TEST(LintManifest, RefusesWhatTheApiServerWould) {
  const auto refused = [](std::string_view container) -> std::string {
    try {
      static_cast<void>(facts_of(fmt::format(
          "apiVersion: v1\nkind: Pod\nmetadata: {{name: shop}}\nspec: {{containers: [{{name: web, {}}}]}}\n",
          container)));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused("livenessProbe: {httpGet: {port: nope}}"),
            "container web: livenessProbe.httpGet.port: 'nope': expected a port, or the name of one of the container's "
            "ports");
  EXPECT_EQ(refused("livenessProbe: {tcpSocket: {port: 99999}}"),
            "container web: livenessProbe.tcpSocket.port: '99999': expected a number from 0 to 65535");
  EXPECT_EQ(refused("securityContext: {runAsUser: '1337'}"),
            "container web: runAsUser: '1337': expected a number from 0 to 4294967295");
  EXPECT_EQ(refused("securityContext: {runAsUser: -1}"),
            "container web: runAsUser: '-1': expected a number from 0 to 4294967295");
  EXPECT_EQ(refused("securityContext: {runAsUser: null}"), "");
}

TEST(LintManifest, LeavesProbesThatTheInjectorRewrites) {
  std::string text = web_pod;
  text.replace(text.find("ANNOTATION"), 10, "sidecar.istio.io/rewriteAppHTTPProbers");
  EXPECT_THAT(facts_of(text).probes, IsEmpty());
  // Of other words than those of ParseBool, Istio takes none for true.
  const auto word = text.find("\"true\"}}");
  text.replace(word, 6, "\"yes\"");
  EXPECT_EQ(facts_of(text).probes.size(), 2U);
  text.replace(word, 5, "\"1\"");
  EXPECT_THAT(facts_of(text).probes, IsEmpty());
}

// The kubelet asks that host, then.
TEST(LintManifest, LeavesProbesOfOtherHosts) {
  std::string text = web_pod;
  const std::string port = "tcpSocket: {port: 9090";
  text.insert(text.find(port) + port.size(), ", host: 10.99.0.1");
  EXPECT_EQ(facts_of(text).probes.size(), 1U);
}

TEST(LintManifest, DoesNotFindWhatTheInjectorAdds) {
  const PodFacts manifest = facts_of(web_pod);
  EXPECT_THAT(words(of_options("-i * -b 80 -d 15090,15021,15020", {}, &manifest)),
              ::testing::Not(::testing::Contains(HasSubstr("ST001"))));
}

// ---- Live rules

std::vector<Live> live_of(std::string_view options) {
  return {as_live(planned(options).ruleset, BackendKind::iptables_nft)};
}

LiveChain& chain_of(std::vector<Live>& live, Table table, std::string_view name, Family family = Family::ipv4) {
  for (LiveChain& chain : live[0].chains) {
    if (chain.table == table && chain.name == name && chain.families.contains(family)) return chain;
  }
  throw std::out_of_range(std::string(name));
}

TEST(LintLive, FindsNothingInWhatIsApplied) {
  for (const char* options : {"", "-i * -b * -d 15090,15021,15020", "-i * -b * -d 15090,15021,15020 -m TPROXY",
                              "-i * -b * -d 15090,15021,15020 -x 10.0.0.0/8 -o 22"}) {
    const Plan plan = planned(options);
    EXPECT_THAT(words(lint_live(assumed_pod(plan), {as_live(plan.ruleset, BackendKind::nftables)})), IsEmpty())
        << options;
    EXPECT_THAT(words(lint_live(assumed_pod(plan), live_of(options))), IsEmpty()) << options;
  }
}

TEST(LintLive, FindsALoopWhereTheProxysOwnRuleIsGone) {
  std::vector<Live> live = live_of("-i * -b 80");
  LiveChain& output = chain_of(live, Table::nat, "ISTIO_OUTPUT");
  std::erase_if(output.rules, [](const LiveRule& rule) { return rule.rule.matches.size() == 1; });
  output.rules.push_back(
      {{Family::ipv4, Table::nat, "ISTIO_OUTPUT", {}, Jump{"ISTIO_REDIRECT", false}, {}, {}}, {}, true, 0});
  const Findings found = lint_live(assumed_pod(planned("-i *")), live);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(words(found)[0], "ST003 outbound tcp of the proxy, IPv4");
  EXPECT_EQ(found[0].witness, "out tcp 198.51.100.1:80 --uid 1337 --gid 1337");
  EXPECT_EQ(found[0].ending, "127.0.0.1:15001 (Envoy outbound)");
}

// As tproxy of Istio's nftables rules, after which nft goes on where no socket listens.
TEST(LintLive, FindsWhatTheSidecarsOwnRulesLeaveUnknown) {
  std::vector<Live> live = live_of("-i * -b * -d 15090,15021,15020");
  LiveRule& rule = chain_of(live, Table::nat, "ISTIO_IN_REDIRECT").rules.front();
  rule.rule.target = UnknownTarget{"tproxy to :15006, or else pass"};
  const Findings found = lint_live(assumed_pod(planned("-i * -b *")), live);
  ASSERT_THAT(words(found), Contains("ST011 inbound tcp"));
  EXPECT_THAT(found.front().message, HasSubstr("the sidecar's rules alone may capture it; what is not known: "));
}

// What ztunnel sends on has its client's address: the answers come back by a policy rule and a route.
TEST(LintLive, FindsAnAmbientPodWhoseAnswersAreLost) {
  const Plan plan = planned("--dataplane ambient --dual-stack");
  const PodView whole = assumed_pod(plan);
  for (const BackendKind backend : all_backends) {
    const std::vector<Live> live{as_live(plan.ruleset, backend)};
    EXPECT_THAT(words(lint_live(whole, live)), IsEmpty()) << name(backend);
    PodView pod = whole;
    drop_our_rules(pod);
    const Findings found = lint_live(pod, live);
    EXPECT_THAT(words(found), ElementsAre("ST010 tcp of ztunnel to the app from its client's address, IPv4",
                                          "ST010 tcp of ztunnel to the app from its client's address, IPv6"));
    EXPECT_THAT(found.at(0).witness, AllOf(StartsWith("lo tcp 192.0.2.2:80 "), HasSubstr(" --mark ")));
    EXPECT_THAT(found.at(0).ending, HasSubstr("replies are lost"));
    pod = whole;
    PolicyRule other;
    other.priority = 50;
    other.mark = 0x111;
    other.mask = 0xfff;
    other.table = main_table;
    pod.rules.insert(pod.rules.begin() + 1, other);
    EXPECT_THAT(words(lint_live(pod, live)), ElementsAre(StartsWith("ST010 tcp of ztunnel to the app")))
        << name(backend);
    pod = whole;
    pod.routes.push_back({*AddressRange::parse("198.51.100.0/24"), "eth0", Route::Kind::unicast, 100});
    EXPECT_THAT(words(lint_live(pod, live)), ElementsAre(StartsWith("ST010 tcp of ztunnel to the app")))
        << name(backend);
  }
}

TEST(LintLive, ListsEightOfManyThatAreAlike) {
  std::vector<Live> live = live_of("-i * -b *");
  LiveChain& output = chain_of(live, Table::nat, "OUTPUT");
  for (int i = 0; i < 12; ++i) {
    const auto port = static_cast<std::uint16_t>(2000 + 2 * i);
    const Nat dnat{End::destination, AddressRange::single(*Address::parse("203.0.113.1")), {}, "DNAT"};
    const Rule rule{
        Family::ipv4, Table::nat, "OUTPUT", {ProtocolMatch{Protocol::tcp}, PortMatch{End::destination, {{port, port}}}},
        dnat,         {},         {}};
    output.rules.insert(output.rules.begin(), {rule, {}, false, 0});
  }
  const Findings found = lint_live(assumed_pod(planned("-i *")), live);
  const auto listed = std::ranges::count(found, std::string("outbound tcp"), &Finding::subject);
  EXPECT_EQ(listed, 8);
  std::size_t more = 0;
  for (const Finding& one : found) {
    EXPECT_FALSE(one.witness.empty());
    if (one.subject == "outbound tcp") more += one.more;
  }
  EXPECT_EQ(more, 4U);
  EXPECT_THAT(lint_text(found, false), HasSubstr("\n  more     4 like this one are not listed\n"));
  EXPECT_THAT(lint_json(found), HasSubstr("\"more\": 4"));
}

TEST(LintLive, FindsRulesOfOthersThatDecide) {
  std::vector<Live> live = live_of("-i * -b 80");
  LiveChain& output = chain_of(live, Table::nat, "OUTPUT");
  const Rule dnat{Family::ipv4,
                  Table::nat,
                  "OUTPUT",
                  {ProtocolMatch{Protocol::tcp}, PortMatch{End::destination, {{8443, 8443}}}},
                  Verdict::accept,
                  {},
                  {}};
  output.rules.insert(output.rules.begin(), {dnat, {}, false, 0});
  const Findings found = lint_live(assumed_pod(planned("-i *")), live);
  EXPECT_THAT(words(found), ElementsAre("ST009 outbound tcp", "ST009 to itself: tcp"));
  EXPECT_THAT(found[0].message, HasSubstr("--dport 8443 -j ACCEPT"));
  EXPECT_THAT(found[0].witness, HasSubstr(":8443"));
  std::vector<Live> unknown = live_of("-i * -b 80");
  Rule opaque = dnat;
  opaque.matches.emplace_back(UnknownMatch{"-m bpf --bytecode …"});
  LiveChain& again = chain_of(unknown, Table::nat, "OUTPUT");
  again.rules.insert(again.rules.begin(), {opaque, {}, false, 0});
  const Findings not_known = lint_live(assumed_pod(planned("-i *")), unknown);
  EXPECT_THAT(words(not_known), ElementsAre("ST011 outbound tcp", "ST011 to itself: tcp"));
  EXPECT_THAT(not_known[0].message, HasSubstr("what is not known: "));
  EXPECT_THAT(not_known[0].message, HasSubstr("-m bpf --bytecode"));
}

// Where no rule is a sidecar's, too, as map says it.
TEST(LintLive, FindsUnknownOutcomesOfOthersAlone) {
  Live live;
  live.backend = BackendKind::iptables_legacy;
  const auto with = [&](const Target& target) {
    live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{ProtocolMatch{Protocol::tcp}}, target}})};
    return lint_live(assumed_pod(planned("")), {live});
  };
  const Findings found = with(UnknownTarget{"-j DNAT --anything"});
  EXPECT_THAT(words(found), ElementsAre("ST011 outbound tcp, IPv4"));
  EXPECT_THAT(found[0].message, HasSubstr("what is not known: `-j DNAT --anything`"));
  EXPECT_THAT(with(Redirect{15001}), IsEmpty());
}

// Containers behind docker0, whose source another program translates.
TEST(LintLive, FindsForwardedDnsWhoseRepliesAreLost) {
  const Live masquerade =
      rules_of_others(BackendKind::iptables_nft, Family::ipv4, {"nat -A POSTROUTING -s 198.18.2.0/24 -j MASQUERADE"});
  const std::string dns = "-i * -b 80 --redirect-dns --dns-server 10.96.0.10 -k docker0";
  const auto found = [&](const std::string& options, bool translated) {
    const Plan plan = planned(options);
    std::vector<Live> live{as_live(plan.ruleset, BackendKind::nftables)};
    if (translated) live.push_back(masquerade);
    Findings all = lint_live(assumed_pod(plan), live);
    std::erase_if(all, [](const Finding& one) { return one.code != Code::forwarded_replies_lost; });
    return all;
  };
  const Findings lost = found(dns, true);
  ASSERT_THAT(words(lost), ElementsAre("ST012 DNS by udp from docker0, IPv4"));
  EXPECT_THAT(lost.front().ending, HasSubstr("replies are lost"));
  EXPECT_THAT(lost.front().witness, HasSubstr("in udp 10.96.0.10:53"));
  EXPECT_THAT(lost.front().witness, HasSubstr("--in-interface docker0"));
  EXPECT_THAT(found(dns, false), IsEmpty());
  EXPECT_THAT(found(dns + " --track-forwarded-dns", true), IsEmpty());
}

TEST(LintLive, FindsValuesThatOthersCover) {
  EXPECT_THAT(words(lint_live(assumed_pod(planned("-i *")), live_of("-i * -b 80 -x 10.0.0.0/8,10.1.0.0/16"))),
              ElementsAre("ST002 -x 10.1.0.0/16"));
  EXPECT_THAT(words(lint_live(assumed_pod(planned("-i *")), live_of("-i 10.0.0.0/8,10.1.0.0/16 -b 80"))),
              Contains("ST002 -i 10.1.0.0/16"));
  EXPECT_THAT(words(lint_live(assumed_pod(planned("-i *")), live_of("-i 10.0.0.0/8 -b 80 -q 443 -o 443"))),
              Contains("ST001 -q 443"));
  for (const char* list : {"--include-inbound-ranges", "--exclude-inbound-ranges"}) {
    EXPECT_THAT(
        words(lint_live(
            assumed_pod(planned("-i *")),
            live_of(fmt::format("-i * -b * -d 15090,15021,15020 {} 10.1.0.0/16,10.0.0.0/8,fd00::/8", list).c_str()))),
        ElementsAre(fmt::format("ST002 {} 10.1.0.0/16", list)));
  }
}

TEST(LintLive, FindsInterfacesThatThePodLacks) {
  const auto found = [](const char* pod, const char* rules) {
    return words(lint_live(assumed_pod(planned(pod)), live_of(rules)));
  };
  EXPECT_THAT(found("-i *", "-i * -b 80 -c net1"), ElementsAre("ST001 -c net1"));
  EXPECT_THAT(found("-i * -c net1", "-i * -b 80 -c net1,net2"), ElementsAre("ST001 -c net2"));
  EXPECT_THAT(found("-i * -c net1", "-i * -b 80 -c net1"), IsEmpty());
  EXPECT_THAT(found("-i *", "-i * -b 80 -k net1"), ElementsAre("ST001 -k net1"));
  EXPECT_THAT(found("-i * -k net1", "-i * -b 80 -k net1"), IsEmpty());
  EXPECT_THAT(found("-i *", "-i * -b 80 -c net+"), ElementsAre("ST001 -c net+"));
  EXPECT_THAT(found("-i * -c net1", "-i * -b 80 -c net+"), IsEmpty());
}

TEST(LintLive, FindsIpv6PastTheProxy) {
  const std::string ipv4_only = fmt::format("{} --ip-families ipv4", usual_options);
  const Findings found = lint_live(pod_with_ipv6(), live_of(ipv4_only));
  EXPECT_THAT(words(found), ElementsAre("ST005 outbound tcp, IPv6", "ST005 inbound tcp, IPv6"));
  for (const Finding& one : found) {
    EXPECT_EQ(one.message, "IPv4 is captured, IPv6 is not");
    EXPECT_THAT(one.remedy, HasSubstr("--dual-stack"));
  }
  PodView without = pod_with_ipv6();
  for (Interface& interface : without.interfaces)
    std::erase_if(interface.addresses, [](const InterfaceAddress& one) { return one.address.family == Family::ipv6; });
  EXPECT_THAT(words(lint_live(without, live_of(ipv4_only))), IsEmpty());
}

// ---- Promises

class PromisesOf : public ::testing::TestWithParam<const char*> {};

TEST_P(PromisesOf, APlanAreKeptByIt) {
  CommandLine line;
  const HostFacts facts_of = asked(GetParam(), line);
  const Plan real = plan(line.config, facts_of);
  for (const BackendKind backend : all_backends)
    EXPECT_THAT(words(violations_of(line.config, real, {assumed_pod(real), {as_live(real.ruleset, backend)}})),
                IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    , PromisesOf,
    ::testing::Values(
        "", usual_options, "-i * -b * -m TPROXY", "-i 10.0.0.0/8 -b 80 -q 443 -o 22", "-i * -b * -c net1 -k net2",
        "-i 10.0.0.0/8 -b 80,8000-8100 -q 400-500,443 -o 22-30", "-i * -b * -d 15000-15100 -o 1-1023",
        "-i * -b * -c net+", "-i * -b * -k net+ -c eth1,veth+", "-i * -b * -m TPROXY -c net+",
        "-i * -b * --exclude-inbound-ranges 10.0.0.0/8,fd00::/8",
        "-i * -b 80 --include-inbound-ranges 10.0.0.0/8 --exclude-inbound-ranges 10.1.0.0/16,::/0",
        "-i * -b * -m TPROXY --include-inbound-ranges 10.0.0.0/8,fd00::/8 --exclude-inbound-ranges 10.1.0.0/16",
        "-i * -b * --redirect-dns --capture-all-dns", "-i * -b * --redirect-dns --dns-server 10.96.0.10 -o 53",
        "-i * -b * ISTIO_OUTBOUND_OWNER_GROUPS=1000 ",
        "-i * -b * ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=888 -u 2000 -g 3000", "-i 127.0.0.0/8,10.0.0.0/8 -b *",
        "-i * -b * -m NONE", "-i * -b * --drop-invalid ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/8"));

// What is asked for, and that it is the rules that give it.
TEST(Promises, AreBrokenWithoutTheRules) {
  const auto unkept_by_none = [](const char* options) {
    CommandLine line;
    const HostFacts facts_of = asked(options, line);
    const Plan real = plan(line.config, facts_of);
    std::string all = "\n";
    for (const std::string& each :
         words(violations_of(line.config, real, {assumed_pod(real), {as_live({}, BackendKind::nftables)}})))
      all += each + "\n";
    return all;
  };
  EXPECT_EQ(unkept_by_none("-i * -b * -u 1,2 --redirect-dns --capture-all-dns"), R"(
ST004 outbound tcp, IPv4
ST004 inbound tcp, IPv4
ST004 DNS by tcp, IPv4
ST004 DNS by udp, IPv4
ST004 tcp of a proxy to this pod itself, IPv4
ST004 outbound tcp, IPv6
ST004 inbound tcp, IPv6
ST004 DNS by tcp, IPv6
ST004 DNS by udp, IPv6
ST004 tcp of a proxy to this pod itself, IPv6
)");
  EXPECT_EQ(unkept_by_none("-i * -b 80 -m TPROXY --redirect-dns --dns-server 10.96.0.10 --ip-families ipv4"), R"(
ST004 outbound tcp, IPv4
ST004 inbound tcp, IPv4
ST004 DNS by tcp, IPv4
ST004 DNS by udp, IPv4
ST005 outbound tcp, IPv6
ST005 inbound tcp, IPv6
)");
  EXPECT_EQ(unkept_by_none("--dataplane ambient --ip-families ipv4"), R"(
ST010 tcp of ztunnel to the app from its client's address, IPv4
ST004 outbound tcp, IPv4
ST004 inbound tcp, IPv4
ST005 outbound tcp, IPv6
ST005 inbound tcp, IPv6
)");
}

// Hosts elsewhere get no answer from it, with rules or without.
TEST(Promises, AreKeptInAPodWithoutADefaultRoute) {
  CommandLine line;
  const HostFacts facts_of = asked(usual_options, line);
  const Plan real = plan(line.config, facts_of);
  PodView pod = assumed_pod(real);
  for (const char* beside : {"192.0.2.0/24", ""}) {
    std::erase_if(pod.routes, [](const Route& route) { return route.device == "eth0"; });
    if (*beside != '\0') pod.routes.push_back({*AddressRange::parse(beside), "eth0"});
    for (const BackendKind backend : all_backends)
      EXPECT_THAT(words(violations_of(line.config, real, {pod, {as_live(real.ruleset, backend)}})), IsEmpty())
          << beside;
  }
  // What its neighbours send is captured all the same.
  pod.routes.push_back({*AddressRange::parse("192.0.2.0/24"), "eth0"});
  std::vector<Live> live{as_live(real.ruleset, BackendKind::iptables_legacy)};
  std::erase_if(live[0].chains, [](const LiveChain& chain) { return chain.name == "PREROUTING"; });
  EXPECT_THAT(words(violations_of(line.config, real, {pod, std::move(live)})), Contains("ST004 inbound tcp, IPv4"));
}

// Others' rules that let the first packet pass.
TEST(Promises, AreOfLaterPacketsAndAnswersToo) {
  CommandLine line;
  const HostFacts facts_of = asked(usual_options, line);
  const Plan real = plan(line.config, facts_of);
  const auto unkept_with = [&](const char* hook, std::vector<Match> matches) {
    std::vector<Live> live{as_live(real.ruleset, BackendKind::iptables_legacy)};
    matches.emplace_back(ConntrackStateMatch{ConntrackStateMatch::established, false});
    live[0].chains.push_back(chain(Family::ipv4, Table::filter, hook, false, {{matches, Verdict::drop}}));
    return words(violations_of(line.config, real, {assumed_pod(real), std::move(live)}));
  };
  EXPECT_THAT(unkept_with("OUTPUT", {OwnerMatch{OwnerKind::uid, {{1337, 1337}}, false}}),
              ::testing::IsSupersetOf({"ST010 outbound tcp of the proxy, IPv4"}));
  EXPECT_THAT(unkept_with("INPUT", {ProtocolMatch{Protocol::tcp}}),
              ::testing::IsSupersetOf({"ST010 outbound tcp of the proxy, IPv4", "ST004 outbound tcp, IPv4"}));
}

}  // namespace
}  // namespace sidetrack::lint
