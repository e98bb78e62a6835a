// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "inject/manifest/arguments.h"

namespace sidetrack::cli {

ExitCode run_args(CommandLine& line) {
  std::vector<std::string> warnings, errors;
  const auto pods = manifest::arguments(line.manifest, warnings, errors, [&] { confine(line, Sandbox::compute); });
  for (const std::string& warning : warnings) warn(warning);
  if (line.format == Format::json) {
    print(manifest::arguments_json(pods, errors));
  } else if (line.manifest.why) {
    print(manifest::why_text(pods));
  } else {
    for (const manifest::PodArguments& pod : pods) {
      if (!pod.init.not_injected.empty()) info(manifest::not_injected(pod.pod, pod.init.not_injected));
    }
    print(manifest::arguments_text(pods));
  }
  for (const std::string& what : errors) error(what);
  return errors.empty() ? ExitCode::done : ExitCode::usage;
}

}  // namespace sidetrack::cli
