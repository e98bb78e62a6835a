// SPDX-License-Identifier: GPL-2.0-or-later
// Between the model and the kernel, both ways. Nothing above this interface includes a kernel header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/deadline.h"
#include "kernel/known_sets.h"
#include "model/config.h"
#include "model/live.h"
#include "model/pod.h"
#include "model/routing.h"
#include "model/ruleset.h"
#include "system/descriptor.h"

namespace sidetrack {

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual BackendKind kind() const = 0;

  // What the user should know and is no error, a sentence each: "continuing without the lock …".
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }

  // What the kernel holds now. Creates nothing: a table that does not exist is not read.
  virtual Live read() = 0;
  // Gets what the next read() decodes, for which no right is needed then.
  virtual void fetch() {}

  // Makes the kernel hold `wanted` in the place of all that is ours in `seen`; others' rules, chains and counters stay.
  // An empty ruleset removes us. Rules of ours that are equal already stay, with their counters, or are written anew
  // like the rest. All or nothing: when it throws, the kernel holds what it held. Throws
  //   busy            if the kernel's rules are no longer `seen`: read again and retry
  //   kernel_lacks    naming the rule, the extension and what to load
  //   not_permitted   naming the capability
  virtual void replace(const Live& seen, const Ruleset& wanted, EqualRules equal) = 0;
  void replace(const Live& seen, const Ruleset& wanted) { replace(seen, wanted, EqualRules::keep); }

  // What `replace` would throw, without changing anything. Returns what could not be checked, a sentence each.
  virtual std::vector<std::string> check(const Live& seen, const Ruleset& wanted) = 0;
};

// The file of the xtables lock, opened and not yet locked: $XTABLES_LOCKFILE or /run/xtables.lock, which is made if it
// is not there. `named`: another file. For another pod's namespace that is the namespace itself, namespace_lock: the
// lock file of the node has nothing to do with it, and waiting for it has blocked pods for hours.
struct OpenedLockFile {
  std::string path{};
  Descriptor file{};
  int error = 0;  // an errno, if it could not be opened
};
[[nodiscard]] std::shared_ptr<const OpenedLockFile> open_lock_file(const std::string& named = "");

// The tables of legacy iptables, by libiptc. With a file, takes the xtables lock for as long as it lives; waits as
// long as the deadline allows, then throws busy, naming the holder if the kernel tells. Without one it is only to read.
struct LegacyOptions {
  std::shared_ptr<const OpenedLockFile> lock{};
  Deadline deadline{std::chrono::seconds(30)};
  const KnownSets* sets = nullptr;  // names those that rules ask, and outlives the backend
};
inline constexpr const char* namespace_lock = "/proc/thread-self/ns/net";
[[nodiscard]] std::unique_ptr<Backend> open_iptables_legacy(const LegacyOptions& options);

// The same rules in nf_tables, as iptables-nft lists them. Reads all tables of iptables (`ip` and `ip6` raw, mangle,
// nat, filter, security), writes to the first three.
[[nodiscard]] std::unique_ptr<Backend> open_iptables_nft();

// A table of our own, `inet sidetrack`, of native expressions and sets.
[[nodiscard]] std::unique_ptr<Backend> open_nftables();

// One of the three, to read and to check.
[[nodiscard]] std::unique_ptr<Backend> open_backend(BackendKind kind);

// What these two read, of one moment, from one dump. Throws as they do.
struct LiveNfTables {
  Live iptables_nft;
  Live nftables;
};
[[nodiscard]] LiveNfTables read_nf_tables();

// Says whose the rules and routes of an ambient pod are that the agents of Istio and Cilium made; those that Sidetrack
// made are ours.
enum class AgentRules : std::uint8_t { foreign, ours };
[[nodiscard]] constexpr AgentRules agent_rules_of(const Config& config) {
  return config.dataplane == Dataplane::ambient ? AgentRules::ours : AgentRules::foreign;
}

// Policy rules, routes and addresses, over rtnetlink. Ours are tagged by their protocol number.
class Routes {
 public:
  virtual ~Routes() = default;
  struct State {
    Routing ours;    // each as often as it is there
    Routing others;  // what another program made, just as a plan would ask for it and where it has its effect
    bool unusual =
        false;  // what others made of policy rules, routes and lo may keep packets from where the rules send them
  };
  [[nodiscard]] virtual State read() = 0;
  // As read_pod(), by the same socket.
  [[nodiscard]] virtual PodView pod() = 0;
  // What is there already, or comes meanwhile, is left alone. All is undone again if one fails. Returns what it added.
  virtual Routing add(const Routing& wanted) = 0;
  virtual void remove(const Routing& unwanted) = 0;  // what is gone already is no error
};
[[nodiscard]] std::unique_ptr<Routes> open_routes(AgentRules agent_rules = AgentRules::foreign);
// By a socket that can read, and never write: it is opened without capabilities.
[[nodiscard]] std::unique_ptr<Routes> open_routes_to_read(AgentRules agent_rules = AgentRules::foreign);

// The network namespace that this process is in. Throws Error (failed) if the kernel refuses the listing.
[[nodiscard]] PodView read_pod();

// A sentence if the settings below /proc/sys/net, of which PodView has some, cannot be read; empty if they can.
[[nodiscard]] std::string settings_problem();

}  // namespace sidetrack
