// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/map.h"

#include "cli/commands.h"
#include "library/packets.h"

namespace sidetrack::cli {
namespace {

space::Side side_of(CommandLine& line) {
  if (!line.text.files.empty()) {
    TextRules text = read_texts(line);
    return {std::move(text.pod), std::move(text.live.rules)};
  }
  const auto place = enter_target(line);
  if (line.plan) {
    const Plan plan = make_plan(line, place);
    return planned_side(line.applying, plan, view_of_entered(line));
  }
  const auto kernel = open_kernel(line, false);
  return {kernel->pod(), read_live(*kernel).rules};
}

}  // namespace

ExitCode run_map(CommandLine& line) {
  space::Regions regions(space::list_of(side_of(line)));
  MapOptions options{.families = line.printed, .color = colored(line)};
  if (line.way || line.forwarded) {
    options.ways.clear();
    if (line.way) options.ways.push_back(*line.way);
    options.forwarded = line.forwarded;
  }
  switch (line.format) {
    case Format::json:
      write_map_json(regions, 0, options, print);
      break;
    case Format::svg:
      print(map_svg(regions, 0, options));
      break;
    default:
      print(map_text(regions, 0, options));
  }
  return ExitCode::done;
}

}  // namespace sidetrack::cli
