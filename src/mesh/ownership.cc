// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/ownership.h"

#include <algorithm>
#include <set>
#include <string>

#include "mesh/catalogue.h"
#include "mesh/rule_words.h"

namespace sidetrack {
namespace {

constexpr std::string_view cilium_prerouting = "CILIUM_PREROUTING";
constexpr std::string_view cilium_output = "CILIUM_OUTPUT";

bool is_known_chain(std::string_view chain) { return is_istio_chain(chain) || is_cilium_chain(chain); }

const Jump* jump_to_istio(const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  return jump != nullptr && is_known_chain(jump->chain) ? jump : nullptr;
}

// Those with the rules of an ambient pod: a chain of its name may be empty, or hold rules of others alone.
Families with_ambient(const std::vector<LiveChain>& chains) {
  Families found;
  for (const LiveChain& chain : chains) {
    if (chain.name == words::istio_prert && std::ranges::any_of(chain.rules, &LiveRule::ours))
      found = found | chain.families;
  }
  return found;
}

// Those with a sidecar's chains. An ambient pod has ISTIO_OUTPUT, too.
Families with_sidecar(const std::vector<LiveChain>& chains) {
  const Families ambient = with_ambient(chains);
  Families found;
  for (const LiveChain& chain : chains) {
    if (!chain.ours || is_cilium_chain(chain.name) || chain.name == words::istio_prert) continue;
    if (chain.name == words::istio_output && (chain.families & ambient) == chain.families) continue;
    found = found | chain.families;
  }
  return found;
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
  const auto loopback_destination = [](const Match& match) {
    const auto* address = std::get_if<AddressMatch>(&match);
    return address != nullptr && address->ranges.front().first.is_loopback();
  };
  return rule.target == Target(SetMark{outbound_mark}) && std::ranges::any_of(rule.matches, loopback_destination);
}

bool is_of_dns(MeshRule id) { return id >= MeshRule::dns_zone_jump && id <= MeshRule::dns_forwarded_query; }

// Returns whether OUTPUT has the rules about DNS of Istio before 1.23, or the jump of later ones to the chain that has
// them. Of one kind alone they may be another program's.
bool has_dns_of_istio(const LiveChain* output, Table table) {
  using enum MeshRule;
  if (output == nullptr) return false;
  const auto has = [&](MeshRule id) {
    return std::ranges::any_of(output->rules, [&](const LiveRule& live) { return is_of(live.rule, id); });
  };
  if (table == Table::nat) return has(dns_proxy_return) && has(dns_redirect);
  return table == Table::raw &&
         (has(dns_zone_jump) || (has(dns_proxy_query) && has(dns_proxy_answer) && has(dns_query)));
}

// Rules that Istio has in built-in chains, but for those of interfaces, which others have too; those about DNS where
// they are as a whole.
bool is_direct(const Rule& rule, Table table, bool with_dns) {
  using enum MeshRule;
  return std::ranges::any_of(catalogue(), [&](const Row& row) {
    if (row.table != table || row.id == excluded_interface_in || row.id == excluded_interface_out) return false;
    if (is_of_dns(row.id) && !with_dns) return false;
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
  const bool with_dns = has_dns_of_istio(direct.output, table);
  const auto twins_of = [&](const LiveChain* chain, InterfaceDirection direction) {
    return table == Table::raw ? std::set<std::string>() : returned_interfaces(chain, direction);
  };
  if (direct.prerouting != nullptr) {
    const std::set<std::string> twins = twins_of(direct.output, InterfaceDirection::out);
    for (LiveRule& live : direct.prerouting->rules) {
      const std::string* interface = returned_interface(live.rule, InterfaceDirection::in);
      if (interface != nullptr && (table == Table::nat || twins.contains(*interface))) live.ours = true;
      if (is_direct(live.rule, table, with_dns)) live.ours = true;
    }
  }
  if (direct.output != nullptr) {
    const std::set<std::string> twins = twins_of(direct.prerouting, InterfaceDirection::in);
    for (LiveRule& live : direct.output->rules) {
      const std::string* interface = returned_interface(live.rule, InterfaceDirection::out);
      if (interface != nullptr && twins.contains(*interface)) live.ours = true;
      if (is_direct(live.rule, table, with_dns)) live.ours = true;
    }
  }
}

// Other programs have chains of Cilium's names, too, and Cilium itself for other purposes.
void leave_others_of_cilium(std::vector<LiveChain>& chains) {
  for (LiveChain& chain : chains) {
    if (!is_cilium_chain(chain.name) || std::ranges::any_of(chain.rules, &LiveRule::ours)) continue;
    chain.ours = false;
    for (LiveChain& from : chains) {
      if (from.table != chain.table || from.families != chain.families) continue;
      for (LiveRule& live : from.rules) {
        const auto* jump = std::get_if<Jump>(&live.rule.target);
        if (jump != nullptr && jump->chain == chain.name) live.ours = false;
      }
    }
  }
}

}  // namespace

void mark_ours(std::vector<LiveChain>& chains) {
  for (LiveChain& chain : chains) {
    const bool our_table = chain.table == Table::raw || chain.table == Table::mangle || chain.table == Table::nat;
    chain.ours = our_table && is_known_chain(chain.name);
    for (LiveRule& live : chain.rules) {
      const bool at_ours = chain.ours || (our_table && is_builtin(chain.name) && jump_to_istio(live.rule) != nullptr);
      live.ours = at_ours && is_of_istio(live.rule);
    }
  }
  leave_others_of_cilium(chains);
  for (Family family : with_sidecar(chains).list()) {
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

bool is_cilium_chain(std::string_view chain) { return chain == cilium_prerouting || chain == cilium_output; }

bool is_ambient_table(std::string_view table) { return table.starts_with("inet istio-ambient-"); }

bool leave_to_agents(Live& live, bool made_by_us) {
  bool any = false;
  const auto leave = [&](auto& one) {
    if (!one.ours) return;
    one.ours = false;
    one.of_agent = any = true;
  };
  const auto leave_all = [&](LiveChain& chain) {
    leave(chain);
    std::ranges::for_each(chain.rules, leave);
  };
  if (traits(live.backend).in_own_table) {
    std::erase_if(live.own_tables, is_ambient_table);
    for (LiveChain& chain : live.chains) {
      if (is_ambient_table(chain.table_name)) leave_all(chain);
    }
    return any;
  }
  const Families ambient = made_by_us ? Families() : with_ambient(live.chains);
  for (LiveChain& chain : live.chains) {
    const bool in_ambient = (chain.families & ambient) == chain.families;
    if (is_cilium_chain(chain.name) || (chain.name == words::istio_prert && in_ambient)) leave_all(chain);
    if (chain.name != words::istio_output || !in_ambient) continue;
    for (LiveRule& rule : chain.rules) {
      if (is_of_ambient(kind_of(rule.rule))) leave(rule);
    }
    if (std::ranges::none_of(chain.rules, &LiveRule::ours)) leave(chain);
  }
  // The jumps to what is theirs, also where a sidecar's rules are in the same chain.
  const auto is_theirs = [&](const LiveChain& from, const Jump* jump) {
    return jump != nullptr && std::ranges::any_of(live.chains, [&](const LiveChain& chain) {
             return chain.name == jump->chain && chain.families == from.families && chain.table == from.table &&
                    (chain.of_agent || std::ranges::any_of(chain.rules, &LiveRule::of_agent));
           });
  };
  for (LiveChain& chain : live.chains) {
    for (LiveRule& rule : chain.rules) {
      if (rule.ours && is_theirs(chain, jump_to_istio(rule.rule))) leave(rule);
    }
  }
  // A table with their rules is not to be deleted as a whole.
  std::erase_if(live.own_tables, [&](const std::string& table) {
    return std::ranges::any_of(live.chains, [&](const LiveChain& chain) {
      return chain.table_name == table && (chain.of_agent || std::ranges::any_of(chain.rules, &LiveRule::of_agent));
    });
  });
  return any;
}

}  // namespace sidetrack
