// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "options/flags.h"

namespace sidetrack {
namespace {

void expect_one_screen(const std::string& text) {
  std::istringstream stream(text);
  int lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_LE(lines, 48);
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(Help, FitsOneScreen) {
  expect_one_screen(help());
  for (const CommandInfo& command : commands()) {
    SCOPED_TRACE(command.name);
    expect_one_screen(help(command.command));
  }
}

TEST(Help, OfTheProgramListsEveryCommand) {
  for (const CommandInfo& command : commands()) {
    EXPECT_NE(help().find("\n  " + std::string(command.name) + " "), std::string::npos) << command.name;
    EXPECT_NE(help().find(command.summary), std::string::npos) << command.name;
  }
}

TEST(Help, OfACommandShowsExactlyItsOptionsWithDefaultsAndAnExample) {
  for (const CommandInfo& command : commands()) {
    const std::string text = help(command.command);
    EXPECT_NE(text.find("Example: " + std::string(command.example)), std::string::npos);
    std::set<std::string_view> taken;
    for (const Flag& flag : flags()) {
      if (!flag.commands.contains(command.command) || flag.group == Group::former) continue;
      taken.insert(flag.name);
      const auto place = text.find(spelled(flag));
      ASSERT_NE(place, std::string::npos) << command.name << " " << spelled(flag);
      const std::string preset = "(" + std::string(flag.preset) + ")";
      if (!flag.preset.empty()) {
        EXPECT_NE(text.find(preset, place), std::string::npos) << spelled(flag);
      }
    }
    for (const Flag& flag : flags()) {
      if (taken.contains(flag.name)) continue;
      for (const std::string end : {" ", ",", "\n"}) {
        EXPECT_EQ(text.find("  " + spelled(flag) + end), std::string::npos) << command.name << " " << spelled(flag);
      }
    }
  }
}

TEST(Help, ShowsALineOfAnOption) {
  EXPECT_NE(help(Command::apply).find("\n  -p, --envoy-port PORT "), std::string::npos);
  EXPECT_NE(help(Command::apply).find("the proxy's port for outbound (15001)\n"), std::string::npos);
}

TEST(Flags, HaveOneMeaningPerCommand) {
  for (const CommandInfo& command : commands()) {
    EXPECT_EQ(info(command.command).name, command.name);
    EXPECT_EQ(name(command.command), command.name);
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const Flag& flag : flags()) {
      if (!flag.commands.contains(command.command)) continue;
      if (!flag.name.empty()) {
        EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
      }
      if (flag.letter != '\0') {
        EXPECT_TRUE(letters.insert(flag.letter).second) << flag.letter;
      }
    }
  }
}

TEST(Flags, AreComplete) {
  for (const Flag& flag : flags()) {
    SCOPED_TRACE(spelled(flag));
    EXPECT_NE(flag.value_of.set, nullptr);
    EXPECT_TRUE(!flag.name.empty() || !flag.variables[0].empty());
    EXPECT_EQ(flag.value.empty(), flag.kind == Kind::boolean);
    EXPECT_TRUE(!flag.description.empty() || !flag.choices.empty());
    if (flag.kind == Kind::choice) {
      EXPECT_FALSE(flag.choices.empty());
    }
  }
}

// The rule of istio-compat: the variable is the flag's name in capitals with '_' for '-'.
TEST(Flags, VariablesAreNamedAfterTheFlag) {
  for (const Flag& flag : flags()) {
    if (flag.name.empty() || flag.variables[0].empty()) continue;
    std::string expected(flag.name);
    std::ranges::transform(expected, expected.begin(),
                           [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
    EXPECT_EQ(flag.variables[0], expected);
  }
}

}  // namespace
}  // namespace sidetrack
