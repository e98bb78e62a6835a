// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/invariants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "evaluate/explain.h"
#include "mesh/describe.h"
#include "model/interface_pattern.h"
#include "model/ports.h"
#include "options/flags.h"
#include "rule/iptables.h"
#include "space/witness.h"

namespace sidetrack::lint {
namespace {

using namespace space;

std::vector<Ending> each_of(const Ending& ending) {
  return ending.either.empty() ? std::vector{ending} : ending.either;
}

// Names of interfaces, as options have them.
bool is_one_of(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_interface(pattern, name); });
}

// Sets of values of the options.
class Boxes {
 public:
  Boxes(Regions& regions, const PodView& pod) : regions_(regions), sets_(regions.sets()), pod_(pod) {}

  // New connections between hosts, without a mark, of sockets that are bound to nothing, from cgroups of no rule.
  [[nodiscard]] Box usual(Direction way, Family family, Value protocol) {
    Box box = regions_.ordinary(pod_, way, family);
    at(box, Field::protocol) = sets_.single(protocol);
    at(box, Field::mark) = sets_.single(regions_.universe().mark_class(0));
    at(box, Field::cgroup) = sets_.single(0);
    if (way != Direction::in) at(box, Field::interface) = sets_.single(unbound);
    return box;
  }

  static Sets::Id& at(Box& box, Field field) { return box[index(field)]; }
  void only(Box& box, Field field, Sets::Id values) { at(box, field) = sets_.intersection(at(box, field), values); }
  void but(Box& box, Field field, Sets::Id values) { at(box, field) = sets_.difference(at(box, field), values); }

  template <typename Numbers>
  Sets::Id numbers(const Numbers& list) {
    Intervals all;
    for (const auto number : list) all.push_back({number, number});
    return sets_.of(normal(std::move(all)));
  }
  template <typename Number>
  Sets::Id numbers(const std::vector<Range<Number>>& list) {
    Intervals all;
    for (const Range<Number>& range : list) all.push_back({range.first, range.last});
    return sets_.of(normal(std::move(all)));
  }
  Sets::Id addresses(const std::vector<AddressRange>& list, Family family) {
    Intervals all;
    for (const AddressRange& range : list) {
      if (range.family() == family) all.push_back({value_of(range.first), value_of(range.last)});
    }
    return sets_.of(normal(std::move(all)));
  }
  // What the list of a flag says of its field.
  Sets::Id listed(const Flag& flag, const Config& config, Family family) {
    const OptionValue list = flag.value_of.get(flag, config);
    if (const auto* ranges = std::get_if<std::vector<AddressRange>>(&list)) return addresses(*ranges, family);
    if (const auto* ports = std::get_if<std::vector<PortRange>>(&list)) return numbers(*ports);
    if (const auto* ids = std::get_if<std::vector<IdRange>>(&list)) return numbers(*ids);
    if (const auto* names = std::get_if<std::vector<std::string>>(&list)) return interfaces(*names);
    return numbers(std::get<std::vector<std::uint32_t>>(list));
  }
  Sets::Id interfaces(const std::vector<std::string>& names) {
    Intervals all;
    const auto& known = regions_.universe().interfaces;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (is_one_of(names, known[i])) all.push_back({i, i});
    }
    return sets_.of(normal(std::move(all)));
  }
  // Only what comes from hosts that the pod has a route to: others get no answer, with rules or without.
  void only_answerable(Box& box, Family family) {
    Intervals all;
    for (const NetworkRoute& route : pod_.routes) {
      const bool leads_out = route.kind == NetworkRoute::Kind::unicast || route.kind == NetworkRoute::Kind::unknown;
      if (leads_out && route.to.family() == family) all.push_back({value_of(route.to.first), value_of(route.to.last)});
    }
    const Intervals reachable = normal(std::move(all));
    if (reachable != Intervals{regions_.universe().domain(Field::source, family)})
      only(box, Field::source, sets_.of(reachable));
  }
  void of_proxy(Box& box, const Proxy& proxy) {
    if (proxy.is_ztunnel) {
      at(box, Field::mark) = sets_.single(regions_.universe().mark_class(ztunnel_mark));
      return;
    }
    only(box, Field::uid, numbers(proxy.uids));
    only(box, Field::gid, numbers(proxy.gids));
  }

 private:
  Regions& regions_;
  Sets& sets_;
  const PodView& pod_;
};

