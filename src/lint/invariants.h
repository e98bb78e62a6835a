// SPDX-License-Identifier: GPL-2.0-or-later
// What a plan promises, as sets of packets and how each of them has to end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lint/finding.h"
#include "mesh/plan.h"
#include "model/config.h"
#include "space/regions.h"

namespace sidetrack::lint {

// Who the proxy is, and where it listens.
struct Proxy {
  bool is_ztunnel = false;               // of an ambient pod: its sockets have a mark, and any owner
  Families rules_in = Families::both();  // ztunnel's
  std::vector<IdRange> uids;
  std::vector<IdRange> gids;
  std::vector<std::uint16_t> outbound_ports;  // of listeners for what the app sends
  std::vector<std::uint16_t> inbound_ports;
};
[[nodiscard]] Proxy proxy_of(const Config& config);

// Every packet of the box has to end so.
struct Invariant {
  Code code{};        // of the finding if one does not
  std::string about;  // "outbound tcp, IPv4"
  std::string asked;  // what was asked for, and by which option: "-i '*' captures it"
  std::string remedy;
  space::Box box{};
  std::function<bool(const space::Ending&, const space::Box&)> kept;
};

// Packets that violate one: they all end alike, by one decision.
struct Violation {
  const Invariant* invariant = nullptr;
  space::Box box{};
  space::Leaf leaf = 0;
  double share = 0;      // of the invariant's packets
  bool is_known = true;  // false: they may break it
};

// Of the options: the proxy's own traffic leaves and does not come back to it, and what is asked for is captured. In
// that pod, which has the interfaces of `regions`.
[[nodiscard]] std::vector<Invariant> invariants(space::Regions& regions, const PodView& pod, const Config& config,
                                                const Plan& plan);
// Of rules alone, whatever they were asked by: the proxy's traffic.
[[nodiscard]] std::vector<Invariant> invariants_of_proxy(space::Regions& regions, const PodView& pod,
                                                         const Proxy& proxy, Families families);

// `root`: a diagram that has all packets of the invariants. The largest part first, one of each decision.
[[nodiscard]] std::vector<Violation> violations(space::Regions& regions, space::Regions::Node root,
                                                const std::vector<Invariant>& invariants);
// With a packet of which explain() says the same; nothing if it does not.
[[nodiscard]] std::optional<Finding> finding_of(space::Regions& regions, const Violation& broken);

// Whether it lands on one of these ports of the proxy; the box has the packets.
[[nodiscard]] bool is_taken(const space::Ending& ending, const space::Box& box, const std::vector<std::uint16_t>& ports,
                            const space::Sets& sets);

}  // namespace sidetrack::lint
