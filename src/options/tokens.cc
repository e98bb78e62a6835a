// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/tokens.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "model/error.h"
#include "model/printable.h"
#include "options/suggest.h"
#include "options/values.h"

namespace sidetrack::options {
namespace {

template <typename Wanted>
const Flag* find_flag(Command command, Wanted wanted) {
  const auto found = std::ranges::find_if(
      flags(), [&](const Flag& flag) { return !flag.name.empty() && flag.commands.contains(command) && wanted(flag); });
  return found != flags().end() ? &*found : nullptr;
}

const Flag* by_letter(Command command, char letter) {
  return find_flag(command, [&](const Flag& flag) { return flag.letter != '\0' && flag.letter == letter; });
}

const Flag* by_name(Command command, std::string_view name) {
  return find_flag(command, [&](const Flag& flag) { return flag.name == name; });
}

bool is_option(std::string_view argument) { return argument.size() > 1 && argument.front() == '-'; }

[[noreturn]] void refuse_unknown(Command command, std::string_view argument) {
  const bool is_long = argument.starts_with("--");
  const std::string_view option = argument.substr(0, argument.find('='));
  const auto same = [&](const Flag& flag) {
    return is_long ? flag.name == option.substr(2) : flag.letter != '\0' && flag.letter == option[1];
  };

  std::string takers;
  for (const CommandInfo& other : commands()) {
    if (find_flag(other.command, same) == nullptr) continue;
    takers += (takers.empty() ? "" : ", ") + std::string(other.name);
  }
  const auto message = fmt::format("{}: not an option of {}", excerpt(option), name(command));
  if (!takers.empty() && !find_flag(command, same))
    throw Error(ExitCode::usage, message, fmt::format("it belongs to: {}", takers));

  std::vector<std::string_view> names;
  for (const Flag& flag : flags()) {
    if (flag.commands.contains(command) && !flag.name.empty()) names.push_back(flag.name);
  }
  names.push_back("version");  // of the program, not of a command
  const auto meant = option == "-v" || option == "-V" ? "version" : nearest(option.substr(is_long ? 2 : 1), names);
  if (meant == "version") throw Error(ExitCode::usage, message, "did you mean sidetrack --version?");
  throw Error(ExitCode::usage, message,
              meant ? fmt::format("did you mean --{}?", *meant)
                    : fmt::format("sidetrack {} --help lists the options", name(command)));
}

// CLI11 would take the = of "-p=15001" for a part of the value, the word after "--envoy-port=" for its value, and
// "--dry-run=" for true. In these forms it reads them as pflag does.
std::vector<std::string> canonical(std::span<const std::string_view> arguments, Command command) {
  std::vector<std::string> result;
  bool options_ended = false;
  for (const std::string_view argument : arguments) {
    options_ended |= argument == "--";
    const auto equals = argument.find('=');
    const bool is_long = argument.starts_with("--");
    const bool with_value = is_option(argument) && equals != std::string_view::npos && (is_long || equals == 2);
    // The slip of those used to Go's flags; -check would else be -c with the interface "heck".
    const bool one_dash = argument.size() > 2 && is_option(argument) && !is_long && !options_ended;
    if (one_dash && by_name(command, argument.substr(1, equals - 1)) != nullptr) refuse_unknown(command, argument);
    const Flag* flag = options_ended || !with_value ? nullptr
                       : is_long                    ? by_name(command, argument.substr(2, equals - 2))
                                                    : by_letter(command, argument[1]);
    if (flag == nullptr) {
      result.emplace_back(argument);
      continue;
    }
    const auto value = argument.substr(equals + 1);
    if (value.empty() && flag->kind == Kind::boolean) refuse({*flag, "", ""}, "true or false");
    if (value.empty()) {
      result.insert(result.end(), {fmt::format("--{}", flag->name), ""});
    } else {
      result.push_back(fmt::format("--{}={}", flag->name, value));
    }
  }
  return result;
}

// CLI11 without the --help that its public constructor adds: ours is a flag like the others.
struct Tokenizer : CLI::App {
  Tokenizer() : App("", "", nullptr) { allow_extras(); }
};

// What of the arguments may be a flag's name.
struct Mentions {
  std::vector<std::string_view> names;  // "--envoy-port=15001", without its dashes
  std::string letters;                  // of "-p" and "-hn"

  explicit Mentions(const std::vector<std::string>& arguments) {
    for (const std::string_view argument : arguments) {
      if (!is_option(argument)) continue;
      if (argument[1] == '-') {
        names.push_back(argument.substr(2));
      } else {
        letters += argument;
      }
    }
  }

  // As CLI11 wants to hear it: "--envoy-port,-p". Empty: not mentioned.
  [[nodiscard]] std::string of(const Flag& flag) const {
    std::string found;
    if (std::ranges::any_of(names, [&](std::string_view name) { return name.starts_with(flag.name); }))
      found = fmt::format("--{}", flag.name);
    if (flag.letter != '\0' && letters.find(flag.letter) != std::string::npos)
      found += fmt::format("{}-{}", found.empty() ? "" : ",", flag.letter);
    return found;
  }
};

}  // namespace

const Occurrence* Tokens::find(const Flag& flag) const {
  const auto found = std::ranges::find(flags, &flag, &Occurrence::flag);
  return found != flags.end() ? &*found : nullptr;
}

// CLI11 tells options, values and words apart; it checks no value and prints nothing. Its subcommands, environment,
// conversions and help are left alone: they are not pflag's, and their errors do not say what was expected.
Tokens tokenize(std::span<const std::string_view> arguments, Command command) {
  std::vector<std::string> canonical_arguments = canonical(arguments, command);

  Tokenizer app;
  const Mentions mentions(canonical_arguments);
  std::vector<std::pair<const Flag*, CLI::Option*>> registered;
  for (const Flag& flag : flags()) {
    if (flag.name.empty() || !flag.commands.contains(command)) continue;
    // To register a name costs CLI11 a look at every one before it: all fifty flags take 60 µs, those in use 5 µs.
    const std::string names = mentions.of(flag);
    if (names.empty()) continue;
    CLI::Option* option = flag.kind == Kind::boolean ? app.add_flag(names) : app.add_option(names)->expected(0, 1);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    registered.emplace_back(&flag, option);
  }
  std::ranges::reverse(canonical_arguments);  // as App::parse wants them
  app.parse(std::move(canonical_arguments));

  Tokens tokens;
  bool options_ended = false;
  for (std::string& word : app.remaining()) {
    if (word == "--" && !options_ended) {
      options_ended = true;
    } else if (is_option(word) && !options_ended) {
      refuse_unknown(command, word);
    } else {
      tokens.words.push_back(std::move(word));
    }
  }
  for (const auto& [flag, option] : registered) {
    if (option->count() > 0) tokens.flags.push_back({flag, option->results()});
  }
  return tokens;
}

}  // namespace sidetrack::options
