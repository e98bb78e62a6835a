// SPDX-License-Identifier: GPL-2.0-or-later
// Policy rules, local default routes and addresses of the loopback interface.
//
// Ours are tagged by our protocol number (live.h). Istio tags nothing: a rule and a route of exactly its shape,
//     ip rule add fwmark M lookup T        without a protocol (or boot, static), and nothing more in it
//     ip route add local default dev lo table T
// in pairs, are taken for Istio's, and so for ours to replace, if M or T is its default (1337, 133). With other
// numbers the same pair is the usual recipe for any transparent proxy, and left alone, unless M is the mark of Istio's
// own rules with TPROXY there. So is the pair of an ambient pod, by which the agents of Istio and Cilium can be told
// from us:
//     ip rule add fwmark 0x111/0xfff pref 32764 lookup 100, and table 100
// unless what is theirs is to be taken for ours (RoutingOrigin::agent). Ours is put beside it then, behind it, before
// it is removed: at no moment is there none. Addresses carry no tag before kernel 5.18: ::6/128 on lo is known by
// itself.
#include "kernel/routes.h"

#include <fmt/format.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>

#include "kernel/routes/live.h"
#include "model/error.h"
#include "pod/local_ranges.h"
#include "system/capabilities.h"

namespace sidetrack {
namespace routes {
namespace {

std::uint8_t header_family(Family family) { return static_cast<std::uint8_t>(domain(family)); }

bool is_ours(const Address& address) { return address == Address::passthrough(Family::ipv6); }

// ---- requests

void put_rule(netlink::Request& request, const PolicyRule& rule, std::uint8_t protocol) {
  request.put(FRA_FWMARK, rule.mark);
  request.put(FRA_FWMASK, rule.mask);
  request.put(FRA_TABLE, rule.table);
  if (protocol != RTPROT_UNSPEC) request.put(FRA_PROTOCOL, protocol);
}

fib_rule_hdr rule_header(const PolicyRule& rule) {
  fib_rule_hdr header{};
  header.family = header_family(rule.family);
  header.action = FR_ACT_TO_TBL;
  return header;
}

rtmsg route_header(const Route& route, std::uint8_t protocol) {
  rtmsg header{};
  header.rtm_family = header_family(route.family());
  header.rtm_type = RTN_LOCAL;
  header.rtm_scope = route.family() == Family::ipv4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;  // IPv6 has none
  header.rtm_protocol = protocol;
  return header;
}

ifaddrmsg address_header(const Address& address) {
  ifaddrmsg header{};
  header.ifa_family = header_family(address.family);
  header.ifa_prefixlen = static_cast<std::uint8_t>(address.bits());
  header.ifa_flags = IFA_F_NODAD;  // no neighbour on lo to ask: usable at once
  header.ifa_index = loopback_index;
  return header;
}

// ---- words

// "ip rule fwmark 1337 lookup 133": the place is not what is at fault.
std::string words_of(PolicyRule rule) {
  rule.priority.reset();
  return ip_words(rule);
}
std::string words_of(const Route& route) { return ip_words(route); }
std::string words_of(const Address& address) {
  return fmt::format("ip address {} dev lo", AddressRange::single(address).text());
}
Family family_in(const Address& address) { return address.family; }
Family family_in(const PolicyRule& rule) { return rule.family; }
Family family_in(const Route& route) { return route.family(); }

// net.ipv6.conf.lo.disable_ipv6
bool ipv6_is_off_on_lo(netlink::Socket& socket) {
  const auto of_lo = [](const netlink::Message& message) -> std::optional<bool> {
    if (message.header<ifinfomsg>().ifi_index != static_cast<int>(loopback_index)) return std::nullopt;
    const auto off = setting(message.attributes<ifinfomsg>().find(IFLA_AF_SPEC), Family::ipv6, DEVCONF_DISABLE_IPV6);
    if (!off) return std::nullopt;
    return *off != 0;
  };
  const std::vector<bool> said = list<ifinfomsg>(socket, RTM_GETLINK, of_lo);
  return !said.empty() && said.front();
}

// Why EEXIST is said of one that is not there, and what to do.
struct Taken {
  const char* why;
  const char* hint;
};
Taken taken(const PolicyRule& /*rule*/) { return {"another rule is in its place", "see 'ip rule'"}; }
Taken taken(const Route& /*route*/) {
  return {"the table has another default route already",
          "remove that route, or choose another table with -r (of an ambient pod it is always 100)"};
}
Taken taken(const Address& /*address*/) {
  return {"lo has it with another prefix length already", "see 'ip address show dev lo'; remove it there"};
}

template <typename T>
Error routing_refusal(netlink::Socket& socket, const netlink::Reply& reply, const std::string& doing, const T& one) {
  const std::string message = fmt::format("cannot {} {}", doing, words_of(one));
  if (reply.error == EPERM) return system_error(EPERM, message, ExitCode::not_permitted, "CAP_NET_ADMIN is needed");
  const bool v6 = family_in(one) == Family::ipv6;
  if (v6 && (reply.error == EAFNOSUPPORT || reply.error == EOPNOTSUPP)) {
    return {ExitCode::kernel_lacks, message + ": the kernel has no IPv6", "leave it out with --ip-families ipv4"};
  }
  if (v6 && ipv6_is_off_on_lo(socket)) {
    return {ExitCode::kernel_lacks, message + ": IPv6 is switched off on lo (net.ipv6.conf.lo.disable_ipv6 = 1)",
            "sysctl -w net.ipv6.conf.lo.disable_ipv6=0, or leave IPv6 out with --ip-families ipv4"};
  }
  if (reply.error == ENETDOWN) {
    return {ExitCode::failed, message + ": interface lo is down", "ip link set lo up, as every container runtime does"};
  }
  if (reply.error == EEXIST) {
    return {ExitCode::failed, message + ": " + taken(one).why, taken(one).hint};
  }
  const std::string kernel = reply.words.empty() ? "" : fmt::format(" ({})", reply.words);
  return {ExitCode::failed, fmt::format("{}: {}{}", message, errno_words(reply.error), kernel)};
}

// Whether there is more than the rules of a new namespace, routes onward in table main, and what is ours; or less than
// loopback needs; or marks reach further.
bool is_unusual(const Everything& all) {
  const std::vector<PolicyRule> usual = default_rules();
  const auto is_other = [&](const ListedRule& live) {
    return !live.rule.is_ours() && std::ranges::find(usual, live.rule) == usual.end();
  };
  const auto decides = [&](const ListedRoute& live) {
    if (live.protocol == RTPROT_KERNEL || live.route.is_ours()) return false;
    const bool by_lo = live.device == loopback_index ||
                       std::ranges::find(live.other_devices, loopback_index) != live.other_devices.end();
    const bool is_of_local = std::ranges::any_of(all.routes, [&](const ListedRoute& local) {
      return local.route.table == local_table && is_to_part(live.route, local.route.to);
    });
    return live.route.table != main_table || live.route.kind != Route::Kind::unicast || by_lo || is_of_local;
  };
  const auto lacks_loopback = [&](Family family) {
    const Address loopback = Address::loopback(family);
    const bool found = std::ranges::any_of(all.routes, [&](const ListedRoute& live) {
      return live.route.table == local_table && live.device == loopback_index && live.route.to.contains(loopback);
    });
    const bool has_rule = std::ranges::any_of(all.rules, [&](const ListedRule& live) {
      return std::ranges::find(usual, live.rule) != usual.end() && live.rule.family == family &&
             live.rule.table == local_table;
    });
    return !found || !has_rule;
  };
  // A pod may be without IPv6.
  const bool has_ipv6 = std::ranges::any_of(all.routes, [](const ListedRoute& live) {
    return live.route.table == local_table && live.route.kind == Route::Kind::local && live.device != loopback_index &&
           live.route.to.family() == Family::ipv6;
  });
  const bool lacks_own = std::ranges::any_of(all.addresses, [](const ListedAddress& live) {
    return live.usable && !live.own.is_local && !live.own.network_is_local;
  });
  return !all.loopback_is_up || lacks_own || std::ranges::any_of(all.rules, is_other) ||
         std::ranges::any_of(all.routes, decides) || lacks_loopback(Family::ipv4) ||
         (has_ipv6 && lacks_loopback(Family::ipv6)) || marks_reach_further();
}

// ---- the interface

class KernelRoutes : public Routes {
 public:
  explicit KernelRoutes(AgentRules agent_rules) : claims_{agent_rules} {}

