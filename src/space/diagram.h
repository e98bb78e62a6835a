// SPDX-License-Identifier: GPL-2.0-or-later
// All packets, parted by their fields: an ordered decision diagram whose edges are sets of values. Equal parts of it
// are one node, so that two diagrams of one universe say the same if and only if they have the same root.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "space/interval_set.h"
#include "space/universe.h"

namespace sidetrack::space {

using Leaf = std::uint32_t;
inline constexpr Leaf uncovered = 0;  // nothing is known of it yet

class Diagrams {
 public:
  using Node = std::uint32_t;  // a leaf below the last field

  struct Edge {
    Sets::Id values = Sets::empty;
    Node to = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };

  Diagrams(const Universe& universe, Sets& sets);

  [[nodiscard]] Node nothing() const { return nothing_; }  // where every packet is uncovered
  // With the leaf wherever the box is uncovered.
  [[nodiscard]] Node with(Node root, const Box& box, Leaf leaf);
  // A box of uncovered packets; nothing if there are none.
  [[nodiscard]] std::optional<Box> first_uncovered(Node root);
  // With each leaf changed.
  [[nodiscard]] Node mapped(Node root, const std::function<Leaf(Leaf)>& change);
  // The two laid over each other.
  [[nodiscard]] Node combined(Node a, Node b, const std::function<Leaf(Leaf, Leaf)>& combine);
  // Each part once, as disjoint boxes.
  void for_each(Node root, const std::function<void(const Box&, Leaf)>& one) const;
  [[nodiscard]] Leaf at(Node root, const Point& point) const;
  // Whether nothing but leaves that pass is in the box.
  [[nodiscard]] bool is_within(Node root, const Box& box, const std::function<bool(Leaf)>& passes);
  // The values that the field may have, with the others as in the box, for nothing but leaves that pass.
  [[nodiscard]] Sets::Id allowed(Node root, const Box& box, Field field, const std::function<bool(Leaf)>& passes);

  [[nodiscard]] const std::vector<Edge>& edges(Node node) const { return *nodes_[node]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  // How often with() met another leaf than it was given: cells that overlap have to agree.
  [[nodiscard]] std::size_t conflicts() const { return conflicts_; }

 private:
  Node node_of(std::vector<Edge> edges);  // those to one node are joined
  Node with(Node node, std::size_t level, const Box& box, Leaf leaf);
  bool find(Node node, std::size_t level, Box& box);
  void each(Node node, std::size_t level, Box& box, const std::function<void(const Box&, Leaf)>& one) const;

  const Universe& universe_;
  Sets& sets_;
  std::vector<const std::vector<Edge>*> nodes_;
  std::unordered_multimap<std::size_t, std::pair<std::vector<Edge>, Node>> ids_;
  std::vector<std::unordered_map<Node, Node>> done_;  // of one call of with(), by level
  Node nothing_ = 0;
  std::size_t conflicts_ = 0;
};

}  // namespace sidetrack::space
