// SPDX-License-Identifier: GPL-2.0-or-later
// Many at once: one after the other, whatever backend each of them uses. $SIDETRACK_ROUNDS: how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <sstream>

#include "support/amount.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

const Words options[] = {
    {"--backend", "iptables-legacy", "-b", "*", "-m", "TPROXY"},
    {"--backend", "iptables-nft", "-b", "*", "-m", "TPROXY"},
    {"--backend", "nftables", "-b", "*", "-m", "TPROXY"},
    {"--backend", "auto", "-b", "*", "-m", "TPROXY"},
    {"--backend", "iptables-legacy", "-b", "80", "-p", "16001"},
    {"--backend", "iptables-nft", "-b", "80,443"},
    {"--backend", "nftables", "-b", "80", "-x", "10.0.0.0/8,fd00::/8"},
    {"--backend", "auto", "--redirect-dns", "--capture-all-dns", "-b", "443"},
};

Words sidetrack(const char* command, const Words& with) {
  Words words{program_under_test(), command, "--ip-families", "ipv4,ipv6", "-i", "*"};
  words.insert(words.end(), with.begin(), with.end());
  return words;
}

// When the first lock was taken, that of the namespace: "1700000000.123456 flock(3, LOCK_EX|LOCK_NB) = 0".
std::string locked_at(const std::string& trace) {
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" = 0")) return line.substr(0, line.find(' '));
  }
  return "";
}

// The backends that hold rules, as the tools of the field show them.
Words populated(const Namespace& where) {
  Words found;
  bool legacy = false;
  for (const auto& [name, text] : atoms(where)) {
    const bool istio = text.find("ISTIO_") != std::string::npos;
    if (name != "nf_tables") {
      legacy = legacy || istio;
      continue;
    }
    if (istio) found.emplace_back("iptables-nft");
    if (text.find("table inet sidetrack") != std::string::npos) found.emplace_back("nftables");
  }
  // nft lists the chains of `inet sidetrack` by the same names, with the table's before.
  if (found.size() == 2 && where.program({"sh", "-c", "nft list tables | grep -q 'ip '"}).exit_code != 0) {
    found.erase(found.begin());
  }
  if (legacy) found.emplace_back("iptables-legacy");
  return found;
}

using ManyAtOnce = KernelTest;

TEST_F(ManyAtOnce, TheLastOneDecides) {
  const unsigned rounds = amount("SIDETRACK_ROUNDS", 4);
  for (unsigned round = 0; round < rounds; ++round) {
    const Namespace ns;
    ip(ns, "link set lo up\n");
    trust_addresses(ns);
    // One that is there already, in turn.
    ns.must(sidetrack("apply", options[round % std::size(options)]));

    std::vector<std::future<std::pair<Output, std::string>>> running;
    for (const Words& each : options) {
      running.push_back(std::async(std::launch::async, [&ns, &each] {
        Words words{"strace", "-qq", "-ttt", "-e", "trace=flock", "-o", "/dev/fd/1"};
        const Words program = sidetrack("apply", each);
        words.insert(words.end(), program.begin(), program.end());
        Output output = ns.program(words);
        return std::pair(output, locked_at(output.out));
      }));
    }
    const Words* last = nullptr;
    std::string last_time;
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto [output, time] = running[i].get();
      EXPECT_EQ(output.exit_code, 0) << output.err;
      ASSERT_NE(time, "") << output.out;
      if (time <= last_time) continue;
      last_time = time;
      last = &options[i];
    }
    EXPECT_EQ(populated(ns).size(), 1U) << ::testing::PrintToString(populated(ns));
    const Output verified = ns.program(sidetrack("verify", *last));
    EXPECT_EQ(verified.exit_code, 0) << ::testing::PrintToString(*last) << verified.out << verified.err;
    for (const char* family : {"-4", "-6"}) {
      const std::string rules = ns.must({"ip", family, "rule"});
      const std::size_t first = rules.find("fwmark");
      EXPECT_EQ(rules.find("fwmark", first == rules.npos ? first : first + 1), rules.npos) << rules;
    }
    if (HasFailure()) return;
  }
}

TEST_F(ManyAtOnce, ADoubledPolicyRuleIsFoundAndMended) {
  const Namespace ns;
  ip(ns, "link set lo up\n");
  const Words tproxy{"--backend", "nftables", "-b", "*", "-m", "TPROXY"};
  ns.must(sidetrack("apply", tproxy));
  const std::string before = ns.must({"sh", "-c", "ip rule | grep -c 'fwmark 0x539'"});
  ns.must({"ip", "rule", "add", "fwmark", "1337", "lookup", "133", "protocol", "137"});
  EXPECT_EQ(ns.program(sidetrack("verify", tproxy)).exit_code, 6);
  ns.must(sidetrack("apply", tproxy));
  EXPECT_EQ(ns.program(sidetrack("verify", tproxy)).exit_code, 0);
  EXPECT_EQ(ns.must({"sh", "-c", "ip rule | grep -c 'fwmark 0x539'"}), before);
}

}  // namespace
}  // namespace sidetrack::netns
