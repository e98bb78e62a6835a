// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/examples.h"

#include <algorithm>
#include <span>

#include "mesh/catalogue.h"
#include "model/interface_pattern.h"
#include "walk/addresses.h"
#include "walk/route.h"

namespace sidetrack {

// The values that a match names, and whether they are those that it does not hold for.
template <typename Values>
struct Named {
  const Values* values;  // of the match
  bool negated;
};
template <typename Number>
using NamedNumbers = Named<std::vector<Range<Number>>>;
using NamedRanges = Named<std::vector<AddressRange>>;

// What matches ask for, by field.
class AskedValues : public Asked {
 public:
  explicit AskedValues(const Conditions& conditions) {
    for (const Match* match : conditions) {
      negated_ = is_negated(*match);
      ask(*match, *this);
    }
  }

  struct Bits {
    std::uint32_t value;
    std::uint32_t mask;
    bool negated;
  };
  struct NamedInterface {
    InterfaceDirection direction;
    const std::string* name;
    bool negated;
  };
  std::vector<NamedNumbers<std::uint16_t>> ports_at[2];  // by End
  std::vector<NamedRanges> ranges_at[2];                 // likewise
  std::vector<NamedNumbers<std::uint32_t>> ids_of[2];    // by OwnerKind
  std::vector<std::pair<Protocol, bool>> protocols;      // and whether it is negated
  std::vector<Bits> marks;
  std::vector<NamedInterface> interfaces;
  std::string cgroup_path;  // the first one that is asked for; empty: one that no rule speaks of

  void interface(InterfaceDirection direction, const std::string& name) override {
    interfaces.push_back({direction, &name, negated_});
  }
  void addresses(End end, const std::vector<AddressRange>& ranges) override {
    ranges_at[index(end)].push_back({&ranges, negated_});
  }
  void protocol(Protocol protocol) override { protocols.emplace_back(protocol, negated_); }
  void ports(End end, const std::vector<PortRange>& ports) override {
    ports_at[index(end)].push_back({&ports, negated_});
  }
  void ids(OwnerKind kind, const std::vector<IdRange>& ids) override {
    ids_of[static_cast<std::size_t>(kind)].push_back({&ids, negated_});
  }
  void cgroup(const std::string& path) override {
    if (!negated_ && cgroup_path.empty()) cgroup_path = path;
  }
  void mark(std::uint32_t value, std::uint32_t mask) override { marks.push_back({value, mask, negated_}); }
  // No sender chooses these.
  void socket() override {}
  void connmark(std::uint32_t, std::uint32_t) override {}
  void connection() override {}

  static std::size_t index(End end) { return static_cast<std::size_t>(end); }
  [[nodiscard]] const auto& ports(End end) const { return ports_at[index(end)]; }
  [[nodiscard]] const auto& ranges(End end) const { return ranges_at[index(end)]; }

