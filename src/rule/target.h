// SPDX-License-Identifier: GPL-2.0-or-later
// Any kind of target.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "rule/target/conntrack.h"
#include "rule/target/mark.h"
#include "rule/target/nat.h"
#include "rule/target/tproxy.h"
#include "rule/target/unknown.h"
#include "rule/target/verdict.h"

namespace sidetrack {

// See target/kind.h.
template <typename Kind>
concept TargetKind = std::equality_comparable<Kind> &&
    requires(const Kind& target, TargetWords words, const xt::ExtensionView& extension, Family family,
             nft::RuleWriter& writer) {
  { target.to_iptables() } -> std::same_as<std::string>;
  { Kind::from_iptables(words) } -> std::same_as<std::optional<Target>>;
  { Kind::sources() } -> std::same_as<xt::Sources>;
  { target.to_xt(family) } -> std::same_as<xt::Extension>;
  { Kind::from_xt(extension, family) } -> std::same_as<std::optional<Target>>;
  target.to_nft(writer);
  { target.changes() } -> std::same_as<Facts>;
  { Kind::goes_on } -> std::convertible_to<bool>;
  { Kind::needs_tracking } -> std::convertible_to<bool>;
};

template <typename... Kinds>
constexpr bool are_target_kinds(std::type_identity<std::variant<Kinds...>>) {
  return (TargetKind<Kinds> && ...);
}
static_assert(are_target_kinds(std::type_identity<Target>{}));

// What it changes of the packet, where the next rule is looked at.
[[nodiscard]] Facts changes(const Target& target);
[[nodiscard]] bool goes_on(const Target& target);
// Tells whether its statement of nf_tables reads the connection's mark: where there is none, the rule ends with it
// (nft_ct_get_eval). xt's targets do nothing then.
[[nodiscard]] bool reads_connmark(const Target& target);
[[nodiscard]] bool needs_tracking(const Target& target);
// The port of this host to which REDIRECT or TPROXY leads.
[[nodiscard]] std::optional<std::uint16_t> listening_port(const Target& target);

// The target that `-j NAME …` or `-g NAME` is, so many words after it; UnknownTarget if no other kind understands it.
[[nodiscard]] Target read_target(TargetWords words);

}  // namespace sidetrack
