// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/apply.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/log.h"
#include "model/iptables.h"

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
  return count == 0 ? "no rules" : fmt::format("{} rules in {} ({})", count, tables, names(families));
}

void log_dump(LogOptions::Level level, const Plan& plan) {
  if (!logs(level)) return;
  for (Family family : plan.families.list()) {
    const std::string text = iptables_restore(plan.ruleset, family);
    if (!text.empty()) log(level, fmt::format("the {} rules that are asked for:\n{}", name(family), text));
  }
}

std::string removed(const Outcome& outcome, std::string_view verb) {
  std::string text;
  for (BackendKind left : outcome.left) text += fmt::format("; {} those in {}", verb, name(left));
  return text;
}

void say_unchanged(const Outcome& outcome) {
  info(fmt::format("nothing to change: {} through {} already as asked", summary(outcome.stored, *outcome.backend),
                   name(*outcome.backend)));
}

void say(const Outcome& outcome) {
  for (const std::string& reason : outcome.skipped) info(reason);
  for (const std::string& warning : outcome.warnings) warn(warning);
  for (const Obstacle& obstacle : outcome.obstacles) warn(text(obstacle));
}

void ask_kernel(const CommandLine& line, const Plan& plan) {
  const Outcome outcome = check({.plan = &plan, .config = &line.config}, *open_kernel(line, false));
  say(outcome);
  if (outcome.applied == Applied::unchanged) return say_unchanged(outcome);
  info(fmt::format("the kernel would accept {} through {}{}; nothing was changed",
                   summary(outcome.stored, *outcome.backend), name(*outcome.backend),
                   removed(outcome, "apply would remove")));
}

void program(const CommandLine& line, const Plan& plan) {
  const auto start = Clock::now();
  const Outcome outcome = converge({.plan = &plan, .config = &line.config}, *open_kernel(line, true));
  say(outcome);
  if (outcome.applied == Applied::unchanged) return say_unchanged(outcome);
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  const std::string because = outcome.because.empty() ? "" : fmt::format(" ({})", outcome.because);
  info(fmt::format("programmed {} through {} in {:.1f} ms{}{}", summary(outcome.stored, *outcome.backend),
                   name(*outcome.backend), took.count(), because, removed(outcome, "removed")));
}

// --cleanup-only
ExitCode clean_up(CommandLine& line) {
  if (line.config.dry_run) {
    enter_target(line);
    print(rendered(line, compare(line, Plan{})));
  } else if (!line.config.skip_rule_apply) {
    return run_clean(line);
  }
  return ExitCode::done;
}

}  // namespace

ExitCode run_apply(CommandLine& line) {
  if (line.config.cleanup_only) return clean_up(line);
  const auto place = enter_target(line);
  const Plan plan = make_plan(line, place);
  if (line.config.dry_run) {
    print(rendered(line, plan));
    return ExitCode::done;
  }
  log_dump(LogOptions::Level::debug, plan);
  if (line.config.run_validation) check_validation(line, plan);
  try {
    if (line.check) {
      ask_kernel(line, plan);
    } else if (!line.config.skip_rule_apply) {
      program(line, plan);
    }
  } catch (const Error& error) {
    // What was asked for is part of the report when the kernel refuses it, but not when a right is missing.
    if (error.code() == ExitCode::failed || error.code() == ExitCode::kernel_lacks)
      log_dump(LogOptions::Level::info, plan);
    throw;
  }
  if (line.config.run_validation && !line.check) run_validation(line, plan);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
