// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/readme.h"

#include <algorithm>
#include <sstream>

#include "golden/renderings.h"
#include "sidetrack/flags.h"
#include "sidetrack/render.h"

namespace sidetrack {
namespace {

std::string code(std::string text) {
  for (std::size_t bar = 0; (bar = text.find('|', bar)) != std::string::npos; bar += 2) text.replace(bar, 1, "\\|");
  return text.empty() ? "" : "`" + text + "`";
}

std::string row(const Flag& flag) {
  std::string option = flag.name.empty() ? "" : spelled(flag);
  if (!option.empty() && !flag.value.empty()) option += " " + std::string(flag.value);
  std::string variables;
  for (std::string_view variable : flag.variables) {
    if (!variable.empty()) variables += (variables.empty() ? "" : ", ") + code(std::string(variable));
  }
  std::string what(flag.description);
  if (!flag.choices.empty()) what += (what.empty() ? "" : ": ") + code(std::string(flag.choices));
  return "| " + code(option) + " | " + variables + " | " + (flag.preset.empty() ? "" : std::string(flag.preset)) +
         " | " + what + " |\n";
}

std::string options() {
  std::string table = "\n| option | environment | default | |\n|---|---|---|---|\n";
  for (const Flag& flag : flags()) table += row(flag);
  return table + "\n";
}

std::string exits() {
  std::string table = "\n| code | |\n|---|---|\n";
  for (const auto& [exit_code, brief, in_full] : exit_codes()) {
    table += "| " + std::to_string(static_cast<int>(exit_code)) + " | " + std::string(in_full) + " |\n";
  }
  return table + "\n";
}

// The command that prints the picture, as the scenario's `args` say it.
std::string command(const Scenario& scenario) {
  std::istringstream lines(read_file(scenario.folder / "args"));
  std::string text = "sidetrack render";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) text += " " + line;
  }
  return text + " --format mermaid\n";
}

struct Picture {
  std::string_view scenario;
  std::string_view title;
};

constexpr Picture picture_table[] = {
    {"redirect-default", "The default: REDIRECT"},
    {"tproxy-default", "TPROXY: the proxy sees the client's address"},
    {"dns", "REDIRECT with DNS capture"},
};

// Folded: each is a screen high.
std::string pictures() {
  std::string text = "\n";
  for (const auto& [name, title] : picture_table) {
    const auto scenario = std::ranges::find(scenarios(), name, &Scenario::name);
    const Planned planned = sidetrack::planned(*scenario);
    text += "<details><summary>" + std::string(title) + "</summary>\n\n```\n" + command(*scenario) +
            "```\n\n```mermaid\n" + mermaid(planned.plan.ruleset, planned.line.printed) + "```\n\n</details>\n\n";
  }
  return text;
}

}  // namespace

std::string readme() { return read_file(SIDETRACK_SOURCE_DIR "/README.md"); }

std::string readme_as_generated() {
  static constexpr std::pair<std::string_view, std::string (*)()> parts[] = {
      {"options", options}, {"exit codes", exits}, {"pictures", pictures}};
  std::string text = readme();
  for (const auto& [name, made] : parts) {
    const std::string begin = "<!-- " + std::string(name) + " -->\n";
    const std::size_t from = text.find(begin) + begin.size();
    text.replace(from, text.find("<!-- /" + std::string(name) + " -->") - from, made());
  }
  return text;
}

}  // namespace sidetrack
