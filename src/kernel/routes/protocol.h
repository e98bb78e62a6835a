// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

namespace sidetrack::routes {

// Who made a policy rule or a route: FRA_PROTOCOL (kernel 4.17) and rtm_protocol. The kernel gives no meaning to
// numbers from 4 up. This one is in neither <linux/rtnetlink.h> nor iproute2's /etc/iproute2/rt_protos, nor among
// those of FRRouting (186 to 198). `ip rule` and `ip route` show it as "proto 137".
inline constexpr std::uint8_t our_protocol = 137;

}  // namespace sidetrack::routes
