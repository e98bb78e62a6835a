// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/nft/kernel_table.h"
#include "rule/live.h"
#include "system/cgroup.h"

namespace sidetrack::nft {

// An expression that no kernel has: the words of a text, where a rule that was listed says no more.
inline constexpr const char* text_expression = "text";
enum TextAttribute : std::uint8_t {
  text_condition = 1,  // that may hold or not
  text_effect,         // after which the rule goes on
  text_reject,
  text_target,  // in the words of iptables
  text_end,     // after which nothing is known of the rule
};

// Holds what all rules that are read together have in common.
struct Reading {
  CgroupPaths cgroups;
  // Bounds how many more rules of the model those of the kernel become that are several: each takes a kilobyte, and a
  // map of thousands may be looked up by as many rules.
  std::size_t more_rules = 1U << 17;
};

// Where a rule stands, in the words of the model.
struct RuleContext {
  Families families;  // of the table; a rule that asks for one is for that one alone
  Table table = Table::nat;
  std::string chain;
  std::string prefix;  // what the names of the table's chains begin with, before the name of iptables
  const std::map<std::string, KernelSet>& sets;
  bool native = true;   // false in a table of iptables
  bool frames = false;  // of a table of family arp or bridge: the packet is one of Ethernet, which the model has not
  Reading* reading = nullptr;  // not owned; nullptr: no group has a path
  bool device = false;         // of a table of family netdev: frames of ARP come there, too
};

// The rules of iptables that this one stands for, native or of iptables-nft: one, unless it does several things or
// looks up what to do in a map (see LiveRule). An expression is understood if every attribute of it is one that is
// known here and every value one that the model can say; else it becomes an UnknownMatch or UnknownTarget, so that no
// rule is taken for less than it is. Comments are left to the caller.
[[nodiscard]] std::vector<LiveRule> read_rule(const KernelRule& rule, const RuleContext& context);

}  // namespace sidetrack::nft