bool is_untouched(const Ending& ending) { return !ending.translated && !ending.transparent; }
bool is_never_seen(const Ending& ending) {  // nobody gets it: no promise is broken by that
  return ending.kind == Outcome::Kind::unroutable || ending.kind == Outcome::Kind::dropped;
}

// How the packets of a promise are to end.
class Kept {
 public:
  explicit Kept(Regions& regions) : sets_(&regions.sets()) {}

  [[nodiscard]] auto taken_by(std::vector<std::uint16_t> ports, std::vector<std::string> interfaces) const {
    return [sets = sets_, ports = std::move(ports), interfaces = std::move(interfaces)](const Ending& ending,
                                                                                        const Box& box) {
      const bool by_excluded =
          ending.kind == Outcome::Kind::leaves && is_untouched(ending) && is_one_of(interfaces, ending.interface);
      return by_excluded || is_never_seen(ending) ||
             (is_taken(ending, box, ports, *sets) && ending.answers != Outcome::Answers::lost);
    };
  }
  [[nodiscard]] auto not_taken_by(std::vector<std::uint16_t> ports) const {
    return [sets = sets_, ports = std::move(ports)](const Ending& ending, const Box& box) {
      return !is_taken(ending, box, ports, *sets);
    };
  }

 private:
  const Sets* sets_;
};

struct Asked {
  Regions& regions;
  const PodView& pod;
  const Config& config;
  const Plan& plan;
};

std::vector<std::uint16_t> captured_dns_ports(const Config& config) {
  return config.redirect_dns ? std::vector{proxy_dns_port} : std::vector<std::uint16_t>{};
}

// Neither left out nor "*", which is no list.
bool is_listed(const Flag& flag, const Config& config) {
  const OptionValue value = flag.value_of.get(flag, config);
  const auto* ranges = std::get_if<std::vector<AddressRange>>(&value);
  return ranges != nullptr && !ranges->empty();
}

// Without what options leave out of it. Rules of DNS and of the proxy are asked before those of addresses.
enum class Order : std::uint8_t { before_addresses, after_addresses };
void leave_out(Boxes& boxes, Box& box, const Config& config, Direction way, Family family, Order order) {
  for (const Flag& flag : flags()) {
    const ListMeaning& meaning = flag.value_of.meaning;
    if (std::ranges::find(meaning.ways, way) == meaning.ways.end() ||
        (meaning.field == Field::destination && order == Order::before_addresses))
      continue;
    if (meaning.role == ListMeaning::Role::leaves_out)
      boxes.but(box, meaning.field, boxes.listed(flag, config, family));
    if (meaning.role == ListMeaning::Role::narrows && is_listed(flag, config))
      boxes.only(box, meaning.field, boxes.listed(flag, config, family));
  }
}

// By apps: neither of the proxy's ids, and of the groups that are asked for.
void of_app(Boxes& boxes, Box& box, const Asked& asked, const Proxy& proxy) {
  boxes.but(box, Field::uid, boxes.numbers(proxy.uids));
  boxes.but(box, Field::gid, boxes.numbers(proxy.gids));
  if (!asked.config.owner_groups.all) boxes.only(box, Field::gid, boxes.numbers(asked.config.owner_groups.list));
}

// Or of users and to ports that --exclude-uid-ports leaves out, however it ends.
template <typename KeptBy>
auto or_excluded(Boxes& boxes, const Asked& asked, KeptBy kept) {
  std::vector<std::pair<Sets::Id, Sets::Id>> excluded;
  for (const UidPorts& one : asked.config.exclude_uid_ports)
    excluded.emplace_back(boxes.numbers(std::vector{one.uids}), boxes.numbers(one.ports));
  return [sets = &asked.regions.sets(), excluded = std::move(excluded), kept = std::move(kept)](const Ending& ending,
                                                                                                const Box& box) {
    return kept(ending, box) || std::ranges::any_of(excluded, [&](const auto& one) {
             return sets->is_within(box[index(Field::uid)], one.first) &&
                    sets->is_within(box[index(Field::destination_port)], one.second);
           });
  };
}

