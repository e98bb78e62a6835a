// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"

namespace sidetrack::cli {

ExitCode run_verify(CommandLine& line) {
  enter_target(line);
  const Compared compared = compare(line, make_plan(line));
  print(rendered(line, compared));
  if (compared.difference.empty()) {
    info("rules and routes are as asked, through " + std::string(name(compared.backend)));
    return ExitCode::done;
  }
  error("the pod is not as asked; 'sidetrack apply' with these options would make it so");
  return ExitCode::differs;
}

}  // namespace sidetrack::cli
