// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/diff.h"

#include "cli/commands.h"
#include "cli/log.h"
#include "sidetrack/render.h"

namespace sidetrack::cli {

Compared compare(const CommandLine& line, const Plan& wanted) {
  const auto backend = open_backend(line, Access::read);
  const auto routes = open_routes();
  Difference difference = diff(backend->read(), backend->stored(wanted.ruleset));
  const Routing there = routes->read();
  difference.missing = without(wanted.routing, there);
  difference.extra = without(there, wanted.routing);
  for (const std::string& warning : difference.warnings) warn(warning);
  return {std::move(difference), backend->kind()};
}

std::string rendered(const CommandLine& line, const Compared& compared) {
  const std::string_view live = name(compared.backend);
  return line.format == Format::json ? diff_json(compared.difference, live)
                                     : diff_text(compared.difference, live, colored(line));
}

ExitCode run_diff(CommandLine& line) {
  enter_target(line);
  const Compared compared = compare(line, line.clean ? Plan{} : make_plan(line));
  print(rendered(line, compared));
  return compared.difference.empty() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
