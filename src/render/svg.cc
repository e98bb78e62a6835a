// SPDX-License-Identifier: GPL-2.0-or-later
// The rules as a drawing, below the connections that they are for. Each table of a hook is a band: its chains are cards
// that list their rules in order, and from every rule an arrow leads to the chain that it calls, or to what becomes of
// the packet, on the right.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "render/connections_picture.h"
#include "render/picture_parts.h"
#include "render/render.h"
#include "rule/fold.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

// ---- Words

// Returns the rules of these families, folded as the backend nftables stores them.
Ruleset of_families(const Ruleset& ruleset, Families families) {
  Ruleset result;
  for (const Rule& rule : ruleset.rules) {
    if (!(rule.families & families).empty()) result.rules.push_back(rule);
  }
  return fold(result);
}

// Returns the matches of a rule, each in iptables' words: "-p tcp", "! -d 10.0.0.0/8"; "everything" if it has none.
std::vector<std::string> condition(const Rule& rule) {
  std::vector<std::string> matches = short_matches(rule);
  if (matches.empty()) matches.emplace_back("everything");
  if (std::holds_alternative<Tproxy>(rule.target)) matches.emplace_back("(TPROXY)");
  return matches;
}

// Returns what a rule does that decides nothing, in iptables' words: "MARK --set-mark 1337"
std::string action_label(const Target& target) { return iptables_words(target).substr(std::string_view("-j ").size()); }

// Returns "port 15001: Envoy outbound", of the rule that leads there.
std::string listener_label(std::uint16_t port, const Rule& rule) {
  const auto known = port_name(port, rule);
  return known.empty() ? fmt::format("port {}", port) : fmt::format("port {}: {}", port, known);
}

// ---- Sizes, in pixels.
constexpr std::size_t widest_text = 46;  // characters
constexpr double header = 24;
constexpr double pill_height = 26;
constexpr double lane_height = 10;
constexpr double space = 14;   // between what stands in one column
constexpr double gutter = 56;  // between columns

double width_of(const std::vector<std::string>& lines, double character) {
  std::size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  return static_cast<double>(longest) * character;
}

// A card (a chain), a pill (what becomes of a packet), or a lane: where arrows pass a column that is between.
struct Item {
  std::string title;
  bool is_chain = false;
  Fate fate = Fate::call;
  std::size_t column = 0;
  double width = 0;
  double height = lane_height;
  double y = 0;       // its upper edge
  double wanted = 0;  // the sum of the heights that its arrows come from
  double arrows = 0;

  // Where arrows meet it, below its upper edge: a card, at its name.
  [[nodiscard]] double door() const { return is_chain ? header / 2 : height / 2; }
};

struct Row {
  std::vector<std::string> sentence;
  std::vector<std::string> condition;
  std::size_t target = 0;  // an item
  double y = 0;            // below the upper edge of its card

  [[nodiscard]] double height() const {
    return static_cast<double>(sentence.size() + condition.size()) * line_height + padding;
  }
};

// One table of one hook.
class Band {
 public:
  Band(const std::vector<Chain>& chains, const Chain& base, std::string onward)
      : chains_(chains), onward_(std::move(onward)) {
    card(base, 0);
    for (Item& item : items) {
      if (!item.is_chain) item.column = last_column() + 1;
    }
  }

  std::vector<Item> items;                       // what an arrow can lead to
  std::map<std::size_t, std::vector<Row>> rows;  // of the cards

  [[nodiscard]] std::size_t last_column() const {
    std::size_t last = 0;
    for (const Item& item : items) last = item.is_chain ? std::max(last, item.column) : last;
    return last;
  }

