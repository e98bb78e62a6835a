// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target.h"

namespace sidetrack {
namespace {

// Asks each kind of target; the first one that understands the words has them.
template <typename... Kinds>
std::optional<Target> first_of(TargetWords words, std::type_identity<std::variant<Kinds...>>) {
  std::optional<Target> found;
  static_cast<void>(((found = Kinds::from_iptables(words)) || ...));
  return found;
}

}  // namespace

Facts changes(const Target& target) {
  return std::visit([](const auto& one) { return one.changes(); }, target);
}

bool goes_on(const Target& target) {
  return std::visit([](const auto& one) { return one.goes_on; }, target);
}

bool needs_tracking(const Target& target) {
  return std::visit([](const auto& one) { return one.needs_tracking; }, target);
}

std::optional<std::uint16_t> listening_port(const Target& target) {
  if (const auto* redirect = std::get_if<Redirect>(&target)) return redirect->port;
  if (const auto* tproxy = std::get_if<Tproxy>(&target)) return tproxy->port;
  return std::nullopt;
}

Target read_target(TargetWords words) { return *first_of(words, std::type_identity<Target>{}); }

}  // namespace sidetrack
