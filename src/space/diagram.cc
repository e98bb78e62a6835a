// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sidetrack::space {
namespace {

constexpr std::size_t few_edges = 16;           // which are asked one by one
constexpr std::size_t few_pairs = 64;           // of edges: the results of asking each pair are looked up
constexpr std::size_t few_parts = 8;            // which most cells have
constexpr Sets::Id every_value = ~Sets::Id{0};  // of a field that is not looked at yet

std::uint32_t hash_of(std::size_t level, std::span<const Diagrams::Edge> edges) {
  std::uint64_t made = level;
  for (const Diagrams::Edge& edge : edges) {
    made = (made ^ (std::uint64_t{edge.values} << 32 | edge.to)) * 0x9e3779b97f4a7c15U;
    made ^= made >> 29;
  }
  return static_cast<std::uint32_t>(made ^ made >> 32);
}

// Returns the part of the leaf; nullptr: it is in none.
const std::uint32_t* part_in(const Diagrams::PartOf& part_of, Leaf leaf) {
  const auto place = Diagrams::place_in(part_of, leaf);
  return place != part_of.end() && place->first == leaf ? &place->second : nullptr;
}

}  // namespace

void refuse_more_regions() {
  throw TooManyRegions(ExitCode::failed, fmt::format("the analysis of all packets exceeds {} MiB", most_bytes >> 20),
                       "ask for one packet: sidetrack explain");
}

Diagrams::PartOf::const_iterator Diagrams::place_in(const PartOf& part_of, Leaf leaf) {
  return std::ranges::lower_bound(part_of, leaf, {}, &PartOf::value_type::first);
}

Diagrams::Node Diagrams::node_of(std::size_t level, std::size_t base) {
  // Joined, and in one order, so that equal nodes are equal lists.
  const auto first = scratch_.begin() + static_cast<std::ptrdiff_t>(base);
  auto last = std::remove_if(first, scratch_.end(), [](const Edge& edge) { return edge.values == Sets::empty; });
  const Node to_first = first->to;
  if (std::all_of(first, last, [&](const Edge& edge) { return edge.to == to_first; })) {
    scratch_.erase(first, scratch_.end());
    return to_first;
  }
  if (last - first > 2) {
    std::sort(first, last, [](const Edge& a, const Edge& b) { return a.to < b.to; });
    auto made = first;
    for (auto edge = first; edge != last;) {
      const Node to = edge->to;
      joined_.clear();
      for (; edge != last && edge->to == to; ++edge) joined_.push_back(edge->values);
      *made++ = {sets_.set_union(joined_), to};
    }
    last = made;
  }
  // The lowest values first, which is what all parts are told by.
  const auto is_lower = [&](const Edge& a, const Edge& b) { return sets_.lowest(a.values) < sets_.lowest(b.values); };
  if (last - first > 2) {
    std::sort(first, last, is_lower);
  } else if (is_lower(*std::next(first), *first)) {
    std::iter_swap(first, std::next(first));
  }
  const std::span<const Edge> edges(first, last);
  const std::uint32_t hash = hash_of(level, edges);
  std::uint32_t& number = table_.slot(
      hash, nodes_.size(), [&](Node node) { return nodes_[node].hash; },
      [&](Node node) { return nodes_[node].level == level && std::ranges::equal(nodes_[node].edges(), edges); });
  if (number == 0) {
    if (bytes() + sets_.bytes() > most_bytes) refuse_more_regions();
    nodes_.push_back({edges_.keep(edges).data(), hash, static_cast<std::uint32_t>(edges.size()) & most_edges,
                      static_cast<std::uint32_t>(level) & 0xf});
    number = static_cast<Node>(nodes_.size());
  }
  scratch_.erase(first, scratch_.end());
  return number - 1;
}

Sets::Id Diagrams::domain(std::size_t level, Family family) {
  Sets::Id& known = domains_[static_cast<std::size_t>(value_of(family))][level];
  if (known == Sets::empty) known = sets_.of({universe_.domain(static_cast<Field>(level), family)});
  return known;
}

