// SPDX-License-Identifier: GPL-2.0-or-later
// In place of libstdc++'s own, which brings the demangler of C++ names along: 40 kB of a program that catches every
// exception in main().
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

namespace __gnu_cxx {

// NOLINTNEXTLINE(bugprone-reserved-identifier): the library's name for it
void __verbose_terminate_handler();
void __verbose_terminate_handler() {
  constexpr std::string_view no_memory = "sidetrack: error: out of memory\n";
  constexpr std::string_view internal = "sidetrack: internal error: uncaught exception\n";
  constexpr std::string_view no_exception =
      "sidetrack: error: ended without an exception: out of memory, most likely\n";
  bool is_memory = false;
  if (!std::current_exception()) {  // there was no memory for it (__cxa_allocate_exception)
    static_cast<void>(!write(STDERR_FILENO, no_exception.data(), no_exception.size()));
    _exit(1);
  }
  try {  // nlohmann's values need memory to be freed, and say so from a destructor
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    is_memory = true;
  } catch (...) {
  }
  const std::string_view words = is_memory ? no_memory : internal;
  static_cast<void>(!write(STDERR_FILENO, words.data(), words.size()));
  if (is_memory) _exit(1);
  std::abort();
}

}  // namespace __gnu_cxx