  // Places everything below `top`, with the pills in this column; returns where the band ends.
  double place(double top, std::size_t pill_column) {
    for (Item& item : items) item.column = item.is_chain ? item.column : pill_column;
    double bottom = top;
    for (std::size_t column = 0; column <= pill_column; ++column) {
      std::multimap<double, Item*> here;  // by the height that they should have
      const auto add = [&](Item& item) {
        if (item.column == column) here.emplace(item.wanted / std::max(item.arrows, 1.0), &item);
      };
      for (Item& item : items) add(item);
      for (auto& [way, lane] : lanes) add(lane);
      double y = top;
      for (const auto& [best, item] : here) {
        item->y = std::max(y, best - item->door());
        y = item->y + item->height + space;
      }
      bottom = std::max(bottom, y - space);
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].column == column) leave(i);
      }
      for (auto& [way, lane] : lanes) {
        if (lane.column == column) arrive(std::get<0>(way), std::get<1>(way), column + 1, lane.y + lane.door());
      }
    }
    return bottom;
  }

  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Item> lanes;  // by card, target and column

 private:
  std::size_t item(const std::string& title, Fate fate, bool is_chain) {
    const auto found = std::ranges::find_if(
        items, [&](const Item& other) { return other.title == title && other.is_chain == is_chain; });
    if (found != items.end()) return static_cast<std::size_t>(found - items.begin());
    Item made{title, is_chain, fate, 0, 0, pill_height, 0, 0, 0};
    made.width = static_cast<double>(title.size()) * 7 + 2 * padding;
    items.push_back(made);
    return items.size() - 1;
  }

  // As far to the right as the longest way to it is.
  std::size_t card(const Chain& chain, std::size_t column) {
    const std::size_t at = item(chain.name, Fate::call, true);
    const bool known = rows.contains(at);
    if (known && items[at].column >= column) return at;
    items[at].column = column;
    std::vector<Row> made;
    double y = header;
    double width = items[at].width;
    for (const Rule* rule : chain.rules) {
      Row row{wrapped(describe(*rule).sentence, widest_text), wrapped(condition(*rule), widest_text),
              target(*rule, column), y};
      y += row.height();
      width = std::max({width, width_of(row.sentence, sentence_character) + 2 * padding,
                        width_of(row.condition, condition_character) + 2 * padding});
      made.push_back(std::move(row));
    }
    // What no rule decides about, here or in the chains that are called.
    if (is_builtin(chain.name)) {
      made.push_back({{"the rest"}, {}, item(onward_, Fate::onward, false), y});
      y += made.back().height();
    }
    items[at].width = width;
    items[at].height = y;
    rows[at] = std::move(made);
    return at;
  }

  std::size_t target(const Rule& rule, std::size_t column) {
    if (const auto* jump = std::get_if<Jump>(&rule.target)) {
      const auto called = std::ranges::find_if(
          chains_, [&](const Chain& chain) { return chain.table == rule.table && chain.name == jump->chain; });
      return card(*called, column + 1);
    }
    if (const auto port = listening_port(rule.target)) return item(listener_label(*port, rule), Fate::proxy, false);
    if (const auto* verdict = std::get_if<Verdict>(&rule.target)) {
      if (*verdict == Verdict::drop) return item("dropped", Fate::drop, false);
      if (rule.origin.rule == MeshRule::divert_accept) return item("the proxy's open connection", Fate::proxy, false);
      return item(onward_, Fate::onward, false);
    }
    return item(action_label(rule.target), Fate::change, false);
  }

  void leave(std::size_t card) {
    if (!items[card].is_chain) return;
    for (const Row& row : rows.at(card)) {
      arrive(card, row.target, items[card].column + 1, items[card].y + row.y + row.height() / 2);
    }
  }

  // An arrow from the card to the target comes to this column at this height.
  void arrive(std::size_t card, std::size_t target, std::size_t column, double y) {
    Item& stop = items[target].column <= column ? items[target] : lanes[{card, target, column}];
    stop.column = column;
    stop.wanted += y;
    stop.arrows += 1;
  }

  const std::vector<Chain>& chains_;
  std::string onward_;
};

// ---- The drawing.

class Drawing {
 public:
  Drawing(const Ruleset& ruleset, Families families, Drawn connections) : connections_(std::move(connections)) {
    for (const Table table : all_tables) {
      for (Chain& chain : sidetrack::chains(ruleset, table, families)) chains_.push_back(std::move(chain));
    }
    hook("PREROUTING", "What comes in", "the app, as it is");
    hook("OUTPUT", "What the app or the proxy sends", "its destination, as it is");
  }

