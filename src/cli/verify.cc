// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"

namespace sidetrack::cli {

ExitCode run_verify(CommandLine& line) {
  enter_target(line);
  const Comparison comparison = compare(line, make_plan(line));
  print(rendered(line, comparison));
  if (comparison.equal()) {
    info("rules and routes are as asked, through " + std::string(name(comparison.backends.front().backend)));
    return ExitCode::done;
  }
  error("the pod is not as asked; 'sidetrack apply' with these options would make it so");
  return ExitCode::differs;
}

}  // namespace sidetrack::cli
