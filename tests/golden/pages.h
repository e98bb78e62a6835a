// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>

namespace sidetrack {

// The documentation that the program's own tables make: the drawings, and the pages in whole, with what stands between
// marks such as <!-- options --> and <!-- /options --> made anew. By path from the top of the source.
[[nodiscard]] std::map<std::string, std::string> pages();

}  // namespace sidetrack
