// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/diagram.h"

#include <algorithm>

namespace sidetrack::space {
namespace {

constexpr std::size_t block_size = 4096;  // edges
constexpr std::size_t few_pairs = 256;    // of edges: the results of asking each pair are looked up

std::size_t hash_of(std::size_t level, std::span<const Diagrams::Edge> edges) {
  std::uint64_t made = level;
  for (const Diagrams::Edge& edge : edges) {
    made = (made ^ (std::uint64_t{edge.values} << 32 | edge.to)) * 0x9e3779b97f4a7c15U;
    made ^= made >> 29;
  }
  return made;
}

std::vector<Sets::Id> values_of(std::span<const Diagrams::Edge> edges) {
  std::vector<Sets::Id> all;
  for (const Diagrams::Edge& edge : edges) all.push_back(edge.values);
  return all;
}

}  // namespace

Diagrams::Diagrams(const Universe& universe, Sets& sets) : universe_(universe), sets_(sets) {
  const auto chain_of = [&](Family family) {
    Node node = uncovered;
    for (std::size_t level = field_count; level-- > index(Field::family) + 1;) {
      scratch_.push_back({sets_.of({universe_.domain(static_cast<Field>(level), family)}), node});
      node = node_of(level, 0);
    }
    return node;
  };
  const Node ipv4 = chain_of(Family::ipv4);
  const Node ipv6 = chain_of(Family::ipv6);
  scratch_ = {{sets_.single(value_of(Family::ipv4)), ipv4}, {sets_.single(value_of(Family::ipv6)), ipv6}};
  const Node families = node_of(index(Field::family), 0);
  scratch_.push_back({sets_.of({universe_.domain(Field::way, Family::ipv4)}), families});
  nothing_ = node_of(index(Field::way), 0);
}

std::span<const Diagrams::Edge> Diagrams::kept(std::span<const Edge> edges) {
  if (free_in_block_ < edges.size()) {
    free_in_block_ = std::max(block_size, edges.size());
    blocks_.push_back(std::make_unique<Edge[]>(free_in_block_));
    bytes_ += free_in_block_ * sizeof(Edge);
    end_of_block_ = blocks_.back().get();
  }
  Edge* const first = end_of_block_;
  end_of_block_ = std::ranges::copy(edges, first).out;
  free_in_block_ -= edges.size();
  return {first, edges.size()};
}

void Diagrams::grow_table() {
  table_.assign(std::max<std::size_t>(256, 2 * table_.size()), 0);
  for (Node node = 0; node < nodes_.size(); ++node) {
    std::size_t at = nodes_[node].hash & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = node + 1;
  }
}

Diagrams::Node Diagrams::node_of(std::size_t level, std::size_t base) {
  // Joined, and in an order of its own, so that equal nodes are equal lists.
  const auto first = scratch_.begin() + static_cast<std::ptrdiff_t>(base);
  std::sort(first, scratch_.end(), [](const Edge& a, const Edge& b) { return a.to < b.to; });
  auto last = first;
  for (auto edge = first; edge != scratch_.end();) {
    const Node to = edge->to;
    joined_.clear();
    for (; edge != scratch_.end() && edge->to == to; ++edge) {
      if (edge->values != Sets::empty) joined_.push_back(edge->values);
    }
    if (!joined_.empty()) *last++ = {sets_.set_union(joined_), to};
  }
  const std::span<const Edge> edges(first, last);
  const std::size_t hash = hash_of(level, edges);
  if (2 * (nodes_.size() + 1) > table_.size()) grow_table();
  std::size_t at = hash & (table_.size() - 1);
  for (; table_[at] != 0; at = (at + 1) & (table_.size() - 1)) {
    const Inner& inner = nodes_[table_[at] - 1];
    if (inner.hash == hash && inner.level == level && std::ranges::equal(inner.edges, edges)) break;
  }
  if (table_[at] == 0) {
    nodes_.push_back({kept(edges), level, hash});
    table_[at] = static_cast<Node>(nodes_.size());
  }
  scratch_.resize(base);
  return table_[at] - 1;
}

Diagrams::Node Diagrams::whole(Leaf leaf) {
  if (const auto* known = whole_.find(leaf)) return *known;
  const Node made = mapped(nothing_, [&](Leaf) { return leaf; });
  whole_.add(leaf, made);
  return made;
}

struct Diagrams::Overlay {
  const Box& box;
  const std::function<Leaf(Leaf)>& change;
};

Diagrams::Node Diagrams::with(Node root, const Box& box, Node other, const std::function<Leaf(Leaf)>& change) {
  done_.clear();
  return with(root, other, 0, {box, change});
}

Diagrams::Node Diagrams::with(Node node, Node other, std::size_t level, const Overlay& overlay) {
  if (level == field_count) {
    const Leaf leaf = other == uncovered ? uncovered : overlay.change(other);
    if (node != uncovered && leaf != uncovered && node != leaf) ++conflicts_;
    return node == uncovered ? leaf : node;
  }
  const std::uint64_t key = std::uint64_t{node} << 32 | other;
  if (const auto* known = done_.find(key)) return *known;
  const std::size_t base = scratch_.size();
  const std::span<const Edge> before = edges(node), more = edges(other);
  const bool changes = before.size() * more.size() <= few_pairs ? with_few(before, more, level, overlay)
                                                                : with_many(before, more, level, overlay);
  if (!changes) scratch_.resize(base);
  const Node made = changes ? node_of(level, base) : node;
  done_.add(key, made);
  return made;
}

// Puts the edges into scratch_. Returns whether any differs from before.
bool Diagrams::with_few(std::span<const Edge> before, std::span<const Edge> more, std::size_t level,
                        const Overlay& overlay) {
  bool changes = false;
  for (const Edge& edge : before) {
    Sets::Id rest = edge.values;
    const Sets::Id inside = sets_.intersection(edge.values, overlay.box[level]);
    if (inside != Sets::empty) {
      for (const Edge& one : more) {
        const Sets::Id part = sets_.intersection(inside, one.values);
        if (part == Sets::empty) continue;
        const Node to = with(edge.to, one.to, level + 1, overlay);
        if (to == edge.to) continue;
        changes = true;
        scratch_.push_back({part, to});
        rest = sets_.difference(rest, part);
      }
    }
    scratch_.push_back({rest, edge.to});
  }
  return changes;
}

// The same without asking each pair.
bool Diagrams::with_many(std::span<const Edge> before, std::span<const Edge> more, std::size_t level,
                         const Overlay& overlay) {
  std::vector<Sets::Id> inside = values_of(before), taken;
  for (Sets::Id& each : inside) each = sets_.intersection(each, overlay.box[level]);
  bool changes = false;
  std::size_t at = 0;
  const auto leave_up_to = [&](std::size_t end) {
    for (; at < end; ++at) {
      scratch_.push_back({sets_.difference(before[at].values, taken), before[at].to});
      taken.clear();
    }
  };
  for (const auto& [left, right, values] : sets_.in_common(inside, values_of(more))) {
    leave_up_to(left);
    const Node to = with(before[left].to, more[right].to, level + 1, overlay);
    if (to == before[left].to) continue;
    changes = true;
    scratch_.push_back({values, to});
    taken.push_back(values);
  }
  leave_up_to(before.size());
  return changes;
}

std::optional<Box> Diagrams::first_uncovered(Node root, const Box& within) {
  done_.clear();  // here: what leads to nothing that is uncovered
  Box box{};
  if (!find_uncovered(root, 0, within, box)) return {};
  return box;
}

bool Diagrams::find_uncovered(Node node, std::size_t level, const Box& within, Box& box) {
  if (level == field_count) return node == uncovered;
  if (done_.find(node) != nullptr) return false;
  for (const Edge& edge : edges(node)) {
    box[level] = sets_.intersection(edge.values, within[level]);
    if (box[level] != Sets::empty && find_uncovered(edge.to, level + 1, within, box)) return true;
  }
  done_.add(node, 0);
  return false;
}

Diagrams::Node Diagrams::mapped(Node root, const std::function<Leaf(Leaf)>& change) {
  done_.clear();
  const auto walk = [&](const auto& self, Node node, std::size_t level) -> Node {
    if (level == field_count) return change(node);
    if (const auto* known = done_.find(node)) return *known;
    const std::size_t base = scratch_.size();
    for (const Edge& edge : edges(node)) {
      const Node to = self(self, edge.to, level + 1);
      scratch_.push_back({edge.values, to});
    }
    const Node made = node_of(level, base);
    done_.add(node, made);
    return made;
  };
  return walk(walk, root, 0);
}

Diagrams::Node Diagrams::combined(Node a, Node b, const std::function<Leaf(Leaf, Leaf)>& combine) {
  done_.clear();
  const auto walk = [&](const auto& self, Node one, Node other, std::size_t level) -> Node {
    if (level == field_count) return combine(one, other);
    const std::uint64_t key = std::uint64_t{one} << 32 | other;
    if (const auto* known = done_.find(key)) return *known;
    const std::size_t base = scratch_.size();
    const std::span<const Edge> lefts = edges(one), rights = edges(other);
    if (lefts.size() * rights.size() > few_pairs) {
      for (const auto& [left, right, values] : sets_.in_common(values_of(lefts), values_of(rights))) {
        const Node to = self(self, lefts[left].to, rights[right].to, level + 1);
        scratch_.push_back({values, to});
      }
    } else {
      for (const Edge& left : lefts) {
        for (const Edge& right : rights) {
          const Sets::Id values = sets_.intersection(left.values, right.values);
          if (values == Sets::empty) continue;
          const Node to = self(self, left.to, right.to, level + 1);
          scratch_.push_back({values, to});
        }
      }
    }
    const Node made = node_of(level, base);
    done_.add(key, made);
    return made;
  };
  return walk(walk, a, b, 0);
}

void Diagrams::for_each(Node root, const std::function<void(const Box&, Leaf)>& one) const {
  Box box{};
  each(root, 0, box, one);
}

void Diagrams::each(Node node, std::size_t level, Box& box, const std::function<void(const Box&, Leaf)>& one) const {
  if (level == field_count) return one(box, node);
  for (const Edge& edge : edges(node)) {
    box[level] = edge.values;
    each(edge.to, level + 1, box, one);
  }
}

Leaf Diagrams::at(Node root, const Point& point) const {
  Node node = root;
  for (std::size_t level = 0; level < field_count; ++level) {
    node = std::ranges::find_if(edges(node), [&](const Edge& edge) {
             return sets_.contains(edge.values, point[level]);
           })->to;
  }
  return node;
}

bool Diagrams::is_within(Node root, const Box& box, const std::function<bool(Leaf)>& passes) {
  done_.clear();
  return is_within(root, 0, box, passes);
}

bool Diagrams::is_within(Node node, std::size_t level, const Box& box, const std::function<bool(Leaf)>& passes) {
  if (level == field_count) return passes(node);
  if (const auto* known = done_.find(node)) return *known != 0;
  const bool result = std::ranges::all_of(edges(node), [&](const Edge& edge) {
    return sets_.intersection(edge.values, box[level]) == Sets::empty || is_within(edge.to, level + 1, box, passes);
  });
  done_.add(node, result ? 1 : 0);
  return result;
}

Sets::Id Diagrams::allowed(Node root, const Box& box, Field field, const std::function<bool(Leaf)>& passes) {
  done_.clear();
  values_.clear();
  const auto walk = [&](const auto& self, Node node, std::size_t level) -> Sets::Id {
    if (const auto* known = values_.find(node)) return *known;
    std::optional<Sets::Id> result;
    for (const Edge& edge : edges(node)) {
      if (level == index(field)) {
        if (is_within(edge.to, level + 1, box, passes))
          result = sets_.set_union(result.value_or(Sets::empty), edge.values);
      } else if (sets_.intersection(edge.values, box[level]) != Sets::empty) {
        const Sets::Id more = self(self, edge.to, level + 1);
        result = result ? sets_.intersection(*result, more) : more;
      }
    }
    values_.add(node, result.value_or(Sets::empty));
    return result.value_or(Sets::empty);
  };
  return walk(walk, root, 0);
}

}  // namespace sidetrack::space
