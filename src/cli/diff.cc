// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "library/sentences.h"
#include "render/render.h"

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

std::string rendered(const CommandLine& line, const Comparison& comparison) {
  return line.format == Format::json ? diff_json(comparison) : diff_text(comparison, colored(line));
}

ExitCode run_diff(CommandLine& line) {
  const auto place = enter_target(line);
  const Comparison comparison = compare(line, line.clean ? Plan{} : make_plan(line, place));
  print(rendered(line, comparison));
  return comparison.as_requested() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
