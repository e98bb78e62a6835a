// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "render/diagnosis.h"
#include "system/capabilities.h"

namespace sidetrack::cli {

ExitCode run_doctor(CommandLine& line) {
  enter_target(line);
  const std::vector<Capability> had = capabilities();
  const auto routes = [] {
    const WithoutCapabilities readable;  // as in LinuxKernel: what it opens can read alone
    return open_routes();
  }();
  confine(line, Sandbox::look);
  const Diagnosis diagnosis = diagnose(open_backend, in_own_pod(line) ? "" : namespace_lock, *routes, had);
  print(line.format == Format::json ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis, colored(line)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
