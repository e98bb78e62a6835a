// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/port.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_tcpudp.h>

#include <stdexcept>

#include "rule/match/within.h"
#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_tcp> tcp{"tcp", 0};
constexpr xt::Spec<xt_udp> udp{"udp", 0, 1};
constexpr xt::Spec<xt_multiport_v1> multiport{"multiport", 1};
static_assert(xt::aligned(sizeof(xt_tcp)) == 16);
static_assert(xt::aligned(sizeof(xt_udp)) == 16);
static_assert(xt::aligned(sizeof(xt_multiport_v1)) == 48);
static_assert(XT_TCP_INV_SRCPT == XT_UDP_INV_SRCPT && XT_TCP_INV_DSTPT == XT_UDP_INV_DSTPT);

constexpr nft::KeyType inet_service{"inet_service", 13, 2, false};
constexpr PortRange any_port{0, 65535};

// ---- tcp, udp: `--sport 1024:65535 ! --dport 53`. Ports in host order. xt_tcp and xt_udp have the same names of the
// fields and the same INV bits of ports.

// The protocol whose header holds the ports; nothing but tcp and udp has an extension here.
Protocol port_protocol(const Rule& rule) {
  for (const Match& match : rule.matches) {
    const auto* protocol = std::get_if<ProtocolMatch>(&match);
    if (protocol != nullptr && !protocol->negated && has_ports(protocol->protocol)) return protocol->protocol;
  }
  throw std::logic_error("a port match needs -p tcp or -p udp in its rule");
}

template <typename Info>
Info any_ports() {
  Info info{};
  info.spts[1] = info.dpts[1] = any_port.last;
  return info;
}

template <typename Info>
std::vector<Match> ports_of(const Info& info) {
  std::vector<Match> matches;
  const auto add = [&](End end, const __u16(&ports)[2], int inverted) {
    const PortRange range{ports[0], ports[1]};
    const bool negated = (info.invflags & inverted) != 0;
    if (range != any_port || negated) matches.emplace_back(PortMatch{end, {range}, negated});
  };
  add(End::source, info.spts, XT_TCP_INV_SRCPT);
  add(End::destination, info.dpts, XT_TCP_INV_DSTPT);
  return matches;
}

template <typename Info>
bool has_source_port_alone(const Info& info) {
  const std::vector<Match> matches = ports_of(info);
  return matches.size() == 1 && std::get<PortMatch>(matches.front()).end == End::source;
}

// `--sport 53 --dport 53` is one extension.
template <typename Info>
void add_port(const xt::Spec<Info>& spec, const PortMatch& match, std::vector<xt::Extension>& extensions) {
  Info info = any_ports<Info>();
  const auto before = extensions.empty() ? std::nullopt : spec.decode(extensions.back());
  if (match.end == End::destination && before && has_source_port_alone(*before)) {
    info = *before;
    extensions.pop_back();
  }
  auto& ports = match.end == End::source ? info.spts : info.dpts;
  ports[0] = match.ports.front().first;
  ports[1] = match.ports.front().last;
  const int inverted = match.end == End::source ? XT_TCP_INV_SRCPT : XT_TCP_INV_DSTPT;
  if (match.negated) info.invflags = static_cast<std::uint8_t>(info.invflags | inverted);
  extensions.push_back(spec.encode(info));
}

std::optional<std::vector<Match>> decode_tcp(const xt_tcp& info) {
  if ((info.invflags & ~XT_TCP_INV_MASK) != 0) return {};
  std::vector<Match> matches = ports_of(info);
  const auto has = [&](int bit) { return (info.invflags & bit) != 0; };
  if (info.flg_mask != 0 || info.flg_cmp != 0 || has(XT_TCP_INV_FLAGS)) {
    matches.emplace_back(TcpFlagsMatch{info.flg_mask, info.flg_cmp, has(XT_TCP_INV_FLAGS)});
  }
  if (info.option != 0 || has(XT_TCP_INV_OPTION)) {
    matches.emplace_back(
        UnknownMatch{fmt::format("-m tcp{} --tcp-option {}", has(XT_TCP_INV_OPTION) ? " !" : "", info.option)});
  }
  return matches;
}

// ---- multiport: `--dports 53,1000:2000`. 15 slots; a range takes two, the first of them flagged.

