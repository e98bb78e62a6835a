// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "space/diagram.h"

namespace sidetrack::space {

// The states that packets were seen in at checkpoints (see Observer), and from which of them on packets were followed.
class States {
 public:
  using Number = std::uint32_t;
  static constexpr Number start = 0;

  Number of(std::string_view bytes) {
    if (const auto found = numbers_.find(bytes); found != numbers_.end()) return found->second;
    numbers_.emplace(bytes, static_cast<Number>(done_.size()));
    bytes_ += bytes.size() + bytes_of_a_state;
    done_.push_back(Diagrams::whole(Diagrams::no));
    return static_cast<Number>(done_.size() - 1);
  }
  // Packets that were followed from there on: yes, no.
  Diagrams::Node& done(Number state) { return done_[state]; }
  [[nodiscard]] std::size_t size() const { return done_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  // that they take

 private:
  static constexpr std::size_t bytes_of_a_state = 96;  // beside its own: the table, and what malloc keeps
  std::size_t bytes_ = 0;
  std::deque<Diagrams::Node> done_{Diagrams::whole(Diagrams::no)};
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Number, Hash, std::equal_to<>> numbers_;
};

}  // namespace sidetrack::space
