// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/pod.h"

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

// ip link: the names by index.
std::map<std::uint32_t, std::string> interface_names(routes::Socket& socket) {
  routes::Request request(RTM_GETLINK, 0, ifinfomsg{});
  std::map<std::uint32_t, std::string> names;
  for (const Message& message : socket.dump(request)) {
    const auto& header = message.payload<ifinfomsg>();
    for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
      if (mnl_attr_get_type(&attribute) != IFLA_IFNAME) continue;
      names[static_cast<std::uint32_t>(header.ifi_index)] = mnl_attr_get_str(&attribute);
    }
  }
  return names;
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

struct WeighedRoute {
  std::uint32_t metric = 0;
  NetworkRoute route;
};

// ip route: unicast routes of table main, by their (first) interface.
std::optional<WeighedRoute> network_route(const Message& message, const std::map<std::uint32_t, std::string>& names) {
  const auto& header = message.payload<rtmsg>();
  const auto family = family_of(header.rtm_family);
  if (!family || header.rtm_type != RTN_UNICAST || header.rtm_table != RT_TABLE_MAIN || header.rtm_src_len != 0) {
    return {};
  }
  WeighedRoute found;
  Address to{*family, {}};
  std::uint32_t index = 0;
  for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
    switch (mnl_attr_get_type(&attribute)) {
      case RTA_DST:
        to = address_of(*family, attribute).value_or(to);
        break;
      case RTA_OIF:
        index = mnl_attr_get_u32(&attribute);
        break;
      case RTA_PRIORITY:
        found.metric = mnl_attr_get_u32(&attribute);
        break;
      case RTA_MULTIPATH:
        if (mnl_attr_get_payload_len(&attribute) >= sizeof(rtnexthop)) {
          index =
              static_cast<std::uint32_t>(static_cast<const rtnexthop*>(mnl_attr_get_payload(&attribute))->rtnh_ifindex);
        }
        break;
      default:
        break;
    }
  }
  const auto name = names.find(index);
  if (name == names.end()) return {};
  found.route = {AddressRange::prefix(to, header.rtm_dst_len), name->second};
  return found;
}

}  // namespace

PodView read_pod() {
  routes::Socket socket;
  const std::map<std::uint32_t, std::string> names = interface_names(socket);
  std::map<std::uint32_t, Interface> interfaces;
  for (const auto& [index, name] : names) interfaces[index].name = name;

  routes::Request addresses(RTM_GETADDR, 0, ifaddrmsg{});
  for (const Message& message : socket.dump(addresses)) {
    const auto found = interfaces.find(message.payload<ifaddrmsg>().ifa_index);
    if (found == interfaces.end()) continue;
    if (const auto address = interface_address(message)) found->second.addresses.push_back(*address);
  }

  routes::Request request(RTM_GETROUTE, 0, rtmsg{});
  std::vector<WeighedRoute> weighed;
  for (const Message& message : socket.dump(request)) {
    if (auto route = network_route(message, names)) weighed.push_back(std::move(*route));
  }
  std::ranges::stable_sort(weighed, {}, &WeighedRoute::metric);

  PodView pod;
  for (auto& [index, interface] : interfaces) pod.interfaces.push_back(std::move(interface));
  for (WeighedRoute& one : weighed) pod.routes.push_back(std::move(one.route));
  PortRange ports;
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");  // of the namespace of the thread that opens it
  if (range >> ports.first >> ports.last) pod.chosen_ports = ports;
  const routes::Everything all = routes::list_everything(socket);
  for (const routes::LiveRule& live : all.rules) pod.policy_rules.push_back(live.rule);
  for (const routes::LiveRoute& live : all.routes) pod.local_routes.push_back(live.route);
  return pod;
}

}  // namespace sidetrack
