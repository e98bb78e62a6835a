// SPDX-License-Identifier: GPL-2.0-or-later
// Every scenario of rules/ on the real kernel: what we print, loaded by the tools of the field into one namespace,
// lists exactly as what we program into another; and what we read back is what was asked.
#include <gtest/gtest.h>

#include <cctype>
#include <tuple>

#include "golden/renderings.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

// A backend, and the field's tools that load and list the same rules.
struct Oracle {
  const char* backend;
  void (*load)(const Namespace& where, const Scenario& scenario);
  std::string (*list)(const Namespace& where);
};

template <const std::string_view& Variant>
void restore(const Namespace& where, const Scenario& scenario) {
  for (const auto& [tool, file] : {std::pair("iptables", "ipv4.rules"), std::pair("ip6tables", "ipv6.rules")}) {
    const std::string text = read_file(scenario.folder / file);
    if (!text.empty()) where.must({std::string(tool) + "-" + std::string(Variant) + "-restore", "--noflush"}, text);
  }
}

template <const std::string_view& Variant>
std::string save(const Namespace& where) {
  std::string all;
  for (const char* tool : {"iptables", "ip6tables"}) {
    for (const char* table : {"raw", "mangle", "nat"}) {
      all += std::string(tool) + "\n" +
             without_time(where.must({std::string(tool) + "-" + std::string(Variant) + "-save", "-t", table}));
    }
  }
  return all;
}

void nft_load(const Namespace& where, const Scenario& scenario) {
  const std::string text = read_file(scenario.folder / "rules.nft");
  if (!text.empty()) where.must({"nft", "-f", "-"}, text);
}
std::string nft_list(const Namespace& where) { return where.must({"nft", "list", "ruleset"}); }

constexpr std::string_view legacy = "legacy";
constexpr std::string_view nft = "nft";

const Oracle oracles[] = {
    {"iptables-legacy", restore<legacy>, save<legacy>},
    {"iptables-nft", restore<nft>, save<nft>},
    {"nftables", nft_load, nft_list},
};

class Scenarios : public KernelTest, public ::testing::WithParamInterface<std::tuple<Oracle, Scenario>> {
 protected:
  const Oracle& oracle() const { return std::get<Oracle>(GetParam()); }
  const Scenario& scenario() const { return std::get<Scenario>(GetParam()); }

  // The program with the scenario's arguments, in a namespace; the lists of `args` are named from the source's top.
  Output run(const Namespace& where, std::string_view command) const {
    std::vector<std::string> words{program_under_test(), std::string(command), "--backend", oracle().backend};
    words.insert(words.end(), scenario().arguments.begin(), scenario().arguments.end());
    std::vector<std::string> environment;
    for (const auto& [variable, value] : scenario().environment) environment.push_back(variable + "=" + value);
    std::filesystem::current_path(SIDETRACK_SOURCE_DIR);
    return where.program(words, {}, environment);
  }
};

TEST_P(Scenarios, AreProgrammedAsPrinted) {
  const Namespace ours;
  const Namespace theirs;
  ip(ours, "link set lo up\n");  // the route to lo of TPROXY needs it
  const Output applied = run(ours, "apply");
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
  oracle().load(theirs, scenario());
  EXPECT_EQ(oracle().list(ours), oracle().list(theirs));

  const Output verified = run(ours, "verify");
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const std::string before = oracle().list(ours);
  const Output again = run(ours, "apply");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("nothing to change"), std::string::npos) << again.err;
  EXPECT_EQ(oracle().list(ours), before);

  const Output cleaned = ours.program({program_under_test(), "clean", "--backend", oracle().backend});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_EQ(oracle().list(ours).find("ISTIO_"), std::string::npos);
  EXPECT_EQ(ours.must({"ip", "rule", "list", "table", "133"}), "");
}

// Without the one whose cgroup is not there: BypassCgroup programs those that it makes.
std::vector<Scenario> programmable() {
  std::vector<Scenario> all = scenarios();
  std::erase_if(all, [](const Scenario& scenario) { return scenario.name == "bypass-cgroup"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rules, Scenarios,
                         ::testing::Combine(::testing::ValuesIn(oracles), ::testing::ValuesIn(programmable())),
                         [](const auto& tested) {
                           std::string name = std::string(std::get<Oracle>(tested.param).backend) + "_" +
                                              std::get<Scenario>(tested.param).name;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace sidetrack::netns
