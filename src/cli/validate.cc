// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/log.h"
#include "host/host.h"
#include "probe/probe.h"
#include "render/render.h"

namespace sidetrack::cli {
namespace {

// That of the pod's first address, as the reference has it.
Family host_family(const Plan& plan) {
  for (const Address& address : interface_addresses()) {
    if (address.is_loopback() || address.is_link_local()) continue;
    return plan.families.contains(address.family) ? address.family : Family::ipv4;
  }
  return Family::ipv4;
}

}  // namespace

void check_validation(const CommandLine& line, const Plan& plan) {
  if (!plan.ruleset.rules.empty()) sidetrack::check_validation(line.config, plan, host_family(plan));
}

void run_validation(const CommandLine& line, const Plan& plan) {
  if (plan.ruleset.rules.empty()) {
    info("nothing is intercepted with these options: nothing to validate");
    return;
  }
  const ProbeResult result = validate(line.config, plan, host_family(plan));
  const std::chrono::duration<double> took = result.took;
  if (result.verdict == ProbeResult::Verdict::ok) {
    info(fmt::format("validated in {:.1f} ms: {}", took.count() * 1000, result.finding));
    return;
  }
  const auto compared = compare_if_permitted(line, plan);
  std::string message = fmt::format("validation failed after {:.1f} s: {}", took.count(), result.finding);
  const std::vector<std::string> missing = likely_missing(result, compared ? &*compared : nullptr);
  // As istio-validation does, which installs nothing itself.
  if (line.skip_rule_apply && !missing.empty())
    message +=
        "; the rules were to be there already (--skip-rule-apply), by the node's CNI plugin: see 'sidetrack cni "
        "status' there, then recreate the pod";
  if (!missing.empty())
    message += compared ? "; missing:" : "; the rules cannot be read here; likely missing is one of:";
  for (const std::string& each : missing) message += "\n  " + each;
  if (missing.empty())
    message += "; all its rules are there: rules of other programs may decide before them ('sidetrack show')";
  throw Error(ExitCode::validation_failed, message);
}

}  // namespace sidetrack::cli
