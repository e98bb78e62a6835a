// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/connection.h"

#include <fmt/format.h>
#include <linux/netfilter/nf_conntrack_common.h>

#include <algorithm>
#include <span>

#include "pod/pod_view.h"
#include "rule/iptables.h"
#include "rule/match.h"
#include "rule/match/conntrack_spec.h"
#include "rule/match/within.h"
#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"

namespace sidetrack {
namespace {

using Of = ConnectionMatch::Of;
using ConnectionInfo = xt_conntrack_mtinfo3;

// "--ctorigdst", and "--ctorigdstport"; in the order in which iptables lists them.
struct ConnectionEnd {
  std::string_view option;
  bool reply;
  End end;
  unsigned address_bit, port_bit;
  nf_inet_addr ConnectionInfo::*address;
  nf_inet_addr ConnectionInfo::*mask;
  __u16 ConnectionInfo::*first;
  __u16 ConnectionInfo::*last;
};
constexpr ConnectionEnd connection_ends[] = {
    {"origsrc", false, End::source, XT_CONNTRACK_ORIGSRC, XT_CONNTRACK_ORIGSRC_PORT, &ConnectionInfo::origsrc_addr,
     &ConnectionInfo::origsrc_mask, &ConnectionInfo::origsrc_port, &ConnectionInfo::origsrc_port_high},
    {"origdst", false, End::destination, XT_CONNTRACK_ORIGDST, XT_CONNTRACK_ORIGDST_PORT, &ConnectionInfo::origdst_addr,
     &ConnectionInfo::origdst_mask, &ConnectionInfo::origdst_port, &ConnectionInfo::origdst_port_high},
    {"replsrc", true, End::source, XT_CONNTRACK_REPLSRC, XT_CONNTRACK_REPLSRC_PORT, &ConnectionInfo::replsrc_addr,
     &ConnectionInfo::replsrc_mask, &ConnectionInfo::replsrc_port, &ConnectionInfo::replsrc_port_high},
    {"repldst", true, End::destination, XT_CONNTRACK_REPLDST, XT_CONNTRACK_REPLDST_PORT, &ConnectionInfo::repldst_addr,
     &ConnectionInfo::repldst_mask, &ConnectionInfo::repldst_port, &ConnectionInfo::repldst_port_high}};

// By IPS_…_BIT; the last two in the words of --ctstate.
constexpr std::string_view status_words[] = {"EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED", "SNAT", "DNAT"};
constexpr std::string_view module_words = "-m conntrack";

std::string words_of(const AddressRange& range) {
  return range.first == range.last ? range.first.text() : range.text();
}

std::string status_list(unsigned status) {
  const std::string text = bit_names(status, status_words).value_or("");
  return text.empty() ? "NONE" : text;
}

// An end of a tuple, and which ports it may have if it has none.
struct TupleEnd {
  Endpoint endpoint;
  bool is_known = true;
  PortRange ports{1, 65535};
};
TupleEnd tuple_end(const PacketAtHook& packet, bool reply, End end) {
  const bool is_sender = (end == End::source) != reply;  // of the first packet
  const auto& made = is_sender ? packet.connection.source : packet.connection.destination;
  const bool is_reply = packet.state == ConnectionState::reply;
  if (made && reply) return {made->after, made->after_known, packet.ephemeral_ports};
  TupleEnd found{made ? made->before : packet.at(is_sender != is_reply ? End::source : End::destination)};
  found.ports = packet.pod != nullptr ? packet.pod->ephemeral_ports : packet.ephemeral_ports;
  return found;
}

// Whether the kernel has noted that an end was translated: only if it is another one then.
Truth is_translated(const std::optional<Translation>& made) {
  if (!made) return Truth::no;
  const Endpoint &before = made->before, &after = made->after;
  const bool same_port = after.port == before.port && (after.port || after.port_origin == before.port_origin);
  const bool is_other = (made->after_known && after.address != before.address) ||
                        (after.port && before.port && after.port != before.port);
  if (is_other) return Truth::yes;
  return made->after_known && same_port ? Truth::no : Truth::unknown;
}

Truth has_status_bit(const PacketAtHook& packet, unsigned bit) {
  const bool is_new = packet.state == ConnectionState::new_;
  switch (bit) {
    case IPS_EXPECTED:
      return Truth::no;  // nor is its packet RELATED
    case IPS_SEEN_REPLY:
      return known(!is_new);
    case IPS_ASSURED:
      if (packet.state == ConnectionState::established && packet.protocol == Protocol::tcp) return Truth::yes;
      return is_new ? Truth::no : Truth::unknown;
    case IPS_CONFIRMED:  // as it left the pod by lo
      return known(!is_new || packet.in == "lo");
    case IPS_SRC_NAT:
      return is_translated(packet.connection.source);
    case IPS_DST_NAT:
      return is_translated(packet.connection.destination);
    default:
      return Truth::unknown;
  }
}

// Other masks than those of a network, and intervals that no port is in, are shown and not followed.
std::vector<Match> matches_of(const ConnectionInfo& info, Family family) {
  std::vector<Match> matches;
  const auto has = [&](unsigned bit) { return (info.match_flags & bit) != 0; };
  const auto is_negated = [&](unsigned bit) { return (info.invert_flags & bit) != 0; };
  const auto add_unknown = [&](unsigned bit, std::string_view option, const std::string& value) {
    matches.emplace_back(
        UnknownMatch{fmt::format("{} {}--ct{} {}", module_words, exclamation(is_negated(bit)), option, value)});
  };
  if (has(XT_CONNTRACK_PROTO)) {
    ConnectionMatch match{Of::protocol, false, End::source, is_negated(XT_CONNTRACK_PROTO), {}, {}};
    match.number = info.l4proto;
    matches.emplace_back(std::move(match));
  }
  for (const ConnectionEnd& each : connection_ends) {
    if (!has(each.address_bit)) continue;
    const Address address = xt::address_in(family, &(info.*each.address));
    const Address mask = xt::address_in(family, &(info.*each.mask));
    const auto network = network_with_mask(address, mask);
    ConnectionMatch match{Of::address, each.reply, each.end, is_negated(each.address_bit), {}, {}};
    if (network) {
      match.addresses = {*network};
      matches.emplace_back(std::move(match));
    } else {
      add_unknown(each.address_bit, each.option, address.text() + "/" + mask.text());
    }
  }
  for (const ConnectionEnd& each : connection_ends) {
    if (!has(each.port_bit)) continue;
    ConnectionMatch match{Of::port, each.reply, each.end, is_negated(each.port_bit), {}, {}};
    match.ports = {{info.*each.first, info.*each.last}};
    if (match.ports.front().first <= match.ports.front().last) {
      matches.emplace_back(std::move(match));
    } else {
      add_unknown(each.port_bit, fmt::format("{}port", each.option),
                  listed(std::span<const PortRange>(match.ports), ':'));
    }
  }
  if (has(XT_CONNTRACK_STATUS)) {
    ConnectionMatch match{Of::status, false, End::source, is_negated(XT_CONNTRACK_STATUS), {}, {}};
    match.number = info.status_mask;
    matches.emplace_back(std::move(match));
  }
  const IdRange expires{info.expires_min, info.expires_max};
  if (has(XT_CONNTRACK_EXPIRES)) add_unknown(XT_CONNTRACK_EXPIRES, "expire", listed(std::span(&expires, 1), ':'));
  return matches;
}

// Which end an nf_tables key is of; nothing: none.
struct TupleKey {
  std::uint32_t number;
  End end;
  std::optional<Family> family;  // of an address
};
constexpr TupleKey tuple_keys[] = {{NFT_CT_SRC_IP, End::source, Family::ipv4},
                                   {NFT_CT_SRC_IP6, End::source, Family::ipv6},
                                   {NFT_CT_PROTO_SRC, End::source, {}},
                                   {NFT_CT_DST_IP, End::destination, Family::ipv4},
                                   {NFT_CT_DST_IP6, End::destination, Family::ipv6},
                                   {NFT_CT_PROTO_DST, End::destination, {}}};

// ct original ip daddr 10.0.0.0/8, as that field of the packet is compared.
std::optional<nft::Alternatives> of_tuple(const nft::Comparison& comparison) {
  const auto* key = std::ranges::find(tuple_keys, comparison.value.key, &TupleKey::number);
  if (key == std::end(tuple_keys)) return {};
  nft::Comparison of_packet = comparison;
  of_packet.field = key->family ? &nft::address_field(*key->family, key->end) : &nft::port_field(key->end);
  auto ways = key->family ? AddressMatch::from_nft(of_packet) : PortMatch::from_nft(of_packet);
  if (!ways || ways->empty()) return ways;
  if (ways->size() > 1 || ways->front().size() != 1) return {};
  Match& match = ways->front().front();
  ConnectionMatch made{
      key->family ? Of::address : Of::port, comparison.value.offset != 0, key->end, comparison.negated, {}, {}};
  if (auto* addresses = std::get_if<AddressMatch>(&match)) made.addresses = std::move(addresses->ranges);
  if (auto* ports = std::get_if<PortMatch>(&match)) made.ports = std::move(ports->ports);
  match = std::move(made);
  return ways;
}

}  // namespace

Truth has_status(const PacketAtHook& packet, std::uint16_t bits) {
  Truth all = Truth::no;
  for (unsigned bit = 1; bit <= bits; bit <<= 1) {
    if ((bits & bit) == 0) continue;
    const Truth one = has_status_bit(packet, bit);
    if (one == Truth::yes || all == Truth::no) all = one;
    if (all == Truth::yes) break;
  }
  return all;
}

void join_if_odd(std::vector<Match>& matches, std::size_t first) {
  constexpr unsigned without = ConntrackStateMatch::invalid | ConntrackStateMatch::untracked;
  std::string words(module_words);
  std::vector<std::size_t> parts;
  bool holds_without = false;
  for (std::size_t i = first; i < matches.size(); ++i) {
    const auto* state = std::get_if<ConntrackStateMatch>(&matches[i]);
    if (state != nullptr) holds_without |= (state->states & without) != (state->negated ? without : 0);
    const std::string own = iptables_words(matches[i]);
    if (!own.starts_with(module_words)) continue;
    words += own.substr(module_words.size());
    parts.push_back(i);
  }
  if (!holds_without || parts.size() < 2) return;
  for (; parts.size() > 1; parts.pop_back()) matches.erase(matches.begin() + static_cast<std::ptrdiff_t>(parts.back()));
  matches[parts.front()] = UnknownMatch{std::move(words)};
}

std::string ConnectionMatch::to_iptables() const {
  std::string option, value;
  for (const ConnectionEnd& each : connection_ends) {
    if (each.reply == reply && each.end == end) option = each.option;
  }
  switch (of) {
    case Of::address:
      for (const AddressRange& range : addresses) value += (value.empty() ? "" : ",") + words_of(range);
      break;
    case Of::port:
      option += "port";
      value = listed(std::span(ports), ':');
      break;
    case Of::protocol:
      option = "proto";
      value = fmt::format("{}", number);
      break;
    case Of::status:
      option = "status";
      value = status_list(number);
      break;
  }
  return fmt::format("{} {}--ct{} {}", module_words, exclamation(negated), option, value);
}

std::optional<Match> ConnectionMatch::from_iptables(const MatchOption& option) {
  std::string_view name = option.name;
  if (!name.starts_with("--ct")) return {};
  name.remove_prefix(4);
  ConnectionMatch match{Of::port, false, End::source, option.negated, {}, {}};
  if (name == "status") {
    match.of = Of::status;
    for (const std::string_view item : split_at_each(option.value, ',')) {
      const auto* found = std::ranges::find(status_words, item);
      if (found == std::end(status_words) && item != "NONE") return {};
      if (item != "NONE") match.number = static_cast<std::uint16_t>(match.number | 1U << (found - status_words));
    }
    return match;
  }
  if (name == "proto") {
    const auto read = ProtocolMatch::from_iptables({"", "-p", option.value});
    if (!read) return {};
    match.of = Of::protocol;
    match.number = static_cast<std::uint16_t>(std::get<ProtocolMatch>(*read).protocol);
    return match;
  }
  if (name.ends_with("port")) {
    name.remove_suffix(4);
  } else {
    match.of = Of::address;
  }
  const auto* end = std::ranges::find(connection_ends, name, &ConnectionEnd::option);
  if (end == std::end(connection_ends)) return {};
  match.reply = end->reply;
  match.end = end->end;
  if (match.of == Of::port) {
    const auto ports = read_ranges<std::uint16_t>(option.value, ':');
    if (ports) match.ports = *ports;
  } else if (const auto range = AddressRange::parse(option.value)) {
    match.addresses = {*range};
  }
  return match.ports.empty() && match.addresses.empty() ? std::nullopt : std::optional(match);
}

xt::Sources ConnectionMatch::sources() { return {}; }  // ConntrackStateMatch has it

void ConnectionMatch::to_xt(const Rule&, std::vector<xt::Extension>&) const { xt::refuse(to_iptables()); }

// All of what one `-m conntrack` asks: ConntrackStateMatch and ConntrackDirectionMatch read what asks no more.
std::optional<std::vector<Match>> ConnectionMatch::from_xt(const xt::ExtensionView& extension, Family family) {
  constexpr unsigned state = XT_CONNTRACK_STATE | XT_CONNTRACK_STATE_ALIAS, direction = XT_CONNTRACK_DIRECTION;
  const auto info = conntrack_spec.decode(extension);
  if (!info || (info->match_flags & ~(2 * unsigned{XT_CONNTRACK_STATE_ALIAS} - 1)) != 0 ||
      (info->invert_flags & ~info->match_flags) != 0 || (info->status_mask >> std::size(status_words)) != 0)
    return {};
  std::vector<Match> matches;
  using Read = std::optional<std::vector<Match>> (*)(const xt::ExtensionView&, Family);
  const auto add_part = [&](unsigned bits, Read read) {
    if ((info->match_flags & bits) == 0) return true;
    ConnectionInfo part{};
    part.match_flags = static_cast<__u16>(info->match_flags & bits);
    part.invert_flags = static_cast<__u16>(info->invert_flags & bits);
    if (bits == state) part.state_mask = info->state_mask;
    const xt::Extension encoded = conntrack_spec.encode(part);
    auto found = read(xt::ExtensionView(encoded), family);
    if (found) std::ranges::move(*found, std::back_inserter(matches));
    return found.has_value();
  };
  if (!add_part(state, ConntrackStateMatch::from_xt)) return {};
  std::ranges::move(matches_of(*info, family), std::back_inserter(matches));
  if (!add_part(direction, ConntrackDirectionMatch::from_xt) || matches.empty()) return {};
  join_if_odd(matches, 0);
  return matches;
}

void ConnectionMatch::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }  // only read

