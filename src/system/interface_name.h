// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sidetrack {

// That of the interface with this number, in the network namespace of the calling thread; nothing if there is none.
// As if_indextoname(3), by a socket that every sandbox that reads rules allows.
[[nodiscard]] std::optional<std::string> interface_name(std::uint32_t number);

}  // namespace sidetrack
