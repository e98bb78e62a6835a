// SPDX-License-Identifier: GPL-2.0-or-later
#include "doctor/doctor.h"

#include "cli/commands.h"
#include "render/render.h"

namespace sidetrack::cli {

ExitCode run_doctor(CommandLine& line) {
  enter_target(line);
  const Diagnosis diagnosis =
      diagnose_here(in_own_pod(line) ? "" : namespace_lock, [&] { confine(line, Sandbox::read); });
  print(line.format == Format::json ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis, colored(line)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
