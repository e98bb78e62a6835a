// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string_view>

namespace sidetrack::host {

// What stands for the id of that name in the text of a passwd(5) or group(5) file, NAME:PASSWORD:ID:…: it may be no
// number. Nothing if the name is not there.
[[nodiscard]] std::optional<std::string_view> id_of(std::string_view name, std::string_view database);

}  // namespace sidetrack::host