  void claim(std::uint32_t mark) override {
    if (std::ranges::find(claims_.marks, mark) == claims_.marks.end()) claims_.marks.push_back(mark);
  }

  State read() override {
    const Everything all = list_everything(socket_, claims_);
    State state;
    // As often as it is there: Istio's second run doubles the rules.
    for (const ListedRule& live : all.rules) {
      if (!live.planned || !(live.rule.is_ours() || live.planned->before_others)) continue;
      (live.rule.is_ours() ? state.ours : state.others).policy_rules.push_back(*live.planned);
    }
    for (const ListedRoute& live : all.routes) {
      if (live.planned) (live.route.is_ours() ? state.ours : state.others).local_routes.push_back(*live.planned);
    }
    for (const Address& address : all.loopback_hosts()) {
      if (is_ours(address)) state.ours.loopback_addresses.push_back(address);
    }
    state.unusual = is_unusual(all) || (!state.ours.policy_rules.empty() && interfaces_matter_to_marked(socket_));
    return state;
  }

  PodView pod() override { return pod_of(socket_, claims_); }

  Routing add(const Routing& wanted) override {
    if (wanted == Routing{}) return {};
    const Everything there = list_everything(socket_, claims_);
    Routing added;
    try {
      // Routes before the rules that lead to them: a packet sent to an empty table goes on to the next rule.
      add_all(wanted.loopback_addresses, there, added.loopback_addresses);
      add_all(wanted.local_routes, there, added.local_routes);
      add_all(wanted.policy_rules, there, added.policy_rules);
    } catch (...) {
      undo(added);
      throw;
    }
    return added;
  }

