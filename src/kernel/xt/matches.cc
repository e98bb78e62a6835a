// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/xt_comment.h>
#include <linux/netfilter/xt_iprange.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "kernel/xt/catalogue.h"
#include "model/iptables.h"

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

std::optional<Match> decode_multiport(const ExtensionView& extension) {
  const auto info = multiport.decode(extension);
  const auto ranges = info ? ports_of(*info) : std::nullopt;
  if (!ranges || info->flags > XT_MULTIPORT_EITHER || info->invert > 1) return std::nullopt;
  if (info->flags != XT_MULTIPORT_EITHER) {
    return PortMatch{info->flags == XT_MULTIPORT_SOURCE ? End::source : End::destination, *ranges, info->invert != 0};
  }
  std::string words;
  for (const PortRange& range : *ranges) {
    words += words.empty() ? "" : ",";
    words += range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}:{}", range.first, range.last);
  }
  return UnknownMatch{fmt::format("-m multiport{} --ports {}", info->invert != 0 ? " !" : "", words)};
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

// `--socket-exists`, `! --socket-exists`
Extension encode_socket(const SocketMatch& match) {
  xt_owner_match_info info{};
  info.match = XT_OWNER_SOCKET;
  if (match.negated) info.invert = info.match;
  return owner.encode(info);
}

// `--uid-owner` and `--gid-owner` of one extension are two matches.
std::optional<std::vector<Match>> decode_owner(const ExtensionView& extension) {
  const auto info = owner.decode(extension);
  if (!info || info->match == 0 || (info->match & ~XT_OWNER_MASK) != 0 || (info->invert & ~info->match) != 0) {
    return std::nullopt;
  }
  const auto has = [&](int bit) { return (info->match & bit) != 0; };
  const auto inverted = [&](int bit) { return (info->invert & bit) != 0; };
  if (!has(XT_OWNER_UID) && (info->uid_min != 0 || info->uid_max != 0)) return std::nullopt;
  if (!has(XT_OWNER_GID) && (info->gid_min != 0 || info->gid_max != 0)) return std::nullopt;
  std::vector<Match> matches;
  if (has(XT_OWNER_SOCKET)) matches.emplace_back(SocketMatch{inverted(XT_OWNER_SOCKET)});
  if (has(XT_OWNER_UID)) {
    matches.emplace_back(OwnerMatch{OwnerKind::uid, {{info->uid_min, info->uid_max}}, inverted(XT_OWNER_UID)});
  }
  if (has(XT_OWNER_SUPPL_GROUPS)) {  // the ids are those of any group of the process
    if (!has(XT_OWNER_GID)) return std::nullopt;
    matches.emplace_back(UnknownMatch{fmt::format("-m owner{} --gid-owner {}-{} --suppl-groups",
                                                  inverted(XT_OWNER_GID) ? " !" : "", info->gid_min, info->gid_max)});
  } else if (has(XT_OWNER_GID)) {
    matches.emplace_back(OwnerMatch{OwnerKind::gid, {{info->gid_min, info->gid_max}}, inverted(XT_OWNER_GID)});
  }
  return matches;
}

// ---- conntrack: `--ctstate RELATED,ESTABLISHED`, `--ctdir REPLY`

struct State {
  ConntrackStateMatch::State model;
  unsigned kernel;
};
constexpr State states[] = {
    {ConntrackStateMatch::invalid, XT_CONNTRACK_STATE_INVALID},
    {ConntrackStateMatch::new_, XT_CONNTRACK_STATE_BIT(IP_CT_NEW)},
    {ConntrackStateMatch::related, XT_CONNTRACK_STATE_BIT(IP_CT_RELATED)},
    {ConntrackStateMatch::established, XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED)},
    {ConntrackStateMatch::untracked, XT_CONNTRACK_STATE_UNTRACKED},
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

