// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/witness.h"

#include "model/error.h"
#include "walk/explain.h"

namespace sidetrack::space {

std::optional<Packet> witness(const Regions& regions, std::size_t side, const Point& point, const Ending& ending) {
  const Packet packet = regions.universe().packet(point);
  const auto asked = as_asked(packet);
  if (!asked) return std::nullopt;
  try {
    const Side& of = regions.side(side);
    Possibility alone;
    alone.trace = explain(*asked, of.pod, of.live);
    const Ending explained = ending_of({alone});
    const bool is_unknown = ending.kind == Outcome::Kind::unknown && explained.kind == Outcome::Kind::unknown;
    return is_unknown || explained == ending ? asked : std::nullopt;
  } catch (const Error&) {  // there is no such packet
    return std::nullopt;
  }
}

std::optional<Packet> witness(const Regions& regions, std::size_t side, const Box& box, const Ending& ending) {
  return witness(regions, side, regions.example(box), ending);
}

}  // namespace sidetrack::space
