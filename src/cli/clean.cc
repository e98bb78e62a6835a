// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "state/apply.h"

namespace sidetrack::cli {

ExitCode run_clean(CommandLine& line) {
  enter_target(line);
  const ApplyResult result = converge({}, *open_kernel(line, true));
  for (const std::string& warning : result.warnings) warn(warning);
  std::string from;
  for (BackendKind backend : result.left) from += (from.empty() ? " from " : ", ") + std::string(name(backend));
  info(result.applied == Applied::unchanged ? "nothing to remove"
                                            : "removed all rules and routes of the sidecar" + from);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