std::string asked_by(const Config& config) {
  std::vector<std::string> flags;
  if (config.outbound_ranges.all) flags.emplace_back("-i '*'");
  if (!config.outbound_ranges.list.empty()) flags.emplace_back("-i");
  if (!config.outbound_ports.empty()) flags.emplace_back("-q");
  return fmt::format("{}", fmt::join(flags, ", "));
}

bool captures_outbound(const Config& config) {
  return !config.outbound_ranges.empty() || !config.outbound_ports.empty();
}

// A family that has no rules is captured by no option: that is said once.
struct Wanted {
  Code code;
  std::string remedy;
};
std::optional<Wanted> wanted_in(const Asked& asked, Family family) {
  if (asked.plan.families.contains(family))
    return Wanted{Code::escape, "change the rule that decides, or leave out the option that asks for it"};
  const auto own = std::ranges::any_of(asked.pod.interfaces, [&](const Interface& interface) {
    return interface.name != "lo" && std::ranges::any_of(interface.addresses, [&](const InterfaceAddress& one) {
             return one.address.family == family && !one.address.is_link_local();
           });
  });
  if (!own) return std::nullopt;
  return Wanted{Code::family_not_captured, "give --dual-stack, or remove the pod's IPv6 address"};
}

void add_outbound(std::vector<Invariant>& all, const Asked& asked, Family family) {
  const Config& config = asked.config;
  const auto wanted = wanted_in(asked, family);
  if (!captures_outbound(config) || !wanted) return;
  Boxes boxes(asked.regions, asked.pod);
  const Proxy proxy = proxy_of(config);
  Box box = boxes.usual(Direction::out, family, tcp);
  of_app(boxes, box, asked, proxy);
  leave_out(boxes, box, config, Direction::out, family, Order::after_addresses);
  boxes.but(box, Field::destination, boxes.addresses({config.loopback_ipv4}, family));
  const auto add = [&](const Box& of) {
    all.push_back(
        {wanted->code, fmt::format("outbound tcp, {}", title(family)),
         fmt::format("asked to be captured by {}", asked_by(config)), wanted->remedy, of,
         or_excluded(boxes, asked, Kept(asked.regions).taken_by(proxy.outbound_ports, config.exclude_interfaces))});
  };
  if (!config.outbound_ranges.empty()) {
    Box by_range = box;
    if (!config.outbound_ranges.all)
      boxes.only(by_range, Field::destination, boxes.addresses(config.outbound_ranges.list, family));
    add(by_range);
  }
  if (!config.outbound_ports.empty() && !config.outbound_ranges.all) {
    boxes.only(box, Field::destination_port, boxes.numbers(config.outbound_ports));
    add(box);
  }
}

void add_inbound(std::vector<Invariant>& all, const Asked& asked, Family family) {
  const Config& config = asked.config;
  const auto wanted = wanted_in(asked, family);
  if (config.inbound_ports.empty() || !wanted) return;
  Boxes boxes(asked.regions, asked.pod);
  Box box = boxes.usual(Direction::in, family, tcp);
  leave_out(boxes, box, config, Direction::in, family, Order::after_addresses);
  // Without '*' -d makes no rule: all ports of the list are asked for.
  if (!config.inbound_ports.all) Boxes::at(box, Field::destination_port) = boxes.numbers(config.inbound_ports.list);
  boxes.but(box, Field::destination_port, boxes.numbers(std::vector{config.tunnel_port}));
  boxes.but(box, Field::interface, boxes.interfaces(config.virtual_interfaces));
  boxes.only_answerable(box, family);
  all.push_back({wanted->code, fmt::format("inbound tcp, {}", title(family)),
                 fmt::format("asked to be captured by -b{}", config.inbound_ports.all ? " '*'" : ""), wanted->remedy,
                 box, Kept(asked.regions).taken_by({config.inbound_port}, {})});
}

