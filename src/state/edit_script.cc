// SPDX-License-Identifier: GPL-2.0-or-later
// E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986. Items of the first sequence are columns, those
// of the second rows; a path from (0, 0) removes by a step to the right, adds by a step down, and keeps by a diagonal
// one.
#include "state/edit_script.h"

#include <algorithm>

namespace sidetrack {
namespace {

using Number = std::ptrdiff_t;
constexpr Number most_changes = 1000;  // of a round
constexpr Number nowhere = -1;

// With a number of changes, the column that is furthest to the right on each diagonal: column - row, from -changes to
// changes in steps of two.
class Furthest {
 public:
  explicit Furthest(Number changes) : changes_(changes), columns_(static_cast<std::size_t>(changes + 1), nowhere) {}

  [[nodiscard]] Number on(Number diagonal) const {
    return std::abs(diagonal) > changes_ ? nowhere : columns_[static_cast<std::size_t>((diagonal + changes_) / 2)];
  }
  void set(Number diagonal, Number column) { columns_[static_cast<std::size_t>((diagonal + changes_) / 2)] = column; }

 private:
  Number changes_;
  std::vector<Number> columns_;
};

// From where the last change leads to, on this diagonal.
struct Step {
  Number column = nowhere;
  bool adds = false;
};

class Round {
 public:
  Round(Number columns, Number rows, std::function<bool(Number, Number)> same)
      : columns_(columns), rows_(rows), same_(std::move(same)) {}

  // The changes from (0, 0) to the end; or, if those are too many, to the point that is nearest to it.
  std::vector<Edit> script() {
    Number best_column = 0, best_row = 0;
    for (Number changes = 0;; ++changes) {
      Furthest& furthest = all_.emplace_back(changes);
      for (Number diagonal = -changes; diagonal <= changes; diagonal += 2) {
        Number column = changes == 0 ? 0 : step(changes, diagonal).column;
        if (column == nowhere) continue;
        while (column < columns_ && column - diagonal < rows_ && same_(column, column - diagonal)) ++column;
        furthest.set(diagonal, column);
        if (2 * column - diagonal < best_column + best_row) continue;
        best_column = column;
        best_row = column - diagonal;
      }
      const bool at_end = furthest.on(columns_ - rows_) == columns_;
      if (at_end || changes == most_changes) return path_to(best_column, best_row, changes);
    }
  }

 private:
  [[nodiscard]] Step step(Number changes, Number diagonal) const {
    const Furthest& before = all_[static_cast<std::size_t>(changes - 1)];
    const Number left = before.on(diagonal - 1), above = before.on(diagonal + 1);
    const bool can_remove = left != nowhere && left < columns_;
    const bool can_add = above != nowhere && above - diagonal <= rows_;
    if (can_add && (!can_remove || above > left)) return {above, true};
    return can_remove ? Step{left + 1, false} : Step{};
  }

  // Backwards. The point need not be one of the last changes: then it is reached by fewer.
  [[nodiscard]] std::vector<Edit> path_to(Number column, Number row, Number changes) const {
    while (changes > 0 && all_[static_cast<std::size_t>(changes)].on(column - row) != column) --changes;
    std::vector<Edit> script;
    const auto put = [&](Edit::Kind kind) {
      script.push_back({kind, static_cast<std::size_t>(column), static_cast<std::size_t>(row)});
    };
    for (; changes >= 0; --changes) {
      const Step last = changes == 0 ? Step{0, false} : step(changes, column - row);
      while (column > last.column) {
        --column, --row;
        put(Edit::Kind::same);
      }
      if (changes == 0) break;
      (last.adds ? row : column) -= 1;
      put(last.adds ? Edit::Kind::added : Edit::Kind::removed);
    }
    std::ranges::reverse(script);
    return script;
  }

  Number columns_;
  Number rows_;
  std::function<bool(Number, Number)> same_;
  std::vector<Furthest> all_;  // by the number of changes
};

}  // namespace

std::vector<Edit> edit_script(std::size_t before, std::size_t after,
                              const std::function<bool(std::size_t before, std::size_t after)>& same) {
  std::vector<Edit> all;
  std::size_t column = 0, row = 0;
  while (column < before || row < after) {
    Round round(static_cast<Number>(before - column), static_cast<Number>(after - row), [&](Number x, Number y) {
      return same(column + static_cast<std::size_t>(x), row + static_cast<std::size_t>(y));
    });
    const std::size_t from_column = column, from_row = row;
    for (Edit edit : round.script()) {
      edit.before += from_column;
      edit.after += from_row;
      all.push_back(edit);
      if (edit.kind != Edit::Kind::added) column = edit.before + 1;
      if (edit.kind != Edit::Kind::removed) row = edit.after + 1;
    }
  }
  return all;
}

}  // namespace sidetrack
