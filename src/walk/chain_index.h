// SPDX-License-Identifier: GPL-2.0-or-later
// How the kernel gets from chain to chain, for everything that follows it.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>

#include "rule/live.h"

namespace sidetrack {

// Whether the kernel calls this chain at the hook.
[[nodiscard]] inline bool called_at(const LiveChain& chain, Hook hook) {
  return chain.hook && chain.hook->hook == hook && !chain.dormant;
}

// Whether a chain there is called for the device: its name, or how it begins (`eth*`, which ends in + here).
[[nodiscard]] inline bool is_of_device(const HookPoint& hook, std::string_view device) {
  const std::string_view name = hook.device;
  return name.ends_with('+') ? device.starts_with(name.substr(0, name.size() - 1)) : name.empty() || name == device;
}

// The chains that packets of all of `families` pass, by their table and name. Of two of one name the first counts.
class ChainIndex {
 public:
  ChainIndex(const Live& live, Families families) : live_(&live), families_(families) {}

  // The chain of that name in the table of `from`: jumps stay within it. A chain without rules is not in a plan.
  [[nodiscard]] const LiveChain* find(const LiveChain& from, std::string_view name);

  // Returns after how many rules a walk gives up: the ways through chains that jump to each other are as many as powers
  // of two.
  [[nodiscard]] std::size_t most_rules();

  // How many rules packets were asked about, one by one, so far.
  [[nodiscard]] std::size_t asked() const { return asked_; }
  void add_asked(std::size_t rules) { asked_ += rules; }

 private:
  using Key = std::tuple<Table, std::string_view, std::string_view>;
  static Key key(const LiveChain& chain, std::string_view name) { return {chain.table, chain.table_name, name}; }

  const Live* live_;
  Families families_;
  std::size_t asked_ = 0;
  std::size_t most_rules_ = 0;              // nothing: not counted yet
  std::map<Key, const LiveChain*> chains_;  // filled by the first look-up: most packets are through without any
};

}  // namespace sidetrack
