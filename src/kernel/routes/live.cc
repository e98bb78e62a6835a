// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/routes/live.h"

#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "model/stable_sort.h"

namespace sidetrack::routes {

namespace {

using netlink::host_order;
using netlink::Message;

// Returns what a number of the kernel stands for.
template <typename Meaning, std::size_t size>
Meaning meaning_of(unsigned number, const std::pair<unsigned, Meaning> (&known)[size], Meaning otherwise) {
  const auto* found = std::ranges::find(known, number, &std::pair<unsigned, Meaning>::first);
  return found != std::end(known) ? found->second : otherwise;
}

// Not goto.
constexpr std::pair<unsigned, PolicyRule::Action> actions[] = {{FR_ACT_TO_TBL, PolicyRule::Action::lookup},
                                                               {FR_ACT_NOP, PolicyRule::Action::none},
                                                               {FR_ACT_BLACKHOLE, PolicyRule::Action::blackhole},
                                                               {FR_ACT_UNREACHABLE, PolicyRule::Action::unreachable},
                                                               {FR_ACT_PROHIBIT, PolicyRule::Action::prohibit}};

// "1000-1000", of fib_rule_uid_range; "80", "80-90", of fib_rule_port_range.
template <typename Range>
std::string range_words(const nlattr* attribute, bool always_both) {
  const auto bytes = netlink::payload(attribute);
  if (bytes.size() < sizeof(Range)) return "?";
  Range range;
  std::memcpy(&range, bytes.data(), sizeof range);
  return range.start == range.end && !always_both ? fmt::format("{}", range.start)
                                                  : fmt::format("{}-{}", range.start, range.end);
}

// <linux/fib_rules.h> since Linux 6.15: FRA_SPORT_MASK, FRA_DPORT_MASK, listed beside every single port.
constexpr std::uint16_t source_port_mask = 28;
constexpr std::uint16_t destination_port_mask = 29;

std::string protocol_words(std::uint8_t number) {
  return number == IPPROTO_TCP ? "tcp" : number == IPPROTO_UDP ? "udp" : fmt::format("{}", number);
}

// What a rule may ask for besides, in the words of ip(8).
std::string condition(const nlattr* attribute) {
  switch (mnl_attr_get_type(attribute)) {
    case FRA_TUN_ID:
      return "tun_id";
    case FRA_SUPPRESS_IFGROUP:
      return fmt::format("suppress_ifgroup {}", host_order<std::uint32_t>(attribute));
    case FRA_L3MDEV:
      return "l3mdev";
    case FRA_UID_RANGE:
      return "uidrange " + range_words<fib_rule_uid_range>(attribute, true);
    case FRA_IP_PROTO:
      return "ipproto " + protocol_words(host_order<std::uint8_t>(attribute));
    case FRA_SPORT_RANGE:
      return "sport " + range_words<fib_rule_port_range>(attribute, false);
    case FRA_DPORT_RANGE:
      return "dport " + range_words<fib_rule_port_range>(attribute, false);
    case source_port_mask:
    case destination_port_mask:
      return "of a masked port";
    default:
      return "a condition of a newer kernel";
  }
}

std::optional<ListedRule> policy_rule(const Message& message) {
  const auto& header = message.header<fib_rule_hdr>();
  const auto family = family_of(header.family);
  if (!family) return std::nullopt;
  ListedRule live;
  PolicyRule& rule = live.rule;
  const auto ask_more = [&](const std::string& what) { rule.more += (rule.more.empty() ? "" : " ") + what; };
  rule.family = *family;
  rule.priority = 0;  // which is not listed
  rule.action = meaning_of(header.action, actions, PolicyRule::Action::unknown);
  rule.inverted = (header.flags & FIB_RULE_INVERT) != 0;
  // A rule for an interface that is not there matches nothing, whatever else it says.
  if ((header.flags & (FIB_RULE_IIF_DETACHED | FIB_RULE_OIF_DETACHED)) != 0 && !rule.inverted) {
    rule.action = PolicyRule::Action::none;
  }
  if (header.tos != 0) ask_more(fmt::format("tos {:#x}", header.tos));
  for (const nlattr* attribute : message.attributes<fib_rule_hdr>()) {
    switch (mnl_attr_get_type(attribute)) {
      case FRA_FWMARK:
        rule.mark = host_order<std::uint32_t>(attribute);
        break;
      case FRA_FWMASK:
        rule.mask = host_order<std::uint32_t>(attribute);
        break;
      case FRA_TABLE:
        rule.table = host_order<std::uint32_t>(attribute);
        break;
      case FRA_PRIORITY:
        rule.priority = host_order<std::uint32_t>(attribute);
        break;
      case FRA_PROTOCOL:
        live.protocol = host_order<std::uint8_t>(attribute);
        break;
      case FRA_SRC:
        rule.from =
            AddressRange::prefix(address_of(*family, attribute).value_or(Address::any(*family)), header.src_len);
        break;
      case FRA_DST:
        rule.to = AddressRange::prefix(address_of(*family, attribute).value_or(Address::any(*family)), header.dst_len);
        break;
      case FRA_IIFNAME:
        rule.in = netlink::string(attribute);
        break;
      case FRA_OIFNAME:
        rule.out = netlink::string(attribute);
        break;
      case FRA_SUPPRESS_PREFIXLEN:  // listed always: -1 if there is none
        if (const std::uint32_t length = host_order<std::uint32_t>(attribute); length != 0xffffffff) {
          rule.suppressed = static_cast<int>(length);
        }
        break;
      case FRA_FLOW:  // the realm, for accounting
      case FRA_PAD:
        break;
      case FRA_GOTO:
        rule.action = PolicyRule::Action::unknown;
        break;
      case FRA_L3MDEV:  // listed always: 0 if it is none
        if (host_order<std::uint8_t>(attribute) != 0) ask_more(condition(attribute));
        break;
      case source_port_mask:
      case destination_port_mask:
        if (host_order<std::uint16_t>(attribute) != 0xffff) ask_more(condition(attribute));
        break;
      case FRA_SUPPRESS_IFGROUP:
        if (host_order<std::uint32_t>(attribute) != 0xffffffff) ask_more(condition(attribute));
        break;
      default:
        ask_more(condition(attribute));
        break;
    }
  }
  return live;
}

struct RouteType {
  const char* name = "";
  Route::Kind kind = Route::Kind::unknown;
};
// By number, from RTN_UNSPEC to RTN_THROW. `ip` does not show unicast.
constexpr RouteType types[] = {{},
                               {"", Route::Kind::unicast},
                               {"local", Route::Kind::local},
                               {"broadcast"},
                               {"anycast"},
                               {"multicast"},
                               {"blackhole", Route::Kind::blackhole},
                               {"unreachable", Route::Kind::unreachable},
                               {"prohibit", Route::Kind::prohibit},
                               {"throw", Route::Kind::throw_}};

std::optional<Address> broadcast(const Message& message) {
  const auto& header = message.header<rtmsg>();
  if (header.rtm_family != AF_INET || header.rtm_type != RTN_BROADCAST) return {};
  const nlattr* to = message.attributes<rtmsg>().find(RTA_DST);
  return to != nullptr ? address_of(Family::ipv4, to) : std::nullopt;
}

// The first one is followed.
void add_next_hops(ListedRoute& live, const nlattr* attribute, Family family) {
  const auto* hop = static_cast<const rtnexthop*>(mnl_attr_get_payload(attribute));
  int left = mnl_attr_get_payload_len(attribute);
  for (; RTNH_OK(hop, left); left -= RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop)) {
    const auto device = static_cast<std::uint32_t>(hop->rtnh_ifindex);
    const std::span bytes(reinterpret_cast<const std::byte*>(hop), hop->rtnh_len);
    const netlink::Attributes attributes(bytes.subspan(RTNH_LENGTH(0)));
    const nlattr* gateway = attributes.find(RTA_GATEWAY);
    if (live.device == 0) {
      live.device = device;
      if (gateway != nullptr) live.route.gateway = address_of(family, gateway);
    }
    if (attributes.find(RTA_ENCAP_TYPE) != nullptr) live.route.kind = Route::Kind::unknown;
    if (device != live.device && std::ranges::find(live.other_devices, device) == live.other_devices.end())
      live.other_devices.push_back(device);
  }
}

std::optional<ListedRoute> network_route(const Message& message) {
  const auto& header = message.header<rtmsg>();
  const auto family = family_of(header.rtm_family);
  if (!family || (header.rtm_flags & (RTNH_F_DEAD | RTM_F_CLONED)) != 0) return {};
  ListedRoute live;
  // Leaves unknown what connections do with broadcast, multicast and anycast.
  const RouteType type = header.rtm_type < std::size(types) ? types[header.rtm_type] : RouteType{};
  const bool asks_more = header.rtm_src_len != 0 || header.rtm_tos != 0;
  live.route.kind = asks_more ? Route::Kind::unknown : type.kind;
  if (live.route.kind == Route::Kind::unknown) live.route.type = type.name;
  if (header.rtm_tos != 0) live.route.more = fmt::format("tos {:#x}", header.rtm_tos);
  live.protocol = header.rtm_protocol;
  Address to = Address::any(*family);
  bool by_object = false;
  for (const nlattr* attribute : message.attributes<rtmsg>()) {
    switch (mnl_attr_get_type(attribute)) {
      case RTA_DST:
        to = address_of(*family, attribute).value_or(to);
        break;
      case RTA_SRC:
        if (const auto from = address_of(*family, attribute))
          live.route.more = "from " + AddressRange::prefix(*from, header.rtm_src_len).text();
        break;
      case RTA_TABLE:
        live.route.table = host_order<std::uint32_t>(attribute);
        break;
      case RTA_OIF:
        live.device = host_order<std::uint32_t>(attribute);
        break;
      case RTA_PRIORITY:
        live.metric = host_order<std::uint32_t>(attribute);
        break;
      case RTA_GATEWAY:
        live.route.gateway = address_of(*family, attribute);
        break;
      case RTA_PREFSRC:
        live.route.source = address_of(*family, attribute);
        break;
      case RTA_MULTIPATH:
        add_next_hops(live, attribute, *family);
        break;
      case RTA_ENCAP_TYPE:  // it leaves within another packet, or with another header: ip route add … encap seg6
        live.route.kind = Route::Kind::unknown;
        break;
      case RTA_NH_ID:
        by_object = true;
        break;
      default:
        break;
    }
  }
  // With net.ipv4.nexthop_compat_mode=0 the kernel tells the number of the next hop alone.
  if (by_object && live.device == 0) live.route.kind = Route::Kind::unknown;
  live.route.to = AddressRange::prefix(to, header.rtm_dst_len);
  return live;
}

bool is_loopback_host(const ListedAddress& live) {
  return live.device == loopback_index && live.own.prefix_length == live.own.address.bits();
}

// What cannot be asked is taken to be as it should.
bool loopback_is_up(const netlink::Socket& socket) {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  return ioctl(socket.fd(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) != 0;
}

// ---- Whose it is

// The defaults of istio-iptables: -t and -r.
constexpr std::uint32_t istio_mark = 1337;
constexpr std::uint32_t istio_table = 133;

bool untagged(std::uint8_t protocol) {
  return protocol == RTPROT_UNSPEC || protocol == RTPROT_BOOT || protocol == RTPROT_STATIC;
}

// Tells whether the table that the rule looks up can decide.
bool has_routes(const PolicyRule& rule, const std::vector<ListedRoute>& routes) {
  return std::ranges::any_of(routes, [&](const ListedRoute& live) {
    return live.route.table == rule.table && live.route.family() == rule.family &&
           live.route.kind != Route::Kind::throw_;
  });
}

// Tells whether it is just `ip route add local default dev lo table TABLE`.
bool is_local_default(const ListedRoute& live) {
  return live.route.kind == Route::Kind::local && live.route.to.prefix_length() == 0 && live.device == loopback_index;
}

// Tells whether a rule of that form and the route are what Istio makes: of an ambient pod only if that is claimed.
bool is_istio_pair(const ListedRule& rule, const ListedRoute& route, const Claims& claims) {
  if (!untagged(rule.protocol) || !untagged(route.protocol)) return false;
  const PolicyRule& marked = rule.rule;
  if (!is_local_default(route)) return false;
  if (marked.family != route.route.family() || marked.table != route.route.table) return false;
  if (is_of_ambient(marked)) return claims.agent_rules == AgentRules::ours;
  const bool is_claimed = std::ranges::find(claims.marks, marked.mark) != claims.marks.end();
  return marked.mask == 0xffffffff && (marked.mark == istio_mark || marked.table == istio_table || is_claimed);
}

}  // namespace

void Everything::relate() {
  for (ListedRule& rule : rules) {
    if (!is_fwmark_rule(rule.rule)) continue;
    if (rule.protocol == our_protocol) rule.rule.origin = RoutingOrigin::ours;
    for (ListedRoute& route : routes) {
      if (!is_istio_pair(rule, route, claims)) continue;
      const auto origin_of = [&](const auto& one) {
        return claims.agent_rules == AgentRules::ours && is_of_ambient(one) ? RoutingOrigin::agent
                                                                            : RoutingOrigin::ours;
      };
      rule.rule.origin = origin_of(rule.rule);
      route.route.origin = origin_of(route.route);
    }
  }
  for (ListedRoute& live : routes) {
    if (!is_local_default(live)) continue;
    if (live.protocol == our_protocol) live.route.origin = RoutingOrigin::ours;
    live.planned = local_default(live.route.family(), live.route.table);
    if (live.route.origin == RoutingOrigin::agent) live.planned->origin = RoutingOrigin::agent;
  }
  for (auto live = rules.begin(); live != rules.end(); ++live) {
    const PolicyRule& rule = live->rule;
    if (!is_fwmark_rule(rule)) continue;
    const auto takes = [&](const ListedRule& other) {
      return goes_before(rule, other.rule) &&
             (other.rule.action != PolicyRule::Action::lookup || has_routes(other.rule, routes));
    };
    PolicyRule planned = fwmark_rule(rule.family, rule.mark, rule.table, rule.mask);
    planned.before_others = std::none_of(rules.begin(), live, takes);
    if (rule.origin == RoutingOrigin::agent) planned.origin = RoutingOrigin::agent;
    // An agent's is to be put back where it was.
    if (!planned.before_others || planned.origin == RoutingOrigin::agent) planned.priority = rule.priority;
    live->planned = planned;
  }
}

bool Everything::holds(const PolicyRule& rule) const {
  return std::ranges::any_of(rules, [&](const ListedRule& live) { return live.planned == rule; });
}

bool Everything::holds(const Route& route) const {
  return std::ranges::any_of(routes, [&](const ListedRoute& live) { return live.planned == route; });
}

bool Everything::holds(const Address& address) const {
  return std::ranges::any_of(
      addresses, [&](const ListedAddress& live) { return is_loopback_host(live) && live.own.address == address; });
}

std::vector<Address> Everything::loopback_hosts() const {
  std::vector<Address> hosts;
  for (const ListedAddress& live : addresses) {
    if (is_loopback_host(live)) hosts.push_back(live.own.address);
  }
  return hosts;
}

namespace {

// Tells of each address whether table local has a route to it. To ours, ::6, the kernel makes it some time after the
// address was added.
void look_for_routes(std::vector<ListedAddress>& addresses, const std::vector<ListedRoute>& routes) {
  std::set<AddressRange> local{AddressRange::single(Address::passthrough(Family::ipv6))};
  for (const ListedRoute& live : routes) {
    if (live.route.table == local_table && live.route.kind == Route::Kind::local) local.insert(live.route.to);
  }
  for (ListedAddress& live : addresses) {
    const AddressRange network = AddressRange::prefix(live.own.address, live.own.prefix_length);
    const bool is_of_loopback = live.device == loopback_index && network.family() == Family::ipv4;
    live.own.is_local = local.contains(AddressRange::single(live.own.address));
    live.own.network_is_local = is_of_loopback ? local.contains(network) : live.own.is_local;
  }
}

}  // namespace

Everything list_everything(netlink::Socket& socket, const Claims& claims) {
  std::vector<Address> broadcasts;
  const auto route = [&](const Message& message) {
    if (const auto address = broadcast(message)) broadcasts.push_back(*address);
    return network_route(message);
  };
  Everything all{list<fib_rule_hdr>(socket, RTM_GETRULE, policy_rule),
                 list<rtmsg>(socket, RTM_GETROUTE, route),
                 list_addresses(socket),
                 loopback_is_up(socket),
                 claims,
                 std::move(broadcasts)};
  all.relate();
  look_for_routes(all.addresses, all.routes);
  sort_stably(all.routes, {}, &ListedRoute::metric);
  return all;
}

}  // namespace sidetrack::routes
