// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/diff.h"

#include "cli/commands.h"
#include "cli/log.h"
#include "sidetrack/render.h"

namespace sidetrack::cli {

ExitCode run_diff(CommandLine& line) {
  enter_target(line);
  const Plan wanted = line.clean ? Plan{} : make_plan(line);
  const auto backend = open_backend(line, Access::read);
  const auto routes = open_routes();
  Difference difference = diff(backend->read(), backend->stored(wanted.ruleset));
  const Routing there = routes->read();
  difference.missing = without(wanted.routing, there);
  difference.extra = without(there, wanted.routing);
  for (const std::string& warning : difference.warnings) warn(warning);
  const std::string_view live = name(backend->kind());
  print(line.format == Format::json ? diff_json(difference, live) : diff_text(difference, live, colored(line)));
  return difference.empty() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
