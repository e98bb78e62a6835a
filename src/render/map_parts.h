// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <vector>

#include "render/json_parts.h"
#include "render/map.h"
#include "render/picture_parts.h"
#include "space/regions.h"
#include "space/universe.h"

namespace sidetrack {

// The set's values, or ranges of them, as text: "10.0.0.0/8", "15000-15010", "eth0".
[[nodiscard]] std::vector<std::string> values_of(const space::Universe& universe, std::span<const space::Interval> set,
                                                 space::Field field, Family family);

// In the order in which people speak of them.
inline constexpr space::Field said_fields[] = {space::Field::destination, space::Field::destination_port,
                                               space::Field::source,      space::Field::source_port,
                                               space::Field::uid,         space::Field::gid,
                                               space::Field::cgroup,      space::Field::interface,
                                               space::Field::mark,        space::Field::state};
// "to 10.0.0.0/8", or "to any address but 10.0.0.0/8" where these are most.
[[nodiscard]] std::string field_words(space::Regions& regions, space::Field field, space::Sets::Id values,
                                      const space::Box& whole);
[[nodiscard]] bool is_most(const space::Sets& sets, space::Sets::Id values, space::Sets::Id whole);

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
  std::string forwarded_from;  // as space::Section
  std::string title;           // "outbound tcp", "forwarded tcp, from docker0"
  std::vector<MapRow> rows;    // the first: what the others do not say
};
// `left_out`: whether there is more that the kernel itself does not deliver.
[[nodiscard]] std::vector<MapSection> map_sections(space::Regions& regions, std::size_t side, const MapOptions& options,
                                                   bool& left_out);

// The packets of a box of one way and family: each field that does not have all of its values.
[[nodiscard]] Json box_json(space::Regions& regions, const space::Box& box);

}  // namespace sidetrack
