// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "probe/endpoint.h"

namespace sidetrack::probe {

// How a packet leaves for a destination, if nothing else is asked for.
struct Route {
  std::string interface;  // empty if there is none
  Address source;         // the one that the kernel chooses
};
[[nodiscard]] Route route_to(const Endpoint& to);

// Whether it is an address of this pod.
[[nodiscard]] bool is_own(const Address& address);

}  // namespace sidetrack::probe
