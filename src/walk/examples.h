// SPDX-License-Identifier: GPL-2.0-or-later
// Packets for which rules hold, with values that the pod can send or receive. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/packet.h"
#include "pod/pod_view.h"
#include "rule/ruleset.h"

namespace sidetrack {

// What is asked of a packet: by a rule, and by the jumps that lead to its chain.
using Conditions = std::vector<const Match*>;

class AskedValues;

class Examples {
 public:
  // `plan`: of packets that it leaves alone for one of their values there are others, with values next to that.
  Examples(const PodView& pod, const Ruleset& plan);

  // Packets for which the conditions hold, as far as the sender chooses what they ask for: the first one with usual
  // values, each other one with one value that differs. Empty: the pod has no such packets.
  [[nodiscard]] std::vector<Packet> of(const Conditions& conditions, Direction direction, Family family) const;

 private:
  [[nodiscard]] bool can_be_destination(const Address& address, Direction direction) const;
  [[nodiscard]] bool can_be_source(const Address& address, Direction direction) const;
  [[nodiscard]] bool has_way_to(const Address& address) const;
  [[nodiscard]] std::vector<Address> hosts() const;
  [[nodiscard]] std::vector<Address> usual_destinations(Direction direction, const AskedValues& of_plan) const;
  [[nodiscard]] std::vector<Address> usual_sources(Direction direction, const Ruleset& plan) const;
  [[nodiscard]] std::vector<Address> destinations(const AskedValues& asked, Direction direction, Family family) const;
  [[nodiscard]] std::vector<std::optional<Address>> sources(const AskedValues& asked, Direction direction,
                                                            Family family) const;
  [[nodiscard]] std::optional<std::string> entrance(const AskedValues& asked, Direction direction) const;

  const PodView& pod_;
  std::vector<Address> to_[3];        // by direction, of both families
  std::vector<Address> from_[3];      // likewise
  std::vector<std::uint16_t> ports_;  // next to those that the plan names
  std::vector<std::uint32_t> uids_;
  std::vector<std::uint32_t> gids_;
  std::vector<std::uint32_t> marks_;
};

}  // namespace sidetrack
