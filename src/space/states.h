// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "space/diagram.h"

namespace sidetrack::space {

// The states that packets were seen in at checkpoints (see Observer), and from which of them on packets were followed.
class States {
 public:
  using Number = std::uint32_t;
  static constexpr Number start = 0;

  Number of(std::string_view bytes) {
    if (const auto found = numbers_.find(bytes); found != numbers_.end()) return found->second;
    const auto made = static_cast<Number>(all_.size());
    numbers_.emplace(bytes, made);
    bytes_ += bytes.size() + bytes_of_a_state;
    all_.push_back({Diagrams::whole(Diagrams::no), none_before, {}});
    return made;
  }
  // Packets that were followed from there on: yes, no.
  Diagrams::Node& done(Number state) { return all_[state].done; }
  // Notes that packets come from the state to the next one, where those options are taken of what is unknown before.
  void connect(Number state, Number next, const std::vector<std::size_t>& choices) {
    if (all_[next].depth == none_before) all_[next].choices = choices;
    all_[next].depth = std::min(all_[next].depth, all_[state].depth + 1);
  }
  // Returns the options that led a packet there.
  [[nodiscard]] const std::vector<std::size_t>& choices(Number state) const { return all_[state].choices; }
  // Returns how many checkpoints a packet comes to at least until it is in that state.
  [[nodiscard]] std::uint32_t depth(Number state) const { return all_[state].depth; }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  // that they take

 private:
  struct State {
    Diagrams::Node done;
    std::uint32_t depth;
    std::vector<std::size_t> choices;
  };
  static constexpr std::size_t bytes_of_a_state = 96;  // beside its own: the table, and what malloc keeps
  static constexpr std::uint32_t none_before = 1U << 31;
  std::size_t bytes_ = 0;
  std::deque<State> all_{{Diagrams::whole(Diagrams::no), 0, {}}};
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Number, Hash, std::equal_to<>> numbers_;
};

}  // namespace sidetrack::space
