// SPDX-License-Identifier: GPL-2.0-or-later
// The rules are edited by hand: what verify finds, apply mends, and what apply may not mend, verify goes on to
// report and apply warns of. For random edits on every backend:
//
//   verify = 0  <=>  diff = 0  <=>  apply changes nothing and warns of nothing
//   after apply, verify = 0 or apply has warned; verify = 0  =>  every connection that is captured lands as the options
//   ask
//
// $SIDETRACK_SEED varies the edits, $SIDETRACK_CASES their number.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/amount.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

// An edit as the program and its words, or as the text that it reads.
struct Edit {
  std::vector<std::string> words;
  std::string input;
};

Edit shell(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : line + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return {words, {}};
}
Edit nft(const std::string& text) { return {{"nft", "-f", "-"}, text}; }

// Edits of iptables' tables, in the words after the program's name.
constexpr const char* of_iptables[] = {
    "-t nat -D OUTPUT 1",
    "-t nat -D ISTIO_OUTPUT 2",
    "-t nat -F ISTIO_REDIRECT",
    "-t nat -A ISTIO_OUTPUT -d 10.9.9.9/32 -j RETURN",
    "-t nat -I ISTIO_OUTPUT 1 -p tcp --dport 80 -j RETURN",
    "-t nat -I ISTIO_INBOUND 1 -m string --string x --algo bm -j RETURN",
    "-t nat -R ISTIO_REDIRECT 1 -p tcp -j REDIRECT --to-ports 15009",
    "-t nat -I OUTPUT 1 -p tcp --dport 80 -j ACCEPT",
    "-t nat -I OUTPUT 1 -p tcp --dport 8443 -j RETURN",
    "-t nat -A OUTPUT -p tcp --dport 81 -j ACCEPT",
    "-t nat -I PREROUTING 1 -p tcp -j REDIRECT --to-ports 9999",
    "-t nat -I OUTPUT 1 -p udp --dport 9 -j ACCEPT",
    "-t nat -I OUTPUT 1 -p tcp -m limit --limit 1/hour -j ACCEPT",
    "-t nat -P OUTPUT DROP",
    "-t mangle -P OUTPUT DROP",
    "-t raw -P PREROUTING DROP",
    "-t filter -P OUTPUT DROP",
    "-t filter -P INPUT DROP",
    "-t filter -A OUTPUT -p tcp -j DROP",
    "-t filter -A OUTPUT -p udp --dport 5353 -j DROP",
    "-t filter -A INPUT -p tcp --dport 15006 -j REJECT",
    "-t filter -A OUTPUT -p tcp --sport 15006 -j DROP",
    "-t mangle -A OUTPUT -j MARK --set-mark 77",
    "-t mangle -A PREROUTING -p tcp -m statistic --mode random --probability 0.5 -j DROP",
    "-t raw -A OUTPUT -p tcp -j CT --notrack",
    "-t raw -A PREROUTING -p udp -j CT --notrack",
    "-t nat -N ISTIO_CUSTOM",
    "-t nat -A POSTROUTING -p tcp -j MASQUERADE",
};

// Edits of nf_tables, whatever the backend.
constexpr const char* of_nft[] = {
    "table inet mine { chain out { type filter hook output priority 0; policy drop; }; }",
    "table inet mine { chain out { type filter hook output priority 0; tcp dport >= 1024 drop; }; }",
    "table inet mine { chain out { type filter hook output priority -400; tcp dport 80 accept; }; }",
    "table ip mine { chain out { type nat hook output priority -150; tcp dport 80 dnat to 10.1.0.2:9; }; }",
    "table ip mine { chain out { type nat hook output priority -50; tcp dport 80 dnat to 10.1.0.2:9; }; }",
    "table inet mine { chain in { type filter hook prerouting priority -500; tcp dport { 80, 8080 } drop; }; }",
    "table inet mine { chain in { type filter hook input priority 10; meta l4proto tcp ct state new limit rate 1/hour "
    "drop; "
    "}; }",
    "table inet mine { flags dormant; chain out { type filter hook output priority 0; policy drop; }; }",
    "table inet mine { chain free { tcp dport 80 drop; }; }",
    "table inet mine { map verdicts { type inet_service : verdict; elements = { 80 : drop, 81 : accept }; }; chain out "
    "{ "
    "type filter hook output priority 1; tcp dport vmap @verdicts; }; }",
};