// --ctdir REPLY is an inverted ORIGINAL.
Extension encode_direction(const ConntrackDirectionMatch& match) {
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_DIRECTION;
  if (match.reply) info.invert_flags = XT_CONNTRACK_DIRECTION;
  return conntrack.encode(info);
}

// `-m state` is conntrack's other name, and the same.
std::optional<Match> decode_conntrack(const ExtensionView& extension) {
  const auto info = conntrack.decode(extension);
  if (!info) return std::nullopt;
  for (const bool reply : {true, false}) {
    const ConntrackDirectionMatch direction{reply};
    if (std::ranges::equal(extension.data, encode_direction(direction).data)) return direction;
  }
  const bool states_only = (info->match_flags & ~XT_CONNTRACK_STATE_ALIAS) == XT_CONNTRACK_STATE &&
                           (info->invert_flags & ~XT_CONNTRACK_STATE) == 0;
  xt_conntrack_mtinfo3 rest = *info;
  rest.match_flags = rest.invert_flags = rest.state_mask = 0;
  ConntrackStateMatch match{0, info->invert_flags != 0};
  unsigned unknown = info->state_mask;
  for (const State& state : states) {
    if ((info->state_mask & state.kernel) == 0) continue;
    match.states = static_cast<std::uint8_t>(match.states | state.model);
    unknown &= ~state.kernel;
  }
  if (!states_only || !is_zero(rest) || unknown != 0) return std::nullopt;
  return match;
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
std::optional<Match> mark_of(const std::optional<Info>& info) {
  if (!info || info->invert > 1) return std::nullopt;
  return Mark{info->mark, info->mask, info->invert != 0};
}

// ---- cgroup: `! --path kubepods/pod1`

Extension encode_cgroup(const CgroupMatch& match) {
  xt_cgroup_info_v2 info{};
  if (match.path.size() >= sizeof info.path) throw std::logic_error("a cgroup's path of more than 511 characters");
  info.has_path = 1;
  info.invert_path = flag(match.negated);
  std::ranges::copy(match.path, std::begin(info.path));
  return cgroup.encode(info);
}

// `--cgroup CLASSID` is about the net_cls controller of cgroup v1.
std::optional<Match> decode_cgroup(const ExtensionView& extension) {
  const auto info = cgroup.decode(extension);
  if (!info || info->has_path != 1 || info->has_classid != 0 || info->invert_path > 1 || info->invert_classid != 0)
    return std::nullopt;
  std::string_view path(info->path, strnlen(info->path, sizeof info->path));
  if (std::ranges::any_of(std::string_view(info->path, sizeof info->path).substr(path.size()),
                          [](char c) { return c != '\0'; }))
    return std::nullopt;
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return CgroupMatch{std::string(path), 0, info->invert_path != 0};
}

// ---- tcp, udp, read

std::optional<std::vector<Match>> decode_tcp(const ExtensionView& extension) {
  const auto info = tcp.decode(extension);
  if (!info || (info->invflags & ~XT_TCP_INV_MASK) != 0) return std::nullopt;
  std::vector<Match> matches = ports_of(*info);
  const auto has = [&](int bit) { return (info->invflags & bit) != 0; };
  if (info->flg_mask != 0 || info->flg_cmp != 0 || has(XT_TCP_INV_FLAGS)) {
    matches.emplace_back(UnknownMatch{fmt::format("-m tcp{} --tcp-flags {:#x} {:#x}", has(XT_TCP_INV_FLAGS) ? " !" : "",
                                                  info->flg_mask, info->flg_cmp)});
  }
  if (info->option != 0 || has(XT_TCP_INV_OPTION)) {
    matches.emplace_back(
        UnknownMatch{fmt::format("-m tcp{} --tcp-option {}", has(XT_TCP_INV_OPTION) ? " !" : "", info->option)});
  }
  return matches;
}

std::optional<std::vector<Match>> decode_udp(const ExtensionView& extension) {
  const auto info = udp.decode(extension);
  if (!info || (info->invflags & ~XT_UDP_INV_MASK) != 0) return std::nullopt;
  return ports_of(*info);
}

// ---- iprange: `! --dst-range 10.0.0.1-10.0.0.9`; read only. Of IPv4, the first 4 bytes of each address are used.

std::optional<std::vector<Match>> decode_iprange(const ExtensionView& extension, Family family) {
  static constexpr Spec<xt_iprange_mtinfo> iprange{"iprange", 1, 3};
  const auto info = iprange.decode(extension);
  constexpr int known = IPRANGE_SRC | IPRANGE_DST | IPRANGE_SRC_INV | IPRANGE_DST_INV;
  if (!info || (info->flags & ~known) != 0) return std::nullopt;
  std::vector<Match> matches;
  bool odd = false;
  const auto add = [&](End end, int bit, int inverted, const nf_inet_addr& min, const nf_inet_addr& max) {
    if ((info->flags & bit) == 0) {
      odd = odd || (info->flags & inverted) != 0 || !is_zero(min) || !is_zero(max);
      return;
    }
    AddressRange range{{family, {}}, {family, {}}};
    std::memcpy(range.first.bytes.data(), &min, range.first.size());
    std::memcpy(range.last.bytes.data(), &max, range.last.size());
    odd = odd || range.last < range.first;
    matches.emplace_back(AddressMatch{end, {range}, (info->flags & inverted) != 0});
  };
  add(End::source, IPRANGE_SRC, IPRANGE_SRC_INV, info->src_min, info->src_max);
  add(End::destination, IPRANGE_DST, IPRANGE_DST_INV, info->dst_min, info->dst_max);
  if (odd || matches.empty()) return std::nullopt;
  return matches;
}

// ---- set: `--match-set NAME dst`. The kernel has the set's number; the name is asked for later. Revisions 1 and 2
// have the first field alone, 3 and 4 may ask for the element's counters.

Extension encode_set(const SetMatch& match) {
  xt_set_info_match_v4 info{};
  info.match_set.index = match.index;
  info.match_set.dim = IPSET_DIM_ONE;
  if (match.end == End::source) info.match_set.flags |= IPSET_DIM_ONE_SRC;
  if (match.negated) info.match_set.flags |= IPSET_INV_MATCH;
  return set.encode(info);
}

std::optional<xt_set_info> decode_set_info(const ExtensionView& extension) {
  static constexpr Spec<xt_set_info_match_v1> first{"set", 1};
  static constexpr Spec<xt_set_info_match_v1> second{"set", 2};
  static constexpr Spec<xt_set_info_match_v3> third{"set", 3};
  if (const auto info = first.decode(extension)) return info->match_set;
  if (const auto info = second.decode(extension)) return info->match_set;
  const auto plain = [](auto info) {
    const xt_set_info found = info.match_set;
    info.match_set = {};
    return is_zero(info) ? std::optional(found) : std::nullopt;
  };
  if (const auto info = third.decode(extension)) return plain(*info);
  if (const auto info = set.decode(extension)) return plain(*info);
  return std::nullopt;
}

std::optional<Match> decode_set(const ExtensionView& extension) {
  const auto info = decode_set_info(extension);
  if (!info || info->dim != IPSET_DIM_ONE || (info->flags & ~(IPSET_DIM_ONE_SRC | IPSET_INV_MATCH)) != 0)
    return std::nullopt;
  const End end = (info->flags & IPSET_DIM_ONE_SRC) != 0 ? End::source : End::destination;
  return SetMatch{end, {}, info->index, {}, (info->flags & IPSET_INV_MATCH) != 0};
}

// ---- comment; read only

std::optional<Match> decode_comment(const ExtensionView& extension) {
  const auto info = comment.decode(extension);
  if (!info) return std::nullopt;
  return CommentMatch{{info->comment, strnlen(info->comment, sizeof info->comment)}};
}

std::optional<std::vector<Match>> one(const std::optional<Match>& match) {
  if (!match) return std::nullopt;
  return std::vector<Match>{*match};
}

// Each kind of match as extensions: one that is passed over would make the rule match more.
class MatchEncoder {
 public:
  explicit MatchEncoder(const Rule& rule) : rule_(rule) {}

  std::vector<Extension> encode() && {
    for (const Match& match : rule_.matches) std::visit(*this, match);
    return std::move(extensions_);
  }

  // These are in the header of the rule: encode_header(), nft/iptables_rule.cc.
  void operator()(const InterfaceMatch&) const {}
  void operator()(const AddressMatch&) const {}
  void operator()(const ProtocolMatch&) const {}

  void operator()(const PortMatch& match) {
    if (match.ports.empty()) throw std::logic_error("a port match without a port");
    if (match.ports.size() > 1) return add(encode_multiport(match));
    port_protocol(rule_) == Protocol::tcp ? add_port(tcp, any_ports<xt_tcp>(), match)
                                          : add_port(udp, any_ports<xt_udp>(), match);
  }
  void operator()(const OwnerMatch& match) { add(encode_owner(match)); }
  void operator()(const ConntrackStateMatch& match) { add(encode_conntrack(match)); }
  void operator()(const ConntrackDirectionMatch& match) { add(encode_direction(match)); }
  void operator()(const MarkMatch& match) { add(mark.encode(marked<xt_mark_mtinfo1>(match))); }
  void operator()(const ConnmarkMatch& match) { add(connmark.encode(marked<xt_connmark_mtinfo1>(match))); }
  void operator()(const SocketMatch& match) { add(encode_socket(match)); }
  void operator()(const SetMatch& match) { add(encode_set(match)); }
  void operator()(const CgroupMatch& match) { add(encode_cgroup(match)); }
  void operator()(const CommentMatch& match) const { refuse(match); }
  void operator()(const UnknownMatch& match) const { refuse(match); }

 private:
  void add(Extension extension) {
    extensions_.push_back(std::move(extension));
    has_source_port_ = false;
  }

  // `--sport 53 --dport 53` is one extension.
  template <typename Info>
  void add_port(const Spec<Info>& spec, Info info, const PortMatch& match) {
    if (has_source_port_ && match.end == End::destination) {
      info = *spec.decode(extensions_.back());
      extensions_.pop_back();
    }
    add(spec.encode(with_ports(info, match)));
    has_source_port_ = match.end == End::source;
  }

  [[noreturn]] static void refuse(const Match& match) {
    throw std::logic_error("a match that is only read cannot be sent: " + iptables_words(match));
  }

  const Rule& rule_;
  std::vector<Extension> extensions_;
  bool has_source_port_ = false;  // the last extension is tcp or udp and holds a source port alone
};

}  // namespace

std::vector<Extension> matches_of(const Rule& rule) { return MatchEncoder(rule).encode(); }

std::vector<Match> decode_match(const ExtensionView& extension, Family family) {
  std::optional<std::vector<Match>> matches;
  if (extension.name == "tcp") matches = decode_tcp(extension);
  if (extension.name == "udp") matches = decode_udp(extension);
  if (extension.name == "multiport") matches = one(decode_multiport(extension));
  if (extension.name == "owner") matches = decode_owner(extension);
  if (extension.name == "conntrack") matches = one(decode_conntrack(extension));
  if (extension.name == "mark") matches = one(mark_of<MarkMatch>(mark.decode(extension)));
  if (extension.name == "connmark") matches = one(mark_of<ConnmarkMatch>(connmark.decode(extension)));
  if (extension.name == "cgroup") matches = one(decode_cgroup(extension));
  if (extension.name == "iprange") matches = decode_iprange(extension, family);
  if (extension.name == "set") matches = one(decode_set(extension));
  if (extension.name == "comment") matches = one(decode_comment(extension));
  if (matches) return *std::move(matches);
  return {UnknownMatch{unknown_words(ExtensionKind::match, extension)}};
}

}  // namespace sidetrack::xt
