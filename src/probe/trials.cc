// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "mesh/catalogue.h"
#include "probe/trial.h"
#include "walk/route.h"

namespace sidetrack::probe {
namespace {

// For documentation (RFC 5737, RFC 3849): no host has them, whatever happens to the packet.
std::vector<Address> documentation_addresses(Family family) {
  if (family == Family::ipv6) return {*Address::parse("2001:db8::1")};
  return {*Address::parse("192.0.2.1"), *Address::parse("198.51.100.1"), *Address::parse("203.0.113.1")};
}

constexpr Owner unprivileged{65534, 65534};  // nobody, nogroup

bool can_act_as(const Owner& identity) { return ActingAs(identity).done(); }

std::string not_permitted(const Attempt& attempt) {
  return fmt::format("{}: acting as that user needs CAP_SETUID and CAP_SETGID: not tried", attempt.text());
}

// The first of the attempts that the plan treats as wished, one that can be made if there is any.
using Wish = std::function<bool(const Trial&)>;
std::vector<Trial> first(const Planned& planned, const std::string& name, const std::vector<Attempt>& attempts,
                         const Wish& wish) {
  std::optional<Trial> not_tried;
  for (const Attempt& attempt : attempts) {
    const bool can_try = can_act_as(attempt.as);
    if (not_tried && !can_try) continue;
    Trial trial = predict(planned, attempt);
    if (trial.unknown.empty() && !wish(trial)) continue;
    trial.name =
        fmt::format("{} {} {}", name, sidetrack::name(attempt.protocol), sidetrack::name(attempt.to.address.family));
    if (!can_try) trial.unknown = not_permitted(attempt);
    if (trial.unknown.empty()) return {trial};
    if (!not_tried) not_tried = std::move(trial);
  }
  if (!not_tried) return {};
  return {*not_tried};
}

std::vector<Attempt> attempts(Protocol protocol, const std::vector<Owner>& ids, const std::vector<Address>& hosts,
                              const std::vector<std::uint16_t>& ports, std::uint32_t mark = 0) {
  std::vector<Attempt> all;
  for (const Owner& as : ids) {
    for (const Address& host : hosts) {
      for (std::uint16_t port : ports)
        all.push_back({.protocol = protocol, .as = as, .from = {}, .to = {host, port}, .mark = mark});
    }
  }
  return all;
}

// ---- The trials.

// Not the broadcast address of a network, nor the network's own, if there is another.
Address inside(const AddressRange& range) {
  Address address = range.last;
  address.bytes[address.size() - 1] ^= 1;
  return range.contains(address) ? address : range.last;
}

// The ends of each range: what the plan does with one port of it, it does with all that no other option names.
std::vector<std::uint16_t> ends_of(const std::vector<PortRange>& ranges) {
  std::vector<std::uint16_t> ports;
  for (const PortRange& range : ranges) {
    ports.push_back(range.first);
    if (range.last != range.first) ports.push_back(range.last);
  }
  return ports;
}

std::vector<Trial> outbound(const Config& config, const Planned& planned, Family family) {
  std::vector<Address> hosts = documentation_addresses(family);
  for (const AddressRange& range : config.outbound_ranges.list) {
    if (range.family() == family && !range.first.is_loopback()) hosts.push_back(inside(range));
  }
  std::vector<std::uint16_t> ports = ends_of(config.outbound_ports);
  ports.insert(ports.end(), {80, 443, config.probe_port});
  return first(planned, "outbound", attempts(Protocol::tcp, app_identities(config), hosts, ports),
               [&](const Trial& trial) { return captured_at(trial) == config.proxy_port; });
}

std::vector<Trial> dns(const Config& config, const Planned& planned, Family family, Protocol protocol) {
  std::vector<Address> servers;
  for (const Address& server : planned.plan.dns_servers) {
    if (server.family == family) servers.push_back(server);
  }
  const bool to_any = config.capture_all_dns || config.dataplane == Dataplane::ambient;
  if (config.redirect_dns && to_any) servers = documentation_addresses(family);
  return first(planned, "dns", attempts(protocol, app_identities(config), servers, {53}),
               [&](const Trial& trial) { return captured_at(trial) && captured_at(trial) != config.proxy_port; });
}

// From loopback to the address that the proxy passes inbound traffic on from. (To ::6 the kernel would choose ::6
// itself as the source, and what has that is left alone.)
std::vector<Attempt> over_lo(const std::vector<Owner>& ids, Family family, const std::vector<std::uint16_t>& ports,
                             std::uint32_t mark = 0) {
  std::vector<Attempt> all = attempts(Protocol::tcp, ids, {Address::passthrough(family)}, ports, mark);
  for (Attempt& attempt : all) attempt.from = Address::loopback(family);
  return all;
}

// `-o`: nothing has to leave the pod to see it. The proxy's call to its own pod is caught, but for these ports. In mode
// TPROXY it is caught once more, on its way in, if it does not have the mark already.
std::vector<Trial> excluded_outbound(const Config& config, const Planned& planned, Family family) {
  if (config.outbound_exclude_ports.empty()) return {};
  std::vector<std::uint16_t> ports = ends_of(config.outbound_exclude_ports);
  std::erase(ports, config.tunnel_port);  // not caught in any case
  if (config.redirect_dns) std::erase(ports, 53);
  const std::uint32_t mark = config.mode == Mode::tproxy ? config.tproxy_mark : 0;
  const std::string what = "outbound excluded port";
  auto found = first(planned, what, over_lo(proxy_identities(config), family, ports, mark), [&](const Trial& trial) {
    Attempt not_excluded = trial.attempt;
    not_excluded.to.port = config.probe_port;
    return !captured_at(trial) && captured_at(predict(planned, not_excluded));
  });
  if (found.empty()) {
    found.push_back({.name = fmt::format("{} tcp {}", what, name(family)),
                     .unknown = fmt::format("-o {}: with these options it would be left alone anyway: not tried",
                                            list_text(config.outbound_exclude_ports))});
  }
  return found;
}

std::vector<Trial> app_to_itself(const Config& config, const Planned& planned, Family family) {
  return first(planned, "app to itself", over_lo(app_identities(config), family, {config.probe_port}),
               [](const Trial& trial) { return !captured_at(trial); });
}

// ---- TPROXY: what carries the mark of the proxy's calls to its own pod counts as inbound on lo.

// What the rules put on the proxy's call to its own pod.
std::uint32_t inbound_mark(const Plan& plan) {
  const auto found = std::ranges::find(plan.ruleset.rules, MeshRule::tproxy_mark_proxy,
                                       [](const Rule& rule) { return rule.origin.rule; });
  return found != plan.ruleset.rules.end() ? std::get<SetMark>(found->target).mark : 0;
}

std::uint16_t free_port(Family family) {
  return own_end(listen_at(Protocol::tcp, {{Address::any(family), std::nullopt}}, Sharing::if_free).socket.get())
      .port.value();
}

bool nobody_listens(const Endpoint& at) {
  return listen_at(Protocol::tcp, {at}, Sharing::if_free).state == Listener::State::ours;
}

// `-b`, or, if `excluded`, `-d`.
std::vector<Trial> tproxy(const Config& config, const Planned& planned, const Address& own, bool excluded) {
  const Family family = own.family;
  const bool all = config.inbound_ports.all;
  if (excluded && !all) return {};
  const std::vector<PortRange> asked = excluded ? config.inbound_exclude_ports
                                       : all    ? std::vector<PortRange>{free_port(family)}
                                                : config.inbound_ports.list;
  const auto tries = attempts(Protocol::tcp, app_identities(config), {own}, ends_of(asked), inbound_mark(planned.plan));
  if (tries.empty()) return {};
  const std::string what = excluded ? "tproxy excluded port" : "tproxy";
  bool in_use = false;
  auto found = first(planned, what, tries, [&](const Trial& trial) {
    Attempt not_excluded = trial.attempt;
    if (excluded) not_excluded.to.port = config.probe_port;
    if (std::holds_alternative<Tproxy>(trial.end) == excluded) return false;
    if (!std::holds_alternative<Tproxy>(predict(planned, not_excluded).end)) return false;
    // The proxy's socket has the destination for its own address: where a process listens, both look alike.
    const bool is_free = nobody_listens(trial.attempt.to);
    in_use = in_use || !is_free;
    return is_free;
  });
  if (!found.empty()) return found;
  const std::string flag = excluded ? "-d" : "-b";
  const std::string list = !excluded && all ? "*" : list_text(asked);
  const std::string why = in_use ? "a process listens there, which looks like the proxy's transparent socket"
                                 : "with these options it would be left alone anyway";
  return {{.name = fmt::format("{} tcp {}", what, name(family)),
           .unknown = fmt::format("{} {}: {}: not tried", flag, list, why)}};
}

// What carries the mark stays in the pod, whatever its destination.
std::vector<Trial> tproxy_route(const Config& config, const Planned& planned, const Address& own) {
  const Family family = own.family;
  Routing routing = planned.plan.routing;
  std::erase_if(routing.policy_rules, [&](const PolicyRule& rule) { return rule.family != family; });
  std::erase_if(routing.local_routes, [&](const Route& route) { return route.family() != family; });
  routing.loopback_addresses.clear();
  if (routing.local_routes.empty()) return {};
  auto tries = attempts(Protocol::tcp, app_identities(config), documentation_addresses(family), {config.probe_port},
                        config.tproxy_mark);
  // The kernel would choose the destination itself as the source, and then find no route for that.
  for (Attempt& attempt : tries) attempt.from = own;
  auto found = first(planned, "tproxy route", tries, [](const Trial& trial) {
    return !captured_at(trial) &&
           nobody_listens({Address::any(trial.attempt.to.address.family), trial.attempt.to.port});
  });
  for (Trial& trial : found) {
    trial.routing = routing;
    trial.rules.clear();
  }
  return found;
}

// The chains of PREROUTING see what comes in by an interface, and nothing of what is sent in the pod: nat decides about
// a connection once, and about one from inside on its way out.
std::vector<Trial> from_outside(const Config& config, Family family) {
  std::vector<Trial> all;
  const auto add = [&](std::string_view protocol, std::string_view what) {
    all.push_back(
        {.name = fmt::format("inbound from outside {} {}", protocol, name(family)),
         .unknown = fmt::format("{} decided in PREROUTING, which only a packet from outside passes: not tried", what)});
  };
  if (config.dataplane == Dataplane::ambient) {
    if (!config.ingress) add("tcp", "it is");
    return all;
  }
  if (config.mode == Mode::redirect && !config.inbound_ports.empty()) add("tcp", "-b and -d are");
  if (config.mode == Mode::tproxy && !config.capture_udp.empty()) add("udp", "--capture-udp is");
  return all;
}

// What ztunnel sends to the app has a client's address and its mark: that takes IP_TRANSPARENT and SO_MARK.
std::vector<Trial> from_ztunnel(Family family) {
  return {{.name = fmt::format("ztunnel to the app tcp {}", name(family)),
           .unknown = "it has a client's address, which takes ztunnel's own sockets: not tried"}};
}

}  // namespace

std::vector<Owner> proxy_identities(const Config& config) {
  std::vector<Owner> ids;
  for (const std::uint32_t gid : {config.proxy_gids.front(), own_identity().gid})
    ids.push_back({config.proxy_uids.front(), gid});
  std::stable_partition(ids.begin(), ids.end(), can_act_as);
  return ids;
}

std::vector<Owner> app_identities(const Config& config) {
  std::vector<Owner> ids{own_identity(), unprivileged};
  for (const std::uint32_t gid : config.owner_groups.list) ids.push_back({unprivileged.uid, gid});
  std::erase_if(ids, [&](const Owner& id) {
    return std::ranges::find(config.proxy_uids, id.uid) != config.proxy_uids.end() ||
           std::ranges::find(config.proxy_gids, id.gid) != config.proxy_gids.end();
  });
  return ids;
}

Trial inbound(const Config& config, const Plan& plan, Family family) {
  const Attempt attempt{.protocol = Protocol::tcp,
                        .as = proxy_identities(config).front(),
                        .from = Address::loopback(family),
                        .to = {Address::passthrough(family), config.probe_port}};
  Trial trial = predict({plan, assumed_pod(plan)}, attempt);
  trial.name = fmt::format("inbound tcp {}", name(family));
  if (!can_act_as(attempt.as)) trial.unknown = not_permitted(attempt);
  return trial;
}

std::vector<Trial> trials(const Config& config, const Planned& planned, Family family) {
  std::vector<Trial> all = from_outside(config, family);
  const auto add = [&](const std::vector<Trial>& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(outbound(config, planned, family));
  add(dns(config, planned, family, Protocol::tcp));
  add(dns(config, planned, family, Protocol::udp));
  add(excluded_outbound(config, planned, family));
  add(app_to_itself(config, planned, family));
  if (config.dataplane == Dataplane::ambient) add(from_ztunnel(family));
  if (config.mode != Mode::tproxy) return all;
  if (const auto own = own_address(planned.pod, family)) {
    add(tproxy(config, planned, own->address, false));
    add(tproxy(config, planned, own->address, true));
    add(tproxy_route(config, planned, own->address));
  }
  return all;
}

}  // namespace sidetrack::probe
