// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sidetrack::host {

// From the text of a passwd(5) or group(5) file. Nothing if the name is not there.
[[nodiscard]] std::optional<std::uint32_t> uid_of(const std::string& user, std::string passwd);
[[nodiscard]] std::optional<std::uint32_t> gid_of(const std::string& name, std::string group);

}  // namespace sidetrack::host
