// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "apply/decide.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "mesh/other_meshes.h"
#include "model/printable.h"
#include "model/scan.h"
#include "render/effect.h"
#include "render/render.h"
#include "render/show.h"
#include "system/sandbox.h"
#include "system/worker.h"
#include "text/read_rules.h"
#include "walk/explain.h"

namespace sidetrack::cli {

PodDiff compare(const CommandLine& line, const Plan& wanted) {
  const auto kernel = open_kernel(line, false);
  Survey survey = kernel->survey();
  if (line.clean && line.applying.backend) {  // as clean leaves the others
    for (const BackendKind kind : all_backends) {
      if (kind == *line.applying.backend) continue;
      const Live* live = survey.live(kind);
      if (live != nullptr && holds_ours(*live)) survey.routing = {};
      survey.of(kind) = Absent{};
    }
  }
  PodDiff pod_diff = sidetrack::compare({.plan = &wanted, .options = &line.applying}, survey);
  if (wanted.ruleset.rules.empty()) {  // as clean says what it leaves
    for (const std::string& warning : kernel->warnings()) warn(warning);
    if (!line.mesh.empty() && !pod_diff.equal()) {
      for (const std::string& left : left_by_mesh(rules_of_mesh(line.mesh), survey.all())) warn(left);
    }
  } else if (survey.pod) {
    warn_of_settings();
  }
  for (const std::string& warning : warnings(pod_diff, line.clean ? "clean" : "apply")) warn(warning);
  return pod_diff;
}

std::optional<PodDiff> compare_if_permitted(const CommandLine& line, const Plan& wanted) {
  try {
    return compare(line, wanted);
  } catch (const Error& error) {
    if (error.code() != ExitCode::not_permitted) throw;
    warn(std::string("the rules are not compared: ") + error.what());
    return std::nullopt;
  }
}

namespace {

constexpr std::string_view of_process = "pid:";
constexpr std::string_view of_netns = "netns:";

bool is_pod(std::string_view word) { return word.starts_with(of_process) || word.starts_with(of_netns); }

Place place_of(const std::string& word) {
  if (word.starts_with(of_netns)) return place_of_netns(word.substr(of_netns.size()));
  const auto pid = to_number<std::uint32_t>(std::string_view(word).substr(of_process.size()));
  if (pid.value_or(0) == 0) throw Error(ExitCode::usage, "expected pid: and the number of a process");
  return place_of_process(*pid);
}

// What the process that reads a pod's rules says: this and the rules, as `show --json` has them, or that and the
// message.
constexpr char read_whole = '=';
constexpr char not_read = '!';

// An error as one process tells it to another: the digit of its exit code, and its message.
std::string error_words(const Error& error) {
  return fmt::format("{}{}", static_cast<int>(error.code()), error.what());
}
Error told_error(std::string_view words, const std::string& whose) {
  constexpr ExitCode codes[] = {ExitCode::failed, ExitCode::usage, ExitCode::kernel_lacks, ExitCode::not_permitted,
                                ExitCode::busy};
  const auto code = to_number<int>(words.substr(0, 1));
  const auto* known = std::ranges::find(codes, code.value_or(-1), [](ExitCode each) { return static_cast<int>(each); });
  return {known != std::end(codes) ? *known : ExitCode::failed,
          fmt::format("'{}': {}", whose, printable_lines(words.substr(std::min<std::size_t>(1, words.size()))))};
}

// The rules of a pod. In a process of its own: whoever has entered the user namespace of one pod does not get into the
// next. What it says is not understood before this one is in its sandbox, too.
RulesText rules_of_pod(const CommandLine& line, const std::string& word) {
  const auto task = [&]() -> std::string {
    try {
      enter(place_of(word));
      const LiveRules live = read_live(*open_kernel(line, false));
      return read_whole + rules_json(live.rules, live.routing);
    } catch (const Error& error) {
      return not_read + error_words(error);
    }
  };
  const WorkerResult result = run_in_children({task}, std::chrono::seconds(60)).front();
  if (result.refused_call) throw Error(ExitCode::failed, refusal_words(*result.refused_call));
  const std::string_view said = result.answer;
  if (said.starts_with(not_read)) throw told_error(said.substr(1), excerpt(word));
  if (said.starts_with(read_whole)) return {word, std::string(said.substr(1))};
  throw Error(ExitCode::failed, fmt::format("'{}': its rules could not be read", excerpt(word)));
}

RulesText rules_of(const CommandLine& line, const std::string& word) {
  return is_pod(word) ? rules_of_pod(line, word) : rules_of_file(word);
}

// As if the kernel held the rules of the texts of --rules.
Survey survey_of_texts(const CommandLine& line, const Plan& wanted) {
  TextRules text = read_texts(line);
  if (line.text.pod.addresses.empty()) {
    for (const std::string& name : named_interfaces(wanted)) assume_interface(text.pod, name);
  }
  Survey survey;
  for (Live& live : text.live.rules) {
    survey.legacy_in_use |= live.backend == BackendKind::iptables_legacy;
    survey.of(live.backend) = std::move(live);
  }
  survey.routing = std::move(text.live.routing);
  survey.pod = std::move(text.pod);
  return survey;
}

Survey survey_of_kernel(const CommandLine& line) {
  const auto kernel = open_kernel(line, false);
  Survey survey = kernel->survey();
  if (const Unreadable* unreadable = first_unreadable(survey)) throw unreadable->why;
  if (!survey.pod) survey.pod = kernel->pod();
  warn_of_settings();
  return survey;
}

std::vector<space::Side> sides_of(CommandLine& line) {
  if (!line.compared.empty()) {
    const RulesText texts[] = {rules_of(line, line.compared[0]), rules_of(line, line.compared[1])};
    confine(line, Sandbox::compute);
    auto [one, other] = read_sides(texts[0], texts[1]);
    return space::list_of(std::move(one), std::move(other));
  }
  const auto place = enter_target(line);
  const Plan wanted = line.clean ? Plan{} : make_plan(line, place);
  const Survey survey = line.text.files.empty() ? survey_of_kernel(line) : survey_of_texts(line, wanted);
  const BackendKind backend = holding_backend({.plan = &wanted, .options = &line.applying}, survey);
  return space::list_of(space::Side{*survey.pod, effective_rulesets(survey)}, after_apply(wanted, backend, survey));
}

ExitCode run_effect(CommandLine& line) {
  space::Regions regions(sides_of(line));
  const std::vector<EffectRegion> all = effect(regions);
  print(line.format == Format::json ? effect_json(regions, all) : effect_text(all, colored(line)));
  if (line.format != Format::json && std::ranges::any_of(line.compared, is_pod))
    print("compared by their rules: both pods are taken to have the same assumed addresses, interfaces and routes\n");
  return all.empty() ? ExitCode::done : ExitCode::differs;
}

}  // namespace

std::string rendered(const CommandLine& line, const PodDiff& pod_diff) {
  return line.format == Format::json ? diff_json(pod_diff) : diff_text(pod_diff, colored(line));
}

ExitCode run_diff(CommandLine& line) {
  if (line.effect) return run_effect(line);
  const auto place = enter_target(line);
  const PodDiff pod_diff = compare(line, line.clean ? Plan{} : make_plan(line, place));
  print(rendered(line, pod_diff));
  return pod_diff.as_requested() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
