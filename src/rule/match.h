// SPDX-License-Identifier: GPL-2.0-or-later
// Any kind of match. Those that are only read (CommentMatch, UnknownMatch) are in no plan: shown in their words, never
// edited, never sent.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rule/match/address.h"
#include "rule/match/address_type.h"
#include "rule/match/cgroup.h"
#include "rule/match/comment.h"
#include "rule/match/connection.h"
#include "rule/match/conntrack.h"
#include "rule/match/interface.h"
#include "rule/match/mark.h"
#include "rule/match/owner.h"
#include "rule/match/port.h"
#include "rule/match/protocol.h"
#include "rule/match/set.h"
#include "rule/match/tcp_flags.h"
#include "rule/match/unknown.h"

namespace sidetrack {

// See match/kind.h.
template <typename Kind>
concept MatchKind = std::equality_comparable<Kind> &&
    requires(Kind match, const Kind& other, const MatchOption& option, const Rule& rule, const PacketAtHook& packet,
             std::vector<xt::Extension>& extensions, const xt::ExtensionView& extension, nft::RuleWriter& writer,
             const nft::Comparison& comparison, Asked& asked) {
  { other.to_iptables() } -> std::same_as<std::string>;
  { Kind::from_iptables(option) } -> std::same_as<std::optional<Match>>;
  { Kind::sources() } -> std::same_as<xt::Sources>;
  other.to_xt(rule, extensions);
  { Kind::from_xt(extension, Family::ipv4) } -> std::same_as<std::optional<std::vector<Match>>>;
  other.to_nft(writer);
  { Kind::from_nft(comparison) } -> std::same_as<std::optional<std::vector<std::vector<Match>>>>;
  { other.truth(packet) } -> std::same_as<Truth>;
  { other.why_not(packet) } -> std::same_as<std::string>;
  other.ask(asked);
  match.take_value(other);
  { Kind::reads } -> std::convertible_to<Facts>;
};

template <typename Kind>
concept ListKind = MatchKind<Kind> && requires(Kind match, const Kind& other) {
  match.list().begin();
  { other.is_like(other) } -> std::same_as<bool>;
};

template <typename... Kinds>
constexpr bool are_match_kinds(std::type_identity<std::variant<Kinds...>>) {
  return (MatchKind<Kinds> && ...);
}
static_assert(are_match_kinds(std::type_identity<Match>{}));

[[nodiscard]] bool is_negated(const Match& match);
[[nodiscard]] Facts reads(const Match& match);
// `-d 0.0.0.0/0`, `-i +`: words that leave no trace in the kernel.
[[nodiscard]] bool matches_everything(const Match& match);
// Whether it is understood, with what its set holds.
[[nodiscard]] bool is_understood(const Match& match);

[[nodiscard]] Truth truth(const Match& match, const PacketAtHook& packet);
[[nodiscard]] inline bool holds(const Match& match, const PacketAtHook& packet) {
  return truth(match, packet) == Truth::yes;
}
// What a packet has instead that the match does not hold for ("its destination is 10.0.0.1").
[[nodiscard]] std::string why_not(const Match& match, const PacketAtHook& packet);
void ask(const Match& match, Asked& asked);

// Calls `visit` with the values of a match that holds a list of them.
template <typename M, typename Visitor>
void with_list(M& match, const Visitor& visit) {
  std::visit(
      [&]<typename Kind>(Kind& one) {
        if constexpr (ListKind<std::remove_const_t<Kind>>) visit(one.list());
      },
      match);
}
// How many values it has; 1 of a match without a list.
[[nodiscard]] std::size_t count_of_values(const Match& match);
// Whether two are lists that differ in their values at most.
[[nodiscard]] bool are_alike(const Match& a, const Match& b);
// Adds the values of `from`, which is alike.
void take_values(Match& into, const Match& from);

// The match that an option of iptables is; nothing if none understands it.
[[nodiscard]] std::optional<Match> read_match(const MatchOption& option);

}  // namespace sidetrack