Diagrams::Node Diagrams::of_box(const Box& box, Node inside, Node outside) {
  if (is_empty(box)) return outside;
  const Family family = family_of(sets_, box);
  Node node = inside;
  for (std::size_t level = field_count; level-- > 0;) {
    const Sets::Id all = domain(level, family);
    if (box[level] == all) continue;
    const std::size_t base = scratch_.size();
    scratch_.push_back({box[level], node});
    scratch_.push_back({sets_.difference(all, box[level]), outside});
    node = node_of(level, base);
  }
  return node;
}

Diagrams::Node Diagrams::with(Node root, const Box& box, Node other, const std::function<Leaf(Leaf)>& change) {
  const Part part{of_box(box, whole(yes), whole(no)), other};
  return after(root, nothing(), {&part, 1}, {{uncovered, 0}},
               {[&](Leaf, Leaf leaf) { return change(leaf); }, [](Leaf) { return false; }});
}

// Follows two diagrams and those of the parts at once, field by field.
class Diagrams::Walk {
 public:
  struct Going {  // a part that is still possible
    std::uint32_t number;
    Node inside;
    Node other;
  };
  using Parts = std::vector<Going>;

  struct Cell {
    Sets::Id values;
    Node first;
    Node by;
    Parts parts;
  };

  // No `part_of`: nothing is asked of the leaves.
  Walk(Diagrams& diagrams, std::span<const Part> parts, const PartOf* part_of)
      : diagrams_(diagrams), sets_(diagrams.sets_), all_(parts), part_of_(part_of) {}

  Parts begin(Node by) {
    Parts parts;
    for (const std::uint32_t number : numbers(by)) parts.push_back({number, all_[number].inside, all_[number].other});
    return parts;
  }

  // What of the parts the packets of `by` can still be of.
  Parts left(const Parts& parts, Node by) {
    if (part_of_ == nullptr) return parts;
    const std::vector<std::uint32_t>& numbers_left = numbers(by);
    Parts result;
    auto next = numbers_left.begin();
    for (const Going& one : parts) {
      while (next != numbers_left.end() && *next < one.number) ++next;
      if (next == numbers_left.end()) break;
      if (*next == one.number && one.inside != whole(no)) result.push_back(one);
    }
    return result;
  }

  // The next field that any of them asks for; field_count: none.
  [[nodiscard]] std::size_t next_level(Node first, Node by, const Parts& parts) const {
    std::size_t level = std::min(diagrams_.level(first), diagrams_.level(by));
    for (const Going& one : parts) level = std::min({level, diagrams_.level(one.inside), diagrams_.level(one.other)});
    return level;
  }

  // Where the values of that field lead.
  std::vector<Cell> cells(std::size_t level, Node first, Node by, const Parts& parts) {
    std::vector<Cell> made;
    const auto edges = [&](Node node) { return diagrams_.edges(node); };
    const bool of_first = diagrams_.level(first) == level;
    const bool of_by = diagrams_.level(by) == level;
    if (of_first && of_by) {
      each_common(edges(first), edges(by), [&](Sets::Id values, Node one, Node other) {
        made.push_back({values, one, other, {}});
      });
    } else if (of_first) {
      for (const Edge& edge : edges(first)) made.push_back({edge.values, edge.to, by, {}});
    } else if (of_by) {
      for (const Edge& edge : edges(by)) made.push_back({edge.values, first, edge.to, {}});
    } else {
      made.push_back({every_value, first, by, {}});
    }
    for (Cell& cell : made) cell.parts = of_by ? left(parts, cell.by) : parts;
    if (parts.size() <= few_parts) {
      for (const Going& one : parts) {
        split_all(made, level, one.number, &Going::inside);
        split_all(made, level, one.number, &Going::other);
      }
      return made;
    }
    std::vector<Cell> result;
    for (Cell& cell : made) {
      const std::size_t begin = result.size();
      const std::size_t count = cell.parts.size();
      result.push_back(std::move(cell));
      for (std::size_t i = 0; i < count; ++i) {
        split_by(result, begin, level, i, &Going::inside);
        split_by(result, begin, level, i, &Going::other);
      }
    }
    return result;
  }

