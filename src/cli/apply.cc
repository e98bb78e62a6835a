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

std::string removed(const ApplyResult& result, std::string_view verb) {
  std::string text;
  for (BackendKind left : result.left) text += fmt::format("; {} those in {}", verb, name(left));
  return text;
}

void say_unchanged(const ApplyResult& result) {
  info(fmt::format("nothing to change: {} through {} already as asked", summary(result.canonical, *result.backend),
                   name(*result.backend)));
}

void say(const ApplyResult& result) {
  for (const std::string& reason : result.skipped) info(reason);
  for (const std::string& warning : result.warnings) warn(warning);
  for (const Obstacle& obstacle : result.obstacles) warn(text(obstacle));
}

void ask_kernel(const CommandLine& line, const Plan& plan) {
  const ApplyResult result = check({.plan = &plan, .config = &line.config}, *open_kernel(line, false));
  say(result);
  if (result.applied == Applied::unchanged) return say_unchanged(result);
  info(fmt::format("the kernel would accept {} through {}{}; nothing was changed",
                   summary(result.canonical, *result.backend), name(*result.backend),
                   removed(result, "apply would remove")));
}

void program(const CommandLine& line, const Plan& plan) {
  const auto start = Clock::now();
  const ApplyResult result = converge({.plan = &plan, .config = &line.config}, *open_kernel(line, true));
  say(result);
  if (result.applied == Applied::unchanged) return say_unchanged(result);
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  const std::string because = result.because.empty() ? "" : fmt::format(" ({})", result.because);
  info(fmt::format("programmed {} through {} in {:.1f} ms{}{}", summary(result.canonical, *result.backend),
                   name(*result.backend), took.count(), because, removed(result, "removed")));
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