  std::string text() {
    constexpr std::string_view title = "What the rules do with a packet";
    if (bands_.empty()) return picture(title, 220, 60, text_at(margin, 34, "sentence", "nothing is captured"));
    std::size_t pill_column = 0;
    for (const Placed& placed : bands_) pill_column = std::max(pill_column, placed.band.last_column() + 1);
    std::vector<double> widths(pill_column + 1, 0);
    for (Placed& placed : bands_) {
      for (const Item& item : placed.band.items) {
        double& width = widths[item.is_chain ? item.column : pill_column];
        width = std::max(width, item.width);
      }
    }
    double x = margin;
    for (const double width : widths) {
      columns_.push_back({x, width});
      x += width + gutter;
    }
    // The connections are as wide as the chains below them: a page that makes the drawing narrower leaves them legible.
    const double full_width = std::max(x - gutter + margin, connections_.width);
    const double scale = connections_.body.empty() ? 1 : full_width / connections_.width;
    std::string body = fmt::format("<g transform=\"scale({:.3f})\">\n{}</g>\n", scale, connections_.body);
    double y = margin + connections_.height * scale;
    for (Placed& placed : bands_) {
      body += text_at(margin, y + 12, "band", placed.heading);
      y = placed.band.place(y + 26, pill_column) + 2 * margin;
      body += arrows(placed.band) + boxes(placed.band);
    }
    return picture(title, full_width, y - margin, body);
  }

 private:
  struct Placed {
    std::string heading;
    Band band;
  };
  struct Column {
    double x;
    double width;
  };

  void hook(const std::string& name, const std::string& begin, const std::string& end) {
    std::vector<const Chain*> bases;
    for (const Chain& chain : chains_) {
      if (chain.name == name) bases.push_back(&chain);
    }
    for (std::size_t i = 0; i < bases.size(); ++i) {
      const bool last = i + 1 == bases.size();
      const std::string onward = last ? end : fmt::format("on to {}", sidetrack::name(bases[i + 1]->table));
      bands_.push_back(
          {fmt::format("{}, table {}", begin, sidetrack::name(bases[i]->table)), Band(chains_, *bases[i], onward)});
    }
  }

  // Several rules that lead the same way share a lane, and what follows it.
  std::string arrows(const Band& band) const {
    std::string text;
    const auto stop = [&](std::size_t card, std::size_t target, std::size_t column) -> const Item& {
      return band.items[target].column <= column ? band.items[target] : band.lanes.at({card, target, column});
    };
    const auto draw = [&](std::size_t card, std::size_t target, std::size_t column, double x, double y) {
      const Item& next = stop(card, target, column);
      const bool ends = &next == &band.items[target];
      text += arrow(curve(x, y, columns_[column].x, next.y + next.door()), band.items[target].fate, ends);
    };
    for (const auto& [card, rows] : band.rows) {
      const Item& from = band.items[card];
      for (const Row& row : rows) {
        draw(card, row.target, from.column + 1, columns_[from.column].x + from.width,
             from.y + row.y + row.height() / 2);
      }
    }
    for (const auto& [way, lane] : band.lanes) {
      const auto& [card, target, column] = way;
      const double right = columns_[column].x + columns_[column].width;
      text += arrow(fmt::format("M{:.0f} {:.0f}H{:.0f}", columns_[column].x, lane.y + lane.door(), right),
                    band.items[target].fate, false);
      draw(card, target, column + 1, right, lane.y + lane.door());
    }
    return text;
  }

  std::string boxes(const Band& band) const {
    std::string text;
    for (std::size_t i = 0; i < band.items.size(); ++i) {
      const Item& item = band.items[i];
      const double x = columns_[item.column].x;
      text += box(x, item.y, item.width, item.height, item.is_chain ? 6 : pill_height / 2, item.fate,
                  item.is_chain ? " card" : "");
      const std::string_view style = item.is_chain ? "chain" : item.fate == Fate::change ? "condition" : "sentence";
      text += text_at(x + padding + (item.is_chain ? 0 : 2), item.y + 17, style, item.title);
      if (!item.is_chain) continue;
      for (const Row& row : band.rows.at(i)) {
        double y = item.y + row.y;
        text += separator(x, y, item.width);
        for (const std::string& part : row.sentence) text += text_at(x + padding, y += line_height, "sentence", part);
        for (const std::string& part : row.condition) text += text_at(x + padding, y += line_height, "condition", part);
      }
    }
    return text;
  }

  std::vector<Chain> chains_;
  std::vector<Placed> bands_;
  std::vector<Column> columns_;
  Drawn connections_;
};

}  // namespace

std::string svg(const Plan& plan, const Config& config, Families families) {
  const Ruleset folded = of_families(plan.ruleset, families);
  return Drawing(folded, families, connections_picture(plan, config, families)).text();
}

}  // namespace sidetrack
