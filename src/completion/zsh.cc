// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "completion/script.h"

namespace sidetrack::completion_script {
namespace {

constexpr const char* zsh_beginning = R"(#compdef sidetrack istio-iptables
# Completion of sidetrack and istio-iptables by zsh:  source <(sidetrack completion zsh)

_sidetrack_items() { # WORD...: of a list, after its last comma; or @FILE
  if compset -P @; then
    _files
  else
    compset -P '*,'
    if [[ $1 == '*' ]]; then compadd -- "$@"; else compadd -qS , -- "$@"; fi
  fi
}

_sidetrack_namespaces() {
  local -a names=(/run/netns/*(N:t))
  compadd -- $names
  _files
}

_sidetrack_processes() {
  local -a processes=(/proc/[0-9]*(N:t))
  compadd -- $processes
}

_sidetrack_interfaces() {
  local -a interfaces=(/sys/class/net/*(N:t))
  if [[ $1 == list ]]; then _sidetrack_items $interfaces; else compadd -- $interfaces; fi
}

_sidetrack_targets() {
  compadd -- "$@"
  _files
}

)";

constexpr const char* outcome = R"(  if [[ $service == istio-iptables ]]; then
    _sidetrack_apply
    return
  fi
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command names
    compadd -- istio-iptables help version
    return
  fi
  case $words[2] in
    -*)
      if (( CURRENT == 2 )); then compadd -- --version; fi
      _sidetrack_apply ;;
    help) if (( CURRENT == 3 )); then _describe command names; fi ;;
    istio-iptables) shift words; (( CURRENT-- )); _sidetrack_apply ;;
    *)
      if [[ -n ${(M)names:#$words[2]:*} ]]; then
        shift words
        (( CURRENT-- ))
        _sidetrack_$words[1]
      fi ;;
  esac
}

# Sourced, or found by the shell under the name of the function.
if [[ $funcstack[1] == _sidetrack ]]; then _sidetrack "$@"; else compdef _sidetrack sidetrack istio-iptables; fi
)";

std::string zsh_quoted(std::string_view text) { return "'" + replaced(text, '\'', "'\\''") + "'"; }

// In the brackets of _arguments, and between its colons.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// What _arguments does to complete the value. A blank in front: called as it stands.
std::string action(const Flag& flag) {
  const Offer offered = offer(flag);
  const std::string words = joined(offered.words) == "*" ? R"(\*)" : joined(offered.words);
  const bool list = flag.kind == Kind::list;
  switch (offered.source) {
    case Source::none:
      break;
    case Source::files:
      return words.empty() ? "_files" : " _sidetrack_targets " + words;
    case Source::namespaces:
      return " _sidetrack_namespaces";
    case Source::processes:
      return " _sidetrack_processes";
    case Source::interfaces:
      return list ? " _sidetrack_interfaces list" : " _sidetrack_interfaces";
  }
  if (list) return words.empty() ? " _sidetrack_items" : " _sidetrack_items " + words;
  return words.empty() ? " " : fmt::format("({})", words);
}

std::string specification(const Flag& flag) {
  const bool boolean = flag.value.empty();
  const bool repeated = flag.kind == Kind::list || flag.kind == Kind::text;
  const std::string long_form = fmt::format("--{}{}", flag.name, boolean ? "" : "=");
  std::string rest = fmt::format("[{}]", escaped(flag.description));
  if (!boolean) rest += fmt::format(":{}:{}", escaped(flag.value), action(flag));
  if (flag.letter == '\0') return zsh_quoted((repeated ? "*" : "") + long_form + rest);
  const std::string before = repeated ? "'*'" : fmt::format("'(-{} --{})'", flag.letter, flag.name);
  return fmt::format("{}{{-{}{},{}}}{}", before, flag.letter, boolean ? "" : "+", long_form, zsh_quoted(rest));
}

std::string function(const CommandInfo& command) {
  std::string text = fmt::format("_sidetrack_{}() {{\n  _arguments -s -S :", command.name);
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    if (command.words[i].empty()) continue;
    const std::string words = joined(each_choice(command.words[i]));
    text += " \\\n    " + zsh_quoted(fmt::format("{}:{}:({})", i + 1,
                                                 command.arguments.substr(0, command.arguments.find(' ')), words));
  }
  for (const Flag& flag : flags()) {
    if (!flag.name.empty() && flag.commands.contains(command.command)) text += " \\\n    " + specification(flag);
  }
  return text + "\n}\n\n";
}

}  // namespace

std::string zsh() {
  std::string text = zsh_beginning;
  for (const CommandInfo& command : commands()) text += function(command);
  text += "_sidetrack() {\n  local -a names=(\n";
  for (const CommandInfo& command : commands()) {
    text += fmt::format("    {}\n", zsh_quoted(fmt::format("{}:{}", command.name, escaped(command.summary))));
  }
  return text + "  )\n" + outcome;
}

}  // namespace sidetrack::completion_script
