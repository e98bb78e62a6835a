// SPDX-License-Identifier: GPL-2.0-or-later
// Describes a mesh's rules to the code that reads and writes rules: mesh/istio_rules.h has Istio's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rule/live.h"

namespace sidetrack {

inline constexpr const char* own_nft_table = "sidetrack";  // of nftables, where all rules are: table inet sidetrack

// Names why a rule is there.
struct RuleNotes {
  std::string flag;      // what asked for it: "-d 15020,15090"; empty if it is always there
  std::string sentence;  // what it does, for people
  // The name of the set of its values, a string literal: "excluded-ranges"; nullptr: that of its chain.
  const char* set = nullptr;
};

struct MeshRules {
  std::string_view
      name;  // of another mesh, whose rules are only removed; empty: Istio's and Sidetrack's, with their routes
  std::uint32_t mark = 0;                    // of the policy rule of another mesh; 0: it has none
  std::span<const std::string_view> tables;  // of nftables, of the family inet: the mesh's as a whole
  // Sets `ours` on chains and rules of iptables.
  void (*mark_ours)(const MeshRules& mesh, std::vector<LiveChain>& chains);
  // Whether a chain, by its name in iptables, or a rule is one that the mesh makes.
  bool (*has_chain)(const MeshRules& mesh, std::string_view name);
  bool (*has_rule)(const Rule& rule);
  // The name in iptables of a chain of the mesh's own nftables tables.
  std::string (*iptables_name)(std::string chain);
  // Whether a rule of ours goes to the front of its chain (-I), which the kernel does not keep.
  bool (*came_by_insert)(const Rule& rule);
  // Takes from what is ours the rules of ambient pods that an agent of the node made. Returns whether there are any.
  bool (*leave_to_agents)(Live& live, bool made_by_us);
  RuleNotes (*notes)(const Rule& rule);
};

}  // namespace sidetrack
