// SPDX-License-Identifier: GPL-2.0-or-later
// The commands, one file each. Each takes the parsed command line, does its work, and returns what to exit with; what
// goes wrong is thrown as Error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apply/apply.h"
#include "apply/diff.h"
#include "mesh/plan.h"
#include "model/error.h"
#include "options/options.h"
#include "rule/live.h"
#include "system/namespaces.h"
#include "system/sandbox.h"

namespace sidetrack::cli {

ExitCode run_apply(CommandLine& line);
ExitCode run_render(CommandLine& line);
ExitCode run_clean(CommandLine& line);
ExitCode run_diff(CommandLine& line);
ExitCode run_verify(CommandLine& line);
ExitCode run_doctor(CommandLine& line);
ExitCode run_show(CommandLine& line);
ExitCode run_explain(CommandLine& line);
ExitCode run_map(CommandLine& line);
ExitCode run_lint(CommandLine& line);
ExitCode run_pods(CommandLine& line);
ExitCode run_args(CommandLine& line);
ExitCode run_inject(CommandLine& line);
ExitCode run_cni(CommandLine& line);
ExitCode run_completion(CommandLine& line);

// The CNI plugin: whether the program is called by its name, and all that it then does. Returns what to exit with.
[[nodiscard]] bool is_plugin(std::string_view program);
[[nodiscard]] int run_plugin();

struct Run {
  Command command;
  ExitCode (*run)(CommandLine& line);
};
inline constexpr Run runs[] = {
    {Command::apply, run_apply},   {Command::render, run_render}, {Command::diff, run_diff},
    {Command::verify, run_verify}, {Command::show, run_show},     {Command::explain, run_explain},
    {Command::map, run_map},       {Command::lint, run_lint},     {Command::clean, run_clean},
    {Command::doctor, run_doctor}, {Command::pods, run_pods},     {Command::args, run_args},
    {Command::inject, run_inject}, {Command::cni, run_cni},       {Command::completion, run_completion},
};

// ---- What they share.

// Whether the command changes what the kernel holds.
[[nodiscard]] bool writes(const CommandLine& line);

// Enters the namespaces that --netns, --pid or --network-namespace name, and returns them. If it is the caller's own, a
// command that writes is refused (usage), unless --host says that it is meant; others say so in the log.
std::optional<Place> enter_target(const CommandLine& line);

// Completes the configuration from the host and makes the plan; warnings go to the log.
[[nodiscard]] Plan make_plan(CommandLine& line, const std::optional<Place>& place);

// Whether the lock file of legacy iptables is that of the programs in the pod: from the node it is the node's, and
// waiting for it has blocked pods for hours.
[[nodiscard]] bool in_own_pod(const CommandLine& line);

// From here on the process can do no more than that; with --no-sandbox, and where the kernel cannot, the log says so.
void confine(const CommandLine& line, Sandbox kind, const std::vector<std::string>& folders = {});

// The kernel's state, with the options of the command line. To write: under the lock of the namespace. Then the sandbox
// is entered: nothing else can be opened any more.
[[nodiscard]] std::unique_ptr<Kernel> open_kernel(const CommandLine& line, bool write);

// The pod that --pid or --netns names, which has been entered; without one, nothing. Then the sandbox is entered.
[[nodiscard]] std::optional<PodView> view_of_entered(const CommandLine& line);

// Says in the log if the settings of the kernel that a PodView has cannot be read.
void warn_of_settings();

// What apply would change; warnings go to the log.
[[nodiscard]] PodDiff compare(const CommandLine& line, const Plan& wanted);

// The same, or nothing, with a warning, where the rules cannot be read: without CAP_NET_ADMIN.
[[nodiscard]] std::optional<PodDiff> compare_if_permitted(const CommandLine& line, const Plan& wanted);

// --run-validation: throws usage if it cannot succeed with this plan; then, validation_failed naming the rules that are
// likely missing.
void check_validation(const CommandLine& line, const Plan& plan);
void run_validation(const CommandLine& line, const Plan& plan);

// The rules of every backend that holds any, and the routes that are ours. Throws not_permitted if one that may hold
// some cannot be read.
struct LiveRules {
  std::vector<Live> rules;
  Routing routing;
};
[[nodiscard]] LiveRules read_live(Kernel& kernel);

// The rules of the texts of --rules, and the pod that they are asked in; what is assumed goes to the log. Everything is
// understood in the sandbox.
struct TextRules {
  PodView pod;
  LiveRules live;
};
[[nodiscard]] TextRules read_texts(const CommandLine& line);

// The comparison in the format that was asked for.
[[nodiscard]] std::string rendered(const CommandLine& line, const PodDiff& pod_diff);

// Whether the result is coloured: as --color says, else if standard output is a terminal and NO_COLOR is not set.
[[nodiscard]] bool colored(const CommandLine& line);

// Writes the result to standard output: a page of text, in which a terminal is given nothing to obey but styles. Throws
// Error (failed) if it cannot be written.
void print(std::string_view page);
void write_out(std::string_view text);  // as it is

// The plan in the format that was asked for.
[[nodiscard]] std::string rendered(const CommandLine& line, const Plan& plan);

}  // namespace sidetrack::cli
