// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/log.h"
#include "node/node.h"
#include "system/replace_file.h"

namespace sidetrack::cli {
namespace {

// Readable for node_exporter, which is not root.
constexpr unsigned metrics_mode = 0644;

}  // namespace

ExitCode run_pods(CommandLine& line) {
  const cni::Node node = cni::survey_node({.records = line.pods.records,
                                           .pod_timeout = line.pods.pod_timeout,
                                           .repair = line.pods.repair,
                                           .confine = [&](Sandbox kind) { confine(line, kind); }});
  for (const std::string& problem : node.problems) error(problem);
  if (!line.pods.metrics.empty())
    replace_file(line.pods.metrics, cni::node_metrics(node),
                 {.mode = metrics_mode, .hint = "--metrics names a file in an existing directory"});
  print(line.format == Format::json ? cni::node_json(node) : cni::node_text(node));
  if (node.as_recorded()) return ExitCode::done;
  const auto bad = std::ranges::count_if(node.pods, [](const cni::PodReport& pod) {
    return pod.state == cni::PodState::differs || pod.state == cni::PodState::unknown;
  });
  if (bad > 0) error(fmt::format("{} of {} pods are not as recorded, or cannot be read", bad, node.pods.size()));
  return ExitCode::differs;
}

}  // namespace sidetrack::cli