  template <typename Use>
  void each_common(std::span<const Edge> lefts, std::span<const Edge> rights, const Use& use) {
    if (lefts.size() * rights.size() > few_pairs) {
      for (const auto& [left, right, values] : sets_.in_common(values_of(lefts), values_of(rights)))
        use(values, lefts[left].to, rights[right].to);
      return;
    }
    for (const Edge& left : lefts) {
      for (const Edge& right : rights) {
        if (sets_.meet(left.values, right.values))
          use(sets_.intersection(left.values, right.values), left.to, right.to);
      }
    }
  }

 private:
  static std::vector<Sets::Id> values_of(std::span<const Edge> edges) {
    std::vector<Sets::Id> all;
    for (const Edge& edge : edges) all.push_back(edge.values);
    return all;
  }

  // All cells that have the part, at once: they have the same node of it.
  void split_all(std::vector<Cell>& cells, std::size_t level, std::uint32_t number, Node Going::*of) {
    std::vector<std::size_t> places;
    std::vector<Sets::Id> values;
    Node node = nothing();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto part = std::ranges::find(cells[i].parts, number, &Going::number);
      if (part == cells[i].parts.end()) continue;
      node = (*part).*of;
      if (diagrams_.level(node) != level) return;
      places.push_back(i);
      values.push_back(cells[i].values);
    }
    if (places.empty()) return;
    const std::span<const Edge> edges = diagrams_.edges(node);
    const auto add = [&](std::size_t place, bool is_first, const Cell& before, Sets::Id inside, Node to) {
      Cell cell = before;
      cell.values = inside;
      (*std::ranges::find(cell.parts, number, &Going::number)).*of = to;
      if (is_first) {
        cells[place] = std::move(cell);
      } else {
        cells.push_back(std::move(cell));
      }
    };
    if (places.size() * edges.size() <= few_pairs || values.front() == every_value) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const Cell before = cells[places[i]];
        bool is_first = true;
        for (const Edge& edge : edges) {
          const bool is_whole = before.values == every_value;
          if (!is_whole && !sets_.meet(before.values, edge.values)) continue;
          add(places[i], is_first, before, is_whole ? edge.values : sets_.intersection(before.values, edge.values),
              edge.to);
          is_first = false;
        }
      }
      return;
    }
    std::optional<std::uint32_t> last;
    Cell before{};
    for (const auto& [left, right, inside] : sets_.in_common(values, values_of(edges))) {
      const bool is_first = left != last;
      if (is_first) before = cells[places[left]];
      last = left;
      add(places[left], is_first, before, inside, edges[right].to);
    }
  }

  void split_by(std::vector<Cell>& cells, std::size_t begin, std::size_t level, std::size_t part, Node Going::*of) {
    const std::size_t end = cells.size();
    for (std::size_t i = begin; i < end; ++i) {
      const Node node = cells[i].parts[part].*of;
      if (diagrams_.level(node) != level) continue;
      const Sets::Id values = cells[i].values;
      bool is_first = true;
      for (const Edge& edge : diagrams_.edges(node)) {
        if (values != every_value && !sets_.meet(values, edge.values)) continue;
        const Sets::Id inside = values == every_value ? edge.values : sets_.intersection(values, edge.values);
        if (!is_first) cells.push_back(cells[i]);
        Cell& cell = is_first ? cells[i] : cells.back();
        cell.values = inside;
        cell.parts[part].*of = edge.to;
        is_first = false;
      }
    }
  }

  const std::vector<std::uint32_t>& numbers(Node by) {
    const auto [found, added] = numbers_.try_emplace(by);
    if (!added) return found->second;
    std::vector<std::uint32_t> all;
    if (is_leaf(by)) {
      if (const std::uint32_t* part = part_in(*part_of_, leaf(by))) all.push_back(*part);
    } else {
      for (const Edge& edge : diagrams_.edges(by)) {
        const std::vector<std::uint32_t>& more = numbers(edge.to);
        all.insert(all.end(), more.begin(), more.end());
      }
      std::ranges::sort(all);
      all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    return numbers_[by] = std::move(all);
  }

  Diagrams& diagrams_;
  Sets& sets_;
  std::span<const Part> all_;
  const PartOf* part_of_;
  std::unordered_map<Node, std::vector<std::uint32_t>> numbers_;
};

