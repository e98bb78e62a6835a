// SPDX-License-Identifier: GPL-2.0-or-later
// Prints the manual page, for the build.
#include <cstdio>

#include "manual/manual.h"

int main() {
  const std::string page = sidetrack::manual();
  return std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
