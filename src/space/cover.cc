// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/cover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "model/stable_sort.h"
#include "space/forwarded.h"
#include "walk/forwarded_dns.h"
#include "walk/route.h"

namespace sidetrack::space {
namespace {

// In this order a field is made whole, or as large as it can be: what people speak of last stays narrow.
constexpr Field in_order[] = {
    Field::mark,    Field::source_port,      Field::state,       Field::interface, Field::gid,
    Field::source,  Field::destination_port, Field::destination, Field::uid,       Field::cgroup,
    Field::protocol};

constexpr std::size_t many_parts = 64;  // more of them: lines have exceptions
constexpr Leaf unsaid = Diagrams::leaf(~Diagrams::Node{0});

// Returns the values that the field may have, with the others as in the box, for nothing but leaves that pass.
Sets::Id widest(Regions& regions, Regions::Node root, const Box& box, Field field, const Box& whole,
                const std::function<bool(Leaf)>& passes) {
  const Sets::Id all = whole[index(field)];
  if (box[index(field)] == all) return all;
  return regions.sets().intersection(regions.diagrams().allowed(root, box, field, passes), all);
}

struct Part {
  Box box;
  Leaf leaf;  // by ending
  const Step* step;
  double share;
};

// Finds the parts that may have some of these values of the field: a tree of intervals, in which the middle of a range
// is the root of what is left and right of it.
class ByField {
 public:
  // `is`: of which parts.
  ByField(const Sets& sets, const std::vector<Part>& parts, Field field, const std::function<bool(const Part&)>& is)
      : sets_(sets), field_(field) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (is(parts[i])) all_.emplace_back(sets.hull(parts[i].box[index(field)]), i);
    }
    std::ranges::sort(all_, {}, [](const auto& one) { return one.first.first; });
    highest_.resize(all_.size());
    find_highest(0, all_.size());
  }

  using Is = std::function<bool(std::size_t number)>;
  // Asks until `is` says yes of one.
  [[nodiscard]] bool any_of(const Box& box, const Is& is) const {
    return any_of(0, all_.size(), sets_.hull(box[index(field_)]), is);
  }

  // In order.
  [[nodiscard]] std::vector<std::size_t> meeting(const Box& box) const {
    std::vector<std::size_t> found;
    (void)any_of(box, [&](std::size_t number) {
      found.push_back(number);
      return false;
    });
    std::ranges::sort(found);
    return found;
  }

 private:
  Value find_highest(std::size_t first, std::size_t end) {
    if (first == end) return 0;
    const std::size_t middle = first + (end - first) / 2;
    return highest_[middle] =
               std::max({all_[middle].first.last, find_highest(first, middle), find_highest(middle + 1, end)});
  }

  bool any_of(std::size_t first, std::size_t end, const Interval& wanted, const Is& is) const {
    const std::size_t middle = first + (end - first) / 2;
    if (first == end || highest_[middle] < wanted.first) return false;
    if (any_of(first, middle, wanted, is)) return true;
    const auto& [interval, number] = all_[middle];
    if (interval.first > wanted.last) return false;
    return (interval.last >= wanted.first && is(number)) || any_of(middle + 1, end, wanted, is);
  }

  const Sets& sets_;
  const Field field_;
  std::vector<std::pair<Interval, std::size_t>> all_;  // from the lowest to the highest value, and whose
  std::vector<Value> highest_;                         // of what is below each
};

class Cover {
 public:
  // `whole`: all that the section is about. `way_out`: the interface of the default route, if there is one.
  Cover(Regions& regions, Regions::Node root, Section section, const Box& whole, const std::optional<Value>& way_out)
      : regions_(regions), root_(root), section_(std::move(section)), whole_(whole), way_out_(way_out) {}

