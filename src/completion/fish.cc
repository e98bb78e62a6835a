// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "completion/script.h"

namespace sidetrack::completion_script {
namespace {

constexpr const char* fish_beginning =
    R"(# Completion of sidetrack and istio-iptables by fish:  sidetrack completion fish | source

# COMMAND...: is it one of these whose options are typed? '': none yet
function __sidetrack_is
    set -l words (commandline -opc)
    set -l command ''
    if string match -qr '(^|/)istio-iptables$' -- $words[1]
        set command apply
    else if set -q words[2]
        set command $words[2]
        string match -qr '^(-|istio-iptables$)' -- $command
        and set command apply
    else if string match -q -- '-*' (commandline -ct)
        set command apply
    end
    contains -- $command $argv
end

# NUMBER COMMAND: is the word being typed the Nth after this command?
function __sidetrack_word
    set -l words (commandline -opc)
    test (count $words) -eq (math $argv[1] + 1)
    and test "$words[2]" = $argv[2]
end

# WORD...: of a list, after its last comma; or @FILE
function __sidetrack_items
    set -l typed (string replace -r '^(--[^=]*=|-[^-])' '' -- (commandline -ct))
    if string match -q '@*' -- $typed
        printf '@%s\n' (__fish_complete_path (string sub -s 2 -- $typed))
    else
        set -l before (string match -r '^.*,' -- $typed)
        printf '%s\n' "$before"$argv
    end
end

# FOLDER: the names of the files there
function __sidetrack_names
    for file in $argv[1]/*
        string replace -r '.*/' '' -- $file
    end
end

complete -c sidetrack -f
complete -c istio-iptables -f
complete -c sidetrack -n "__sidetrack_is ''" -a istio-iptables -d 'the form of istio-iptables'
complete -c sidetrack -n "__sidetrack_is ''" -a help -d 'the help of a command'
complete -c sidetrack -n "__sidetrack_is ''" -a version -d 'the version'
)";

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(replaced(text, '\\', "\\\\"), '\'', "\\'") + "'";
}

// What `complete` is told of the option's value.
std::string value(const Flag& flag) {
  const Offer offered = offer(flag);
  const std::string words = joined(offered.words);
  const bool list = flag.kind == Kind::list;
  switch (offered.source) {
    case Source::none:
      break;
    case Source::files:
      return words.empty() ? " -r -F" : " -r -F -a " + fish_quoted(words);
    case Source::namespaces:
      return " -r -F -a '(__sidetrack_names /run/netns)'";
    case Source::processes:
      return " -x -a '(__fish_complete_pids)'";
    case Source::interfaces:
      return list ? " -x -a '(__sidetrack_items (__sidetrack_names /sys/class/net))'"
                  : " -x -a '(__sidetrack_names /sys/class/net)'";
  }
  if (list) return " -x -a " + fish_quoted(fmt::format("(__sidetrack_items {})", words == "*" ? "'*'" : words));
  return words.empty() ? " -x" : " -x -a " + fish_quoted(words);
}

std::string option(const Flag& flag) {
  std::string text =
      fmt::format("complete{} -c sidetrack -n '__sidetrack_is {}'",
                  flag.commands.contains(Command::apply) ? " -c istio-iptables" : "", joined(takers(flag)));
  if (flag.letter != '\0') text += fmt::format(" -s {}", flag.letter);
  text += fmt::format(" -l {} -d {}", flag.name, fish_quoted(flag.description));
  return text + (flag.value.empty() ? "" : value(flag)) + "\n";
}

}  // namespace

std::string fish() {
  std::string text = fish_beginning;
  for (const CommandInfo& command : commands()) {
    const std::string described = fmt::format("-a {} -d {}\n", command.name, fish_quoted(command.summary));
    text += "complete -c sidetrack -n \"__sidetrack_is ''\" " + described;
    text += "complete -c sidetrack -n '__sidetrack_word 1 help' " + described;
    for (std::size_t i = 0; i < command.words.size(); ++i) {
      if (command.words[i].empty()) continue;
      text += fmt::format("complete -c sidetrack -n '__sidetrack_word {} {}' -a {}\n", i + 1, command.name,
                          fish_quoted(joined(each_choice(command.words[i]))));
    }
  }
  text += "complete -c sidetrack -n 'test (count (commandline -opc)) -eq 1' -l version -d 'the version'\n";
  for (const Flag& flag : flags()) {
    if (!flag.name.empty()) text += option(flag);
  }
  return text;
}

}  // namespace sidetrack::completion_script
