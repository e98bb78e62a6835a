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
  std::string_view words = internal;
  if (const auto thrown = std::current_exception()) {
    try {  // nlohmann's values need memory to be freed, and say so from a destructor
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      words = no_memory;
    } catch (...) {
    }
  } else {  // there was no memory for it (__cxa_allocate_exception)
    words = no_exception;
  }
  static_cast<void>(!write(STDERR_FILENO, words.data(), words.size()));
  if (words != internal) _exit(1);
  std::abort();
}

}  // namespace __gnu_cxx
