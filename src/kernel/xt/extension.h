// SPDX-License-Identifier: GPL-2.0-or-later
// The extensions of xtables (`-m owner …`, `-j REDIRECT …`) between the model and the structs of the kernel, both
// ways. iptables-legacy and iptables-nft carry the same structs: one encoder serves both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ruleset.h"

namespace sidetrack::xt {

// A match or target of a rule as the kernel takes it. `data` is the extension's struct, padded with zeros to
// XT_ALIGN (8 bytes): what follows xt_entry_match or xt_entry_target, and what nf_tables calls INFO.
struct Extension {
  std::string name;
  std::uint8_t revision = 0;
  std::vector<std::byte> data;
  friend bool operator==(const Extension&, const Extension&) = default;
};

// An extension somewhere in memory: ours, or in a dump of the kernel.
struct ExtensionView {
  ExtensionView(std::string_view a_name, std::uint8_t a_revision, std::span<const std::byte> a_data)
      : name(a_name), revision(a_revision), data(a_data) {}
  ExtensionView(const Extension& extension)  // NOLINT: a view of an extension reads as the extension
      : name(extension.name), revision(extension.revision), data(extension.data) {}

  std::string_view name;
  std::uint8_t revision;
  std::span<const std::byte> data;
};

// The extensions of a rule, in the order of its matches. Interface, address and protocol are none: they stand in
// the header of the rule. Throws std::logic_error for what xtables cannot hold (several ids in one match, more than
// 15 ports, an unknown match): the plan must not ask for it.
[[nodiscard]] std::vector<Extension> matches_of(const Rule& rule);

// REDIRECT, SNAT to one address, TPROXY, MARK, CONNMARK, CT. Throws std::logic_error for a verdict and a
// jump, which are no extensions, and for an unknown target.
[[nodiscard]] Extension target_of(const Target& target, Family family);

// Back to the model. One extension may hold several matches (`--sport 53 --dport 53`, source first), or none (`-m tcp`
// alone). What is understood is understood to its last bit; else it becomes an UnknownMatch or UnknownTarget, in the
// words of `iptables -S` as far as they are known, else "-m string [rev 1, 152 bytes: 6162…]": all of it, but for the
// zeros at its end.
[[nodiscard]] std::vector<Match> decode_match(const ExtensionView& extension, Family family);
[[nodiscard]] Target decode_target(const ExtensionView& extension, Family family);

// What brings an extension into a kernel that lacks it.
struct Source {
  std::string_view module;  // "xt_owner"
  std::string_view config;  // "CONFIG_NETFILTER_XT_MATCH_OWNER"
};
enum class ExtensionKind : std::uint8_t { match, target };
[[nodiscard]] Source source_of(ExtensionKind kind, std::string_view name);  // empty if this program never sends it

}  // namespace sidetrack::xt
