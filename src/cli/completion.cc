// SPDX-License-Identifier: GPL-2.0-or-later
#include "completion/completion.h"

#include "cli/commands.h"

namespace sidetrack::cli {

ExitCode run_completion(CommandLine& line) {
  print(completion(line.shell));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
