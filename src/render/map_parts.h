// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "render/json_parts.h"
#include "render/map.h"
#include "render/picture_parts.h"
#include "space/regions.h"
#include "space/universe.h"

namespace sidetrack {

// The set's values, or ranges of them, as text: "10.0.0.0/8", "15000-15010", "eth0".
[[nodiscard]] std::vector<std::string> values_of(const space::Universe& universe, const space::Intervals& set,
                                                 space::Field field, Family family);

// Packets that end alike.
struct MapRow {
  std::string words;  // "to port 22, 9001"
  std::string end;    // "leaves untouched, by eth0"
  std::string why;    // "-o 22,9001"
  Fate fate{};
  friend bool operator==(const MapRow&, const MapRow&) = default;
};

// Of one way: of protocols and families whose rows are the same.
struct MapSection {
  Direction way{};
  std::vector<std::string> protocols;
  Families families;
  std::string title;         // "outbound tcp"
  std::vector<MapRow> rows;  // the first: what the others do not say
};
// `left_out`: whether there is more that the kernel itself does not deliver.
[[nodiscard]] std::vector<MapSection> map_sections(space::Regions& regions, std::size_t side, const MapOptions& options,
                                                   bool& left_out);

// The packets of a box of one way and family: each field that does not have all of its values.
[[nodiscard]] Json box_json(space::Regions& regions, const space::Box& box);

}  // namespace sidetrack
