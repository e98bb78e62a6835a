// SPDX-License-Identifier: GPL-2.0-or-later
// All packets, parted by their fields: an ordered decision diagram whose edges are sets of values. A field that makes
// no difference has no node. Equal parts are one node, so that two diagrams of one universe say the same if and only if
// they have the same root.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/error.h"
#include "space/blocks.h"
#include "space/interval_set.h"
#include "space/memo.h"
#include "space/number_table.h"
#include "space/universe.h"

namespace sidetrack::space {

using Leaf = std::uint32_t;
inline constexpr Leaf uncovered = 0;  // nothing is known of it yet

// Thrown if the rules part traffic into more regions than there is room for, or time.
class TooManyRegions : public Error {
 public:
  using Error::Error;
};
inline constexpr std::size_t most_bytes = 512U << 20;  // of diagrams and sets
[[noreturn]] void refuse_more_regions();

class Diagrams {
 public:
  using Node = std::uint32_t;

  struct Edge {
    Sets::Id values = Sets::empty;
    Node to = 0;
    friend bool operator==(const Edge&, const Edge&) = default;
  };

  Diagrams(const Universe& universe, Sets& sets) : universe_(universe), sets_(sets) {}

  // Where every packet has this leaf.
  [[nodiscard]] static Node whole(Leaf leaf) { return leaf | is_leaf_bit; }
  [[nodiscard]] static Node nothing() { return whole(uncovered); }
  [[nodiscard]] static bool is_leaf(Node node) { return (node & is_leaf_bit) != 0; }
  [[nodiscard]] static constexpr Leaf leaf(Node node) { return node & ~is_leaf_bit; }
  // All values of the field in packets of that family.
  [[nodiscard]] Sets::Id domain(std::size_t level, Family family);
  // By the values of one field: edges that have all of them, each once.
  [[nodiscard]] Node of_edges(Field field, const std::vector<Edge>& edges) {
    scratch_.insert(scratch_.end(), edges.begin(), edges.end());
    return node_of(index(field), scratch_.size() - edges.size());
  }
  // The one in the box, of one family, and the other outside.
  [[nodiscard]] Node of_box(const Box& box, Node inside, Node outside);

  // With what the other one has, changed, wherever the box is uncovered.
  [[nodiscard]] Node with(Node root, const Box& box, Node other, const std::function<Leaf(Leaf)>& change);
  [[nodiscard]] Node with(Node root, const Box& box, Leaf leaf) {
    return with(root, box, whole(leaf), [](Leaf same) { return same; });
  }

  // What a part of all packets goes on to: where `inside` is yes, those of `by` with these leaves.
  static constexpr Leaf no = 0;
  static constexpr Leaf yes = 1;
  struct Part {
    Node inside;
    Node other;
  };
  // By leaves of `by`, in order; those that are missing are in none.
  using PartOf = std::vector<std::pair<Leaf, std::uint32_t>>;
  // Returns where the leaf is, or belongs.
  [[nodiscard]] static PartOf::const_iterator place_in(const PartOf& part_of, Leaf leaf);
  struct Change {
    std::function<Leaf(Leaf by, Leaf other)> of;
    std::function<bool(Leaf by)> keeps;  // each leaf of the other as it is
  };
  // With what `other` of its part has, changed, wherever nothing is known: one diagram after another.
  [[nodiscard]] Node after(Node known, Node by, std::span<const Part> parts, const PartOf& part_of,
                           const Change& change);
  // The packets of the region, of one family, by their part: yes, no. Parts without any are `whole(no)`.
  [[nodiscard]] std::vector<Node> split(Node region, Node by, std::span<const Part> parts, const PartOf& part_of,
                                        Family family);
  // A box of packets of the region that are uncovered, for each leaf of `by` that has any, within `whole`.
  [[nodiscard]] std::map<Leaf, Box> open_by(Node root, Node region, Node by, const Box& whole);
  // A box of uncovered packets within the box; nothing if there are none.
  [[nodiscard]] std::optional<Box> first_uncovered(Node root, const Box& within);

