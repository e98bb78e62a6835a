// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "kernel/routes.h"
#include "kernel/routes/live.h"
#include "model/scan.h"
#include "pod/pod_view.h"
#include "system/known_file.h"

namespace sidetrack {
namespace {

// As ip link shows it: `lower` of a macvlan on eth0 is eth0, `upper` of the port of a bridge is the bridge.
struct ListedInterface {
  Interface interface;
  std::uint32_t lower = 0;  // their numbers; 0: none
  std::uint32_t upper = 0;
};

// 0, too, if it cannot be read.
std::uint32_t number_in(KnownFile file) {
  const KnownText said = read_known_file(file);
  const auto words = split_words(said.text);
  return words.empty() ? 0 : to_number<std::uint32_t>(words[0]).value_or(0);
}

bool is_set(KnownFile file) { return number_in(file) != 0; }

// Returns the families whose setting is not 0.
Families families_set(KnownFile ipv4, KnownFile ipv6) {
  return (is_set(ipv4) ? Families(Family::ipv4) : Families()) | (is_set(ipv6) ? Families(Family::ipv6) : Families());
}

RpFilter rp_filter(std::uint32_t value) {
  if (value == 0) return RpFilter::off;
  return value == 1 ? RpFilter::strict : RpFilter::loose;
}

// One of <linux/ip.h>: IPV4_DEVCONF_*, which are counted from 1.
std::uint32_t own_setting(const nlattr* of_families, int which) {
  return routes::setting(of_families, Family::ipv4, static_cast<std::size_t>(which - 1)).value_or(0);
}

// ip link set br0 type bridge nf_call_iptables 1 nf_call_ip6tables 1
Families rules_of_frames(const nlattr* link_info) {
  Families found;
  const nlattr* data = netlink::Attributes(link_info).find(IFLA_INFO_DATA);
  if (data == nullptr) return found;
  const auto add = [&](int which, Family family) {
    const nlattr* set = netlink::Attributes(data).find(which);
    if (set != nullptr && netlink::host_order<std::uint8_t>(set) != 0) found = found | family;
  };
  add(IFLA_BR_NF_CALL_IPTABLES, Family::ipv4);
  add(IFLA_BR_NF_CALL_IP6TABLES, Family::ipv6);
  return found;
}

std::optional<std::pair<std::uint32_t, ListedInterface>> listed_interface(const netlink::Message& message) {
  const auto& header = message.header<ifinfomsg>();
  ListedInterface made;
  made.interface.up = (header.ifi_flags & IFF_UP) != 0;
  bool elsewhere = false;  // what is below it is in another network namespace
  std::string kind;
  for (const nlattr* attribute : message.attributes<ifinfomsg>()) {
    switch (mnl_attr_get_type(attribute)) {
      case IFLA_IFNAME:
        made.interface.name = netlink::string(attribute);
        break;
      case IFLA_LINK:
        made.lower = netlink::host_order<std::uint32_t>(attribute);
        break;
      case IFLA_LINK_NETNSID:
        elsewhere = true;
        break;
      case IFLA_MASTER:
        made.upper = netlink::host_order<std::uint32_t>(attribute);
        break;
      case IFLA_AF_SPEC:
        made.interface.rp_filter = rp_filter(own_setting(attribute, IPV4_DEVCONF_RP_FILTER));
        made.interface.src_valid_mark = own_setting(attribute, IPV4_DEVCONF_SRC_VMARK) != 0;
        made.interface.route_localnet = own_setting(attribute, IPV4_DEVCONF_ROUTE_LOCALNET) != 0;
        made.interface.accept_local = own_setting(attribute, IPV4_DEVCONF_ACCEPT_LOCAL) != 0;
        made.interface.disable_ipv6 = routes::setting(attribute, Family::ipv6, DEVCONF_DISABLE_IPV6).value_or(0) != 0;
        break;
      case IFLA_LINKINFO:
        if (const nlattr* found = netlink::Attributes(attribute).find(IFLA_INFO_KIND)) kind = netlink::string(found);
        if (kind == "bridge") made.interface.rules_of_frames = rules_of_frames(attribute);
        break;
      default:
        break;
    }
  }
  made.interface.is_bridge = kind == "bridge";
  if (elsewhere || kind == "veth") made.lower = 0;  // of veth it is the other end
  return std::pair(static_cast<std::uint32_t>(header.ifi_index), std::move(made));
}

// By number.
std::map<std::uint32_t, Interface> list_interfaces(netlink::Socket& socket) {
  const auto all = routes::list<ifinfomsg>(socket, RTM_GETLINK, listed_interface);
  std::map<std::uint32_t, Interface> interfaces;
  for (const auto& [number, listed] : all) interfaces.emplace(number, listed.interface);
  const auto put = [&](std::uint32_t upper, std::uint32_t lower) {
    const auto above = interfaces.find(upper), below = interfaces.find(lower);
    if (upper == lower || above == interfaces.end() || below == interfaces.end()) return;
    above->second.lower.push_back(below->second.name);
  };
  for (const auto& [number, listed] : all) {
    put(number, listed.lower);
    put(listed.upper, number);
  }
  const auto is_bridge = [](const auto& each) { return each.second.is_bridge; };
  if (std::ranges::none_of(interfaces, is_bridge)) return interfaces;
  const Families of_all = families_set(KnownFile::rules_of_frames_ipv4, KnownFile::rules_of_frames_ipv6);
  for (auto& [number, interface] : interfaces) {
    if (interface.is_bridge) interface.rules_of_frames = interface.rules_of_frames | of_all;
  }
  return interfaces;
}

}  // namespace

namespace routes {

std::optional<bool> tables_are_apart(std::string_view tables) {
  // "Main:\n  +-- 127.0.0.0/8 …\nLocal:\n  +-- …": until a policy rule is added, both names are of one table.
  const auto of = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto start = tables.find(name);
    if (start == std::string_view::npos) return {};
    std::size_t end = start + name.size();
    while (end < tables.size() && tables[end] == ' ') end = std::min(tables.find('\n', end), tables.size() - 1) + 1;
    return tables.substr(start + name.size(), end - start - name.size());
  };
  const auto local = of("Local:\n");
  return local ? std::optional(of("Main:\n") != local) : std::nullopt;
}

bool marks_reach_further() { return is_set(KnownFile::src_valid_mark) || is_set(KnownFile::tcp_fwmark_accept); }

bool interfaces_matter_to_marked(netlink::Socket& socket) {
  return std::ranges::any_of(list_interfaces(socket), [](const auto& each) {
    return each.second.src_valid_mark || !each.second.rules_of_frames.empty();
  });
}

namespace {

// IPv6 asks the rules once one was added (fib6_has_custom_rules); before, and none tells whether that was so, a default
// one is there even if it was deleted.
void add_rules_that_may_count(PodView& pod) {
  std::vector<PolicyRule> deleted;
  for (const PolicyRule& rule : default_rules()) {
    if (rule.family == Family::ipv6) deleted.push_back(rule);
  }
  for (const PolicyRule& rule : pod.rules) {
    if (rule.family == Family::ipv6 && std::erase(deleted, rule) == 0) return;
  }
  for (PolicyRule& rule : deleted) {
    rule.more = "deleted, if another was ever added,";
    pod.insert(rule);
  }
}

}  // namespace

PodView pod_of(netlink::Socket& socket, const Claims& claims) {
  const RpFilter filter_of_all = rp_filter(number_in(KnownFile::rp_filter));
  const bool by_mark = is_set(KnownFile::src_valid_mark);
  const bool loopback = is_set(KnownFile::route_localnet);
  const bool own_source = is_set(KnownFile::accept_local);

  std::map<std::uint32_t, Interface> interfaces = list_interfaces(socket);
  routes::Everything all = routes::list_everything(socket, claims);
  bool first_is_broadcast = false;
  for (routes::ListedAddress& live : all.addresses) {
    const auto found = interfaces.find(live.device);
    if (found != interfaces.end() && live.usable) {
      live.own.is_local |= !found->second.up;  // with the interface its routes are down
      live.own.network_is_local |= !found->second.up;
      found->second.addresses.push_back(live.own);
    }
    const Address first = AddressRange::prefix(live.own.address, live.own.prefix_length).first;
    first_is_broadcast |= first != live.own.address && std::ranges::find(all.broadcasts, first) != all.broadcasts.end();
  }

  PodView pod;
  pod.first_is_broadcast = first_is_broadcast;
  const KnownText range = read_known_file(KnownFile::ephemeral_ports);
  if (const auto ends = split_words(range.text); ends.size() == 2) {
    const auto first = to_number<std::uint16_t>(ends[0]), last = to_number<std::uint16_t>(ends[1]);
    if (first && last) pod.ephemeral_ports = {*first, *last};
  }
  pod.tcp_fwmark_accept = is_set(KnownFile::tcp_fwmark_accept);
  pod.fwmark_reflect = families_set(KnownFile::fwmark_reflect_ipv4, KnownFile::fwmark_reflect_ipv6);
  pod.ignored_echos = families_set(KnownFile::ignored_echos_ipv4, KnownFile::ignored_echos_ipv6);
  pod.tables_are_apart = tables_are_apart(read_known_file(KnownFile::ipv4_tables).text);
  pod.rules.clear();
  for (routes::ListedRule& live : all.rules) pod.rules.push_back(std::move(live.rule));
  add_rules_that_may_count(pod);
  for (routes::ListedRoute& live : all.routes) {
    // The kernel's own: what interface_address() says, too.
    if (live.route.table == local_table && live.protocol == RTPROT_KERNEL) continue;
    const auto interface = interfaces.find(live.device);
    if (interface != interfaces.end()) live.route.device = interface->second.name;
    for (const std::uint32_t other : live.other_devices) {
      if (const auto found = interfaces.find(other); found != interfaces.end())
        live.route.other_devices.push_back(found->second.name);
    }
    if (interface == interfaces.end() && live.route.kind == Route::Kind::unicast) continue;
    pod.routes.push_back(std::move(live.route));
  }
  for (auto& [index, interface] : interfaces) {
    interface.rp_filter = std::max(interface.rp_filter, filter_of_all);
    interface.src_valid_mark |= by_mark;
    interface.route_localnet |= loopback;
    interface.accept_local |= own_source;
    pod.interfaces.push_back(std::move(interface));
  }
  return pod;
}

}  // namespace routes

// The one that every kernel has stands for all: of the others, what is not there the kernel does not know.
std::string settings_problem() {
  const int error = read_known_file(KnownFile::ephemeral_ports).error;
  if (error == 0) return {};
  return fmt::format(
      "the network settings below /proc/sys/net cannot be read: {}: what depends on them is taken as in a new "
      "network namespace",
      errno_words(error));
}

PodView read_pod() {
  netlink::Socket socket = routes::open_socket();
  return routes::pod_of(socket);
}

}  // namespace sidetrack
