// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <vector>

#include "sidetrack/flags.h"

namespace sidetrack {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kDescription = 49;  // the column of descriptions

struct Section {
  std::string_view heading;
  std::vector<Group> groups;
  bool brief;  // names and defaults, run together, instead of a line each
};

// Commands whose main business the traffic is show it in full: one screen has no room for everything.
std::vector<Section> sections(Command command) {
  const bool in_full = command == Command::apply || command == Command::render;
  return {{"Traffic (lists: a,b,c or @FILE)", {Group::traffic}, !in_full},
          {"Packet", {Group::packet}, false},
          {"Work", {Group::run, Group::place}, false},
          {"Output", {Group::output}, true},
          {"As istio-iptables", {Group::istio}, true},
          {"Log", {Group::log}, true},
          {"Environment", {Group::environment}, true}};
}

std::string preset(const Flag& flag) { return flag.preset.empty() ? "" : fmt::format(" ({})", flag.preset); }

std::string_view value(const Flag& flag, bool brief) {
  return brief && !flag.choices.empty() ? flag.choices : flag.value;
}

std::string with_value(const Flag& flag, bool brief) {
  const auto shown = value(flag, brief);
  return shown.empty() ? spelled(flag) : fmt::format("{} {}", spelled(flag), shown);
}

std::string line_of(const Flag& flag) {
  const std::string indent(flag.letter != '\0' ? 2 : 6, ' ');
  std::string what(flag.description);
  if (!flag.choices.empty() && flag.kind == Kind::choice)
    what += (what.empty() ? "" : ": ") + std::string(flag.choices);
  return fmt::format("{:<{}}{}{}\n", indent + with_value(flag, false), kDescription, what, preset(flag));
}

// "Log: --vklog N (0), --log_as_json, …", broken between items.
std::string paragraph(std::string_view heading, const std::vector<std::string>& items) {
  std::string text = fmt::format("{}:", heading);
  std::size_t column = text.size();
  for (const std::string& item : items) {
    const bool last = &item == &items.back();
    const std::size_t width = 1 + item.size() + (last ? 0 : 1);
    if (column + width > kColumns) {
      text += "\n ";
      column = 1;
    }
    text += " " + item + (last ? "" : ",");
    column += width;
  }
  return text + "\n";
}

std::string text_of(const Section& section, Command command) {
  std::vector<std::string> items;
  std::string lines;
  if (section.groups.front() == Group::environment)
    items.emplace_back("every option of istio-iptables by its name in capitals, as ENVOY_PORT");
  for (const Group group : section.groups) {
    for (const Flag& flag : flags()) {
      if (flag.group != group || !flag.commands.contains(command)) continue;
      if (section.brief) {
        const bool variable = flag.name.empty();
        items.push_back(variable ? spelled(flag) + preset(flag) : with_value(flag, true) + preset(flag));
      } else {
        lines += line_of(flag);
      }
    }
  }
  if (items.size() > 1) return paragraph(section.heading, items);
  return lines.empty() ? "" : fmt::format("{}:\n{}", section.heading, lines);
}

}  // namespace

std::string help() {
  std::string text =
      "Sidetrack steers a pod's traffic onto its sidecar, and says what the rules do.\n\n"
      "Usage: sidetrack COMMAND [options]\n\n";
  for (const CommandInfo& command : commands()) {
    text += fmt::format("  {:<19}{}\n",
                        fmt::format("{} {}", command.name, command.command == Command::explain ? "PACKET" : ""),
                        command.summary);
  }
  text +=
      "\nOptions alone, the word istio-iptables before them, or the program called by that name: apply, as\n"
      "istio-iptables. sidetrack COMMAND --help shows the options; sidetrack --version the version.\n\n";
  text += fmt::format("Example: {}\n\n", info(Command::apply).example);
  text +=
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the kernel lacks something, 4 not permitted, 5 busy,\n"
      "  6 differs, 126 validation failed\n";
  return text;
}

std::string help(Command command) {
  const CommandInfo& about = info(command);
  std::string text = fmt::format("Usage: sidetrack {} {}\n{}\n", about.name, about.arguments, about.summary);
  for (const Section& section : sections(command)) text += text_of(section, command);
  return text + fmt::format("Example: {}\n", about.example);
}

}  // namespace sidetrack