  void remove(const Routing& unwanted) override {
    if (unwanted == Routing{}) return;
    const Everything all = list_everything(socket_, claims_);
    Routing left = unwanted;
    const auto taken_from = [](auto& list, const auto& one) {
      const auto found = std::ranges::find(list, one);
      if (found == list.end()) return false;
      list.erase(found);
      return true;
    };
    for (const ListedRule& live : all.rules) {
      const bool is_ours = live.rule.is_ours() && taken_from(left.policy_rules, live.planned);
      if (is_ours || taken_from(left.policy_rules, live.rule)) remove_one(live);  // else: of another mesh, by its mark
    }
    for (const ListedRoute& live : all.routes) {
      const bool is_ours = live.route.is_ours() && taken_from(left.local_routes, live.planned);
      if (is_ours || taken_from(left.local_routes, with_device(live))) remove_one(live);
    }
    for (const Address& address : all.loopback_hosts()) {
      if (taken_from(left.loopback_addresses, address)) remove_one(address);
    }
  }

 private:
  static constexpr int create = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;

  template <typename T>
  void add_all(const std::vector<T>& wanted, const Everything& there, std::vector<T>& added) {
    for (const T& one : wanted) {
      if (there.holds(one)) continue;
      added.push_back(one);  // also if the answer is lost: then it may be there, and is to be undone
      const netlink::Reply reply = add_one(one, there);
      if (reply.error == 0) continue;
      added.pop_back();
      // Added by another program since `there` was listed, a second run of this program for one.
      if (reply.error == EEXIST && list_everything(socket_, claims_).holds(one)) continue;
      throw routing_refusal(socket_, reply, "add", one);
    }
  }