// ct original ip daddr 10.0.0.0/8, ct reply proto-src 80, ct status dnat, ct protocol tcp
std::optional<nft::Alternatives> ConnectionMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  if (value.of == nft::Value::Of::tuple) return of_tuple(comparison);
  if (!comparison.is_one_value()) return {};
  const std::uint32_t number = nft::number_of(value, comparison.bounds.front().first);
  ConnectionMatch match{Of::protocol, false, End::source, comparison.negated, {}, {}};
  match.number = static_cast<std::uint16_t>(number);
  if (value.is_ct(NFT_CT_PROTOCOL) && !value.changed()) return nft::only(std::move(match));
  const bool asks_bits =
      value.is_ct(NFT_CT_STATUS) && value.changed() && number == 0 && nft::number_of(value, value.xor_value) == 0;
  const std::uint32_t bits = asks_bits ? nft::number_of(value, value.mask) : 0;
  if (bits == 0 || bits >> std::size(status_words) != 0) return {};
  match.of = Of::status;
  match.number = static_cast<std::uint16_t>(bits);
  match.negated = !comparison.negated;  // ct status & bits == 0
  return nft::only(std::move(match));
}

Truth ConnectionMatch::truth(const PacketAtHook& packet) const {
  if (without_connection(packet) != nullptr) return Truth::no;
  if (of == Of::protocol) return known((static_cast<std::uint16_t>(packet.protocol) == number) != negated);
  if (of == Of::status) return negated_if(negated, has_status(packet, number));
  const TupleEnd found = tuple_end(packet, reply, end);
  const Endpoint& at = found.endpoint;
  if (of == Of::port) {
    if (!has_ports(packet.protocol)) return Truth::unknown;  // type, code and id of icmp stand there
    return negated_if(negated, has_one_of(at.port, ports, found.ports));
  }
  if (addresses.front().family() != at.address.family) return Truth::no;
  if (!found.is_known) return Truth::unknown;
  const auto has = [&](const AddressRange& range) { return range.contains(at.address); };
  return known(std::ranges::any_of(addresses, has) != negated);
}