xt::Extension encode_multiport(std::uint8_t which, const std::vector<PortRange>& ports, bool negated) {
  xt_multiport_v1 info{};
  info.flags = which;
  info.invert = xt::flag(negated);
  for (const PortRange& range : ports) {
    const bool single = range.first == range.last;
    if (info.count + (single ? 1 : 2) > XT_MULTI_PORTS) throw std::logic_error("multiport holds 15 ports at most");
    info.pflags[info.count] = xt::flag(!single);
    info.ports[info.count++] = range.first;
    if (!single) info.ports[info.count++] = range.last;
  }
  return multiport.encode(info);
}

// Nothing if a slot says what it should not.
std::optional<std::vector<PortRange>> ports_of(const xt_multiport_v1& info) {
  std::vector<PortRange> ranges;
  if (info.count == 0 || info.count > XT_MULTI_PORTS) return std::nullopt;
  for (std::size_t i = 0; i < XT_MULTI_PORTS; ++i) {
    const bool range = info.pflags[i] == 1;
    const bool empty = info.pflags[i] == 0 && info.ports[i] == 0;
    if (i >= info.count ? !empty : info.pflags[i] > 1) return std::nullopt;
    if (i >= info.count) continue;
    if (range && (i + 1 >= info.count || info.pflags[i + 1] != 0)) return std::nullopt;
    const PortRange ports{info.ports[i], info.ports[range ? i + 1 : i]};
    if (ports.first > ports.last || (range && ports.first == ports.last)) return std::nullopt;
    ranges.push_back(ports);
    if (range) ++i;
  }
  return ranges;
}

std::optional<std::vector<Match>> decode_multiport(const xt_multiport_v1& info) {
  const auto ranges = ports_of(info);
  if (!ranges || info.flags > XT_MULTIPORT_EITHER || info.invert > 1) return {};
  if (info.flags == XT_MULTIPORT_EITHER) return std::vector<Match>{EitherPortMatch{*ranges, info.invert != 0}};
  const End end = info.flags == XT_MULTIPORT_SOURCE ? End::source : End::destination;
  return std::vector<Match>{PortMatch{end, *ranges, info.invert != 0}};
}

// Whether the packet, which has ports, has one of these there.
Truth has_one_of(const PacketAtHook& packet, End end, const std::vector<PortRange>& ports) {
  return has_one_of(packet.at(end).port, ports, packet.ephemeral_ports);
}

// "its source port is 80"
std::string port_words(const PacketAtHook& packet, End end) {
  const std::optional<std::uint16_t>& port = packet.at(end).port;
  const char* which = end == End::source ? "source" : "destination";
  if (!port) return fmt::format("its {} port is one that the kernel chose", which);
  return fmt::format("its {} port is {}", which, *port);
}

}  // namespace

Truth has_one_of(const std::optional<std::uint16_t>& port, const std::vector<PortRange>& ports,
                 const PortRange& chosen) {
  Truth found = Truth::no;
  for (const PortRange& range : ports) {
    if (port ? range.contains(*port) : range.first <= chosen.first && chosen.last <= range.last) return Truth::yes;
    if (!port && range.first <= chosen.last && chosen.first <= range.last) found = Truth::unknown;
  }
  return found;
}

std::string PortMatch::to_iptables() const {
  const std::string list = listed(std::span<const PortRange>(ports), ':');
  if (ports.size() == 1) return fmt::format("{}--{}port {}", exclamation(negated), letter(end), list);
  return fmt::format("-m multiport {}--{}ports {}", exclamation(negated), letter(end), list);
}

std::optional<Match> PortMatch::from_iptables(const MatchOption& option) {
  const std::string_view name = option.name;
  if (name != "--sport" && name != "--dport" && name != "--sports" && name != "--dports") return {};
  auto ports = read_ranges<std::uint16_t>(option.value, ':');
  if (!ports) return {};
  return PortMatch{name[2] == 's' ? End::source : End::destination, *std::move(ports), option.negated};
}

xt::Sources PortMatch::sources() {
  static constexpr xt::Source all[] = {
      {"tcp", "xt_tcpudp", "CONFIG_NETFILTER_XTABLES"},
      {"udp", "xt_tcpudp", "CONFIG_NETFILTER_XTABLES"},
      {"multiport", "xt_multiport", "CONFIG_NETFILTER_XT_MATCH_MULTIPORT"},
  };
  return all;
}

void PortMatch::to_xt(const Rule& rule, std::vector<xt::Extension>& extensions) const {
  if (ports.empty()) throw std::logic_error("a port match without a port");
  if (ports.size() > 1) {
    const std::uint8_t which = end == End::source ? XT_MULTIPORT_SOURCE : XT_MULTIPORT_DESTINATION;
    extensions.push_back(encode_multiport(which, ports, negated));
  } else if (port_protocol(rule) == Protocol::tcp) {
    add_port(tcp, *this, extensions);
  } else {
    add_port(udp, *this, extensions);
  }
}