namespace {

// Which nodes a walk stands at.
using Place = std::vector<std::uint32_t>;
struct PlaceHash {
  std::size_t operator()(const Place& place) const {
    std::uint64_t made = place.size();
    for (const std::uint32_t one : place) {
      made = (made ^ one) * 0x9e3779b97f4a7c15U;
      made ^= made >> 29;
    }
    return made;
  }
};
template <typename Value>
using ByPlace = std::unordered_map<Place, Value, PlaceHash>;

template <typename Parts>
Place place_of(Diagrams::Node first, Diagrams::Node by, const Parts& parts) {
  Place place{first, by};
  for (const auto& one : parts) {
    place.push_back(one.number);
    place.push_back(one.inside);
    place.push_back(one.other);
  }
  return place;
}

}  // namespace

// Combines two diagrams at a time where there is one part, as for most states: that takes fewer lists.
Diagrams::Node Diagrams::after(Node known, Node by, std::span<const Part> parts, const PartOf& part_of,
                               const Change& change) {
  if (parts.size() == 1) {
    constexpr Leaf none = leaf(~Node{0});
    const Node inside = combined_until(
        parts.front().inside, by,
        [](Node in, Node) { return in == whole(no) ? std::optional(whole(none)) : std::nullopt; },
        [&](Leaf in, Leaf leaf) { return in == yes && part_in(part_of, leaf) != nullptr ? leaf : none; });
    const Node made = combined_until(
        inside, parts.front().other,
        [&](Node path, Node other) -> std::optional<Node> {
          if (path == whole(none) || other == nothing()) return nothing();
          if (is_leaf(path) && change.keeps(leaf(path))) return other;
          return {};
        },
        change.of);
    return overlaid(known, made);
  }
  Walk walk(*this, parts, &part_of);
  ByPlace<Node> done;
  const auto go = [&](const auto& self, Node now, Node at, const Walk::Parts& all) -> Node {
    if (all.empty() || (is_leaf(now) && now != nothing())) return now;
    const std::size_t level = walk.next_level(now, at, all);
    if (level == field_count) {
      const Walk::Going& one = all.front();
      if (one.inside == whole(no) || one.other == nothing()) return now;
      return whole(change.of(leaf(at), leaf(one.other)));
    }
    Place place = place_of(now, at, all);
    if (const auto found = done.find(place); found != done.end()) return found->second;
    const std::size_t base = scratch_.size();
    for (Walk::Cell& cell : walk.cells(level, now, at, all)) {
      std::erase_if(cell.parts, [](const Walk::Going& one) { return one.inside == whole(no); });
      const Node to = self(self, cell.first, cell.by, cell.parts);
      scratch_.push_back({cell.values, to});
    }
    const Node made = node_of(level, base);
    done.emplace(std::move(place), made);
    return made;
  };
  return go(go, known, by, walk.begin(by));
}

std::vector<Diagrams::Node> Diagrams::split(Node region, Node by, std::span<const Part> parts, const PartOf& part_of,
                                            Family family) {
  if (parts.size() == 1) {
    return {combined_until(
        all_of(region, parts.front().inside), by,
        [](Node in, Node) { return in == whole(no) ? std::optional(in) : std::nullopt; },
        [&](Leaf in, Leaf leaf) { return in == yes && part_in(part_of, leaf) != nullptr ? yes : no; })};
  }
  std::vector<Part> insides;  // what they lead to does not matter
  for (const Part& part : parts) insides.push_back({part.inside, nothing()});
  Walk walk(*this, insides, &part_of);
  using Result = std::vector<std::pair<std::uint32_t, Node>>;
  ByPlace<Result> done;
  const auto go = [&](const auto& self, Node now, Node at, const Walk::Parts& all) -> Result {
    if (all.empty() || now == whole(no)) return {};
    const std::size_t level = walk.next_level(now, at, all);
    if (level == field_count) return {{all.front().number, whole(yes)}};
    Place place = place_of(now, at, all);
    if (const auto found = done.find(place); found != done.end()) return found->second;
    std::map<std::uint32_t, std::vector<Edge>> edges_of;
    for (Walk::Cell& cell : walk.cells(level, now, at, all)) {
      std::erase_if(cell.parts, [](const Walk::Going& one) { return one.inside == whole(no); });
      for (const auto& [number, to] : self(self, cell.first, cell.by, cell.parts))
        edges_of[number].push_back({cell.values, to});
    }
    Result result;
    for (const auto& [number, edges] : edges_of) {
      const std::size_t base = scratch_.size();
      std::vector<Sets::Id> own;
      for (const Edge& edge : edges) {
        scratch_.push_back(edge);
        own.push_back(edge.values);
      }
      scratch_.push_back({sets_.difference(domain(level, family), sets_.set_union(own)), whole(no)});
      const Node made = node_of(level, base);
      if (made != whole(no)) result.emplace_back(number, made);
    }
    done.emplace(std::move(place), result);
    return result;
  };
  std::vector<Node> result(parts.size(), whole(no));
  for (const auto& [number, node] : go(go, region, by, walk.begin(by))) result[number] = node;
  return result;
}