void add_inbound_udp(std::vector<Invariant>& all, const Asked& asked, Family family) {
  const Config& config = asked.config;
  const auto wanted = wanted_in(asked, family);
  if (config.mode != Mode::tproxy || config.capture_udp.empty() || !wanted) return;
  Boxes boxes(asked.regions, asked.pod);
  Box box = boxes.usual(Direction::in, family, udp);
  boxes.only(box, Field::destination_port, boxes.numbers(config.capture_udp));
  boxes.but(box, Field::interface, boxes.interfaces(config.exclude_interfaces));
  boxes.only_answerable(box, family);
  all.push_back({wanted->code, fmt::format("inbound udp, {}", title(family)), "asked to be captured by --capture-udp",
                 wanted->remedy, box, Kept(asked.regions).taken_by({config.inbound_port}, {})});
}

void add_dns(std::vector<Invariant>& all, const Asked& asked, Family family) {
  const Config& config = asked.config;
  const bool to_any = config.capture_all_dns;
  if (!config.redirect_dns || (!to_any && asked.plan.dns_servers.empty()) || !asked.plan.families.contains(family))
    return;
  Boxes boxes(asked.regions, asked.pod);
  for (const Value protocol : {tcp, udp}) {
    Box box = boxes.usual(Direction::out, family, protocol);
    of_app(boxes, box, asked, proxy_of(config));
    boxes.only(box, Field::destination_port, boxes.numbers(std::vector{dns_port}));
    leave_out(boxes, box, config, Direction::out, family, Order::before_addresses);
    std::vector<AddressRange> servers;
    std::ranges::transform(asked.plan.dns_servers, std::back_inserter(servers), AddressRange::single);
    if (!to_any) boxes.only(box, Field::destination, boxes.addresses(servers, family));
    all.push_back(
        {Code::escape, fmt::format("DNS by {}, {}", protocol == tcp ? "tcp" : "udp", title(family)),
         fmt::format("asked to be captured by {}", to_any ? "--capture-all-dns" : "--redirect-dns"),
         "change the rule that decides, or leave out the option that asks for it", box,
         or_excluded(boxes, asked, Kept(asked.regions).taken_by({proxy_dns_port}, config.exclude_interfaces))});
  }
}

// What one proxy sends to this pod's own address. Of several uids, the rules of the first decide about the others, too.
void add_other_proxies(std::vector<Invariant>& all, const Asked& asked, Family family) {
  const Config& config = asked.config;
  if (config.proxy_uids.size() < 2 || config.inbound_ports.empty() || !asked.plan.families.contains(family)) return;
  Boxes boxes(asked.regions, asked.pod);
  Box box = boxes.usual(Direction::lo, family, tcp);
  boxes.of_proxy(box, proxy_of(config));
  boxes.only(box, Field::source, boxes.numbers(std::vector{0U}));
  boxes.but(
      box, Field::destination,
      boxes.addresses({*AddressRange::parse(family == Family::ipv4 ? "127.0.0.0/8" : "::/64"), config.loopback_ipv4},
                      family));
  boxes.but(box, Field::destination_port, boxes.numbers(std::vector{config.tunnel_port, dns_port}));
  leave_out(boxes, box, config, Direction::lo, family, Order::before_addresses);
  all.push_back({Code::escape, fmt::format("tcp of a proxy to this pod itself, {}", title(family)),
                 "must go through the inbound listener, as that of the first uid of -u does",
                 "give one uid: the rules of the first return what the others send", box,
                 Kept(asked.regions).taken_by({config.inbound_port}, {})});
}

// ---- Of an ambient pod.

AddressRange probes_from(const Config& config, Family family) {
  return AddressRange::single(family == Family::ipv4 ? config.probe_address : config.probe_address6);
}