 private:
  bool negated_ = false;
};

namespace {

constexpr std::size_t most_of_match = 16;  // ranges of one match whose edges are taken
constexpr std::size_t most_of_plan = 24;   // values of one field
constexpr std::size_t most_of_field = 6;   // of one rule
constexpr PortRange every_port{1, 65535};
constexpr IdRange every_user{0, 0xfffffffe};  // (uid_t)-1 is nobody's
constexpr std::uint16_t usual_port = 80;
constexpr std::uint16_t usual_source_port = 40'000;  // one that kernels choose
constexpr std::uint32_t usual_id = 1000;
constexpr Direction directions[] = {Direction::out, Direction::in, Direction::lo};

std::size_t index(Direction direction) { return static_cast<std::size_t>(direction); }

template <typename Value>
void add_once(std::vector<Value>& all, const Value& value) {
  if (std::ranges::find(all, value) == all.end()) all.push_back(value);
}

template <typename Range>
std::span<const Range> first_of(const std::vector<Range>& ranges) {
  return std::span(ranges).first(std::min(ranges.size(), most_of_match));
}

// ---- Numbers

template <typename Number>
void add_edges(std::vector<Number>& all, const std::vector<Range<Number>>& ranges, const Range<Number>& domain) {
  const auto add = [&](Number number) {
    if (domain.contains(number)) add_once(all, number);
  };
  for (const Range<Number>& range : first_of(ranges)) {
    add(range.first);
    add(range.last);
    if (range.last < domain.last) add(static_cast<Number>(range.last + 1));
    if (range.first > domain.first) add(static_cast<Number>(range.first - 1));
  }
}

// Those of the domain for which all of `named` hold. If there are any, one of them is at an edge.
template <typename Number>
std::vector<Number> numbers(const std::vector<NamedNumbers<Number>>& named, const std::vector<Number>& others,
                            Number usual, const Range<Number>& domain) {
  std::vector<Number> all{usual};
  for (const NamedNumbers<Number>& each : named) add_edges(all, *each.values, domain);
  for (const Number number : others) add_once(all, number);
  add_once(all, domain.first);
  add_once(all, domain.last);
  std::erase_if(all, [&](Number number) {
    return std::ranges::any_of(named, [&](const NamedNumbers<Number>& each) {
      const bool is_named =
          std::ranges::any_of(*each.values, [&](const Range<Number>& range) { return range.contains(number); });
      return is_named == each.negated;
    });
  });
  return all;
}

void add_edges(std::vector<std::uint32_t>& marks, const AskedValues& asked) {
  for (const auto& mark : asked.marks) {
    add_once(marks, mark.value);
    add_once(marks, mark.value ^ (mark.mask & -mark.mask));
  }
}

std::vector<std::uint32_t> marks_of(const AskedValues& asked, const std::vector<std::uint32_t>& others) {
  std::vector<std::uint32_t> all{0};
  add_edges(all, asked);
  for (const std::uint32_t mark : others) add_once(all, mark);
  std::erase_if(all, [&](std::uint32_t value) {
    return std::ranges::any_of(asked.marks,
                               [&](const auto& mark) { return ((value & mark.mask) == mark.value) == mark.negated; });
  });
  return all;
}

std::vector<Protocol> protocols_of(const AskedValues& asked, Family family) {
  std::vector<Protocol> all{Protocol::tcp, Protocol::udp};
  if (asked.ports(End::source).empty() && asked.ports(End::destination).empty())
    all.push_back(family == Family::ipv4 ? Protocol::icmp : Protocol::icmpv6);
  std::erase_if(all, [&](Protocol protocol) {
    return std::ranges::any_of(asked.protocols, [&](const auto& one) { return (one.first == protocol) == one.second; });
  });
  return all;
}

// ---- Addresses

bool holds(const AskedValues& asked, End end, const Address& address) {
  return std::ranges::all_of(asked.ranges(end), [&](const NamedRanges& each) {
    return contains(*each.values, address, nullptr) != each.negated;
  });
}

std::optional<Address> next(Address address) {
  return increment(std::span(address.bytes).first(address.size())) ? std::optional(address) : std::nullopt;
}

std::optional<Address> previous(Address address) {
  for (std::size_t i = address.size(); i-- > 0;) {
    if (address.bytes[i]-- != 0) return address;
  }
  return std::nullopt;
}

std::vector<Address> address_edges(const AskedValues& asked, End end, std::size_t most = most_of_match) {
  std::vector<Address> all;
  for (const NamedRanges& each : asked.ranges(end)) {
    if (all.size() >= most) break;
    for (const AddressRange& range : first_of(*each.values)) {
      for (const std::optional<Address>& edge :
           {std::optional(range.first), std::optional(range.last), next(range.last), previous(range.first)}) {
        if (edge) add_once(all, *edge);
      }
    }
  }
  return all;
}

// The first one, then those at the edges, then the others; each once, of the family, and only those that pass.
template <typename Passes, typename MayBe>
std::vector<Address> chosen(const std::vector<Address>& usual, const std::vector<Address>& at_edges, Family family,
                            const Passes& passes, const MayBe& may_be) {
  std::vector<Address> all;
  for (const Address& address : usual) {
    if (address.family == family && passes(address)) add_once(all, address);
  }
  auto at = all.empty() ? all.begin() : all.begin() + 1;
  for (const Address& address : at_edges) {
    const bool is_new = std::ranges::find(all, address) == all.end();
    if (address.family == family && is_new && passes(address) && may_be(address)) at = all.insert(at, address) + 1;
  }
  return all;
}

// Addresses set aside for documentation stand for the rest of the world.
Address outside(Family family, Direction direction) {
  if (family == Family::ipv6) return *Address::parse("2001:db8:ffff::1");
  return *Address::parse(direction == Direction::in ? "203.0.113.1" : "198.51.100.1");
}

bool is_host(const PodView& pod, const Address& address) {
  const bool needs_scope = address.family == Family::ipv6 && address.is_link_local();
  return !needs_scope && !is_any(address, nullptr) && !is_multicast(address, nullptr) &&
         !is_broadcast(pod, address, nullptr);
}

std::vector<Address> own_addresses(const PodView& pod) {
  std::vector<Address> all;
  for (const Interface& interface : pod.interfaces) {
    if (interface.name == "lo") continue;
    for (const InterfaceAddress& own : interface.addresses) all.push_back(own.address);
  }
  return all;
}

Conditions conditions_of(const Ruleset& plan, const std::vector<MeshRule>& kinds) {
  Conditions all;
  for (const Rule& rule : plan.rules) {
    const bool is_one = kinds.empty() || std::ranges::any_of(kinds, [&](MeshRule kind) { return is_of(rule, kind); });
    if (!is_one) continue;
    for (const Match& match : rule.matches) all.push_back(&match);
  }
  return all;
}

}  // namespace

Examples::Examples(const PodView& pod, const Ruleset& plan) : pod_(pod) {
  const AskedValues of_plan(conditions_of(plan, {}));
  for (const Direction direction : directions) {
    to_[index(direction)] = usual_destinations(direction, of_plan);
    from_[index(direction)] = usual_sources(direction, plan);
  }
  const auto full = [](const auto& values) { return values.size() >= most_of_plan; };
  for (const End end : {End::source, End::destination}) {
    for (const auto& each : of_plan.ports(end)) {
      if (!full(ports_)) add_edges(ports_, *each.values, every_port);
    }
  }
  for (const OwnerKind kind : {OwnerKind::uid, OwnerKind::gid}) {
    std::vector<std::uint32_t>& ids = kind == OwnerKind::uid ? uids_ : gids_;
    for (const auto& each : of_plan.ids_of[static_cast<std::size_t>(kind)]) {
      if (!full(ids)) add_edges(ids, *each.values, every_user);
    }
  }
  add_edges(marks_, of_plan);
}

bool Examples::has_way_to(const Address& address) const {
  return route(pod_, {address, {}, 0, "lo", ""}).kind == RouteLookup::Kind::unicast;
}

bool Examples::can_be_destination(const Address& address, Direction direction) const {
  switch (direction) {
    case Direction::out:
      return is_host(pod_, address) && !is_local(pod_, address) && has_way_to(address);
    case Direction::in:
      return is_host(pod_, address) && !address.is_loopback();
    case Direction::lo:
      return is_local(pod_, address) && is_host(pod_, address);
  }
  return false;
}

bool Examples::can_be_source(const Address& address, Direction direction) const {
  if (direction == Direction::in) return is_host(pod_, address) && !is_local(pod_, address);
  return is_local(pod_, address) && (direction == Direction::lo || !address.is_loopback());
}

// In the networks that the pod has a route to, but for the rest of the world. Of each the first few: the pod itself may
// have one of them.
std::vector<Address> Examples::hosts() const {
  constexpr int few = 3;
  std::vector<Address> all;
  const auto add = [&](const AddressRange& network) {
    std::optional<Address> host = next(network.first);
    for (int i = 0; i < few && host && network.contains(*host); ++i, host = next(*host)) add_once(all, *host);
  };
  for (const Route& route : pod_.routes) {
    if (all.size() >= most_of_plan) break;
    if (route.kind != Route::Kind::unicast) continue;
    if (route.gateway) add_once(all, *route.gateway);
    if (route.to.prefix_length() != 0) add(route.to);
  }
  for (const Interface& interface : pod_.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) add(AddressRange::prefix(own.address, own.prefix_length));
  }
  return all;
}

