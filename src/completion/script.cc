// SPDX-License-Identifier: GPL-2.0-or-later
#include "completion/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "completion/completion.h"
#include "options/log_flags.h"

namespace sidetrack {

std::string completion(Shell shell) {
  switch (shell) {
    case Shell::bash:
      return completion_script::bash();
    case Shell::zsh:
      return completion_script::zsh();
    case Shell::fish:
      break;
  }
  return completion_script::fish();
}

namespace completion_script {
namespace {

struct Named {
  std::string_view value;  // Flag::value
  std::string_view words;
  Source source;
};

constexpr Named named_values[] = {
    {"PORTS|'*'", "*", Source::none},
    {"CIDRS|'*'", "*", Source::none},
    {"NAME", "", Source::interfaces},
    {"NAMES", "", Source::interfaces},
    {"FILE", "", Source::files},
    {"PATH", "", Source::files},
    {"PATH|NAME", "", Source::namespaces},
    {"PID", "", Source::processes},
    {"TARGET", "stdout|stderr", Source::files},
    {"[SCOPE:]LEVEL", options::log_levels, Source::none},
};

}  // namespace

Offer offer(const Flag& flag) {
  if (!flag.choices.empty()) return {each_choice(flag.choices), Source::none};
  const auto* const found = std::ranges::find(named_values, flag.value, &Named::value);
  if (found == std::end(named_values)) return {};
  return {each_choice(found->words), found->source};
}

std::vector<std::string_view> takers(const Flag& flag) {
  std::vector<std::string_view> names;
  for (const CommandInfo& command : commands()) {
    if (flag.commands.contains(command.command)) names.push_back(command.name);
  }
  return names;
}

std::string joined(const std::vector<std::string_view>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string replaced(std::string_view text, char what, std::string_view by) {
  std::string result;
  for (const char c : text) result += c == what ? by : std::string_view(&c, 1);
  return result;
}

}  // namespace completion_script
}  // namespace sidetrack
