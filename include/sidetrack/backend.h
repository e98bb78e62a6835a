// SPDX-License-Identifier: GPL-2.0-or-later
// Between the model and the kernel, both ways. Nothing above this interface includes a kernel header.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sidetrack/hook.h"
#include "sidetrack/plan.h"
#include "sidetrack/ruleset.h"

namespace sidetrack {

enum class BackendKind : std::uint8_t { iptables_legacy, iptables_nft, nftables };
[[nodiscard]] std::string_view name(BackendKind kind);  // "iptables-legacy", "iptables-nft", "nftables"

// The families that share a table: each its own (iptables), or both one (the inet table of nftables).
[[nodiscard]] std::vector<Families> scopes(BackendKind kind);

struct Counters {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Counters&, const Counters&) = default;
};

// A rule as it stands in the kernel. `rule.families` is the one family of its table (both in an inet table).
//
// A rule of nf_tables may do several things, or look up what to do in a map: it is then several of these, one behind
// the other, of the same handle, each with all the matches that lead to what it does.
struct LiveRule {
  Rule rule;
  Counters counters;
  bool ours = false;         // written by Sidetrack or by istio-iptables: ours to replace
  std::uint64_t handle = 0;  // nf_tables; 0 in iptables-legacy
};

// A chain as it stands in the kernel, in order.
struct LiveChain {
  Families families;  // none: of a table of family arp
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
};

// What is said of a table of nf_tables as a whole.
struct LiveTable {
  std::string name;  // "ip nat", "inet filter", as LiveChain::table_name
  bool dormant = false;
  bool persist = false;        // stays when its owner goes
  std::uint32_t owner = 0;     // the netlink port of the process that alone may change it (`flags owner`); 0: nobody's
  bool other_objects = false;  // it holds sets or other objects that none of its rules uses
  friend bool operator==(const LiveTable&, const LiveTable&) = default;
};

// All rules of one kind that may decide about the namespace's packets, as they are: iptables-legacy and iptables-nft
// hold iptables' tables, nftables all others (families inet, ip, ip6, netdev). A backend writes to raw, mangle and nat,
// and to the tables of nftables that have our name.
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

enum class EqualRules { keep, rewrite };

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual BackendKind kind() const = 0;

  // What the user should know and is no error, a sentence each: "going on without the lock …".
  [[nodiscard]] virtual std::vector<std::string> warnings() const { return {}; }

  // The rules as this backend stores them, which is what `read` gives back: folded into sets by nftables, else with
  // their matches in the order in which iptables lists them.
  [[nodiscard]] virtual Ruleset stored(const Ruleset& asked) const { return asked; }

  // What the kernel holds now. Creates nothing: a table that is not alive is not read.
  virtual Live read() = 0;

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

// The tables of legacy iptables, by libiptc. Takes the xtables lock for as long as it lives ($XTABLES_LOCKFILE or
// /run/xtables.lock; waits up to `wait`, then throws busy, naming the holder if the kernel tells), unless `read_only`.
struct LegacyOptions {
  bool read_only = false;
  // Another file than the usual one. For another pod's namespace that is the namespace itself, namespace_lock: the lock
  // file of the node has nothing to do with it, and waiting for it has kept people for hours.
  std::string lock_file{};
  std::chrono::milliseconds wait = std::chrono::seconds(30);
};
inline constexpr const char* namespace_lock = "/proc/thread-self/ns/net";
[[nodiscard]] std::unique_ptr<Backend> open_iptables_legacy(const LegacyOptions& options);

// Whether any table of legacy iptables holds rules in this namespace, whoever wrote them. Brings none to life.
[[nodiscard]] bool iptables_legacy_in_use();

// The same rules in nf_tables, as iptables-nft lists them. Reads all tables of iptables (`ip` and `ip6` raw, mangle,
// nat, filter, security), writes to the first three.
[[nodiscard]] std::unique_ptr<Backend> open_iptables_nft();

// A table of our own, `inet sidetrack`, of native expressions and sets.
[[nodiscard]] std::unique_ptr<Backend> open_nftables();

// What these two read, of one moment, from one dump. Throws as they do.
struct LiveNfTables {
  Live iptables_nft;
  Live nftables;
};
[[nodiscard]] LiveNfTables read_nf_tables();

// Policy rules, routes and addresses, over rtnetlink. Ours are tagged by their protocol number.
class Routes {
 public:
  virtual ~Routes() = default;
  struct State {
    Routing ours;    // each as often as it is there
    Routing others;  // what somebody else made, just as a plan would ask for it and where it has its effect
    bool unusual =
        false;  // what others made of policy rules, routes and lo may keep packets from where the rules send them
  };
  [[nodiscard]] virtual State read() = 0;
  // What is there already, or comes meanwhile, is left alone. All is undone again if one fails. Returns what it added.
  virtual Routing add(const Routing& wanted) = 0;
  virtual void remove(const Routing& unwanted) = 0;  // what is gone already is no error
};
[[nodiscard]] std::unique_ptr<Routes> open_routes();

}  // namespace sidetrack
