// SPDX-License-Identifier: GPL-2.0-or-later
// The backend nftables on the real kernel, against nft itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "kernel/nft/script.h"
#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "rule/fold.h"
#include "rule/iptables.h"
#include "support/backend_test.h"
#include "support/every_word.h"
#include "support/read_back.h"
#include "unit/asking.h"

namespace sidetrack::netns {
namespace {

class NftNative : public BackendTest {
 protected:
  NftNative() : BackendTest(open_nftables) {}

  static std::string list(const Namespace& space) { return space.must({"nft", "list", "ruleset"}); }

  static void expect_read_back(const Live& live, const Ruleset& wanted) {
    EXPECT_THAT(differences(live, fold(wanted)), ::testing::IsEmpty());
  }
  void expect_read_back(const Namespace& space, const Ruleset& wanted) const { expect_read_back(read(space), wanted); }
};

// Rules of ours in every table.
Ruleset asked(const std::string& families) {
  return planned(
             "-m TPROXY -b * -d 15090,15021 -i * -x 10.0.0.0/8,fd00::/8 -c veth+ -k vm0 -o 25 --drop-invalid -u 7,9 "
             "--redirect-dns --dns-server 10.96.0.53,fd00:96::53 --ip-families " +
             families)
      .ruleset;
}

std::vector<Rule> excluded(int count, int step) {
  std::vector<Rule> rules{rule(Table::nat, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"})};
  for (int i = 0; i < count; ++i) {
    const int n = i * step;
    const Address address{
        Family::ipv4,
        {10, static_cast<std::uint8_t>(n >> 16), static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n)}};
    const AddressRange one = AddressRange::single(address);
    rules.push_back(rule(Table::nat, "ISTIO_OUTPUT", {AddressMatch{End::destination, {one}, false}}, Verdict::return_));
    rules.back().origin.rule = MeshRule::outbound_excluded_range;
  }
  return rules;
}

// -o for every step'th port up to the last.
Ruleset excluded_ports(int first, int step) {
  std::vector<Rule> rules{rule(Table::nat, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"})};
  for (int n = first; n <= 65535; n += step) {
    const auto port = static_cast<std::uint16_t>(n);
    rules.push_back(rule(Table::nat, "ISTIO_OUTPUT",
                         {ProtocolMatch{}, PortMatch{End::destination, {{port, port}}, false}}, Verdict::return_));
  }
  return {rules};
}

TEST_F(NftNative, ListsAsTheScriptDoes) {
  const Ruleset rules = every_word();
  const Namespace by_script;
  by_script.must({"nft", "-f", "-"}, nft_script(rules, istio_rules));
  const Namespace by_us;
  commit(by_us, rules);
  EXPECT_EQ(list(by_us), list(by_script));
}

TEST_F(NftNative, ReadsBackWhatItWrote) {
  const Namespace space;
  commit(space, every_word());
  expect_read_back(whoever_wrote(read(space)), every_word());
}

TEST_F(NftNative, ReadsBackWhatTheScriptWrote) {
  const Namespace space;
  space.must({"nft", "-f", "-"}, nft_script(every_word(), istio_rules));
  expect_read_back(whoever_wrote(read(space)), every_word());
}

TEST_F(NftNative, KnowsItsOwnRules) {
  for (const char* families : {"ipv4", "ipv4,ipv6"}) {
    const Namespace space;
    commit(space, asked(families));
    expect_read_back(space, asked(families));
    const Namespace by_script;
    by_script.must({"nft", "-f", "-"}, nft_script(asked(families), istio_rules));
    EXPECT_EQ(list(space), list(by_script));
    expect_read_back(by_script, asked(families));
  }
}

TEST_F(NftNative, OneFamilyAlone) {
  Ruleset rules = every_word();
  for (Rule& each : rules.rules) each.families = each.families & Family::ipv4;
  std::erase_if(rules.rules, [](const Rule& each) { return each.families.empty(); });
  const Namespace by_script;
  by_script.must({"nft", "-f", "-"}, nft_script(rules, istio_rules));
  const Namespace by_us;
  commit(by_us, rules);
  EXPECT_EQ(list(by_us), list(by_script));
  expect_read_back(whoever_wrote(read(by_us)), rules);
}

TEST_F(NftNative, ScriptReplacesWhatIsThere) {
  const Namespace space;
  space.must({"nft", "-f", "-"}, nft_script({excluded(100, 2)}, istio_rules));
  space.must({"nft", "-f", "-"}, nft_script(every_word(), istio_rules));
  const Namespace fresh;
  fresh.must({"nft", "-f", "-"}, nft_script(every_word(), istio_rules));
  EXPECT_EQ(list(space), list(fresh));
  space.must({"nft", "-f", "-"}, nft_script({}, istio_rules));
  EXPECT_EQ(list(space), "");
}

TEST_F(NftNative, ReplacesItsOwnAndIstiosTablesAndNothingElse) {
  const Namespace space;
  space.must({"nft", "-f", "-"},
             "table inet istio-proxy-nat {\n chain output {\n type nat hook output priority -100\n"
             "  counter jump istio-output\n }\n chain istio-output {\n meta skuid 1337 counter return\n }\n}\n"
             "table inet istio-proxy-raw {\n}\n"
             "table inet others {\n chain output {\n type filter hook output priority 0\n counter accept\n }\n}\n"
             "table ip nat {\n chain OUTPUT {\n type nat hook output priority -100\n counter accept\n }\n}\n");
  const std::string others = space.must({"nft", "-a", "list", "table", "inet", "others"}) +
                             space.must({"nft", "-a", "list", "table", "ip", "nat"});
  const Live before = read(space);
  ASSERT_EQ(before.chains.size(), 3U);
  EXPECT_EQ(before.chains[2].table_name, "inet others");
  EXPECT_FALSE(before.chains[2].ours);
  EXPECT_EQ(before.chains[0].name, "OUTPUT");
  EXPECT_EQ(iptables_words(before.chains[1].rules.at(0).rule), "-A istio-output -m owner --uid-owner 1337 -j RETURN");

  commit(space, {excluded(20, 2)});
  commit(space, asked("ipv4,ipv6"));
  expect_read_back(space, asked("ipv4,ipv6"));
  EXPECT_EQ(others, space.must({"nft", "-a", "list", "table", "inet", "others"}) +
                        space.must({"nft", "-a", "list", "table", "ip", "nat"}));

  commit(space, {});
  EXPECT_EQ(others, space.must({"nft", "-a", "list", "ruleset"}));
}

TEST_F(NftNative, TellsCountersAndTheCommentsOfOthers) {
  const Namespace space;
  space.must({"ip", "link", "set", "lo", "up"});
  commit(space, {{rule(Table::mangle, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"}),
                  rule(Table::mangle, "ISTIO_OUTPUT", {}, Verdict::return_)}});
  space.must({"bash", "-c", "echo word > /dev/udp/127.0.0.1/9"});
  const LiveRule jump = read(space).chains.at(0).rules.at(0);
  EXPECT_GE(jump.counters.packets, 1U);
  EXPECT_GE(jump.counters.bytes, 33U);  // IP, UDP, "word\n"
  EXPECT_NE(jump.handle, 0U);
  EXPECT_EQ(describe(jump.rule).sentence, "outbound traffic is checked");
  // Which may look like ours.
  space.must({"nft",
              "add table inet theirs; add chain inet theirs OUTPUT { type filter hook output priority 0; }; "
              "add rule inet theirs OUTPUT tcp dport 25 drop comment \"-x 9.9.9.9/32: hello\""});
  const Live after = read(space);
  const auto theirs = std::ranges::find(after.chains, "inet theirs", &LiveChain::table_name);
  ASSERT_NE(theirs, after.chains.end());
  const Reason reason = describe(theirs->rules.at(0).rule);
  EXPECT_EQ(reason.sentence, "-x 9.9.9.9/32: hello");
  EXPECT_EQ(reason.option, "");
}

TEST_F(NftNative, CheckLeavesNothing) {
  const Namespace space;
  const auto check = [](Backend& backend) { EXPECT_TRUE(backend.check(backend.read(), every_word()).empty()); };
  EXPECT_EQ(error_of(space, check).code(), ExitCode::done);
  EXPECT_EQ(list(space), "");
  commit(space, {excluded(1, 1)});
  const std::string before = list(space);
  EXPECT_EQ(error_of(space, check).code(), ExitCode::done);
  EXPECT_EQ(list(space), before);
}

// REDIRECT is a matter of nat chains; the kernel says so only at the last rule.
TEST_F(NftNative, RefusedAtTheLastRuleLeavesAllAsItWas) {
  const Namespace space;
  Ruleset rules = every_word();
  rules.rules.push_back(rule(Table::mangle, "OUTPUT", {}, Jump{"ISTIO_REDIRECT"}));
  rules.rules.push_back(rule(Table::mangle, "ISTIO_REDIRECT", {ProtocolMatch{}}, Redirect{15001}));
  rules.rules.back().origin.rule = MeshRule::outbound_listener;
  for (const bool before : {false, true}) {
    if (before) commit(space, {excluded(1, 1)});
    const std::string listed = list(space);
    for (const bool check : {false, true}) {
      const Error error = error_of(space, [&](Backend& backend) {
        if (check) backend.check(backend.read(), rules);
        if (!check) backend.replace(backend.read(), rules);
      });
      EXPECT_EQ(error.code(), ExitCode::kernel_lacks) << error.what();
      EXPECT_STREQ(error.what(),
                   "nftables: the kernel does not support the rule '-t mangle -A ISTIO_REDIRECT -p tcp -j REDIRECT "
                   "--to-ports "
                   "15001' (IPv4 and IPv6): expression 'redir', from -p 15001: Operation not supported (EOPNOTSUPP)");
      EXPECT_EQ(error.hint(), "load it on the node: modprobe -a nft_redir (CONFIG_NFT_REDIR)");
      EXPECT_EQ(list(space), listed);
    }
  }
}

TEST_F(NftNative, AChangeOfSomebodyElseMeanwhileIsBusy) {
  const Namespace space;
  const Error error = error_of(space, [&](Backend& backend) {
    const Live seen = backend.read();
    space.must({"nft", "add", "table", "inet", "others"});
    backend.replace(seen, every_word());
  });
  EXPECT_EQ(error.code(), ExitCode::busy) << error.what();
  EXPECT_EQ(list(space), "table inet others {\n}\n");
}

TEST_F(NftNative, WithoutTheCapabilityItIsNotPermitted) {
  const Namespace space;
  const Error error = error_in(space, [] { open_nftables()->read(); }, {.uid = 1337, .gid = 1337});
  EXPECT_EQ(error.code(), ExitCode::not_permitted);
  EXPECT_NE(error.hint().find("NET_ADMIN"), std::string::npos);
}

TEST_F(NftNative, LongListsAreNamedSets) {
  const Namespace by_script;
  by_script.must({"nft", "-f", "-"}, nft_script({excluded(5000, 2)}, istio_rules));
  const Namespace by_us;
  commit(by_us, {excluded(5000, 2)});
  EXPECT_EQ(list(by_us), list(by_script));
  EXPECT_NE(list(by_us).find("ip daddr @excluded-ranges-ipv4 "), std::string::npos);
  expect_read_back(by_us, {excluded(5000, 2)});
}

TEST_F(NftNative, ManyPortsAreRangesWhereTheyTouch) {
  for (const auto& [rules, listed] : {std::pair(excluded_ports(1, 1), "tcp dport 1-65535 counter"),
                                      std::pair(excluded_ports(65519, 1), "tcp dport 65519-65535 counter"),
                                      std::pair(excluded_ports(65533, 1), "tcp dport { 65533, 65534, 65535 } counter"),
                                      std::pair(excluded_ports(65531, 2), "tcp dport { 65531, 65533, 65535 } counter"),
                                      std::pair(excluded_ports(1, 1000), "flags interval")}) {
    const Namespace by_script;
    by_script.must({"nft", "-f", "-"}, nft_script(rules, istio_rules));
    const Namespace by_us;
    commit(by_us, rules);
    EXPECT_EQ(list(by_us), list(by_script));
    EXPECT_NE(list(by_us).find(listed), std::string::npos) << list(by_us);
    expect_read_back(by_us, rules);
  }
}

TEST_F(NftNative, ManyIds) {
  for (const int step : {1, 2, 1000}) {
    std::vector<Rule> rules{rule(Table::nat, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"})};
    for (std::uint32_t i = 0; i < 100; ++i) {
      const std::uint32_t id = 1 + i * static_cast<std::uint32_t>(step);
      rules.push_back(
          rule(Table::nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::uid, {{id, id}}, false}}, Verdict::return_));
    }
    const Namespace by_script;
    by_script.must({"nft", "-f", "-"}, nft_script({rules}, istio_rules));
    const Namespace by_us;
    commit(by_us, {rules});
    EXPECT_EQ(list(by_us), list(by_script));
    expect_read_back(by_us, {rules});
  }
}

// A hash table would be enlarged while it is read.
TEST_F(NftNative, ManySingleAddressesAreReadBackEveryTime) {
  const Ruleset rules{excluded(20'000, 4)};
  for (int round = 0; round < 10; ++round) {
    const Namespace space;
    commit(space, rules);
    expect_read_back(space, rules);
  }
}

// The time that the kernel takes does not grow with their square: that would be five seconds and more.
TEST_F(NftNative, AsManyPortsAsDoNotTouch) {
  const Ruleset rules = excluded_ports(1, 2);
  const Namespace space;
  rusage used{};
  space.run([&] {
    const auto backend = open_nftables();
    backend->replace(backend->read(), rules);
    getrusage(RUSAGE_THREAD, &used);
  });
  EXPECT_LT(used.ru_stime.tv_sec, 2);
  expect_read_back(space, rules);
}

TEST_F(NftNative, AHundredThousandRanges) {
  std::vector<Rule> rules = excluded(100'000, 4);
  for (Rule& each : rules) {
    if (!each.matches.empty()) std::get<AddressMatch>(each.matches[0]).ranges[0].last.bytes[3] += 1;  // a range of two
  }
  const Namespace space;
  const auto start = std::chrono::steady_clock::now();
  commit(space, {rules});
  const auto committed = std::chrono::steady_clock::now();
  expect_read_back(space, {rules});
  const auto read = std::chrono::steady_clock::now();
  RecordProperty("commit_ms", static_cast<int>((committed - start) / std::chrono::milliseconds(1)));
  RecordProperty("read_ms", static_cast<int>((read - committed) / std::chrono::milliseconds(1)));
  std::printf("commit %d ms, read back %d ms\n", static_cast<int>((committed - start) / std::chrono::milliseconds(1)),
              static_cast<int>((read - committed) / std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace sidetrack::netns
