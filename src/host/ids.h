// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sidetrack::host {

// From a passwd(5) or group(5) file. Nothing if the name, or the file, is not there.
[[nodiscard]] std::optional<std::uint32_t> uid_of(const std::string& user, const std::string& passwd);
[[nodiscard]] std::optional<std::uint32_t> gid_of(const std::string& group, const std::string& path);

}  // namespace sidetrack::host
