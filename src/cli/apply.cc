// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/apply.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/log.h"
#include "sidetrack/render.h"

namespace sidetrack::cli {
namespace {

using Clock = std::chrono::steady_clock;

// "22 rules in nat (ipv4)", "57 rules in raw, mangle, nat (ipv4, ipv6)": rules counted as the backend stores them
std::string summary(const Ruleset& ruleset, BackendKind backend) {
  std::size_t count = 0;
  std::string tables;
  for (Table table : all_tables) {
    std::size_t in_table = 0;
    for (Families scope : scopes(backend)) {
      for (const Chain& chain : chains(ruleset, table, scope)) in_table += chain.rules.size();
    }
    if (in_table > 0) tables += (tables.empty() ? "" : ", ") + std::string(name(table));
    count += in_table;
  }
  Families families;
  for (const Rule& rule : ruleset.rules) families = families | rule.families;
  std::string names;
  for (Family family : families.list()) names += (names.empty() ? "" : ", ") + std::string(name(family));
  return count == 0 ? "no rules" : fmt::format("{} rules in {} ({})", count, tables, names);
}

void log_dump(LogOptions::Level level, const Plan& plan) {
  if (!logs(level)) return;
  for (Family family : plan.families.list()) {
    const std::string text = iptables_restore(plan.ruleset, family);
    if (!text.empty()) log(level, fmt::format("the {} rules that are asked for:\n{}", name(family), text));
  }
}

void program(const CommandLine& line, const Plan& plan) {
  const auto start = Clock::now();
  const auto routes = open_routes();
  const Choice choice = choose(line.config, plan.ruleset, iptables_legacy_in_use());
  const Outcome outcome = converge(plan, choice, opener(line), *routes, line.config.force_apply);
  for (const std::string& warning : outcome.warnings) warn(warning);

  const std::string rules = summary(outcome.stored, outcome.backend);
  if (outcome.applied == Applied::unchanged) {
    info(fmt::format("nothing to change: {} through {} already as asked", rules, name(outcome.backend)));
    return;
  }
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  std::string more = choice.because.empty() ? "" : fmt::format(" ({})", choice.because);
  for (BackendKind left : outcome.left) more += fmt::format("; removed those in {}", name(left));
  info(fmt::format("programmed {} through {} in {:.1f} ms{}", rules, name(outcome.backend), took.count(), more));
}

}  // namespace

ExitCode run_apply(CommandLine& line) {
  if (line.config.cleanup_only) return run_clean(line);
  enter_target(line);
  const Plan plan = make_plan(line);
  if (line.config.dry_run) {
    print(rendered(line, plan));
    return ExitCode::done;
  }
  log_dump(LogOptions::Level::debug, plan);
  if (line.config.skip_rule_apply) return ExitCode::done;
  try {
    program(line, plan);
  } catch (const Error& error) {
    // What was asked for is part of the report when the kernel refuses it, but not when a right is missing.
    if (error.code() == ExitCode::failed || error.code() == ExitCode::kernel_lacks)
      log_dump(LogOptions::Level::info, plan);
    throw;
  }
  return ExitCode::done;
}

}  // namespace sidetrack::cli
