// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/diagram.h"

#include <algorithm>

namespace sidetrack::space {
namespace {

std::size_t hash(const std::vector<Diagrams::Edge>& edges) {
  std::uint64_t made = edges.size();
  for (const Diagrams::Edge& edge : edges)
    made = (made ^ (std::uint64_t{edge.values} << 32 | edge.to)) * 0x9e3779b97f4a7c15U + (made >> 29);
  return made;
}

}  // namespace

Diagrams::Diagrams(const Universe& universe, Sets& sets) : universe_(universe), sets_(sets), done_(field_count) {
  const auto chain_of = [&](Family family) {
    Node node = uncovered;
    for (std::size_t level = field_count; level-- > index(Field::family) + 1;) {
      const Interval domain = universe_.domain(static_cast<Field>(level), family);
      node = node_of({{sets_.of({domain}), node}});
    }
    return node;
  };
  const Node families = node_of({{sets_.single(0), chain_of(Family::ipv4)}, {sets_.single(1), chain_of(Family::ipv6)}});
  nothing_ = node_of({{sets_.of({universe_.domain(Field::way, Family::ipv4)}), families}});
}

Diagrams::Node Diagrams::node_of(std::vector<Edge> edges) {
  // Joined, and in an order of its own, so that equal nodes are equal lists.
  std::ranges::sort(edges, {}, &Edge::to);
  std::vector<Edge> joined;
  for (const Edge& edge : edges) {
    if (edge.values == Sets::empty) continue;
    if (!joined.empty() && joined.back().to == edge.to) {
      joined.back().values = sets_.either(joined.back().values, edge.values);
    } else {
      joined.push_back(edge);
    }
  }
  const std::size_t key = hash(joined);
  const auto [first, last] = ids_.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& one) { return one.second.first == joined; });
  if (found != last) return found->second.second;
  const auto id = static_cast<Node>(nodes_.size());
  const auto added = ids_.emplace(key, std::pair(std::move(joined), id));
  nodes_.push_back(&added->second.first);
  return id;
}

Diagrams::Node Diagrams::with(Node root, const Box& box, Leaf leaf) {
  for (auto& level : done_) level.clear();
  return with(root, 0, box, leaf);
}

Diagrams::Node Diagrams::with(Node node, std::size_t level, const Box& box, Leaf leaf) {
  if (level == field_count) {
    if (node != uncovered && node != leaf) ++conflicts_;
    return node == uncovered ? leaf : node;
  }
  if (const auto found = done_[level].find(node); found != done_[level].end()) return found->second;
  std::vector<Edge> changed;
  bool same = true;
  const std::vector<Edge>& old = *nodes_[node];
  for (const Edge& edge : old) {
    const Sets::Id inside = sets_.both(edge.values, box[level]);
    const Node to = inside == Sets::empty ? edge.to : with(edge.to, level + 1, box, leaf);
    if (to == edge.to) {
      changed.push_back(edge);
      continue;
    }
    same = false;
    changed.push_back({inside, to});
    changed.push_back({sets_.without(edge.values, inside), edge.to});
  }
  const Node made = same ? node : node_of(std::move(changed));
  done_[level].emplace(node, made);
  return made;
}

std::optional<Box> Diagrams::first_uncovered(Node root) {
  for (auto& level : done_) level.clear();  // here: what leads to nothing that is uncovered
  Box box{};
  if (!find(root, 0, box)) return {};
  return box;
}

bool Diagrams::find(Node node, std::size_t level, Box& box) {
  if (level == field_count) return node == uncovered;
  if (done_[level].contains(node)) return false;
  for (const Edge& edge : *nodes_[node]) {
    box[level] = edge.values;
    if (find(edge.to, level + 1, box)) return true;
  }
  done_[level].emplace(node, node);
  return false;
}

Diagrams::Node Diagrams::mapped(Node root, const std::function<Leaf(Leaf)>& change) {
  std::vector<std::unordered_map<Node, Node>> done(field_count);
  const std::function<Node(Node, std::size_t)> walk = [&](Node node, std::size_t level) -> Node {
    if (level == field_count) return change(node);
    if (const auto found = done[level].find(node); found != done[level].end()) return found->second;
    std::vector<Edge> changed;
    for (std::size_t i = 0; i < nodes_[node]->size(); ++i) {
      const Edge edge = (*nodes_[node])[i];
      changed.push_back({edge.values, walk(edge.to, level + 1)});
    }
    const Node made = node_of(std::move(changed));
    done[level].emplace(node, made);
    return made;
  };
  return walk(root, 0);
}

