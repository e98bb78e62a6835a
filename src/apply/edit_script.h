// SPDX-License-Identifier: GPL-2.0-or-later
// The fewest changes that make one sequence into another, as diff(1) finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace sidetrack {

struct Edit {
  enum class Kind : std::uint8_t { same, removed, added };
  Kind kind;
  std::size_t before;  // where in the first sequence; of what is added, before what
  std::size_t after;   // where in the second one; of what is removed, before what
  friend bool operator==(const Edit&, const Edit&) = default;
};

// Of sequences of these sizes, from first to last. `same` says whether an item of the first is one of the second. Of
// more than a thousand changes the result may not be the shortest: memory grows by the square of their number.
[[nodiscard]] std::vector<Edit> edit_script(std::size_t before, std::size_t after,
                                            const std::function<bool(std::size_t before, std::size_t after)>& same);

}  // namespace sidetrack
