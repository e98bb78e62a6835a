// SPDX-License-Identifier: GPL-2.0-or-later
// Sets of numbers, and one copy of each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "space/blocks.h"
#include "space/memo.h"
#include "space/number_table.h"

namespace sidetrack::space {

__extension__ typedef unsigned __int128 Value;  // of any field; an IPv6 address needs all of it

struct Interval {
  Value first = 0;
  Value last = 0;  // included
  friend bool operator==(const Interval&, const Interval&) = default;
};
using Intervals = std::vector<Interval>;  // sorted, apart from each other by one value at least

[[nodiscard]] Intervals normal(Intervals any);  // of any intervals, their union

// Sets have numbers here: equal sets have equal ones, and what was worked out once is looked up.
class Sets {
 public:
  using Id = std::uint32_t;
  static constexpr Id empty = 0;

  Sets();
  Id of(std::span<const Interval> normal);
  Id of(std::initializer_list<Interval> normal) { return of(std::span(normal.begin(), normal.size())); }
  Id single(Value value) { return of({{value, value}}); }
  [[nodiscard]] std::span<const Interval> intervals(Id set) const { return sets_[set]; }
  [[nodiscard]] Value lowest(Id set) const { return hulls_[set].all.first; }  // of one that is not empty
  // From the lowest value to the highest, of one that is not empty.
  [[nodiscard]] const Interval& hull(Id set) const { return hulls_[set].all; }

  Id intersection(Id a, Id b);  // what is in both
  Id difference(Id a, Id b);    // what is in a alone
  Id set_union(Id a, Id b);     // what is in one of them

  [[nodiscard]] bool contains(Id set, Value value) const;
  [[nodiscard]] bool is_within(Id part, Id whole) const;
  [[nodiscard]] bool meet(Id a, Id b) const;  // whether they have a value in common

  // The same with many at once, which makes no set for each.
  Id difference(Id a, std::span<const Id> all);
  Id set_union(std::span<const Id> all);

  struct Common {
    std::uint32_t left;  // which of the first list
    std::uint32_t right;
    Id values;  // what these two have in common: not empty
  };
  // The sets of one list, which have nothing in common with each other, with those of another such list; in the order
  // of the first, then of the second.
  [[nodiscard]] std::vector<Common> in_common(std::span<const Id> left, std::span<const Id> right);

  // Of the values of `whole`, how many are in `part`, too.
  [[nodiscard]] double share(Id part, Id whole) const;

  [[nodiscard]] std::size_t bytes() const { return kept_.bytes() + sets_.size() * bytes_of_a_set; }  // what they take

 private:
  enum class Operation : std::uint8_t { intersection, difference, set_union };
  Id worked_out(Operation operation, Id a, Id b);
  [[nodiscard]] Intervals together(std::span<const Id> all) const;

  // From the lowest value to the highest: answers most questions without looking at the intervals.
  struct Hull {
    Interval all{1, 0};
    bool is_full = false;  // the set has all of it
  };

  static constexpr std::size_t bytes_of_a_set =
      sizeof(std::span<const Interval>) + sizeof(Hull) + sizeof(double) + sizeof(std::uint32_t) + 2 * sizeof(Id);

  Blocks<Interval> kept_;
  std::vector<std::span<const Interval>> sets_;
  std::vector<Hull> hulls_;            // of the sets
  std::vector<double> sizes_;          // of the sets: how many values they have
  std::vector<std::uint32_t> hashes_;  // of the sets
  NumberTable table_;                  // of the sets
  Intervals scratch_;                  // a set that is being made
  Memo results_[3];                    // by operation, then by both operands
};

}  // namespace sidetrack::space