std::map<Leaf, Box> Diagrams::open_by(Node root, Node region, Node by, const Box& whole_box) {
  Walk walk(*this, {}, nullptr);
  std::map<Leaf, Box> found;
  std::set<std::vector<Node>> done;
  const auto go = [&](const auto& self, Node now, Node inside, Node at, Box& box) -> void {
    if (inside == whole(no) || (is_leaf(now) && now != nothing())) return;
    if (is_leaf(at) && found.contains(leaf(at))) return;
    const Walk::Parts of_region{{0, inside, nothing()}};
    const std::size_t next = walk.next_level(now, at, of_region);
    if (next == field_count) {
      found.emplace(leaf(at), box);
      return;
    }
    if (!done.insert({now, inside, at}).second) return;
    const Sets::Id before = box[next];
    for (const Walk::Cell& cell : walk.cells(next, now, at, of_region)) {
      box[next] = sets_.intersection(before, cell.values);
      if (box[next] != Sets::empty) self(self, cell.first, cell.parts.front().inside, cell.by, box);
    }
    box[next] = before;
  };
  Box box = whole_box;
  go(go, root, region, by, box);
  return found;
}

std::optional<Box> Diagrams::first_uncovered(Node root, const Box& within) {
  const auto found = open_by(root, of_box(within, whole(yes), whole(no)), nothing(), within);
  return found.empty() ? std::nullopt : std::optional(found.begin()->second);
}

Diagrams::Node Diagrams::mapped(Node root, const std::function<Leaf(Leaf)>& change) {
  done_.clear();
  const auto walk = [&](const auto& self, Node node) -> Node {
    if (is_leaf(node)) return whole(change(leaf(node)));
    if (const auto* known = done_.find(node)) return *known;
    const std::size_t base = scratch_.size();
    for (const Edge& edge : edges(node)) {
      const Node to = self(self, edge.to);
      scratch_.push_back({edge.values, to});
    }
    const Node made = node_of(level(node), base);
    done_.add(node, made);
    return made;
  };
  return walk(walk, root);
}

template <typename Stop, typename Combine>
Diagrams::Node Diagrams::combined_until(Node a, Node b, const Stop& stop, const Combine& combine) {
  done_.clear();
  Walk of_edges(*this, {}, nullptr);
  const auto walk = [&](const auto& self, Node one, Node other) -> Node {
    if (const std::optional<Node> made = stop(one, other)) return *made;
    const std::size_t next = std::min(level(one), level(other));
    if (next == field_count) return whole(combine(leaf(one), leaf(other)));
    const std::uint64_t key = std::uint64_t{one} << 32 | other;
    if (const auto* known = done_.find(key)) return *known;
    const std::size_t base = scratch_.size();
    const auto add = [&](Sets::Id values, Node left, Node right) {
      const Node to = self(self, left, right);
      scratch_.push_back({values, to});
    };
    if (level(one) != next) {
      for (const Edge& edge : edges(other)) add(edge.values, one, edge.to);
    } else if (level(other) != next) {
      for (const Edge& edge : edges(one)) add(edge.values, edge.to, other);
    } else {
      of_edges.each_common(edges(one), edges(other), add);
    }
    const Node made = node_of(next, base);
    done_.add(key, made);
    return made;
  };
  return walk(walk, a, b);
}

