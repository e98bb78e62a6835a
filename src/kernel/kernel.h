// SPDX-License-Identifier: GPL-2.0-or-later
// All of the kernel's state that Sidetrack reads and writes, of one network namespace. Tests put their own.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/deadline.h"
#include "kernel/routes.h"
#include "kernel/survey.h"
#include "rule/live.h"
#include "rule/mesh_rules.h"
#include "system/signals.h"

namespace sidetrack {

// Makes a backend hold `wanted` in the place of all that is ours in `seen`; others' rules, chains and counters stay.
// Rules of ours that are equal already stay, with their counters, or are written anew like the rest. The pointers are
// to live as long as the call.
struct Change {
  const Live* seen = nullptr;       // tells the backend
  const Ruleset* wanted = nullptr;  // empty: ours are removed
  EqualRules equal = EqualRules::keep;
};

class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  // Asks every place. What is neither absent nor unreadable is read entirely, or an Error is thrown.
  virtual Survey survey() = 0;
  // Interfaces, addresses, policy rules and routes.
  virtual PodView pod() = 0;

  // The backend's rules once more, after a commit. Both of nf_tables are read at once.
  virtual std::vector<Live> read(std::span<const Change> committed) = 0;

  // All of it or nothing: either iptables-legacy alone, or both backends of nf_tables in one transaction. When it
  // throws, the kernel holds what it held:
  //   busy            if the kernel's rules are no longer `seen`: read again and retry
  //   kernel_lacks    naming the rule, the extension and what to load
  //   not_permitted   naming the capability
  virtual void commit(std::span<const Change> changes) = 0;
  // What `commit` would throw, without changing anything. Returns what could not be checked, a sentence each.
  virtual std::vector<std::string> check(std::span<const Change> changes) = 0;

  virtual Routing add(const Routing& wanted) = 0;  // as Routes::add
  virtual void remove(const Routing& unwanted) = 0;

  // Gives up what keeps other writers waiting, and gets it again: with a new deadline, as when it was opened. What was
  // surveyed before is not to be relied on then.
  virtual void release_locks() {}
  virtual void take_locks() {}

  // Notes for others, as long as this lasts, that what is changed now may be rolled back: their warnings() say so.
  // Throws busy if another process has noted it.
  virtual void begin_confirmation() {}

  // As long as it lasts, a change is begun anew when another program changes the rules in between.
  [[nodiscard]] virtual const Deadline& deadline() const = 0;

  // Which signals wait from the first change to the last.
  [[nodiscard]] virtual HeldSignals::Which held_signals() const { return HeldSignals::Which::all; }

  // What the user should know and is no error, a sentence each.
  [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
};

struct KernelOptions {
  bool write = false;
  // To write, a lock is taken that all processes of Sidetrack take, whatever backend they use: flock(2) on the network
  // namespace itself. It needs no file system, and every container and the node see the same one. Waits up to `wait`,
  // for this one and all that comes later together, then throws busy, naming the holder if the kernel tells.
  std::chrono::milliseconds wait = std::chrono::seconds(30);
  // Whether the lock of legacy iptables is taken, too, where its tables are written: not in another pod's namespace.
  bool xtables_lock = true;
  // Whether survey() is called once, and nothing is written: it gives up the right to ask for rules once it has them,
  // before it decodes what they are. In a sandbox alone.
  bool reads_once = false;
  // Whether tables of legacy iptables may be written where there are none: then the file of that lock is made.
  bool makes_legacy_tables = true;
  // Whether what agents of the node, Istio's or Cilium's, made of an ambient pod is ours to replace and to remove.
  AgentRules agent_rules = AgentRules::foreign;
  HeldSignals::Which held_signals = HeldSignals::Which::all;
};

// Opens that of the calling thread's network namespace.
[[nodiscard]] std::unique_ptr<Kernel> open_kernel(const MeshRules& mesh, const KernelOptions& options);

}  // namespace sidetrack
