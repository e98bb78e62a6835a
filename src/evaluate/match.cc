// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/match.h"

#include <fmt/format.h>

#include <algorithm>

#include "evaluate/observer.h"
#include "model/interface_pattern.h"

namespace sidetrack {
namespace {

template <typename Value, typename Range>
bool any_contains(const std::vector<Range>& ranges, const Value& value) {
  return std::ranges::any_of(ranges, [&](const Range& range) { return range.contains(value); });
}

std::uint8_t state_bit(ConnectionState state) {
  switch (state) {
    case ConnectionState::new_:
      return ConntrackStateMatch::new_;
    case ConnectionState::established:
    case ConnectionState::reply:
      return ConntrackStateMatch::established;
    case ConnectionState::invalid:
      return ConntrackStateMatch::invalid;
  }
  return 0;
}

const char* state_words(ConnectionState state) {
  switch (state) {
    case ConnectionState::new_:
      return "the connection is new";
    case ConnectionState::established:
    case ConnectionState::reply:
      return "the connection is established";
    case ConnectionState::invalid:
      return "it belongs to no known connection";
  }
  return "";
}

Truth known(bool holds) { return holds ? Truth::yes : Truth::no; }

// Whether a port that is only known to be one of `chosen` is in the list.
Truth contains_chosen(const std::vector<PortRange>& ports, const PortRange& chosen) {
  Truth found = Truth::no;
  for (const PortRange& range : ports) {
    if (range.first <= chosen.first && chosen.last <= range.last) return Truth::yes;
    if (range.first <= chosen.last && chosen.first <= range.last) found = Truth::unknown;
  }
  return found;
}

struct TruthOf {
  const PacketAtHook& packet;

  Truth operator()(const InterfaceMatch& m) const {
    return known(matches_interface(m.name, m.direction == InterfaceDirection::in ? packet.in : packet.out) !=
                 m.negated);
  }
  [[nodiscard]] Truth is_within(End end, const std::vector<AddressRange>& ranges, bool negated) const {
    const Address& address = end == End::source ? packet.source.address : packet.destination.address;
    const bool same_family = ranges.empty() || ranges.front().family() == address.family;
    if (same_family && end == End::source && !packet.source_known) return Truth::unknown;
    return known(same_family && any_contains(ranges, address) != negated);
  }
  Truth operator()(const AddressMatch& m) const { return is_within(m.end, m.ranges, m.negated); }
  // A set of the other family holds none of them: `! --match-set` matches (net/netfilter/xt_set.c).
  Truth operator()(const SetMatch& m) const {
    if (!m.members) return Truth::unknown;
    const Address& address = m.end == End::source ? packet.source.address : packet.destination.address;
    if (!m.members->empty() && m.members->front().family() != address.family) return known(m.negated);
    return is_within(m.end, *m.members, m.negated);
  }
  Truth operator()(const ProtocolMatch& m) const { return known((m.protocol == packet.protocol) != m.negated); }
  // xt asks for a protocol with ports; nf_tables takes the bytes that are there.
  Truth operator()(const PortMatch& m) const {
    if (packet.protocol != Protocol::tcp && packet.protocol != Protocol::udp) {
      return packet.native ? Truth::unknown : Truth::no;
    }
    const std::optional<std::uint16_t>& port = (m.end == End::source ? packet.source : packet.destination).port;
    if (port) return known(any_contains(m.ports, *port) != m.negated);
    const Truth found = contains_chosen(m.ports, packet.ephemeral_ports);
    return found == Truth::unknown ? found : known((found == Truth::yes) != m.negated);
  }
  // No socket, no owner: `! --uid-owner` holds then in xt (net/netfilter/xt_owner.c), while `meta skuid != ` of
  // nf_tables gives up on the rule (nft_meta_get_eval_skugid).
  Truth operator()(const OwnerMatch& m) const {
    if (!packet.owner_known) return Truth::unknown;
    if (!packet.owner) return known(m.negated && !packet.native);
    return known(any_contains(m.ids, m.kind == OwnerKind::uid ? packet.owner->uid : packet.owner->gid) != m.negated);
  }
  Truth operator()(const SocketMatch& m) const {
    if (!packet.owner_known) return Truth::unknown;
    return known(packet.owner.has_value() != m.negated);
  }
  Truth operator()(const ConntrackStateMatch& m) const {
    const std::uint8_t bit = packet.untracked ? std::uint8_t{ConntrackStateMatch::untracked}
                                              : state_bit(packet.tracked ? packet.state : ConnectionState::invalid);
    return known(((m.states & bit) != 0) != m.negated);
  }
  // Without a connection neither --ctdir holds (net/netfilter/xt_conntrack.c; nft_ct breaks off too).
  Truth operator()(const ConntrackDirectionMatch& m) const {
    const bool has = packet.tracked && !packet.untracked && packet.state != ConnectionState::invalid;
    return known(has && (packet.state == ConnectionState::reply) == m.reply);
  }
  Truth operator()(const MarkMatch& m) const { return known(((packet.mark & m.mask) == m.value) != m.negated); }
  // Without a connection neither `--mark` nor `! --mark` holds (net/netfilter/xt_connmark.c; nft_ct breaks off too).
  Truth operator()(const ConnmarkMatch& m) const {
    return known(packet.tracked && packet.connmark && ((*packet.connmark & m.mask) == m.value) != m.negated);
  }
  // Without a socket neither holds (net/netfilter/xt_cgroup.c; nft_socket breaks off too).
  Truth operator()(const CgroupMatch& m) const {
    if (!packet.owner_known) return Truth::unknown;
    if (!packet.owner) return Truth::no;
    if (!packet.cgroup || m.path.empty()) return Truth::unknown;
    return known(is_within_cgroup(*packet.cgroup, m.path) != m.negated);
  }
  Truth operator()(const CommentMatch&) const { return Truth::yes; }
  Truth operator()(const UnknownMatch&) const { return Truth::unknown; }
};

// Why connection tracking knows nothing of the packet; nullptr: it knows its connection.
const char* without_connection(const PacketAtHook& packet) {
  if (packet.untracked) return "it is not tracked";
  if (packet.state == ConnectionState::invalid) return state_words(packet.state);
  return packet.tracked ? nullptr : "it is not tracked yet";
}

// What the packet has, where a match does not hold.
struct WhyNot {
  const PacketAtHook& packet;

