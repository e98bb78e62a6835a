// SPDX-License-Identifier: GPL-2.0-or-later
// What each kind of match has to know of itself; match.h checks it.
//
//   to_iptables, from_iptables   "-m owner --uid-owner 1337"
//   sources             its extensions of xtables, and what brings them into a kernel
//   to_xt, from_xt      as extensions of xtables; those in the header of a rule, xt/entry.cc, have none. to_xt throws
//                       std::logic_error for what xtables cannot hold (several ids, more than 15 ports) and for what is
//                       only read
//   to_nft, from_nft    as native expressions of nf_tables
//   truth, why_not      whether it holds for a packet, and what the packet has instead ("its destination is 10.0.0.1")
//   ask                 which values of which fields it is about
//   take_value          takes what an option gives from another match, and leaves the rest as a row of the catalogue
//                       has it
//   reads               what it reads of what targets change
//
// Those that hold a list match any of its values (none of them when negated), and have besides:
//
//   list                the values
//   is_like             whether it is equal but for them
//
// from_… return nothing for what is another kind's, or not understood to its last bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"
#include "rule/asked.h"
#include "rule/facts.h"
#include "rule/kinds.h"
#include "rule/packet_at_hook.h"
#include "rule/words.h"
#include "rule/xt/extension.h"

namespace sidetrack {

struct Rule;

namespace nft {
class RuleWriter;
struct Comparison;
}  // namespace nft

// Declares the functions that every kind has.
#define MATCH_FUNCTIONS(Kind)                                                                                        \
  [[nodiscard]] std::string to_iptables() const;                                                                     \
  [[nodiscard]] static std::optional<Match> from_iptables(const MatchOption& option);                                \
  [[nodiscard]] static xt::Sources sources();                                                                        \
  void to_xt(const Rule& rule, std::vector<xt::Extension>& extensions) const;                                        \
  [[nodiscard]] static std::optional<std::vector<Match>> from_xt(const xt::ExtensionView& extension, Family family); \
  void to_nft(nft::RuleWriter& writer) const;                                                                        \
  [[nodiscard]] static std::optional<std::vector<std::vector<Match>>> from_nft(const nft::Comparison& comparison);   \
  [[nodiscard]] Truth truth(const PacketAtHook& packet) const;                                                       \
  [[nodiscard]] std::string why_not(const PacketAtHook& packet) const;                                               \
  void ask(Asked& asked) const;                                                                                      \
  void take_value(const Kind& from)

}  // namespace sidetrack
