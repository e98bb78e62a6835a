// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "completion/script.h"

namespace sidetrack::completion_script {
namespace {

// bash splits the line at the characters of COMP_WORDBREAKS: "--backend=auto" is three words, unless the user took the
// '=' out of it. Bare files and lists are offered whole: bash replaces the word.
constexpr const char* bash_beginning =
    R"(# Completion of sidetrack and istio-iptables by bash:  source <(sidetrack completion bash)

_sidetrack_words() { # WORD...: those that continue what is typed
  local word
  for word; do
    if [[ $word == "$current"* ]]; then COMPREPLY+=("$before$word"); fi
  done
}

_sidetrack_files() { # [PREFIX]
  local file IFS=$'\n'
  compopt -o filenames -o nospace 2>/dev/null
  for file in $(compgen -f -- "$current"); do
    if [[ -d $file ]]; then file+=/; fi
    COMPREPLY+=("$before$file")
  done
}

_sidetrack_items() { # WORD...: of a list, after its last comma; or @FILE
  if [[ $current == @* ]]; then before+=@ current=${current#@} file=1; fi
  if [[ -n $file ]]; then
    _sidetrack_files
    return
  fi
  if [[ $current == *,* ]]; then before+=${current%,*}, current=${current##*,}; fi
  _sidetrack_words "$@"
}

_sidetrack_names() { # FOLDER/*: the names of the files there
  if [[ -e $1 ]]; then _sidetrack_words "${@##*/}"; fi
}

_sidetrack_value() { # OPTION
  case $1 in
)";

constexpr const char* completing_function = R"(  esac
}

_sidetrack() {
  local current=${COMP_WORDS[COMP_CWORD]} previous='' before='' command='' file='' first=1 place=$COMP_CWORD
  COMPREPLY=()
  if [[ $current == [=@] && $COMP_WORDBREAKS == *"$current"* ]]; then
    current='' place=$((place + 1))
  fi
  if [[ ${COMP_WORDS[place - 1]} == @ ]]; then file=1 place=$((place - 1)); fi
  if [[ ${COMP_WORDS[place - 1]} == = ]]; then place=$((place - 1)); fi
  previous=${COMP_WORDS[place - 1]}
  if [[ $current == --*=* ]]; then
    previous=${current%%=*} before=$previous= current=${current#*=}
  fi

  if [[ ${COMP_WORDS[0]##*/} == istio-iptables ]]; then
    command=apply
  elif [[ ${COMP_WORDS[1]} == istio-iptables && $COMP_CWORD -gt 1 ]]; then
    command=apply first=2
  elif [[ ${COMP_WORDS[1]} == -* ]]; then
    command=apply
  elif ((COMP_CWORD == 1)); then
    _sidetrack_words istio-iptables help version)";

std::string cased(const std::string& patterns, const std::string& what) {
  return fmt::format("    {}) {} ;;\n", patterns, what);
}

// "--format", or "apply:--format" where another row of the same name says otherwise.
std::string patterns(const Flag& flag) {
  const auto rows = std::ranges::count(flags(), flag.name, &Flag::name);
  const auto before = rows > 1 ? takers(flag) : std::vector<std::string_view>{"*"};
  std::vector<std::string> patterns;
  for (const std::string_view command : before) {
    patterns.push_back(fmt::format("{}:--{}", command, flag.name));
    if (flag.letter != '\0') patterns.push_back(fmt::format("{}:-{}", command, flag.letter));
  }
  return fmt::format("{}", fmt::join(patterns, " | "));
}

std::string completed(const Flag& flag) {
  const Offer offered = offer(flag);
  // Quoted already: the shell would expand a bare *.
  const std::string words = joined(offered.words) == "*" ? R"("'*'")" : joined(offered.words);
  const std::string words_or_items = flag.kind == Kind::list ? "_sidetrack_items" : "_sidetrack_words";
  switch (offered.source) {
    case Source::none:
      break;
    case Source::files:
      return words.empty() ? "_sidetrack_files" : fmt::format("_sidetrack_words {}; _sidetrack_files", words);
    case Source::namespaces:
      return "_sidetrack_names /run/netns/*; _sidetrack_files";
    case Source::processes:
      return "_sidetrack_names /proc/[0-9]*";
    case Source::interfaces:
      return flag.kind == Kind::list ? "set -- /sys/class/net/*; _sidetrack_items \"${@##*/}\""
                                     : "_sidetrack_names /sys/class/net/*";
  }
  if (words.empty()) return flag.kind == Kind::list ? words_or_items : ":";
  return fmt::format("{} {}", words_or_items, words);
}

std::string options_of(Command command) {
  std::vector<std::string> options;
  for (const Flag& flag : flags()) {
    if (flag.name.empty() || !flag.commands.contains(command)) continue;
    options.push_back(fmt::format("--{}", flag.name));
    if (flag.letter != '\0') options.push_back(fmt::format("-{}", flag.letter));
  }
  return fmt::format("{}", fmt::join(options, " "));
}

// The words that a command takes before its options.
std::string words_of(const CommandInfo& command) {
  std::string text;
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    if (command.words[i].empty()) continue;
    text +=
        cased(fmt::format("{}:{}", command.name, i + 1), "_sidetrack_words " + joined(each_choice(command.words[i])));
  }
  return text;
}

}  // namespace

std::string bash() {
  std::string names;
  for (const CommandInfo& command : commands()) names += fmt::format(" {}", command.name);

  std::string text = bash_beginning;
  for (const Flag& flag : flags()) {
    if (!flag.value.empty() && !flag.name.empty()) text += cased(patterns(flag), completed(flag));
  }
  text += cased("*", "return 1");
  text += completing_function + names + R"(
    return
  else
    command=${COMP_WORDS[1]} first=2
  fi

  if [[ $current != -* ]] && _sidetrack_value "$command:$previous"; then return; fi
  case $command:$((COMP_CWORD - first + 1)) in
)";
  text += cased("help:1", "_sidetrack_words" + names);
  for (const CommandInfo& command : commands()) text += words_of(command);
  text += R"(  esac
  if [[ $current != -* ]]; then return; fi
  case $command in
)";
  for (const CommandInfo& command : commands()) {
    text += cased(std::string(command.name), "_sidetrack_words " + options_of(command.command));
  }
  return text + R"(  esac
  if ((COMP_CWORD == 1)) && [[ ${COMP_WORDS[0]##*/} != istio-iptables ]]; then _sidetrack_words --version; fi
}

complete -F _sidetrack sidetrack istio-iptables
)";
}

}  // namespace sidetrack::completion_script