// Edits of our own native table.
constexpr const char* of_own_table[] = {
    "add table inet sidetrack { flags dormant; }",
    "add chain inet sidetrack nat-OUTPUT { policy drop; }",
    "add chain inet sidetrack mine",
    "add set inet sidetrack mine { type inet_service; }",
    "add rule inet sidetrack nat-ISTIO_OUTPUT tcp dport 82 counter drop",
    "insert rule inet sidetrack nat-ISTIO_OUTPUT tcp dport 80 return",
    "insert rule inet sidetrack nat-ISTIO_INBOUND return",
    "insert rule inet sidetrack nat-OUTPUT accept",
    "insert rule inet sidetrack nat-PREROUTING tcp dport 80 accept",
    "insert rule inet sidetrack nat-ISTIO_REDIRECT return",
    "flush chain inet sidetrack nat-ISTIO_REDIRECT",
    "add chain inet sidetrack other { type filter hook output priority 0; policy drop; }",
};

constexpr const char* of_routes[] = {
    "ip rule del fwmark 1337 lookup 133",
    "ip rule add fwmark 1337 lookup 133",
    "ip rule add pref 5 fwmark 1337 lookup 99",
    "ip rule add pref 7 fwmark 1337 unreachable",
    "ip route del local default dev lo table 133",
    "ip route replace unreachable default table 133",
    "ip rule add pref 9 from all lookup main",
    "ip rule add pref 40000 fwmark 1337 lookup 133 protocol 137",
    "ip rule add pref 0 from all lookup main",
    "ip rule add pref 9 fwmark 7 lookup main",
    "ip rule add pref 9 from all lookup 100",
    "ip route add unreachable 10.96.0.0/16 table 133",
    "ip rule add fwmark 1337 lookup 133 protocol zebra",
};

class HandEdits : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
  }
  [[nodiscard]] bool is(std::string_view backend) const { return backend == GetParam(); }

  Edit random_edit(std::mt19937& dice, bool tproxy) const {
    const auto one_of = [&](const auto& items) { return std::string(items[dice() % std::size(items)]); };
    const auto kind = dice() % 100;
    const std::string variant = is("nftables")       ? (dice() % 2 == 0 ? "legacy" : "nft")
                                : is("iptables-nft") ? "nft"
                                                     : "legacy";
    if (kind < 55) return shell("iptables-" + variant + " " + one_of(of_iptables));
    if (is("nftables") && kind < 80) return nft(one_of(of_own_table));
    if (tproxy && kind < 80) return shell(one_of(of_routes));
    return nft(one_of(of_nft));
  }
};

struct Captured {
  std::string options;
  bool tproxy;
};
const Captured captured[] = {{"-i * -b * -d 15021", false}, {"-i * -b * -d 15021 -m TPROXY", true}};