Diagrams::Node Diagrams::combined(Node a, Node b, const std::function<Leaf(Leaf, Leaf)>& combine) {
  return combined_until(
      a, b, [](Node, Node) { return std::optional<Node>(); }, combine);
}

Diagrams::Node Diagrams::all_of(Node a, Node b) {
  const auto stop = [](Node one, Node other) -> std::optional<Node> {
    if (one == whole(no) || other == whole(yes) || one == other) return one;
    if (other == whole(no) || one == whole(yes)) return other;
    return {};
  };
  return combined_until(a, b, stop, [](Leaf one, Leaf other) { return std::min(one, other); });
}

Diagrams::Node Diagrams::any_of(Node a, Node b) {
  const auto stop = [](Node one, Node other) -> std::optional<Node> {
    if (one == whole(yes) || other == whole(no) || one == other) return one;
    if (other == whole(yes) || one == whole(no)) return other;
    return {};
  };
  return combined_until(a, b, stop, [](Leaf one, Leaf other) { return std::max(one, other); });
}

// In a balanced tree: adding one after the other would take as long as their number squared.
Diagrams::Node Diagrams::any_of(std::span<const Node> all) {
  if (all.size() <= 1) return all.empty() ? whole(no) : all.front();
  return any_of(any_of(all.first(all.size() / 2)), any_of(all.subspan(all.size() / 2)));
}

Diagrams::Node Diagrams::without(Node set, Node part) {
  const auto stop = [](Node in, Node out) -> std::optional<Node> {
    if (in == whole(no) || out == whole(no)) return in;
    if (out == whole(yes) || in == out) return whole(no);
    return {};
  };
  return combined_until(set, part, stop, [](Leaf in, Leaf out) { return in == yes && out == no ? yes : no; });
}

Diagrams::Node Diagrams::with_any_of(Node set, std::span<const Field> fields) {
  std::unordered_map<Node, Node> known;
  const auto walk = [&](const auto& self, Node node) -> Node {
    if (is_leaf(node)) return node;
    if (const auto found = known.find(node); found != known.end()) return found->second;
    std::vector<Edge> made;
    std::vector<Node> below;
    for (const Edge& edge : std::vector<Edge>(edges(node).begin(), edges(node).end())) {
      below.push_back(self(self, edge.to));
      made.push_back({edge.values, below.back()});
    }
    const auto field = static_cast<Field>(level(node));
    const bool is_any = std::ranges::find(fields, field) != fields.end();
    const Node result = is_any ? any_of(below) : of_edges(field, made);
    known.emplace(node, result);
    return result;
  };
  return walk(walk, set);
}

Diagrams::Node Diagrams::within(Node set, Node root) {
  const auto stop = [](Node in, Node node) -> std::optional<Node> {
    if (in == whole(no)) return nothing();
    if (in == whole(yes) || node == nothing()) return node;
    return {};
  };
  return combined_until(set, root, stop, [](Leaf in, Leaf leaf) { return in == yes ? leaf : uncovered; });
}

Diagrams::Node Diagrams::overlaid(Node first, Node then) {
  const auto stop = [](Node known, Node node) -> std::optional<Node> {
    if (known == nothing()) return node;
    if (node == nothing() || is_leaf(known) || known == node) return known;
    return {};
  };
  return combined_until(first, then, stop, [](Leaf known, Leaf leaf) { return known == uncovered ? leaf : known; });
}

void Diagrams::for_each(Node root, const Box& within, const std::function<void(const Box&, Leaf)>& one) {
  Box box = within;
  const auto walk = [&](const auto& self, Node node) -> void {
    if (is_leaf(node)) return one(box, leaf(node));
    const std::size_t at = level(node);
    for (const Edge& edge : edges(node)) {
      box[at] = sets_.intersection(edge.values, within[at]);
      if (box[at] != Sets::empty) self(self, edge.to);
    }
    box[at] = within[at];
  };
  if (!is_empty(within)) walk(walk, root);
}

