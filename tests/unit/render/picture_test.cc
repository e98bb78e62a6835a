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

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

const std::string usual_options = "-i * -b * -d 15090,15021,15020 --ip-families ipv4";

// The drawing of the rules of these options.
std::string drawn(const std::string& options, Families families = Family::ipv4) {
  CommandLine line;
  const HostFacts facts = asked(options, line);
  return svg(plan(line.config, facts), line.config, families);
}

// The chains alone, without the connections above them.
std::string chains_of(const std::string& drawing) {
  return drawing.substr(drawing.find(">What ", drawing.find("</defs>")));
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
  const std::string drawing = chains_of(drawn("-i * -x 10.0.0.0/8 -q 80 --ip-families ipv4"));
  const std::vector<std::string> words = words_of(drawing);
  const auto from = std::ranges::find(words, "loopback is never captured");
  ASSERT_GE(words.end() - from, 8);
  EXPECT_THAT(std::vector(from, from + 8),
              ElementsAre("loopback is never captured", "-d 127.0.0.1/32", "outbound to 10.0.0.0/8 bypasses the proxy",
                          "-d 10.0.0.0/8", "outbound to port 80 goes to the proxy", "-p tcp --dport 80",
                          "all other outbound TCP goes to the proxy", "everything"));
}

TEST(Svg, LeadsFromEveryRuleSomewhere) {
  const std::string drawing = chains_of(drawn(usual_options));
  // 17 rules, one chain of them in both directions, and the rest of PREROUTING and OUTPUT. Those that pass a column on
  // their way do it in 6 lanes, which are a line and the way on.
  EXPECT_EQ(count(drawing, " arrow\""), 17U + 2U + 6U * 2U);
  for (const char* end :
       {"the app, as it is", "port 15006: Envoy inbound", "its destination, as it is", "port 15001: Envoy outbound"}) {
    EXPECT_THAT(words_of(drawing), Contains(end));
  }
}

TEST(Svg, GoesFromTableToTableAsTheKernelDoes) {
  const std::vector<std::string> words = words_of(drawn("-m TPROXY -b * -i * --redirect-dns --capture-all-dns"));
  std::vector<std::string> headings;
  std::ranges::copy_if(words, std::back_inserter(headings),
                       [](const std::string& line) { return line.starts_with("What "); });
  EXPECT_THAT(headings,
              ElementsAre("What comes in, table raw", "What comes in, table mangle",
                          "What the app or the proxy sends, table raw", "What the app or the proxy sends, table mangle",
                          "What the app or the proxy sends, table nat"));
  EXPECT_THAT(words, Contains("on to mangle"));
  EXPECT_THAT(words, Contains("on to nat"));
}

// A card is as wide as the longest of its lines, be it a sentence, a condition or its title.
TEST(Svg, HasRoomForEachLine) {
  const auto drawn_rule = [](const char* sentence, std::size_t condition) {
    Plan plan;
    plan.ruleset.rules.push_back({Family::ipv4,
                                  Table::nat,
                                  "OUTPUT",
                                  {UnknownMatch{std::string(condition, 'x')}},
                                  Verdict::drop,
                                  {{}, nullptr, sentence},
                                  {}});
    return svg(plan, {}, Family::ipv4);
  };
  const auto card = [](double width) {
    return ContainsRegex(fmt::format("width=\"{:.0f}\" height=\"[0-9]+\" rx=\"6\"", width));
  };
  EXPECT_THAT(drawn_rule("short", 40), card(40 * 6.125 + 16));
  EXPECT_THAT(drawn_rule("a sentence that is longer than the title", 2), card(40 * 6.5 + 16));
  EXPECT_THAT(drawn_rule("short", 2), card(6 * 7 + 16));
}

TEST(Svg, KeepsNamesFromBeingMarkup) {
  const std::string drawing = drawn("-i * -c a<b&c>d --ip-families ipv4");
  EXPECT_THAT(drawing, HasSubstr(">-o a&lt;b&amp;c&gt;d<"));
  EXPECT_THAT(drawing, Not(HasSubstr("a<b")));
}

// ---- Connections

using Lines = std::vector<std::string>;

// What stands above the chains, but for the headings.
Lines connections_of(const std::string& options, Families families = Family::ipv4) {
  Lines words = words_of(drawn(options, families));
  words.erase(std::ranges::find_if(words, [](const std::string& line) { return line.starts_with("What "); }),
              words.end());
  std::erase(words, "the pod");
  return words;
}

