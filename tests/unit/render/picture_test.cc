// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "render/render.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string usual_options = "-i * -b * -d 15090,15021,15020 --ip-families ipv4";

// What stands in the chains' cards and after the arrows, in the order of the drawing.
std::vector<std::string> words_of(const std::string& drawing) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = drawing.find("<text ", at)) != std::string::npos;) {
    at = drawing.find('>', at) + 1;
    words.push_back(drawing.substr(at, drawing.find('<', at) - at));
  }
  return words;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

TEST(Svg, ListsTheRulesOfEachChainInTheirOrder) {
  const std::string drawing = svg(planned("-i * -x 10.0.0.0/8 -q 80 --ip-families ipv4").ruleset, Family::ipv4);
  const std::vector<std::string> words = words_of(drawing);
  const auto from = std::ranges::find(words, "loopback is never captured");
  ASSERT_GE(words.end() - from, 8);
  EXPECT_THAT(std::vector(from, from + 8),
              ElementsAre("loopback is never captured", "-d 127.0.0.1/32", "outbound to 10.0.0.0/8 bypasses the proxy",
                          "-d 10.0.0.0/8", "outbound to port 80 goes to the proxy", "-p tcp --dport 80",
                          "all other outbound TCP goes to the proxy", "everything"));
}

TEST(Svg, LeadsFromEveryRuleSomewhere) {
  const std::string drawing = svg(planned(usual_options).ruleset, Family::ipv4);
  // 17 rules, one chain of them in both directions, and the rest of PREROUTING and OUTPUT. Those that pass a column on
  // their way do it in 6 lanes, which are a line and the way on.
  EXPECT_EQ(count(drawing, "fill=\"none\""), 17U + 2U + 6U * 2U);
  for (const char* end :
       {"the app, as it is", "port 15006: Envoy inbound", "its destination, as it is", "port 15001: Envoy outbound"}) {
    EXPECT_THAT(words_of(drawing), ::testing::Contains(end));
  }
}

TEST(Svg, GoesFromTableToTableAsTheKernelDoes) {
  const std::vector<std::string> words =
      words_of(svg(planned("-m TPROXY -b * -i * --redirect-dns --capture-all-dns").ruleset, Family::ipv4));
  std::vector<std::string> headings;
  std::ranges::copy_if(words, std::back_inserter(headings),
                       [](const std::string& line) { return line.starts_with("What "); });
  EXPECT_THAT(headings,
              ElementsAre("What comes in, table raw", "What comes in, table mangle",
                          "What the app or the proxy sends, table raw", "What the app or the proxy sends, table mangle",
                          "What the app or the proxy sends, table nat"));
  EXPECT_THAT(words, ::testing::Contains("on to mangle"));
  EXPECT_THAT(words, ::testing::Contains("on to nat"));
}

// A card is as wide as the longest of its lines, be it a sentence, a condition or its title.
TEST(Svg, HasRoomForEachLine) {
  const auto drawn = [](const char* sentence, std::size_t condition) {
    Ruleset ruleset;
    ruleset.rules.push_back({Family::ipv4,
                             Table::nat,
                             "OUTPUT",
                             {UnknownMatch{std::string(condition, 'x')}},
                             Verdict::drop,
                             {{}, nullptr, sentence},
                             {}});
    return svg(ruleset, Family::ipv4);
  };
  const auto card = [](double width) {
    return ContainsRegex(fmt::format("width=\"{:.0f}\" height=\"[0-9]+\" rx=\"6\"", width));
  };
  EXPECT_THAT(drawn("short", 40), card(40 * 6.125 + 16));
  EXPECT_THAT(drawn("a sentence that is longer than the title", 2), card(40 * 6.5 + 16));
  EXPECT_THAT(drawn("short", 2), card(6 * 7 + 16));
}

TEST(Svg, KeepsNamesFromBeingMarkup) {
  const std::string drawing = svg(planned("-i * -c a<b&c>d --ip-families ipv4").ruleset, Family::ipv4);
  EXPECT_THAT(drawing, HasSubstr(">-o a&lt;b&amp;c&gt;d<"));
  EXPECT_THAT(drawing, Not(HasSubstr("a<b")));
}

TEST(Pictures, OfNothingSaySo) {
  EXPECT_THAT(svg({}, Families::both()), HasSubstr(">nothing is captured</text>\n</svg>\n"));
}

}  // namespace
}  // namespace sidetrack
