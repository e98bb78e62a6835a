// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "model/stable_sort.h"
#include "render/json_parts.h"
#include "render/layout.h"
#include "render/map.h"
#include "render/map_parts.h"
#include "space/cover.h"
#include "space/pairs.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using namespace space;

class Effect {
 public:
  explicit Effect(Regions& regions)
      : regions_(regions), pairs_(regions, regions.of(0), regions.of(1), [&](Leaf a, Leaf b) {
          const Pairs::Pair ends(regions.by_ending(a), regions.by_ending(b));
          return regions.end_alike(a, b) ? std::nullopt : std::optional(ends);
        }) {}

  std::vector<EffectRegion> run() {
    if (pairs_.all().empty()) return {};
    const Regions::Node usual = regions_.ordinary_part(pairs_.root(), regions_.side(0).pod);
    std::vector<EffectRegion> all = regions_of(usual, true);
    const Regions::Node others = regions_.diagrams().combined(
        pairs_.root(), usual, [](Leaf leaf, Leaf in_usual) { return Pairs::is_told(in_usual) ? Pairs::untold : leaf; });
    std::ranges::move(regions_of(others, false), std::back_inserter(all));
    return all;
  }

 private:
  std::string end_words(Leaf leaf) const {
    return leaf == no_such_packet ? "there is no such packet" : ending_text(regions_.decision(leaf).ending);
  }

  std::vector<EffectRegion> regions_of(Regions::Node root, bool ordinary) {
    struct Part {
      Box box;
      Leaf leaf;
      double share;
      Box whole;
    };
    std::vector<Part> parts;
    regions_.for_each(root, [&](const Box& box, const Box& everything, Leaf leaf) {
      if (!Pairs::is_told(leaf)) return;
      const Family family = family_of(regions_.sets(), everything);
      const auto way = static_cast<Direction>(regions_.sets().intervals(everything[index(Field::way)]).front().first);
      const Box whole = ordinary ? regions_.ordinary(regions_.side(0).pod, way, family) : everything;
      parts.push_back({box, leaf, share_of(regions_.sets(), box, whole), whole});
    });
    sort_stably(parts, std::ranges::greater(), &Part::share);
    std::vector<std::pair<Box, Leaf>> made;
    std::vector<EffectRegion> all;
    for (const Part& found : parts) {
      const bool is_said = std::ranges::any_of(made, [&](const auto& one) {
        return one.second == found.leaf && is_within(regions_.sets(), found.box, one.first);
      });
      if (is_said) continue;
      // Every packet of the box differs; the words are fewer if they may speak of packets that there are not.
      const auto differs = [&](Leaf leaf) { return leaf == found.leaf; };
      const auto passes = [&](Leaf leaf) { return differs(leaf) || leaf == no_such_packet; };
      const Box box = widened(regions_, root, found.box, found.whole, differs);
      const Box in_words = widened(regions_, root, found.box, found.whole, passes);
      made.emplace_back(box, found.leaf);
      const auto& [before, after] = pairs_.all()[Pairs::number(found.leaf)];
      const std::string end = before == after ? "unknown, too, and maybe another" : end_words(after);
      all.push_back({box, title(in_words, found.whole), end_words(before), end,
                     explain_words(regions_.universe().packet(regions_.example(found.box))), ordinary});
    }
    return all;
  }

  std::string title(const Box& box, const Box& whole) {
    const auto values = [&](Field field) {
      return values_of(regions_.universe(), regions_.sets().intervals(box[index(field)]), field, Family::ipv4);
    };
    const auto value = [&](Field field) { return regions_.sets().intervals(box[index(field)]).front().first; };
    const std::string rest = box_words(regions_, box, whole);
    return fmt::format("{} {}, {}{}{}", way_words(value(Field::way)), fmt::join(values(Field::protocol), ", "),
                       sidetrack::title(family_of(regions_.sets(), box)), rest.empty() ? "" : ": ", rest);
  }

  Regions& regions_;
  const Pairs pairs_;
};

}  // namespace

std::vector<EffectRegion> effect(Regions& regions) {
  if (regions.are_known_alike(0, 1)) return {};
  return Effect(regions).run();
}

std::string effect_text(const std::vector<EffectRegion>& all, bool color) {
  if (all.empty()) return "every packet of tcp, udp and icmp is treated the same\n";
  const bool any_ordinary = all.front().ordinary;
  std::string text;
  std::size_t others = 0;
  for (const EffectRegion& one : all) {
    if (any_ordinary && !one.ordinary) {
      ++others;
      continue;
    }
    text += styled(one.packets, Style::bold, color) + "\n";
    text += styled("  before   ", Style::red, color) + one.before + "\n";
    text += styled("  after    ", Style::green, color) + one.after + "\n";
    text += fmt::format("  witness  sidetrack explain {}\n", one.witness);
  }
  if (others > 0) {
    text += fmt::format(
        "and {} more regions, of later packets of connections and of packets that are not usual (--json "
        "has them)\n",
        grouped(others));
  }
  return text;
}

std::string effect_json(Regions& regions, const std::vector<EffectRegion>& all) {
  Json list = array_of(all, [&](const EffectRegion& one) -> Json {
    return object({{"packets", box_json(regions, one.box)},
                   {"words", one.packets},
                   {"before", one.before},
                   {"after", one.after},
                   {"witness", one.witness}});
  });
  return dumped(object({{"same", all.empty()}, {"regions", std::move(list)}}));
}

}  // namespace sidetrack