Leaf Diagrams::at(Node root, const Point& point) const {
  Node node = root;
  while (!is_leaf(node)) {
    const Value value = point[level(node)];
    node = std::ranges::find_if(edges(node), [&](const Edge& edge) { return sets_.contains(edge.values, value); })->to;
  }
  return leaf(node);
}

std::vector<Leaf> Diagrams::leaves(Node root) const {
  std::set<Node> seen;
  std::vector<Leaf> all;
  const auto walk = [&](const auto& self, Node node) -> void {
    if (!seen.insert(node).second) return;
    if (is_leaf(node)) return all.push_back(leaf(node));
    for (const Edge& edge : edges(node)) self(self, edge.to);
  };
  walk(walk, root);
  return all;
}

bool Diagrams::is_within(Node root, const Box& box, const std::function<bool(Leaf)>& passes) {
  done_.clear();
  return is_within_below(root, box, passes);
}

const std::vector<Diagrams::Piece>& Diagrams::pieces_of(Node node) {
  const auto [found, is_new] = pieces_.try_emplace(node);
  std::vector<Piece>& pieces = found->second;
  if (!is_new) return pieces;
  for (const Edge& edge : edges(node)) {
    for (const Interval& each : sets_.intervals(edge.values)) pieces.push_back({each, &edge});
  }
  std::ranges::sort(pieces, {}, [](const Piece& piece) { return piece.interval.first; });
  bytes_of_pieces_ += pieces.capacity() * sizeof(Piece);
  return pieces;
}

template <typename Is>
bool Diagrams::all_with(Node node, Sets::Id values, const Is& is) {
  const std::span<const Edge> all = edges(node);
  const std::span<const Interval> wanted = sets_.intervals(values);
  if (all.size() <= few_edges || wanted.size() > all.size() / few_edges) {
    return std::ranges::all_of(all, [&](const Edge& edge) { return !sets_.meet(edge.values, values) || is(edge); });
  }
  const std::vector<Piece>& pieces = pieces_of(node);
  for (const Interval& each : wanted) {
    if (each.first <= pieces.front().interval.first && each.last >= pieces.back().interval.last)
      return std::ranges::all_of(all, is);
    auto piece = std::ranges::lower_bound(pieces, each.first, {}, [](const Piece& one) { return one.interval.last; });
    for (; piece != pieces.end() && piece->interval.first <= each.last; ++piece) {
      if (!is(*piece->edge)) return false;
    }
  }
  return true;
}

bool Diagrams::is_within_below(Node node, const Box& box, const std::function<bool(Leaf)>& passes) {
  if (is_leaf(node)) return passes(leaf(node));
  if (const auto* known = done_.find(node)) return *known != 0;
  const bool result =
      all_with(node, box[level(node)], [&](const Edge& edge) { return is_within_below(edge.to, box, passes); });
  done_.add(node, result ? 1 : 0);
  return result;
}

Sets::Id Diagrams::allowed(Node root, const Box& box, Field field, const std::function<bool(Leaf)>& passes) {
  done_.clear();
  values_.clear();
  const Sets::Id all = domain(index(field), family_of(sets_, box));
  const auto walk = [&](const auto& self, Node node) -> Sets::Id {
    if (level(node) > index(field)) return is_within_below(node, box, passes) ? all : Sets::empty;
    if (const auto* known = values_.find(node)) return *known;
    std::optional<Sets::Id> result;
    if (level(node) == index(field)) {
      joined_.clear();
      for (const Edge& edge : edges(node)) {
        if (is_within_below(edge.to, box, passes)) joined_.push_back(edge.values);
      }
      result = sets_.set_union(joined_);
    } else {
      all_with(node, box[level(node)], [&](const Edge& edge) {
        const Sets::Id more = self(self, edge.to);
        result = result ? sets_.intersection(*result, more) : more;
        return true;
      });
    }
    values_.add(node, result.value_or(Sets::empty));
    return result.value_or(Sets::empty);
  };
  return walk(walk, root);
}

}  // namespace sidetrack::space
