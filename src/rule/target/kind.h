// SPDX-License-Identifier: GPL-2.0-or-later
// What each kind of target has to know of itself; target.h checks it.
//
//   to_iptables, from_iptables   "-j REDIRECT --to-ports 15001". from_iptables is given the name and what follows it
//   sources                      its extensions of xtables, and what brings them into a kernel
//   to_xt, from_xt               as an extension of xtables. to_xt throws std::logic_error for what is none, or only
//                                read
//   to_nft                       as native expressions of nf_tables, which kernel/nft/rule_reader.cc reads
//   goes_on                      whether the next rule is looked at in any case
//   changes                      what it changes of the packet, where the next rule is looked at
//   needs_tracking               whether the kernel tracks connections for it
//
// from_… return nothing for what is another kind's, or not understood to its last bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/address.h"
#include "model/protocol.h"
#include "model/range.h"
#include "rule/facts.h"
#include "rule/kinds.h"
#include "rule/words.h"
#include "rule/xt/extension.h"

namespace sidetrack::nft {
class RuleWriter;
}  // namespace sidetrack::nft

// Declares the functions that every kind has, but for changes().
#define TARGET_FUNCTIONS                                                                                 \
  [[nodiscard]] std::string to_iptables() const;                                                         \
  [[nodiscard]] static std::optional<Target> from_iptables(TargetWords words);                           \
  [[nodiscard]] static xt::Sources sources();                                                            \
  [[nodiscard]] xt::Extension to_xt(Family family) const;                                                \
  [[nodiscard]] static std::optional<Target> from_xt(const xt::ExtensionView& extension, Family family); \
  void to_nft(nft::RuleWriter& writer) const
