// SPDX-License-Identifier: GPL-2.0-or-later
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "mesh/describe.h"
#include "render/map_parts.h"
#include "rule/iptables.h"
#include "space/forwarded.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using namespace space;

constexpr std::string_view field_names[field_count] = {  // as PacketField
    "way",    "family",      "state", "protocol", "interface", "destination", "destination_port",
    "source", "source_port", "uid",   "gid",      "mark",      "cgroup"};
constexpr std::string_view kind_names[] = {"lands", "leaves", "forwarded", "dropped", "unroutable", "unknown"};

bool is_of_one_value(Field field) { return field <= Field::family; }  // in the box of a region

// Calls `one` with each field that is said of the box.
template <typename One>
void for_each_said(Regions& regions, const Box& box, const One& one) {
  const auto way = static_cast<Direction>(regions.sets().intervals(box[index(Field::way)]).front().first);
  const Box whole = regions.everything(way, family_of(regions.sets(), box));
  for (std::size_t i = 0; i < field_count; ++i) {
    if (is_of_one_value(static_cast<Field>(i)) || box[i] != whole[i]) one(static_cast<Field>(i));
  }
}

Json field_json(Regions& regions, const Box& box, Field field) {
  const std::span<const Interval> set = regions.sets().intervals(box[index(field)]);
  const auto values = values_of(regions.universe(), set, field, family_of(regions.sets(), box));
  return is_of_one_value(field) ? Json(values.front()) : Json(values);
}

// `rule`: that of the step; nullptr: it has none.
Json step_json(const Step* step, const LiveRule* rule) {
  if (step == nullptr) return nullptr;
  Json made = object({{"backend", name(step->backend)}, {"table", step->table}, {"chain", step->chain}});
  if (rule == nullptr) {
    made["policy"] = "drop";
    return made;
  }
  const Reason reason = describe_live(*rule);
  made["number"] = rule->number;
  made["rule"] = iptables_words(rule->rule);
  made["flag"] = reason.flag;
  made["reason"] = reason.sentence;
  return made;
}

// Regions as text. There may be very many: what they say alike is laid out once.
class RegionTexts {
 public:
  RegionTexts(Regions& regions, std::size_t side) : regions_(regions), side_(side) {}

  // Appends the region as one of a list that stands in the document.
  void append(std::string& text, const Box& box, Leaf leaf) {
    text += "  {\n    \"packets\": ";
    append_packets(text, box);
    const Point example = regions_.example(box);
    text += decision(leaf, example);
    const Packet witness = regions_.universe().packet(example);
    text += ",\n    \"witness\": " + laid_out(explain_words(witness), margin) + "\n  }";
  }

 private:
  static constexpr std::size_t margin = 4;

  // As laid_out() would: on one line if they fit.
  void append_packets(std::string& text, const Box& box) {
    said_.clear();
    std::size_t width = margin;
    for_each_said(regions_, box, [&](Field field) {
      said_.push_back(&this->field(box, field));
      width += said_.back()->size() + 2;
    });
    const bool fits = width <= widest_line;
    const std::string_view between = fits ? ", " : ",\n      ";
    text += fits ? "{" : "{\n      ";
    for (std::size_t i = 0; i < said_.size(); ++i) text.append(i == 0 ? "" : between).append(*said_[i]);
    text += fits ? "}" : "\n    }";
  }

  const std::string& field(const Box& box, Field field) {
    const auto family = static_cast<std::uint64_t>(value_of(family_of(regions_.sets(), box)));
    const std::uint64_t key = (std::uint64_t{box[index(field)]} * field_count + index(field)) * 2 + family;
    std::string& known = fields_[key];
    if (known.empty()) known = member_text(field_names[index(field)], field_json(regions_, box, field), margin + 2);
    return known;
  }

  const std::string& decision(Leaf leaf, const Point& example) {
    std::string& known = decisions_[leaf];
    const Decision& decision = regions_.decision(leaf);
    const bool has_rule = decision.step != nullptr && decision.step->live != nullptr;
    if (!known.empty() && !(has_rule && regions_.is_joined(decision.step->live))) return known;
    std::optional<LiveRule> rule;
    if (has_rule) rule = regions_.deciding_rule(side_, *decision.step, example);
    known.clear();
    const auto add = [&](std::string_view name, Json value) {
      known += ",\n    " + member_text(name, std::move(value), margin);
    };
    add("ending", ending_text(decision.ending));
    add("kind", kind_names[static_cast<std::size_t>(decision.ending.kind)]);
    add("by", step_json(decision.step, rule ? &*rule : nullptr));
    return known;
  }

  Regions& regions_;
  std::size_t side_;
  std::vector<const std::string*> said_;                   // of one region
  std::unordered_map<std::uint64_t, std::string> fields_;  // by field, family and values
  std::unordered_map<Leaf, std::string> decisions_;
};

}  // namespace

Json box_json(Regions& regions, const Box& box) {
  Json made = Json::object();
  for_each_said(regions, box, [&](Field field) { made[field_names[index(field)]] = field_json(regions, box, field); });
  return made;
}

void write_map_json(Regions& regions, std::size_t side, const MapOptions& options,
                    const std::function<void(std::string_view)>& write) {
  constexpr std::size_t block = 65536;
  std::vector<Box> boxes;
  for (const Direction way : options.ways) {
    for (const Family family : options.families.list()) boxes.push_back(regions.everything(way, family));
  }
  if (options.ways.empty() && options.forwarded) boxes = forwarded(regions, regions.side(side).pod);
  const Regions::Node root = regions.of(side, boxes);
  RegionTexts texts(regions, side);
  std::string text = "{\"regions\": [";
  bool is_empty = true;
  for (const Box& whole : boxes) {
    regions.diagrams().for_each(root, whole, [&](const Box& box, Leaf leaf) {
      if (leaf == no_such_packet) return;
      text += std::exchange(is_empty, false) ? "\n" : ",\n";
      texts.append(text, box, leaf);
      if (text.size() < block) return;
      write(text);
      text.clear();
    });
  }
  text += is_empty ? "]}\n" : "\n]}\n";
  write(text);
}

}  // namespace sidetrack
