// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/command_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/without_stream_init.h"
// after it
#include <CLI/CLI.hpp>

#include "model/error.h"
#include "model/printable.h"
#include "options/suggest.h"
#include "options/values.h"

namespace sidetrack::options {
namespace {

using Arguments = std::span<const std::string_view>;

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

// "-5" is a value: no option has a digit for its letter.
bool begins_option(std::string_view argument) {
  return is_option(argument) && (argument[1] < '0' || argument[1] > '9');
}

// A list of istio-iptables' own.
bool is_short_list(const Flag& flag) { return flag.kind == Kind::list && flag.letter != '\0'; }

// Returns whether the values are names of interfaces, which may begin with a dash.
bool takes_any_word(const Flag& flag) { return is_short_list(flag) && flag.value == "NAMES"; }

// ---- Errors

[[noreturn]] void refuse_command(std::string_view word) {
  std::vector<std::string_view> names = {drop_in_name, "help", "version"};
  for (const CommandInfo& command : commands()) names.push_back(command.name);
  const auto meant = nearest(word, names);
  throw Error(ExitCode::usage, fmt::format("'{}' is not a command", excerpt(word)),
              meant ? fmt::format("did you mean {}?", *meant) : "sidetrack --help lists the commands");
}

[[noreturn]] void refuse_option(Command command, std::string_view argument) {
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

// Refuses an option without a value: a list that is asked for and not given would silently be none. `next`: the word
// after it, if there is one.
[[noreturn]] void refuse_missing(const Flag& flag, std::string_view next) {
  const Given missing{flag, "", ""};
  CommandLine unused;
  flag.set(unused, missing);  // says itself what it expects, unless '' is a value
  std::string hint = next.empty() ? "" : fmt::format("'{}' begins another option", excerpt(next));
  if (flag.kind == Kind::list)
    hint += fmt::format("{}{} '' is the empty list", hint.empty() ? "" : "; ", short_name(flag));
  refuse(missing, flag.choices.empty() ? std::string(flag.value) : fmt::format("one of {}", flag.choices), hint);
}

// ---- Where CLI11 reads a word otherwise than pflag does, it gets one that it reads alike.

class WordsForCli11 {
 public:
  WordsForCli11(Arguments arguments, Command command) : arguments_(arguments), command_(command) {}

  [[nodiscard]] std::vector<std::string> rewritten() {
    for (; next_ < arguments_.size(); ++next_) {
      const std::string_view argument = arguments_[next_];
      if (argument == "--") {
        if (takes_dashes_) words_.emplace_back("--");
        break;
      }
      takes_dashes_ = false;
      if (argument == "++") refuse_end();
      if (!is_option(argument)) {
        words_.emplace_back(argument);
      } else if (argument.find('=') != std::string_view::npos) {
        rewrite_with_value(argument);
      } else {
        check_dashes(argument);
        words_.emplace_back(argument);
        if (const Flag* flag = awaiting_value(argument)) rewrite_next(*flag);
      }
    }
    for (; next_ < arguments_.size(); ++next_) words_.emplace_back(arguments_[next_]);
    return std::move(words_);
  }

 private:
  // CLI11 would take what follows for words of the program.
  [[noreturn]] void refuse_end() const {
    throw Error(ExitCode::usage, "'++': not expected here",
                fmt::format("sidetrack {} --help lists the options", name(command_)));
  }

  // CLI11 takes "-check" for -c with the interface "heck": the slip of those used to Go's flags; "-7" for a word, and
  // "-n-help" for -n and --help.
  void check_dashes(std::string_view argument) const {
    const bool is_long = argument.starts_with("--");
    if (!is_long && argument.size() > 2 && by_name(command_, argument.substr(1, argument.find('=') - 1)) != nullptr)
      refuse_option(command_, argument);
    std::size_t at = is_long ? 2 : 1;
    while (!is_long && at < argument.size() && is_flags_alone(argument.substr(at, 1))) ++at;
    if (at == argument.size()) return;
    const bool is_digit = argument[at] >= '0' && argument[at] <= '9';
    if (is_digit || !CLI::detail::valid_first_char(argument[at]))
      refuse_option(command_, is_long ? std::string(argument) : fmt::format("-{}", argument.substr(at)));
  }

  // It takes "=15001" for the value of "-p=15001", the next word for that of "--envoy-port=", and "--dry-run=" and
  // "--dry-run={}" for true.
  void rewrite_with_value(std::string_view argument) {
    check_dashes(argument);
    const auto equals = argument.find('=');
    const std::string_view value = argument.substr(equals + 1);
    // "-np=15001" is -n and -p=15001; -p80=90 has the value "80=90".
    const Flag* flag = argument[1] == '-' ? by_name(command_, argument.substr(2, equals - 2))
                       : !is_flags_alone(argument.substr(1, equals - 2)) ? nullptr
                                                                         : by_letter(command_, argument[equals - 1]);
    if (flag == nullptr) return words_.emplace_back(argument), void();
    if (argument[1] != '-' && equals > 2) words_.emplace_back(argument.substr(0, equals - 1));
    if (flag->kind == Kind::boolean && (value.empty() || value == "{}")) refuse({*flag, value, ""}, "true or false");
    if (value.empty()) {
      words_.push_back(fmt::format("--{}", flag->name));
      words_.emplace_back();
      takes_dashes_ = is_short_list(*flag);
    } else {
      words_.push_back(fmt::format("--{}={}", flag->name, value));
    }
  }

  // To CLI11 an option with a value takes any word, and a list none that looks like an option. What an injector passes
  // after -k and -c is an annotation of the pod, which must not become --cleanup-only, or an option and its value. A
  // list takes "--" away too, and "++" ends a command.
  void rewrite_next(const Flag& flag) {
    const bool at_end = next_ + 1 == arguments_.size();
    const std::string_view next = at_end ? "" : arguments_[next_ + 1];
    const bool begins = begins_option(next) && !(takes_any_word(flag) && !is_option_with_value(next));
    if (at_end || (begins && !is_short_list(flag))) refuse_missing(flag, next);
    takes_dashes_ = is_short_list(flag);
    if (begins) return;
    ++next_;
    if (next != "++" && !begins_option(next)) return words_.emplace_back(next), void();
    const std::string letters = std::move(words_.back());
    words_.pop_back();
    if (letters[1] != '-' && letters.size() > 2) words_.push_back(letters.substr(0, letters.size() - 1));
    words_.push_back(fmt::format("--{}={}", flag.name, next));
    takes_dashes_ = false;
  }

  // Returns the flag of "-p", "-np" or "--envoy-port", whose value is the next word.
  [[nodiscard]] const Flag* awaiting_value(std::string_view argument) const {
    const Flag* flag = argument.starts_with("--")                                ? by_name(command_, argument.substr(2))
                       : is_flags_alone(argument.substr(1, argument.size() - 2)) ? by_letter(command_, argument.back())
                                                                                 : nullptr;
    return flag != nullptr && flag->kind != Kind::boolean ? flag : nullptr;
  }

  [[nodiscard]] bool is_flags_alone(std::string_view letters) const {
    return std::ranges::all_of(letters, [&](char letter) {
      const Flag* flag = by_letter(command_, letter);
      return flag != nullptr && flag->kind == Kind::boolean;
    });
  }

  // "-b", "--proxy-uid"
  [[nodiscard]] bool is_option_with_value(std::string_view word) const {
    return (word.starts_with("--") || word.size() == 2) && awaiting_value(word) != nullptr;
  }

  Arguments arguments_;
  Command command_;
  std::size_t next_ = 0;
  bool takes_dashes_ = false;  // the last word would take "--" away
  std::vector<std::string> words_;
};

// ---- The commands and their options, as CLI11 knows them

constexpr int any_number = CLI::detail::expected_max_vector_size - 1;

// Knows the command that is called and the options that are mentioned: CLI11 compares each name with all before it,
// which for all of them takes longer than everything else that happens to the command line.
class Parser {
 public:
  explicit Parser(Arguments arguments)
      : first_(arguments.front()), command_(command_named(first_)), arguments_(arguments.subspan(1)) {
    app_.require_subcommand(0, 1);
    if (command_) {
      add(info(*command_));
    } else {
      add_help_or_version();
    }
  }

  CommandWords parse() {
    std::vector<std::string> words = words_for_cli11();
    for (const std::string& word : words) {
      if (is_option(word) && word[1] == '-') names_.push_back(word.substr(2));
      if (is_option(word) && word[1] != '-') letters_ += word;
    }
    words.insert(words.begin(), std::string(first_));
    std::ranges::reverse(words);  // as App::parse wants them
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ExtrasError&) {
      refuse_extras();
    }
    return std::move(result_);
  }

 private:
  // CLI11 without the --help that its public constructor adds: ours is a flag like the others.
  struct App : CLI::App {
    App() : CLI::App("", "", nullptr) {}
  };

  static std::optional<Command> command_named(std::string_view word) {
    if (word == drop_in_name) return Command::apply;
    const auto found = std::ranges::find(commands(), word, &CommandInfo::name);
    return found != commands().end() ? std::optional(found->command) : std::nullopt;
  }

  [[nodiscard]] std::vector<std::string> words_for_cli11() const {
    if (command_) return WordsForCli11(arguments_, *command_).rewritten();
    return {arguments_.begin(), arguments_.end()};
  }

  void add_help_or_version() {
    if (first_.ends_with("version")) {
      app_.add_subcommand("version")->alias("--version")->final_callback([this] { result_.version = true; });
      return;
    }
    CLI::App* help = app_.add_subcommand("help")->alias("--help")->alias("-h")->allow_extras();
    CLI::Option* words = add_words(*help);
    help->final_callback([this, words] { ask_for_help(words->results()); });
  }

  void add(const CommandInfo& info) {
    CLI::App* app = app_.add_subcommand(std::string(info.name));
    if (info.command == Command::apply) app->alias(std::string(drop_in_name));
    // When the command is met, and of its options those in use.
    app->preparse_callback([this, app, command = info.command](std::size_t) {
      for (const Flag& flag : flags()) {
        if (!flag.name.empty() && flag.commands.contains(command)) add(flag, *app);
      }
      CLI::Option* words = add_words(*app);
      app->final_callback([this, command, words] { take(command, words->results()); });
    });
  }

  // Returns the names by which words may mean the flag, as CLI11 wants to hear them: "--envoy-port,-p". Each costs.
  [[nodiscard]] std::string names_in_use(const Flag& flag) const {
    const auto begins = [&](std::string_view word) { return word.substr(0, flag.name.size()) == flag.name; };
    std::string names;
    if (std::ranges::any_of(names_, begins)) names = fmt::format("--{}", flag.name);
    if (flag.letter != '\0' && letters_.find(flag.letter) != std::string::npos)
      names += fmt::format("{}-{}", names.empty() ? "" : ",", flag.letter);
    return names;
  }

  void add(const Flag& flag, CLI::App& app) {
    const std::string names = names_in_use(flag);
    if (names.empty()) return;
    CLI::Option* option = flag.kind == Kind::boolean ? app.add_flag(names) : app.add_option(names);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (is_short_list(flag)) option->expected(0, 1);  // -x -b '*'
    options_.emplace_back(&flag, option);
  }

  static CLI::Option* add_words(CLI::App& app) {
    return app.add_option("words")->expected(any_number)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void take(Command command, std::vector<std::string> words) {
    result_.command = command;
    for (const auto& [flag, option] : options_) {
      if (option->count() == 0) continue;
      result_.flags.push_back({flag, option->results()});
      if (flag->name == "help")
        result_.help = boolean({{*flag, option->results().back(), ""}, option->results().back()});
    }
    result_.words = std::move(words);
  }

  // What the word help is followed by: a command, or nothing for the program.
  void ask_for_help(const std::vector<std::string>& words) {
    result_.help = true;
    if (words.empty() || words[0] == "help" || words[0] == "version") return;
    result_.command = command_named(words[0]);
    if (words.size() > 1) {
      throw Error(ExitCode::usage, fmt::format("'{}': not expected after '{}'", excerpt(words[1]), excerpt(words[0])),
                  "help shows one command");
    }
    if (!result_.command) refuse_command(words[0]);
  }

  [[noreturn]] void refuse_extras() const {
    if (app_.get_subcommands().empty() || !app_.remaining().empty()) refuse_command(first_);
    std::vector<std::string> left = app_.get_subcommands().front()->remaining();
    std::erase(left, "--");
    if (command_) refuse_option(*command_, left.front());
    throw Error(ExitCode::usage, fmt::format("'{}': not expected after '{}'", excerpt(left.front()), first_),
                "the version takes no options");
  }

  App app_;
  std::string_view first_;
  std::optional<Command> command_;  // that the first word names
  Arguments arguments_;             // after the first
  std::vector<std::string> names_;  // of the words that begin with two dashes, without them
  std::string letters_;             // of those that begin with one
  std::vector<std::pair<const Flag*, CLI::Option*>> options_;
  CommandWords result_;
};

}  // namespace

const Occurrence* CommandWords::find(const Flag& flag) const {
  const auto found = std::ranges::find(flags, &flag, &Occurrence::flag);
  return found != flags.end() ? &*found : nullptr;
}

const Occurrence* CommandWords::find(std::string_view name) const {
  const auto found = std::ranges::find(flags, name, [](const Occurrence& each) { return each.flag->name; });
  return found != flags.end() ? &*found : nullptr;
}

CommandWords read_words(Arguments arguments) { return Parser(arguments).parse(); }

}  // namespace sidetrack::options
