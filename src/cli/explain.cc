// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/explain.h"

#include "cli/commands.h"
#include "library/packets.h"
#include "model/printable.h"
#include "render/explain.h"

namespace sidetrack::cli {
namespace {

// Over the rules of the options: no privilege is needed.
Trace over_plan(CommandLine& line, const Packet& packet, const std::optional<Place>& place) {
  const Plan plan = make_plan(line, place);
  const bool in_pod = line.pid || !line.netns.empty();
  return explain_planned(packet, line.applying, plan, in_pod ? std::optional(read_pod()) : std::nullopt);
}

std::string rendered(const CommandLine& line, const Trace& trace) {
  if (line.format == Format::json) return json(trace);
  if (!line.brief) return text(trace, {.color = colored(line), .all = false});
  std::string end = sentence(trace.outcome) + "\n";
  for (const std::string& doubt : trace.doubts) end += "not certain: " + printable(doubt) + "\n";
  return end;
}

}  // namespace

ExitCode run_explain(CommandLine& line) {
  const Packet packet = parse_packet(line.packet);
  const auto place = enter_target(line);
  print(rendered(line, line.plan ? over_plan(line, packet, place) : explain(packet, read_pod(), read_live(line))));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
