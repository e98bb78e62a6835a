// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target.h"

#include "rule/first_kind.h"

namespace sidetrack {

bool reads_connmark(const Target& target) {
  const auto* connmark = std::get_if<Connmark>(&target);
  const auto* set = std::get_if<SetConnmark>(&target);
  return (connmark != nullptr && connmark->kind == Connmark::Kind::restore) || (set != nullptr && set->mask != ~0U);
}

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

Target read_target(TargetWords words) {
  return *first_kind(std::type_identity<Target>{},
                     [&]<typename Kind>(std::type_identity<Kind>) { return Kind::from_iptables(words); });
}

}  // namespace sidetrack
