// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/walk.h"

#include <algorithm>

namespace sidetrack::probe {
namespace {

bool in_any(const auto& ranges, const auto& value) {
  return std::ranges::any_of(ranges, [&](const auto& range) { return range.contains(value); });
}

// ---- Whether a match holds, were it not negated.

bool holds(const InterfaceMatch& match, const Packet& packet) {
  const std::string& name = match.direction == Direction::in ? packet.in : packet.out;
  if (!match.name.ends_with('+')) return name == match.name;
  return name.starts_with(match.name.substr(0, match.name.size() - 1));
}
bool holds(const AddressMatch& match, const Packet& packet) {
  return in_any(match.ranges, match.end == End::source ? packet.from.address : packet.to.address);
}
bool holds(const ProtocolMatch& match, const Packet& packet) { return match.protocol == packet.protocol; }
bool holds(const PortMatch& match, const Packet& packet) {
  return in_any(match.ports, match.end == End::source ? packet.from.port : packet.to.port);
}
bool holds(const OwnerMatch& match, const Packet& packet) {
  return in_any(match.ids, match.kind == OwnerKind::uid ? packet.owner.uid : packet.owner.gid);
}
bool holds(const ConntrackStateMatch& match, const Packet&) { return (match.states & ConntrackStateMatch::new_) != 0; }
bool holds(const MarkMatch& match, const Packet& packet) { return (packet.mark & match.mask) == match.value; }
bool holds(const ConnmarkMatch& match, const Packet&) { return match.value == 0; }
bool holds(const UnknownMatch&, const Packet&) { return false; }

bool passes(const Match& match, const Packet& packet) {
  return std::visit(
      [&](const auto& m) {
        if constexpr (requires { m.negated; }) return holds(m, packet) != m.negated;
        return holds(m, packet);
      },
      match);
}

bool is_for(const Rule& rule, const Packet& packet) {
  return rule.families.contains(packet.to.address.family) &&
         std::ranges::all_of(rule.matches, [&](const Match& match) { return passes(match, packet); });
}

class Walker {
 public:
  Walker(const std::vector<Chain>& chains, const Packet& packet) : chains_(chains), packet_(packet) {}

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
  Packet packet_;
  std::vector<const Rule*> path_;
  std::vector<const Rule*> returned_;  // the path to the last RETURN
};

}  // namespace

Walk walk(const Ruleset& ruleset, Table table, const char* hook, const Packet& packet) {
  const std::vector<Chain> all = chains(ruleset, table, packet.to.address.family);
  Walker walker(all, packet);
  const bool decided = walker.traverse(hook);
  return walker.result(decided);
}

}  // namespace sidetrack::probe
