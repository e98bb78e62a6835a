// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/explain.h"

#include "cli/commands.h"
#include "host/host.h"
#include "library/packets.h"
#include "model/printable.h"
#include "render/render.h"

namespace sidetrack::cli {
namespace {

// Over the rules of the options: no privilege is needed.
Trace over_plan(CommandLine& line, const Packet& packet, const std::optional<Place>& place) {
  const Plan plan = make_plan(line, place);
  return explain_planned(packet, line.applying, plan, view_of_entered(line));
}

Trace over_rules(const CommandLine& line, const Packet& packet) {
  if (!line.text.files.empty()) {
    const TextRules text = read_texts(line);
    return explain(packet, text.pod, text.live.rules);
  }
  const auto kernel = open_kernel(line, false);
  return explain(packet, kernel->pod(), read_live(*kernel).rules);
}

// Within the hierarchy, as --bypass-cgroup reads it. No process of a pod that is there is in one that is not.
std::optional<std::string> cgroup_of(const CommandLine& line) {
  if (!line.packet.cgroup || line.packet.cgroup->empty()) return line.packet.cgroup;
  const FoundCgroup found = find_cgroup(*line.packet.cgroup);
  const bool is_root = found.path.empty();
  if (found.id == 0 && !is_root && !line.plan)
    throw unknown_cgroup("--cgroup", line.packet.given_cgroup, found.problem);
  return found.path;
}

std::string rendered(const CommandLine& line, const Trace& trace) {
  if (line.format == Format::json) return json(trace);
  if (!line.brief) return trace_text(trace, {.color = colored(line), .all = false});
  std::string end = sentence(trace.outcome) + "\n";
  for (const std::string& doubt : trace.doubts) end += "not certain: " + printable(doubt) + "\n";
  return end;
}

}  // namespace

ExitCode run_explain(CommandLine& line) {
  Packet packet = parse_packet(line.packet);
  packet.cgroup = cgroup_of(line);
  const auto place = enter_target(line);
  print(rendered(line, line.plan ? over_plan(line, packet, place) : over_rules(line, packet)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