std::string ConnectionMatch::why_not(const PacketAtHook& packet) const {
  if (const char* without = without_connection(packet)) return without;
  if (of == Of::protocol) return fmt::format("the protocol of its connection is {}", name(packet.protocol));
  if (of == Of::status) return negated ? "its connection has such a status" : "its connection has no such status";
  const TupleEnd found = tuple_end(packet, reply, end);
  const std::optional<std::uint16_t>& port = found.endpoint.port;
  return fmt::format("the {} {}{} of its connection is {}", reply ? "reply" : "original",
                     end == End::source ? "source" : "destination", of == Of::port ? " port" : "",
                     of == Of::address ? found.endpoint.address.text()
                     : port            ? fmt::format("{}", *port)
                                       : "one that the kernel chose");
}

std::vector<ConnectionMatch::Question> ConnectionMatch::questions(const PacketAtHook& packet) const {
  std::vector<Question> all;
  if (without_connection(packet) != nullptr) return all;
  if (of == Of::address || of == Of::port) {
    const TupleEnd found = tuple_end(packet, reply, end);
    const bool same_family = of == Of::port || addresses.front().family() == found.endpoint.address.family;
    if (found.is_known && same_family) all.push_back({found.endpoint, addresses, ports});
  }
  const auto add = [&](unsigned bit, const std::optional<Translation>& made) {
    if (of != Of::status || (number & bit) == 0 || !made) return;
    Question question{made->before, {}, {}};
    if (made->after_known && made->after.address_origin != made->before.address_origin)
      question.addresses = {AddressRange::single(made->after.address)};
    if (made->after.port && made->after.port_origin != made->before.port_origin)
      question.ports = {{*made->after.port, *made->after.port}};
    all.push_back(std::move(question));
  };
  add(IPS_SRC_NAT, packet.connection.source);
  add(IPS_DST_NAT, packet.connection.destination);
  return all;
}

void ConnectionMatch::ask(Asked& asked) const {
  asked.connection();
  if (of == Of::protocol) asked.protocol(static_cast<Protocol>(number));
  if (of == Of::status) asked.interface(InterfaceDirection::in, "+");
  if (of == Of::status && (number & IPS_ASSURED) != 0) asked.protocol(Protocol::tcp);
  if (of != Of::protocol) asked.ends(*this);
}
void ConnectionMatch::take_value(const ConnectionMatch&) {}  // no option gives it

}  // namespace sidetrack
