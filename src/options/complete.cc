// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "model/scan.h"
#include "options/command_words.h"
#include "options/flags.h"
#include "options/options.h"
#include "system/folder.h"

namespace sidetrack {
namespace {

// What the name of an option's value says of its values, where the table has no choices.
struct NamedValue {
  std::string_view name;       // Flag::value
  std::string_view words;      // "a|b"
  std::string_view directory;  // of whose files the names are values
  bool files = false;          // paths are
};
constexpr NamedValue named_values[] = {
    {"PORTS|'*'", "*", ""},
    {"CIDRS|'*'", "*", ""},
    {"NAME", "", "/sys/class/net"},
    {"NAMES", "", "/sys/class/net"},
    {"FILE", "", "", true},
    {"PATH", "", "", true},
    {"PATH|NAME", "", "/run/netns", true},
    {"PID", "", "/proc"},
    {"TARGET", "stdout|stderr", "", true},
    {"[SCOPE:]LEVEL", log_levels, ""},
};

class Completion {
 public:
  explicit Completion(std::string_view word) : rest_(word) {}

  void offer(std::string_view word, std::string_view about) {
    if (word.starts_with(rest_)) offered_ += fmt::format("{}\t{}\n", word, about);
  }

  void offer_commands() {
    for (const CommandInfo& command : commands()) offer(command.name, command.summary);
  }

  void offer_options(Command command) {
    for (const Flag& flag : flags()) {
      if (flag.name.empty() || flag.group == Group::former || !flag.commands.contains(command)) continue;
      offer(fmt::format("--{}", flag.name), flag.description);
      if (flag.letter != '\0') offer(fmt::format("-{}", flag.letter), flag.description);
    }
  }

  void offer_choices(std::string_view choices) {
    for (const std::string_view choice : each_choice(choices)) offer(choice, "");
  }

  // The values of the flag; of a list, the next one, or @FILE.
  void offer_values(const Flag& flag) {
    if (flag.kind == Kind::list && rest_.starts_with('@')) {
      keep(1);
      kind_ = "files";
      return;
    }
    if (flag.kind == Kind::list) keep(rest_.rfind(',') + 1);
    offer_choices(flag.choices);
    const auto* const named = std::ranges::find(named_values, flag.value, &NamedValue::name);
    if (flag.kind == Kind::list && !flag.value.ends_with("'*'")) kind_ = "list";
    if (!flag.choices.empty() || named == std::end(named_values)) return;
    offer_choices(named->words);
    if (named->files) kind_ = "files";
    if (named->directory.empty()) return;
    for (const FolderEntry& entry : entries_of(std::string(named->directory)).value_or(std::vector<FolderEntry>())) {
      if (named->directory != "/proc" || to_number<std::uint32_t>(entry.name)) offer(entry.name, "");
    }
  }

  // Leaves so many bytes of the word as they are.
  void keep(std::size_t bytes) {
    kept_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  [[nodiscard]] std::string text() const { return fmt::format("{}\t{}\n{}", kind_, kept_, offered_); }

 private:
  std::string_view kind_ = "words";
  std::string kept_;
  std::string_view rest_;
  std::string offered_;
};

const Flag* option_with_value(Command command, std::string_view word) {
  const Flag* flag = flag_of(word, command);
  return flag != nullptr && !flag->value.empty() ? flag : nullptr;
}

// The words from the first one after the command; the last is being typed.
void complete(const CommandInfo& info, std::span<const std::string_view> words, Completion& completion) {
  const std::string_view word = words.back();
  const auto equals = word.find('=');
  if (!word.starts_with('-')) {
    const Flag* flag = words.size() > 1 ? option_with_value(info.command, words[words.size() - 2]) : nullptr;
    if (flag != nullptr) return completion.offer_values(*flag);
    if (words.size() <= info.words.size()) completion.offer_choices(info.words[words.size() - 1]);
  } else if (equals == std::string_view::npos) {
    completion.offer_options(info.command);
  } else if (const Flag* flag = option_with_value(info.command, word.substr(0, equals))) {
    completion.keep(equals + 1);
    completion.offer_values(*flag);
  }
}

}  // namespace

std::string complete(std::span<const std::string_view> words) {
  if (words.size() < 2) return "";
  Completion completion(words.back());
  const std::string_view program = words.front().substr(words.front().rfind('/') + 1);
  const std::string_view first = words[1];
  const CommandInfo* command = find_command(first);
  const bool has_options_alone = program == options::drop_in_name || first.starts_with('-');
  if (has_options_alone || (first == options::drop_in_name && words.size() > 2)) {
    if (words.size() == 2 && program != options::drop_in_name) completion.offer("--version", "the version");
    complete(info(Command::apply), words.subspan(has_options_alone ? 1 : 2), completion);
  } else if (words.size() == 2) {
    completion.offer_commands();
    completion.offer(options::drop_in_name, "the form of istio-iptables");
    completion.offer("help", "the help of a command");
    completion.offer("version", "the version");
  } else if (first == "help" && words.size() == 3) {
    completion.offer_commands();
  } else if (command != nullptr) {
    complete(*command, words.subspan(2), completion);
  }
  return completion.text();
}

}  // namespace sidetrack
