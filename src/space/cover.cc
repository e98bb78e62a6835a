// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/cover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "space/forwarded.h"
#include "walk/forwarded_dns.h"

namespace sidetrack::space {
namespace {

// In this order a field is made whole, or as large as it can be: what people speak of last stays narrow.
constexpr Field in_order[] = {
    Field::mark,    Field::source_port,      Field::state,       Field::interface, Field::gid,
    Field::source,  Field::destination_port, Field::destination, Field::uid,       Field::cgroup,
    Field::protocol};

struct Part {
  Box box;
  Leaf leaf;  // by ending
  const Step* step;
  double share;
};

class Cover {
 public:
  // `whole`: all that the section is about. `way_out`: the interface of the default route, if there is one.
  Cover(Regions& regions, Regions::Node root, Section section, const Box& whole, const std::optional<Value>& way_out)
      : regions_(regions), root_(root), section_(std::move(section)), whole_(whole), way_out_(way_out) {}

  // Nothing if there are no such packets.
  std::optional<Section> run(const std::vector<Part>& all) {
    std::vector<Part> parts;
    std::map<Leaf, double> shares;
    for (const Part& part : all) {
      Part own = part;
      own.box = intersection(regions_.sets(), part.box, whole_);
      own.share = share_of(regions_.sets(), own.box, whole_);
      if (own.share == 0) continue;
      shares[own.leaf] += own.share * (comes_usual_way(own.box) ? 1.01 : 1);
      parts.push_back(own);
    }
    if (parts.empty()) return {};
    const Leaf usual = std::ranges::max_element(shares, {}, [&](const auto& one) { return rank(one); })->first;
    std::ranges::stable_sort(parts, std::ranges::greater(), &Part::share);
    section_.rest = {whole_, regions_.decision(usual).ending, {}, 1};
    section_.rest.steps = deciding(section_.rest, usual, parts);
    for (const Part& part : parts) {
      if (part.leaf == usual) continue;
      if (std::ranges::any_of(section_.lines,
                              [&](const Line& line) { return is_within(regions_.sets(), part.box, line.box); }))
        continue;
      Line line{largest(part), regions_.decision(part.leaf).ending, {}, 0};
      line.share = share_of(regions_.sets(), line.box, whole_);
      line.steps = deciding(line, part.leaf, parts);
      std::erase_if(section_.lines, [&](const Line& other) { return is_within(regions_.sets(), other.box, line.box); });
      section_.lines.push_back(std::move(line));
    }
    std::ranges::stable_sort(section_.lines, std::ranges::greater(), &Line::share);
    return std::move(section_);
  }

 private:
  // Of as many that come in by several interfaces, those by the usual one are the rule.
  bool comes_usual_way(const Box& box) const {
    return way_out_ && regions_.sets().contains(box[index(Field::interface)], *way_out_);
  }

  // What is taken by a proxy is the rule, if there is much of it.
  double rank(const std::pair<const Leaf, double>& one) const {
    const Ending& ending = regions_.decision(one.first).ending;
    return one.second + (is_captured(ending) && section_.way != Direction::lo && one.second > 0.01 ? 1 : 0);
  }

  // Asks about destinations first, which tell most boxes apart.
  bool meet(const Box& a, const Box& b) const {
    const auto meet_in = [&](Field field) { return regions_.sets().meet(a[index(field)], b[index(field)]); };
    return meet_in(Field::destination) && std::ranges::all_of(in_order, meet_in);
  }

  // The rules that decide about no small part of it; none where no small part ends so by itself.
  std::vector<const Step*> deciding(const Line& line, Leaf leaf, const std::vector<Part>& parts) {
    constexpr double small = 0.02;
    std::vector<const Step*> steps;
    for (const Part& part : parts) {  // the largest first
      if (part.share < small * line.share) break;
      if (part.leaf != leaf || !meet(part.box, line.box)) continue;
      if (share_of(regions_.sets(), intersection(regions_.sets(), part.box, line.box), whole_) < small * line.share)
        continue;
      if (part.step == nullptr) return {};
      if (std::ranges::find(steps, part.step) == steps.end()) steps.push_back(part.step);
    }
    return steps;
  }

