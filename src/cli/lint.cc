// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/lint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/log.h"
#include "inject/manifest/arguments.h"
#include "library/planning.h"
#include "mesh/other_meshes.h"
#include "render/render.h"
#include "rule/ours.h"

namespace sidetrack::cli {
namespace {

lint::Findings of_options(CommandLine& line, const std::optional<Place>& place) {
  const HostFacts facts = facts_for(line.config, line.names, place ? &*place : nullptr, line.dry_run);
  for (const std::string& warning : facts.warnings) warn(warning);
  std::optional<lint::PodFacts> manifest;
  if (!line.manifest.pod.empty()) manifest = manifest::facts_of_pod(line.manifest);
  return lint::lint_options({.config = line.config,
                             .facts = facts,
                             .pod = view_of_entered(line),
                             .manifest = manifest ? &*manifest : nullptr});
}

// Tells whether a chain is so.
template <typename Is>
bool any_chain(const std::vector<Live>& live, const Is& is) {
  return std::ranges::any_of(live, [&](const Live& one) { return std::ranges::any_of(one.chains, is); });
}

lint::Findings of_rules(const PodView& pod, const std::vector<Live>& live) {
  const bool any = any_chain(live, [](const LiveChain& chain) { return chain.of_agent || concerns_us(chain); });
  std::vector<std::string_view> others;
  for (const Live& one : live) add_other_meshes(one, others);
  if (!any && !others.empty())
    info(fmt::format(
        "no rules of Istio's sidecar are in this namespace, but those of {}: 'sidetrack map' says what they "
        "capture",
        fmt::join(others, ", ")));
  else if (!any && std::ranges::any_of(live, holds_rules))
    info("no rules of a sidecar are in this namespace: 'sidetrack map' says what the others capture");
  else if (!any)
    info("no rules of a sidecar are in this namespace: nothing is captured; 'sidetrack lint --plan' checks options");
  return lint::lint_live(pod, live);
}

lint::Findings findings(CommandLine& line) {
  if (!line.text.files.empty()) {
    TextRules text = read_texts(line);
    // Its address of IPv6 is an assumption then.
    const auto has_ipv6 = [](const LiveChain& chain) {
      return chain.families.contains(Family::ipv6) && !chain.rules.empty();
    };
    if (line.text.pod.addresses.empty() && !any_chain(text.live.rules, has_ipv6)) {
      for (Interface& each : text.pod.interfaces)
        std::erase_if(each.addresses, [](const InterfaceAddress& own) { return own.address.family == Family::ipv6; });
    }
    return of_rules(text.pod, text.live.rules);
  }
  const auto place = enter_target(line);
  if (line.plan) return of_options(line, place);
  const auto kernel = open_kernel(line, false);
  const std::vector<Live> live = read_live(*kernel).rules;
  return of_rules(kernel->pod(), live);
}

}  // namespace

ExitCode run_lint(CommandLine& line) {
  const lint::Findings found = findings(line);
  print(line.format == Format::json ? lint_json(found) : lint_text(found, colored(line)));
  return found.empty() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
