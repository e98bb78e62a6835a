// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of all traffic, as text and as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "space/cover.h"

namespace sidetrack {

struct MapOptions {
  Families families = Families::both();
  std::vector<Direction> ways{Direction::out, Direction::in, Direction::lo};
  bool forwarded = true;  // and what hosts behind the pod send to others
  bool color = false;
};

// A section for each way and protocol, a line for each part of it that does not end as the rest does.
[[nodiscard]] std::string map_text(space::Regions& regions, std::size_t side, const MapOptions& options);
// The same as a drawing: from each part an arrow to where it ends.
[[nodiscard]] std::string map_svg(space::Regions& regions, std::size_t side, const MapOptions& options);
// The exact regions, disjoint, in no order; in pieces, since they may be many.
void write_map_json(space::Regions& regions, std::size_t side, const MapOptions& options,
                    const std::function<void(std::string_view)>& write);

// "to 10.0.0.0/8; to port 22, 9001; sent by uid 1337": where the box is less than the whole one. Empty: it is all of
// it.
[[nodiscard]] std::string box_words(space::Regions& regions, const space::Box& box, const space::Box& whole);

}  // namespace sidetrack
