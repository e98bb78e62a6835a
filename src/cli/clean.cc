// SPDX-License-Identifier: GPL-2.0-or-later
#include <string>
#include <string_view>
#include <vector>

#include "apply/apply.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "mesh/other_meshes.h"

namespace sidetrack::cli {

ExitCode run_clean(CommandLine& line) {
  enter_target(line);
  const auto kernel = open_kernel(line, true);
  std::string_view mesh;
  std::vector<std::string> left;
  if (!line.mesh.empty()) {
    const MeshRules rules = rules_of_mesh(line.mesh);
    mesh = rules.name;
    left = left_by_mesh(rules, kernel->survey());
  }
  const ApplyResult result = converge({.options = &line.applying}, *kernel);
  kernel->release_locks();  // before the log, which somebody may not read
  for (const std::string& warning : result.warnings) warn(warning);
  if (result.applied == Applied::unchanged) left.clear();
  for (const std::string& warning : left) warn(warning);
  std::string said = cleaned(result, mesh);
  if (line.applying.backend) said.append(" (--backend ").append(name(*line.applying.backend)) += ')';
  info(said);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
