// SPDX-License-Identifier: GPL-2.0-or-later
#include "manual/manual.h"

#include <fmt/format.h>
#include <sidetrack/version.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <stdexcept>
#include <vector>

#include "model/scan.h"
#include "options/flags.h"

namespace sidetrack {
namespace {

// The names of the groups in the template, in the order of Group.
constexpr std::string_view group_names[] = {"traffic", "run", "packet",      "place",   "output",
                                            "istio",   "log", "environment", "ambient", "former"};

using Texts = std::map<std::string, std::string, std::less<>>;  // by "apply", "--proxy-uid"

// Returns a word to be typed.
std::string literal(std::string_view word) {
  std::string result;
  for (const char c : word) result += c == '-' ? "\\-" : c == '\'' ? "\\(aq" : std::string(1, c);
  return result;
}

// Options keep their dashes, and quotes to be typed stay straight.
std::string text(std::string_view words) {
  std::string result;
  char before = ' ';
  for (const char c : words) {
    const bool begins = before == ' ' || before == '-';
    const bool is_straight = c == '\'' && (begins || before == '*');
    result += c == '\\' ? "\\e" : c == '-' && begins ? "\\-" : is_straight ? "\\(aq" : std::string(1, c);
    before = c;
  }
  return result;
}

std::string sentence(std::string_view words) {
  std::string result = text(words);
  result.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(result.front())));
  return result + ".\n";
}

std::string takers(const Flag& flag) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> others;
  for (const CommandInfo& command : commands())
    (flag.commands.contains(command.command) ? names : others).push_back(command.name);
  if (others.empty()) return "all commands";
  return others.size() == 1 ? fmt::format("all commands but {}", others.front())
                            : fmt::format("{}", fmt::join(names, ", "));
}

std::string command_items(const Texts& texts) {
  std::string page;
  for (const CommandInfo& command : commands()) {
    page += fmt::format(".It Cm {}", command.name);
    for (const std::string_view word : split_words(command.arguments))
      page += word == "[options]" ? " Op Ar option ..." : fmt::format(" Ar {}", word);
    const auto more = texts.find(command.name);
    page += "\n" + sentence(command.summary) + (more != texts.end() ? more->second : "");
  }
  return page;
}

std::string item(const Flag& flag, const Texts& texts, bool with_takers) {
  std::string page = ".It ";
  if (flag.name.empty()) page += fmt::format("Ev {}", flag.variables[0]);
  if (flag.letter != '\0') page += fmt::format("Fl {} , ", flag.letter);
  if (!flag.name.empty()) page += fmt::format("Fl -{}", flag.name);
  if (!flag.name.empty() && !flag.value.empty()) page += fmt::format(" Ar {}", literal(flag.value));
  const auto in_full = texts.find(fmt::format("--{}", flag.name));
  page += "\n" + (in_full != texts.end() ? in_full->second : sentence(flag.description));
  if (flag.kind == Kind::choice)
    page += fmt::format("One of {}.\n", text(fmt::format("{}", fmt::join(each_choice(flag.choices), ", "))));
  if (!flag.preset.empty()) page += fmt::format("Default: {}.\n", text(flag.preset));
  if (!flag.name.empty() && !flag.variables[0].empty()) {
    page += fmt::format("Environment:\n.Ev {}{}{} .\n", flag.variables[0], flag.variables[1].empty() ? "" : " , ",
                        flag.variables[1]);
  }
  if (with_takers) page += fmt::format("Taken by {}.\n", takers(flag));
  return page;
}

std::string options(Group group, const Texts& texts) {
  std::vector<const Flag*> listed;
  for (const Flag& flag : flags()) {
    if (flag.group == group) listed.push_back(&flag);
  }
  const bool alike = std::ranges::all_of(listed, [&](const Flag* flag) { return takers(*flag) == takers(*listed[0]); });
  std::string page = alike ? fmt::format("Taken by {}.\n", takers(*listed[0])) : "";
  page += ".Bl -tag -width Ds\n";
  for (const Flag* flag : listed) page += item(*flag, texts, !alike);
  return page + ".El\n";
}

}  // namespace

std::string manual(std::string_view page_template) {
  Texts texts;
  std::string page;
  std::string* written = &page;
  for (const std::string_view line : split_lines(page_template)) {
    const auto words = split_words(line);
    if (!line.starts_with('@')) {
      *written += fmt::format("{}\n", line);
    } else if (words[0] == "@text") {
      written = &texts[std::string(words.at(1))];
    } else if (words[0] == "@page") {
      written = &page;
    } else if (words[0] == "@version") {
      page += fmt::format(".Os Sidetrack {}\n", version);
    } else if (words[0] == "@commands") {
      page += command_items(texts);
    } else if (words[0] == "@options") {
      const auto* const group = std::ranges::find(group_names, words.at(1));
      if (group == std::end(group_names)) throw std::invalid_argument(std::string(line));
      page += options(static_cast<Group>(group - std::begin(group_names)), texts);
    } else if (words[0] == "@environment") {
      for (const Flag& flag : flags()) {
        if (flag.group == Group::environment) page += item(flag, texts, false);
      }
    } else if (words[0] == "@exit-status") {
      for (const auto& [code, brief, in_full] : exit_codes())
        page += fmt::format(".It {}\n{}", static_cast<int>(code), sentence(in_full));
    } else if (words[0] != "@#") {
      throw std::invalid_argument(std::string(line));
    }
  }
  return page;
}

}  // namespace sidetrack
