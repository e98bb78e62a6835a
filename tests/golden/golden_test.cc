// SPDX-License-Identifier: GPL-2.0-or-later
// Every scenario in rules/: what is rendered equals the files; so do the drawings and tables of the documentation, and
// what `args` says of the manifests, and what explain, map, lint, show and diff say of rules.
// `golden_tests --update` writes them instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>

#include "golden/answers.h"
#include "golden/manifests.h"
#include "golden/pages.h"
#include "golden/renderings.h"
#include "golden/reports.h"
#include "options/annotations.h"

namespace sidetrack {
namespace {

class Golden : public ::testing::TestWithParam<Scenario> {};

TEST_P(Golden, RendersAsItsFiles) {
  const Scenario& scenario = GetParam();
  const auto expected = renderings(scenario);
  for (const auto& [file, text] : expected)
    EXPECT_EQ(read_file(scenario.folder / file), text) << scenario.folder / file;
  for (const char* file : {"ipv4.rules", "ipv6.rules", "rules.nft"}) {
    EXPECT_EQ(std::filesystem::exists(scenario.folder / file), expected.contains(file)) << scenario.folder / file;
  }
}

std::string test_name(std::string name) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rules, Golden, ::testing::ValuesIn(scenarios()),
                         [](const auto& scenario) { return test_name(scenario.param.name); });

class OfScenario : public ::testing::TestWithParam<Scenario> {};

TEST_P(OfScenario, AnswersAreAsItsFile) { EXPECT_EQ(read_file(answers_file(GetParam())), answers(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Rules, OfScenario, ::testing::ValuesIn(answered()),
                         [](const auto& scenario) { return test_name(scenario.param.name); });

TEST(Answers, PagesAndDrawingsAreAsTheirFiles) {
  for (const auto& [file, text] : pages_and_drawings()) EXPECT_EQ(read_file(file), text) << file;
}

TEST(Answers, AboutReportsAreAsTheirFiles) {
  const auto all = answers_about_reports();
  EXPECT_GE(all.size(), 2U);
  for (const auto& [file, text] : all) EXPECT_EQ(read_file(file), text) << file;
}

class OfManifest : public ::testing::TestWithParam<Manifest> {};

TEST_P(OfManifest, ArgsAreAsItsFile) {
  const Manifest& manifest = GetParam();
  EXPECT_EQ(read_file(manifest.expected()), said_of(manifest)) << manifest.expected();
}

INSTANTIATE_TEST_SUITE_P(Manifests, OfManifest, ::testing::ValuesIn(manifests()),
                         [](const auto& manifest) { return test_name(manifest.param.name); });

TEST(Manifests, HaveEachAnnotationAlone) {
  for (const AnnotationInfo& row : annotation_table()) {
    for (const std::string_view name : {row.name, row.older}) {
      if (name.empty()) continue;
      EXPECT_TRUE(std::ranges::any_of(manifests(), [&](const Manifest& manifest) {
        return read_file(manifest.file).find(name) != std::string::npos;
      })) << name;
    }
  }
  EXPECT_GE(manifests().size(), 20U);
}

// The gallery is only worth something as long as it covers the whole command line.
TEST(Gallery, CoversEveryOptionOfThePlan) {
  std::string all;
  for (const Scenario& scenario : scenarios()) {
    for (const auto& [variable, value] : scenario.environment) all += variable + " ";
    for (const std::string& word : scenario.arguments) all += word + " ";
  }
  for (const char* option : {"-p ",
                             "-z ",
                             "-e ",
                             "-u ",
                             "-g ",
                             "-m TPROXY",
                             "-m NONE",
                             "-b ",
                             "-d ",
                             "-c ",
                             "-i ",
                             "-x ",
                             "-q ",
                             "-o ",
                             "-k ",
                             "-t ",
                             "-r ",
                             "--exclude-uids ",
                             "--exclude-gids ",
                             "--exclude-uid-ports ",
                             "--bypass-cgroup ",
                             "--capture-udp ",
                             "--redirect-dns",
                             "--capture-all-dns",
                             "--drop-invalid",
                             "--dual-stack",
                             "--dataplane ambient",
                             "--probe-address ",
                             "--probe-address6 ",
                             "--ingress",
                             "ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR",
                             "ISTIO_OUTBOUND_OWNER_GROUPS",
                             "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE"}) {
    EXPECT_NE(all.find(option), std::string::npos) << option;
  }
  EXPECT_GE(scenarios().size(), 24u);
}

TEST(Pages, AreAsGenerated) {
  for (const auto& [file, text] : pages()) {
    EXPECT_EQ(read_file(std::filesystem::path(SIDETRACK_SOURCE_DIR) / file), text)
        << file << ": run scripts/update-rules";
  }
}

void update() {
  for (const auto& [file, text] : pages()) {
    std::ofstream(std::filesystem::path(SIDETRACK_SOURCE_DIR) / file, std::ios::binary) << text;
  }
  for (const Scenario& scenario : scenarios()) {
    for (const char* file : {"ipv4.rules", "ipv6.rules", "rules.nft", "plan.json"})
      std::filesystem::remove(scenario.folder / file);
    for (const auto& [file, text] : renderings(scenario))
      std::ofstream(scenario.folder / file, std::ios::binary) << text;
  }
  for (const auto& [file, text] : pages_and_drawings()) std::ofstream(file, std::ios::binary) << text;
  for (const auto& [file, text] : answers_about_reports()) std::ofstream(file, std::ios::binary) << text;
  for (const Scenario& scenario : answered())
    std::ofstream(answers_file(scenario), std::ios::binary) << answers(scenario);
  for (const Manifest& manifest : manifests())
    std::ofstream(manifest.expected(), std::ios::binary) << said_of(manifest);
}

}  // namespace
}  // namespace sidetrack

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc == 2 && std::string_view(argv[1]) == "--update") {
    sidetrack::update();
    return 0;
  }
  return RUN_ALL_TESTS();
}