std::optional<std::vector<Match>> PortMatch::from_xt(const xt::ExtensionView& extension, Family) {
  if (const auto info = tcp.decode(extension)) return decode_tcp(*info);
  if (const auto info = udp.decode(extension); info && (info->invflags & ~XT_UDP_INV_MASK) == 0) return ports_of(*info);
  if (const auto info = multiport.decode(extension)) return decode_multiport(*info);
  return {};
}

// tcp dport 80, udp sport != 1000-2000, tcp dport { 15020, 15090 }
void PortMatch::to_nft(nft::RuleWriter& writer) const {
  std::vector<nft::Expression> expressions;
  writer.require_protocol(expressions);
  const nft::Field& field = nft::port_field(end);
  expressions.emplace_back(field.load());
  const std::string text = writer.compare_list(
      ports, inet_service, negated, end == End::source ? "-source" : "", expressions,
      [](const PortRange& range) {
        return nft::EncodedRange{nft::Data::network(range.first), nft::Data::network(range.last)};
      },
      sidetrack::text<std::uint16_t>);
  writer.add(fmt::format("{} {} {}{}", name(writer.protocol_of_ports()), field.text, nft::not_equal(negated), text),
             std::move(expressions));
}

std::optional<nft::Alternatives> PortMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Field* field = comparison.field;
  if (field == nullptr || field->family || comparison.value.size != field->size || comparison.value.changed())
    return {};
  auto ranges = nft::ranges_of<std::uint16_t>(comparison);
  if (!ranges) return {};
  if (ranges->empty()) return comparison.negated ? nft::always() : nft::never();
  return nft::only(PortMatch{field->end, *std::move(ranges), comparison.negated});
}

// xt asks for a protocol with ports; nf_tables takes the bytes that are there.
Truth PortMatch::truth(const PacketAtHook& packet) const {
  if (!has_ports(packet.protocol)) return packet.native ? Truth::unknown : Truth::no;
  return negated_if(negated, has_one_of(packet, end, ports));
}

std::string PortMatch::why_not(const PacketAtHook& packet) const {
  return has_ports(packet.protocol) ? port_words(packet, end) : "it has no ports";
}

void PortMatch::ask(Asked& asked) const { asked.ports(end, ports); }
void PortMatch::take_value(const PortMatch& from) { ports = from.ports; }
bool PortMatch::is_like(const PortMatch& other) const { return end == other.end && negated == other.negated; }

std::string EitherPortMatch::to_iptables() const {
  return fmt::format("-m multiport {}--ports {}", exclamation(negated), listed(std::span(ports), ':'));
}

std::optional<Match> EitherPortMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--ports") return {};
  auto ports = read_ranges<std::uint16_t>(option.value, ':');
  if (!ports) return {};
  return EitherPortMatch{*std::move(ports), option.negated};
}

xt::Sources EitherPortMatch::sources() { return {}; }  // PortMatch has it

void EitherPortMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  extensions.push_back(encode_multiport(XT_MULTIPORT_EITHER, ports, negated));
}

// PortMatch reads all of an extension multiport.
std::optional<std::vector<Match>> EitherPortMatch::from_xt(const xt::ExtensionView&, Family) { return {}; }
void EitherPortMatch::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }  // of iptables alone
std::optional<nft::Alternatives> EitherPortMatch::from_nft(const nft::Comparison&) { return {}; }

Truth EitherPortMatch::truth(const PacketAtHook& packet) const {
  if (!has_ports(packet.protocol)) return packet.native ? Truth::unknown : Truth::no;
  const Truth source = has_one_of(packet, End::source, ports);
  const Truth destination = has_one_of(packet, End::destination, ports);
  if (source == Truth::yes || destination == Truth::yes) return known(!negated);
  return negated_if(negated, source == Truth::unknown ? source : destination);
}

std::string EitherPortMatch::why_not(const PacketAtHook& packet) const {
  if (!has_ports(packet.protocol)) return "it has no ports";
  return port_words(packet, End::source) + ", " + port_words(packet, End::destination);
}

void EitherPortMatch::ask(Asked& asked) const {
  asked.ports(End::source, ports);
  asked.ports(End::destination, ports);
}
void EitherPortMatch::take_value(const EitherPortMatch&) {}  // no option gives it

}  // namespace sidetrack
