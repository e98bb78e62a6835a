// SPDX-License-Identifier: GPL-2.0-or-later
// Is the pod of a process as these options ask? Prints what differs, and exits with 6 if anything does.
//
//   verify PID [OPTIONS…]      for instance: verify 4711 -u 1337 -i '*' -b '*'
#include <sidetrack/error.h>
#include <sidetrack/options.h>
#include <sidetrack/pod.h>

#include <charconv>
#include <cstdint>
#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
  std::uint32_t pid = 0;
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
      error != std::errc() || end != word.data() + word.size()) {
    std::cerr << "usage: verify PID [OPTIONS]\n";
    return 2;
  }
  try {
    const auto options = sidetrack::Options::parse({argv + 2, argv + argc}, sidetrack::process_environment);
    const auto difference = sidetrack::Pod::of_process(pid).diff(options);
    for (const std::string& warning : difference.warnings) std::cerr << "verify: warning: " << warning << '\n';
    std::cout << difference.text << difference.summary << '\n';
    return difference.as_requested ? 0 : static_cast<int>(sidetrack::ExitCode::differs);
  } catch (const sidetrack::Error& error) {
    std::cerr << "verify: " << error.what() << (error.hint().empty() ? "" : "; ") << error.hint() << '\n';
    return static_cast<int>(error.code());
  }
}
