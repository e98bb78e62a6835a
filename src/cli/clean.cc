// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/apply.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"

namespace sidetrack::cli {

ExitCode run_clean(CommandLine& line) {
  enter_target(line);
  const auto kernel = open_kernel(line, true);
  const ApplyResult result = converge({}, *kernel);
  kernel->release_locks();  // before the log, which somebody may not read
  for (const std::string& warning : result.warnings) warn(warning);
  info(cleaned(result));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
