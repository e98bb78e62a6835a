// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace sidetrack {

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace sidetrack
