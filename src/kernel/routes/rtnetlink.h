// SPDX-License-Identifier: GPL-2.0-or-later
// Routing, links and addresses over rtnetlink.
#pragma once

#include "kernel/netlink/ask.h"
#include "pod/interface.h"

namespace sidetrack::routes {

[[nodiscard]] netlink::Socket open_socket();

// Sends a request with NLM_F_ACK. What the kernel refuses is for the caller to judge; throws if its answer is lost.
[[nodiscard]] netlink::Reply request(netlink::Socket& socket, netlink::Request& request);

// One attempt to list; throws busy if it is disturbed. Nothing of a family that the kernel has not.
void dump(netlink::Socket& socket, netlink::Request& request, const std::function<void(const netlink::Message&)>& take);

// What `parse` makes of the messages, an optional, where it makes something: of RTM_GET…, for all families.
template <typename Header, typename Parse>
auto list(netlink::Socket& socket, int type, Parse parse) {
  using Found = std::vector<typename std::invoke_result_t<Parse, const netlink::Message&>::value_type>;
  return netlink::read_consistent(socket, [&]() -> std::optional<Found> {
    netlink::Request request(type, NLM_F_DUMP, Header{});  // AF_UNSPEC
    Found found;
    dump(socket, request, [&](const netlink::Message& message) {
      if (auto one = parse(message)) found.push_back(*std::move(one));
    });
    return found;
  });
}

// AF_INET, AF_INET6
[[nodiscard]] std::optional<Family> family_of(unsigned domain);

// Nothing if the attribute is too short.
[[nodiscard]] std::optional<Address> address_of(Family family, const nlattr* attribute);

// Of an interface's IFLA_AF_SPEC: a number of net.ipv4.conf.NAME (`which` is IPV4_DEVCONF_… - 1) or of
// net.ipv6.conf.NAME (DEVCONF_…). Nothing if the kernel says none.
[[nodiscard]] std::optional<std::uint32_t> setting(const nlattr* of_families, Family family, std::size_t which);

// ip address
struct ListedAddress {
  InterfaceAddress own;      // of a point-to-point link this end's
  std::uint32_t device = 0;  // its number
  bool usable = true;        // false as long as another host may have it
};
[[nodiscard]] std::vector<ListedAddress> list_addresses(netlink::Socket& socket);

}  // namespace sidetrack::routes
