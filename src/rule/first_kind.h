// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <type_traits>
#include <variant>

namespace sidetrack {

// Returns what the first kind of the variant reads that reads anything, in their order. `read` is called for one kind
// after the other, as read(std::type_identity<Kind>()), and returns an optional.
template <typename... Kinds, typename Read>
auto first_kind(std::type_identity<std::variant<Kinds...>>, const Read& read) {
  std::common_type_t<decltype(read(std::type_identity<Kinds>()))...> found;
  static_cast<void>(((found = read(std::type_identity<Kinds>())) || ...));
  return found;
}

}  // namespace sidetrack
