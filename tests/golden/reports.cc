// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/reports.h"

#include <fmt/format.h>

#include "golden/scenario.h"
#include "render/map.h"
#include "render/render.h"
#include "render/show.h"
#include "text/read_texts.h"
#include "text/text_pod.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

std::string answers_about(const std::string& text) {
  const RulesText named{"report", text};
  const RulesOfTexts read = read_texts({&named, 1}, false);
  const TextPod pod = pod_of_text(read.live, {});
  std::string said;
  for (const auto* notes : {&read.notes, &pod.notes}) {
    for (const std::string& note : *notes) said += note + "\n";
  }
  said += "\n$ show\n" + show(read.live, pod.routing, {.pod = &pod.view});
  Packet packet;
  packet.destination = Address::parse("10.96.0.10");
  packet.destination_port = 443;
  packet.owner = {1000, 1000};
  said += "\n$ explain out tcp 10.96.0.10:443\n" + trace_text(explain(packet, pod.view, read.live), {});
  space::Regions regions({{pod.view, read.live}});
  return said + "\n$ map\n" + map_text(regions, 0, {});
}

}  // namespace

std::map<std::filesystem::path, std::string> answers_about_reports() {
  std::map<std::filesystem::path, std::string> answers;
  const std::filesystem::path tests = SIDETRACK_SOURCE_DIR "/tests/golden";
  for (const auto& report : std::filesystem::directory_iterator(tests / "reports"))
    answers[tests / "answers" / ("report-" + report.path().filename().string() + ".txt")] =
        answers_about(read_file(report.path()));
  return answers;
}

}  // namespace sidetrack
