// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/ruleset.h"

#include <algorithm>

namespace sidetrack {
namespace {

// The chain that a rule jumps to, if it jumps.
const std::string* jump_of(const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  return jump != nullptr ? &jump->chain : nullptr;
}

// xtables keeps interface, address and protocol in the header of a rule, whatever the order of the words was: a
// stable sort by kind puts both orders alike. PortMatch and the others keep their places among themselves.
std::vector<Match> in_kernel_order(const std::vector<Match>& matches) {
  std::vector<Match> sorted = matches;
  std::erase_if(sorted, matches_everything);
  std::ranges::stable_sort(sorted, {}, [](const Match& match) {
    const auto* address = std::get_if<AddressMatch>(&match);
    const auto* interface = std::get_if<InterfaceMatch>(&match);
    const bool second = (address != nullptr && address->end == End::destination) ||
                        (interface != nullptr && interface->direction == InterfaceDirection::out);
    return 2 * match.index() + (second ? 1 : 0);
  });
  return sorted;
}

// Where `-A` or `-I CHAIN N` puts a rule: before the Nth rule of each family that it is for.
std::vector<const Rule*>::iterator place_of(const Rule& rule, Families families, std::vector<const Rule*>& rules) {
  auto place = rules.end();
  if (!rule.insert_at) return place;
  for (Family family : (rule.families & families).list()) {
    unsigned count = 0;
    const auto is_nth = [&](const Rule* other) {
      return other->families.contains(family) && ++count == *rule.insert_at;
    };
    place = std::min(place, std::find_if(rules.begin(), rules.end(), is_nth));
  }
  return place;
}

}  // namespace

bool is_negated(const Match& match) {
  return std::visit(
      [](const auto& m) {
        if constexpr (requires { m.negated; }) return m.negated;
        return false;
      },
      match);
}

std::optional<std::uint16_t> listening_port(const Target& target) {
  if (const auto* redirect = std::get_if<Redirect>(&target)) return redirect->port;
  if (const auto* tproxy = std::get_if<Tproxy>(&target)) return tproxy->port;
  return std::nullopt;
}

namespace {

struct AsksConnection {
  bool operator()(const ConntrackStateMatch&) const { return true; }
  bool operator()(const ConntrackDirectionMatch&) const { return true; }
  bool operator()(const ConnmarkMatch&) const { return true; }
  bool operator()(const InterfaceMatch&) const { return false; }
  bool operator()(const AddressMatch&) const { return false; }
  bool operator()(const ProtocolMatch&) const { return false; }
  bool operator()(const PortMatch&) const { return false; }
  bool operator()(const OwnerMatch&) const { return false; }
  bool operator()(const MarkMatch&) const { return false; }
  bool operator()(const SocketMatch&) const { return false; }
  bool operator()(const SetMatch&) const { return false; }
  bool operator()(const CgroupMatch&) const { return false; }
  bool operator()(const CommentMatch&) const { return false; }
  bool operator()(const UnknownMatch&) const { return false; }
};

}  // namespace

bool asks_connection(const Match& match) { return std::visit(AsksConnection{}, match); }

bool matches_everything(const Match& match) {
  if (is_negated(match)) return false;
  if (const auto* interface = std::get_if<InterfaceMatch>(&match)) return interface->name == "+";
  const auto* address = std::get_if<AddressMatch>(&match);
  return address != nullptr && address->ranges.size() == 1 && address->ranges.front().prefix_length() == 0;
}

bool is_written(Table table) { return std::ranges::find(all_tables, table) != std::end(all_tables); }

bool is_written(std::string_view table_name) {
  return std::ranges::any_of(all_tables, [&](Table table) { return name(table) == table_name; });
}

std::string_view name(Table table) {
  switch (table) {
    case Table::raw:
      return "raw";
    case Table::mangle:
      return "mangle";
    case Table::nat:
      return "nat";
    case Table::filter:
      return "filter";
    case Table::security:
      return "security";
    case Table::other:
      return "other";
  }
  return "";
}

std::string_view name(Protocol protocol) {
  switch (protocol) {
    case Protocol::icmp:
      return "icmp";
    case Protocol::tcp:
      return "tcp";
    case Protocol::udp:
      return "udp";
    case Protocol::icmpv6:
      return "ipv6-icmp";
  }
  return "";
}

Nat source_nat(const Address& address) {
  return {End::source, AddressRange::single(address), {}, "-j SNAT --to-source " + address.text()};
}

bool is_within_cgroup(std::string_view path, std::string_view of) {
  return path.starts_with(of) && (path.size() == of.size() || path[of.size()] == '/');
}

bool is_understood(const Rule& rule) {
  const auto is_unknown = [](const Match& match) {
    const auto* set = std::get_if<SetMatch>(&match);
    return std::holds_alternative<UnknownMatch>(match) || (set != nullptr && !set->members);
  };
  return !std::holds_alternative<UnknownTarget>(rule.target) && std::ranges::none_of(rule.matches, is_unknown);
}

bool same_effect(const Rule& a, const Rule& b) {
  return a.table == b.table && a.chain == b.chain && a.target == b.target &&
         (a.matches == b.matches || in_kernel_order(a.matches) == in_kernel_order(b.matches));
}

bool operator==(const Rule& a, const Rule& b) { return a.families == b.families && same_effect(a, b); }

bool is_builtin(std::string_view chain) {
  static constexpr std::string_view builtin[] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"};
  return std::ranges::find(builtin, chain) != std::end(builtin);
}

std::vector<Chain> chains(const Ruleset& ruleset, Table table, Families families) {
  std::vector<Chain> result;
  const auto chain = [&](const std::string& name) -> Chain& {
    const auto found = std::ranges::find(result, name, &Chain::name);
    return found != result.end() ? *found : result.emplace_back(Chain{table, name, {}});
  };
  const auto concerned = [&](const Rule& rule) { return rule.table == table && !(rule.families & families).empty(); };
  for (const Rule& rule : ruleset.rules) {
    if (!concerned(rule)) continue;
    auto& rules = chain(rule.chain).rules;
    rules.insert(place_of(rule, families, rules), &rule);
  }
  for (const Rule& rule : ruleset.rules) {
    if (concerned(rule) && jump_of(rule) != nullptr) chain(*jump_of(rule));
  }
  return result;
}

}  // namespace sidetrack
