// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/owner.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_owner.h>

#include <algorithm>
#include <stdexcept>

#include "rule/fold.h"
#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_owner_match_info> owner{"owner", 1, 2};
static_assert(xt::aligned(sizeof(xt_owner_match_info)) == 24);

constexpr nft::KeyType uid_type{"uid", 24, 4, true};
constexpr nft::KeyType gid_type{"gid", 25, 4, true};

constexpr xt::Source owner_sources[] = {{"owner", "xt_owner", "CONFIG_NETFILTER_XT_MATCH_OWNER"}};

// meta skuid 1337, meta skgid != { 1000, 3000 }
//
// A packet without a socket (sent by the kernel itself) has no owner: `-m owner ! --uid-owner 1337` matches it,
// `meta skuid != 1337` does not. nf_tables has no expression for it; iptables-translate makes the same of the rule.
void write(const OwnerMatch& match, nft::RuleWriter& writer) {
  const bool uid = match.kind == OwnerKind::uid;
  // Ids are compared in host order, but for ranges: to order them byte by byte takes network order.
  const bool ranges = match.ids.size() > longest_in_a_rule ||
                      std::ranges::any_of(match.ids, [](const IdRange& range) { return range.first != range.last; });
  std::vector<nft::Expression> expressions{
      nft::MetaLoad{uid ? std::uint32_t{NFT_META_SKUID} : std::uint32_t{NFT_META_SKGID}}};
  if (ranges) expressions.emplace_back(nft::ToNetworkOrder{});
  const auto data = [ranges](std::uint32_t id) { return ranges ? nft::Data::network(id) : nft::Data::host(id); };
  const std::string text = writer.compare_list(
      match.ids, uid ? uid_type : gid_type, match.negated, "", expressions,
      [&](const IdRange& range) {
        return nft::EncodedRange{data(range.first), data(range.last)};
      },
      sidetrack::text<std::uint32_t>);
  writer.add(fmt::format("meta {} {}{}", uid ? "skuid" : "skgid", nft::not_equal(match.negated), text),
             std::move(expressions));
}

}  // namespace

std::string OwnerMatch::to_iptables() const {
  return fmt::format("-m owner {}--{}-owner {}", exclamation(negated), kind == OwnerKind::uid ? "uid" : "gid",
                     listed(std::span<const IdRange>(ids), '-'));
}

std::optional<Match> OwnerMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--uid-owner" && option.name != "--gid-owner") return {};
  auto ids = read_ranges<std::uint32_t>(option.value == "root" ? "0" : option.value, '-');
  if (!ids) return {};
  return OwnerMatch{option.name == "--uid-owner" ? OwnerKind::uid : OwnerKind::gid, *std::move(ids), option.negated};
}

xt::Sources OwnerMatch::sources() { return owner_sources; }

void OwnerMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  if (ids.size() != 1) throw std::logic_error("an owner match holds one id or range of ids");
  const auto [first, last] = ids.front();
  xt_owner_match_info info{};  // `invert` has the bits of `match`
  if (kind == OwnerKind::uid) {
    info.match = XT_OWNER_UID;
    info.uid_min = first;
    info.uid_max = last;
  } else {
    info.match = XT_OWNER_GID;
    info.gid_min = first;
    info.gid_max = last;
  }
  if (negated) info.invert = info.match;
  extensions.push_back(owner.encode(info));
}

// `--uid-owner`, `--gid-owner` and `--socket-exists` of one extension are as many matches.
std::optional<std::vector<Match>> OwnerMatch::from_xt(const xt::ExtensionView& extension, Family) {
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

void OwnerMatch::to_nft(nft::RuleWriter& writer) const { write(*this, writer); }

std::optional<nft::Alternatives> OwnerMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  const bool uid = value.is_meta(NFT_META_SKUID);
  if ((!uid && !value.is_meta(NFT_META_SKGID)) || value.changed()) return {};
  auto ranges = nft::ranges_of<std::uint32_t>(comparison);
  // Without a socket `meta skuid !=` does not hold, but `-m owner !` does: among rules of iptables it would be taken
  // for the latter.
  if (!ranges || ranges->empty() || (comparison.negated && !comparison.context.native)) return {};
  if (!comparison.negated && *ranges == std::vector{every_id}) return nft::only(SocketMatch{});
  return nft::only(OwnerMatch{uid ? OwnerKind::uid : OwnerKind::gid, *std::move(ranges), comparison.negated});
}

// No socket, no owner: `! --uid-owner` holds then in xt (net/netfilter/xt_owner.c), while `meta skuid != ` of
// nf_tables gives up on the rule (nft_meta_get_eval_skugid).
Truth OwnerMatch::truth(const PacketAtHook& packet) const {
  if (!packet.owner_known) return Truth::unknown;
  if (!packet.owner) return known(negated && !packet.native);
  const std::uint32_t id = kind == OwnerKind::uid ? packet.owner->uid : packet.owner->gid;
  return known(std::ranges::any_of(ids, [&](const IdRange& range) { return range.contains(id); }) != negated);
}

std::string OwnerMatch::why_not(const PacketAtHook& packet) const {
  const char* which = kind == OwnerKind::uid ? "uid" : "gid";
  if (!packet.owner) return fmt::format("no process sent it, so it has no {}", which);
  return fmt::format("its {} is {}", which, kind == OwnerKind::uid ? packet.owner->uid : packet.owner->gid);
}

void OwnerMatch::ask(Asked& asked) const { asked.ids(kind, ids); }
void OwnerMatch::take_value(const OwnerMatch& from) { ids = from.ids; }
bool OwnerMatch::is_like(const OwnerMatch& other) const { return kind == other.kind && negated == other.negated; }

std::string SocketMatch::to_iptables() const { return fmt::format("-m owner {}--socket-exists", exclamation(negated)); }

std::optional<Match> SocketMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--socket-exists") return {};
  return SocketMatch{option.negated};
}

xt::Sources SocketMatch::sources() { return owner_sources; }

void SocketMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  xt_owner_match_info info{};
  info.match = XT_OWNER_SOCKET;
  if (negated) info.invert = info.match;
  extensions.push_back(owner.encode(info));
}

// OwnerMatch reads both.
std::optional<std::vector<Match>> SocketMatch::from_xt(const xt::ExtensionView&, Family) { return {}; }
std::optional<nft::Alternatives> SocketMatch::from_nft(const nft::Comparison&) { return {}; }

// meta skuid 0-4294967295: a packet that no socket sends has no uid, and nothing holds about it
void SocketMatch::to_nft(nft::RuleWriter& writer) const {
  if (negated) writer.refuse();
  static const OwnerMatch any{OwnerKind::uid, {every_id}, false};
  write(any, writer);
}

Truth SocketMatch::truth(const PacketAtHook& packet) const {
  if (!packet.owner_known) return Truth::unknown;
  return known(packet.owner.has_value() != negated);
}

std::string SocketMatch::why_not(const PacketAtHook& packet) const {
  return packet.owner ? "a process of this namespace sent it" : "no process of this namespace sent it";
}

void SocketMatch::ask(Asked& asked) const { asked.socket(); }
void SocketMatch::take_value(const SocketMatch&) {}  // no option gives it

}  // namespace sidetrack
