// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/ownership.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "mesh/catalogue.h"
#include "mesh/rule_words.h"
#include "model/error.h"
#include "model/iptables.h"
#include "model/printable.h"

namespace sidetrack {
namespace {

const Jump* jump_to_istio(const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  return jump != nullptr && is_istio_chain(jump->chain) ? jump : nullptr;
}

// -i INTERFACE -j RETURN, -o INTERFACE -j RETURN: the name of the interface
const std::string* returned_interface(const Rule& rule, InterfaceDirection direction) {
  using enum MeshRule;
  if (!is_of(rule, direction == InterfaceDirection::in ? excluded_interface_in : excluded_interface_out))
    return nullptr;
  return &std::get<InterfaceMatch>(rule.matches.front()).name;
}

// Of the rules that mark the proxy's traffic, those with the mark and a loopback range that Istio gives them.
bool marks_proxy(const Rule& rule) {
  const auto beside_loopback = [](const Match& match) {
    const auto* address = std::get_if<AddressMatch>(&match);
    return address != nullptr && address->ranges.front().first.is_loopback();
  };
  return rule.target == Target(SetMark{outbound_mark}) && std::ranges::any_of(rule.matches, beside_loopback);
}

// Rules that Istio has in built-in chains, but for those of interfaces, which others have too.
bool is_direct(const Rule& rule, Table table) {
  using enum MeshRule;
  return std::ranges::any_of(catalogue(), [&](const Row& row) {
    if (row.table != table || row.id == excluded_interface_in || row.id == excluded_interface_out) return false;
    return is_of(rule, row) && (row.id != tproxy_mark_proxy || marks_proxy(rule));
  });
}

// The built-in chains of one table and family that we write to ourselves.
struct Direct {
  LiveChain* prerouting = nullptr;
  LiveChain* output = nullptr;
};

// The interfaces whose traffic in that direction a chain leaves alone.
std::set<std::string> returned_interfaces(const LiveChain* chain, InterfaceDirection direction) {
  std::set<std::string> names;
  if (chain == nullptr) return names;
  for (const LiveRule& live : chain->rules) {
    if (const std::string* name = returned_interface(live.rule, direction)) names.insert(*name);
  }
  return names;
}

void mark_direct(Table table, const Direct& direct) {
  const auto twins_of = [&](const LiveChain* chain, InterfaceDirection direction) {
    return table == Table::raw ? std::set<std::string>() : returned_interfaces(chain, direction);
  };
  if (direct.prerouting != nullptr) {
    const std::set<std::string> twins = twins_of(direct.output, InterfaceDirection::out);
    for (LiveRule& live : direct.prerouting->rules) {
      const std::string* interface = returned_interface(live.rule, InterfaceDirection::in);
      if (interface != nullptr && (table == Table::nat || twins.contains(*interface))) live.ours = true;
      if (is_direct(live.rule, table)) live.ours = true;
    }
  }
  if (direct.output != nullptr) {
    const std::set<std::string> twins = twins_of(direct.prerouting, InterfaceDirection::in);
    for (LiveRule& live : direct.output->rules) {
      const std::string* interface = returned_interface(live.rule, InterfaceDirection::out);
      if (interface != nullptr && twins.contains(*interface)) live.ours = true;
      if (is_direct(live.rule, table)) live.ours = true;
    }
  }
}

void mark_host_probes(std::vector<LiveChain>& chains) {
  for (LiveChain& chain : chains) {
    chain.ours = chain.table == Table::nat && chain.name == words::istio_postrouting;
    for (LiveRule& live : chain.rules) live.ours = chain.table == Table::nat && is_of_host(kind_of(live.rule));
  }
}

}  // namespace

void mark_ours(std::vector<LiveChain>& chains, RulesOf rules_of) {
  if (rules_of == RulesOf::host_probes) return mark_host_probes(chains);
  Families with_istio;
  for (LiveChain& chain : chains) {
    const bool our_table = chain.table == Table::raw || chain.table == Table::mangle || chain.table == Table::nat;
    chain.ours = our_table && is_istio_chain(chain.name);
    if (chain.ours) with_istio = with_istio | chain.families;
    for (LiveRule& live : chain.rules) {
      const bool at_ours = chain.ours || (our_table && is_builtin(chain.name) && jump_to_istio(live.rule) != nullptr);
      live.ours = at_ours && is_of_istio(live.rule);
    }
  }
  for (Family family : with_istio.list()) {
    for (Table table : all_tables) {
      Direct direct;
      for (LiveChain& chain : chains) {
        if (chain.families != family || chain.table != table) continue;
        if (chain.name == "PREROUTING") direct.prerouting = &chain;
        if (chain.name == "OUTPUT") direct.output = &chain;
      }
      mark_direct(table, direct);
    }
  }
}

bool is_wholly_ours(const LiveChain& chain) { return chain.ours && std::ranges::all_of(chain.rules, &LiveRule::ours); }

bool concerns_us(const LiveChain& chain) {
  return is_wholly_ours(chain) || std::ranges::any_of(chain.rules, &LiveRule::ours);
}

bool holds_others(const Live& live) {
  return std::ranges::any_of(live.chains, [](const LiveChain& chain) {
    return chain.dormant || (chain.hook && chain.policy != Verdict::accept) ||
           std::ranges::any_of(chain.rules, [](const LiveRule& rule) { return !rule.ours; });
  });
}

// A table of our own goes as a whole, or is written anew as a whole.
std::optional<Error> others_in_own_tables(const Live& seen) {
  const auto refusal = [&](const std::string& table, const std::string& what, const std::string& command) {
    return Error(ExitCode::failed,
                 fmt::format("{}: the table {} holds {} that Sidetrack did not make; nothing was changed",
                             name(seen.backend), printable(table), printable(what)),
                 fmt::format("move it to a table of its own, then remove it here: {}", printable(command)));
  };
  const auto is_own = [&](const std::string& table) {
    return std::ranges::find(seen.own_tables, table) != seen.own_tables.end();
  };
  for (const LiveChain& chain : seen.chains) {
    if (!chain.ours && is_own(chain.table_name)) {
      return refusal(chain.table_name, "the chain " + chain.name,
                     fmt::format("nft delete chain {} {}", chain.table_name, chain.name));
    }
  }
  for (const LiveChain& chain : seen.chains) {
    if (!chain.ours || !is_own(chain.table_name)) continue;
    const auto other = std::ranges::find(chain.rules, false, &LiveRule::ours);
    if (other == chain.rules.end()) continue;
    return refusal(chain.table_name, "the rule " + iptables_words(other->rule),
                   fmt::format("see nft -a list table {}", chain.table_name));
  }
  for (const LiveTable& table : seen.tables) {
    if (table.other_objects && is_own(table.name)) {
      return refusal(table.name, "a set or another object", fmt::format("see nft list table {}", table.name));
    }
  }
  return std::nullopt;
}

std::optional<Error> leads_to_removed(const Live& seen, const Ruleset& wanted) {
  const auto goes = [&](const LiveChain& from, const std::string& name) {
    const bool asked = std::ranges::any_of(wanted.rules, [&](const Rule& rule) {
      const auto* jump = std::get_if<Jump>(&rule.target);
      return rule.table == from.table && !(rule.families & from.families).empty() &&
             (rule.chain == name || (jump != nullptr && jump->chain == name));
    });
    return !asked && std::ranges::any_of(seen.chains, [&](const LiveChain& chain) {
      return chain.name == name && chain.table_name == from.table_name && chain.families == from.families &&
             is_wholly_ours(chain);
    });
  };
  for (const LiveChain& chain : seen.chains) {
    for (const LiveRule& live : chain.rules) {
      const auto* jump = live.ours ? nullptr : std::get_if<Jump>(&live.rule.target);
      if (jump == nullptr || !goes(chain, jump->chain)) continue;
      return Error(
          ExitCode::failed,
          fmt::format("{}: the chain {} of the table {} ({}) cannot be removed: another program's rule leads to it: {}",
                      name(seen.backend), printable(jump->chain), chain.table_name, names(chain.families),
                      printable(iptables_words(live.rule))),
          "delete that rule first; nothing was changed");
    }
  }
  return std::nullopt;
}

}  // namespace sidetrack
