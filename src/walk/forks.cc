// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/forks.h"

#include <fmt/format.h>

#include <algorithm>

namespace sidetrack {
namespace {

void keep_marks(PacketState& packet, std::uint32_t bits) {
  packet.now.mark &= bits;
  packet.now.own_bits &= bits;
  if (packet.now.connmark) *packet.now.connmark &= bits;
  for (PacketState& request : packet.request) keep_marks(request, bits);
}

}  // namespace

std::optional<std::size_t> Forks::choose(Fork fork, ChoiceState choice_state) {
  if (at_ < again_) return made_[at_++].taken;
  keep_marks(choice_state.packet, asked_marks_);
  if (!is_looking_ && std::ranges::find(seen_, choice_state) != seen_.end()) return {};
  if (!is_looking_) seen_.push_back(std::move(choice_state));
  if (at_ < guide_.size() && guide_[at_] < fork.options.size()) fork.first = guide_[at_];
  fork.taken = fork.first;
  made_.push_back(std::move(fork));
  again_ = at_ = made_.size();
  return made_.back().taken;
}

void Forks::look_for_state(std::vector<std::size_t> guide) {
  is_looking_ = true;
  guide_ = std::move(guide);
}

void Forks::keep() {
  if (!is_looking_) return;
  is_looking_ = false;
  kept_ = at_;
  guide_.clear();
}

std::vector<std::size_t> Forks::taken() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < at_; ++i) result.push_back(made_[i].taken);
  return result;
}

std::optional<std::string> Forks::next_hop(const RouteLookup& way, const Address& destination, std::size_t steps,
                                           ChoiceState choice_state) {
  const auto known = hops_.find({way.route, destination});
  if (known != hops_.end()) return known->second;
  const std::string subject = fmt::format("the next hop by `{}`", ip_words(way));
  Fork fork{subject, fmt::format("which next hop it gets by `{}`", ip_words(way)), {}, steps};
  const std::vector<std::string> devices = way.route->devices();
  for (const std::string& device : devices) fork.options.push_back("if that by " + device);
  const auto taken = choose(std::move(fork), std::move(choice_state));
  if (!taken) return {};
  return hops_.emplace(std::pair(way.route, destination), devices[*taken]).first->second;
}

bool Forks::next() {
  hops_.clear();
  guide_.clear();
  while (made_.size() > kept_ && made_.back().next() == made_.back().first) made_.pop_back();
  if (made_.size() == kept_) return false;
  made_.back().taken = made_.back().next();
  again_ = made_.size();
  at_ = 0;
  return true;
}

}  // namespace sidetrack
