// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel holds, as values: rules, chains and tables, whichever program made them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/backend_kind.h"
#include "rule/hook.h"
#include "rule/ruleset.h"

namespace sidetrack {

// The families that share a table: each its own (iptables), or both one (the inet table of nftables).
[[nodiscard]] std::vector<Families> scopes(BackendKind kind);

struct Counters {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Counters&, const Counters&) = default;
};

// A rule as it stands in the kernel. `rule.families` is the one family of its table (both in an inet table).
//
// A rule of nf_tables may do several things, or look up what to do in a map: it is then several of these, one after
// the other, of the same handle, each with all the matches that lead to what it does. Those that the part before it has
// in front, too, are not asked again: they hold, or do not, as they did before that changed the packet.
struct LiveRule {
  Rule rule;
  Counters counters;
  bool ours = false;         // written by Sidetrack or by istio-iptables: ours to replace
  bool may_be_arp = false;   // of a chain of a device: frames of ARP may match, too
  std::uint64_t handle = 0;  // nf_tables; 0 in iptables-legacy
  unsigned number = 0;       // in its chain, of one that others are joined to (see space/join.h); 0: as it is counted
  bool of_agent = false;     // as LiveChain::of_agent
};

// A chain as it stands in the kernel, in order.
struct LiveChain {
  Families families;  // none: of a table of family arp or bridge
  Table table = Table::nat;
  std::string name;
  bool ours = false;
  std::vector<LiveRule> rules;
  Verdict policy = Verdict::accept;  // of a base chain: what becomes of packets that no rule decides about
  // Where the kernel calls it; nothing: it is only jumped to.
  std::optional<HookPoint> hook{};
  // The table as its tool names it: "nat" (legacy iptables), "ip nat", "inet filter". Jumps stay within it.
  std::string table_name{};
  bool dormant = false;  // its table is (nf_tables, `flags dormant`): the kernel calls none of its chains
  // Of an ambient pod, by an agent of the node, Istio's or Cilium's, and for it alone to change unless that is asked
  // for: not ours.
  bool of_agent = false;

  // Tells whether a packet that comes there can notice it.
  [[nodiscard]] bool has_effect() const { return !rules.empty() || policy != Verdict::accept; }
};

// Tells whether the rule, one of the chain's, is one more part of the one before it.
[[nodiscard]] inline bool is_more_of_one(const LiveChain& chain, const LiveRule& rule) {
  return &rule != chain.rules.data() && rule.handle != 0 && rule.handle == (&rule)[-1].handle;
}

// Tells whether the kernel treats packets alike in both chains: hook, policy and rules are the same, and the parts of
// those.
[[nodiscard]] bool treat_alike(const LiveChain& a, const LiveChain& b);

// An element of a map of nf_tables leads to a chain: `vmap @MAP`, whether a rule looks it up or not.
struct MapJump {
  std::string map;
  std::string chain;  // as the kernel names it
  friend bool operator==(const MapJump&, const MapJump&) = default;
};

// What is said of a table of nf_tables as a whole.
struct LiveTable {
  std::string name;  // "ip nat", "inet filter", as LiveChain::table_name
  bool dormant = false;
  bool persist = false;          // stays when its owner goes
  std::uint32_t owner = 0;       // the netlink port of the process that alone may change it (`flags owner`); 0: none
  bool other_objects = false;    // it holds sets or other objects that none of its rules uses
  std::vector<MapJump> jumps{};  // of its maps, each chain of a map once; no rule of ours uses a map
  friend bool operator==(const LiveTable&, const LiveTable&) = default;
};

// All rules of one kind that may decide about the namespace's packets, as they are: iptables-legacy and iptables-nft
// hold iptables' tables, nftables all others (families inet, ip, ip6, netdev, arp, bridge). A backend writes to raw,
// mangle and nat, and to the tables of nftables that have our name.
struct Live {
  BackendKind backend = BackendKind::iptables_legacy;
  std::vector<LiveChain> chains;
  std::uint32_t generation = 0;  // nf_tables: of the whole ruleset of the namespace
  // nf_tables: the tables that hold nothing but ours ("inet sidetrack", "ip nat"), even empty ones: they go with it.
  std::vector<std::string> own_tables;
  std::vector<LiveTable> tables{};  // nf_tables: all that hold these chains, and those that hold none

  // The chain of that name that packets of the family pass; nullptr if there is none.
  [[nodiscard]] const LiveChain* find(Family family, Table table, std::string_view chain) const;
};

// Calls `use` with each rule.
template <typename Lives, typename Use>
void for_each_rule(const Lives& all, const Use& use) {
  for (const Live& live : all) {
    for (const LiveChain& chain : live.chains) {
      for (const LiveRule& rule : chain.rules) use(rule);
    }
  }
}
template <typename Lives, typename Is>
[[nodiscard]] bool any_rule(const Lives& all, const Is& is) {
  bool any = false;
  for_each_rule(all, [&](const LiveRule& rule) { any = any || is(rule); });
  return any;
}

enum class EqualRules { keep, rewrite };

}  // namespace sidetrack
