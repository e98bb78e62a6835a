// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/apply.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <variant>

#include "apply/cut_sessions.h"
#include "apply/decide.h"
#include "apply/restore.h"
#include "apply/when_ready.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "host/sessions.h"
#include "library/planning.h"
#include "library/sentences.h"
#include "model/duration.h"
#include "rule/iptables.h"
#include "system/signals.h"

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
std::optional<ProxyWatch> proxy_watch(const CommandLine& line, const Plan& plan) {
  if (!line.when_ready) return std::nullopt;
  const ProxyWatch::Told told{[](const std::string& sentence) { warn(sentence); },
                              [](const std::string& sentence) { info(sentence); },
                              [](const std::string& sentence) { debug(sentence); }};
  return std::make_optional<ProxyWatch>(
      awaited_proxy(line.config, plan, line.when_ready->port, line.when_ready->timeout), told);
}

std::string waited(const CommandLine& line, const std::optional<ProxyWatch>& watch) {
  if (!watch) return "";
  return fmt::format("; waited {:.1f} s for {} on port {}", std::chrono::duration<double>(watch->waited()).count(),
                     line.config.dataplane == Dataplane::ambient ? "ztunnel" : "the proxy", line.when_ready->port);
}

// ---- Sessions

// Finds the sessions that must not be cut, while files can still be opened: the sandbox opens none.
Sessions known_sessions(const std::optional<Place>& place) {
  const char* variable = std::getenv("SSH_CONNECTION");
  if (!place && !may_have_sessions()) return {};
  return find_sessions(variable != nullptr ? variable : "");
}

// Throws differs if the rules would cut one. With --confirm, and in the drop-in form, which does what istio-iptables
// does, it is only said.
void keep_sessions(const CommandLine& line, const Request& asked, const Sessions& sessions, Kernel& kernel) {
  for (const std::string& sentence : sessions.unknown)
    warn("unknown: whether the rules cut a session of ssh: " + sentence);
  const CutSessions cut = cut_sessions(sessions, asked, line.config, kernel);
  if (cut.list.empty()) return;
  const std::string all = fmt::format(
      "\n  {}\n{}", fmt::join(cut.list, "\n  "),
      cut.remedy.empty() ? "no option is known that leaves all of them alone" : "to leave them alone " + cut.remedy);
  if (line.confirm || line.drop_in) return warn("the rules cut active SSH sessions:" + all);
  throw Error(ExitCode::differs, "the rules would cut active SSH sessions; nothing was changed:" + all,
              "with --confirm 60s the rules are applied, and rolled back unless you confirm them");
}

// ---- With the kernel

struct Ready {
  std::optional<ProxyWatch> watch;
  Sessions sessions;
};

// What has to be opened before the sandbox.
Ready get_ready(const CommandLine& line, const std::optional<Place>& place, const Plan& plan) {
  return {proxy_watch(line, plan), known_sessions(place)};
}

void be_ready(const CommandLine& line, const Request& asked, Ready& ready, Kernel& kernel) {
  keep_sessions(line, asked, ready.sessions, kernel);
  if (!ready.watch) return;
  // All that can be found wrong is, before the wait.
  static_cast<void>(reporting(*asked.plan, [&] { return check(asked, kernel); }));
  await_proxy(kernel, *ready.watch);
  keep_sessions(line, asked, ready.sessions, kernel);
}

void ask_kernel(CommandLine& line, const std::optional<Place>& place, const Plan& plan) {
  Ready ready = get_ready(line, place, plan);
  const auto kernel = reporting(plan, [&] { return open_kernel(line, false); });
  const Request asked = request(line, plan);
  be_ready(line, asked, ready, *kernel);
  const ApplyResult result = reporting(plan, [&] { return check(asked, *kernel); });
  say(result);
  info(checked(result) + waited(line, ready.watch));
}

// What was written to a terminal of ssh is sent by sshd, in its time.
constexpr std::chrono::milliseconds to_get_out{100};

bool would_change(const Request& asked, const Survey& survey) {
  const auto verdict = decide(asked, survey);
  const auto* decision = std::get_if<Decision>(&verdict);
  if (decision == nullptr) return false;  // it is refused
  const bool commits = !decision->attempts.empty() && !decision->attempts.front().commits.empty();
  return commits || decision->add != Routing{} || decision->remove != Routing{};
}

// --confirm. From before the change until it is confirmed or rolled back no signal ends this process but SIGKILL, and
// none but SIGSTOP stops it. How to confirm is said before the change, which may cut the session that reads it.
void program_until_confirmed(const CommandLine& line, const Request& asked, const Ready& ready, Kernel& kernel) {
  AwaitedSignals signals(AwaitedSignals::Which::all);
  kernel.begin_confirmation();
  const Survey survey = kernel.survey();
  const Snapshot before = snapshot(survey);
  if (would_change(asked, survey)) {
    info(
        fmt::format("the rules are installed now, and rolled back unless you confirm them: press Enter within {}, or "
                    "'kill -USR1 {}' from another session",
                    duration_words(*line.confirm), getpid()));
    if (!ready.sessions.empty()) std::this_thread::sleep_for(to_get_out);
  }
  const auto start = Clock::now();
  const ApplyResult result = reporting(*asked.plan, [&] { return converge(asked, kernel); });
  const std::string done = applied(result, Clock::now() - start) + waited(line, ready.watch);
  say(result);
  if (result.applied == Applied::unchanged) return info(done);
  std::string why;
  try {
    info(done + "; waiting for the confirmation");
    kernel.release_locks();
    why = await_confirmation(signals, *line.confirm, STDIN_FILENO);
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (why.empty()) {
    if (would_change(asked, kernel.survey()))
      throw Error(ExitCode::differs, "confirmed, but the rules are no longer as requested: they were changed meanwhile",
                  "'sidetrack diff' with the same options says what is different, and 'sidetrack apply' installs them "
                  "again");
    return info("confirmed");
  }
  try {
    restore(before, kernel, [](const std::string& sentence) { warn(sentence); });
  } catch (const Error& error) {
    throw Error(error.code(), why + "; " + error.what(), error.hint());
  }
  throw Error(ExitCode::failed, why + ": rolled back; rules and routes of the mesh are as they were before");
}

void program(CommandLine& line, const std::optional<Place>& place, const Plan& plan) {
  Ready ready = get_ready(line, place, plan);
  auto start = Clock::now();
  const auto kernel = reporting(plan, [&] { return open_kernel(line, true); });
  const Request asked = request(line, plan);
  be_ready(line, asked, ready, *kernel);
  if (line.confirm) return program_until_confirmed(line, asked, ready, *kernel);
  if (ready.watch) start = Clock::now();
  const ApplyResult result = reporting(plan, [&] { return converge(asked, *kernel); });
  kernel->release_locks();  // before the log, which somebody may not read
  say(result);
  info(applied(result, Clock::now() - start) + waited(line, ready.watch));
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
    ask_kernel(line, place, plan);
  } else if (!line.skip_rule_apply) {
    program(line, place, plan);
  }
  if (line.run_validation && !line.check) run_validation(line, plan);
  return ExitCode::done;
}

}  // namespace sidetrack::cli
