// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "inject/manifest/arguments.h"

namespace sidetrack::cli {

ExitCode run_inject(CommandLine& line) {
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  const std::string text = manifest::injected(line.manifest, notes, warnings, [&] { confine(line, Sandbox::compute); });
  for (const std::string& warning : warnings) warn(warning);
  for (const std::string& note : notes) info(note);
  write_out(text);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
