// SPDX-License-Identifier: GPL-2.0-or-later
// The words of a command line.
#pragma once

#include <string>
#include <vector>

namespace sidetrack::netns {

using Words = std::vector<std::string>;

[[nodiscard]] inline Words operator+(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace sidetrack::netns
