// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/pod.h"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <iterator>
#include <map>

#include "kernel/backend.h"
#include "kernel/routes/live.h"
#include "model/scan.h"
#include "system/known_file.h"

namespace sidetrack {
namespace {

// ip link: by number.
std::map<std::uint32_t, Interface> list_interfaces(netlink::Socket& socket) {
  using Numbered = std::pair<std::uint32_t, Interface>;
  const auto parse = [](const netlink::Message& message) {
    const auto& header = message.header<ifinfomsg>();
    std::optional<Numbered> found(std::in_place, static_cast<std::uint32_t>(header.ifi_index), Interface{});
    found->second.up = (header.ifi_flags & IFF_UP) != 0;
    const nlattr* name = message.attributes<ifinfomsg>().find(IFLA_IFNAME);
    if (name != nullptr) found->second.name = netlink::string(name);
    return found;
  };
  auto all = routes::list<ifinfomsg>(socket, RTM_GETLINK, parse);
  return {std::move_iterator(all.begin()), std::move_iterator(all.end())};
}

}  // namespace

namespace routes {

PodView pod_of(netlink::Socket& socket, Claim claim) {
  std::map<std::uint32_t, Interface> interfaces = list_interfaces(socket);
  routes::Everything all = routes::list_everything(socket, claim);
  for (const routes::ListedAddress& live : all.addresses) {
    const auto found = interfaces.find(live.device);
    if (found != interfaces.end() && live.usable)
      found->second.addresses.push_back({live.address, live.prefix_length, live.deprecated});
  }

  PodView pod;
  const KnownText range = read_known_file(KnownFile::chosen_ports);
  if (const auto ends = split_words(range.text); ends.size() == 2) {
    const auto first = to_number<std::uint16_t>(ends[0]), last = to_number<std::uint16_t>(ends[1]);
    if (first && last) pod.chosen_ports = {*first, *last};
  }
  pod.rules.clear();
  for (routes::ListedRule& live : all.rules) pod.rules.push_back(std::move(live.rule));
  for (routes::ListedRoute& live : all.routes) {
    // The kernel's own: what interface_address() says, too.
    if (live.route.table == local_table && live.protocol == RTPROT_KERNEL) continue;
    const auto interface = interfaces.find(live.device);
    if (interface != interfaces.end()) live.route.device = interface->second.name;
    if (interface == interfaces.end() && live.route.kind == NetworkRoute::Kind::onward) continue;
    pod.routes.push_back(std::move(live.route));
  }
  for (auto& [index, interface] : interfaces) pod.interfaces.push_back(std::move(interface));
  return pod;
}

}  // namespace routes

PodView read_pod() {
  netlink::Socket socket = routes::open_socket();
  return routes::pod_of(socket);
}

}  // namespace sidetrack