  Box largest(const Part& part) {
    const auto passes = [&](Leaf leaf) { return leaf == no_such_packet || regions_.by_ending(leaf) == part.leaf; };
    return widened(regions_, root_, part.box, whole_, passes);
  }

  Regions& regions_;
  const Regions::Node root_;
  Section section_;
  Box whole_;
  std::optional<Value> way_out_;
};

}  // namespace

Box widened(Regions& regions, Regions::Node root, Box box, const Box& whole, const std::function<bool(Leaf)>& passes) {
  for (const Field field : in_order) {
    Sets::Id& values = box[index(field)];
    if (values == whole[index(field)]) continue;
    values = regions.sets().intersection(regions.diagrams().allowed(root, box, field, passes), whole[index(field)]);
  }
  return box;
}

namespace {

// A port of a bridge has none: what comes in by it comes in by the bridge.
Sets::Id interfaces_with_addresses(Regions& regions, const PodView& pod, Family family) {
  Intervals all;
  const std::vector<std::string>& names = regions.universe().interfaces;
  for (Value i = 0; i < names.size(); ++i) {
    const Interface* interface = pod.interface(names[static_cast<std::size_t>(i)]);
    const auto is_of_family = [&](const InterfaceAddress& own) { return own.address.family == family; };
    if (interface != nullptr && std::ranges::any_of(interface->addresses, is_of_family)) all.push_back({i, i});
  }
  return regions.sets().of(normal(std::move(all)));
}

// Adds the sections of all packets of the box, one of each protocol.
void add_sections(std::vector<Section>& all, Regions& regions, const Side& side, Regions::Node root,
                  const Section& like, Box whole) {
  std::vector<Part> parts;
  std::optional<Value> way_out;
  const std::vector<std::string>& interfaces = regions.universe().interfaces;
  if (const Route* route = default_route(side.pod, like.family)) {
    const auto found = std::ranges::find(interfaces, route->device);
    if (found != interfaces.end()) way_out = static_cast<Value>(found - interfaces.begin());
  }
  regions.diagrams().for_each(root, whole, [&](const Box& box, Leaf leaf) {
    if (leaf != no_such_packet) parts.push_back({box, regions.by_ending(leaf), regions.decision(leaf).step, 0});
  });
  for (std::size_t protocol = 0; protocol < protocol_count; ++protocol) {
    whole[index(Field::protocol)] = regions.sets().single(protocol);
    Section section = like;
    section.protocol = protocol;
    if (auto made = Cover(regions, root, std::move(section), whole, way_out).run(parts))
      all.push_back(*std::move(made));
  }
}

}  // namespace

std::vector<Section> sections(Regions& regions, std::size_t side, const SectionOptions& options) {
  std::vector<Section> result;
  const PodView& pod = regions.side(side).pod;
  const auto root_of = [&](Regions::Node root) { return regions.diagrams().mapped(root, options.like); };
  const Regions::Node root = root_of(regions.of(side, Scope::ordinary));
  for (const Direction way : options.ways) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      Section section;
      section.way = way;
      section.family = family;
      Box whole = regions.ordinary(pod, way, family);
      if (options.plain) whole[index(Field::mark)] = regions.sets().single(regions.universe().mark_class(0));
      if (options.plain && way != Direction::in) whole[index(Field::source)] = regions.sets().single(by_kernel);
      if (options.plain && way == Direction::in) {
        Sets::Id& interfaces = whole[index(Field::interface)];
        interfaces = regions.sets().intersection(interfaces, interfaces_with_addresses(regions, pod, family));
      }
      add_sections(result, regions, regions.side(side), root, section, whole);
    }
  }
  const std::vector<Box> boxes = options.forwarded ? forwarded(regions, pod) : std::vector<Box>{};
  const Regions::Node of_forwarded = root_of(regions.of(side, boxes));
  for (const Box& whole : boxes) {
    Section section;
    section.way = Direction::in;
    section.family = family_of(regions.sets(), whole);
    section.forwarded_from = interface_of(regions, whole);
    add_sections(result, regions, regions.side(side), of_forwarded, section, whole);
  }
  std::ranges::stable_sort(result, {}, [&](const Section& one) {
    return std::tuple(one.forwarded_from, std::ranges::find(options.ways, one.way), one.protocol, one.family);
  });
  return result;
}

}  // namespace sidetrack::space