Invariant invariant_of_ambient(const Wanted& wanted, std::string about, const char* asked_by_flags, const Box& box,
                               decltype(Invariant::kept) kept) {
  return {wanted.code, std::move(about), fmt::format("asked to be captured by {}", asked_by_flags), wanted.remedy,
          box,         std::move(kept)};
}

void add_ambient_outbound(std::vector<Invariant>& all, const Asked& asked, Family family, const Wanted& wanted) {
  Boxes boxes(asked.regions, asked.pod);
  Box box = boxes.usual(Direction::out, family, tcp);
  boxes.but(box, Field::destination, boxes.addresses({probes_from(asked.config, family)}, family));
  boxes.but(box, Field::destination, boxes.addresses({AddressRange::single(Address::loopback(family))}, family));
  all.push_back(invariant_of_ambient(wanted, fmt::format("outbound tcp, {}", title(family)), "--dataplane ambient", box,
                                     Kept(asked.regions).taken_by(proxy_of(asked.config).outbound_ports, {})));
}

void add_ambient_inbound(std::vector<Invariant>& all, const Asked& asked, Family family, const Wanted& wanted) {
  const Config& config = asked.config;
  if (config.ingress) return;
  Boxes boxes(asked.regions, asked.pod);
  Box box = boxes.usual(Direction::in, family, tcp);
  boxes.but(box, Field::destination_port, boxes.numbers(std::vector{config.tunnel_port}));
  boxes.but(box, Field::source, boxes.addresses({probes_from(config, family)}, family));
  boxes.but(box, Field::interface, boxes.interfaces(config.virtual_interfaces));
  boxes.only_answerable(box, family);
  all.push_back(invariant_of_ambient(wanted, fmt::format("inbound tcp, {}", title(family)), "--dataplane ambient", box,
                                     Kept(asked.regions).taken_by({config.inbound_port}, {})));
}

void add_ambient_dns(std::vector<Invariant>& all, const Asked& asked, Family family, const Wanted& wanted) {
  if (!asked.config.redirect_dns || !asked.plan.families.contains(family)) return;
  Boxes boxes(asked.regions, asked.pod);
  for (const Value protocol : {tcp, udp}) {
    Box box = boxes.usual(Direction::out, family, protocol);
    boxes.only(box, Field::destination_port, boxes.numbers(std::vector{dns_port}));
    boxes.but(
        box, Field::destination,
        boxes.addresses({probes_from(asked.config, family), AddressRange::single(Address::loopback(family))}, family));
    all.push_back(invariant_of_ambient(wanted,
                                       fmt::format("DNS by {}, {}", protocol == tcp ? "tcp" : "udp", title(family)),
                                       "--redirect-dns", box, Kept(asked.regions).taken_by({proxy_dns_port}, {})));
  }
}

void add_ambient(std::vector<Invariant>& all, const Asked& asked, Family family) {
  const auto wanted = wanted_in(asked, family);
  if (!wanted) return;
  add_ambient_outbound(all, asked, family, *wanted);
  add_ambient_inbound(all, asked, family, *wanted);
  add_ambient_dns(all, asked, family, *wanted);
}

// What the user can do about it.
const char* remedy_of_loop(const Proxy& proxy) {
  return proxy.is_ztunnel ? "let what has ztunnel's mark, 0x539/0xfff, pass"
                          : "leave out what the proxy sends: -u and -g are its uid and gid";
}

}  // namespace

Proxy proxy_of(const Config& config) {
  Proxy made;
  made.is_ztunnel = config.dataplane == Dataplane::ambient;
  for (const std::uint32_t uid : config.proxy_uids) made.uids.push_back({uid, uid});
  for (const std::uint32_t gid : config.proxy_gids) made.gids.push_back({gid, gid});
  made.outbound_ports = captured_dns_ports(config);
  made.outbound_ports.push_back(config.proxy_port);
  made.inbound_ports = {config.inbound_port};
  return made;
}