TEST_P(HandEdits, VerifyDiffAndApplyAgree) {
  const unsigned seed = amount("SIDETRACK_SEED", 20261121);
  const unsigned count = amount("SIDETRACK_CASES", 10);
  for (unsigned index = 0; index < count; ++index) {
    std::seed_seq sequence{seed, index};
    std::mt19937 dice(sequence);
    const Captured& tested = captured[dice() % std::size(captured)];
    Pod pod(Pod::Options{.transparent_proxy = tested.tproxy});
    const auto run = [&](const char* command, std::vector<std::string> more = {}) {
      std::vector<std::string> words{program_under_test(), command, "--backend", GetParam(), "--ip-families", "ipv4"};
      for (const std::string& word : shell(tested.options).words) words.push_back(word);
      words.insert(words.end(), more.begin(), more.end());
      return pod.ns().program(words);
    };
    ASSERT_EQ(run("apply").exit_code, 0);
    std::string said;
    for (auto edits = 1 + dice() % 2; edits > 0; --edits) {
      const Edit edit = random_edit(dice, tested.tproxy);
      for (const std::string& word : edit.words) said += word + " ";
      said += edit.input + "\n";
      static_cast<void>(
          pod.ns().program(edit.words, edit.input));  // one may not fit what is there: then nothing happens
    }
    SCOPED_TRACE(fmt::format("seed {}, case {}, {}: {}\n{}", seed, index, GetParam(), tested.options, said));

    const Output verified = run("verify");
    const Output differs = run("diff");
    EXPECT_THAT(verified.exit_code, AnyOf(Eq(0), Eq(6))) << verified.out << verified.err;
    EXPECT_EQ(verified.exit_code, differs.exit_code) << verified.out << verified.err << differs.out << differs.err;
    const std::string before = listing(pod.ns());
    const Output strict = run("apply", {"--strict"});
    const Output applied = strict.exit_code == 6 ? run("apply") : strict;
    if (strict.exit_code == 6) {
      EXPECT_THAT(strict.err, ::testing::HasSubstr("nothing was changed"));
    }
    const bool warned = applied.err.find("warning: ") != std::string::npos;
    const bool unchanged = listing(pod.ns()) == before;
    if (applied.exit_code == 1) {  // refused by name: another program's part of our table
      EXPECT_TRUE(unchanged) << applied.err;
      EXPECT_EQ(verified.exit_code, 6) << verified.out;
      continue;
    }
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_EQ(verified.exit_code == 0, unchanged && !warned)
        << "verify: " << verified.exit_code << "\n"
        << verified.out << verified.err << "apply: " << applied.err;
    const Output again = run("verify");
    EXPECT_EQ(again.exit_code == 0, !warned) << again.out << again.err << applied.err;

    if (again.exit_code != 0) continue;
    const Addresses& at = addresses(Family::ipv4);
    const Endpoint service(at.service, 80);
    EXPECT_EQ(pod.connect(as_app, {.to = service, .from = {}}), landed(Role::proxy_outbound, original(service)));
    // What the proxy sends is not captured, and no matter of verify.
    const Output by_proxy =
        pod.ns().program({program_under_test(), "explain", "out", "tcp", service.text(), "--uid", "1337"});
    if (by_proxy.out.find("leaves the pod") != std::string::npos) {
      EXPECT_EQ(pod.connect(as_proxy, {.to = service, .from = {}}), landed(Role::outside, local(service)));
    }
    const Endpoint app(at.pod, 8080);
    EXPECT_EQ(pod.connect(from_outside, {.to = app, .from = {}}).role, Role::proxy_inbound);
  }
}

// TPROXY is two rules of nf_tables: what is left if one of them goes is mended, and removed.
TEST_P(HandEdits, HalfOfTproxyIsOurs) {
  if (!is("nftables")) return;
  for (const bool of_tproxy : {true, false}) {
    for (const char* next : {"apply", "clean"}) {
      SCOPED_TRACE(fmt::format("{} after the {} went", next, of_tproxy ? "tproxy" : "drop"));
      Pod pod(Pod::Options{.transparent_proxy = true});
      const auto run = [&](const char* command) {
        std::vector<std::string> words{program_under_test(), command};
        const auto options = shell("--backend nftables -i * -b * -m TPROXY --ip-families ipv4").words;
        if (std::string_view(command) != "clean") words.insert(words.end(), options.begin(), options.end());
        return pod.ns().program(words);
      };
      ASSERT_EQ(run("apply").exit_code, 0);
      const std::string half = of_tproxy ? "tproxy" : "counter packets 0 bytes 0 drop";
      const std::string edit = "h=$(nft -a list chain inet sidetrack mangle-ISTIO_TPROXY | sed -n '/" + half +
                               "/s/.*# handle //p'); nft delete rule inet sidetrack mangle-ISTIO_TPROXY handle $h";
      ASSERT_EQ(pod.ns().program({"sh", "-c", edit}).exit_code, 0);
      EXPECT_EQ(run("verify").exit_code, 6);
      const Output done = run(next);
      EXPECT_EQ(done.exit_code, 0) << done.err;
      if (std::string_view(next) == "apply") {
        EXPECT_EQ(run("verify").exit_code, 0);
        EXPECT_EQ(pod.connect(from_outside, {.to = Endpoint(addresses(Family::ipv4).pod, 8080), .from = {}}).role,
                  Role::proxy_inbound);
      } else {
        EXPECT_EQ(pod.ns().program({"nft", "list", "table", "inet", "sidetrack"}).exit_code, 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, HandEdits, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
