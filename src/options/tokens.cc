// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/tokens.h"

#include <fmt/format.h>

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

// "-5" is a value: no option has a digit for its letter.
bool begins_option(std::string_view argument) {
  return is_option(argument) && (argument[1] < '0' || argument[1] > '9');
}

// A list of istio-iptables' own.
bool is_short_list(const Flag& flag) { return flag.kind == Kind::list && flag.letter != '\0'; }

// Of interfaces, whose names may begin with a dash.
bool takes_any_word(const Flag& flag) { return is_short_list(flag) && flag.value == "NAMES"; }

// A list that is asked for and not given would silently be none.
[[noreturn]] void refuse_missing(const Flag& flag, std::string_view next) {
  const Given missing{flag, "", ""};
  CommandLine unused;
  flag.set(unused, missing);  // says itself what it expects, unless '' is a value
  std::string hint = next.empty() ? "" : fmt::format("'{}' begins another option", excerpt(next));
  if (flag.kind == Kind::list)
    hint += fmt::format("{}{} '' is the empty list", hint.empty() ? "" : "; ", short_name(flag));
  refuse(missing, flag.choices.empty() ? std::string(flag.value) : fmt::format("one of {}", flag.choices), hint);
}

// What pflag makes of the arguments.
class Tokenizer {
 public:
  Tokenizer(std::span<const std::string_view> arguments, Command command) : arguments_(arguments), command_(command) {}

  Tokens read() {
    while (next_ < arguments_.size()) {
      const std::string_view argument = arguments_[next_++];
      if (argument == "--") break;
      if (!is_option(argument)) {
        tokens_.words.emplace_back(argument);
      } else if (argument.starts_with("--")) {
        read_long(argument);
      } else {
        read_letters(argument);
      }
    }
    for (; next_ < arguments_.size(); ++next_) tokens_.words.emplace_back(arguments_[next_]);
    const auto place = [](const Occurrence& one) { return one.flag - flags().data(); };
    std::ranges::sort(tokens_.flags, {}, place);
    return std::move(tokens_);
  }

 private:
  // "--dry-run", "--envoy-port=15001", "--envoy-port" "15001"
  void read_long(std::string_view argument) {
    const auto equals = argument.find('=');
    const Flag* flag = by_name(command_, argument.substr(2, equals - 2));
    if (flag == nullptr) refuse_unknown(command_, argument);
    if (equals != std::string_view::npos) {
      add(*flag, argument.substr(equals + 1));
    } else {
      add(*flag);
    }
  }

  // "-n", "-hn", "-p15001", "-p=15001", "-p" "15001"
  void read_letters(std::string_view argument) {
    // The slip of those used to Go's flags; -check would else be -c with the interface "heck".
    const auto equals = argument.find('=');
    if (argument.size() > 2 && by_name(command_, argument.substr(1, equals - 1)) != nullptr)
      refuse_unknown(command_, argument);
    for (std::string_view left = argument.substr(1); !left.empty();) {
      const Flag* flag = by_letter(command_, left.front());
      if (flag == nullptr) refuse_unknown(command_, fmt::format("-{}", left));
      left.remove_prefix(1);
      if (left.starts_with('=')) return add(*flag, left.substr(1));
      if (flag->kind != Kind::boolean && !left.empty()) return add(*flag, left);
      add(*flag);
    }
  }

  void add(const Flag& flag, std::string_view value) {
    if (value.empty() && flag.kind == Kind::boolean) refuse({flag, "", ""}, "true or false");
    const auto known = std::ranges::find(tokens_.flags, &flag, &Occurrence::flag);
    Occurrence& occurrence = known != tokens_.flags.end() ? *known : tokens_.flags.emplace_back(Occurrence{&flag, {}});
    occurrence.values.emplace_back(value);
  }
  // Without a value of its own: the next word is it.
  void add(const Flag& flag) {
    if (flag.kind == Kind::boolean) return add(flag, "true");
    const std::string_view next = next_ < arguments_.size() ? arguments_[next_] : "";
    const bool ends = next_ == arguments_.size();
    if (!ends && (!begins_option(next) || (takes_any_word(flag) && !is_option_with_value(next)))) {
      ++next_;
      return add(flag, next);
    }
    // Manifests leave out the empty value of a list before another: -x -b '*'.
    if (ends || !is_short_list(flag)) refuse_missing(flag, next);
    add(flag, "");
  }
  // "-b", "--proxy-uid". What an injector passes after -k is an annotation of the pod, which must not become
  // --cleanup-only, or an option and its value.
  [[nodiscard]] bool is_option_with_value(std::string_view word) const {
    const Flag* flag = word.starts_with("--") ? by_name(command_, word.substr(2))
                       : word.size() == 2     ? by_letter(command_, word[1])
                                              : nullptr;
    return flag != nullptr && flag->kind != Kind::boolean;
  }

  std::span<const std::string_view> arguments_;
  Command command_;
  std::size_t next_ = 0;
  Tokens tokens_;
};

}  // namespace

const Occurrence* Tokens::find(const Flag& flag) const {
  const auto found = std::ranges::find(flags, &flag, &Occurrence::flag);
  return found != flags.end() ? &*found : nullptr;
}

Tokens tokenize(std::span<const std::string_view> arguments, Command command) {
  return Tokenizer(arguments, command).read();
}

}  // namespace sidetrack::options
