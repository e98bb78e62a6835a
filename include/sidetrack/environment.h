// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace sidetrack {

// Returns the value of a variable of the environment by its name; nothing if it is not set. The text that the value
// points to must not change before the call that was given the function returns: nothing is kept longer.
using Environment = std::function<std::optional<std::string_view>(std::string_view name)>;

// Returns the value in the environment of this process. The text is getenv(3)'s: it must not be asked, or held on to,
// while another thread changes the environment.
[[nodiscard]] std::optional<std::string_view> process_environment(std::string_view name);

}  // namespace sidetrack
