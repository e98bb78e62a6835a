// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "library/values.h"
#include "model/error.h"
#include "options/command_words.h"
#include "options/flags.h"
#include "options/values.h"

namespace sidetrack {
namespace {

// What the interface has functions for: an option that says the same would be ignored.
struct Elsewhere {
  std::string_view option;
  std::string_view instead;
  bool (*from_environment)(const CommandLine& line) = nullptr;  // of an option that has a variable
};
constexpr std::string_view pod_names_it = "sidetrack::Pod names the place";
constexpr std::string_view functions_print = "the functions of the result give each form";
constexpr std::string_view rules_do = "sidetrack::Rules makes the rules and touches nothing";
constexpr std::string_view program_does = "only the program does that";
constexpr Elsewhere elsewhere[] = {
    {"help", "sidetrack/options.h says what is taken"},
    {"version", "sidetrack::version, in sidetrack/version.h, is the version"},
    {"netns", pod_names_it},
    {"network-namespace", pod_names_it, [](const CommandLine& line) { return !line.network_namespace.empty(); }},
    {"pid", pod_names_it},
    {"host", "sidetrack::Pod::own() is the caller's own"},
    {"format", functions_print},
    {"json", functions_print},
    {"family", functions_print},
    {"color", functions_print},
    {"brief", functions_print},
    {"plan", "Rules::explain asks the rules of options"},
    {"dry-run", rules_do, [](const CommandLine& line) { return line.dry_run; }},
    {"skip-rule-apply", rules_do, [](const CommandLine& line) { return line.skip_rule_apply; }},
    {"check", program_does},
    {"when-ready", program_does},
    {"confirm", program_does},
    {"run-validation", program_does, [](const CommandLine& line) { return line.run_validation; }},
    {"cleanup-only", "Pod::clean does that", [](const CommandLine& line) { return line.cleanup_only; }},
};

[[noreturn]] void refuse(const Elsewhere& option) {
  throw Error(ExitCode::usage, fmt::format("--{}: not an option of the library", option.option),
              std::string(option.instead));
}

const Elsewhere* find_elsewhere(std::string_view option) {
  const auto* const found = std::ranges::find(elsewhere, option, &Elsewhere::option);
  return found != std::end(elsewhere) ? found : nullptr;
}

// Refuses what the program takes there and the library does not: by what is given, whatever its value. The arguments
// begin with the name of the command.
void check_arguments(Command command, std::span<const std::string_view> arguments) {
  if (std::ranges::find(arguments, "--version") != arguments.end()) refuse(*find_elsewhere("version"));
  const options::CommandWords given = options::read_words(arguments);
  for (const auto& [flag, values] : given.flags) {
    const bool is_off = flag->kind == Kind::boolean && !options::boolean(Given{*flag, values.back(), {}});
    if (is_off) continue;
    if (const Elsewhere* option = find_elsewhere(flag->name)) refuse(*option);
    if (command == Command::explain && flag->group != Group::packet) {
      throw Error(ExitCode::usage, fmt::format("{}: not an option of a packet", spelled(*flag)),
                  "give it to sidetrack::Options::parse");
    }
  }
  if (!given.words.empty() && find_command(given.words.front()) != nullptr) {
    throw Error(ExitCode::usage, fmt::format("'{}': not expected here", given.words.front()),
                "give only the arguments after the command");
  }
}

CommandLine parsed(Command command, const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string_view> words{"sidetrack", name(command)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  check_arguments(command, std::span(words).subspan(1));
  const auto nothing = [](std::string_view) { return std::optional<std::string_view>(); };
  CommandLine line = parse(words, environment ? environment : nothing);
  for (const Elsewhere& option : elsewhere) {
    if (option.from_environment != nullptr && option.from_environment(line)) refuse(option);
  }
  return line;
}

}  // namespace

Options::Options(std::shared_ptr<const Values> values) : values_(std::move(values)) {}

Options Options::parse(const std::vector<std::string>& arguments, const Environment& environment) {
  CommandLine line = parsed(Command::apply, arguments, environment);
  return Options(std::make_shared<const Values>(Values{std::move(line.config), std::move(line.names), line.applying}));
}

Packet packet_of_words(const std::vector<std::string>& words) {
  return parse_packet(parsed(Command::explain, words, {}).packet);
}

}  // namespace sidetrack
