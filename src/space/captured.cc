// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/captured.h"

#include <map>
#include <set>
#include <utility>

namespace sidetrack::space {
namespace {

bool is_captured(const Ending& ending) {
  return ending.kind == Outcome::Kind::lands && (ending.translated || ending.transparent);
}

// What others say of answers to well-known ports is about servers: it does not matter for clients.
bool differ_by_answers(Ending a, const Ending& b) {
  a.answers = b.answers;
  return a == b;
}

}  // namespace

std::optional<std::vector<Packet>> captured_otherwise(Side planned, Side there, Scope scope, std::size_t most) {
  std::vector<Side> sides;
  sides.push_back(std::move(planned));
  sides.push_back(std::move(there));
  Regions regions(std::move(sides), most);
  std::vector<Packet> found;
  try {
    std::vector<Box> captured;
    const Regions::Node plan = regions.of(0, scope);
    regions.for_each(plan, [&](const Box& box, const Box&, Leaf leaf) {
      if (leaf != no_such_packet && is_captured(regions.decision(leaf).ending)) captured.push_back(box);
    });
    const Regions::Node live = regions.of(1, captured);
    std::map<std::pair<Leaf, Leaf>, Leaf> kinds;
    const Regions::Node both = regions.diagrams().combined(plan, live, [&](Leaf a, Leaf b) {
      if (b == no_such_packet || regions.by_ending(a) == regions.by_ending(b)) return no_such_packet;
      const auto next = static_cast<Leaf>(no_such_packet + 1 + kinds.size());
      return kinds.try_emplace({regions.by_ending(a), regions.by_ending(b)}, next).first->second;
    });
    std::map<Leaf, bool> by_answers;
    for (const auto& [pair, leaf] : kinds)
      by_answers[leaf] = differ_by_answers(regions.decision(pair.first).ending, regions.decision(pair.second).ending);
    const Sets::Id client_ports = regions.client_ports(regions.side(1).pod);
    std::set<Leaf> seen;
    regions.for_each(both, [&](Box box, const Box&, Leaf leaf) {
      if (leaf == no_such_packet || seen.contains(leaf)) return;
      Sets::Id& ports = box[index(Field::source_port)];
      if (by_answers.at(leaf)) ports = regions.sets().intersection(ports, client_ports);
      if (ports == Sets::empty) return;
      seen.insert(leaf);
      found.push_back(regions.universe().packet(regions.example(box)));
    });
  } catch (const TooManyRegions&) {
    return std::nullopt;
  }
  return found;
}

}  // namespace sidetrack::space
