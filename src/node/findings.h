// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"

namespace sidetrack::cni {

enum class PodState : std::uint8_t {
  as_recorded,
  repaired,      // it was not, and is now
  differs,       // from what is recorded
  not_recorded,  // the plugin was not asked about it
  gone,          // recorded; its network namespace is not there any more
  unknown,       // it cannot be read, or not in time
};
// In the order of the states.
inline constexpr std::string_view state_names[] = {"as_recorded",  "repaired", "differs",
                                                   "not_recorded", "gone",     "unknown"};
[[nodiscard]] constexpr std::string_view name(PodState state) { return state_names[static_cast<std::size_t>(state)]; }

// What was found in a pod. Text from the pod is as it is: not printable.
struct Findings {
  std::vector<std::string> backends{};  // that hold rules of ours
  std::vector<std::string> meshes{};    // others that have rules there: "Linkerd"
  std::string captured{};               // in words; empty: nothing, or not known
  std::vector<Address> addresses{};     // of its interfaces, but those that are its own affair: of lo, link-local ones
  bool ambient = false;                 // it has the rules of a pod in ambient mode, whichever program made them
  PodState state = PodState::unknown;
  std::string detail{};  // what differs, was repaired or cannot be read
  friend bool operator==(const Findings&, const Findings&) = default;
};

// As the process that looked at a pod, and may have been taken over by it, tells them to the one that sent it: nothing
// but a text that text_of() makes is understood, and that entirely.
[[nodiscard]] std::string text_of(const Findings& findings);
[[nodiscard]] std::optional<Findings> findings_of(std::string_view text);

}  // namespace sidetrack::cni