Diagrams::Node Diagrams::combined(Node a, Node b, const std::function<Leaf(Leaf, Leaf)>& combine) {
  std::vector<std::unordered_map<std::uint64_t, Node>> done(field_count);
  const std::function<Node(Node, Node, std::size_t)> walk = [&](Node one, Node other, std::size_t level) -> Node {
    if (level == field_count) return combine(one, other);
    const std::uint64_t key = std::uint64_t{one} << 32 | other;
    if (const auto found = done[level].find(key); found != done[level].end()) return found->second;
    std::vector<Edge> made;
    const std::vector<Edge>& of_one = *nodes_[one];
    const std::vector<Edge>& of_other = *nodes_[other];
    for (const Edge& left : of_one) {
      for (const Edge& right : of_other) {
        const Sets::Id values = sets_.both(left.values, right.values);
        if (values != Sets::empty) made.push_back({values, walk(left.to, right.to, level + 1)});
      }
    }
    const Node result = node_of(std::move(made));
    done[level].emplace(key, result);
    return result;
  };
  return walk(a, b, 0);
}

void Diagrams::for_each(Node root, const std::function<void(const Box&, Leaf)>& one) const {
  Box box{};
  each(root, 0, box, one);
}

void Diagrams::each(Node node, std::size_t level, Box& box, const std::function<void(const Box&, Leaf)>& one) const {
  if (level == field_count) return one(box, node);
  for (const Edge& edge : *nodes_[node]) {
    box[level] = edge.values;
    each(edge.to, level + 1, box, one);
  }
}

Leaf Diagrams::at(Node root, const Point& point) const {
  Node node = root;
  for (std::size_t level = 0; level < field_count; ++level) {
    node = std::ranges::find_if(*nodes_[node], [&](const Edge& edge) {
             return sets_.contains(edge.values, point[level]);
           })->to;
  }
  return node;
}

bool Diagrams::is_within(Node root, const Box& box, const std::function<bool(Leaf)>& passes) {
  std::vector<std::unordered_map<Node, bool>> done(field_count);
  const std::function<bool(Node, std::size_t)> walk = [&](Node node, std::size_t level) -> bool {
    if (level == field_count) return passes(node);
    if (const auto found = done[level].find(node); found != done[level].end()) return found->second;
    const bool result = std::ranges::all_of(*nodes_[node], [&](const Edge& edge) {
      return sets_.both(edge.values, box[level]) == Sets::empty || walk(edge.to, level + 1);
    });
    done[level].emplace(node, result);
    return result;
  };
  return walk(root, 0);
}

Sets::Id Diagrams::allowed(Node root, const Box& box, Field field, const std::function<bool(Leaf)>& passes) {
  std::vector<std::unordered_map<Node, bool>> within(field_count);
  std::vector<std::unordered_map<Node, Sets::Id>> values(field_count);
  const std::function<bool(Node, std::size_t)> below = [&](Node node, std::size_t level) -> bool {
    if (level == field_count) return passes(node);
    if (const auto found = within[level].find(node); found != within[level].end()) return found->second;
    const bool result = std::ranges::all_of(*nodes_[node], [&](const Edge& edge) {
      return sets_.both(edge.values, box[level]) == Sets::empty || below(edge.to, level + 1);
    });
    within[level].emplace(node, result);
    return result;
  };
  const std::function<Sets::Id(Node, std::size_t)> walk = [&](Node node, std::size_t level) -> Sets::Id {
    if (const auto found = values[level].find(node); found != values[level].end()) return found->second;
    std::optional<Sets::Id> result;
    for (const Edge& edge : *nodes_[node]) {
      if (level == index(field)) {
        if (below(edge.to, level + 1)) result = sets_.either(result.value_or(Sets::empty), edge.values);
      } else if (sets_.both(edge.values, box[level]) != Sets::empty) {
        const Sets::Id more = walk(edge.to, level + 1);
        result = result ? sets_.both(*result, more) : more;
      }
    }
    values[level].emplace(node, result.value_or(Sets::empty));
    return result.value_or(Sets::empty);
  };
  return walk(root, 0);
}

}  // namespace sidetrack::space