bool is_taken(const Ending& ending, const Box& box, const std::vector<std::uint16_t>& ports, const Sets& sets) {
  if (ending.kind != Outcome::Kind::lands || is_untouched(ending)) return false;
  const auto is_one = [&](std::uint16_t port) { return std::ranges::find(ports, port) != ports.end(); };
  if (ending.transparent) return is_one(ending.transparent_port);
  if (ending.port) return is_one(*ending.port);
  return std::ranges::all_of(sets.intervals(box[index(Field::destination_port)]), [&](const Interval& one) {  // kept
    return one.first == one.last && is_one(static_cast<std::uint16_t>(one.first));
  });
}

namespace {

// What ztunnel sends on to the app has the address of its client.
Invariant invariant_of_answers(Regions& regions, const PodView& pod, Box box, Family family) {
  const Box from_outside = regions.ordinary(pod, Direction::in, family);
  for (const Field field : {Field::source, Field::destination}) box[index(field)] = from_outside[index(field)];
  Sets::Id& source = box[index(Field::source)];
  source = regions.sets().difference(source, regions.sets().single(0));  // one that the kernel chooses
  return {Code::proxy_hindered,
          fmt::format("tcp of ztunnel to the app from its client's address, {}", title(family)),
          "the app's answers must come back to it, by the policy rule of their mark and the route of table 100",
          "'sidetrack verify --dataplane ambient' names what is missing or in the way",
          box,
          [](const Ending& ending, const Box&) {
            return ending.kind != Outcome::Kind::lands || ending.answers != Outcome::Answers::lost;
          }};
}

}  // namespace

std::vector<Invariant> invariants_of_proxy(Regions& regions, const PodView& pod, const Proxy& proxy,
                                           Families families) {
  std::vector<Invariant> all;
  Boxes boxes(regions, pod);
  const Kept kept(regions);
  for (const Family family : families.list()) {
    for (const Value protocol : {tcp, udp}) {
      const std::string name = protocol == tcp ? "tcp" : "udp";
      Box box = boxes.usual(Direction::out, family, protocol);
      boxes.of_proxy(box, proxy);
      const std::string about = fmt::format("outbound {} of the proxy, {}", name, title(family));
      all.push_back({Code::loop, about, "comes back to the proxy, which would send it again", remedy_of_loop(proxy),
                     box, kept.not_taken_by(proxy.outbound_ports)});
      box[index(Field::state)] = regions.sets().of({{0, 1}});  // later packets, too
      // Replies to what is bound to an address that others translate may be in another zone: nobody binds for DNS.
      if (protocol == udp) boxes.only(box, Field::source, regions.sets().single(0));
      Invariant leaves{Code::proxy_hindered,
                       about,
                       "must leave the pod unchanged",
                       proxy.is_ztunnel ? remedy_of_loop(proxy) : "let what the proxy's uid and gid send pass",
                       box,
                       {}};
      leaves.kept = [sets = &regions.sets(), ports = proxy.outbound_ports](const Ending& ending, const Box& of) {
        const bool as_it_is =
            ending.kind == Outcome::Kind::leaves && is_untouched(ending) && ending.answers != Outcome::Answers::lost;
        return as_it_is || ending.kind == Outcome::Kind::unroutable || is_taken(ending, of, ports, *sets);
      };
      all.push_back(std::move(leaves));
    }
    Box own = boxes.usual(Direction::lo, family, tcp);
    boxes.of_proxy(own, proxy);
    all.push_back({Code::loop, fmt::format("tcp of the proxy to this pod itself, {}", title(family)),
                   "comes back to the outbound listener, which would send it again", remedy_of_loop(proxy), own,
                   kept.not_taken_by(proxy.outbound_ports)});
    if (proxy.is_ztunnel) {
      all.push_back({Code::loop, fmt::format("tcp of ztunnel to the app, {}", title(family)),
                     "comes back to the inbound listener, which would send it again", remedy_of_loop(proxy), own,
                     kept.not_taken_by(proxy.inbound_ports)});
      if (proxy.rules_in.contains(family)) all.push_back(invariant_of_answers(regions, pod, own, family));
      continue;
    }
    Box to_app = own;
    const Address passthrough = Address::passthrough(family);
    boxes.only(to_app, Field::source, boxes.addresses({AddressRange::single(passthrough)}, family));
    all.push_back({Code::loop, fmt::format("tcp of the proxy to the app, {}", title(family)),
                   "comes back to the inbound listener, which would send it again",
                   fmt::format("leave out what comes from {}", passthrough.text()), to_app,
                   kept.not_taken_by(proxy.inbound_ports)});
  }
  return all;
}

