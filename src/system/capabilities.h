// SPDX-License-Identifier: GPL-2.0-or-later
// capabilities(7) of the calling thread, asked of the kernel itself: /proc need not be there.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

namespace sidetrack {

// `number` is that of linux/capability.h.
[[nodiscard]] bool has_capability(unsigned number);      // effective: it counts now
[[nodiscard]] bool may_get_capability(unsigned number);  // bounding: a program may have it by its file or as root

// Gives up all others for ever: effective, permitted and inheritable. Returns 0, or errno.
[[nodiscard]] int keep_only(std::initializer_list<unsigned> numbers);

// While it lives, no capability counts, and what is opened has been opened without any.
class WithoutCapabilities {
 public:
  WithoutCapabilities();
  ~WithoutCapabilities();
  WithoutCapabilities(const WithoutCapabilities&) = delete;
  WithoutCapabilities& operator=(const WithoutCapabilities&) = delete;

 private:
  void swap_effective();
  std::array<std::uint32_t, 2> effective_{};  // as they were
};

}  // namespace sidetrack
