// SPDX-License-Identifier: GPL-2.0-or-later
// Tables as the kernel tells of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernel/nft/native.h"
#include "rule/live.h"
#include "rule/mesh_rules.h"

namespace sidetrack::nft {

struct Reading;

struct KernelRule {
  std::uint64_t handle = 0;
  std::vector<std::byte> expressions;  // the attributes of NFTA_RULE_EXPRESSIONS
  std::string comment;
};

struct KernelChain {
  std::string name;
  std::optional<HookPoint> hook;
  std::vector<std::string> devices;  // of a chain at ingress or egress
  Verdict policy = Verdict::accept;  // of a base chain
  std::vector<KernelRule> rules;
};

// What a set or map holds of one kind of key; keys from first to last, as the kernel compares them (memcmp), the fields
// of a concatenation one after the other, each filled up with zeros to 4 bytes.
struct KernelElement {
  std::string first;
  std::string last;
  std::int32_t verdict = 0;  // of a verdict map
  std::string chain;         // that it jumps to
  bool starts = true;        // while being read: false ends the interval before, and is no part of it
};

struct KernelSet {
  std::uint32_t flags = 0;  // NFT_SET_…
  std::uint32_t key_size = 0;
  bool verdicts = false;  // it is a map to verdicts
  std::vector<KernelElement> elements;
  std::optional<KernelElement> any_other;  // the catch-all element
  std::string opaque;  // why its contents cannot be relied on: "its elements expire"; empty: they can
};

struct KernelTable {
  TableKey key;
  std::uint32_t uses = 0;   // chains, sets and other objects in it
  std::uint32_t flags = 0;  // NFT_TABLE_F_…
  std::uint32_t owner = 0;  // the netlink port of the process that owns it
  std::vector<KernelChain> chains;
  std::map<std::string, KernelSet> sets;  // those that rules use
  std::vector<MapJump> jumps;             // of all maps, used or not
};

// The chains of a native table that is ours, as the rules of iptables that they stand for; what the mesh does not know
// is another program's.
[[nodiscard]] std::vector<LiveChain> rules_of(const KernelTable& table, Reading& reading, const MeshRules& mesh);

[[nodiscard]] LiveTable live_table(const KernelTable& table);

}  // namespace sidetrack::nft
