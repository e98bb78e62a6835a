// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

namespace sidetrack {

// What rules tell packets apart by.
enum class PacketField : std::uint8_t {
  way,  // Direction
  family,
  state,
  protocol,
  interface,  // in: by which it comes; out: to which its socket is bound
  uid,        // of out and lo
  gid,
  source,
  source_port,
  destination,
  destination_port,
  mark,
  cgroup,  // of out and lo
};

}  // namespace sidetrack
