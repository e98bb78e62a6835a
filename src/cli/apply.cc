// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/apply.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "model/iptables.h"
#include "state/when_ready.h"

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

// What was asked for is part of the report when the kernel refuses it, but not when a right is missing.
template <typename Act>
auto reporting(const Plan& plan, Act act) {
  try {
    return act();
  } catch (const Error& error) {
    if (error.code() == ExitCode::failed || error.code() == ExitCode::kernel_lacks)
      log_dump(LogOptions::Level::info, plan);
    throw;
  }
}

void say(const ApplyResult& result) {
  for (const std::string& reason : result.skipped) info(reason);
  for (const std::string& warning : warnings(result)) warn(warning);
}

Request request(const CommandLine& line, const Plan& plan) {
  return {.plan = &plan, .options = &line.applying, .to_prove = line.prove ? &line.config : nullptr};
}

// --when-ready. Nothing without it. Made before the sandbox, which opens no such socket.
std::optional<ProxyWatch> proxy_watch(const CommandLine& line) {
  if (!line.when_ready) return std::nullopt;
  const AwaitedProxy proxy{line.when_ready->port, line.when_ready->timeout, line.config.proxy_uids};
  return std::make_optional<ProxyWatch>(
      proxy, [](const std::string& sentence) { warn(sentence); }, [](const std::string& sentence) { debug(sentence); });
}

std::string waited(const CommandLine& line, const std::optional<ProxyWatch>& watch) {
  if (!watch) return "";
  return fmt::format("; waited {:.1f} s for the proxy on port {}",
                     std::chrono::duration<double>(watch->waited()).count(), line.when_ready->port);
}

// --when-ready: all that can be found wrong is, before the wait.
void be_ready(const Request& asked, std::optional<ProxyWatch>& watch, Kernel& kernel) {
  if (!watch) return;
  static_cast<void>(reporting(*asked.plan, [&] { return check(asked, kernel); }));
  await_proxy(kernel, *watch);
}

void ask_kernel(const CommandLine& line, const Plan& plan) {
  auto watch = proxy_watch(line);
  const auto kernel = reporting(plan, [&] { return open_kernel(line, false); });
  const Request asked = request(line, plan);
  be_ready(asked, watch, *kernel);
  const ApplyResult result = reporting(plan, [&] { return check(asked, *kernel); });
  say(result);
  info(checked(result) + waited(line, watch));
}

void program(const CommandLine& line, const Plan& plan) {
  auto watch = proxy_watch(line);
  auto start = Clock::now();
  const auto kernel = reporting(plan, [&] { return open_kernel(line, true); });
  const Request asked = request(line, plan);
  be_ready(asked, watch, *kernel);
  if (watch) start = Clock::now();
  const ApplyResult result = reporting(plan, [&] { return converge(asked, *kernel); });
  say(result);
  info(applied(result, Clock::now() - start) + waited(line, watch));
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
  if (line.check) {
    ask_kernel(line, plan);
  } else if (!line.skip_rule_apply) {
    program(line, plan);
  }
  if (line.run_validation && !line.check) run_validation(line, plan);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
