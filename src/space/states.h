// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "space/diagram.h"

namespace sidetrack::space {

// The states that packets were seen in at checkpoints (see Observer), and from which of them on packets were followed.
class States {
 public:
  using Number = std::uint32_t;
  static constexpr Number start = 0;

  Number of(const std::string& bytes) {
    const auto [found, added] = numbers_.try_emplace(bytes, static_cast<Number>(done_.size()));
    if (added) done_.push_back(Diagrams::whole(Diagrams::no));
    return found->second;
  }
  // Packets that were followed from there on: yes, no.
  Diagrams::Node& done(Number state) { return done_[state]; }
  [[nodiscard]] std::size_t size() const { return done_.size(); }

 private:
  std::deque<Diagrams::Node> done_{Diagrams::whole(Diagrams::no)};
  std::unordered_map<std::string, Number> numbers_;
};

}  // namespace sidetrack::space
