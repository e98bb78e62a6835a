// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"
#include "pod/route.h"

namespace sidetrack {

// Where a policy rule stands. The kernel asks those of lower priority first.
struct RulePlace {
  std::optional<std::uint32_t> priority{};  // nothing: the kernel's choice
  // It stands before every rule of another program that could decide about such packets, or is to be put there, at
  // `priority` at the latest. Where that is does not count when rules are compared.
  bool before_others = false;
  friend bool operator==(const RulePlace& a, const RulePlace& b) {
    return a.before_others == b.before_others && (a.before_others || a.priority == b.priority);
  }
};

// ip rule: which packets look up which table, one after the other until one finds a route.
struct PolicyRule : RulePlace {
  enum class Action : std::uint8_t { lookup, blackhole, unreachable, prohibit, none, unknown };
  Family family = Family::ipv4;
  Action action = Action::lookup;
  std::uint32_t table = 0;
  bool inverted = false;  // not
  std::optional<AddressRange> from{};
  std::optional<AddressRange> to{};
  std::uint32_t mark = 0;           // host byte order, as the mask
  std::uint32_t mask = 0;           // 0: any mark
  std::string in{};                 // iif; lo: what is sent here
  std::string out{};                // oif: what the socket is bound to
  std::string more{};               // further conditions, which are not followed: "uidrange 1000-1000"
  std::optional<int> suppressed{};  // suppress_prefixlength: routes of this length or less do not count
  RoutingOrigin origin = RoutingOrigin::other;

  [[nodiscard]] bool is_ours() const { return origin != RoutingOrigin::other; }
  friend bool operator==(const PolicyRule&, const PolicyRule&) = default;
};

// Returns ours, before others': ip rule add fwmark MARK[/MASK] lookup TABLE.
[[nodiscard]] PolicyRule fwmark_rule(Family family, std::uint32_t mark, std::uint32_t table,
                                     std::uint32_t mask = 0xffffffff);
// Tells whether it is one of that form, wherever it stands and whoever made it.
[[nodiscard]] bool is_fwmark_rule(const PolicyRule& rule);

// Tells whether it is that of an ambient pod, whoever made it.
[[nodiscard]] bool is_of_ambient(const PolicyRule& rule);

// Returns those of a new network namespace.
[[nodiscard]] std::vector<PolicyRule> default_rules();

[[nodiscard]] std::string selector(const PolicyRule& rule);  // "fwmark 0x111/0xfff"; "from all" if it asks for nothing
// Returns what `ip rule add` takes, without the priority: "fwmark 1337 lookup 133".
[[nodiscard]] std::string ip_arguments(const PolicyRule& rule);
[[nodiscard]] std::string ip_words(const PolicyRule& rule);  // "ip rule 100: fwmark 1337 lookup 133"

// Tells whether the rule could decide about packets that `marked` is there for, and take them elsewhere.
[[nodiscard]] bool may_divert(const PolicyRule& rule, const PolicyRule& marked);
// Tells whether `marked` has to stand before that rule. None can stand before one at 0: what is added comes after it,
// too.
[[nodiscard]] bool goes_before(const PolicyRule& marked, const PolicyRule& rule);
// Returns the priority with which it is added: before `other`, and no later than asked. Nothing: the kernel's choice.
[[nodiscard]] std::optional<std::uint32_t> place_before(const PolicyRule& rule, std::optional<std::uint32_t> other);

}  // namespace sidetrack
