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

TEST(Mermaid, OfTheUsualOptions) {
  EXPECT_EQ("\n" + mermaid(planned(usual_options).ruleset, Family::ipv4), R"(
%%{init: {"flowchart": {"wrappingWidth": 600}}}%%
flowchart LR
  in(["comes in"])
  app(["the app, as it is"])
  port_15006(["port 15006: Envoy inbound"])
  out(["the app or the proxy sends"])
  destination(["its destination, as it is"])
  port_15001(["port 15001: Envoy outbound"])
  subgraph nat
    nat_PREROUTING["PREROUTING"]
    nat_ISTIO_INBOUND["ISTIO_INBOUND"]
    nat_ISTIO_IN_REDIRECT["ISTIO_IN_REDIRECT"]
    nat_OUTPUT["OUTPUT"]
    nat_ISTIO_OUTPUT["ISTIO_OUTPUT"]
    nat_ISTIO_REDIRECT["ISTIO_REDIRECT"]
    rules_2["• -p tcp --dport 15008<br/>• -p tcp<br/>-m multiport --dports 15020,15021,15090"]:::rules
    rules_8["• -o lo -s 127.0.0.6/32<br/>• -o lo -m owner ! --uid-owner 1337<br/>• -m owner --uid-owner 1337<br/>• -o lo -m owner ! --gid-owner 1337<br/>• -m owner --gid-owner 1337<br/>• -d 127.0.0.1/32"]:::rules
    rules_9["• -o lo ! -d 127.0.0.1/32 -p tcp<br/>! --dport 15008<br/>-m owner --uid-owner 1337<br/>• -o lo ! -d 127.0.0.1/32 -p tcp<br/>! --dport 15008<br/>-m owner --gid-owner 1337"]:::rules
  end
  in --> nat_PREROUTING
  nat_PREROUTING -->|"-p tcp"| nat_ISTIO_INBOUND
  nat_ISTIO_INBOUND --- rules_2 --> app
  nat_ISTIO_INBOUND -->|"-p tcp"| nat_ISTIO_IN_REDIRECT
  nat_ISTIO_IN_REDIRECT -->|"-p tcp"| port_15006
  nat_PREROUTING -->|"the rest"| app
  out --> nat_OUTPUT
  nat_OUTPUT -->|"everything"| nat_ISTIO_OUTPUT
  nat_ISTIO_OUTPUT --- rules_8 --> destination
  nat_ISTIO_OUTPUT --- rules_9 --> nat_ISTIO_IN_REDIRECT
  nat_ISTIO_OUTPUT -->|"everything else"| nat_ISTIO_REDIRECT
  nat_ISTIO_REDIRECT -->|"-p tcp"| port_15001
  nat_OUTPUT -->|"the rest"| destination
  classDef rules fill:none,stroke:none,text-align:left
)");
}

TEST(Mermaid, GoesFromTableToTableAsTheKernelDoes) {
  const std::string text =
      mermaid(planned("-m TPROXY -b * -i * -c eth1 --redirect-dns --capture-all-dns").ruleset, Families::both());
  EXPECT_THAT(text, HasSubstr("  in --> raw_PREROUTING\n"));
  EXPECT_THAT(text, HasSubstr(R"(  raw_PREROUTING -.->|"the rest"| mangle_PREROUTING)"));
  EXPECT_THAT(text, ContainsRegex("  mangle_PREROUTING --- rules_[0-9]+ -[.]-> nat_PREROUTING\n"));
  EXPECT_THAT(text,
              HasSubstr(R"x(["• ! -d 127.0.0.1/32 -p tcp (TPROXY)<br/>• ! -d ::1/128 -p tcp (TPROXY)"]:::rules)x"));
  EXPECT_THAT(text, HasSubstr(R"(["• -i eth1<br/>• the rest"]:::rules)"));
  EXPECT_THAT(text, Not(HasSubstr("nat_ISTIO_INBOUND")));  // nothing leads there
}

TEST(Mermaid, EscapesWhatItWouldObey) {
  const Ruleset ruleset = planned("-i * --bypass-cgroup a<b>#c --ip-families ipv4").ruleset;
  EXPECT_THAT(mermaid(ruleset, Family::ipv4), HasSubstr("--path a#lt;b#gt;#35;c<br/>"));
  EXPECT_THAT(dot(ruleset, Family::ipv4), HasSubstr("--path a<b>#c\\l"));
  Ruleset quoted = ruleset;
  for (Rule& rule : quoted.rules) {
    for (Match& match : rule.matches) {
      if (auto* cgroup = std::get_if<CgroupMatch>(&match)) cgroup->path = "a\"b";
    }
  }
  EXPECT_THAT(mermaid(quoted, Family::ipv4), HasSubstr(R"(--path #quot;a\#quot;b#quot;<br/>)"));
  EXPECT_THAT(dot(quoted, Family::ipv4), HasSubstr(R"(--path \"a\\\"b\"\l)"));
}

TEST(Mermaid, OfOneFamilySpeaksOfThatAlone) {
  const Ruleset ruleset = planned("-i 10.0.0.0/8,fd00::/8").ruleset;
  EXPECT_THAT(mermaid(ruleset, Family::ipv6), HasSubstr("fd00::/8"));
  EXPECT_THAT(mermaid(ruleset, Family::ipv6), Not(HasSubstr("10.0.0.0/8")));
}

TEST(Mermaid, OfLongListsHoldsTheFirstValues) {
  std::string ranges;
  for (int i = 0; i < 200; ++i) ranges += "10." + std::to_string(i) + ".0.0/24,";
  EXPECT_LT(mermaid(planned("-i * -x " + ranges).ruleset, Families::both()).size(), 4000U);
}

TEST(Dot, HoldsTheSameGraph) {
  const std::string text = dot(planned(usual_options).ruleset, Family::ipv4);
  EXPECT_THAT(text, HasSubstr("digraph sidetrack {\n"));
  EXPECT_THAT(text, HasSubstr(R"(    "nat_ISTIO_OUTPUT" [label="ISTIO_OUTPUT")"));
  EXPECT_THAT(text, HasSubstr(R"(  "nat_ISTIO_REDIRECT" -> "port_15001" [label="-p tcp\l"];)"));
  EXPECT_TRUE(text.ends_with("}\n"));
}

// What goes on to the next table has no rule to stand for it.
TEST(Dot, DashesWhatGoesOnToTheNextTable) {
  const std::string text = dot(planned("-m TPROXY -b * -i * --redirect-dns --capture-all-dns").ruleset, Family::ipv4);
  EXPECT_THAT(text, HasSubstr(R"(  "raw_PREROUTING" -> "mangle_PREROUTING" [label="the rest\l", style=dashed];)"));
  EXPECT_THAT(dot(planned(usual_options).ruleset, Family::ipv4), Not(HasSubstr("dashed")));
}

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
  EXPECT_EQ(mermaid({}, Families::both()), "flowchart LR\n  nothing([\"nothing is captured\"])\n");
  EXPECT_THAT(dot({}, Families::both()), HasSubstr("nothing is captured"));
}

}  // namespace
}  // namespace sidetrack
