// SPDX-License-Identifier: GPL-2.0-or-later
// The scripts of the shells, as text; tests/words/run lets the shells themselves complete.
#include "completion/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/explain.h"
#include "manual/manual.h"
#include "options/flags.h"
#include "unit/options_text.h"

namespace sidetrack {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// From `begin` to the next `end` after it.
std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find(end, from) - from);
}

// A pattern for the option as a whole word.
std::string whole(const Flag& flag) { return "--" + std::string(flag.name) + "($|[^a-z_-])"; }

template <typename Expect>
void for_each_option(Expect expect) {
  for (const CommandInfo& command : commands()) {
    for (const Flag& flag : flags()) {
      if (flag.name.empty()) continue;
      SCOPED_TRACE(std::string(command.name) + " " + spelled(flag));
      const bool other_row = std::ranges::any_of(flags(), [&](const Flag& other) {
        return other.name == flag.name && other.commands.contains(command.command);
      });
      if (flag.commands.contains(command.command) == other_row) expect(command, flag, other_row);
    }
  }
}

TEST(Completion, OfBashHasEveryOptionOfEveryCommandAndNoOther) {
  const std::string script = completion(Shell::bash);
  const std::string options = script.substr(script.find("case $command in"));
  for_each_option([&](const CommandInfo& command, const Flag& flag, bool taken) {
    const std::string line = part(options, "    " + std::string(command.name) + ") ", "\n");
    EXPECT_NE(line, "");
    if (taken) {
      EXPECT_THAT(line, ContainsRegex(whole(flag)));
    } else {
      EXPECT_THAT(line, Not(ContainsRegex(whole(flag))));
    }
  });
}

TEST(Completion, OfZshHasEveryOptionOfEveryCommandAndNoOther) {
  const std::string script = completion(Shell::zsh);
  for_each_option([&](const CommandInfo& command, const Flag& flag, bool taken) {
    const std::string function = part(script, "_sidetrack_" + std::string(command.name) + "() {", "\n}");
    EXPECT_NE(function, "");
    const std::string begin = flag.letter != '\0' ? ",--" : "'[*]?--";
    const std::string pattern = begin + std::string(flag.name) + "=?[}[]";
    if (taken) {
      EXPECT_THAT(function, ContainsRegex(pattern));
    } else {
      EXPECT_THAT(function, Not(ContainsRegex(pattern)));
    }
  });
}

TEST(Completion, OfFishHasEveryOptionOfEveryCommandAndNoOther) {
  const std::string script = completion(Shell::fish);
  for_each_option([&](const CommandInfo& command, const Flag& flag, bool taken) {
    const std::string pattern =
        "-n '__sidetrack_is[a-z -]* " + std::string(command.name) + "[ '][^\n]*-l " + std::string(flag.name) + " ";
    if (taken) {
      EXPECT_THAT(script, ContainsRegex(pattern));
    } else {
      EXPECT_THAT(script, Not(ContainsRegex(pattern)));
    }
  });
}

TEST(Completion, OffersEveryCommand) {
  for (const CommandInfo& command : commands()) {
    SCOPED_TRACE(command.name);
    const std::string name(command.name);
    EXPECT_THAT(completion(Shell::bash), HasSubstr(" " + name + " "));
    EXPECT_THAT(completion(Shell::zsh), HasSubstr("'" + name + ":"));
    EXPECT_THAT(completion(Shell::fish), HasSubstr("-n \"__sidetrack_is ''\" -a " + name + " "));
  }
}

TEST(Completion, OffersWordsThatTheCommandTakes) {
  const CommandInfo& explained = info(Command::explain);
  for (const std::string_view way : each_choice(explained.words[0])) {
    for (const std::string_view protocol : each_choice(explained.words[1])) {
      const std::string destination = protocol == "icmp" ? "10.0.0.1" : "10.0.0.1:80";
      PacketOptions packet;
      packet.words = {std::string(way), std::string(protocol), destination};
      EXPECT_NO_THROW(static_cast<void>(parse_packet(packet))) << way << " " << protocol;
    }
  }
  for (const std::string_view shell : each_choice(info(Command::completion).words[0])) {
    EXPECT_NO_THROW(testing::parse_arguments({"sidetrack", "completion", shell})) << shell;
  }
}

TEST(Manual, HasEveryCommandOptionVariableAndExitCode) {
  const std::string page = manual();
  for (const CommandInfo& command : commands()) {
    EXPECT_THAT(page, ContainsRegex("\n[.]It Cm " + std::string(command.name) + "[ \n]")) << command.name;
  }
  for (const Flag& flag : flags()) {
    SCOPED_TRACE(spelled(flag));
    std::string item = flag.name.empty() ? "Ev " + std::string(flag.variables[0]) : "Fl -" + std::string(flag.name);
    if (flag.letter != '\0') item = std::string("Fl ") + flag.letter + " , " + item;
    const auto place = page.find("\n.It " + item);
    ASSERT_NE(place, std::string::npos);
    const std::string about = part(page.substr(place + 1), item, "\n.It ");
    for (const std::string_view variable : flag.variables) EXPECT_THAT(about, HasSubstr(std::string(variable)));
  }
  for (const auto& [code, brief, in_full] : exit_codes()) {
    EXPECT_THAT(page, HasSubstr("\n.It " + std::to_string(static_cast<int>(code)) + "\n"));
  }
}

// groff and mandoc would take such a line for a macro.
TEST(Manual, HasNoLineThatBeginsLikeAMacroByAccident) {
  EXPECT_THAT(manual(), Not(ContainsRegex("\n'")));
  EXPECT_THAT(manual(), Not(ContainsRegex("\n[.][^A-Z\\]")));
}

}  // namespace
}  // namespace sidetrack