  // Nothing if there are no such packets. `exceptions`: lines may have them.
  std::optional<Section> run(const std::vector<Part>& all, bool exceptions) {
    std::map<Leaf, double> shares;
    for (const Part& part : all) {
      Part own = part;
      own.box = intersection(regions_.sets(), part.box, whole_);
      own.share = share_of(regions_.sets(), own.box, whole_);
      if (own.share == 0) continue;
      shares[own.leaf] += own.share * (comes_usual_way(own.box) ? 1.01 : 1);
      parts_.push_back(own);
    }
    if (parts_.empty()) return {};
    usual_ = std::ranges::max_element(shares, {}, [&](const auto& one) { return rank(one); })->first;
    sort_stably(parts_, std::ranges::greater(), &Part::share);
    const auto count_of = [&](Field field) {
      std::set<Sets::Id> sets;
      for (const Part& part : parts_) sets.insert(part.box[index(field)]);
      return sets.size();
    };
    const bool by_source = count_of(Field::source) > count_of(Field::destination);
    address_ = by_source ? Field::source : Field::destination;
    by_address_.emplace(regions_.sets(), parts_, address_, [](const Part&) { return true; });
    lines_.resize(parts_.size());
    said_.resize(parts_.size());
    section_.rest = {whole_, regions_.decision(usual_).ending, {}, 1};
    section_.rest.steps = deciding(section_.rest, usual_, by_address_->meeting(whole_));
    if (exceptions && parts_.size() > many_parts) add_lines_with_exceptions();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].leaf != usual_ && !said_[i]) add_line(i, largest(parts_[i]));
    }
    for (auto& line : lines_) {
      if (line) section_.lines.push_back(*std::move(line));
    }
    const auto after = std::ranges::stable_partition(section_.lines, &Line::has_exceptions);
    sort_stably(after, std::ranges::greater(), &Line::share);
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

  // Asks first about the field that tells most boxes apart.
  bool meet(const Box& a, const Box& b) const {
    const auto meet_in = [&](Field field) { return regions_.sets().meet(a[index(field)], b[index(field)]); };
    return meet_in(address_) && std::ranges::all_of(in_order, meet_in);
  }

  [[nodiscard]] std::function<bool(Leaf)> is_like(const Part& part) const {
    return [&](Leaf leaf) { return leaf == no_such_packet || regions_.by_ending(leaf) == part.leaf; };
  }

  // The rules that decide about no small part of it; none where no small part ends so by itself. `met`: the parts with
  // some of its addresses, in order.
  std::vector<const Step*> deciding(const Line& line, Leaf leaf, const std::vector<std::size_t>& met) {
    constexpr double small = 0.02;
    std::vector<const Step*> steps;
    for (const std::size_t number : met) {  // the largest first
      const Part& part = parts_[number];
      if (part.share < small * line.share) break;
      if (part.leaf != leaf || !meet(part.box, line.box)) continue;
      if (share_of(regions_.sets(), intersection(regions_.sets(), part.box, line.box), whole_) < small * line.share)
        continue;
      if (part.step == nullptr) return {};
      if (std::ranges::find(steps, part.step) == steps.end()) steps.push_back(part.step);
    }
    return steps;
  }

  // Adds the line for the part; those within it are not needed any more.
  void add_line(std::size_t of, const Box& box, bool has_exceptions = false) {
    const Leaf leaf = parts_[of].leaf;
    Line line{box, regions_.decision(leaf).ending, {}, share_of(regions_.sets(), box, whole_), has_exceptions};
    const std::vector<std::size_t> met = by_address_->meeting(box);
    line.steps = deciding(line, leaf, met);
    const auto is_in_line = [&](const Box& other) { return is_within(regions_.sets(), other, box); };
    for (const std::size_t number : met) {
      if (lines_[number] && is_in_line(lines_[number]->box)) lines_[number].reset();
      if (parts_[number].leaf == leaf && is_in_line(parts_[number].box)) said_[number] = true;
    }
    lines_[of] = std::move(line);
  }

  Box largest(const Part& part) {
    const bool has_few = parts_.size() <= many_parts;
    Box box = part.box;
    for (const Field field : in_order) {
      if (field == address_ && !has_few && !is_elsewhere(part, box)) continue;
      box[index(field)] = widest(regions_, root_, box, field, whole_, is_like(part));
    }
    return box;
  }

  // Returns whether packets of other addresses may end as those of the part.
  bool is_elsewhere(const Part& part, const Box& box) {
    const Field port = address_ == Field::source ? Field::source_port : Field::destination_port;
    const auto ends_alike = [&](const Part& other) { return other.leaf == part.leaf; };
    const ByField& alike = alike_.try_emplace(part.leaf, regions_.sets(), parts_, port, ends_alike).first->second;
    return alike.any_of(box, [&](std::size_t number) {
      return !regions_.sets().is_within(parts_[number].box[index(address_)], box[index(address_)]);
    });
  }

  // Where there are many parts, a few lines that say many of them, for all but the packets of lines that follow.
  void add_lines_with_exceptions() {
    constexpr std::size_t most = 16;  // that are tried
    constexpr std::ptrdiff_t many = 8;
    const Diagrams::Node endings =
        regions_.diagrams().mapped(root_, [&](Leaf leaf) { return regions_.by_ending(leaf); });
    Diagrams::Node open = regions_.diagrams().mapped(
        endings, [&](Leaf leaf) { return leaf == usual_ || leaf == no_such_packet ? leaf : unsaid; });
    std::size_t tried = 0;
    for (std::size_t i = 0; i < parts_.size() && tried < most; ++i) {
      const Part& part = parts_[i];
      if (part.leaf == usual_ || said_[i]) continue;
      ++tried;
      const Box box = largest_but_for_some(part, open);
      const auto says = [&](const Part& other) {
        return other.leaf == part.leaf && is_within(regions_.sets(), other.box, box);
      };
      if (std::ranges::count_if(parts_, says) < many || regions_.diagrams().is_within(root_, box, is_like(part)))
        continue;
      add_line(i, box, true);
      const Diagrams::Node in_line = regions_.diagrams().within(
          regions_.diagrams().of_box(box, Diagrams::whole(Diagrams::yes), Diagrams::whole(Diagrams::no)), endings);
      open = regions_.diagrams().combined(open, in_line,
                                          [&](Leaf now, Leaf there) { return there == part.leaf ? there : now; });
    }
  }

  // With packets that no line has said (by `open`), if they are few: those of the usual ending are never said.
  Box largest_but_for_some(const Part& part, Diagrams::Node open) {
    const auto passes = [&](Leaf leaf) { return leaf == no_such_packet || leaf == unsaid || leaf == part.leaf; };
    Box box = part.box;
    for (const Field field : in_order) {
      Sets::Id& values = box[index(field)];
      if (values == whole_[index(field)]) continue;
      Box wider = box;
      wider[index(field)] = widest(regions_, open, box, field, whole_, passes);
      if (is_mostly(part.leaf, wider)) {
        box = wider;
      } else {
        values = regions_.sets().set_union(values, widest(regions_, root_, box, field, whole_, is_like(part)));
      }
    }
    return box;
  }

  // Returns whether nearly all packets in the box end so.
  bool is_mostly(Leaf leaf, const Box& box) {
    constexpr double most = 0.95;
    double all = 0;
    double alike = 0;
    for (const std::size_t number : by_address_->meeting(box)) {
      const Part& part = parts_[number];
      if (!meet(part.box, box)) continue;
      const double share = share_of(regions_.sets(), intersection(regions_.sets(), part.box, box), whole_);
      all += share;
      if (part.leaf == leaf) alike += share;
    }
    return alike >= most * all;
  }

  Regions& regions_;
  const Regions::Node root_;
  Section section_;
  Box whole_;
  std::optional<Value> way_out_;
  Leaf usual_ = uncovered;
  Field address_ = Field::destination;  // or the source: which one tells most parts apart
  std::vector<Part> parts_;             // the largest first
  std::optional<ByField> by_address_;
  std::map<Leaf, ByField> alike_;           // parts of that ending, by the port that goes with the address
  std::vector<std::optional<Line>> lines_;  // that were made for the part
  std::vector<bool> said_;                  // by a line
};

}  // namespace

Box widened(Regions& regions, Regions::Node root, Box box, const Box& whole, const std::function<bool(Leaf)>& passes) {
  for (const Field field : in_order) box[index(field)] = widest(regions, root, box, field, whole, passes);
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
                  const Section& like, Box whole, bool exceptions) {
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
    if (auto made = Cover(regions, root, std::move(section), whole, way_out).run(parts, exceptions))
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
      add_sections(result, regions, regions.side(side), root, section, whole, options.exceptions);
    }
  }
  const std::vector<Box> boxes = options.forwarded ? forwarded(regions, pod) : std::vector<Box>{};
  const Regions::Node of_forwarded = root_of(regions.of(side, boxes));
  for (const Box& whole : boxes) {
    Section section;
    section.way = Direction::in;
    section.family = family_of(regions.sets(), whole);
    section.forwarded_from = interface_of(regions, whole);
    add_sections(result, regions, regions.side(side), of_forwarded, section, whole, options.exceptions);
  }
  sort_stably(result, {}, [&](const Section& one) {
    return std::tuple(one.forwarded_from, std::ranges::find(options.ways, one.way), one.protocol, one.family);
  });
  return result;
}

}  // namespace sidetrack::space
