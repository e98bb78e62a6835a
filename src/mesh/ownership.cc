// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/ownership.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>

#include "mesh/catalogue.h"
#include "mesh/other_meshes.h"
#include "mesh/releases.h"
#include "mesh/returned_owners.h"
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

bool is_of_dns(MeshRule id) { return id >= MeshRule::dns_zone_jump && id <= MeshRule::dns_source; }

// Returns whether OUTPUT, of both families, has the rules about DNS of Istio before 1.23, or the jump of later ones to
// the chain that has them. Of one kind alone they may be another program's. Where no server is known,
// there are only those about the proxy.
bool has_dns_of_istio(const std::vector<LiveChain>& chains, Table table, const ReturnedOwners& owners) {
  using enum MeshRule;
  const auto has = [&](Table in, MeshRule id) {
    return std::ranges::any_of(chains, [&](const LiveChain& chain) {
      return chain.table == in && chain.name == words::output &&
             std::ranges::any_of(chain.rules,
                                 [&](const LiveRule& live) { return is_of(live.rule, id) && owners.cover(live.rule); });
    });
  };
  if (has(Table::raw, dns_proxy_query) && has(Table::raw, dns_proxy_answer)) return true;
  if (table == Table::raw) return has(table, dns_zone_jump);
  return table == Table::nat && has(table, dns_proxy_return) && has(table, dns_redirect);
}

// Says which rules of one table and family may be Istio's where they stand in built-in chains.
struct Signs {
  bool older = false;   // those of releases before 1.25 count
  bool dns = false;     // those about DNS of such releases do
  bool tproxy = false;  // the table has a chain of Istio's
  bool twice = false;   // Istio's program ran more than once: it has its jumps twice
  unsigned latest = 0;  // the latest release that may have written the rules
  bool ranges = false;  // outbound traffic is captured by its address: then that of each virtual machine is, too
  const ReturnedOwners* owners = nullptr;
};

// Rules that Istio has in built-in chains, but for those of interfaces, which others have too; those about DNS where
// they are as a whole.
bool is_direct(const Rule& rule, Table table, const Signs& signs) {
  using enum MeshRule;
  if (!signs.owners->cover(rule) || first_release(rule) > signs.latest) return false;
  return std::ranges::any_of(catalogue(), [&](const Row& row) {
    if (row.table != table || row.id == excluded_interface_in || row.id == excluded_interface_out ||
        row.id == virtual_machine_return)
      return false;
    if (is_of_dns(row.id) && !signs.dns) return false;
    if (row.id == invalid_drop ? !signs.older : table == Table::mangle && !signs.tproxy) return false;
    return is_of(rule, row) && (row.id != tproxy_mark_proxy || marks_proxy(rule));
  });
}

// Every release of Istio returns its proxy's traffic, and that of groups, in this chain.
ReturnedOwners owners_of_istio(const std::vector<LiveChain>& chains) {
  ReturnedOwners owners;
  for (const LiveChain& chain : chains) {
    if (chain.table != Table::nat || chain.name != words::istio_output) continue;
    for (const LiveRule& live : chain.rules) owners.add(live.rule);
  }
  return owners;
}

// Marks the rules about DNS in the built-in chains of a family that has no chain of Istio's: its own clean program, up
// to 1.9, left them. They are all there, for the same owners, or they are another program's.
void mark_dns_alone(std::vector<LiveChain>& chains, Family family) {
  using enum MeshRule;
  ReturnedOwners owners;
  const auto each_of = [&](Table table, MeshRule id, const auto& act) {
    for (LiveChain& chain : chains) {
      if (chain.families != family || chain.table != table || chain.name != words::output) continue;
      for (LiveRule& live : chain.rules) {
        if (is_of(live.rule, id)) act(live);
      }
    }
  };
  each_of(Table::raw, dns_proxy_answer, [&](const LiveRule& live) {
    Rule returned;
    std::ranges::copy_if(live.rule.matches, std::back_inserter(returned.matches),
                         [](const Match& match) { return std::holds_alternative<OwnerMatch>(match); });
    returned.target = Verdict::return_;
    owners.add(returned);
  });
  bool is_whole = true;
  for (const auto& [table, id] : {std::pair(Table::raw, dns_proxy_answer),
                                  {Table::raw, dns_proxy_query},
                                  {Table::nat, dns_proxy_return},
                                  {Table::nat, dns_redirect}}) {
    bool any = false;
    each_of(table, id, [&](const LiveRule& live) { any = any || owners.cover(live.rule); });
    is_whole = is_whole && any;
  }
  if (!is_whole) return;
  for (LiveChain& chain : chains) {
    if (chain.families != family || !is_builtin(chain.name)) continue;
    for (LiveRule& live : chain.rules)
      live.ours = live.ours || (is_of_dns(kind_of(live.rule)) && owners.cover(live.rule));
  }
}