std::vector<Address> Examples::usual_destinations(Direction direction, const AskedValues& of_plan) const {
  std::vector<Address> all;
  if (direction == Direction::out) {
    all = {outside(Family::ipv4, direction), outside(Family::ipv6, direction)};
    std::ranges::copy(hosts(), std::back_inserter(all));
  } else {
    all = own_addresses(pod_);
    if (direction == Direction::lo)
      all.insert(all.end(), {Address::loopback(Family::ipv4), Address::loopback(Family::ipv6)});
  }
  if (direction != Direction::in)
    std::ranges::copy(address_edges(of_plan, End::destination, most_of_plan), std::back_inserter(all));
  std::erase_if(all, [&](const Address& address) { return !can_be_destination(address, direction); });
  if (direction == Direction::in)  // first those of the interface by which answers to any host leave
    std::ranges::stable_partition(all, [&](const Address& address) {
      return interface_of(pod_, address) == route(pod_, {outside(address.family, direction), {}, 0, "lo", ""}).device;
    });
  return all;
}

// Of a plan that captures inbound traffic of some sources alone, those first; then those that answers go back to.
std::vector<Address> Examples::usual_sources(Direction direction, const Ruleset& plan) const {
  std::vector<Address> all = own_addresses(pod_);
  if (direction == Direction::in) {
    const AskedValues captured(conditions_of(plan, {MeshRule::inbound_jump, MeshRule::inbound_excluded_range}));
    all = address_edges(captured, End::source, most_of_plan);
    std::erase_if(all, [&](const Address& address) { return !holds(captured, End::source, address); });
    all.insert(all.end(), {outside(Family::ipv4, direction), outside(Family::ipv6, direction)});
    std::ranges::copy(hosts(), std::back_inserter(all));
  } else if (direction == Direction::lo) {
    all.insert(all.end(), {Address::loopback(Family::ipv4), Address::loopback(Family::ipv6)});
  }
  std::erase_if(all, [&](const Address& address) { return !can_be_source(address, direction); });
  if (direction == Direction::in)
    std::ranges::stable_partition(all, [&](const Address& address) { return has_way_to(address); });
  return all;
}

