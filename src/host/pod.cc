// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/pod.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "backend/routes/live.h"
#include "backend/routes/netlink.h"

namespace sidetrack {
namespace {

using routes::Attributes;
using routes::family_of;
using routes::Message;

// ip link: by number.
std::map<std::uint32_t, Interface> list_interfaces(routes::Socket& socket) {
  routes::Request request(RTM_GETLINK, 0, ifinfomsg{});
  std::map<std::uint32_t, Interface> interfaces;
  for (const Message& message : socket.dump(request)) {
    const auto& header = message.payload<ifinfomsg>();
    Interface& interface = interfaces[static_cast<std::uint32_t>(header.ifi_index)];
    interface.up = (header.ifi_flags & IFF_UP) != 0;
    for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
      if (mnl_attr_get_type(&attribute) == IFLA_IFNAME) interface.name = mnl_attr_get_str(&attribute);
    }
  }
  return interfaces;
}

std::optional<Address> address_of(Family family, const nlattr& attribute) {
  Address address{family, {}};
  if (mnl_attr_get_payload_len(&attribute) < address.size()) return {};
  const auto* bytes = static_cast<const std::uint8_t*>(mnl_attr_get_payload(&attribute));
  std::copy_n(bytes, address.size(), address.bytes.begin());
  return address;
}

// ip address. Of a point-to-point link IFA_ADDRESS is the other end, IFA_LOCAL this one. What is not usable yet, since
// another host may have it, is left out.
std::optional<InterfaceAddress> interface_address(const Message& message) {
  const auto& header = message.payload<ifaddrmsg>();
  const auto family = family_of(header.ifa_family);
  if (!family || (header.ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0) return {};
  std::optional<Address> peer;
  std::optional<Address> local;
  for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
    if (mnl_attr_get_type(&attribute) == IFA_ADDRESS) peer = address_of(*family, attribute);
    if (mnl_attr_get_type(&attribute) == IFA_LOCAL) local = address_of(*family, attribute);
  }
  if (!local) local = peer;
  if (!local) return {};
  return InterfaceAddress{*local, header.ifa_prefixlen};
}

}  // namespace

PodView read_pod() {
  routes::Socket socket;
  std::map<std::uint32_t, Interface> interfaces = list_interfaces(socket);

  routes::Request addresses(RTM_GETADDR, 0, ifaddrmsg{});
  for (const Message& message : socket.dump(addresses)) {
    const auto found = interfaces.find(message.payload<ifaddrmsg>().ifa_index);
    if (found == interfaces.end()) continue;
    if (const auto address = interface_address(message)) found->second.addresses.push_back(*address);
  }

  PodView pod;
  PortRange ports;
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");  // of the namespace of the thread that opens it
  if (range >> ports.first >> ports.last) pod.chosen_ports = ports;
  routes::Everything all = routes::list_everything(socket);
  pod.rules.clear();
  for (routes::LiveRule& live : all.rules) pod.rules.push_back(std::move(live.rule));
  for (routes::LiveRoute& live : all.routes) {
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

}  // namespace sidetrack
