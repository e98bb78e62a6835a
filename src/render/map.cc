// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/other_meshes.h"
#include "model/printable.h"
#include "render/layout.h"
#include "render/map_parts.h"

namespace sidetrack {
namespace {

using namespace space;

constexpr std::size_t shown_of_set = 8;

constexpr std::string_view state_names[] = {"new", "established", "invalid"};

template <typename Text>
std::vector<std::string> texts(std::span<const Interval> set, const Text& text) {
  std::vector<std::string> all;
  for (const Interval& each : set) all.push_back(text(each));
  return all;
}

std::string number(const Interval& one) {
  const auto first = static_cast<std::uint64_t>(one.first);
  const auto last = static_cast<std::uint64_t>(one.last);
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

// Of values that have names, each by its own.
template <typename Name>
std::vector<std::string> names_of(std::span<const Interval> set, const Name& name) {
  std::vector<std::string> all;
  for (const Interval& each : set) {
    for (Value value = each.first; value <= each.last; ++value) all.emplace_back(name(static_cast<std::size_t>(value)));
  }
  return all;
}

std::string some_of(const std::vector<std::string>& all) {
  const std::size_t shown = std::min(all.size(), shown_of_set);
  std::string text = fmt::format("{}", fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < all.size()) text += fmt::format(" and {} more", grouped(all.size() - shown));
  return text;
}

// With single addresses between and beside them that no packet has: a network without its ends and the pod's own
// address reads as the network.
Intervals with_edges(Intervals all, const Sets& sets, Sets::Id whole) {
  constexpr Value few = 4;
  for ([[maybe_unused]] const int after : {1, 2}) {  // the own address may be the second one of the network
    for (Interval& one : all) {
      if (one.last - one.first < few) continue;
      if (one.first > 0 && !sets.contains(whole, one.first - 1)) --one.first;
      if (one.last < ~Value{0} && !sets.contains(whole, one.last + 1)) ++one.last;
    }
    all = normal(std::move(all));
  }
  return all;
}

// The options that asked for it: "-x 10.0.0.0/8, -o 22,9001"; the mesh whose rules they are, if it is another.
std::string why(const Line& line) {
  std::vector<Reason> asked;  // each option once, with all its values
  std::set<std::string> others;
  for (const Step* step : line.steps) {
    if (step->live == nullptr) continue;
    const Reason reason = describe_live(*step->live);
    const std::string_view mesh = mesh_of_rule(step->live->rule);
    const bool is_of_another =
        !mesh.empty() || (!step->live->ours && !step->live->of_agent && !reason.sentence.empty());
    if (is_of_another && reason.option.empty())
      others.insert(reason.sentence.empty() ? std::string(mesh) : reason.sentence);
    if (reason.option.empty()) continue;
    const auto same = std::ranges::find(asked, reason.option, &Reason::option);
    if (same == asked.end()) {
      asked.push_back(reason);
    } else if (same->values.empty()) {
      *same = reason;
    } else if (!reason.values.empty() && same->flag != reason.flag) {
      same->flag += "," + reason.values;
    }
  }
  std::string text;
  for (const Reason& one : asked) text += (text.empty() ? "" : ", ") + shell_words(one);
  for (const std::string& one : others) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// No rule does it, and nobody asked.
bool is_of_kernel(const Section& section, const Line& line) {
  switch (line.ending.kind) {
    case Outcome::Kind::lands:
    case Outcome::Kind::leaves:
      return false;
    case Outcome::Kind::forwarded:
      return !line.ending.translated && section.forwarded_from.empty();
    case Outcome::Kind::dropped:
    case Outcome::Kind::unroutable:
      return line.steps.empty();
    case Outcome::Kind::unknown:
      return false;
  }
  return false;
}

Fate fate_of(const Ending& ending) {
  switch (ending.kind) {
    case Outcome::Kind::lands:
      if (ending.translated || ending.transparent) return Fate::proxy;
      return ending.from ? Fate::change : Fate::onward;
    case Outcome::Kind::leaves:
    case Outcome::Kind::forwarded:
      return ending.translated || ending.from ? Fate::change : Fate::onward;
    case Outcome::Kind::dropped:
    case Outcome::Kind::unroutable:
      return Fate::drop;
    case Outcome::Kind::unknown:
      break;
  }
  return Fate::change;
}

std::vector<MapRow> rows_of(Regions& regions, const Section& section, bool& left_out) {
  std::vector<MapRow> rows;
  std::vector<const Line*> lines;
  for (const Line& line : section.lines) {
    if (is_of_kernel(section, line)) {
      left_out = true;
    } else {
      lines.push_back(&line);
    }
  }
  rows.push_back({lines.empty() ? "everything" : "everything but what follows", ending_text(section.rest.ending),
                  why(section.rest), fate_of(section.rest.ending)});
  for (const Line* line : lines) {
    const std::string_view but = line->has_exceptions ? ", but what follows" : "";
    rows.push_back({fmt::format("{}{}", box_words(regions, line->box, section.rest.box), but),
                    ending_text(line->ending), why(*line), fate_of(line->ending)});
  }
  return rows;
}

// Sections that read alike are one.
std::vector<MapSection> headings(Regions& regions, std::size_t side, const MapOptions& options, bool& left_out) {
  std::vector<MapSection> all;
  for (const Section& section :
       sections(regions, side, {.ways = options.ways, .forwarded = options.forwarded, .exceptions = true})) {
    if (!options.families.contains(section.family)) continue;
    const std::string protocol(protocol_words(section.protocol));
    std::vector<MapRow> rows = rows_of(regions, section, left_out);
    const auto same = std::ranges::find_if(all, [&](const MapSection& one) {
      const bool same_protocol = one.protocols == std::vector{protocol};
      return one.way == section.way && one.forwarded_from == section.forwarded_from && one.rows == rows &&
             (same_protocol || one.families == section.family);
    });
    if (same == all.end()) {
      all.push_back({section.way, {protocol}, section.family, section.forwarded_from, "", std::move(rows)});
    } else if (same->families == section.family) {
      same->protocols.push_back(protocol);
    } else {
      same->families = same->families | section.family;
    }
  }
  // The same of two protocols for both families.
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size();) {
      if (all[i].way != all[j].way || all[i].forwarded_from != all[j].forwarded_from ||
          all[i].families != all[j].families || all[i].rows != all[j].rows) {
        ++j;
        continue;
      }
      std::ranges::copy(all[j].protocols, std::back_inserter(all[i].protocols));
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  return all;
}

std::string title(const MapSection& heading, Families asked) {
  const bool is_forwarded = !heading.forwarded_from.empty();
  std::string text = fmt::format("{} {}", is_forwarded ? "forwarded" : way_words(static_cast<Value>(heading.way)),
                                 fmt::join(heading.protocols, ", "));
  if (is_forwarded) text += ", from " + printable(heading.forwarded_from);
  if (heading.families != asked) text += heading.families == Families(Family::ipv4) ? ", IPv4" : ", IPv6";
  return text;
}

}  // namespace

std::vector<std::string> values_of(const Universe& universe, std::span<const Interval> set, Field field,
                                   Family family) {
  switch (field) {
    case Field::way:
      return names_of(set, [](std::size_t value) { return name(static_cast<Direction>(value)); });
    case Field::family:
      return names_of(set, [](std::size_t value) { return name(value == 0 ? Family::ipv4 : Family::ipv6); });
    case Field::state:
      return names_of(set, [](std::size_t value) { return state_names[value]; });
    case Field::protocol:
      return names_of(set, [](std::size_t value) { return protocol_words(static_cast<Value>(value)); });
    case Field::interface:
      return names_of(set, [&](std::size_t value) {
        return universe.interfaces[value].empty() ? "none" : universe.interfaces[value];
      });
    case Field::mark:
      return universe.mark_words(set);
    case Field::cgroup:
      return names_of(set, [&](std::size_t value) {
        return universe.cgroups[value].empty() ? "another" : universe.cgroups[value];
      });
    case Field::source:
    case Field::destination:
      return texts(set, [&](const Interval& one) {
        const Address first = address_of(family, one.first);
        return one.first == one.last ? first.text() : AddressRange{first, address_of(family, one.last)}.text();
      });
    case Field::uid:
    case Field::gid:
    case Field::source_port:
    case Field::destination_port:
      return texts(set, number);
  }
  return {};
}

bool is_most(const Sets& sets, Sets::Id values, Sets::Id whole) {
  return values != whole && sets.share(values, whole) > 0.5;
}

std::string field_words(Regions& regions, Field field, Sets::Id values, const Box& whole_box) {
  Sets& sets = regions.sets();
  const Family family = family_of(sets, whole_box);
  const bool is_inbound = sets.contains(whole_box[index(Field::way)], static_cast<Value>(Direction::in));
  const Sets::Id whole = whole_box[index(field)];
  const bool is_address = field == Field::source || field == Field::destination;
  const Sets::Id others = sets.difference(whole, values);
  const bool but = is_most(sets, values, whole);
  const Sets::Id named = but ? others : values;
  const auto list = [&](Sets::Id set) {
    const std::span<const Interval> found = sets.intervals(set);
    Intervals all(found.begin(), found.end());
    if (is_address) all = with_edges(std::move(all), sets, whole);
    return some_of(values_of(regions.universe(), all, field, family));
  };
  const auto phrase = [&](std::string_view before, std::string_view kind) {
    return but ? fmt::format("{} any {} but {}", before, kind, list(named))
               : fmt::format("{} {}{}{}", before, is_address ? "" : kind, is_address ? "" : " ", list(named));
  };
  switch (field) {
    case Field::uid:
      return phrase("sent by", "uid");
    case Field::gid:
      return phrase("sent by", "gid");
    case Field::destination:
      return phrase("to", "address");
    case Field::destination_port:
      return phrase("to", "port");
    case Field::source:
      if (named == sets.single(by_kernel))
        return but ? "from an address that the sender chose" : "from the usual address";
      return phrase("from", "address");
    case Field::source_port:
      if (named == sets.single(by_kernel)) return but ? "from a port that the sender chose" : "from the usual ports";
      return phrase("from", "port");
    case Field::mark: {
      // The class of all other marks is named by what it is not.
      const auto is_rest = [](const std::string& text) { return text.starts_with("any but "); };
      const auto names = [&] { return values_of(regions.universe(), sets.intervals(named), field, family); };
      if (but && std::ranges::any_of(names(), is_rest)) return "with mark " + list(values);
      return phrase("with", "mark");
    }
    case Field::cgroup: {  // the class of all other cgroups is named by what it is not, too
      const auto names = values_of(regions.universe(), sets.intervals(values), field, family);
      const bool has_rest = std::ranges::find(names, "another") != names.end();
      return has_rest ? "sent from any cgroup but " + list(others) : "sent from cgroup " + list(values);
    }
    case Field::state:
      return fmt::format("{} connections", list(values));
    case Field::interface:
      return fmt::format("{} {}", is_inbound ? "by" : "bound to", list(values));
    case Field::way:
    case Field::family:
    case Field::protocol:
      break;
  }
  return list(values);
}

std::string box_words(Regions& regions, const Box& box, const Box& whole) {
  std::string text;
  for (const Field field : said_fields) {
    if (box[index(field)] == whole[index(field)]) continue;
    text += (text.empty() ? "" : "; ") + field_words(regions, field, box[index(field)], whole);
  }
  return printable(text);
}

std::vector<MapSection> map_sections(Regions& regions, std::size_t side, const MapOptions& options, bool& left_out) {
  std::vector<MapSection> all = headings(regions, side, options, left_out);
  for (MapSection& one : all) one.title = title(one, options.families);
  return all;
}

std::string map_text(Regions& regions, std::size_t side, const MapOptions& options) {
  bool left_out = false;
  const std::vector<MapSection> all = map_sections(regions, side, options, left_out);
  std::string text;
  for (const MapSection& heading : all) {
    text += (text.empty() ? "" : "\n") + styled(heading.title, Style::bold, options.color) + "\n";
    std::size_t width = 0;
    for (const MapRow& row : heading.rows) width = std::max(width, row.words.size());
    for (const MapRow& row : heading.rows) {
      text += fmt::format("  {:<{}}  -> {}", row.words, std::min<std::size_t>(width, 72), row.end);
      if (!row.why.empty()) text += styled(fmt::format("  ({})", row.why), Style::dim, options.color);
      text += "\n";
    }
  }
  if (left_out) {
    text +=
        "\nNot shown: what the kernel itself does not deliver, whatever the rules say, and multicast and broadcast "
        "(--json has them).\n";
  }
  return text;
}

}  // namespace sidetrack
