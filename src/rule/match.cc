// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match.h"

#include "rule/first_kind.h"

namespace sidetrack {
bool is_negated(const Match& match) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.negated; }) return one.negated;
        return false;
      },
      match);
}

Facts reads(const Match& match) {
  return std::visit([](const auto& one) { return one.reads; }, match);
}

bool matches_everything(const Match& match) {
  if (is_negated(match)) return false;
  if (const auto* interface = std::get_if<InterfaceMatch>(&match)) return interface->name == "+";
  const auto* address = std::get_if<AddressMatch>(&match);
  return address != nullptr && address->ranges.size() == 1 && address->ranges.front().prefix_length() == 0;
}

bool is_understood(const Match& match) {
  const auto* set = std::get_if<SetMatch>(&match);
  return !std::holds_alternative<UnknownMatch>(match) && (set == nullptr || set->members);
}

Truth truth(const Match& match, const PacketAtHook& packet) {
  return std::visit([&](const auto& one) { return one.truth(packet); }, match);
}

std::string why_not(const Match& match, const PacketAtHook& packet) {
  return std::visit([&](const auto& one) { return one.why_not(packet); }, match);
}

void ask(const Match& match, Asked& asked) {
  std::visit([&](const auto& one) { one.ask(asked); }, match);
}

std::size_t count_of_values(const Match& match) {
  std::size_t count = 1;
  with_list(match, [&](const auto& list) { count = list.size(); });
  return count;
}

bool are_alike(const Match& a, const Match& b) {
  return a.index() == b.index() && std::visit(
                                       [&]<typename Kind>(const Kind& one) {
                                         if constexpr (ListKind<Kind>) return one.is_like(std::get<Kind>(b));
                                         return false;
                                       },
                                       a);
}

void take_values(Match& into, const Match& from) {
  std::visit(
      [&]<typename Kind>(Kind& one) {
        if constexpr (ListKind<Kind>) {
          const auto& more = std::get<Kind>(from).list();
          one.list().insert(one.list().end(), more.begin(), more.end());
        }
      },
      into);
}

std::optional<Match> read_match(const MatchOption& option) {
  return first_kind(std::type_identity<Match>{},
                    [&]<typename Kind>(std::type_identity<Kind>) { return Kind::from_iptables(option); });
}

}  // namespace sidetrack
