// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/options.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "library/values.h"
#include "model/error.h"

namespace sidetrack {
namespace {

// What the interface has functions for: an option that says the same would be ignored.
struct Elsewhere {
  std::string_view option;
  bool (*given)(const CommandLine& line);
  std::string_view instead;
};
constexpr std::string_view pod_names_it = "sidetrack::Pod names the place";
constexpr std::string_view functions_print = "the functions of the result give each form";
constexpr std::string_view rules_do = "sidetrack::Rules makes the rules and touches nothing";
constexpr std::string_view program_does = "only the program does that";
constexpr Elsewhere elsewhere[] = {
    {"--help", [](const CommandLine& line) { return line.help; }, "sidetrack/options.h says what is taken"},
    {"--netns", [](const CommandLine& line) { return !line.netns.empty(); }, pod_names_it},
    {"--network-namespace", [](const CommandLine& line) { return !line.network_namespace.empty(); }, pod_names_it},
    {"--pid", [](const CommandLine& line) { return line.pid.has_value(); }, pod_names_it},
    {"--host", [](const CommandLine& line) { return line.host; }, "sidetrack::Pod::own() is the caller's own"},
    {"--format", [](const CommandLine& line) { return line.format != Format::text; }, functions_print},
    {"--family", [](const CommandLine& line) { return line.printed != Families::both(); }, functions_print},
    {"--color", [](const CommandLine& line) { return line.color != Color::automatic; }, functions_print},
    {"--brief", [](const CommandLine& line) { return line.brief; }, functions_print},
    {"--plan", [](const CommandLine& line) { return line.plan; }, "Rules::explain asks the rules of options"},
    {"--dry-run", [](const CommandLine& line) { return line.dry_run; }, rules_do},
    {"--skip-rule-apply", [](const CommandLine& line) { return line.skip_rule_apply; }, rules_do},
    {"--check", [](const CommandLine& line) { return line.check; }, program_does},
    {"--run-validation", [](const CommandLine& line) { return line.run_validation; }, program_does},
    {"--cleanup-only", [](const CommandLine& line) { return line.cleanup_only; }, "Pod::clean does that"},
};

CommandLine parsed(Command command, const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string_view> words{"sidetrack", name(command)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto nothing = [](std::string_view) { return std::optional<std::string_view>(); };
  CommandLine line = parse(words, environment ? environment : nothing);
  for (const auto& [option, given, instead] : elsewhere) {
    if (!given(line)) continue;
    throw Error(ExitCode::usage, fmt::format("{}: not an option of the library", option), std::string(instead));
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
