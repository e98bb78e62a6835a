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
  if (std::ranges::find(seen_, choice_state) != seen_.end()) return {};
  seen_.push_back(std::move(choice_state));
  if (at_ < guide_.size() && guide_[at_] < fork.options.size()) fork.taken = guide_[at_];
  made_.push_back(std::move(fork));
  again_ = at_ = made_.size();
  return made_.back().taken;
}

void Forks::keep() {
  if (is_kept_) return;
  is_kept_ = true;
  kept_ = at_;
  guide_.clear();
  seen_.clear();
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
  if (!guide_.empty()) {  // it led elsewhere
    *this = Forks(asked_marks_);
    return true;
  }
  while (made_.size() > kept_ && made_.back().taken + 1 == made_.back().options.size()) made_.pop_back();
  if (made_.size() == kept_) return false;
  ++made_.back().taken;
  again_ = made_.size();
  at_ = 0;
  return true;
}

}  // namespace sidetrack
