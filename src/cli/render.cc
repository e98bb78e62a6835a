// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

namespace sidetrack::cli {

ExitCode run_render(CommandLine& line) {
  const auto place = enter_target(line);
  print(rendered(line, make_plan(line, place)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
