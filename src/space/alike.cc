// SPDX-License-Identifier: GPL-2.0-or-later
// Tells from the chains alone, without following a packet, whether all packets end alike.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "mesh/describe.h"
#include "space/chain_paths.h"
#include "space/regions.h"
#include "walk/chain_index.h"
#include "walk/hook_calls.h"
#include "walk/in_flight.h"

namespace sidetrack::space {
namespace {

// Tells whether the rules of both chains, and of those that they jump to, are the same.
class SameRules {
 public:
  SameRules(ChainIndex& of_one, ChainIndex& of_other) : of_one_(of_one), of_other_(of_other) {}

  bool operator()(const LiveChain& one, const LiveChain& other) {
    if (!compared_.emplace(&one, &other).second) return true;
    if (!treat_alike(one, other)) return false;
    for (const LiveRule& entry : one.rules) {
      const auto* jump = std::get_if<Jump>(&entry.rule.target);
      if (jump == nullptr) continue;
      const LiveChain* to = of_one_.find(one, jump->chain);
      const LiveChain* other_to = of_other_.find(other, jump->chain);
      if ((to == nullptr) != (other_to == nullptr)) return false;
      if (to != nullptr && !(*this)(*to, *other_to)) return false;
    }
    return true;
  }

 private:
  ChainIndex& of_one_;
  ChainIndex& of_other_;
  std::set<std::pair<const LiveChain*, const LiveChain*>> compared_;
};

// Returns the rules of a path that do something to a packet: neither jumps on the way nor what only leaves it alone.
std::vector<const LiveRule*> effects(const ChainPath& path, Verdict policy) {
  std::vector<const LiveRule*> all;
  for (const RuleInChain& each : path.rules) {
    const Target& target = each.rule->rule.target;
    const bool leaves_alone =
        target == Target(Verdict{Verdict::return_}) || (policy == Verdict::accept && target == Target(Verdict{policy}));
    if (!leaves_alone && !std::holds_alternative<Jump>(target)) all.push_back(each.rule);
  }
  return all;
}

// Tells whether it is known what becomes of packets that take the path.
bool is_known(const ChainPath& path) {
  return !path.unknown && std::ranges::none_of(path.rules, [](const RuleInChain& each) {
    return each.unknown || std::holds_alternative<UnknownTarget>(each.rule->rule.target);
  });
}

// Tells whether both do the same. A listener is named by the rule that leads to it, and TPROXY of the plan is known to
// find its socket.
bool do_alike(const LiveRule* one, const LiveRule* other) {
  return one->rule.target == other->rule.target && one->ours == other->ours &&
         describe(one->rule).rule == describe(other->rule).rule;
}

// Returns the packets that may come to a chain, as far as its rules may ask for more than what ChainPaths tells apart.
// What the kernel chooses, and whose socket it is, is something: where that is not known, it is one of these.
std::vector<WalkState> arrivals(const PodView& pod, Family family, Hook hook, const bool (&asks_interfaces)[2],
                                bool asks_owners) {
  std::set<std::string> names{"lo"};
  for (const Interface& interface : pod.interfaces) names.insert(interface.name);
  for (const Route& route : pod.routes) std::ranges::copy(route.devices(), std::inserter(names, names.end()));
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

}  // namespace

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
  const Verdict policy = one.base.chain->policy;
  const auto goes_alike = [&](Leaf a, Leaf b) {
    const ChainPath& path = paths_[a].path;
    const ChainPath& other_path = paths_[b].path;
    const bool is_alike = is_known(path) && is_known(other_path) && path.meets_state == other_path.meets_state &&
                          path.accepts == other_path.accepts &&
                          std::ranges::equal(effects(path, policy), effects(other_path, policy), do_alike);
    return is_alike ? Diagrams::yes : Diagrams::no;
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
             if (SameRules(rules.chains(live), other_rules.chains(other_live))(*a, *b)) return true;
             const bool is_of_packets = !a->families.empty() && a->hook->device.empty();
             return is_of_packets &&
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

}  // namespace sidetrack::space
