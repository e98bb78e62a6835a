// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/forks.h"

#include <algorithm>

namespace sidetrack {

std::optional<std::size_t> Forks::choose(Fork fork, ChoiceState choice_state) {
  if (at_ < again_) return made_[at_++].taken;
  if (std::ranges::find(seen_, choice_state) != seen_.end()) return {};
  seen_.push_back(std::move(choice_state));
  made_.push_back(std::move(fork));
  again_ = at_ = made_.size();
  return 0;
}

std::optional<std::size_t> Forks::choose_once(const void* what, const Address& address, Fork fork,
                                              ChoiceState choice_state) {
  const auto known = once_.find({what, address});
  if (known != once_.end()) return known->second;
  const auto taken = choose(std::move(fork), std::move(choice_state));
  if (taken) once_.emplace(std::pair(what, address), *taken);
  return taken;
}

bool Forks::next() {
  once_.clear();
  while (!made_.empty() && made_.back().taken + 1 == made_.back().options.size()) made_.pop_back();
  if (made_.empty()) return false;
  ++made_.back().taken;
  again_ = made_.size();
  at_ = 0;
  return true;
}

}  // namespace sidetrack
