// SPDX-License-Identifier: GPL-2.0-or-later
// All packets, parted by their fields: an ordered decision diagram whose edges are sets of values. Equal parts of it
// are one node, so that two diagrams of one universe say the same if and only if they have the same root.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "space/interval_set.h"
#include "space/memo.h"
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
  [[nodiscard]] Node whole(Leaf leaf);                     // where every packet has it
  // With what the other one has, changed, wherever the box is uncovered.
  [[nodiscard]] Node with(Node root, const Box& box, Node other, const std::function<Leaf(Leaf)>& change);
  [[nodiscard]] Node with(Node root, const Box& box, Leaf leaf) {
    return with(root, box, whole(leaf), [](Leaf same) { return same; });
  }
  // A box of uncovered packets within the box; nothing if there are none.
  [[nodiscard]] std::optional<Box> first_uncovered(Node root, const Box& within);
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

  [[nodiscard]] std::span<const Edge> edges(Node node) const { return nodes_[node].edges; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_ + nodes_.size() * (sizeof(Inner) + 2 * sizeof(Node)); }
  // How often with() met another leaf than it was given: cells that overlap have to agree.
  [[nodiscard]] std::size_t conflicts() const { return conflicts_; }

 private:
  struct Inner {
    std::span<const Edge> edges;
    std::size_t level;
    std::size_t hash;
  };
  struct Overlay;

  // Of the edges above `base` in scratch_, which are taken away; those to one node are joined.
  Node node_of(std::size_t level, std::size_t base);
  std::span<const Edge> kept(std::span<const Edge> edges);
  void grow_table();
  Node with(Node node, Node other, std::size_t level, const Overlay& overlay);
  bool with_few(std::span<const Edge> before, std::span<const Edge> more, std::size_t level, const Overlay& overlay);
  bool with_many(std::span<const Edge> before, std::span<const Edge> more, std::size_t level, const Overlay& overlay);
  bool find_uncovered(Node node, std::size_t level, const Box& within, Box& box);
  bool is_within(Node node, std::size_t level, const Box& box, const std::function<bool(Leaf)>& passes);
  void each(Node node, std::size_t level, Box& box, const std::function<void(const Box&, Leaf)>& one) const;

  const Universe& universe_;
  Sets& sets_;
  std::vector<Inner> nodes_;
  std::vector<Node> table_;                      // by hash: the node's number and one; 0: free
  std::vector<std::unique_ptr<Edge[]>> blocks_;  // where edges are kept
  Edge* end_of_block_ = nullptr;
  std::size_t free_in_block_ = 0;
  std::size_t bytes_ = 0;      // of the blocks
  std::vector<Edge> scratch_;  // of nodes that are being made
  std::vector<Sets::Id> joined_;
  Memo done_;    // of one call
  Memo values_;  // of one call of allowed()
  Memo whole_;   // by leaf
  Node nothing_ = 0;
  std::size_t conflicts_ = 0;
};

}  // namespace sidetrack::space
