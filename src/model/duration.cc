// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/duration.h"

#include <fmt/format.h>

namespace sidetrack {

std::string duration_words(std::chrono::nanoseconds time) {
  using Seconds = std::chrono::duration<double>;
  if (time <= std::chrono::minutes(2)) return fmt::format("{:g} s", Seconds(time).count());
  const auto hours = std::chrono::floor<std::chrono::hours>(time);
  const auto minutes = std::chrono::floor<std::chrono::minutes>(time - hours);
  const double seconds = Seconds(time - hours - minutes).count();
  std::string text;
  if (hours.count() != 0) text += fmt::format("{}h", hours.count());
  if (minutes.count() != 0) text += fmt::format("{}m", minutes.count());
  if (seconds != 0) text += fmt::format("{:g}s", seconds);
  return text;
}

}  // namespace sidetrack
