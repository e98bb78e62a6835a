// SPDX-License-Identifier: GPL-2.0-or-later
// The extensions of xtables (`-m owner …`, `-j REDIRECT …`) as the kernel takes them. iptables-legacy and iptables-nft
// carry the same structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack::xt {

// A match or target of a rule. `data` is the extension's struct, padded with zeros to XT_ALIGN (8 bytes): what follows
// xt_entry_match or xt_entry_target, and what nf_tables calls INFO.
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

enum class ExtensionKind : std::uint8_t { match, target };

// What brings an extension into a kernel that lacks it.
struct Source {
  std::string_view name;    // of the extension: "owner"
  std::string_view module;  // "xt_owner"
  std::string_view config;  // "CONFIG_NETFILTER_XT_MATCH_OWNER"
};
using Sources = std::span<const Source>;

// The words of iptables for an extension that is only read (see plain_words.h), or where those are not known, its bytes
// but for the zeros at their end: "-m NAME [rev 1, 152 bytes: 6162…]", "-j NAME […]".
[[nodiscard]] std::string unknown_words(ExtensionKind kind, const ExtensionView& extension);

// A target that is no extension, or only read. Throws std::logic_error.
[[noreturn]] void refuse(const std::string& words);

}  // namespace sidetrack::xt
