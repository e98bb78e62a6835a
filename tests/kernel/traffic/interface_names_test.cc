// SPDX-License-Identifier: GPL-2.0-or-later
// Names of interfaces that hold any character: what is printed and what is committed are the same rules.
#include <fmt/format.h>

#include <random>

#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

constexpr std::string_view not_in_a_name = "/:\"*\\,";  // ',' separates names

std::string legal_characters() {
  std::string all;
  for (char c = '!'; c <= '~'; ++c) {
    if (not_in_a_name.find(c) == std::string_view::npos) all += c;
  }
  return all;
}

// Every character at the beginning, in the middle and at the end, '+' too; and names of random ones.
std::vector<std::string> names() {
  const std::string characters = legal_characters();
  std::vector<std::string> result = {"eth0", "eth+", "..."};
  for (const char c : characters) {
    if (c != '@') result.push_back(std::string{c, 'x'});
    result.push_back(std::string{'x', c, 'y'});
    result.push_back(std::string{'y', c});
    if (c != '@') result.push_back(std::string{c, c});
  }
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string name;
    for (const std::size_t size = 1 + random() % 15; name.size() < size;)
      name += characters[random() % characters.size()];
    if (name != "+" && name != "." && name != ".." && !name.starts_with('@')) result.push_back(name);
  }
  std::erase(result, "..");
  return result;
}

class InterfaceNames : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static Namespace fresh() {
    Namespace space;
    ip(space, "link set lo up\n");
    return space;
  }
  // As the tools list them. iptables-restore makes the chains in another order; the order of rules counts.
  [[nodiscard]] static std::string rules(const Namespace& where) {
    const std::string backend = GetParam();
    if (backend == "nftables") return where.must({"nft", "list", "ruleset"});
    const std::string suffix = backend == "iptables-legacy" ? "-legacy" : "-nft";
    return where.must({"iptables" + suffix, "-t", "nat", "-S"}) + where.must({"ip6tables" + suffix, "-t", "nat", "-S"});
  }
  [[nodiscard]] static std::vector<std::string> command(const std::string& name, const std::string& option,
                                                        std::vector<std::string> more) {
    std::vector<std::string> words{program_under_test(),
                                   name,
                                   "--ip-families",
                                   "ipv4,ipv6",
                                   "-b",
                                   "*",
                                   fmt::format("{}={}", option, fmt::join(names(), ","))};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_P(InterfaceNames, PrintedAndCommittedAreTheSameAndUnderstood) {
  const std::string backend = GetParam();
  for (const char* option : {"-c", "-k"}) {
    const Namespace by_us = fresh();
    by_us.must(command("apply", option, {"--backend", backend}));
    const Namespace by_text = fresh();
    const auto rendered = [&](std::vector<std::string> more) {
      return by_text.must(command("render", option, std::move(more)));
    };
    if (backend == "nftables") {
      by_text.must({"nft", "-f", "-"}, rendered({"--format", "nft"}));
    } else {
      const std::string suffix = backend == "iptables-legacy" ? "-legacy-restore" : "-nft-restore";
      by_text.must({"iptables" + suffix}, rendered({"--family", "ipv4"}));
      by_text.must({"ip6tables" + suffix}, rendered({"--family", "ipv6"}));
    }
    by_text.must({"ip", "address", "add", "::6/128", "dev", "lo", "nodad"});  // no text of rules holds addresses
    EXPECT_EQ(rules(by_us), rules(by_text));
    for (const Namespace* space : {&by_us, &by_text}) {
      space->must(command("verify", option, {"--backend", backend}));
      space->must({program_under_test(), "clean", "--backend", backend});
      EXPECT_NE(space->program(command("verify", option, {"--backend", backend})).exit_code, 0);
      for (const auto& [place, text] : atoms(*space)) EXPECT_EQ(text.find("RETURN"), std::string::npos) << place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, InterfaceNames, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
