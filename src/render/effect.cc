// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "render/json_parts.h"
#include "render/layout.h"
#include "render/map.h"
#include "render/map_parts.h"
#include "space/cover.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using namespace space;

constexpr Leaf treated_alike = 2;  // no_such_packet stays what it is

class Effect {
 public:
  explicit Effect(Regions& regions) : regions_(regions) {
    const Regions::Node before = regions_.of(0);
    const Regions::Node after = regions_.of(1);
    differing_ = regions_.diagrams().combined(before, after, [&](Leaf a, Leaf b) { return pair(a, b); });
  }

  std::vector<EffectRegion> run() {
    if (pairs_.empty()) return {};
    std::vector<EffectRegion> all = regions_of(regions_.ordinary_part(differing_, regions_.side(0).pod), true);
    const std::vector<EffectRegion> more = regions_of(differing_, false);
    std::ranges::copy_if(more, std::back_inserter(all), [&](const EffectRegion& one) {
      return std::ranges::none_of(all, [&](const EffectRegion& known) { return known.witness == one.witness; });
    });
    return all;
  }

 private:
  Leaf pair(Leaf a, Leaf b) {
    a = regions_.by_ending(a);
    b = regions_.by_ending(b);
    if (a == b) return a == no_such_packet ? no_such_packet : treated_alike;
    const auto [found, added] = pairs_.try_emplace({a, b}, static_cast<Leaf>(pairs_.size()) + treated_alike + 1);
    if (added) ends_.emplace_back(a, b);
    return found->second;
  }

  std::string end_words(Leaf leaf) const {
    return leaf == no_such_packet ? "there is no such packet" : ending_text(regions_.decision(leaf).ending);
  }

  struct Part {
    Box box;
    Leaf leaf;
    double share;
  };

  double share_of(const Box& box, const Box& whole) {
    double share = 1;
    for (std::size_t i = 0; i < field_count; ++i) share *= regions_.sets().share(box[i], whole[i]);
    return share;
  }

  bool is_within(const Box& part, const Box& whole) {
    for (std::size_t i = 0; i < field_count; ++i) {
      if (!regions_.sets().is_within(part[i], whole[i])) return false;
    }
    return true;
  }

  std::vector<EffectRegion> regions_of(Regions::Node root, bool ordinary) {
    struct Found {
      Part part;
      Box whole;
    };
    std::vector<Found> parts;
    regions_.for_each(root, [&](const Box& box, const Box& everything, Leaf leaf) {
      if (leaf == no_such_packet || leaf == treated_alike) return;
      const Family family = family_of(regions_.sets(), everything);
      const auto way = static_cast<Direction>(regions_.sets().intervals(everything[index(Field::way)]).front().first);
      const Box whole = ordinary ? regions_.ordinary(regions_.side(0).pod, way, family) : everything;
      parts.push_back({{box, leaf, share_of(box, whole)}, whole});
    });
    std::ranges::stable_sort(parts, std::ranges::greater(), [](const Found& one) { return one.part.share; });
    std::vector<Part> made;
    std::vector<EffectRegion> all;
    for (const Found& found : parts) {
      const bool is_said = std::ranges::any_of(
          made, [&](const Part& one) { return one.leaf == found.part.leaf && is_within(found.part.box, one.box); });
      if (is_said) continue;
      // Every packet of the box differs; the words are fewer if they may speak of packets that there are not.
      const auto differs = [&](Leaf leaf) { return leaf == found.part.leaf; };
      const auto passes = [&](Leaf leaf) { return differs(leaf) || leaf == no_such_packet; };
      const Box box = widened(regions_, root, found.part.box, found.whole, differs);
      const Box in_words = widened(regions_, root, found.part.box, found.whole, passes);
      made.push_back({box, found.part.leaf, 0});
      const auto& [before, after] = ends_[found.part.leaf - treated_alike - 1];
      all.push_back({box, title(in_words, found.whole), end_words(before), end_words(after),
                     explain_words(regions_.universe().packet(regions_.example(found.part.box))), ordinary});
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
  Regions::Node differing_ = 0;
  std::map<std::pair<Leaf, Leaf>, Leaf> pairs_;
  std::vector<std::pair<Leaf, Leaf>> ends_;
};

}  // namespace

std::vector<EffectRegion> effect(Regions& regions) { return Effect(regions).run(); }

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
  Json list = Json::array();
  for (const EffectRegion& one : all) {
    list.push_back({{"packets", box_json(regions, one.box)},
                    {"words", one.packets},
                    {"before", one.before},
                    {"after", one.after},
                    {"witness", one.witness}});
  }
  return dumped(Json{{"same", all.empty()}, {"regions", std::move(list)}});
}

}  // namespace sidetrack
