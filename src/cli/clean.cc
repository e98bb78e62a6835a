// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apply/apply.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "mesh/other_meshes.h"
#include "mesh/ownership.h"
#include "model/config.h"
#include "model/printable.h"
#include "pod/route.h"
#include "rule/iptables.h"

namespace sidetrack::cli {

namespace {

// Names the rules that are as one of the mesh's is, which goes alone.
std::vector<std::string> identical_rules(const Survey& survey, std::optional<BackendKind> backend) {
  std::vector<std::string> left;
  for (const Live* live : survey.all()) {
    if (backend && live->backend != *backend) continue;
    for (const LiveChain& chain : live->chains) {
      for (const LiveRule& each : chain.rules) {
        const auto is_twin = [&](const LiveRule& other) { return other.ours && is_same(other, each); };
        if (each.ours || each.of_agent || !is_builtin(chain.name) || std::ranges::none_of(chain.rules, is_twin))
          continue;
        left.push_back(fmt::format(
            "{}: {} ({}): this rule stays beside one like it that was the mesh's: another program's, or of "
            "an earlier run: {}",
            name(live->backend), printable(chain.table_name), names(chain.families), iptables_words(each.rule)));
      }
    }
  }
  return left;
}

// Names the routes that are as Istio's, into which no policy rule of Istio leads.
void add_other_routes(const Survey& survey, std::vector<std::string>& left) {
  for (const Route& route : survey.others_routing.local_routes) {
    if (route.table == Config().tproxy_route_table)
      left.push_back(fmt::format("'{}' stays: no policy rule of the mesh looks up that table", ip_words(route)));
  }
}

}  // namespace

ExitCode run_clean(CommandLine& line) {
  enter_target(line);
  const auto kernel = open_kernel(line, true);
  std::string_view mesh;
  std::vector<std::string> left;
  if (!line.mesh.empty()) {
    const MeshRules rules = rules_of_mesh(line.mesh);
    mesh = rules.name;
    left = left_by_mesh(rules, kernel->survey().all());
  } else {
    const Survey survey = kernel->survey();
    left = identical_rules(survey, line.applying.backend);
    add_other_routes(survey, left);
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
