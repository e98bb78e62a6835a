// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>

namespace sidetrack {

// How long to wait for other programs, from now on: for all of them together, however often one is met again.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds wait) : wait_(wait), until_(Clock::now() + wait) {}

  [[nodiscard]] std::chrono::milliseconds wait() const { return wait_; }
  [[nodiscard]] Clock::time_point until() const { return until_; }
  [[nodiscard]] bool over() const { return Clock::now() >= until_; }

 private:
  std::chrono::milliseconds wait_;
  Clock::time_point until_;
};

}  // namespace sidetrack
