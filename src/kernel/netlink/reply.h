// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sidetrack::netlink {

// How the kernel ended its answer: an acknowledgement, a refusal, or the end of a dump. What it says beyond the errno
// are the attributes of NETLINK_EXT_ACK (Linux 4.12).
struct Reply {
  std::uint32_t sequence = 0;             // of the request
  int error = 0;                          // an errno, or 0
  std::string words{};                    // the kernel's own, or empty
  std::optional<std::uint32_t> offset{};  // of the attribute at fault, in bytes from the start of the request
};

// Of NLMSG_ERROR or NLMSG_DONE.
[[nodiscard]] Reply reply_of(const nlmsghdr* message);

}  // namespace sidetrack::netlink
