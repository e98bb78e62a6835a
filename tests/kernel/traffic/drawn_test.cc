// SPDX-License-Identifier: GPL-2.0-or-later
// The drawing of a connection in and one out: the rules on its way are those that count when such connections are made.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::SizeIs;

// The kernel has the matches of a rule in another order than the options have asked for.
std::string in_order(const std::string& rule) {
  std::istringstream split{rule};
  std::vector<std::string> words{std::istream_iterator<std::string>{split}, {}};
  std::ranges::sort(words);
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

// The rules of each card of the drawing, as `show --json` names them, with their table: "nat -A ISTIO_REDIRECT -p tcp
// …".
std::vector<std::vector<std::string>> cards_of(const std::string& drawing) {
  static const std::regex text(R"re(class="(card|[a-z]+ card|chain|condition|sentence)"[^>]*>([^<]*))re");
  std::vector<std::vector<std::string>> cards;
  // The chains below it are cards, too.
  const std::string connections = drawing.substr(0, drawing.find(">What ", drawing.find("</defs>")));
  bool in_card = false;
  for (std::sregex_iterator each(connections.begin(), connections.end(), text), end; each != end; ++each) {
    const std::string style = (*each)[1], words = (*each)[2];
    if (style.ends_with("card")) {
      cards.emplace_back();
      in_card = false;
    } else if (style == "chain") {
      const std::size_t blank = words.find(' ');
      cards.back().push_back(words.substr(0, blank) + " -A" + words.substr(blank));
      in_card = true;
    } else if (style == "condition" && in_card) {
      cards.back().back() += " " + words;
    } else {
      in_card = false;
    }
  }
  return cards;
}

class Drawn : public Traffic {
 protected:
  Drawn() : Drawn(false) {}
  explicit Drawn(bool transparent) : Traffic(Pod::Options{.transparent_proxy = transparent}) {}

  [[nodiscard]] std::string sidetrack(std::vector<std::string> words) const {
    words.insert(words.begin(), program_under_test());
    return pod_->ns().must(words);
  }

  [[nodiscard]] std::map<std::string, std::uint64_t> packets() const {
    std::map<std::string, std::uint64_t> counted;
    const auto shown = nlohmann::json::parse(sidetrack({"show", "--json"}));
    for (const auto& chain : shown.at("chains")) {
      if (chain.at("families").at(0).get<std::string>() != name(family())) continue;
      for (const auto& rule : chain.at("rules")) {
        const std::string words = chain.at("table").get<std::string>() + " " + rule.at("rule").get<std::string>();
        counted[in_order(words)] += rule.at("packets").get<std::uint64_t>();
      }
    }
    return counted;
  }

  void expect_drawn_rules_count(const std::string& options) {
    apply(options);
    std::vector<std::string> words{"render",       "--format", "svg",
                                   "--dual-stack", "--family", std::string(name(family()))};
    std::istringstream split{options};
    for (std::string word; split >> word;) words.push_back(word);
    const auto cards = cards_of(sidetrack(words));
    // In the order of the drawing: what comes in, from the client on; what goes out, from the service on.
    const std::function<Landing()> connections[] = {
        [&] { return connect(from_outside, pod(8080)); }, [&] { return connect_from_inbound_source(pod(8080)); },
        [&] { return connect(as_proxy, service(80)); }, [&] { return connect(as_app, service(80)); }};
    ASSERT_THAT(cards, SizeIs(std::size(connections)));
    for (std::size_t i = 0; i < cards.size(); ++i) {
      ASSERT_FALSE(cards[i].empty()) << i;
      auto before = packets();
      EXPECT_NE(connections[i](), landed(Role::refused)) << i;
      auto after = packets();
      for (const std::string& rule : cards[i]) {
        ASSERT_TRUE(after.contains(in_order(rule))) << rule;
        EXPECT_GT(after[in_order(rule)], before[in_order(rule)]) << rule;
      }
    }
  }
};

class DrawnTproxy : public Drawn {
 protected:
  DrawnTproxy() : Drawn(true) {}
};

// In nftables, rules are folded: the drawing has those of iptables.
const auto iptables = ::testing::Combine(::testing::Values("iptables-legacy", "iptables-nft"),
                                         ::testing::ValuesIn(Families::both().list()));
INSTANTIATE_TEST_SUITE_P(, Drawn, iptables, setting_name);
INSTANTIATE_TEST_SUITE_P(, DrawnTproxy, iptables, setting_name);

TEST_P(Drawn, RulesAreThoseThatCount) { expect_drawn_rules_count("-i * -b * -d 15090"); }

TEST_P(DrawnTproxy, RulesAreThoseThatCount) { expect_drawn_rules_count("-m TPROXY -i * -b * -d 15090"); }

}  // namespace
}  // namespace sidetrack::netns
