// SPDX-License-Identifier: GPL-2.0-or-later
// What is offered; tests/words/run lets the shells themselves complete.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/scan.h"
#include "options/flags.h"
#include "options/options.h"
#include "unit/options_text.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::string completed(const std::vector<std::string_view>& words) { return complete(words); }

// Without their descriptions.
std::vector<std::string> offered(const std::vector<std::string_view>& words) {
  const std::string text = completed(words);
  std::vector<std::string> all;
  for (const std::string_view line : split_lines(text)) all.emplace_back(line.substr(0, line.find('\t')));
  if (!all.empty()) all.erase(all.begin());
  return all;
}

TEST(Complete, OffersEveryOptionOfEveryCommandAndNoOther) {
  for (const CommandInfo& command : commands()) {
    const auto options = offered({"sidetrack", command.name, "-"});
    for (const Flag& flag : flags()) {
      if (flag.name.empty()) continue;
      SCOPED_TRACE(std::string(command.name) + " " + spelled(flag));
      const bool is_taken = std::ranges::any_of(flags(), [&](const Flag& other) {
        return other.name == flag.name && other.group != Group::former && other.commands.contains(command.command);
      });
      const std::string name = "--" + std::string(flag.name);
      if (is_taken) {
        EXPECT_THAT(options, Contains(name));
      } else {
        EXPECT_THAT(options, Not(Contains(name)));
      }
      if (is_taken && flag.letter != '\0') {
        EXPECT_THAT(options, Contains(std::string("-") + flag.letter));
      }
    }
  }
}

TEST(Complete, OffersEveryCommandWithItsSummary) {
  for (const CommandInfo& command : commands()) {
    const std::string line = std::string(command.name) + "\t" + std::string(command.summary) + "\n";
    EXPECT_THAT(completed({"sidetrack", ""}), ::testing::HasSubstr("\n" + line));
    EXPECT_THAT(completed({"sidetrack", "help", ""}), ::testing::HasSubstr("\n" + line));
  }
  EXPECT_THAT(offered({"sidetrack", ""}), Contains("istio-iptables"));
  EXPECT_THAT(offered({"/usr/sbin/istio-iptables", ""}), IsEmpty());
}

TEST(Complete, SaysWhatStaysOfTheWordAndWhatMayFollow) {
  EXPECT_EQ(completed({"sidetrack", "apply", "--backend", "nf"}), "words\t\nnftables\t\n");
  EXPECT_EQ(completed({"sidetrack", "apply", "--backend=nf"}), "words\t--backend=\nnftables\t\n");
  EXPECT_EQ(completed({"sidetrack", "apply", "--ip-families=ipv4,ipv6"}), "list\t--ip-families=ipv4,\nipv6\t\n");
  EXPECT_EQ(completed({"sidetrack", "apply", "-x", "@ranges"}), "files\t@\n");
  EXPECT_EQ(completed({"sidetrack", "-b", "*,"}), "words\t*,\n*\t\n");
  EXPECT_EQ(completed({"sidetrack", "-x", "10.0.0.0/8,"}), "list\t10.0.0.0/8,\n");
  EXPECT_EQ(completed({"sidetrack", "render", "--pod=po"}), "files\t--pod=\n");
  EXPECT_EQ(completed({"sidetrack", "--log_target", ""}), "files\t\nstdout\t\nstderr\t\n");
}

TEST(Complete, OffersNothingWhereNothingIsKnown) {
  EXPECT_EQ(completed({}), "");
  EXPECT_EQ(completed({"sidetrack"}), "");
  EXPECT_EQ(completed({"sidetrack", "nonsense", "--"}), "words\t\n");
  EXPECT_EQ(completed({"sidetrack", "apply", "--nonsense=a"}), "words\t\n");
  EXPECT_EQ(completed({"sidetrack", "apply", "--dry-run=t"}), "words\t\n");
  EXPECT_EQ(completed({"sidetrack", "apply", "-p", "1"}), "words\t\n");
  EXPECT_EQ(completed({"sidetrack", "help", "apply", ""}), "words\t\n");
  EXPECT_EQ(completed({"sidetrack", "explain", "out", "tcp", ""}), "words\t\n");
}

TEST(Complete, OffersTheFormatsOfTheCommand) {
  EXPECT_THAT(offered({"sidetrack", "diff", "--format", ""}), ElementsAre("text", "json"));
  EXPECT_THAT(offered({"sidetrack", "map", "--format", ""}), ElementsAre("text", "json", "svg"));
}

TEST(Complete, OffersWordsThatTheCommandTakes) {
  for (const std::string& way : offered({"sidetrack", "explain", ""})) {
    for (const std::string& protocol : offered({"sidetrack", "explain", way, ""})) {
      PacketOptions packet;
      packet.words = {way, protocol, protocol == "icmp" ? "10.0.0.1" : "10.0.0.1:80"};
      EXPECT_NO_THROW(static_cast<void>(parse_packet(packet))) << way << " " << protocol;
    }
  }
  EXPECT_THAT(offered({"sidetrack", "completion", ""}), ElementsAre("bash", "zsh", "fish"));
  for (const std::string& shell : offered({"sidetrack", "completion", ""}))
    EXPECT_NO_THROW(testing::parse_arguments({"sidetrack", "completion", shell})) << shell;
}

}  // namespace
}  // namespace sidetrack
