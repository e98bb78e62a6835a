// SPDX-License-Identifier: GPL-2.0-or-later
// The numbers of ambient pods, from Istio's source. Marks are in host byte order.
#pragma once

#include <cstdint>

namespace sidetrack {

// cni/pkg/config/config.go: InpodMark, of ztunnel's sockets; InpodTProxyMark, of the connections that it opened, by
// which replies reach it; InpodMask and InpodTProxyMask, the mask of both; RouteTableInbound.
inline constexpr std::uint32_t ztunnel_mark = 0x539;
inline constexpr std::uint32_t ztunnel_connection_mark = 0x111;
inline constexpr std::uint32_t ztunnel_mask = 0xfff;
inline constexpr std::uint32_t ztunnel_route_table = 100;
// cni/pkg/iptables/iptables_linux.go: forEachInpodMarkIPRule.
inline constexpr std::uint32_t ztunnel_priority = 32764;

}  // namespace sidetrack
