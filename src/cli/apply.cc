// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/apply.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "model/iptables.h"

namespace sidetrack::cli {
namespace {

using Clock = std::chrono::steady_clock;

void log_dump(LogOptions::Level level, const Plan& plan) {
  if (!logs(level)) return;
  for (Family family : plan.families.list()) {
    const std::string text = iptables_restore(plan.ruleset, family);
    if (!text.empty()) log(level, fmt::format("the requested {} rules:\n{}", title(family), text));
  }
}

void say(const ApplyResult& result) {
  for (const std::string& reason : result.skipped) info(reason);
  for (const std::string& warning : warnings(result)) warn(warning);
}

Request request(const CommandLine& line, const Plan& plan) {
  return {.plan = &plan, .options = &line.applying, .to_prove = line.prove ? &line.config : nullptr};
}

void ask_kernel(const CommandLine& line, const Plan& plan) {
  const ApplyResult result = check(request(line, plan), *open_kernel(line, false));
  say(result);
  info(checked(result));
}

void program(const CommandLine& line, const Plan& plan) {
  const auto start = Clock::now();
  const ApplyResult result = converge(request(line, plan), *open_kernel(line, true));
  say(result);
  info(applied(result, Clock::now() - start));
}

// --cleanup-only
ExitCode clean_up(CommandLine& line) {
  if (line.dry_run) {
    enter_target(line);
    print(rendered(line, compare(line, Plan{})));
  } else if (!line.skip_rule_apply) {
    return run_clean(line);
  }
  return ExitCode::done;
}

}  // namespace

ExitCode run_apply(CommandLine& line) {
  if (line.cleanup_only) return clean_up(line);
  const auto place = enter_target(line);
  const Plan plan = make_plan(line, place);
  if (line.dry_run) {
    confine(line, Sandbox::compute);
    print(rendered(line, plan));
    return ExitCode::done;
  }
  log_dump(LogOptions::Level::debug, plan);
  if (line.run_validation) check_validation(line, plan);
  try {
    if (line.check) {
      ask_kernel(line, plan);
    } else if (!line.skip_rule_apply) {
      program(line, plan);
    }
  } catch (const Error& error) {
    // What was asked for is part of the report when the kernel refuses it, but not when a right is missing.
    if (error.code() == ExitCode::failed || error.code() == ExitCode::kernel_lacks)
      log_dump(LogOptions::Level::info, plan);
    throw;
  }
  if (line.run_validation && !line.check) run_validation(line, plan);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
