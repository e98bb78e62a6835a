// SPDX-License-Identifier: GPL-2.0-or-later
// Sets of addresses over netlink (ip_set). Throws
//   kernel_lacks   if the kernel has no ip_set, or one before Linux 4.20
//   not_permitted  without CAP_NET_ADMIN
#pragma once

#include "kernel/known_sets.h"
#include "kernel/netlink/ask.h"

namespace sidetrack::ipset {

class Sets {
 public:
  // All sets of the network namespace.
  [[nodiscard]] KnownSets list() { return decoded(fetch()); }
  // The two parts of it: what is there, as it is; what it means, for which no right is needed.
  using Fetched = std::vector<std::vector<std::byte>>;
  [[nodiscard]] Fetched fetch();
  [[nodiscard]] static KnownSets decoded(const Fetched& messages);

 private:
  netlink::Socket socket_ = open_socket();
  static netlink::Socket open_socket();
};

}  // namespace sidetrack::ipset
