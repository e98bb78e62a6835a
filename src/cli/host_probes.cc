// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/host_probes.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>

#include "cli/commands.h"
#include "cli/log.h"
#include "cni/node.h"
#include "library/sentences.h"
#include "model/printable.h"
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

// The addresses of the node's pods that are in ambient mode, with the pods' names.
using PodsByAddress = std::map<Address, std::string>;

std::string name_of(const cni::PodReport& pod) {
  if (!pod.pod_name.empty()) return printable(fmt::format("{}/{}", pod.pod_namespace, pod.pod_name));
  return pod.pid ? printable(fmt::format("{} {}", *pod.pid, pod.process)) : pod.container_id;
}

PodsByAddress find_pods(const CommandLine& line, Families families) {
  const cni::Node node = cni::survey_node({.records = line.pods.records,
                                           .pod_timeout = line.pods.pod_timeout,
                                           .repair = false,
                                           .confine = [&](Sandbox kind) { confine(line, kind); }});
  const auto unknown = [](const std::string& why) {
    return Error(ExitCode::failed, "which pods are in ambient mode is not known: " + why,
                 "'sidetrack pods' says more; or name the addresses by --add and --remove");
  };
  if (!node.problems.empty()) throw unknown(node.problems.front());
  PodsByAddress found;
  for (const cni::PodReport& pod : node.pods) {
    if (pod.state == cni::PodState::unknown) throw unknown(fmt::format("{}: {}", name_of(pod), printable(pod.detail)));
    if (!pod.ambient) continue;
    for (const Address& address : pod.addresses) {
      if (families.contains(address.family)) found.emplace(address, name_of(pod));
    }
  }
  return found;
}

// What is asked of the node, made of what it holds.
class NodePlanner {
 public:
  explicit NodePlanner(const CommandLine& line)
      : line_(line), asked_{line.config.probe_address, line.config.probe_address6, families_of_node(line), {}} {
    if (line.host_probes.pods) pods_ = find_pods(line, asked_.families);
  }

  Asked operator()(const Survey& survey) const {
    if (!pods_) return host_probes(asked_, line_.host_probes.add, line_.host_probes.remove, line_.applying, survey);
    std::vector<Address> add;
    for (const auto& [address, pod] : *pods_) add.push_back(address);
    return host_probes(asked_, add, too_many(survey), line_.applying, survey);
  }

  // Which pod's address is not in the set, and which is in it that no pod has.
  void report(const Survey& survey) const {
    if (!pods_) return;
    const std::vector<Address> now = pods_in_ambient_mode(survey);
    for (const auto& [address, pod] : *pods_) {
      if (std::ranges::find(now, address) == now.end()) warn(fmt::format("missing: {} of {}", address.text(), pod));
    }
    for (const Address& address : too_many(survey))
      warn(fmt::format("too many: {}: no pod of this node in ambient mode has it", address.text()));
  }

 private:
  [[nodiscard]] std::vector<Address> too_many(const Survey& survey) const {
    std::vector<Address> rest = pods_in_ambient_mode(survey);
    std::erase_if(rest, [&](const Address& address) { return pods_->contains(address); });
    return rest;
  }

  const CommandLine& line_;
  HostProbes asked_;
  std::optional<PodsByAddress> pods_;
};

ExitCode program_node(const CommandLine& line, const NodePlanner& plan) {
  const auto start = Clock::now();
  std::vector<Address> before;
  std::vector<Address> after;
  const auto planned = [&](const Survey& survey) {
    Asked asked = plan(survey);
    before = pods_in_ambient_mode(survey);
    after = pods_of(asked.plan);
    return asked;
  };
  const ApplyResult result = converge_by(planned, *open_kernel(line, true));
  for (const std::string& reason : result.skipped) info(reason);
  for (const std::string& warning : warnings(result)) warn(warning);
  info(applied_node(result, before, after, Clock::now() - start));
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

ExitCode verify_node(const CommandLine& line, const NodePlanner& plan) {
  const Survey survey = open_kernel(line, false)->survey();
  const Asked asked = plan(survey);
  plan.report(survey);
  const Comparison comparison = compare({.plan = &asked.plan, .options = &asked.options}, survey);
  for (const Obstacle& obstacle : comparison.obstacles) warn(text(obstacle));
  if (!comparison.refusal.empty()) warn("apply would refuse: " + comparison.refusal);
  const std::vector<Address> pods = pods_in_ambient_mode(survey);
  print(line.format == Format::json ? host_probes_json(comparison, pods)
                                    : host_probes_text(comparison, pods, colored(line)));
  if (comparison.as_requested()) {
    info(fmt::format("rules and sets are as requested; addresses of pods in ambient mode: {}", pods.size()));
    return ExitCode::done;
  }
  error(verified_node(comparison, asked.options.force_apply));
  return ExitCode::differs;
}

}  // namespace

ExitCode run_host_probes(CommandLine& line) {
  if (line.host_probes.action == HostProbesAction::clean) {
    enter_target(line);
    return clean_node(line);
  }
  const NodePlanner plan(line);  // pods are those of the namespaces that this program sees
  enter_target(line);
  return line.host_probes.action == HostProbesAction::apply ? program_node(line, plan) : verify_node(line, plan);
}

}  // namespace sidetrack::cli
