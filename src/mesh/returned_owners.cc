// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/returned_owners.h"

#include <algorithm>

namespace sidetrack {
namespace {

// Not those of a rule for all others, "! --gid-owner 202".
std::vector<Match> owners_of(const Rule& rule) {
  std::vector<Match> owners;
  for (const Match& match : rule.matches) {
    const auto* owner = std::get_if<OwnerMatch>(&match);
    if (owner != nullptr && !owner->negated) owners.push_back(match);
  }
  return owners;
}

}  // namespace

void ReturnedOwners::add(const Rule& rule) {
  const auto comments = std::ranges::count_if(
      rule.matches, [](const Match& match) { return std::holds_alternative<CommentMatch>(match); });
  std::vector<Match> owners = owners_of(rule);
  if (rule.target != Target(Verdict::return_) ||
      owners.size() + static_cast<std::size_t>(comments) != rule.matches.size())
    return;
  known_ = known_ || !owners.empty();
  owners_.push_back(std::move(owners));
}

bool ReturnedOwners::name(const Rule& rule) const {
  const std::vector<Match> owners = owners_of(rule);
  return known_ && !owners.empty() && std::ranges::find(owners_, owners) != owners_.end();
}

bool ReturnedOwners::cover(const Rule& rule) const {
  const std::vector<Match> owners = owners_of(rule);
  return !known_ || owners.empty() || std::ranges::find(owners_, owners) != owners_.end();
}

}  // namespace sidetrack
