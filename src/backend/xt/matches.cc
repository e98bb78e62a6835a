// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/xt_comment.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "backend/xt/catalogue.h"
#include "sidetrack/render.h"

namespace sidetrack::xt {
namespace {

inline constexpr Spec<xt_comment_info> comment{"comment", 0};

constexpr PortRange any_port{0, 65535};

std::uint8_t flag(bool set) { return set ? 1 : 0; }

// ---- tcp, udp: `--sport 1024:65535 ! --dport 53`. Ports in host order.

// The protocol whose header holds the ports; nothing but tcp and udp has an extension here.
Protocol port_protocol(const Rule& rule) {
  for (const Match& match : rule.matches) {
    const auto* protocol = std::get_if<ProtocolMatch>(&match);
    if (protocol == nullptr || protocol->negated) continue;
    if (protocol->protocol == Protocol::tcp || protocol->protocol == Protocol::udp) return protocol->protocol;
  }
  throw std::logic_error("a port match needs -p tcp or -p udp in its rule");
}

template <typename Info>  // xt_tcp or xt_udp: the names of the fields and the INV bits of ports are the same
Info with_ports(Info info, const PortMatch& match) {
  auto& ports = match.end == End::source ? info.spts : info.dpts;
  ports[0] = match.ports.front().first;
  ports[1] = match.ports.front().last;
  const int inverted = match.end == End::source ? XT_TCP_INV_SRCPT : XT_TCP_INV_DSTPT;
  if (match.negated) info.invflags = static_cast<std::uint8_t>(info.invflags | inverted);
  return info;
}
static_assert(XT_TCP_INV_SRCPT == XT_UDP_INV_SRCPT && XT_TCP_INV_DSTPT == XT_UDP_INV_DSTPT);

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
    if (range != any_port || negated) matches.push_back(PortMatch{end, {range}, negated});
  };
  add(End::source, info.spts, XT_TCP_INV_SRCPT);
  add(End::destination, info.dpts, XT_TCP_INV_DSTPT);
  return matches;
}

// ---- multiport: `--dports 53,1000:2000`. 15 slots; a range takes two, the first of them flagged.

Extension encode_multiport(const PortMatch& match) {
  xt_multiport_v1 info{};
  info.flags = match.end == End::source ? XT_MULTIPORT_SOURCE : XT_MULTIPORT_DESTINATION;
  info.invert = flag(match.negated);
  for (const PortRange& range : match.ports) {
    const bool single = range.first == range.last;
    if (info.count + (single ? 1 : 2) > XT_MULTI_PORTS) throw std::logic_error("multiport holds 15 ports at most");
    info.pflags[info.count] = flag(!single);
    info.ports[info.count++] = range.first;
    if (!single) info.ports[info.count++] = range.last;
  }
  return multiport.encode(info);
}

std::vector<PortRange> ports_of(const xt_multiport_v1& info) {
  std::vector<PortRange> ranges;
  for (std::size_t i = 0; i < info.count && i < XT_MULTI_PORTS; ++i) {
    const bool range = info.pflags[i] != 0 && i + 1 < XT_MULTI_PORTS;
    ranges.push_back({info.ports[i], info.ports[range ? i + 1 : i]});
    if (range) ++i;
  }
  return ranges;
}

Match decode_multiport(const xt_multiport_v1& info) {
  const std::vector<PortRange> ranges = ports_of(info);
  // With one range the model would say `--dport`, which is another extension.
  if (info.flags != XT_MULTIPORT_EITHER && ranges.size() > 1) {
    return PortMatch{info.flags == XT_MULTIPORT_SOURCE ? End::source : End::destination, ranges, info.invert != 0};
  }
  std::string words;
  for (const PortRange& range : ranges) {
    words += words.empty() ? "" : ",";
    words += range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}:{}", range.first, range.last);
  }
  static constexpr std::string_view options[] = {"--sports", "--dports", "--ports"};
  return UnknownMatch{fmt::format("-m multiport{} {} {}", info.invert != 0 ? " !" : "",
                                  options[std::min<std::size_t>(info.flags, XT_MULTIPORT_EITHER)], words)};
}

