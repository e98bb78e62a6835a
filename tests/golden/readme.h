// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace sidetrack {

// README.md as it is, and with what the program's own tables give between the marks, as <!-- options --> and
// <!-- /options -->.
[[nodiscard]] std::string readme();
[[nodiscard]] std::string readme_as_generated();

}  // namespace sidetrack
