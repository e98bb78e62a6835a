// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace sidetrack::netns {

// From here on, in this thread, the system call `number` fails with `error` if its argument `argument` (from 0) has
// `value`, as it would in a kernel that lacks or refuses something. There is no way back: end the thread.
inline void refuse_call(long number, unsigned argument, std::uint32_t value, int error) {
  const auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
  };
  const auto unless_equal_skip = [](std::uint32_t k, std::uint8_t instructions) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, instructions, k};
  };
  const auto give = [](std::uint32_t action) { return sock_filter{BPF_RET | BPF_K, 0, 0, action}; };
  sock_filter program[] = {
      load(offsetof(seccomp_data, nr)),
      unless_equal_skip(static_cast<std::uint32_t>(number), 3),
      load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t)),  // the low half, little-endian
      unless_equal_skip(value, 1),
      give(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
      give(SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) {
    throw std::system_error(errno, std::generic_category(), "seccomp");
  }
}

}  // namespace sidetrack::netns
