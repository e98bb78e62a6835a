// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/invariants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "mesh/describe.h"
#include "model/interface_pattern.h"
#include "model/ports.h"
#include "model/stable_sort.h"
#include "options/flags.h"
#include "pod/ztunnel.h"
#include "rule/iptables.h"
#include "space/witness.h"
#include "walk/explain.h"

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
    for (const Route& route : pod_.routes) {
      const bool leads_out = route.kind == Route::Kind::unicast || route.kind == Route::Kind::unknown;
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
auto taken_by(const Sets& sets, std::vector<std::uint16_t> ports, std::vector<std::string> interfaces) {
  return [&sets, ports = std::move(ports), interfaces = std::move(interfaces)](const Ending& ending, const Box& box) {
    const bool by_excluded =
        ending.kind == Outcome::Kind::leaves && is_untouched(ending) && is_one_of(interfaces, ending.interface);
    return by_excluded || is_never_seen(ending) ||
           (is_taken(ending, box, ports, sets) && ending.answers != Outcome::Answers::lost);
  };
}
auto not_taken_by(const Sets& sets, std::vector<std::uint16_t> ports) {
  return [&sets, ports = std::move(ports)](const Ending& ending, const Box& box) {
    return !is_taken(ending, box, ports, sets);
  };
}

// Neither left out nor "*", which is no list.
bool is_listed(const Flag& flag, const Config& config) {
  const OptionValue value = flag.value_of.get(flag, config);
  const auto* ranges = std::get_if<std::vector<AddressRange>>(&value);
  return ranges != nullptr && !ranges->empty();
}

std::string asked_by(const Config& config) {
  std::vector<std::string> flags;
  if (config.outbound_ranges.all) flags.emplace_back("-i '*'");
  if (!config.outbound_ranges.list.empty()) flags.emplace_back("-i");
  if (!config.outbound_ports.empty()) flags.emplace_back("-q");
  return fmt::format("{}", fmt::join(flags, ", "));
}

// What the options promise of one family.
class Promises {
 public:
  Promises(std::vector<Invariant>& all, Regions& regions, const PodView& pod, const Config& config, const Plan& plan,
           Family family)
      : all_(all),
        sets_(regions.sets()),
        config_(config),
        plan_(plan),
        family_(family),
        proxy_(proxy_of(config)),
        boxes_(regions, pod),
        has_rules_(plan.families.contains(family)) {
    // A family that has no rules is captured by no option: that is said once.
    is_wanted_ = has_rules_ || pod.has_address(family);
  }

  void run() {
    if (config_.dataplane == Dataplane::ambient) {
      if (!is_wanted_) return;
      ambient_outbound();
      if (!config_.ingress) ambient_inbound();
      ambient_dns();
      return;
    }
    if (is_wanted_) {
      outbound();
      inbound();
      inbound_udp();
    }
    dns();
    other_proxies();
  }

 private:
  void add(Code code, std::string about, std::string asked, std::string remedy, const Box& box,
           decltype(Invariant::kept) kept) {
    about += fmt::format(", {}", title(family_));
    all_.push_back({code, std::move(about), std::move(asked), std::move(remedy), box, std::move(kept)});
  }
  // What options ask for is to be captured.
  void add_captured(std::string about, std::string_view flags, const Box& box, decltype(Invariant::kept) kept) {
    add(has_rules_ ? Code::escape : Code::family_not_captured, std::move(about),
        fmt::format("asked to be captured by {}", flags),
        has_rules_ ? "change the rule that decides, or leave out the option that asks for it"
                   : "give --dual-stack, or remove the pod's IPv6 address",
        box, std::move(kept));
  }

  // Without what options leave out of it. Rules of DNS and of the proxy are asked before those of addresses.
  enum class Order : std::uint8_t { before_addresses, after_addresses };
  void leave_out(Box& box, Direction way, Order order) {
    for (const Flag& flag : flags()) {
      const ListMeaning& meaning = flag.value_of.meaning;
      if (std::ranges::find(meaning.ways, way) == meaning.ways.end() ||
          (meaning.field == Field::destination && order == Order::before_addresses))
        continue;
      if (meaning.role == ListMeaning::Role::leaves_out)
        boxes_.but(box, meaning.field, boxes_.listed(flag, config_, family_));
      if (meaning.role == ListMeaning::Role::narrows && is_listed(flag, config_))
        boxes_.only(box, meaning.field, boxes_.listed(flag, config_, family_));
    }
  }

  // By apps: neither of the proxy's ids, and of the groups that are asked for.
  void of_app(Box& box) {
    boxes_.but(box, Field::uid, boxes_.numbers(proxy_.uids));
    boxes_.but(box, Field::gid, boxes_.numbers(proxy_.gids));
    if (!config_.owner_groups.all) boxes_.only(box, Field::gid, boxes_.numbers(config_.owner_groups.list));
  }

  // Or of users and to ports that --exclude-uid-ports leaves out, however it ends.
  template <typename KeptBy>
  auto or_excluded(KeptBy kept) {
    std::vector<std::pair<Sets::Id, Sets::Id>> excluded;
    for (const UidPorts& one : config_.exclude_uid_ports)
      excluded.emplace_back(boxes_.numbers(std::vector{one.uids}), boxes_.numbers(one.ports));
    return
        [sets = &sets_, excluded = std::move(excluded), kept = std::move(kept)](const Ending& ending, const Box& box) {
          return kept(ending, box) || std::ranges::any_of(excluded, [&](const auto& one) {
                   return sets->is_within(box[index(Field::uid)], one.first) &&
                          sets->is_within(box[index(Field::destination_port)], one.second);
                 });
        };
  }

  void outbound() {
    Box box = boxes_.usual(Direction::out, family_, tcp);
    of_app(box);
    leave_out(box, Direction::out, Order::after_addresses);
    boxes_.but(box, Field::destination, boxes_.addresses({config_.loopback_ipv4}, family_));
    const auto add_box = [&](const Box& of) {
      add_captured("outbound tcp", asked_by(config_), of,
                   or_excluded(taken_by(sets_, proxy_.outbound_ports, config_.exclude_interfaces)));
    };
    if (!config_.outbound_ranges.empty()) {
      Box by_range = box;
      if (!config_.outbound_ranges.all)
        boxes_.only(by_range, Field::destination, boxes_.addresses(config_.outbound_ranges.list, family_));
      add_box(by_range);
    }
    if (!config_.outbound_ports.empty() && !config_.outbound_ranges.all) {
      boxes_.only(box, Field::destination_port, boxes_.numbers(config_.outbound_ports));
      add_box(box);
    }
  }

  void inbound() {
    if (config_.inbound_ports.empty()) return;
    Box box = boxes_.usual(Direction::in, family_, tcp);
    leave_out(box, Direction::in, Order::after_addresses);
    // Without '*' -d makes no rule: all ports of the list are asked for.
    if (!config_.inbound_ports.all)
      Boxes::at(box, Field::destination_port) = boxes_.numbers(config_.inbound_ports.list);
    boxes_.but(box, Field::destination_port, boxes_.numbers(std::vector{config_.tunnel_port}));
    boxes_.but(box, Field::interface, boxes_.interfaces(config_.virtual_interfaces));
    boxes_.only_answerable(box, family_);
    add_captured("inbound tcp", config_.inbound_ports.all ? "-b '*'" : "-b", box,
                 taken_by(sets_, {config_.inbound_port}, {}));
  }

  void inbound_udp() {
    if (config_.mode != Mode::tproxy || config_.capture_udp.empty()) return;
    Box box = boxes_.usual(Direction::in, family_, udp);
    boxes_.only(box, Field::destination_port, boxes_.numbers(config_.capture_udp));
    boxes_.but(box, Field::interface, boxes_.interfaces(config_.exclude_interfaces));
    boxes_.only_answerable(box, family_);
    add_captured("inbound udp", "--capture-udp", box, taken_by(sets_, {config_.inbound_port}, {}));
  }

  void dns() {
    const bool to_any = config_.capture_all_dns;
    if (!config_.redirect_dns || (!to_any && plan_.dns_servers.empty()) || !has_rules_) return;
    for (const Value protocol : {tcp, udp}) {
      Box box = boxes_.usual(Direction::out, family_, protocol);
      of_app(box);
      boxes_.only(box, Field::destination_port, boxes_.numbers(std::vector{dns_port}));
      leave_out(box, Direction::out, Order::before_addresses);
      std::vector<AddressRange> servers;
      std::ranges::transform(plan_.dns_servers, std::back_inserter(servers), AddressRange::single);
      if (!to_any) boxes_.only(box, Field::destination, boxes_.addresses(servers, family_));
      add_captured(protocol == tcp ? "DNS by tcp" : "DNS by udp", to_any ? "--capture-all-dns" : "--redirect-dns", box,
                   or_excluded(taken_by(sets_, {proxy_dns_port}, config_.exclude_interfaces)));
    }
  }

  // What one proxy sends to this pod's own address. Of several uids, the rules of the first decide about the others,
  // too.
  void other_proxies() {
    if (config_.proxy_uids.size() < 2 || config_.inbound_ports.empty() || !has_rules_) return;
    Box box = boxes_.usual(Direction::lo, family_, tcp);
    boxes_.of_proxy(box, proxy_);
    boxes_.only(box, Field::source, boxes_.numbers(std::vector{0U}));
    const AddressRange loopback = *AddressRange::parse(family_ == Family::ipv4 ? "127.0.0.0/8" : "::/64");
    boxes_.but(box, Field::destination, boxes_.addresses({loopback, config_.loopback_ipv4}, family_));
    boxes_.but(box, Field::destination_port, boxes_.numbers(std::vector{config_.tunnel_port, dns_port}));
    leave_out(box, Direction::lo, Order::before_addresses);
    add(Code::escape, "tcp of a proxy to this pod itself",
        "must go through the inbound listener, as that of the first uid of -u does",
        "give one uid: the rules of the first return what the others send", box,
        taken_by(sets_, {config_.inbound_port}, {}));
  }

  // ---- Of an ambient pod.

  [[nodiscard]] AddressRange probes_from() const {
    return AddressRange::single(family_ == Family::ipv4 ? config_.probe_address : config_.probe_address6);
  }
  // Neither the kubelet's probes nor the pod itself.
  [[nodiscard]] Sets::Id left_alone() {
    return boxes_.addresses({probes_from(), AddressRange::single(Address::loopback(family_))}, family_);
  }

  void ambient_outbound() {
    Box box = boxes_.usual(Direction::out, family_, tcp);
    boxes_.but(box, Field::destination, left_alone());
    add_captured("outbound tcp", "--dataplane ambient", box, taken_by(sets_, proxy_.outbound_ports, {}));
  }

  void ambient_inbound() {
    Box box = boxes_.usual(Direction::in, family_, tcp);
    boxes_.but(box, Field::destination_port, boxes_.numbers(std::vector{config_.tunnel_port}));
    boxes_.but(box, Field::source, boxes_.addresses({probes_from()}, family_));
    boxes_.but(box, Field::interface, boxes_.interfaces(config_.virtual_interfaces));
    boxes_.only_answerable(box, family_);
    add_captured("inbound tcp", "--dataplane ambient", box, taken_by(sets_, {config_.inbound_port}, {}));
  }

  void ambient_dns() {
    if (!config_.redirect_dns || !has_rules_) return;
    for (const Value protocol : {tcp, udp}) {
      Box box = boxes_.usual(Direction::out, family_, protocol);
      boxes_.only(box, Field::destination_port, boxes_.numbers(std::vector{dns_port}));
      boxes_.but(box, Field::destination, left_alone());
      add_captured(protocol == tcp ? "DNS by tcp" : "DNS by udp", "--redirect-dns", box,
                   taken_by(sets_, {proxy_dns_port}, {}));
    }
  }

  std::vector<Invariant>& all_;
  Sets& sets_;
  const Config& config_;
  const Plan& plan_;
  Family family_;
  Proxy proxy_;
  Boxes boxes_;
  bool has_rules_;
  bool is_wanted_ = false;
};

// What the user can do about it.
const char* remedy_of_loop(const Proxy& proxy) {
  return proxy.is_ztunnel ? "let what has ztunnel's mark, 0x539/0xfff, pass"
                          : "leave out what the proxy sends: -u and -g are its uid and gid";
}

// Returns the promise about what ztunnel sends on to the app, which has the address of its client.
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

Proxy proxy_of(const Config& config) {
  Proxy made;
  made.is_ztunnel = config.dataplane == Dataplane::ambient;
  for (const std::uint32_t uid : config.proxy_uids) made.uids.push_back({uid, uid});
  for (const std::uint32_t gid : config.proxy_gids) made.gids.push_back({gid, gid});
  if (config.redirect_dns) made.outbound_ports.push_back(proxy_dns_port);
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

std::vector<Invariant> invariants_of_proxy(Regions& regions, const PodView& pod, const Proxy& proxy,
                                           Families families) {
  std::vector<Invariant> all;
  Boxes boxes(regions, pod);
  Sets& sets = regions.sets();
  for (const Family family : families.list()) {
    for (const Value protocol : {tcp, udp}) {
      const std::string name = protocol == tcp ? "tcp" : "udp";
      Box box = boxes.usual(Direction::out, family, protocol);
      boxes.of_proxy(box, proxy);
      const std::string about = fmt::format("outbound {} of the proxy, {}", name, title(family));
      all.push_back({Code::loop, about, "comes back to the proxy, which would send it again", remedy_of_loop(proxy),
                     box, not_taken_by(sets, proxy.outbound_ports)});
      box[index(Field::state)] = sets.of({{0, 1}});  // later packets, too
      // Replies to what is bound to an address that others translate may be in another zone: nobody binds for DNS.
      if (protocol == udp) boxes.only(box, Field::source, sets.single(0));
      Invariant leaves{Code::proxy_hindered,
                       about,
                       "must leave the pod unchanged",
                       proxy.is_ztunnel ? remedy_of_loop(proxy) : "let what the proxy's uid and gid send pass",
                       box,
                       {}};
      leaves.kept = [&sets, ports = proxy.outbound_ports](const Ending& ending, const Box& of) {
        const bool as_it_is =
            ending.kind == Outcome::Kind::leaves && is_untouched(ending) && ending.answers != Outcome::Answers::lost;
        return as_it_is || ending.kind == Outcome::Kind::unroutable || is_taken(ending, of, ports, sets);
      };
      all.push_back(std::move(leaves));
    }
    Box own = boxes.usual(Direction::lo, family, tcp);
    boxes.of_proxy(own, proxy);
    all.push_back({Code::loop, fmt::format("tcp of the proxy to this pod itself, {}", title(family)),
                   "comes back to the outbound listener, which would send it again", remedy_of_loop(proxy), own,
                   not_taken_by(sets, proxy.outbound_ports)});
    if (proxy.is_ztunnel) {
      all.push_back({Code::loop, fmt::format("tcp of ztunnel to the app, {}", title(family)),
                     "comes back to the inbound listener, which would send it again", remedy_of_loop(proxy), own,
                     not_taken_by(sets, proxy.inbound_ports)});
      if (proxy.rules_in.contains(family)) all.push_back(invariant_of_answers(regions, pod, own, family));
      continue;
    }
    Box to_app = own;
    const Address passthrough = Address::passthrough(family);
    boxes.only(to_app, Field::source, boxes.addresses({AddressRange::single(passthrough)}, family));
    all.push_back({Code::loop, fmt::format("tcp of the proxy to the app, {}", title(family)),
                   "comes back to the inbound listener, which would send it again",
                   fmt::format("leave out what comes from {}", passthrough.text()), to_app,
                   not_taken_by(sets, proxy.inbound_ports)});
  }
  return all;
}

std::vector<Invariant> invariants(Regions& regions, const PodView& pod, const Config& config, const Plan& plan) {
  if (config.mode == Mode::none) return {};
  std::vector<Invariant> all = invariants_of_proxy(regions, pod, proxy_of(config), plan.families);
  for (const Family family : {Family::ipv4, Family::ipv6}) Promises(all, regions, pod, config, plan, family).run();
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
  sort_stably(all, [](const Violation& a, const Violation& b) {
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
  made.ending = ending_text(decision.ending);
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
