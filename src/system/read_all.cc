// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/read_all.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sidetrack {

int read_all(int file, std::size_t most, std::string& text) {
  constexpr std::size_t piece = 1U << 12;  // most files of /proc are smaller
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) text.resize(size + std::max(piece, size));
    const ssize_t got = read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > most) return EFBIG;
  }
  text.resize(size);
  return 0;
}

}  // namespace sidetrack
