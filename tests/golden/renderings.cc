// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/renderings.h"

#include "host/host.h"
#include "kernel/nft/script.h"
#include "mesh/istio_rules.h"
#include "render/render.h"
#include "rule/iptables.h"

namespace sidetrack {

Planned planned(const Scenario& scenario) {
  // Lists from files are named from the top of the source.
  std::filesystem::current_path(SIDETRACK_SOURCE_DIR);
  std::vector<std::string_view> args{"sidetrack", "render"};
  args.insert(args.end(), scenario.arguments.begin(), scenario.arguments.end());
  Planned result;
  result.line = parse(args, [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = scenario.environment.find(std::string(name));
    return found != scenario.environment.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
  });
  const HostFacts facts = gather(result.line.config, result.line.names, {.may_lack_addresses = true});
  result.plan = plan(result.line.config, facts);
  return result;
}

std::map<std::string, std::string> renderings(const Scenario& scenario) {
  const auto [line, plan] = planned(scenario);
  std::map<std::string, std::string> files{
      {"ipv4.rules", iptables_restore(plan.ruleset, Family::ipv4)},
      {"ipv6.rules", iptables_restore(plan.ruleset, Family::ipv6)},
      {"rules.nft", plan.ruleset.rules.empty() ? "" : nft_script(plan.ruleset, istio_rules)},
      {"plan.json", json(plan, line.config)},
  };
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  return files;
}

}  // namespace sidetrack
