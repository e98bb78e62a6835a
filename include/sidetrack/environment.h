// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace sidetrack {

// A variable of the environment by its name; nothing if it is not set. The text must live as long as the call that was
// given the function.
using Environment = std::function<std::optional<std::string_view>(std::string_view name)>;

// That of this process, by getenv(3): not while another thread changes it.
[[nodiscard]] std::optional<std::string_view> process_environment(std::string_view name);

}  // namespace sidetrack
