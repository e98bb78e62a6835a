// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "golden/renderings.h"
#include "options/flags.h"
#include "render/render.h"

namespace sidetrack {
namespace {

std::string code(std::string text) {
  for (std::size_t bar = 0; (bar = text.find('|', bar)) != std::string::npos; bar += 2) text.replace(bar, 1, "\\|");
  return text.empty() ? "" : "`" + text + "`";
}

// "apply, render"; of most commands those that lack it: "all but cni". The seven with the options of
// the rules are written as "rules" (docs/options.md).
std::string takers(CommandSet taking) {
  std::vector<std::string_view> with, without;
  for (const CommandInfo& command : commands()) {
    const bool has_options = std::ranges::any_of(
        flags(), [&](const Flag& each) { return each.commands.contains(command.command) && each.name != "help"; });
    if (has_options) (taking.contains(command.command) ? with : without).push_back(command.name);
  }
  static constexpr std::string_view with_rules[] = {"apply", "render", "diff", "verify", "explain", "map", "lint"};
  const auto takes = [&](std::string_view name) { return std::ranges::find(with, name) != with.end(); };
  if (without.size() > 3 && std::ranges::all_of(with_rules, takes)) {
    std::erase_if(with,
                  [](std::string_view name) { return std::ranges::find(with_rules, name) != std::end(with_rules); });
    with.insert(with.begin(), "rules");
  }
  if (without.empty()) return "all";
  return without.size() <= 3 ? fmt::format("all but {}", fmt::join(without, ", "))
                             : fmt::format("{}", fmt::join(with, ", "));
}

// Returns the cells but the last.
std::string cells(const Flag& flag) {
  std::string option = flag.name.empty() ? "" : spelled(flag);
  if (!option.empty() && !flag.value.empty()) option += " " + std::string(flag.value);
  std::string variables;
  for (std::string_view variable : flag.variables) {
    if (!variable.empty()) variables += (variables.empty() ? "" : ", ") + code(std::string(variable));
  }
  std::string what(flag.description);
  if (!flag.choices.empty()) what += (what.empty() ? "" : ": ") + code(std::string(flag.choices));
  return "| " + code(option) + " | " + variables + " | " + (flag.preset.empty() ? "" : std::string(flag.preset)) +
         " | " + what + " | ";
}

std::string options() {
  std::vector<std::pair<std::string, CommandSet>> rows;
  for (const Flag& flag : flags()) {
    const std::string first = cells(flag);
    const auto same = std::ranges::find(rows, first, &std::pair<std::string, CommandSet>::first);
    if (same == rows.end())
      rows.emplace_back(first, flag.commands);
    else
      same->second = same->second | flag.commands;  // one may be in several groups
  }
  std::string table = "\n| option | environment | default | meaning | commands |\n|---|---|---|---|---|\n";
  for (const auto& [first, commands] : rows) table += first + takers(commands) + " |\n";
  return table + "\n";
}

std::string exits() {
  std::string table = "\n| code | |\n|---|---|\n";
  for (const auto& [exit_code, brief, in_full] : exit_codes()) {
    table += "| " + std::to_string(static_cast<int>(exit_code)) + " | " + std::string(in_full) + " |\n";
  }
  return table + "\n";
}

std::string commands_table() {
  std::string table = "\n| | |\n|---|---|\n";
  for (const CommandInfo& command : commands()) {
    const std::string words = "sidetrack " + std::string(command.name) + " " + std::string(command.arguments);
    table += "| " + code(words) + " | " + std::string(command.summary) + " |\n";
  }
  return table + "\n";
}

struct Picture {
  std::string_view scenario;
  std::string_view file;
  std::string_view title;
};

constexpr Picture picture_table[] = {
    {"redirect-default", "redirect.svg", "The default: REDIRECT"},
    {"tproxy-default", "tproxy.svg", "TPROXY: the proxy sees the client's address"},
    {"dns", "dns.svg", "REDIRECT with DNS capture"},
};

const Scenario& scenario(const Picture& picture) {
  return *std::ranges::find(scenarios(), picture.scenario, &Scenario::name);
}

// The command that prints the picture, as the scenario's `args` say it.
std::string command(const Scenario& scenario) {
  std::istringstream lines(read_file(scenario.folder / "args"));
  std::string text = "sidetrack render";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) text += " " + line;
  }
  return text + " --format svg";
}

std::string pictures() {
  std::string text = "\n";
  for (const Picture& picture : picture_table) {
    const std::string title(picture.title);
    text += "### " + title + "\n\n    " + command(scenario(picture)) + "\n\n![" + title + "](" +
            std::string(picture.file) + ")\n\n";
  }
  return text;
}

// The page with what stands between the marks of this name replaced.
std::string with_part(const std::string& page, const std::string& name, const std::string& part) {
  const std::string begin = "<!-- " + name + " -->\n";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find("<!-- /" + name + " -->");
  if (from == std::string::npos || to == std::string::npos || to < from) {
    throw std::runtime_error("a page has lost its marks <!-- " + name + " --> and <!-- /" + name + " -->");
  }
  return page.substr(0, from + begin.size()) + part + page.substr(to);
}

}  // namespace

std::map<std::string, std::string> pages() {
  struct Part {
    std::string page;
    std::string name;
    std::string (*made)();
  };
  static const Part parts[] = {
      {"README.md", "commands", commands_table},
      {"docs/options.md", "options", options},
      {"docs/options.md", "exit codes", exits},
      {"docs/data-path.md", "pictures", pictures},
  };
  std::map<std::string, std::string> result;
  for (const auto& [page, name, made] : parts) {
    std::string& text = result[page];
    if (text.empty()) text = read_file(SIDETRACK_SOURCE_DIR "/" + page);
    text = with_part(text, name, made());
  }
  for (const Picture& picture : picture_table) {
    const Planned planned = sidetrack::planned(scenario(picture));
    result["docs/" + std::string(picture.file)] = svg(planned.plan, planned.line.config, planned.line.printed);
  }
  return result;
}

}  // namespace sidetrack
