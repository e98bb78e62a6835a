// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/splice.h"

#include <algorithm>

namespace sidetrack {
namespace {

// Each rule where it stood among those of others, as far as these are still there.
std::vector<Slot> put_back(std::span<const LiveRule> there, std::span<const Rule* const> wanted) {
  std::vector<std::size_t> others;
  struct Own {
    std::size_t place;
    std::size_t after_others;
  };
  std::vector<Own> ours;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i].ours) {
      ours.push_back({i, others.size()});
    } else {
      others.push_back(i);
    }
  }
  std::vector<Slot> slots;
  std::size_t passed = 0;
  const auto pass = [&](std::size_t count) {
    for (; passed < std::min(count, others.size()); ++passed) slots.push_back({others[passed], nullptr});
  };
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    pass(*wanted[i]->after_others);
    const bool stays =
        i < ours.size() && ours[i].after_others == passed && same_effect(there[ours[i].place].rule, *wanted[i]);
    slots.push_back(stays ? Slot{ours[i].place, nullptr} : Slot{std::nullopt, wanted[i]});
  }
  pass(others.size());
  return slots;
}

}  // namespace

std::vector<Slot> splice(std::span<const LiveRule> there, std::span<const Rule* const> wanted,
                         bool (*came_by_insert)(const Rule& rule), EqualRules equal) {
  if (!wanted.empty() && wanted.front()->after_others) return put_back(there, wanted);
  std::vector<std::size_t> ours;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i].ours) ours.push_back(i);
  }
  const auto stays = [&](std::size_t our, std::size_t want) {
    return equal == EqualRules::keep && same_effect(there[ours[our]].rule, *wanted[want]);
  };
  const std::size_t shorter = std::min(ours.size(), wanted.size());
  std::size_t head = 0;
  while (head < shorter && stays(head, head)) ++head;
  std::size_t tail = 0;
  while (tail < shorter - head && stays(ours.size() - 1 - tail, wanted.size() - 1 - tail)) ++tail;

  // Places between rules: place i is before rule i.
  const std::size_t inserted_at = head > 0 ? ours[head - 1] + 1 : 0;
  const std::size_t appended_at = [&] {
    for (std::size_t our = head; our < ours.size() - tail; ++our) {
      if (!came_by_insert(there[ours[our]].rule)) return ours[our];
    }
    if (tail > 0) return ours[ours.size() - tail];
    if (head > 0 && !wanted[head - 1]->insert_at) return ours[head - 1] + 1;
    return there.size();
  }();

  const auto first_appended = static_cast<std::size_t>(
      std::ranges::find_if(wanted, [](const Rule* rule) { return !rule->insert_at; }) - wanted.begin());

  std::vector<bool> leaves(there.size(), false);
  for (std::size_t our = head; our < ours.size() - tail; ++our) leaves[ours[our]] = true;
  std::vector<Slot> slots;
  slots.reserve(there.size() + wanted.size());
  const auto add_fresh = [&](std::size_t from, std::size_t to) {
    for (std::size_t want = std::max(from, head); want < std::min(to, wanted.size() - tail); ++want) {
      slots.push_back({std::nullopt, wanted[want]});
    }
  };
  for (std::size_t i = 0; i <= there.size(); ++i) {
    if (i == inserted_at) add_fresh(0, first_appended);
    if (i == appended_at) add_fresh(first_appended, wanted.size());
    if (i < there.size() && !leaves[i]) slots.push_back({i, nullptr});
  }
  return slots;
}

bool changes_nothing(std::span<const Slot> slots, std::size_t count) {
  return slots.size() == count && std::ranges::all_of(slots, [](const Slot& slot) { return slot.kept.has_value(); });
}

}  // namespace sidetrack
