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
  std::vector<std::string_view> names = {drop_in_name, drop_in_clean_name, "help", "version"};
  for (const CommandInfo& command : commands()) names.push_back(command.name);
  const auto meant = nearest(word, names);
  throw Error(ExitCode::usage, fmt::format("'{}' is not a command", excerpt(word)),
              meant ? fmt::format("did you mean {}?", *meant) : "sidetrack --help lists the commands");
}

// `called`: the command, or the word that stands for it.
[[noreturn]] void refuse_option(Command command, std::string_view called, std::string_view argument) {
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
  const auto message = fmt::format("{}: not an option of {}", excerpt(option), called);
  if (!takers.empty() && !find_flag(command, same))
    throw Error(ExitCode::usage, message, fmt::format("it belongs to: {}", takers));

  std::vector<std::string_view> names;
  for (const Flag& flag : flags()) {
    if (flag.commands.contains(command) && !flag.name.empty()) names.push_back(flag.name);
  }
  names.push_back("version");  // of the program, not of a command
  const auto meant = option == "-v" || option == "-V" ? "version" : nearest(option.substr(is_long ? 2 : 1), names);
  if (meant == "version") throw Error(ExitCode::usage, message, "did you mean sidetrack --version?");
  throw Error(
      ExitCode::usage, message,
      meant ? fmt::format("did you mean --{}?", *meant) : fmt::format("sidetrack {} --help lists the options", called));
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

// ---- The forms that pflag takes

// Makes of each option a word by its long name, with its value in it: CLI11 reads other forms otherwise than pflag
// does.
class LongForms {
 public:
  LongForms(Arguments arguments, Command command) : arguments_(arguments), command_(command) {}

  [[nodiscard]] std::vector<std::string> rewritten() {
    for (; next_ < arguments_.size() && arguments_[next_] != "--"; ++next_) {
      const std::string_view argument = arguments_[next_];
      if (argument == "++") refuse_end();
      if (!is_option(argument)) {
        words_.emplace_back(argument);
      } else if (argument.starts_with("--")) {
        rewrite_name(argument);
      } else {
        rewrite_letters(argument);
      }
    }
    for (; next_ < arguments_.size(); ++next_) words_.emplace_back(arguments_[next_]);
    return std::move(words_);
  }

  [[nodiscard]] bool mentions(const Flag& flag) const { return std::ranges::find(flags_, &flag) != flags_.end(); }

 private:
  // CLI11 would take what follows for words of the program.
  [[noreturn]] void refuse_end() const {
    throw Error(ExitCode::usage, "'++': not expected here",
                fmt::format("sidetrack {} --help lists the options", name(command_)));
  }

  // --envoy-port 15001, --envoy-port=15001, --dry-run, --dry-run=false
  void rewrite_name(std::string_view argument) {
    const auto equals = argument.find('=');
    const Flag* flag = by_name(command_, argument.substr(2, equals == argument.npos ? equals : equals - 2));
    if (flag == nullptr) refuse_option(command_, called(), argument);
    if (equals != argument.npos) return add(*flag, argument.substr(equals + 1));
    flag->kind == Kind::boolean ? add(*flag) : add_next(*flag);
  }

  // -p 15001, -p15001, -p=15001, -n, -n=false, -np 15001
  void rewrite_letters(std::string_view argument) {
    // "-check" would be -c with the interface "heck": the slip of those used to Go's flags.
    if (argument.size() > 2 && by_name(command_, argument.substr(1, argument.find('=') - 1)) != nullptr)
      refuse_option(command_, called(), argument);
    for (std::size_t at = 1; at < argument.size(); ++at) {
      const Flag* flag = by_letter(command_, argument[at]);
      if (flag == nullptr) refuse_option(command_, called(), fmt::format("-{}", argument.substr(at)));
      const std::string_view rest = argument.substr(at + 1);
      if (rest.starts_with('=')) return add(*flag, rest.substr(1));
      if (flag->kind != Kind::boolean) return rest.empty() ? add_next(*flag) : add(*flag, rest);
      add(*flag);
    }
  }

  void add(const Flag& flag) {
    flags_.push_back(&flag);
    words_.push_back(fmt::format("--{}", flag.name));
  }
  // To CLI11 "--dry-run=" and "--dry-run={}" are true, and the value of "--envoy-port=" is the next word.
  void add(const Flag& flag, std::string_view value) {
    if (flag.kind == Kind::boolean && (value.empty() || value == "{}")) refuse(Given{flag, value, ""}, "true or false");
    add(flag);
    if (value.empty()) {
      words_.emplace_back();
    } else {
      words_.back() += fmt::format("={}", value);
    }
  }

  // What an injector passes after -k and -c is an annotation of the pod, which must not become --cleanup-only, or an
  // option and its value. Another list of istio-iptables' own is empty where an option follows.
  void add_next(const Flag& flag) {
    const bool at_end = next_ + 1 == arguments_.size();
    const std::string_view next = at_end ? "" : arguments_[next_ + 1];
    const bool begins = begins_option(next) && !(takes_any_word(flag) && !is_option_with_value(next));
    if (at_end || (begins && !is_short_list(flag))) refuse_missing(flag, next);
    add(flag, begins ? "" : next);
    if (!begins) ++next_;
  }

  [[nodiscard]] std::string_view called() const {
    const bool cleans = !arguments_.empty() && arguments_.front() == "--cleanup-only";  // which that word stands for
    return cleans ? drop_in_clean_name : name(command_);
  }

  // "-b", "--proxy-uid"
  [[nodiscard]] bool is_option_with_value(std::string_view word) const {
    const Flag* flag = flag_of(word, command_);
    return flag != nullptr && flag->kind != Kind::boolean;
  }

  Arguments arguments_;
  Command command_;
  std::size_t next_ = 0;
  std::vector<std::string> words_;
  std::vector<const Flag*> flags_;  // those of `words_`
};

// ---- The commands and their options, as CLI11 knows them

constexpr int any_number = CLI::detail::expected_max_vector_size - 1;

// Knows the command that is called and the options that are mentioned: CLI11 compares each name with all before it,
// which for all of them takes longer than everything else that happens to the command line.
class Parser {
 public:
  explicit Parser(Arguments arguments) : first_(arguments.front()), words_(arguments.begin() + 1, arguments.end()) {
    app_.require_subcommand(0, 1);
    if (const CommandInfo* command = command_named(first_)) {
      LongForms forms(arguments.subspan(1), command->command);
      words_ = forms.rewritten();
      add(*command, forms);
    } else {
      add_help_or_version();
    }
  }

  CommandWords parse() {
    words_.insert(words_.begin(), std::string(first_));
    std::ranges::reverse(words_);  // as App::parse wants them
    try {
      app_.parse(std::move(words_));
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

  static const CommandInfo* command_named(std::string_view word) {
    return word == drop_in_name ? &info(Command::apply) : find_command(word);
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

  void add(const CommandInfo& info, const LongForms& forms) {
    CLI::App* app = app_.add_subcommand(std::string(info.name));
    if (info.command == Command::apply) app->alias(std::string(drop_in_name));
    for (const Flag& flag : flags()) {
      if (!forms.mentions(flag)) continue;
      const std::string long_name = fmt::format("--{}", flag.name);
      CLI::Option* option = flag.kind == Kind::boolean ? app->add_flag(long_name) : app->add_option(long_name);
      options_.emplace_back(&flag, option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
    }
    CLI::Option* words = add_words(*app);
    app->final_callback([this, command = info.command, words] { take(command, words->results()); });
  }

  static CLI::Option* add_words(CLI::App& app) {
    return app.add_option("words")->expected(any_number)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void take(Command command, std::vector<std::string> words) {
    result_.command = command;
    for (const auto& [flag, option] : options_) {
      result_.flags.push_back({flag, option->results()});
      if (flag->name == "help") result_.help = boolean(Given{*flag, option->results().back(), ""});
    }
    result_.words = std::move(words);
  }

  // What the word help is followed by: a command, or nothing for the program.
  void ask_for_help(const std::vector<std::string>& words) {
    result_.help = true;
    if (words.empty() || words[0] == "help" || words[0] == "version") return;
    const CommandInfo* command = command_named(words[0]);
    if (words.size() > 1) {
      throw Error(ExitCode::usage, fmt::format("'{}': not expected after '{}'", excerpt(words[1]), excerpt(words[0])),
                  "help shows one command");
    }
    if (command == nullptr) refuse_command(words[0]);
    result_.command = command->command;
  }

  [[noreturn]] void refuse_extras() const {
    if (app_.get_subcommands().empty() || !app_.remaining().empty()) refuse_command(first_);
    std::vector<std::string> left = app_.get_subcommands().front()->remaining();
    std::erase(left, "--");
    throw Error(ExitCode::usage, fmt::format("'{}': not expected after '{}'", excerpt(left.front()), first_),
                "the version takes no options");
  }

  App app_;
  std::string_view first_;
  std::vector<std::string> words_;  // after the first
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