// ---- owner: `! --uid-owner 1337`. `invert` has the bits of `match`.

Extension encode_owner(const OwnerMatch& match) {
  if (match.ids.size() != 1) throw std::logic_error("an owner match holds one id or range of ids");
  const auto [first, last] = match.ids.front();
  xt_owner_match_info info{};
  if (match.kind == OwnerKind::uid) {
    info.match = XT_OWNER_UID;
    info.uid_min = first;
    info.uid_max = last;
  } else {
    info.match = XT_OWNER_GID;
    info.gid_min = first;
    info.gid_max = last;
  }
  if (match.negated) info.invert = info.match;
  return owner.encode(info);
}

Match decode_owner(const xt_owner_match_info& info) {
  const bool negated = info.invert == info.match;
  if (info.invert == 0 || negated) {
    if (info.match == XT_OWNER_UID) return OwnerMatch{OwnerKind::uid, {{info.uid_min, info.uid_max}}, negated};
    if (info.match == XT_OWNER_GID) return OwnerMatch{OwnerKind::gid, {{info.gid_min, info.gid_max}}, negated};
  }
  std::string words = "-m owner";
  const auto add = [&](int bit, const std::string& option) {
    if ((info.match & bit) != 0) words += fmt::format("{} {}", (info.invert & bit) != 0 ? " !" : "", option);
  };
  const auto ids = [](std::uint32_t first, std::uint32_t last) {
    return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  };
  add(XT_OWNER_SOCKET, "--socket-exists");
  add(XT_OWNER_UID, "--uid-owner " + ids(info.uid_min, info.uid_max));
  add(XT_OWNER_GID, "--gid-owner " + ids(info.gid_min, info.gid_max));
  add(XT_OWNER_SUPPL_GROUPS, "--suppl-groups");
  return UnknownMatch{words};
}

// ---- conntrack: `--ctstate RELATED,ESTABLISHED`

struct State {
  ConntrackStateMatch::State model;
  unsigned kernel;
  std::string_view name;
};
constexpr State states[] = {
    {ConntrackStateMatch::invalid, XT_CONNTRACK_STATE_INVALID, "INVALID"},
    {ConntrackStateMatch::new_, XT_CONNTRACK_STATE_BIT(IP_CT_NEW), "NEW"},
    {ConntrackStateMatch::related, XT_CONNTRACK_STATE_BIT(IP_CT_RELATED), "RELATED"},
    {ConntrackStateMatch::established, XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED), "ESTABLISHED"},
    {ConntrackStateMatch::untracked, XT_CONNTRACK_STATE_UNTRACKED, "UNTRACKED"},
};

Extension encode_conntrack(const ConntrackStateMatch& match) {
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_STATE;
  if (match.negated) info.invert_flags = XT_CONNTRACK_STATE;
  for (const State& state : states) {
    if ((match.states & state.model) != 0) info.state_mask = static_cast<std::uint16_t>(info.state_mask | state.kernel);
  }
  return conntrack.encode(info);
}

Match decode_conntrack(const xt_conntrack_mtinfo3& info, const ExtensionView& extension) {
  ConntrackStateMatch match{0, (info.invert_flags & XT_CONNTRACK_STATE) != 0};
  unsigned unknown = info.state_mask;
  std::string words;
  for (const State& state : states) {
    if ((info.state_mask & state.kernel) == 0) continue;
    match.states = static_cast<std::uint8_t>(match.states | state.model);
    unknown &= ~state.kernel;
    if (!words.empty()) words += ',';
    words += state.name;
  }
  if (unknown == 0 && info.match_flags == XT_CONNTRACK_STATE) return match;
  // `-m state` is conntrack's other name and listed as such.
  if (unknown == 0 && info.match_flags == (XT_CONNTRACK_STATE | XT_CONNTRACK_STATE_ALIAS)) {
    return UnknownMatch{fmt::format("-m state{} --state {}", match.negated ? " !" : "", words)};
  }
  return UnknownMatch{unknown_words(ExtensionKind::match, extension)};
}