  std::string operator()(const InterfaceMatch& m) const {
    const bool in = m.direction == InterfaceDirection::in;
    const std::string& name = in ? packet.in : packet.out;
    if (name.empty()) return in ? "no interface yet: it is sent from here" : "no interface yet: it is not routed";
    return fmt::format("it {} by {}", in ? "comes in" : "goes out", name);
  }
  [[nodiscard]] std::string address_at(End end) const {
    const bool source = end == End::source;
    return fmt::format("its {} is {}", source ? "source" : "destination",
                       (source ? packet.source : packet.destination).address.text());
  }
  std::string operator()(const AddressMatch& m) const { return address_at(m.end); }
  std::string operator()(const SetMatch& m) const { return address_at(m.end); }
  std::string operator()(const SocketMatch&) const {
    return packet.owner ? "a process of this namespace sent it" : "no process of this namespace sent it";
  }
  std::string operator()(const ProtocolMatch&) const { return fmt::format("it is {}", name(packet.protocol)); }
  std::string operator()(const PortMatch& m) const {
    if (packet.protocol != Protocol::tcp && packet.protocol != Protocol::udp) return "it has no ports";
    const std::optional<std::uint16_t>& port = (m.end == End::source ? packet.source : packet.destination).port;
    const char* which = m.end == End::source ? "source" : "destination";
    if (!port) return fmt::format("its {} port is one that the kernel chose", which);
    return fmt::format("its {} port is {}", which, *port);
  }
  std::string operator()(const OwnerMatch& m) const {
    const char* kind = m.kind == OwnerKind::uid ? "uid" : "gid";
    if (!packet.owner) return fmt::format("no process sent it, so it has no {}", kind);
    return fmt::format("its {} is {}", kind, m.kind == OwnerKind::uid ? packet.owner->uid : packet.owner->gid);
  }
  std::string operator()(const ConntrackStateMatch&) const {
    const char* without = without_connection(packet);
    return without != nullptr ? without : state_words(packet.state);
  }
  std::string operator()(const ConntrackDirectionMatch& m) const {
    if (const char* without = without_connection(packet)) return without;
    return m.reply ? "it is no answer" : "it is an answer";
  }
  std::string operator()(const MarkMatch&) const {
    return packet.mark == 0 ? "it has no mark" : fmt::format("its mark is {}", packet.mark);
  }
  std::string operator()(const ConnmarkMatch&) const {
    if (const char* without = without_connection(packet)) return without;
    return *packet.connmark == 0 ? "its connection has no mark"
                                 : fmt::format("its connection's mark is {}", *packet.connmark);
  }
  std::string operator()(const CgroupMatch&) const {
    if (!packet.owner) return "no process sent it, so it has no cgroup";
    return fmt::format("its cgroup is /{}", packet.cgroup.value_or(""));
  }
  std::string operator()(const CommentMatch&) const { return ""; }  // holds
  std::string operator()(const UnknownMatch&) const { return ""; }  // not known
};

}  // namespace

Truth truth(const Match& match, const PacketAtHook& packet) { return std::visit(TruthOf{packet}, match); }

bool holds_observed(const Match& match, const PacketAtHook& packet) {
  const bool is = holds(match, packet);
  const Match* const asked = &match;
  if (packet.observer != nullptr && is) packet.observer->match(match, packet);
  if (packet.observer != nullptr && !is) packet.observer->no_match({&asked, 1}, packet);
  return is;
}

std::string why_not(const Match& match, const PacketAtHook& packet) { return std::visit(WhyNot{packet}, match); }

}  // namespace sidetrack
