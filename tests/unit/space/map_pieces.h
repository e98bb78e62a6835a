// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "render/map.h"

namespace sidetrack::test {

// All pieces of the map as JSON.
inline std::string map_json(space::Regions& regions, std::size_t side, const MapOptions& options) {
  std::string text;
  write_map_json(regions, side, options, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace sidetrack::test
