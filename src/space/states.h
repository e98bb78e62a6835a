// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include "space/diagram.h"

namespace sidetrack::space {

// The states that packets were seen in at milestones (see Observer), and what becomes of packets from there on, as far
// as it is known: worked out once, however they come there.
class States {
 public:
  using Number = std::size_t;
  static constexpr Number start = 0;

  explicit States(Diagrams::Node unknown) : further_{unknown}, unknown_(unknown) {}

  Number of(const std::string& bytes) {
    const auto [found, added] = numbers_.try_emplace(bytes, further_.size());
    if (added) further_.push_back(unknown_);
    return found->second;
  }
  Diagrams::Node& further(Number state) { return further_[state]; }

 private:
  std::deque<Diagrams::Node> further_;
  std::unordered_map<std::string, Number> numbers_;
  Diagrams::Node unknown_;
};

}  // namespace sidetrack::space
