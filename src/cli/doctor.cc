// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "render/diagnosis.h"

namespace sidetrack::cli {

ExitCode run_doctor(CommandLine& line) {
  enter_target(line);
  const auto routes = open_routes();
  confine(line, Sandbox::look);
  const Diagnosis diagnosis = diagnose(open_backend, in_own_pod(line) ? "" : namespace_lock, *routes);
  print(line.format == Format::json ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis, colored(line)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
