// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "kernel/routes.h"
#include "text/read_texts.h"
#include "text/text_pod.h"
#include "walk/explain.h"

namespace sidetrack::cli {

TextRules read_texts(const CommandLine& line) {
  std::vector<RulesText> texts;
  for (const std::string& file : line.text.files) texts.push_back(rules_of_file(file));
  confine(line, Sandbox::compute);
  RulesOfTexts read = read_texts(texts, agent_rules_of(line.config) == AgentRules::foreign);
  TextPod pod = pod_of_text(read.live, line.text.pod);
  if (line.text.pod.addresses.empty() && !line.packet.in_interface.empty())
    assume_interface(pod.view, line.packet.in_interface);
  for (const auto* notes : {&read.notes, &pod.notes}) {
    for (const std::string& note : *notes) info(note);
  }
  return {std::move(pod.view), {std::move(read.live), std::move(pod.routing)}};
}

}  // namespace sidetrack::cli
