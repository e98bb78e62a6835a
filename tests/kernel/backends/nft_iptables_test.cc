// SPDX-License-Identifier: GPL-2.0-or-later
// The backend iptables-nft on the real kernel, against iptables-nft itself.
#include <gmock/gmock.h>

#include <chrono>
#include <regex>
#include <set>

#include "model/error.h"
#include "rule/iptables.h"
#include "support/backend_test.h"
#include "support/every_word.h"
#include "support/read_back.h"
#include "unit/asking.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NftIptables : public BackendTest {
 protected:
  NftIptables() : BackendTest(open_iptables_nft) {}

  static std::string list(const Namespace& space) { return space.must({"nft", "list", "ruleset"}); }
  static std::string list_with_handles(const Namespace& space) { return space.must({"nft", "-a", "list", "ruleset"}); }

  static std::string without_remarks(const std::string& text) {
    return std::regex_replace(text, std::regex("#[^\n]*\n"), "");
  }
  static std::string save(const Namespace& space) {
    return without_remarks(space.must({"iptables-nft-save"}) + space.must({"ip6tables-nft-save"}));
  }
  static void restore(const Namespace& space, const Ruleset& wanted) {
    space.must({"iptables-nft-restore", "--noflush"}, iptables_restore(wanted, Family::ipv4));
    space.must({"ip6tables-nft-restore", "--noflush"}, iptables_restore(wanted, Family::ipv6));
  }

  static void expect_read_back(const Live& live, const Ruleset& wanted) {
    EXPECT_THAT(differences(live, wanted), IsEmpty());
  }
  void expect_read_back(const Namespace& space, const Ruleset& wanted) const { expect_read_back(read(space), wanted); }
};

// Rules of ours in every table of both families.
Ruleset asked_rules() {
  return planned(
             "-m TPROXY -b * -d 15090,15021 -i * -x 10.0.0.0/8,fd00::/8 -c veth+ -k vm0 -o 25 --drop-invalid "
             "--redirect-dns --dns-server 10.96.0.53,fd00:96::53")
      .ruleset;
}