// ---- mark, connmark: `! --mark 0x539/0xff`, the same fields in both

template <typename Info, typename Mark>
Info marked(const Mark& match) {
  Info info{};
  info.mark = match.value;
  info.mask = match.mask;
  info.invert = flag(match.negated);
  return info;
}

template <typename Mark, typename Info>
Mark mark_of(const Info& info) {
  return {info.mark, info.mask, info.invert != 0};
}

}  // namespace

std::vector<Extension> matches_of(const Rule& rule) {
  std::vector<Extension> extensions;
  bool source_port_before = false;  // the last extension is tcp or udp and holds a source port alone
  for (const Match& match : rule.matches) {
    bool source_port = false;
    if (const auto* ports = std::get_if<PortMatch>(&match)) {
      if (ports->ports.empty()) throw std::logic_error("a port match without a port");
      if (ports->ports.size() > 1) {
        extensions.push_back(encode_multiport(*ports));
      } else {
        // `--sport 53 --dport 53` is one extension.
        const bool joined = source_port_before && ports->end == End::destination;
        const auto add = [&](const auto& spec, auto info) {
          if (joined) {
            info = *spec.decode(extensions.back());
            extensions.pop_back();
          }
          extensions.push_back(spec.encode(with_ports(info, *ports)));
        };
        port_protocol(rule) == Protocol::tcp ? add(tcp, any_ports<xt_tcp>()) : add(udp, any_ports<xt_udp>());
        source_port = ports->end == End::source;
      }
    } else if (const auto* owners = std::get_if<OwnerMatch>(&match)) {
      extensions.push_back(encode_owner(*owners));
    } else if (const auto* state = std::get_if<ConntrackStateMatch>(&match)) {
      extensions.push_back(encode_conntrack(*state));
    } else if (const auto* packet = std::get_if<MarkMatch>(&match)) {
      extensions.push_back(mark.encode(marked<xt_mark_mtinfo1>(*packet)));
    } else if (const auto* connection = std::get_if<ConnmarkMatch>(&match)) {
      extensions.push_back(connmark.encode(marked<xt_connmark_mtinfo1>(*connection)));
    } else if (std::holds_alternative<UnknownMatch>(match) || std::holds_alternative<CommentMatch>(match)) {
      throw std::logic_error("a match that is only read cannot be sent: " + iptables_words(match));
    } else {
      continue;  // interface, address, protocol: in the header
    }
    source_port_before = source_port;
  }
  return extensions;
}

std::vector<Match> decode_match(const ExtensionView& extension) {
  if (const auto info = tcp.decode(extension)) {
    auto ports = ports_of(*info);
    const bool ports_only = info->option == 0 && info->flg_mask == 0 && (info->invflags & ~3) == 0;
    if (ports_only && !ports.empty()) return ports;
  }
  if (const auto info = udp.decode(extension)) {
    auto ports = ports_of(*info);
    if (!ports.empty()) return ports;
  }
  if (const auto info = multiport.decode(extension)) return {decode_multiport(*info)};
  if (const auto info = owner.decode(extension)) return {decode_owner(*info)};
  if (const auto info = conntrack.decode(extension)) return {decode_conntrack(*info, extension)};
  if (const auto info = mark.decode(extension)) return {mark_of<MarkMatch>(*info)};
  if (const auto info = connmark.decode(extension)) return {mark_of<ConnmarkMatch>(*info)};
  if (const auto info = comment.decode(extension)) {
    return {CommentMatch{{info->comment, strnlen(info->comment, sizeof info->comment)}}};
  }
  return {UnknownMatch{unknown_words(ExtensionKind::match, extension)}};
}

}  // namespace sidetrack::xt