// The built-in chains of one table and family in which rules of ours stand themselves.
struct Direct {
  LiveChain* prerouting = nullptr;
  LiveChain* output = nullptr;
  LiveChain* postrouting = nullptr;
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

// Returns those of -k: -i INTERFACE -j ISTIO_REDIRECT.
std::set<std::string> interfaces_of_jumps(const LiveChain& chain) {
  std::set<std::string> names;
  for (const LiveRule& live : chain.rules) {
    if (!live.ours || !std::holds_alternative<Jump>(live.rule.target)) continue;
    for (const Match& match : live.rule.matches) {
      if (const auto* interface = std::get_if<InterfaceMatch>(&match)) names.insert(interface->name);
    }
  }
  return names;
}

// Tells whether ISTIO_OUTPUT leads all addresses or ranges of them to the proxy.
bool captures_ranges(const std::vector<LiveChain>& chains, Family family) {
  const auto is_of_addresses = [](const LiveRule& live) {
    const auto* jump = std::get_if<Jump>(&live.rule.target);
    return jump != nullptr && jump->chain == words::istio_redirect &&
           std::ranges::none_of(live.rule.matches, [](const Match& match) {
             return std::holds_alternative<PortMatch>(match) || std::holds_alternative<InterfaceMatch>(match) ||
                    std::holds_alternative<OwnerMatch>(match);
           });
  };
  return std::ranges::any_of(chains, [&](const LiveChain& chain) {
    return chain.families == family && chain.table == Table::nat && chain.name == words::istio_output &&
           std::ranges::any_of(chain.rules, is_of_addresses);
  });
}

// Marks the rules that leave these interfaces alone. They stand before the last jump of all to a chain of Istio's: what
// stands behind is another program's.
template <typename IsOurs>
void mark_returned(LiveChain& chain, InterfaceDirection direction, const IsOurs& is_ours) {
  const auto is_last = [](const LiveRule& live) {
    return live.ours && std::holds_alternative<Jump>(live.rule.target) &&
           std::ranges::none_of(live.rule.matches, [](const Match& match) {
             return std::holds_alternative<InterfaceMatch>(match);  // of -k: they come first
           });
  };
  const auto last = std::find_if(chain.rules.rbegin(), chain.rules.rend(), is_last);
  const auto end = last != chain.rules.rend() ? last.base() : chain.rules.end();
  std::for_each(chain.rules.begin(), end, [&](LiveRule& live) {
    const std::string* interface = returned_interface(live.rule, direction);
    if (interface != nullptr && is_ours(*interface)) live.ours = true;
  });
}

// Returns whether a built-in chain of that family has a jump to a chain of Istio's twice.
bool ran_twice(const std::vector<LiveChain>& chains, Family family) {
  return std::ranges::any_of(chains, [&](const LiveChain& chain) {
    if (chain.families != family || !is_builtin(chain.name)) return false;
    std::vector<const LiveRule*> jumps;
    for (const LiveRule& live : chain.rules) {
      if (!live.ours || !std::holds_alternative<Jump>(live.rule.target) || live.rule.matches.size() > 1) continue;
      if (std::ranges::any_of(jumps, [&](const LiveRule* before) { return is_same(*before, live); })) return true;
      jumps.push_back(&live);
    }
    return false;
  });
}

// Keeps one of identical rules, as a plan has each once: the others are another program's, and ours is the first if it
// was inserted. Istio's has rules about DNS for each time that a server is named.
void leave_doubles(LiveChain& chain, const std::set<std::string>& twins) {
  std::vector<LiveRule*> single;
  for (LiveRule& live : chain.rules) {
    const bool is_one_of_many = std::holds_alternative<Jump>(live.rule.target) && live.rule.matches.size() > 1;
    if (live.ours && !is_one_of_many && !is_of_dns(kind_of(live.rule))) single.push_back(&live);
  }
  for (auto each = single.begin(); each != single.end(); ++each) {
    const std::string* interface = returned_interface((*each)->rule, InterfaceDirection::in);
    const bool is_inserted = chain.table == Table::nat && interface != nullptr && !twins.contains(*interface);
    for (auto later = each + 1; later != single.end(); ++later) {
      if (is_same(**each, **later)) (is_inserted ? *later : *each)->ours = false;
    }
  }
}

void mark_direct(Table table, const Direct& direct, const Signs& signs) {
  const auto twins_of = [&](const LiveChain* chain, InterfaceDirection direction) {
    return table == Table::raw ? std::set<std::string>() : returned_interfaces(chain, direction);
  };
  if (direct.prerouting != nullptr) {
    const std::set<std::string> twins = twins_of(direct.output, InterfaceDirection::out);
    const std::set<std::string> machines = interfaces_of_jumps(*direct.prerouting);
    mark_returned(*direct.prerouting, InterfaceDirection::in, [&](const std::string& name) {
      return twins.contains(name) || (table == Table::nat && (signs.older || !signs.ranges || machines.contains(name)));
    });
    for (LiveRule& live : direct.prerouting->rules) live.ours = live.ours || is_direct(live.rule, table, signs);
    if (!signs.twice) leave_doubles(*direct.prerouting, twins);
  }
  if (direct.output != nullptr) {
    const std::set<std::string> twins = twins_of(direct.prerouting, InterfaceDirection::in);
    mark_returned(*direct.output, InterfaceDirection::out,
                  [&](const std::string& name) { return twins.contains(name); });
    for (LiveRule& live : direct.output->rules) live.ours = live.ours || is_direct(live.rule, table, signs);
    if (!signs.twice) leave_doubles(*direct.output, twins);
  }
  if (direct.postrouting != nullptr && signs.dns) {
    for (LiveRule& live : direct.postrouting->rules) live.ours = live.ours || is_of(live.rule, MeshRule::dns_source);
  }
}

// Returns whether rules of releases before 1.25 may be there: not where those of a later one alone lead to its chains.
// Else another program's rule would become Istio's as soon as Istio's are there.
bool may_be_older(const std::vector<LiveChain>& chains, Family family) {
  bool later = false;
  bool older = false;
  for (const LiveChain& chain : chains) {
    if (chain.families != family || chain.table != Table::nat || chain.name != words::output) continue;
    for (const LiveRule& live : chain.rules) {
      if (is_of(live.rule, MeshRule::outbound_jump)) (live.rule.matches.empty() ? later : older) = true;
    }
  }
  return older || !later;
}

// Up to 1.4: -m state --state ESTABLISHED -j ACCEPT; of 1.4 -i lo -d ::1 -j ACCEPT; -j REJECT: one after the other, as
// a whole.
constexpr unsigned last_that_refuses_ipv6 = 4;
void mark_refusal_of_ipv6(LiveChain& input, std::span<const LiveChain> all) {
  using enum MeshRule;
  std::vector<LiveRule>& rules = input.rules;
  const auto is = [&](std::size_t at, MeshRule id) { return at < rules.size() && is_of(rules[at].rule, id); };
  for (std::size_t first = 0; first < rules.size(); ++first) {
    if (!is(first, ipv6_established)) continue;
    const std::size_t last = first + (is(first + 1, ipv6_loopback) ? 2 : 1);
    if (!is(last, ipv6_refused)) continue;
    if (earliest_release(all) > last_that_refuses_ipv6) return;
    for (std::size_t at = first; at <= last; ++at) rules[at].ours = true;
  }
}

// With trace logging (up to 1.24) a rule of Istio's comes after one with the same matches and
// -j NFLOG --nflog-prefix WHAT --nflog-group 1337 --nflog-size 20
void mark_trace_logging(LiveChain& chain) {
  for (std::size_t i = 1; i < chain.rules.size(); ++i) {
    const LiveRule& next = chain.rules[i];
    LiveRule& live = chain.rules[i - 1];
    const auto* logs = std::get_if<NonTerminating>(&live.rule.target);
    if (logs == nullptr || !next.ours || live.rule.matches != next.rule.matches) continue;
    live.ours = logs->words.starts_with("-j NFLOG --nflog-prefix ") &&
                logs->words.ends_with(" --nflog-group 1337 --nflog-size 20");
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
  const Families with = with_sidecar(chains);
  const ReturnedOwners owners = owners_of_istio(chains);
  const unsigned latest = latest_release(chains);
  for (Table table : all_tables) {
    const bool has_dns = has_dns_of_istio(chains, table, owners);
    for (Family family : with.list()) {
      Signs signs;
      signs.owners = &owners;
      signs.older = may_be_older(chains, family);
      signs.twice = ran_twice(chains, family);
      signs.latest = latest;
      signs.ranges = table == Table::nat && captures_ranges(chains, family);
      signs.dns = has_dns && signs.older;
      Direct direct;
      for (LiveChain& chain : chains) {
        if (chain.families != family || chain.table != table) continue;
        signs.tproxy = signs.tproxy || chain.ours;
        if (chain.name == words::prerouting) direct.prerouting = &chain;
        if (chain.name == words::output) direct.output = &chain;
        if (chain.name == words::postrouting) direct.postrouting = &chain;
      }
      mark_direct(table, direct, signs);
    }
  }
  const bool has_other_mesh = std::ranges::any_of(chains, [](const LiveChain& chain) {
    return !mesh_of_chain(chain.name).empty();  // Kuma's rules about DNS have the same shapes
  });
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    if (!with.contains(family) && !has_other_mesh) mark_dns_alone(chains, family);
  }
  for (LiveChain& chain : chains) {
    const bool is_input = chain.table == Table::filter && chain.name == words::input;
    if (is_input && chain.families == Family::ipv6 && !with.empty()) mark_refusal_of_ipv6(chain, chains);
    if (is_written(chain.table)) mark_trace_logging(chain);
  }
}

bool is_same(const LiveRule& a, const LiveRule& b) {
  return a.rule.matches == b.rule.matches && a.rule.target == b.rule.target;
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
