// SPDX-License-Identifier: GPL-2.0-or-later
// The manual page as text; tests/words/run lets man and mandoc read it.
#include "manual/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/flags.h"
#include "unit/read_file.h"

namespace sidetrack {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of_template() { return manual(read_file(SIDETRACK_SOURCE_DIR "/docs/sidetrack.8.in")); }

TEST(Manual, HasEveryCommandOptionVariableAndExitCode) {
  const std::string page = page_of_template();
  for (const CommandInfo& command : commands())
    EXPECT_THAT(page, ContainsRegex("\n[.]It Cm " + std::string(command.name) + "[ \n]")) << command.name;
  for (const Flag& flag : flags()) {
    SCOPED_TRACE(spelled(flag));
    std::string item = flag.name.empty() ? "Ev " + std::string(flag.variables[0]) : "Fl -" + std::string(flag.name);
    if (flag.letter != '\0') item = std::string("Fl ") + flag.letter + " , " + item;
    const auto place = page.find("\n.It " + item);
    ASSERT_NE(place, std::string::npos);
    const std::string about = page.substr(place + 1, page.find("\n.It ", place + 1) - place - 1);
    for (const std::string_view variable : flag.variables) EXPECT_THAT(about, HasSubstr(std::string(variable)));
  }
  for (const auto& [code, brief, in_full] : exit_codes())
    EXPECT_THAT(page, HasSubstr("\n.It " + std::to_string(static_cast<int>(code)) + "\n"));
}

TEST(Manual, HasNoTextOfAnOptionOrCommandThatDoesNotExist) {
  const std::string text = read_file(SIDETRACK_SOURCE_DIR "/docs/sidetrack.8.in");
  constexpr std::string_view mark = "\n@text ";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::string name = text.substr(at + mark.size(), text.find('\n', at + 1) - at - mark.size());
    const bool is_command = std::ranges::find(commands(), name, &CommandInfo::name) != commands().end();
    EXPECT_TRUE(is_command || (name.starts_with("--") && flag_of(name) != nullptr)) << name;
  }
}

// groff and mandoc would take such a line for a macro.
TEST(Manual, HasNoLineThatBeginsLikeAMacroByAccident) {
  EXPECT_THAT(page_of_template(), Not(ContainsRegex("\n'")));
  EXPECT_THAT(page_of_template(), Not(ContainsRegex("\n[.][^A-Z\\]")));
}

TEST(Manual, RefusesADirectiveThatItDoesNotKnow) {
  EXPECT_THROW(static_cast<void>(manual("@option traffic\n")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(manual("@options trafic\n")), std::invalid_argument);
}

}  // namespace
}  // namespace sidetrack
