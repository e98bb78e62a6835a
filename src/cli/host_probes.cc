// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/host_probes.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "render/render.h"
#include "system/descriptor.h"

namespace sidetrack::cli {
namespace {

using Clock = std::chrono::steady_clock;

bool kernel_has_ipv6() {
  return Descriptor(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)).valid() || errno != EAFNOSUPPORT;
}

Families families_of_node(const CommandLine& line) {
  if (line.config.families) return *line.config.families;
  if (kernel_has_ipv6()) return Families::both();
  const auto of_ipv6 = [](const Address& address) { return address.family == Family::ipv6; };
  const auto found = std::ranges::find_if(line.host_probes.add, of_ipv6);
  if (found != line.host_probes.add.end())
    throw Error(ExitCode::kernel_lacks, fmt::format("--add: {}: the kernel has no IPv6", found->text()),
                "leave it out, or boot without ipv6.disable=1");
  return Family::ipv4;
}

Planner node_planner(const CommandLine& line) {
  const HostProbesOptions& given = line.host_probes;
  const HostProbes asked{given.probe_address, given.probe_address6, families_of_node(line), {}};
  return [&line, asked](const Survey& survey) {
    return host_probes(asked, line.host_probes.add, line.host_probes.remove, line.applying, survey);
  };
}

ExitCode program_node(const CommandLine& line, const Planner& plan) {
  const auto start = Clock::now();
  const ApplyResult result = converge_by(plan, *open_kernel(line, true));
  for (const std::string& reason : result.skipped) info(reason);
  for (const std::string& warning : warnings(result)) warn(warning);
  info(applied(result, Clock::now() - start));
  return ExitCode::done;
}

ExitCode clean_node(const CommandLine& line) {
  const ApplyResult result = converge(Request{}, *open_kernel(line, true));
  for (const std::string& warning : result.warnings) warn(warning);
  info(result.applied == Applied::unchanged
           ? "nothing to remove: the node holds no rules and sets of host-probes"
           : "removed the rules and sets of host-probes; probes of the kubelet come from the node's own addresses");
  return ExitCode::done;
}

ExitCode verify_node(const CommandLine& line, const Planner& plan) {
  const Survey survey = open_kernel(line, false)->survey();
  const Asked asked = plan(survey);
  const Comparison comparison = compare({.plan = &asked.plan, .options = &asked.options}, survey);
  const std::vector<Address> pods = pods_in_ambient_mode(survey);
  print(line.format == Format::json ? host_probes_json(comparison, pods)
                                    : host_probes_text(comparison, pods, colored(line)));
  if (comparison.equal()) {
    info(fmt::format("rules and sets are as requested; addresses of pods in ambient mode: {}", pods.size()));
    return ExitCode::done;
  }
  error(verified(comparison));
  return ExitCode::differs;
}

}  // namespace

ExitCode run_host_probes(CommandLine& line) {
  enter_target(line);
  switch (line.host_probes.action) {
    case HostProbesAction::apply:
      return program_node(line, node_planner(line));
    case HostProbesAction::verify:
      return verify_node(line, node_planner(line));
    case HostProbesAction::clean:
      break;
  }
  return clean_node(line);
}

}  // namespace sidetrack::cli