TEST(Connections, ShowTheRulesThatDecide) {
  EXPECT_THAT(
      connections_of(usual_options),
      ElementsAre("A connection in, and one out, with the rules that decide (IPv4)", "the app", "uid 1000",  //
                  "a client", "to tcp port 8080",                                                            //
                  "nat ISTIO_INBOUND", "-p tcp -j ISTIO_IN_REDIRECT", "all other inbound TCP goes to the",
                  "proxy (-b '*')", "nat ISTIO_IN_REDIRECT", "-p tcp -j REDIRECT --to-ports 15006",
                  "to the proxy's inbound listener,", "port 15006 (-z 15006)",  //
                  "Envoy inbound", "port 15006",                                //
                  "nat ISTIO_OUTPUT", "-o lo -s 127.0.0.6/32 -j RETURN", "the proxy passes inbound traffic",
                  "on to the app from 127.0.0.6",  //
                  "a service", "10.96.0.10:80",    //
                  "nat ISTIO_OUTPUT", "-m owner --uid-owner 1337 -j RETURN", "the proxy's own traffic (uid 1337)",
                  "goes out as it is (-u 1337)",   //
                  "Envoy outbound", "port 15001",  //
                  "nat ISTIO_OUTPUT", "-j ISTIO_REDIRECT", "all other outbound TCP goes to the", "proxy (-i '*')",
                  "nat ISTIO_REDIRECT", "-p tcp -j REDIRECT --to-ports 15001", "to the proxy's outbound listener,",
                  "port 15001 (-p 15001)"));
}

// The packets are such as the options capture, and the ports are theirs.
TEST(Connections, AreThoseThatTheOptionsCapture) {
  EXPECT_THAT(connections_of("-b 9080 -i 10.1.0.0/16 -p 15101 -z 15106 -u 999 --ip-families ipv4"),
              IsSupersetOf({"to tcp port 9080", "port 15106", "10.1.0.10:80", "port 15101",
                            "-m owner --uid-owner 999 -j RETURN", "goes out as it is (-u 999)"}));
  EXPECT_THAT(connections_of("-b * -d 8080,80 -i * -x 10.0.0.0/8 --ip-families ipv4"),
              IsSupersetOf({"to tcp port 5000", "203.0.113.10:80"}));
  EXPECT_THAT(connections_of("-q 5432 -u 1000 --ip-families ipv4"), IsSupersetOf({"10.96.0.10:5432", "uid 2000"}));
  EXPECT_THAT(connections_of("-m TPROXY -b * --capture-udp 443 --ip-families ipv4"),
              IsSupersetOf({"mangle ISTIO_TPROXY", "to udp port 443", "mangle ISTIO_INBOUND"}));
  EXPECT_THAT(connections_of("-i * --redirect-dns --dns-server 10.0.0.53 --ip-families ipv4"),
              IsSupersetOf({"a name server", "10.0.0.53:53", "DNS", "port 15053", "nat ISTIO_OUTPUT_DNS"}));
  EXPECT_THAT(connections_of("--dataplane ambient --ip-families ipv4"),
              IsSupersetOf({"ztunnel inbound plaintext", "ztunnel outbound", "no rule captures it"}));
}

// What the connections are chosen by is written: a source, a group.
TEST(Connections, SayWhomTheyAreFrom) {
  EXPECT_THAT(connections_of("-b * --exclude-inbound-ranges 10.0.0.0/8 --ip-families ipv4"),
              IsSupersetOf({"Envoy inbound", "from 203.0.113.7"}));
  EXPECT_THAT(connections_of("-b * --include-inbound-ranges 192.0.2.0/24 --ip-families ipv4"),
              IsSupersetOf({"Envoy inbound", "from 192.0.2.10"}));
}

TEST(Connections, SayWhatIsNotCaptured) {
  const Lines words = connections_of("-b 80 --ip-families ipv4");
  EXPECT_THAT(words, IsSupersetOf({"Envoy inbound", "no rule captures it", "a service"}));
  EXPECT_THAT(words, Not(Contains("Envoy outbound")));
  EXPECT_THAT(connections_of("-i * --ip-families ipv4"), Not(Contains("Envoy inbound")));
  // A captured loopback address is no other host.
  EXPECT_THAT(connections_of("-i 127.1.2.3/32 --ip-families ipv4"), Contains("10.96.0.10:80"));
}

// Rules that are the same but for addresses are drawn once.
TEST(Connections, AreDrawnOnceForBothFamilies) {
  const std::string heading = "A connection in, and one out, with the rules that decide ";
  const std::string both = "--dual-stack --ip-families ipv4,ipv6 -b * ";
  EXPECT_THAT(connections_of(both + "-i *", Families::both()), Contains(heading + "(IPv4 and IPv6)"));
  EXPECT_THAT(connections_of(both + "-i *", Family::ipv6),
              IsSupersetOf(Lines{heading + "(IPv6)", "[fd00:10:96::10]:80"}));
  EXPECT_THAT(connections_of(both + "-i 10.0.0.0/8", Families::both()),
              IsSupersetOf(Lines{heading + "(IPv4)", heading + "(IPv6)", "no rule captures it"}));
}

// In light and in dark: no element has a colour of its own.
TEST(Pictures, HaveTheColoursOfTheReader) {
  const std::string drawing = drawn(usual_options);
  EXPECT_THAT(drawing, HasSubstr("@media (prefers-color-scheme: dark) {"));
  const std::string elements = drawing.substr(drawing.find("</defs>"));
  EXPECT_EQ(count(elements, "#"), count(elements, "url(#to-"));
}

TEST(Pictures, OfNothingSaySo) {
  EXPECT_THAT(svg({}, {}, Families::both()), HasSubstr(">nothing is captured</text>\n</svg>\n"));
}

}  // namespace
}  // namespace sidetrack
