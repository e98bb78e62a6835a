// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "options/flags.h"

namespace sidetrack {
namespace {

constexpr std::size_t screen_columns = 80;
constexpr std::size_t longest_option = 40;  // a longer one moves its own description, not those of the others

struct Section {
  std::string_view heading;
  Group group;
  bool brief;  // names and defaults, run together, instead of a line each
  enum class Letter : std::uint8_t { any, with, without } letter = Letter::any;  // the options that have one
};

// Commands whose main business the traffic is show it in full, but for options without a letter: one screen has no room
// for everything.
std::vector<Section> sections(Command command) {
  const bool in_full = command == Command::apply || command == Command::render;
  using enum Section::Letter;
  std::vector<Section> made{{"Traffic (lists: a,b,c or @FILE)", Group::traffic, !in_full, in_full ? with : any},
                            {"Packet", Group::packet, false},
                            {"Ambient pods", Group::ambient, true},
                            {"Work", Group::run, in_full || command == Command::explain},
                            {"Namespace to work in", Group::place, true},
                            {"Output", Group::output, true},
                            {"As istio-iptables", Group::istio, true},
                            {"Log", Group::log, true},
                            {"Environment (options too, as ENVOY_PORT)", Group::environment, true}};
  if (in_full) made.insert(made.begin() + 1, {"More of traffic", Group::traffic, true, without});
  return made;
}

std::string preset(const Flag& flag) { return flag.preset.empty() ? "" : fmt::format(" ({})", flag.preset); }

std::string_view value_text(const Flag& flag, bool brief) {
  return brief && !flag.choices.empty() ? flag.choices : flag.value;
}

std::string with_value(const Flag& flag, bool brief) {
  const auto shown = value_text(flag, brief);
  return shown.empty() ? spelled(flag) : fmt::format("{} {}", spelled(flag), shown);
}

std::string option_of(const Flag& flag) {
  return std::string(flag.letter != '\0' ? 2 : 6, ' ') + with_value(flag, false);
}

std::string line_of(const Flag& flag, std::size_t column) {
  const std::string option = option_of(flag);
  const std::string_view what = flag.kind == Kind::choice ? flag.choices : flag.description;
  return fmt::format("{:<{}}{}{}\n", option, std::max(column, option.size() + 2), what, preset(flag));
}

// "Log: --vklog N (0), --log_as_json, …", broken between items.
std::string paragraph(std::string_view heading, const std::vector<std::string>& items) {
  std::string text = fmt::format("{}:", heading);
  std::size_t column = text.size();
  for (const std::string& item : items) {
    const bool last = &item == &items.back();
    const std::size_t width = 1 + item.size() + (last ? 0 : 1);
    if (column + width > screen_columns) {
      text += "\n ";
      column = 1;
    }
    text += " " + item + (last ? "" : ",");
    column += width;
  }
  return text + "\n";
}

std::string text_of(const Section& section, Command command) {
  std::vector<const Flag*> taken;
  for (const Flag& flag : flags()) {
    const bool is_shown =
        section.letter == Section::Letter::any || (section.letter == Section::Letter::with) == (flag.letter != '\0');
    if (flag.group == section.group && flag.commands.contains(command) && is_shown) taken.push_back(&flag);
  }
  if (taken.empty()) return "";
  if (section.brief) {
    std::vector<std::string> items;
    for (const Flag* flag : taken) {
      items.push_back((flag->name.empty() ? spelled(*flag) : with_value(*flag, true)) + preset(*flag));
    }
    return paragraph(section.heading, items);
  }
  std::size_t column = 0;
  for (const Flag* flag : taken) {
    const std::size_t width = option_of(*flag).size();
    if (width <= longest_option) column = std::max(column, width + 2);
  }
  std::string text = fmt::format("{}:\n", section.heading);
  for (const Flag* flag : taken) text += line_of(*flag, column);
  return text;
}

}  // namespace

std::string help() {
  std::string text =
      "Sidetrack steers a pod's traffic onto its sidecar, and says what the rules do.\n\n"
      "Usage: sidetrack COMMAND [options]\n\n";
  for (const CommandInfo& command : commands()) {
    text += fmt::format("  {:<15}{}\n",
                        fmt::format("{} {}", command.name, command.command == Command::explain ? "PACKET" : ""),
                        command.summary);
  }
  text +=
      "\nWithout a command, after the word istio-iptables, or called by that name, it\n"
      "applies, as istio-iptables does. 'sidetrack COMMAND --help' shows the\n"
      "options; 'sidetrack --version' the version; 'man sidetrack' everything.\n\n";
  text += fmt::format("Example: {}\n\n", info(Command::apply).example);
  std::vector<std::string> codes;
  for (const auto& [code, brief, in_full] : exit_codes())
    codes.push_back(fmt::format("{} {}", static_cast<int>(code), brief));
  return text + paragraph("Exit codes", codes);
}

std::string help(Command command) {
  const CommandInfo& about = info(command);
  std::string text = fmt::format("Usage: sidetrack {} {}\n", about.name, about.arguments);
  const std::string with_summary = fmt::format("{}: {}\n", text.substr(0, text.size() - 1), about.summary);
  text = with_summary.size() <= screen_columns + 1 ? with_summary : text + fmt::format("{}\n", about.summary);
  for (const Section& section : sections(command)) text += text_of(section, command);
  return text + fmt::format("Example: {}\n", about.example);
}

}  // namespace sidetrack
