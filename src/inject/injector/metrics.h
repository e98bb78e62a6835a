// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "inject/manifest/review.h"

namespace sidetrack::injector {

// What GET /metrics says, in Prometheus' text format. Of one thread.
class Metrics {
 public:
  void count_answer(unsigned status, std::chrono::nanoseconds time);
  void count_review(const manifest::ReviewAnswer& answer);
  void count_reload(bool succeeded) { ++(succeeded ? reloads_ : failed_reloads_); }

  [[nodiscard]] std::string text(std::size_t connections) const;

 private:
  // In seconds, each with what took at most as long; the last is without bound.
  static constexpr std::array bounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1, 1.0};

  std::map<unsigned, std::uint64_t> answers_;  // by status of HTTP
  std::array<std::uint64_t, bounds.size() + 1> times_{};
  double seconds_ = 0;
  std::uint64_t injected_ = 0;
  std::uint64_t refused_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> skipped_;  // by reason
  std::uint64_t reloads_ = 0;
  std::uint64_t failed_reloads_ = 0;
};

}  // namespace sidetrack::injector
