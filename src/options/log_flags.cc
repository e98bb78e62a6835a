// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/log_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/scan.h"
#include "options/values.h"

namespace sidetrack::options {
namespace {

using Level = LogOptions::Level;

// Our messages are those of the scope "default"; "all" covers every scope.
bool is_ours(std::string_view scope) { return scope == "default" || scope == "all"; }

struct ScopedLevel {
  std::string_view scope;
  Level level;
};

ScopedLevel scoped_level(const Item& item) {
  const auto colon = item.text.rfind(':');
  const bool scoped = colon != std::string_view::npos;
  const auto scope = scoped ? item.text.substr(0, colon) : "default";
  const auto levels = each_choice(log_levels);
  const auto level = std::ranges::find(levels, scoped ? item.text.substr(colon + 1) : item.text);
  if (scope.empty() || level == levels.end()) {
    refuse(item, fmt::format("[scope:]level, the level one of {}", fmt::join(levels, ", ")));
  }
  return {scope, static_cast<Level>(level - levels.begin())};
}

}  // namespace

void set_log_output_level(CommandLine& line, const Given& given) {
  each_item(given, [&](const Item& item) {
    const auto [scope, level] = scoped_level(item);
    if (is_ours(scope)) line.log.level = level;
  });
}

void check_log_levels(CommandLine&, const Given& given) {
  each_item(given, [](const Item& item) { scoped_level(item); });
}

void set_log_as_json(CommandLine& line, const Given& given) { line.log.json = boolean({given, given.text}); }

void set_log_target(CommandLine& line, const Given& given) {
  if (given.text.empty()) refuse(given, "stdout, stderr or a path");
  line.log.targets.emplace_back(given.text);
}

void set_log_caller(CommandLine& line, const Given& given) {
  each_item(given, [&](const Item& item) { line.log.caller |= is_ours(item.text); });
}

void check_verbosity(CommandLine&, const Given& given) {
  if (to_number<int>(given.text).value_or(-1) < 0) refuse(given, "a number");
}

}  // namespace sidetrack::options
