// SPDX-License-Identifier: GPL-2.0-or-later
#include <completions.h>

#include "cli/commands.h"

namespace sidetrack::cli {

ExitCode run_completion(CommandLine& line) {
  print(completion_scripts[static_cast<std::size_t>(line.shell)]);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
