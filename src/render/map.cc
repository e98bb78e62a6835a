// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "model/printable.h"
#include "render/json_parts.h"
#include "render/layout.h"
#include "render/map_parts.h"
#include "rule/iptables.h"
#include "space/forwarded.h"
#include "walk/in_flight.h"

namespace sidetrack {
namespace {

using namespace space;

constexpr std::size_t shown_of_set = 8;

constexpr std::string_view field_names[field_count] = {  // as PacketField
    "way",    "family",      "state", "protocol", "interface", "destination", "destination_port",
    "source", "source_port", "uid",   "gid",      "mark",      "cgroup"};
constexpr std::string_view kind_names[] = {"lands", "leaves", "forwarded", "dropped", "unroutable", "unknown"};
constexpr std::string_view state_names[] = {"new", "established", "invalid"};

template <typename Text>
std::vector<std::string> texts(const Intervals& set, const Text& text) {
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
std::vector<std::string> names_of(const Intervals& set, const Name& name) {
  std::vector<std::string> all;
  for (const Interval& each : set) {
    for (Value value = each.first; value <= each.last; ++value) all.emplace_back(name(static_cast<std::size_t>(value)));
  }
  return all;
}

}  // namespace

std::vector<std::string> values_of(const Universe& universe, const Intervals& set, Field field, Family family) {
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
      return names_of(set, [&](std::size_t value) { return universe.marks[value].text; });
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

namespace {

std::string some_of(const std::vector<std::string>& all) {
  const std::size_t shown = std::min(all.size(), shown_of_set);
  std::string text = fmt::format("{}", fmt::join(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < all.size()) text += fmt::format(" and {} more", grouped(all.size() - shown));
  return text;
}

// "to 10.0.0.0/8", or "to any address but 10.0.0.0/8" where that is shorter.
std::string condition(Regions& regions, Field field, Sets::Id values, Sets::Id whole, Family family, bool is_inbound) {
  Sets& sets = regions.sets();
  const bool is_address = field == Field::source || field == Field::destination;
  const Sets::Id others = sets.difference(whole, values);
  const bool but = sets.share(values, whole) > 0.5 && others != Sets::empty;
  const Sets::Id named = but ? others : values;
  const auto list = [&](Sets::Id set) {
    return some_of(values_of(regions.universe(), sets.intervals(set), field, family));
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

// The options that asked for it: "-x 10.0.0.0/8, -o 22,9001".
std::string why(const Line& line) {
  std::vector<Reason> asked;  // each option once, with all its values
  for (const Step* step : line.steps) {
    if (step->live == nullptr) continue;
    const Reason reason = describe(step->live->rule);
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
  return text;
}

// No rule does it, and nobody asked.
bool is_of_kernel(const Line& line) {
  switch (line.ending.kind) {
    case Outcome::Kind::lands:
    case Outcome::Kind::leaves:
      return false;
    case Outcome::Kind::forwarded:
      return !line.ending.translated;
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
      return ending.translated || ending.transparent ? Fate::proxy : Fate::onward;
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
    if (is_of_kernel(line)) {
      left_out = true;
    } else {
      lines.push_back(&line);
    }
  }
  rows.push_back({lines.empty() ? "everything" : "everything but what follows", ending_text(section.rest.ending),
                  why(section.rest), fate_of(section.rest.ending)});
  for (const Line* line : lines)
    rows.push_back({box_words(regions, line->box, section.rest.box), ending_text(line->ending), why(*line),
                    fate_of(line->ending)});
  return rows;
}

// Sections that read alike are one.
std::vector<MapSection> headings(Regions& regions, const Side& side, Regions::Node root, const MapOptions& options,
                                 bool& left_out) {
  std::vector<MapSection> all;
  for (const Section& section : sections(regions, root, side.pod)) {
    if (!options.families.contains(section.family)) continue;
    if (std::ranges::find(options.ways, section.way) == options.ways.end()) continue;
    const std::string protocol(protocol_words(section.protocol));
    std::vector<MapRow> rows = rows_of(regions, section, left_out);
    const auto same = std::ranges::find_if(all, [&](const MapSection& one) {
      const bool same_protocol = one.protocols == std::vector{protocol};
      return one.way == section.way && one.rows == rows && (same_protocol || one.families == section.family);
    });
    if (same == all.end()) {
      all.push_back({section.way, {protocol}, section.family, "", std::move(rows)});
    } else if (same->families == section.family) {
      same->protocols.push_back(protocol);
    } else {
      same->families = same->families | section.family;
    }
  }
  // The same of two protocols for both families.
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size();) {
      if (all[i].way != all[j].way || all[i].families != all[j].families || all[i].rows != all[j].rows) {
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
  std::string text =
      fmt::format("{} {}", way_words(static_cast<Value>(heading.way)), fmt::join(heading.protocols, ", "));
  if (heading.families != asked) text += heading.families == Families(Family::ipv4) ? ", IPv4" : ", IPv6";
  return text;
}

}  // namespace

std::string box_words(Regions& regions, const Box& box, const Box& whole) {
  const Family family = family_of(regions.sets(), whole);
  const bool is_inbound = regions.sets().contains(whole[index(Field::way)], static_cast<Value>(Direction::in));
  std::string text;
  for (const Field field : {Field::destination, Field::destination_port, Field::source, Field::source_port, Field::uid,
                            Field::gid, Field::cgroup, Field::interface, Field::mark, Field::state}) {
    if (box[index(field)] == whole[index(field)]) continue;
    text += (text.empty() ? "" : "; ") +
            condition(regions, field, box[index(field)], whole[index(field)], family, is_inbound);
  }
  return printable(text);
}

std::vector<MapSection> map_sections(Regions& regions, std::size_t side, const MapOptions& options, bool& left_out) {
  const Regions::Node root = regions.of(side, Scope::ordinary);
  std::vector<MapSection> all = headings(regions, regions.side(side), root, options, left_out);
  for (MapSection& one : all) one.title = title(one, options.families);
  return all;
}

namespace {

// DNS of hosts behind the pod, as far as its replies are lost.
std::string lost_forwarded_dns(Regions& regions, std::size_t side, const MapOptions& options) {
  if (std::ranges::find(options.ways, Direction::in) == options.ways.end()) return {};
  std::string text;
  for (const Box& queries : forwarded_dns(regions, regions.side(side).pod)) {
    const Family family = family_of(regions.sets(), queries);
    if (!options.families.contains(family)) continue;
    Box whole = queries;
    for (const Field field : {Field::source, Field::interface})
      whole[index(field)] = regions.everything(Direction::in, family)[index(field)];
    regions.for_each(regions.of(side, {&queries, 1}), [&](const Box& box, const Box&, Leaf leaf) {
      if (leaf == no_such_packet || !loses_forwarded_replies(regions, box, regions.decision(leaf).ending)) return;
      text += fmt::format("  {}  -> {}\n", box_words(regions, box, whole), ending_text(regions.decision(leaf).ending));
    });
  }
  if (text.empty()) return {};
  return "\n" + styled("forwarded DNS by udp", Style::bold, options.color) + "\n" + text;
}

}  // namespace

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
  text += lost_forwarded_dns(regions, side, options);
  if (left_out) {
    text +=
        "\nLeft out: what the kernel itself does not deliver, whatever the rules say, and multicast and broadcast "
        "(--json has them).\n";
  }
  return text;
}

Json box_json(Regions& regions, const Box& box) {
  const Family family = family_of(regions.sets(), box);
  const auto way = static_cast<Direction>(regions.sets().intervals(box[index(Field::way)]).front().first);
  const Box whole = regions.everything(way, family);
  Json made = Json::object();
  for (std::size_t i = 0; i < field_count; ++i) {
    const auto field = static_cast<Field>(i);
    const bool always = field <= Field::family;  // a region has one way and one family
    if (!always && box[i] == whole[i]) continue;
    const auto values = values_of(regions.universe(), regions.sets().intervals(box[i]), field, family);
    made[field_names[i]] = always ? Json(values.front()) : Json(values);
  }
  return made;
}

namespace {

Json step_json(const Step* step) {
  if (step == nullptr) return nullptr;
  Json made{{"backend", name(step->backend)}, {"table", step->table}, {"chain", step->chain}};
  if (step->live == nullptr) {
    made["policy"] = "drop";
    return made;
  }
  const Reason reason = describe(step->live->rule);
  made["number"] = step->number;
  made["rule"] = iptables_words(step->live->rule);
  made["flag"] = reason.flag;
  made["reason"] = reason.sentence;
  return made;
}

}  // namespace

std::string map_json(Regions& regions, std::size_t side, const MapOptions& options) {
  const Regions::Node root = regions.of(side);
  Json list = Json::array();
  regions.for_each(root, [&](const Box& box, const Box&, Leaf leaf) {
    const Packet packet = regions.universe().packet(regions.example(box));
    if (leaf == no_such_packet || !options.families.contains(packet.destination->family) ||
        std::ranges::find(options.ways, packet.direction) == options.ways.end())
      return;
    const Decision& decision = regions.decision(leaf);
    list.push_back({{"packets", box_json(regions, box)},
                    {"ending", ending_text(decision.ending)},
                    {"kind", kind_names[static_cast<std::size_t>(decision.ending.kind)]},
                    {"by", step_json(decision.step)},
                    {"witness", explain_words(packet)}});
  });
  return dumped(Json{{"regions", std::move(list)}});
}

}  // namespace sidetrack
