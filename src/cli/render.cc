// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

namespace sidetrack::cli {

ExitCode run_render(CommandLine& line) {
  enter_target(line);
  print(rendered(line, make_plan(line)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
