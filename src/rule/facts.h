// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

namespace sidetrack {

// What targets change and matches read: bits.
using Facts = std::uint8_t;
namespace facts {
inline constexpr Facts none = 0;
inline constexpr Facts mark = 1;
inline constexpr Facts connmark = 2;
inline constexpr Facts connection = 4;  // what connection tracking knows of the packet
inline constexpr Facts packet = 8;      // anything else of it
inline constexpr Facts flags = 16;      // of TCP: the first packet of a connection has others
inline constexpr Facts socket = 32;     // in INPUT that of a connection's first packet is not looked up, and others' is
inline constexpr Facts all = 0xff;
}  // namespace facts

}  // namespace sidetrack
