// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

namespace sidetrack::cli {

ExitCode run_render(CommandLine& line) {
  const auto place = enter_target(line);
  const Plan plan = make_plan(line, place);
  confine(line, Sandbox::compute);
  print(rendered(line, plan));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