std::vector<Address> Examples::destinations(const AskedValues& asked, Direction direction, Family family) const {
  std::vector<Address> all = chosen(
      to_[index(direction)], address_edges(asked, End::destination), family,
      [&](const Address& address) { return holds(asked, End::destination, address); },
      [&](const Address& address) { return can_be_destination(address, direction); });
  if (direction != Direction::out) return all;
  std::ranges::stable_partition(all, [&](const Address& address) {
    return std::ranges::all_of(asked.interfaces, [&](const auto& one) {
      return one.direction == InterfaceDirection::in ||
             matches_interface(*one.name, route(pod_, {address, {}, 0, "lo", ""}).device) != one.negated;
    });
  });
  return all;
}

std::vector<std::optional<Address>> Examples::sources(const AskedValues& asked, Direction direction,
                                                      Family family) const {
  if (direction != Direction::in && asked.ranges(End::source).empty()) return {std::nullopt};
  const std::vector<Address> all = chosen(
      from_[index(direction)], address_edges(asked, End::source), family,
      [&](const Address& address) { return holds(asked, End::source, address); },
      [&](const Address& address) { return can_be_source(address, direction); });
  return {all.begin(), all.end()};
}

// By which interface they come in. Nothing: by none of the pod's; empty: by the one that the destination is of.
std::optional<std::string> Examples::entrance(const AskedValues& asked, Direction direction) const {
  const auto is_of_entrance = [](const auto& one) { return one.direction == InterfaceDirection::in; };
  if (direction != Direction::in || std::ranges::none_of(asked.interfaces, is_of_entrance)) return "";
  for (const Interface& interface : pod_.interfaces) {
    const bool is_one = std::ranges::all_of(asked.interfaces, [&](const auto& one) {
      return !is_of_entrance(one) || matches_interface(*one.name, interface.name) != one.negated;
    });
    if (is_one && interface.name != "lo") return interface.name;
  }
  return std::nullopt;
}

std::vector<Packet> Examples::of(const Conditions& conditions, Direction direction, Family family) const {
  const AskedValues asked(conditions);
  const auto interface = entrance(asked, direction);
  const auto protocols = protocols_of(asked, family);
  const auto to = destinations(asked, direction, family);
  const auto from = sources(asked, direction, family);
  const auto to_ports = numbers(asked.ports(End::destination), ports_, usual_port, every_port);
  const auto from_ports = numbers(asked.ports(End::source), {}, usual_source_port, every_port);
  const auto uids = numbers(asked.ids_of[0], uids_, usual_id, every_user);
  const auto gids = numbers(asked.ids_of[1], gids_, usual_id, every_user);
  const auto marks = direction == Direction::in ? std::vector{0U} : marks_of(asked, marks_);
  const bool are_there = interface && !protocols.empty() && !to.empty() && !from.empty() && !to_ports.empty() &&
                         !from_ports.empty() && !uids.empty() && !gids.empty() && !marks.empty();
  if (!are_there) return {};
  Packet usual;
  usual.direction = direction;
  usual.interface = *interface;
  usual.protocol = protocols.front();
  usual.destination = to.front();
  usual.source = from.front();
  usual.destination_port = to_ports.front();
  usual.source_port = from_ports.front();
  usual.mark = marks.front();
  if (direction != Direction::in) {
    usual.owner = Owner{uids.front(), gids.front()};
    usual.cgroup = asked.cgroup_path;
  }
  std::vector<Packet> all{usual};
  const auto vary = [&](const auto& values, const auto& set) {
    for (std::size_t i = 1; i < std::min(values.size(), most_of_field); ++i) set(all.emplace_back(usual), values[i]);
  };
  if (usual.owner) {
    vary(uids, [](Packet& packet, std::uint32_t uid) { packet.owner->uid = uid; });
    vary(gids, [](Packet& packet, std::uint32_t gid) { packet.owner->gid = gid; });
  }
  vary(to, [](Packet& packet, const Address& address) { packet.destination = address; });
  vary(to_ports, [](Packet& packet, std::uint16_t port) { packet.destination_port = port; });
  vary(protocols, [](Packet& packet, Protocol protocol) { packet.protocol = protocol; });
  vary(from, [](Packet& packet, const std::optional<Address>& address) { packet.source = address; });
  vary(marks, [](Packet& packet, std::uint32_t mark) { packet.mark = mark; });
  for (Packet& packet : all) {
    if (!has_ports(packet.protocol)) packet.destination_port = packet.source_port = std::nullopt;
  }
  return all;
}

}  // namespace sidetrack
