// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "model/error.h"
#include "probe/probe.h"
#include "render/render.h"
#include "rule/fold.h"

namespace sidetrack::cli {
namespace {

std::string said(const CommandLine& line, const PodDiff& pod_diff) {
  return line.manifest.pod.empty() ? verified(pod_diff)
                                   : verified(pod_diff, "the options that 'sidetrack args' prints");
}

ExitCode compare_and_probe(const CommandLine& line, Plan wanted) {
  const std::optional<PodDiff> compared = compare_if_permitted(line, wanted);
  // The words of a rule are those of the backend that is to hold it.
  if (compared && traits(compared->backends.front().backend).in_own_table) wanted.ruleset = fold(wanted.ruleset);
  const std::vector<ProbeResult> results = probe_pod(line.config, wanted);
  const PodDiff* rules = compared ? &*compared : nullptr;
  if (line.format == Format::json) {
    print(probe_json(results, rules));
  } else {
    print((rules != nullptr ? diff_text(*rules, colored(line)) : "") + probe_text(results, rules, colored(line)));
  }

  const auto count = [&](ProbeResult::Verdict verdict) {
    return std::ranges::count(results, verdict, &ProbeResult::verdict);
  };
  const auto ok = count(ProbeResult::Verdict::ok);
  const auto failed = count(ProbeResult::Verdict::failed);
  const std::string probes =
      fmt::format("probes: {} ok, {} failed, {} unknown", ok, failed, count(ProbeResult::Verdict::unknown));
  const auto differs = [&] {
    error(fmt::format("{}; {}", probes, said(line, *rules)));
    return ExitCode::differs;
  };
  if (rules != nullptr && !rules->equal()) return differs();
  if (failed > 0) {
    error(fmt::format("{}; {}", probes,
                      rules != nullptr ? "the rules and routes are as requested" : "the rules cannot be read here"));
    return ExitCode::validation_failed;
  }
  if (rules != nullptr && !rules->as_requested()) return differs();
  if (rules == nullptr && ok == 0) {
    throw Error(
        ExitCode::not_permitted, fmt::format("{}; the rules cannot be read here, so nothing is known", probes),
        fmt::format("run it as root with CAP_NET_ADMIN, or as the proxy, uid {}", line.config.proxy_uids.front()));
  }
  info(fmt::format("{}; {}", probes,
                   rules != nullptr ? "rules and routes are as requested" : "the rules cannot be read here"));
  return ExitCode::done;
}

}  // namespace

ExitCode run_verify(CommandLine& line) {
  const auto place = enter_target(line);
  const Plan wanted = make_plan(line, place);
  if (line.probe) return compare_and_probe(line, wanted);
  const PodDiff pod_diff = compare(line, wanted);
  print(rendered(line, pod_diff));
  if (pod_diff.as_requested()) {
    info(said(line, pod_diff));
    return ExitCode::done;
  }
  error(said(line, pod_diff));
  return ExitCode::differs;
}

}  // namespace sidetrack::cli