std::vector<Invariant> invariants(Regions& regions, const PodView& pod, const Config& config, const Plan& plan) {
  if (config.mode == Mode::none) return {};
  const Asked asked{regions, pod, config, plan};
  std::vector<Invariant> all = invariants_of_proxy(regions, pod, proxy_of(config), plan.families);
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    if (config.dataplane == Dataplane::ambient) {
      add_ambient(all, asked, family);
      continue;
    }
    add_outbound(all, asked, family);
    add_inbound(all, asked, family);
    add_inbound_udp(all, asked, family);
    add_dns(all, asked, family);
    add_other_proxies(all, asked, family);
  }
  return all;
}

std::vector<Violation> violations(Regions& regions, Regions::Node root, const std::vector<Invariant>& invariants) {
  Sets& sets = regions.sets();
  std::map<std::pair<const Invariant*, Leaf>, Violation> found;
  regions.for_each(root, [&](const Box& box, const Box&, Leaf leaf) {
    if (leaf == no_such_packet) return;
    const std::vector<Ending> endings = each_of(regions.decision(leaf).ending);
    for (const Invariant& invariant : invariants) {
      Box part{};
      double share = 1;
      for (std::size_t i = 0; i < field_count && share > 0; ++i) {
        part[i] = sets.intersection(box[i], invariant.box[i]);
        share *= part[i] == Sets::empty ? 0 : sets.share(part[i], invariant.box[i]);
      }
      if (share == 0) continue;
      const auto broken_by =
          std::ranges::count_if(endings, [&](const Ending& one) { return !invariant.kept(one, part); });
      if (broken_by == 0) continue;
      Violation& known = found[{&invariant, leaf}];
      if (known.invariant == nullptr || share > known.share) known.box = part;
      known.invariant = &invariant;
      known.leaf = leaf;
      known.share += share;
      known.is_known = std::cmp_equal(broken_by, endings.size()) && regions.decision(leaf).ending.unknowns.empty();
    }
  });
  std::vector<Violation> all;
  for (const auto& [key, one] : found) all.push_back(one);
  std::ranges::stable_sort(all, [](const Violation& a, const Violation& b) {
    return a.invariant != b.invariant ? a.invariant < b.invariant : a.share > b.share;
  });
  return all;
}

std::optional<Finding> finding_of(Regions& regions, const Violation& broken) {
  const Invariant& invariant = *broken.invariant;
  const Decision& decision = regions.decision(broken.leaf);
  const auto packet = witness(regions, 0, broken.box, decision.ending);
  if (!packet) return std::nullopt;
  Finding made;
  made.code = broken.is_known ? invariant.code : Code::not_known;
  made.subject = invariant.about;
  made.witness = explain_words(*packet);
  made.ending = text(decision.ending);
  made.remedy = invariant.remedy;
  made.message = invariant.asked;
  if (!decision.ending.unknowns.empty()) {
    made.message += fmt::format("; what is not known: {}", unknown_words(decision.ending));
  } else if (decision.step != nullptr && invariant.code != Code::forwarded_replies_lost) {
    const Step& step = *decision.step;
    const std::string rule =
        step.live != nullptr ? iptables_words(step.live->rule) : fmt::format("-P {} DROP", step.chain);
    made.message += fmt::format("; what decides: {}: {}", step.table, rule);
  } else if (invariant.code != Code::family_not_captured && invariant.code != Code::forwarded_replies_lost) {
    made.message += "; no rule decides about it";
  }
  return made;
}

}  // namespace sidetrack::lint
