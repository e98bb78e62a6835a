// SPDX-License-Identifier: GPL-2.0-or-later
// What a namespace holds beside rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/config.h"
#include "pod/pod_view.h"
#include "pod/routing.h"

namespace sidetrack {

// Says whose the rules and routes of an ambient pod are that the agents of Istio and Cilium made; those that Sidetrack
// made are ours.
enum class AgentRules : std::uint8_t { foreign, ours };
[[nodiscard]] constexpr AgentRules agent_rules_of(const Config& config) {
  return config.dataplane == Dataplane::ambient ? AgentRules::ours : AgentRules::foreign;
}

// Policy rules, routes and addresses, over rtnetlink. Ours are tagged by their protocol number.
class Routes {
 public:
  virtual ~Routes() = default;
  struct State {
    Routing ours;    // each as often as it is there
    Routing others;  // what another program made, just as a plan would ask for it and where it has its effect
    bool unusual =
        false;  // what others made of policy rules, routes and lo may keep packets from where the rules send them
  };
  // Takes the policy rule of this mark, and its route, for Istio's from now on: Istio's own rules set it.
  virtual void claim(std::uint32_t mark) = 0;
  [[nodiscard]] virtual State read() = 0;
  // As read_pod(), by the same socket.
  [[nodiscard]] virtual PodView pod() = 0;
  // What is there already, or comes meanwhile, is left alone. All is undone again if one fails. Returns what it added.
  virtual Routing add(const Routing& wanted) = 0;
  virtual void remove(const Routing& unwanted) = 0;  // what is gone already is no error
};
[[nodiscard]] std::unique_ptr<Routes> open_routes(AgentRules agent_rules = AgentRules::foreign);
// By a socket that can read, and never write: it is opened without capabilities.
[[nodiscard]] std::unique_ptr<Routes> open_routes_to_read(AgentRules agent_rules = AgentRules::foreign);

// The network namespace that this process is in. Throws Error (failed) if the kernel refuses the listing.
[[nodiscard]] PodView read_pod();

// A sentence if the settings below /proc/sys/net, of which PodView has some, cannot be read; empty if they can.
[[nodiscard]] std::string settings_problem();

}  // namespace sidetrack
