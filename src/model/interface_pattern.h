// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace sidetrack {

// Whether a rule's name of an interface, as iptables has it, is that of this one: net+ is every name that begins so.
[[nodiscard]] constexpr bool matches_interface(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('+')) return name == pattern;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

}  // namespace sidetrack
