// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/walk.h"

#include <algorithm>

namespace sidetrack::probe {
namespace {

bool is_for(const Rule& rule, const PacketAtHook& packet) {
  return rule.families.contains(packet.destination.address.family) &&
         std::ranges::all_of(rule.matches, [&](const Match& match) { return holds(match, packet); });
}

class Walker {
 public:
  Walker(const std::vector<Chain>& chains, const PacketAtHook& packet) : chains_(chains), packet_(packet) {}

  // Whether a rule decided for the whole table.
  bool traverse(std::string_view name) {
    const auto chain = std::ranges::find(chains_, name, &Chain::name);
    if (chain == chains_.end()) return false;
    for (const Rule* rule : chain->rules) {
      if (!is_for(*rule, packet_)) continue;
      path_.push_back(rule);
      if (rule->target == Target(Verdict::return_)) returned_ = path_;
      if (decides(*rule)) return true;
      path_.pop_back();
      if (rule->target == Target(Verdict::return_)) return false;
    }
    return false;
  }

  [[nodiscard]] Walk result(bool decided) const {
    if (decided) return {path_.back()->target, packet_.mark, path_};
    return {Verdict::accept, packet_.mark, returned_};
  }

 private:
  bool decides(const Rule& rule) {
    if (const auto* jump = std::get_if<Jump>(&rule.target)) return traverse(jump->chain);
    if (const auto* set = std::get_if<SetMark>(&rule.target)) packet_.mark = set->mark;
    if (const auto* verdict = std::get_if<Verdict>(&rule.target)) return *verdict != Verdict::return_;
    return std::holds_alternative<Redirect>(rule.target) || std::holds_alternative<Tproxy>(rule.target);
  }

  const std::vector<Chain>& chains_;
  PacketAtHook packet_;
  std::vector<const Rule*> path_;
  std::vector<const Rule*> returned_;  // the path to the last RETURN
};

}  // namespace

Walk walk(const Ruleset& ruleset, Table table, const char* hook, const PacketAtHook& packet) {
  const std::vector<Chain> all = chains(ruleset, table, packet.destination.address.family);
  Walker walker(all, packet);
  const bool decided = walker.traverse(hook);
  return walker.result(decided);
}

}  // namespace sidetrack::probe
