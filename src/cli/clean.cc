// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "sidetrack/apply.h"

namespace sidetrack::cli {

ExitCode run_clean(CommandLine& line) {
  enter_target(line);
  const auto backend = open_backend(line, Access::write);
  const auto routes = open_routes();
  const Applied applied = sidetrack::apply(Plan{}, *backend, *routes);
  info(applied == Applied::unchanged ? "nothing to remove" : "removed all rules and routes of the sidecar");
  return ExitCode::done;
}

}  // namespace sidetrack::cli
