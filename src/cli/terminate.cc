// SPDX-License-Identifier: GPL-2.0-or-later
// In place of libstdc++'s own, which brings the demangler of C++ names along: 40 kB of a program that catches every
// exception in main().
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace __gnu_cxx {

// NOLINTNEXTLINE(bugprone-reserved-identifier): the library's name for it
void __verbose_terminate_handler();
void __verbose_terminate_handler() {
  constexpr std::string_view words = "sidetrack: internal error: uncaught exception\n";
  static_cast<void>(!write(STDERR_FILENO, words.data(), words.size()));
  std::abort();
}

}  // namespace __gnu_cxx
