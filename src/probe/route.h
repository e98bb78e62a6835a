// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "probe/endpoint.h"

namespace sidetrack::probe {

// The interface that leads there; empty if there is no route.
[[nodiscard]] std::string interface_to(const Endpoint& to);

// Whether it is an address of this pod.
[[nodiscard]] bool is_own(const Address& address);

}  // namespace sidetrack::probe
