// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/splice.h"

#include <gtest/gtest.h>

#include <string>

#include "mesh/istio_rules.h"

namespace sidetrack {
namespace {

// A chain in short: "a b" are rules of ours to ISTIO_A, ISTIO_B; "X" is another program's; "i1" is a rule of ours for a
// virtual machine's interface, which comes by -I.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  std::string word;
  for (char c : text + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      result.push_back(word);
      word.clear();
    }
  }
  return result;
}

Rule rule(const std::string& word) {
  Rule result;
  result.families = Family::ipv4;
  result.chain = "PREROUTING";
  if (word.size() == 2) {
    result.matches = {InterfaceMatch{InterfaceDirection::in, word, false}};
    result.target = Verdict::return_;
    result.insert_at = 1;
  } else {
    result.target = Jump{(word < "a" ? "OTHERS_" : "ISTIO_") + word};
  }
  return result;
}

// What becomes of `there`: kept rules as they were, new ones in brackets.
std::string spliced(const std::string& there, const std::string& wanted, EqualRules equal = EqualRules::keep,
                    const std::vector<std::size_t>& after_others = {}) {
  std::vector<LiveRule> live;
  const auto names = words(there);
  for (const std::string& word : names) {
    live.push_back({rule(word), {}, word >= "a", 0});
    live.back().rule.insert_at.reset();  // the kernel does not tell
  }
  std::vector<Rule> rules;
  const auto wanted_names = words(wanted);
  for (const std::string& word : wanted_names) rules.push_back(rule(word));
  if (!after_others.empty()) {
    for (std::size_t i = 0; i < rules.size(); ++i) rules[i].after_others = after_others[i];
  }
  std::vector<const Rule*> pointers;
  for (const Rule& r : rules) pointers.push_back(&r);
  std::string result;
  for (const Slot& slot : splice(live, pointers, came_by_insert, equal)) {
    if (!result.empty()) result += ' ';
    result +=
        slot.kept ? names[*slot.kept] : "[" + wanted_names[static_cast<std::size_t>(slot.fresh - rules.data())] + "]";
  }
  return result;
}

TEST(Splice, IntoAnEmptyChain) {
  EXPECT_EQ(spliced("", "a b"), "[a] [b]");
  EXPECT_EQ(spliced("", "i1 a"), "[i1] [a]");
  EXPECT_EQ(spliced("", ""), "");
}

TEST(Splice, BesideOthersAsIptablesWould) {
  EXPECT_EQ(spliced("X Y", "a b"), "X Y [a] [b]");
  EXPECT_EQ(spliced("X Y", "i1 i2 a"), "[i1] [i2] X Y [a]");
}

TEST(Splice, EqualRulesStay) {
  EXPECT_EQ(spliced("X a Y b Z", "a b"), "X a Y b Z");
  EXPECT_EQ(spliced("i1 X a", "i1 a"), "i1 X a");
  EXPECT_EQ(spliced("X i1 a", "i1 a"), "X i1 a") << "another program came before us: not ours to undo";
}

TEST(Splice, InThePlaceOfWhatIsReplaced) {
  EXPECT_EQ(spliced("X a Y", "b"), "X [b] Y");
  EXPECT_EQ(spliced("a X", "b c"), "[b] [c] X");
  EXPECT_EQ(spliced("X a Y b Z", "c d"), "X [c] [d] Y Z");
  EXPECT_EQ(spliced("X a b c Y", "a d c"), "X a [d] c Y");
}

TEST(Splice, AddedBesideWhatStays) {
  EXPECT_EQ(spliced("X b Y", "a b"), "X [a] b Y");
  EXPECT_EQ(spliced("X a Y", "a b"), "X a [b] Y");
  EXPECT_EQ(spliced("X b Y", "i1 b"), "[i1] X b Y");
  EXPECT_EQ(spliced("i1 X", "i1 i2 a"), "i1 [i2] X [a]");
}

TEST(Splice, AnInsertedRuleDoesNotDrawAppendedOnesToTheFront) {
  EXPECT_EQ(spliced("i1 X a", "b"), "X [b]");
  EXPECT_EQ(spliced("i1 X", "a"), "X [a]");
  EXPECT_EQ(spliced("i1 X a", "i2 b"), "[i2] X [b]");
}

TEST(Splice, PutBackWhereTheyStood) {
  const auto put_back = [](const char* there, const char* wanted, const std::vector<std::size_t>& after_others) {
    return spliced(there, wanted, EqualRules::keep, after_others);
  };
  EXPECT_EQ(put_back("X Y", "a b", {0, 0}), "[a] [b] X Y");
  EXPECT_EQ(put_back("X Y", "a b c", {0, 1, 2}), "[a] X [b] Y [c]");
  EXPECT_EQ(put_back("X d Y", "a b", {1, 2}), "X [a] Y [b]");
  EXPECT_EQ(put_back("a X b Y", "a b", {0, 1}), "a X b Y");
  EXPECT_EQ(put_back("X a Y", "a b", {1, 1}), "X a [b] Y");
  EXPECT_EQ(put_back("X a", "a", {0}), "[a] X") << "it has moved";
  EXPECT_EQ(put_back("X", "a b", {1, 3}), "X [a] [b]") << "others are gone";
  EXPECT_EQ(put_back("X Y Z", "a", {1}), "X [a] Y Z") << "others have come";
}

TEST(Splice, OursGoAndOthersStay) {
  EXPECT_EQ(spliced("X a Y b", ""), "X Y");
  EXPECT_EQ(spliced("a a a", "a"), "a");
}

TEST(Splice, OrderIsRestored) {
  EXPECT_EQ(spliced("b a", "a b"), "[a] [b]");
  EXPECT_EQ(spliced("a b c d", "a c b d"), "a [c] [b] d");
}

TEST(Splice, RewritesEqualRulesInTheirPlaceIfAsked) {
  const EqualRules rewrite = EqualRules::rewrite;
  EXPECT_EQ(spliced("X a b Y", "a b", rewrite), "X [a] [b] Y");
  EXPECT_EQ(spliced("i1 X a", "i1 a", rewrite), "[i1] X [a]");
  EXPECT_EQ(spliced("X a", "", rewrite), "X");
}

TEST(Splice, KnowsWhenNothingChanges) {
  const std::vector<Slot> same = {{0, nullptr}, {1, nullptr}};
  EXPECT_TRUE(changes_nothing(same, 2));
  EXPECT_FALSE(changes_nothing(same, 3));
  const Rule fresh = rule("a");
  const std::vector<Slot> replaced = {{0, nullptr}, {std::nullopt, &fresh}};
  EXPECT_FALSE(changes_nothing(replaced, 2));
}

}  // namespace
}  // namespace sidetrack
