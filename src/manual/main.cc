// SPDX-License-Identifier: GPL-2.0-or-later
// Prints the manual page of the template on standard input, for the build.
#include <iostream>
#include <iterator>

#include "manual/manual.h"

int main() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  std::cout << sidetrack::manual(text) << std::flush;
  return std::cin.bad() || !std::cout ? 1 : 0;
}