std::vector<Rule> ports(int count) {
  std::vector<Rule> rules{rule(Table::nat, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"})};
  for (int i = 1; i <= count; ++i) {
    const auto port = static_cast<std::uint16_t>(i);
    rules.push_back(rule(Table::nat, "ISTIO_OUTPUT",
                         {ProtocolMatch{}, PortMatch{End::destination, {{port, port}}, false}}, Verdict::return_));
  }
  return rules;
}

TEST_F(NftIptables, ListsAsIptablesWroteIt) {
  const Namespace by_iptables;
  restore(by_iptables, every_word());
  const Namespace by_us;
  commit(by_us, every_word());
  EXPECT_EQ(save(by_us), save(by_iptables));
  EXPECT_THAT(by_us.must({"iptables-nft-save"}), Not(HasSubstr("incompatible")));
  EXPECT_THAT(by_us.must({"iptables-nft", "-t", "nat", "-S"}), Not(HasSubstr("#")));
}

// Down to the single expression.
TEST_F(NftIptables, EncodesAsIptablesDoes) {
  const auto bytecode = [](const Namespace& space) {
    std::string text = space.must({"nft", "--debug=netlink", "list", "ruleset"});
    // Handles differ with the order of the making: "ip nat OUTPUT 11 7".
    return std::regex_replace(text, std::regex("(ip6? [a-z]+ [A-Z_]+)[ 0-9]+\n"), "$1\n");
  };
  const Namespace by_iptables;
  restore(by_iptables, every_word());
  const Namespace by_us;
  commit(by_us, every_word());
  const auto sorted_rules = [&](const Namespace& space) {
    std::string text = bytecode(space);
    text.resize(text.find("table ip"));  // the listing itself, whose chains stand in the order of their making
    std::set<std::string> rules;
    std::string::size_type start = 0;
    for (auto end = text.find("\n\n"); end != std::string::npos; end = text.find("\n\n", start)) {
      rules.insert(text.substr(start, end - start));
      start = end + 2;
    }
    std::string all;
    for (const std::string& each : rules) all += each + "\n";
    return all;
  };
  EXPECT_EQ(sorted_rules(by_us), sorted_rules(by_iptables));
}

TEST_F(NftIptables, ReadsBackWhatItWrote) {
  const Namespace space;
  commit(space, every_word());
  expect_read_back(whoever_wrote(read(space)), every_word());
}

TEST_F(NftIptables, KnowsItsOwnRules) {
  const Namespace space;
  commit(space, asked_rules());
  expect_read_back(space, asked_rules());
  const Namespace by_iptables;
  restore(by_iptables, asked_rules());
  EXPECT_EQ(save(space), save(by_iptables));
  expect_read_back(by_iptables, asked_rules());
}

TEST_F(NftIptables, ReadsBackWhatIptablesWrote) {
  const Namespace space;
  restore(space, every_word());
  expect_read_back(whoever_wrote(read(space)), every_word());
}

TEST_F(NftIptables, CleanLeavesNothingWhereNothingWas) {
  const Namespace space;
  commit(space, asked_rules());
  commit(space, {});
  EXPECT_EQ(list(space), "");
}

TEST_F(NftIptables, OthersKeepTheirRulesHandlesAndCounters) {
  const Namespace space;
  space.must({"ip", "link", "set", "lo", "up"});
  space.must({"iptables-nft-restore", "--noflush"},
             "*nat\n-N OTHERS\n-A OUTPUT -p udp --dport 9 -j OTHERS\n-A OTHERS -m comment --comment words -j RETURN\n"
             "-A OUTPUT -m limit --limit 5/sec -j ACCEPT\nCOMMIT\n"
             "*mangle\n-A OUTPUT -p udp -j ACCEPT\nCOMMIT\n"
             "*filter\n-P FORWARD DROP\n-A INPUT -s 192.0.2.1 -j DROP\nCOMMIT\n");
  space.must({"bash", "-c", "echo word > /dev/udp/127.0.0.1/9"});
  const std::string before = list_with_handles(space);
  EXPECT_THAT(before, HasSubstr("meta l4proto udp counter packets 1 bytes 33 accept"));

  for (const Ruleset& wanted : {Ruleset{ports(3)}, asked_rules(), Ruleset{ports(5)}}) {
    commit(space, wanted);
    expect_read_back(space, wanted);
  }
  space.must({"iptables-nft", "-t", "nat", "-A", "OUTPUT", "-d", "192.0.2.9", "-j", "ACCEPT"});
  space.must({"iptables-nft", "-t", "nat", "-I", "OUTPUT", "-d", "192.0.2.8", "-j", "ACCEPT"});
  commit(space, {ports(7)});
  expect_read_back(space, {ports(7)});
  EXPECT_THAT(
      space.must({"iptables-nft", "-t", "nat", "-S", "OUTPUT"}),
      "-P OUTPUT ACCEPT\n-A OUTPUT -d 192.0.2.8/32 -j ACCEPT\n-A OUTPUT -p udp -m udp --dport 9 -j OTHERS\n"
      "-A OUTPUT -m limit --limit 5/sec -j ACCEPT\n-A OUTPUT -j ISTIO_OUTPUT\n-A OUTPUT -d 192.0.2.9/32 -j ACCEPT\n");
  space.must({"iptables-nft", "-t", "nat", "-D", "OUTPUT", "-d", "192.0.2.9", "-j", "ACCEPT"});
  space.must({"iptables-nft", "-t", "nat", "-D", "OUTPUT", "-d", "192.0.2.8", "-j", "ACCEPT"});
  commit(space, {});
  EXPECT_EQ(list_with_handles(space), before);
}

TEST_F(NftIptables, OurRulesOfEarlierTimesAreReplaced) {
  const Namespace space;
  space.must({"iptables-nft-restore", "--noflush"},
             "*nat\n-N ISTIO_REDIRECT\n-N ISTIO_OUTPUT\n-N ISTIO_IN_REDIRECT\n-A OUTPUT -p tcp -j ISTIO_OUTPUT\n"
             "-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -j ISTIO_REDIRECT\n-A ISTIO_OUTPUT -j ISTIO_REDIRECT\n"
             "-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001\nCOMMIT\n");
  commit(space, {ports(3)});
  expect_read_back(space, {ports(3)});
  EXPECT_THAT(list(space), Not(HasSubstr("ISTIO_IN_REDIRECT")));
  EXPECT_THAT(list(space), Not(HasSubstr("ISTIO_REDIRECT")));
}

TEST_F(NftIptables, CheckLeavesNothing) {
  const Namespace space;
  const auto check = [](Backend& backend) { EXPECT_TRUE(backend.check(backend.read(), every_word()).empty()); };
  EXPECT_EQ(error_of(space, check).code(), ExitCode::done);
  EXPECT_EQ(list(space), "");
  commit(space, {ports(1)});
  const std::string before = list_with_handles(space);
  EXPECT_EQ(error_of(space, check).code(), ExitCode::done);
  EXPECT_EQ(list_with_handles(space), before);
}

// REDIRECT is a matter of the table nat; the kernel says so at the last rule.
TEST_F(NftIptables, RefusedAtTheLastRuleLeavesAllAsItWas) {
  const Namespace space;
  Ruleset rules = every_word();
  rules.rules.push_back(rule(Table::mangle, "OUTPUT", {}, Jump{"ISTIO_REDIRECT"}));
  rules.rules.push_back(rule(Table::mangle, "ISTIO_REDIRECT", {ProtocolMatch{}}, Redirect{15001}));
  rules.rules.back().origin.rule = MeshRule::outbound_listener;
  for (const bool before : {false, true}) {
    if (before) commit(space, {ports(1)});
    const std::string listed = list(space);
    for (const bool check : {false, true}) {
      const Error error = error_of(space, [&](Backend& backend) {
        if (check) backend.check(backend.read(), rules);
        if (!check) backend.replace(backend.read(), rules);
      });
      EXPECT_EQ(error.code(), ExitCode::failed) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("'-t mangle -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001'"));
      EXPECT_THAT(error.what(), HasSubstr("target 'REDIRECT', from -p 15001"));
      EXPECT_EQ(list(space), listed);
    }
  }
}

TEST_F(NftIptables, AChangeOfSomebodyElseMeanwhileIsBusy) {
  const Namespace space;
  const Error error = error_of(space, [&](Backend& backend) {
    const Live seen = backend.read();
    space.must({"iptables-nft", "-A", "INPUT", "-j", "ACCEPT"});
    backend.replace(seen, every_word());
  });
  EXPECT_EQ(error.code(), ExitCode::busy) << error.what();
  EXPECT_THAT(list(space), Not(HasSubstr("ISTIO")));
}

// A chain of that name which no packet comes to must not be taken for the one that iptables has.
TEST_F(NftIptables, AChainThatIsNotIptablesOwnIsRefused) {
  const Namespace space;
  space.must({"nft", "add table ip nat; add chain ip nat OUTPUT"});
  const Error error = error_of(space, [&](Backend& backend) { backend.replace(backend.read(), {ports(1)}); });
  EXPECT_EQ(error.code(), ExitCode::failed) << error.what();
  EXPECT_STREQ(error.what(), "iptables-nft: the chain OUTPUT of the table ip nat has no hook");
  EXPECT_EQ(error.hint(), "see 'nft list chain ip nat OUTPUT'; delete it, or choose --backend nftables");
}

TEST_F(NftIptables, AChainAtAnotherPlaceIsRefused) {
  for (const char* place : {"type nat hook output priority -99", "type filter hook output priority -100",
                            "type nat hook input priority -100"}) {
    const Namespace space;
    space.must({"nft", "-f", "-"}, std::string("table ip nat {\nchain OUTPUT { ") + place + "; }\n}\n");
    const std::string before = list(space);
    const Error error = error_of(space, [&](Backend& backend) { backend.replace(backend.read(), {ports(1)}); });
    EXPECT_EQ(error.code(), ExitCode::failed) << place;
    EXPECT_STREQ(
        error.what(),
        "iptables-nft: the chain OUTPUT of the table ip nat has a different hook, type or priority than iptables "
        "expects");
    EXPECT_TRUE(error.of_one_backend());
    EXPECT_EQ(list(space), before);
  }
}

TEST_F(NftIptables, ADormantTableIsRefusedWhereItIsNeeded) {
  const Namespace space;
  space.must({"nft", "-f", "-"}, "table ip nat { flags dormant; }\ntable ip6 mangle { flags dormant; chain c { }; }\n");
  const std::string before = list(space);
  const Error error = error_of(space, [&](Backend& backend) { backend.replace(backend.read(), {ports(1)}); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_STREQ(error.what(), "iptables-nft: the table ip nat is dormant: the kernel calls none of its chains");
  EXPECT_EQ(error.hint(), "see 'nft list table ip nat'; delete it, or choose --backend nftables");
  EXPECT_EQ(list(space), before);
  space.must({"nft", "delete", "table", "ip", "nat"});
  commit(space, {ports(1)});
  EXPECT_THAT(list(space), HasSubstr("table ip6 mangle {\n\tflags dormant"));
}

// A chain that is jumped to does not go. (`clean` sees such a rule before it asks.)
TEST_F(NftIptables, AChainThatAnotherProgramUsesIsNamed) {
  const Namespace space;
  commit(space, {ports(1)});
  space.must({"iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "ISTIO_OUTPUT"});
  const std::string before = list(space);
  const Error error = error_of(space, [&](Backend& backend) { backend.replace(backend.read(), {}); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_STREQ(error.what(),
               "iptables-nft: the kernel refuses to delete the chain ISTIO_OUTPUT of the table ip nat: something of "
               "another program leads to it: Device or resource busy (EBUSY)");
  EXPECT_EQ(error.hint(), "'nft list ruleset' shows what leads there; delete that first");
  EXPECT_EQ(list(space), before);
}

TEST_F(NftIptables, TenThousandRules) {
  const Namespace space;
  for (const int count : {2'500, 5'000, 10'000}) {
    const auto start = std::chrono::steady_clock::now();
    commit(space, {ports(count)});
    const auto committed = std::chrono::steady_clock::now();
    expect_read_back(space, {ports(count)});
    const auto end = std::chrono::steady_clock::now();
    std::printf("%d rules: commit %d ms, read back %d ms\n", count,
                static_cast<int>((committed - start) / std::chrono::milliseconds(1)),
                static_cast<int>((end - committed) / std::chrono::milliseconds(1)));
  }
}

}  // namespace
}  // namespace sidetrack::netns
