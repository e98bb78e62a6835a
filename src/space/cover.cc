// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/cover.h"

#include <algorithm>
#include <map>

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
  Cover(Regions& regions, Regions::Node root, const PodView& pod, Section section)
      : regions_(regions),
        root_(root),
        section_(std::move(section)),
        whole_(regions.ordinary(pod, section_.way, section_.family)) {
    whole_[index(Field::protocol)] = regions_.sets().single(section_.protocol);
  }

  // Nothing if there are no such packets.
  std::optional<Section> run(const std::vector<Part>& all) {
    std::vector<Part> parts;
    std::map<Leaf, double> shares;
    for (const Part& part : all) {
      Part own = part;
      own.box = intersection(regions_.sets(), part.box, whole_);
      own.share = share_of(own.box);
      if (own.share == 0) continue;
      shares[own.leaf] += own.share;
      parts.push_back(own);
    }
    if (parts.empty()) return {};
    const Leaf usual = std::ranges::max_element(shares, {}, [&](const auto& one) { return rank(one); })->first;
    std::ranges::stable_sort(parts, std::ranges::greater(), &Part::share);
    section_.rest = {whole_, regions_.decision(usual).ending, {}, 1};
    section_.rest.steps = deciding(section_.rest, usual, parts);
    for (const Part& part : parts) {
      if (part.leaf == usual) continue;
      if (std::ranges::any_of(section_.lines, [&](const Line& line) { return is_within(part.box, line.box); }))
        continue;
      Line line{largest(part), regions_.decision(part.leaf).ending, {}, 0};
      line.share = share_of(line.box);
      line.steps = deciding(line, part.leaf, parts);
      std::erase_if(section_.lines, [&](const Line& other) { return is_within(other.box, line.box); });
      section_.lines.push_back(std::move(line));
    }
    std::ranges::stable_sort(section_.lines, std::ranges::greater(), &Line::share);
    return std::move(section_);
  }

 private:
  // What is taken by a proxy is the rule, if there is much of it.
  double rank(const std::pair<const Leaf, double>& one) const {
    const Ending& ending = regions_.decision(one.first).ending;
    const bool taken = ending.kind == Outcome::Kind::lands && (ending.translated || ending.transparent);
    return one.second + (taken && section_.way != Direction::lo && one.second > 0.01 ? 1 : 0);
  }

  double share_of(const Box& box) {
    double share = 1;
    for (std::size_t i = 0; i < field_count; ++i)
      share *= regions_.sets().share(regions_.sets().intersection(box[i], whole_[i]), whole_[i]);
    return share;
  }

  bool is_within(const Box& part, const Box& whole) const {
    return std::ranges::all_of(
        in_order, [&](Field field) { return regions_.sets().is_within(part[index(field)], whole[index(field)]); });
  }
  bool meet(const Box& a, const Box& b) const {
    return std::ranges::all_of(in_order,
                               [&](Field field) { return regions_.sets().meet(a[index(field)], b[index(field)]); });
  }

  // The rules that decide about no small part of it; none where no small part ends so by itself.
  std::vector<const Step*> deciding(const Line& line, Leaf leaf, const std::vector<Part>& parts) {
    constexpr double small = 0.02;
    std::vector<const Step*> steps;
    for (const Part& part : parts) {  // the largest first
      if (part.share < small * line.share) break;
      if (part.leaf != leaf || !meet(part.box, line.box)) continue;
      if (share_of(intersection(regions_.sets(), part.box, line.box)) < small * line.share) continue;
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

std::vector<Section> sections(Regions& regions, Regions::Node root, const PodView& pod) {
  std::vector<Part> parts;
  regions.for_each(root, [&](const Box& box, const Box&, Leaf leaf) {
    if (leaf != no_such_packet) parts.push_back({box, regions.by_ending(leaf), regions.decision(leaf).step, 0});
  });
  std::vector<Section> result;
  for (const Direction way : {Direction::out, Direction::in, Direction::lo}) {
    for (std::size_t protocol = 0; protocol < protocol_count; ++protocol) {
      for (const Family family : {Family::ipv4, Family::ipv6}) {
        Section section;
        section.way = way;
        section.family = family;
        section.protocol = protocol;
        if (auto made = Cover(regions, root, pod, std::move(section)).run(parts)) result.push_back(*std::move(made));
      }
    }
  }
  return result;
}

}  // namespace sidetrack::space
