// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "apply/choice.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/standard_streams.h"
#include "kernel/nft/script.h"
#include "library/packets.h"
#include "library/planning.h"
#include "mesh/istio_rules.h"
#include "mesh/other_meshes.h"
#include "model/printable.h"
#include "render/render.h"
#include "rule/iptables.h"
#include "system/namespaces.h"
#include "system/read_write.h"

namespace sidetrack::cli {

bool writes(const CommandLine& line) {
  switch (line.command.value_or(Command::render)) {
    case Command::apply:
      return !line.check && !line.dry_run && !line.skip_rule_apply;
    case Command::clean:
      return true;
    default:
      return false;
  }
}

namespace {

// The option that names the place.
std::string_view place_option(const CommandLine& line) {
  if (line.pid) return "--pid";
  return line.netns.empty() ? "--network-namespace" : "--netns";
}

// --pid of a process of the node, or of the wrong pod, must not program what runs this program.
void check_whose(const CommandLine& line, const Place& place) {
  if (line.host && !place.ours) {
    throw Error(
        ExitCode::usage,
        fmt::format("--host: {} {}the caller's own network namespace", place.name, line.pid ? "is not in " : "is not "),
        "leave out --host");
  }
  if (line.host || !place.ours) return;
  const std::string whose =
      line.pid ? place.name + " is in the caller's own network namespace" : place.name + " is the caller's own";
  if (!writes(line)) return warn(whose);
  throw Error(ExitCode::usage, whose,
              fmt::format("nothing was changed; to work in this namespace leave out {0}; if it is a machine's own and "
                          "that is what you mean, add --host",
                          place_option(line)));
}

// Whether apply may write rules into tables of legacy iptables that are not there.
bool may_choose_legacy(const CommandLine& line) {
  if (line.command != Command::apply || line.cleanup_only) return false;
  const auto named = named_backend(line.applying);
  return !named || *named == BackendKind::iptables_legacy;
}

}  // namespace

std::optional<Place> enter_target(const CommandLine& line) {
  const std::string& netns = line.netns.empty() ? line.network_namespace : line.netns;
  if (!line.pid && netns.empty()) return std::nullopt;
  Place place = line.pid ? place_of_process(*line.pid) : place_of_netns(netns);
  check_whose(line, place);
  enter(place);
  return place;
}

Plan make_plan(CommandLine& line, const std::optional<Place>& place) {
  Plan made = plan_for(line.config, line.names, place ? &*place : nullptr, line.dry_run);
  for (const std::string& warning : made.warnings) warn(warning);
  return made;
}

bool in_own_pod(const CommandLine& line) {
  const bool elsewhere = line.pid || !line.netns.empty() || !line.network_namespace.empty() || line.applying.cni_mode;
  return line.host || !elsewhere;
}

void confine(const CommandLine& line, Sandbox kind, const std::vector<std::string>& folders) {
  if (line.no_sandbox) return info("not in a sandbox: --no-sandbox");
  const std::string problem = enter_sandbox(kind, folders);
  if (!problem.empty()) warn(problem);
}

std::unique_ptr<Kernel> open_kernel(const CommandLine& line, bool write) {
  const bool connects = line.probe || line.run_validation;
  const bool changes = line.command == Command::apply || writes(line);  // apply --check asks the kernel, too
  const Sandbox kind = connects ? Sandbox::probe : changes ? Sandbox::write : Sandbox::read;
  auto kernel = sidetrack::open_kernel(line.mesh.empty() ? istio_rules : rules_of_mesh(line.mesh),
                                       {.write = write,
                                        .wait = line.applying.lock_wait,
                                        .xtables_lock = in_own_pod(line),
                                        .reads_once = kind == Sandbox::read && !line.watch,
                                        .makes_legacy_tables = may_choose_legacy(line),
                                        .agent_rules = agent_rules_of(line.config)});
  confine(line, kind);
  return kernel;
}

void warn_of_settings() {
  if (const std::string problem = settings_problem(); !problem.empty()) warn(problem);
}

std::optional<PodView> view_of_entered(const CommandLine& line) {
  if (line.pid || !line.netns.empty()) {
    PodView pod = open_kernel(line, false)->pod();
    warn_of_settings();
    return pod;
  }
  confine(line, Sandbox::compute);
  return std::nullopt;
}

bool colored(const CommandLine& line) {
  if (line.color != Color::automatic) return line.color == Color::always;
  return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

void print(std::string_view page) { write_out(printable_page(page)); }

void write_out(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) end_by_closed_pipe();
  // Never "not permitted": no capability would help.
  if (error != 0) throw Error(ExitCode::failed, "cannot write to standard output: " + errno_words(error));
}

std::string rendered(const CommandLine& line, const Plan& plan) {
  if (line.format == Format::json) return json(plan, line.config);
  if (line.format == Format::nft) return nft_script(plan.ruleset, istio_rules);
  if (line.format == Format::svg) return svg(plan, line.config, line.printed);
  std::string text;
  for (Family family : line.printed.list()) text += iptables_restore(plan.ruleset, family);
  return text;
}

LiveRules read_live(Kernel& kernel) {
  Survey survey = kernel.survey();
  LiveRules live{{}, survey.routing};
  if (!survey.of_agents.empty()) {  // what belongs to an agent's rules
    const auto is_of = [](const auto& each) { return is_of_ambient(each); };
    std::ranges::copy_if(survey.others_routing.policy_rules, std::back_inserter(live.routing.policy_rules), is_of);
    std::ranges::copy_if(survey.others_routing.local_routes, std::back_inserter(live.routing.local_routes), is_of);
  }
  std::vector<std::string> unseen;
  live.rules = live_rules(std::move(survey), unseen);
  for (const std::string& warning : unseen) warn(warning);
  return live;
}

}  // namespace sidetrack::cli
