// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/edit_script.h"

#include <gmock/gmock.h>

#include <random>
#include <string>

#include "unit/fewest_changes.h"

namespace sidetrack {
namespace {

using ::testing::IsEmpty;

std::vector<Edit> between(const std::string& before, const std::string& after) {
  return edit_script(before.size(), after.size(), [&](std::size_t x, std::size_t y) { return before[x] == after[y]; });
}

std::size_t changes_of(const std::vector<Edit>& script) {
  return static_cast<std::size_t>(
      std::ranges::count_if(script, [](const Edit& edit) { return edit.kind != Edit::Kind::same; }));
}

// What the script makes of `before`, each step where it says; a name of a fault if it cannot be.
std::string applied(const std::vector<Edit>& script, const std::string& before, const std::string& after) {
  std::string made;
  std::size_t x = 0;
  for (const Edit& edit : script) {
    if (edit.before != x || edit.after != made.size()) return "out of order";
    if (edit.kind != Edit::Kind::added && x == before.size()) return "past the end";
    if (edit.kind == Edit::Kind::same && before[x] != after[edit.after]) return "not the same";
    if (edit.kind != Edit::Kind::removed) made += after[edit.after];
    if (edit.kind != Edit::Kind::added) ++x;
  }
  return x == before.size() ? made : "not all";
}

TEST(EditScript, OfNothingIsEmpty) { EXPECT_THAT(between("", ""), IsEmpty()); }

TEST(EditScript, IsTheShortestThatMakesOneOfTheOther) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string sides[2];
    for (std::string& side : sides) {
      side.resize(random() % 12);
      for (char& letter : side) letter = static_cast<char>('a' + random() % 3);
    }
    const auto script = between(sides[0], sides[1]);
    ASSERT_EQ(applied(script, sides[0], sides[1]), sides[1]) << sides[0];
    ASSERT_EQ(changes_of(script), testing::fewest_changes(sides[0], sides[1])) << sides[0] << " " << sides[1];
  }
}

TEST(EditScript, ManyChangesAreFoundInRounds) {
  std::mt19937 random(1);
  std::string before, after;
  for (int i = 0; i < 3000; ++i) {
    before += static_cast<char>('a' + random() % 26);
    after += static_cast<char>('a' + random() % 26);
  }
  const auto script = between(before, after);
  EXPECT_EQ(applied(script, before, after), after);
  EXPECT_LT(changes_of(script), 5600U);  // of 6,000
  EXPECT_EQ(changes_of(between(std::string(2500, 'a'), std::string(2600, 'b'))), 5100U);
  EXPECT_EQ(changes_of(between(std::string(2500, 'a'), "")), 2500U);
}

}  // namespace
}  // namespace sidetrack
