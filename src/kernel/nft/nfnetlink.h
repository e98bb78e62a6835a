// SPDX-License-Identifier: GPL-2.0-or-later
// nf_tables over netlink. Throws
//   kernel_lacks   if the kernel has no nf_tables
//   not_permitted  without CAP_NET_ADMIN
//   busy           if what is being read changes under the reader
#pragma once

#include "kernel/netlink/ask.h"

namespace sidetrack::nft {

[[nodiscard]] netlink::Socket open_socket();

// `message`: NFT_MSG_…; `family`: NFPROTO_…
[[nodiscard]] netlink::Request request(int message, std::uint8_t family, int flags);

// Gives every message of the answer to `take`.
void read(netlink::Socket& socket, netlink::Request& request, const std::function<void(const netlink::Message&)>& take);

// Changes with every commit in the namespace, whichever program makes it.
[[nodiscard]] std::uint32_t generation(netlink::Socket& socket);

// Sends a whole transaction with one system call and returns all replies, which the kernel gave before it returned.
[[nodiscard]] std::vector<netlink::Reply> transact(netlink::Socket& socket, std::span<const std::byte> batch);

// nf_tables refuses: an Error that names the right that is missing, if that is the reason.
[[nodiscard]] Error unavailable(int error, const char* doing);

}  // namespace sidetrack::nft