  // Before the first of others that could decide about such packets: the place that the kernel gives to a rule without
  // a priority, but for others that are asked still earlier and do not matter.
  netlink::Reply add_one(const PolicyRule& rule, const Everything& there) {
    const bool beside_another = there.holds(by_another(rule));
    netlink::Request request(RTM_NEWRULE, beside_another ? create & ~NLM_F_EXCL : create, rule_header(rule));
    put_rule(request, rule, protocol_of(rule.origin, RTPROT_UNSPEC));
    const auto before =
        std::ranges::find_if(there.rules, [&](const ListedRule& live) { return goes_before(rule, live.rule); });
    const auto place = place_before(rule, before != there.rules.end() ? before->rule.priority : std::nullopt);
    if (place) request.put(FRA_PRIORITY, *place);
    return routes::request(socket_, request);
  }
  netlink::Reply add_one(const Route& route, const Everything& there) {
    netlink::Request request(RTM_NEWROUTE, create, route_header(route, protocol_of(route.origin, RTPROT_BOOT)));
    request.put(RTA_TABLE, route.table);
    request.put(RTA_OIF, loopback_index);
    if (there.holds(by_another(route))) request.put(RTA_PRIORITY, free_metric(route, there));
    return routes::request(socket_, request);
  }
  netlink::Reply add_one(const Address& address, const Everything& /*there*/) {
    netlink::Request request(RTM_NEWADDR, create, address_header(address));
    request.put(IFA_LOCAL, address.view());
    request.put(IFA_ADDRESS, address.view());
    return routes::request(socket_, request);
  }

  template <typename T>
  static T by_another(T one) {
    one.origin = one.origin == RoutingOrigin::agent ? RoutingOrigin::ours : RoutingOrigin::agent;
    return one;
  }
  // An agent's as ip(8) makes them.
  static std::uint8_t protocol_of(RoutingOrigin origin, std::uint8_t of_agent) {
    return origin == RoutingOrigin::agent ? of_agent : our_protocol;
  }
  // Of two default routes in a table each has a metric of its own. Where none is given it is 0, of IPv6 1024.
  static std::uint32_t free_metric(const Route& route, const Everything& there) {
    std::uint32_t metric = route.family() == Family::ipv4 ? 0 : 1024;
    const auto is_taken = [&](const ListedRoute& live) {
      return live.route.table == route.table && live.route.to == route.to && live.metric == metric;
    };
    while (std::ranges::any_of(there.routes, is_taken)) ++metric;
    return metric;
  }

  static Route with_device(const ListedRoute& live) {
    Route route = live.route;
    if (live.device == loopback_index) route.device = "lo";
    return route;
  }
  void remove_one(const ListedRule& live) {
    netlink::Request request(RTM_DELRULE, NLM_F_ACK, rule_header(live.rule));
    put_rule(request, live.rule, live.protocol);
    request.put(FRA_PRIORITY, live.rule.priority.value_or(0));
    require_gone(routes::request(socket_, request), live.rule);
  }
  void remove_one(const ListedRoute& live) {
    netlink::Request request(RTM_DELROUTE, NLM_F_ACK, route_header(live.route, live.protocol));
    request.put(RTA_TABLE, live.route.table);
    request.put(RTA_OIF, loopback_index);
    request.put(RTA_PRIORITY, live.metric);
    require_gone(routes::request(socket_, request), with_device(live));
  }
  void remove_one(const Address& address) {
    netlink::Request request(RTM_DELADDR, NLM_F_ACK, address_header(address));
    request.put(IFA_LOCAL, address.view());
    require_gone(routes::request(socket_, request), address);
  }

  // Gone already is no error: ENOENT of rules, ESRCH of routes, EADDRNOTAVAIL of addresses.
  template <typename T>
  void require_gone(const netlink::Reply& reply, const T& one) {
    if (reply.error == 0 || reply.error == ENOENT || reply.error == ESRCH || reply.error == EADDRNOTAVAIL) return;
    throw routing_refusal(socket_, reply, "remove", one);
  }

  // The first error is the one to report: a second one, on the way back, must not hide it.
  void undo(const Routing& added) {
    try {
      remove(added);
    } catch (const std::exception&) {
    }
  }

  netlink::Socket socket_ = open_socket();
  Claims claims_;
};

}  // namespace
}  // namespace routes

std::unique_ptr<Routes> open_routes(AgentRules agent_rules) {
  return std::make_unique<routes::KernelRoutes>(agent_rules);
}

std::unique_ptr<Routes> open_routes_to_read(AgentRules agent_rules) {
  const WithoutCapabilities opening;
  return open_routes(agent_rules);
}

}  // namespace sidetrack