  // With each leaf changed.
  [[nodiscard]] Node mapped(Node root, const std::function<Leaf(Leaf)>& change);
  // The two laid over each other.
  [[nodiscard]] Node combined(Node a, Node b, const std::function<Leaf(Leaf, Leaf)>& combine);
  // Combine sets of packets: yes says that a packet is in one, no that it is not.
  [[nodiscard]] Node all_of(Node a, Node b);
  [[nodiscard]] Node any_of(Node a, Node b);
  [[nodiscard]] Node any_of(std::span<const Node> all);
  [[nodiscard]] Node without(Node set, Node part);
  // The packets that are in the set with any values in these fields.
  [[nodiscard]] Node with_any_of(Node set, std::span<const Field> fields);
  // Returns the diagram with nothing known of packets outside the set.
  [[nodiscard]] Node within(Node set, Node root);
  // Returns the first one, and the other wherever that is uncovered.
  [[nodiscard]] Node overlaid(Node first, Node then);
  // Each part of the box once, as disjoint boxes.
  void for_each(Node root, const Box& within, const std::function<void(const Box&, Leaf)>& one);
  [[nodiscard]] Leaf at(Node root, const Point& point) const;
  [[nodiscard]] std::vector<Leaf> leaves(Node root) const;
  // Whether nothing but leaves that pass is in the box.
  [[nodiscard]] bool is_within(Node root, const Box& box, const std::function<bool(Leaf)>& passes);
  // The values that the field may have, with the others as in the box, for nothing but leaves that pass.
  [[nodiscard]] Sets::Id allowed(Node root, const Box& box, Field field, const std::function<bool(Leaf)>& passes);

  [[nodiscard]] std::span<const Edge> edges(Node node) const { return nodes_[node].edges(); }
  [[nodiscard]] std::size_t level(Node node) const { return is_leaf(node) ? field_count : nodes_[node].level; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::size_t bytes() const {
    return edges_.bytes() + bytes_of_pieces_ + nodes_.size() * (sizeof(Inner) + 2 * sizeof(Node));
  }

 private:
  static constexpr Node is_leaf_bit = 1U << 31;

  static constexpr std::uint32_t most_edges = (1U << 28) - 1;  // of a node: more than there is room for
  struct Inner {                                               // there are millions
    const Edge* first;
    std::uint32_t hash;
    std::uint32_t count : 28;
    std::uint32_t level : 4;
    static_assert(field_count < 1U << 4);
    [[nodiscard]] std::span<const Edge> edges() const { return {first, count}; }
  };
  class Walk;

  // Of the edges above `base` in scratch_, which are taken away; those to one node are joined.
  Node node_of(std::size_t level, std::size_t base);
  // `stop` returns what becomes of all below two nodes where that is known without looking at it.
  template <typename Stop, typename Combine>
  Node combined_until(Node a, Node b, const Stop& stop, const Combine& combine);
  bool is_within_below(Node node, const Box& box, const std::function<bool(Leaf)>& passes);
  // Returns whether `is` says yes of each edge that has one of these values. Some edges may be asked more than once.
  template <typename Is>
  bool all_with(Node node, Sets::Id values, const Is& is);

  struct Piece {
    Interval interval;
    const Edge* edge;
  };
  const std::vector<Piece>& pieces_of(Node node);

  const Universe& universe_;
  Sets& sets_;
  std::vector<Inner> nodes_;
  NumberTable table_;  // of the nodes
  Blocks<Edge> edges_;
  std::size_t bytes_of_pieces_ = 0;
  std::vector<Edge> scratch_;  // of nodes that are being made
  std::vector<Sets::Id> joined_;
  Memo done_;                                            // of one call
  Memo values_;                                          // of one call of allowed()
  std::unordered_map<Node, std::vector<Piece>> pieces_;  // of nodes with many edges: their values in order
  Sets::Id domains_[2][field_count]{};
};

}  // namespace sidetrack::space
