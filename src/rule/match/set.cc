// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/set.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_set.h>

#include "model/printable.h"
#include "rule/match/within.h"
#include "rule/nft/comparison.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_set_info_match_v4> set{"set", 4, 4};
static_assert(xt::aligned(sizeof(xt_set_info_match_v4)) == 48);

// Revisions 1 and 2 have the first field alone, 3 and 4 may ask for the element's counters.
std::optional<xt_set_info> decode_info(const xt::ExtensionView& extension) {
  static constexpr xt::Spec<xt_set_info_match_v1> first{"set", 1};
  static constexpr xt::Spec<xt_set_info_match_v1> second{"set", 2};
  static constexpr xt::Spec<xt_set_info_match_v3> third{"set", 3};
  if (const auto info = first.decode(extension)) return info->match_set;
  if (const auto info = second.decode(extension)) return info->match_set;
  const auto plain = [](auto info) {
    const xt_set_info found = info.match_set;
    info.match_set = {};
    return xt::is_zero(info) ? std::optional(found) : std::nullopt;
  };
  if (const auto info = third.decode(extension)) return plain(*info);
  if (const auto info = set.decode(extension)) return plain(*info);
  return std::nullopt;
}

}  // namespace

std::string SetMatch::to_iptables() const {
  return fmt::format("-m set {}--match-set {} {}", exclamation(negated),
                     name.empty() ? fmt::format("[number {}]", index) : printable(name),
                     end == End::source ? "src" : "dst");
}

std::optional<Match> SetMatch::from_iptables(const MatchOption&) { return {}; }  // what it holds is not said

xt::Sources SetMatch::sources() {
  static constexpr xt::Source all[] = {{"set", "xt_set", "CONFIG_NETFILTER_XT_SET"}};
  return all;
}

void SetMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  xt_set_info_match_v4 info{};
  info.match_set.index = index;
  info.match_set.dim = IPSET_DIM_ONE;
  if (end == End::source) info.match_set.flags |= IPSET_DIM_ONE_SRC;
  if (negated) info.match_set.flags |= IPSET_INV_MATCH;
  extensions.push_back(set.encode(info));
}

// The kernel has the set's number; the name is asked for later.
std::optional<std::vector<Match>> SetMatch::from_xt(const xt::ExtensionView& extension, Family) {
  const auto info = decode_info(extension);
  if (!info || info->dim != IPSET_DIM_ONE || (info->flags & ~(IPSET_DIM_ONE_SRC | IPSET_INV_MATCH)) != 0) return {};
  const End end = (info->flags & IPSET_DIM_ONE_SRC) != 0 ? End::source : End::destination;
  return std::vector<Match>{SetMatch{end, {}, info->index, {}, (info->flags & IPSET_INV_MATCH) != 0}};
}

void SetMatch::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }  // of iptables alone
std::optional<nft::Alternatives> SetMatch::from_nft(const nft::Comparison&) { return {}; }

// A set of the other family holds none of them: `! --match-set` matches (net/netfilter/xt_set.c).
Truth SetMatch::truth(const PacketAtHook& packet) const {
  if (!members) return Truth::unknown;
  if (!members->empty() && members->front().family() != packet.at(end).address.family) return known(negated);
  return is_within(packet, end, *members, negated);
}

std::string SetMatch::why_not(const PacketAtHook& packet) const { return address_words(packet, end); }

void SetMatch::ask(Asked& asked) const {
  if (members) asked.addresses(end, *members);
}
void SetMatch::take_value(const SetMatch&) {}  // no option gives it

}  // namespace sidetrack
