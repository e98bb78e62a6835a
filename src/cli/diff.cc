// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "render/effect.h"
#include "render/read_rules.h"
#include "render/render.h"
#include "state/choice.h"
#include "state/decide.h"

namespace sidetrack::cli {

Comparison compare(const CommandLine& line, const Plan& wanted) {
  Comparison comparison =
      sidetrack::compare({.plan = &wanted, .options = &line.applying}, open_kernel(line, false)->survey());
  for (const std::string& warning : warnings(comparison)) warn(warning);
  return comparison;
}

std::optional<Comparison> compare_if_permitted(const CommandLine& line, const Plan& wanted) {
  try {
    return compare(line, wanted);
  } catch (const Error& error) {
    if (error.code() != ExitCode::not_permitted) throw;
    warn(std::string("the rules are not compared: ") + error.what());
    return std::nullopt;
  }
}

namespace {

std::vector<space::Side> sides_of(CommandLine& line) {
  std::vector<space::Side> sides;
  if (!line.compared.empty()) {
    auto [one, other] = read_sides(line.compared[0], line.compared[1]);
    sides.push_back(std::move(one));
    sides.push_back(std::move(other));
    return sides;
  }
  const auto place = enter_target(line);
  const Plan wanted = line.clean ? Plan{} : make_plan(line, place);
  Survey survey = open_kernel(line, false)->survey();
  if (const Unreadable* unreadable = unseen(survey)) throw unreadable->why;
  if (!survey.pod) survey.pod = read_pod();
  const BackendKind backend = choose(line.applying, wanted.ruleset, survey.legacy_in_use).order.front();
  sides.push_back({*survey.pod, deciding(survey)});
  sides.push_back(after_apply(wanted, backend, survey));
  return sides;
}

ExitCode run_effect(CommandLine& line) {
  space::Regions regions(sides_of(line));
  const std::vector<EffectRegion> all = effect(regions);
  print(line.format == Format::json ? effect_json(all) : effect_text(all, colored(line)));
  return all.empty() ? ExitCode::done : ExitCode::differs;
}

}  // namespace

std::string rendered(const CommandLine& line, const Comparison& comparison) {
  return line.format == Format::json ? diff_json(comparison) : diff_text(comparison, colored(line));
}

ExitCode run_diff(CommandLine& line) {
  if (line.effect) return run_effect(line);
  const auto place = enter_target(line);
  const Comparison comparison = compare(line, line.clean ? Plan{} : make_plan(line, place));
  print(rendered(line, comparison));
  return comparison.as_requested() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
