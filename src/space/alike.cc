// SPDX-License-Identifier: GPL-2.0-or-later
// Tells from the chains of two sides which packets end alike on both: all of them, without following one, or those that
// meet no difference while they are followed on one side.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mesh/describe.h"
#include "model/interface_pattern.h"
#include "space/chain_paths.h"
#include "space/regions.h"
#include "walk/chain_index.h"
#include "walk/hook_calls.h"
#include "walk/in_flight.h"
#include "walk/packet_walk.h"

namespace sidetrack::space {
namespace {

// Returns the names of all interfaces that packets of the pod may come in or go out by.
std::set<std::string> names_of_interfaces(const PodView& pod) {
  std::set<std::string> names{"lo"};
  for (const Interface& interface : pod.interfaces) names.insert(interface.name);
  for (const Route& route : pod.routes) std::ranges::copy(route.devices(), std::inserter(names, names.end()));
  return names;
}

// Tells whether the rules of both chains, and of those that they jump to, are the same, but for those of interfaces
// that the pod does not have.
class SameRules {
 public:
  SameRules(const PodView& pod, ChainIndex& of_one, ChainIndex& of_other)
      : interfaces_(names_of_interfaces(pod)), of_one_(of_one), of_other_(of_other) {}

  bool operator()(const LiveChain& one, const LiveChain& other) {
    if (!compared_.emplace(&one, &other).second) return true;
    const std::vector<const LiveRule*> rules = rules_of(one);
    // Compares whose rule it is, too, as do_alike() does.
    const auto is_same = [&](const LiveRule* a, const LiveRule* b) {
      return a->rule == b->rule && a->ours == b->ours && is_more_of_one(one, *a) == is_more_of_one(other, *b);
    };
    if (one.hook != other.hook || one.policy != other.policy || one.dormant != other.dormant ||
        !std::ranges::equal(rules, rules_of(other), is_same))
      return false;
    for (const LiveRule* entry : rules) {
      const auto* jump = std::get_if<Jump>(&entry->rule.target);
      if (jump == nullptr) continue;
      const LiveChain* to = of_one_.find(one, jump->chain);
      const LiveChain* other_to = of_other_.find(other, jump->chain);
      if ((to == nullptr) != (other_to == nullptr)) return false;
      if (to != nullptr && !(*this)(*to, *other_to)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::vector<const LiveRule*> rules_of(const LiveChain& chain) const {
    std::vector<const LiveRule*> all;
    for (const LiveRule& rule : chain.rules) {
      if (!is_of_no_packet(rule.rule)) all.push_back(&rule);
    }
    return all;
  }
  // One that asks for the state of the connection tells later packets apart, though it never matches.
  [[nodiscard]] bool is_of_no_packet(const Rule& rule) const {
    const auto never_holds = [&](const Match& match) {
      const auto* asked = std::get_if<InterfaceMatch>(&match);
      const auto is_it = [&](const std::string& name) { return matches_interface(asked->name, name); };
      return asked != nullptr && !asked->negated && std::ranges::none_of(interfaces_, is_it);
    };
    const auto asks_more = [](const Match& match) { return (reads(match) & ~facts::packet) != 0; };
    return std::ranges::any_of(rule.matches, never_holds) && std::ranges::none_of(rule.matches, asks_more);
  }

  const std::set<std::string> interfaces_;
  ChainIndex& of_one_;
  ChainIndex& of_other_;
  std::set<std::pair<const LiveChain*, const LiveChain*>> compared_;
};

// Returns the rules of a path that do something to a packet: neither jumps on the way nor what only leaves it alone.
// Keeps all of those that may match, with what follows only if they do, or do not.
std::vector<RuleInChain> effects(const ChainPath& path, Verdict policy) {
  std::vector<RuleInChain> all;
  std::size_t perhaps = 0;  // how many of the next ones
  for (const RuleInChain& each : path.rules) {
    const Target& target = each.rule->rule.target;
    const bool leaves_alone =
        target == Target(Verdict{Verdict::return_}) || (policy == Verdict::accept && target == Target(Verdict{policy}));
    if (each.unknown) perhaps = std::max(perhaps, 1 + each.then + each.otherwise);
    if (perhaps > 0 || (!leaves_alone && !std::holds_alternative<Jump>(target))) all.push_back(each);
    if (perhaps > 0) --perhaps;
  }
  return all;
}

// Tells whether the path says all that becomes of packets that take it, or may.
bool is_known(const ChainPath& path) {
  return !path.unknown && std::ranges::none_of(path.rules, [](const RuleInChain& each) {
    return std::holds_alternative<UnknownTarget>(each.rule->rule.target);
  });
}

// Tells whether both do the same, if the same is so. A listener is named by the rule that leads to it, and TPROXY of
// the plan is known to find its socket.
bool do_alike(const RuleInChain& in_one, const RuleInChain& in_other) {
  const LiveRule* one = in_one.rule;
  const LiveRule* other = in_other.rule;
  if (in_one.unknown.has_value() != in_other.unknown.has_value() || !in_one.goes_on_as(in_other)) return false;
  if (in_one.unknown && (in_one.unknown != in_other.unknown || one->rule != other->rule)) return false;
  return one->rule.target == other->rule.target && one->ours == other->ours &&
         describe(one->rule).rule == describe(other->rule).rule;
}

// Returns the packets that may come to a chain, as far as its rules may ask for more than what ChainPaths tells apart.
// What the kernel chooses, and whose socket it is, is something: where that is not known, it is one of these.
std::vector<WalkState> arrivals(const PodView& pod, Family family, Hook hook, const bool (&asks_interfaces)[2],
                                bool asks_owners) {
  const std::set<std::string> names = names_of_interfaces(pod);
  const std::set<std::string> none{""};
  const bool has_in = hook == Hook::prerouting || hook == Hook::input || hook == Hook::forward;
  const bool has_out = hook == Hook::output || hook == Hook::postrouting || hook == Hook::forward;
  WalkState any;
  any.family = family;
  any.now.pod = &pod;
  any.now.source = {Address::any(family), 1, Origin::source, Origin::source};
  any.now.destination = {Address::any(family), 1, Origin::destination, Origin::destination};
  std::vector<WalkState> all;
  for (const std::string& in : has_in ? names : none) {
    for (const std::string& out : has_out ? names : none) {
      any.now.in = in;
      any.now.out = out;
      all.push_back(any);
      if (asks_owners) {
        WalkState& owned = all.emplace_back(any);
        owned.now.owner = Owner{};
        owned.now.cgroup = "";
      }
      if (!asks_interfaces[1]) break;
    }
    if (!asks_interfaces[0]) break;
  }
  return all;
}

bool are_at_same_place(const LiveChain& a, const LiveChain& b) {
  return a.families == b.families && a.table_name == b.table_name && a.name == b.name && a.hook == b.hook &&
         a.policy == b.policy && a.dormant == b.dormant;
}

// Returns the chains that the kernel calls for packets of the family, or for frames.
std::vector<const LiveChain*> base_chains(const Live& live, Family family) {
  std::vector<const LiveChain*> all;
  for (const LiveChain& chain : live.chains) {
    if (chain.hook && (chain.families.empty() || chain.families.contains(family))) all.push_back(&chain);
  }
  return all;
}

template <typename Is>
bool any_base_chain(const FamilyRules& rules, Family family, const Is& is) {
  return std::ranges::any_of(rules.live(), [&](const Live& live) {
    return std::ranges::any_of(base_chains(live, family), [&](const LiveChain* each) { return is(*each); });
  });
}

bool is_of_packets(const LiveChain& chain) { return !chain.families.empty() && chain.hook->device.empty(); }

// Returns each chain that may do something with that at the same place of the other side, or with nullptr if there is
// none. Nothing: the other side has more, or asks them in another order.
using MatchedChains = std::vector<std::pair<const LiveChain*, const LiveChain*>>;
std::optional<MatchedChains> matched_chains(const Live& live, const Live& other_live, Family family) {
  const auto all = [&](const Live& of) {
    std::vector<const LiveChain*> chains = base_chains(of, family);
    std::erase_if(chains,
                  [&](const LiveChain* each) { return is_of_packets(*each) && !may_do_something(*each, family); });
    return chains;
  };
  const std::vector<const LiveChain*> others = all(other_live);
  MatchedChains made;
  auto next = others.begin();
  for (const LiveChain* chain : all(live)) {
    const bool is_there = next != others.end() && are_at_same_place(*chain, **next);
    made.emplace_back(chain, is_there ? *next++ : nullptr);
  }
  if (live.backend != other_live.backend || next != others.end()) return {};
  return made;
}

bool has_nat(const FamilyRules& rules, Family family) {
  return any_base_chain(rules, family, [](const LiveChain& chain) { return chain.hook->type == ChainType::nat; });
}

// Tells whether another chain is asked at the same priority: in which order is up to the kernel, and a path of its own.
bool has_equal(const LiveChain& one, const FamilyRules& rules, Family family) {
  return any_base_chain(rules, family, [&](const LiveChain& chain) {
    return &chain != &one && chain.hook->hook == one.hook->hook && chain.hook->priority == one.hook->priority;
  });
}

}  // namespace

bool ChainPaths::go_alike(Leaf one, Leaf other, Verdict policy) const {
  const ChainPath& path = paths_[one].path;
  const ChainPath& other_path = paths_[other].path;
  return is_known(path) && is_known(other_path) && path.meets_state == other_path.meets_state &&
         path.accepts == other_path.accepts &&
         std::ranges::equal(effects(path, policy), effects(other_path, policy), do_alike);
}

bool ChainPaths::lead_alike(const Chain& one, const Chain& other, const PodView& pod, Family family) {
  constexpr Facts not_tried = facts::mark | facts::connmark | facts::connection | facts::flags;
  bool asks_interfaces[2] = {};
  bool asks_owners = false;
  for (const Chain& chain : {one, other}) {
    const Looked& each = look_at(chain.base, chain.chains, family, true);
    if (!each.can || (each.asked & not_tried) != 0 || each.ends || each.exempts) return false;
    for (std::size_t i = 0; i < 2; ++i) asks_interfaces[i] = asks_interfaces[i] || each.interfaces[i];
    asks_owners = asks_owners || each.owners;
  }
  const auto goes_alike = [&](Leaf a, Leaf b) {
    return go_alike(a, b, one.base.chain->policy) ? Diagrams::yes : Diagrams::no;
  };
  Box all;
  for (std::size_t i = 0; i < field_count; ++i) all[i] = diagrams_.domain(i, family);
  Sets::Id& source_ports = all[index(Field::source_port)];
  source_ports = sets_.difference(source_ports, sets_.single(by_kernel));
  return std::ranges::all_of(
      arrivals(pod, family, one.base.chain->hook->hook, asks_interfaces, asks_owners), [&](const WalkState& arrival) {
        const auto node = of(one.base, one.chains, arrival, 0);
        const auto other_node = of(other.base, other.chains, arrival, 0);
        if (!node || !other_node) return false;
        const auto is_yes = [](Leaf leaf) { return leaf == Diagrams::yes; };
        return *node == *other_node ||
               diagrams_.is_within(diagrams_.combined(*node, *other_node, goes_alike), all, is_yes);
      });
}

bool Regions::are_known_alike(std::size_t one, std::size_t other) {
  if (sides_[one].pod != sides_[other].pod) return false;
  const auto are_alike = [&](FamilyRules& rules, const Live& live, FamilyRules& other_rules, const Live& other_live,
                             Family family) {
    const std::vector<const LiveChain*> chains = base_chains(live, family);
    const std::vector<const LiveChain*> other_chains = base_chains(other_live, family);
    return live.backend == other_live.backend &&
           std::ranges::equal(chains, other_chains, [&](const LiveChain* a, const LiveChain* b) {
             if (!are_at_same_place(*a, *b)) return false;
             if (SameRules(sides_[one].pod, rules.chains(live), other_rules.chains(other_live))(*a, *b)) return true;
             return is_of_packets(*a) &&
                    paths_.lead_alike({{&live, a}, rules.chains(live)},
                                      {{&other_live, b}, other_rules.chains(other_live)}, sides_[one].pod, family);
           });
  };
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    FamilyRules rules(sides_[one].live, family);
    FamilyRules other_rules(sides_[other].live, family);
    const auto is_alike = [&](const Live& live, const Live& other_live) {
      return are_alike(rules, live, other_rules, other_live, family);
    };
    if (!rules.ask_alike(other_rules) || !std::ranges::equal(rules.live(), other_rules.live(), is_alike)) return false;
  }
  return true;
}

// Compares the chains of the first side with those of another one: packets that meet no difference there need not be
// followed. Returns whether that can be told: the other side asks the same chains in the same order, or lacks some.
bool Regions::pair(RulesByFamily& all, std::size_t other, RulesByFamily& all_of_other) {
  if (sides_.front().pod != sides_[other].pod) return false;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    FamilyRules& rules = all.of(family);
    FamilyRules& other_rules = all_of_other.of(family);
    if (!rules.ask_alike(other_rules) || rules.live().size() != other_rules.live().size() ||
        has_nat(rules, family) != has_nat(other_rules, family))
      return false;
    for (std::size_t i = 0; i < rules.live().size(); ++i) {
      const Live& live = rules.live()[i];
      const Live& other_live = other_rules.live()[i];
      const auto matched = matched_chains(live, other_live, family);
      if (!matched) return false;
      ChainIndex& chains = rules.chains(live);
      ChainIndex& other_chains = other_rules.chains(other_live);
      for (const auto& [chain, there] : *matched) {
        if (there != nullptr && SameRules(sides_.front().pod, chains, other_chains)(*chain, *there)) continue;
        if (!is_of_packets(*chain) || (there == nullptr && has_equal(*chain, rules, family))) return false;
        paths_.pair(*chain, family, {other, {&other_live, there}, &other_chains});
      }
    }
  }
  return true;
}

// Whether neighbours are found is worked out once for a device, and not while a packet is followed.
bool Regions::find_same_neighbours(RulesByFamily& rules, const PodView& pod, RulesByFamily& other_rules) {
  return std::ranges::all_of(std::array{Family::ipv4, Family::ipv6}, [&](Family family) {
    return std::ranges::all_of(rules.of(family).why_no_neighbour(), [&](const auto& found) {
      return why_no_neighbour(pod, other_rules.of(family), found.first) == found.second;
    });
  });
}

}  // namespace sidetrack::space
