// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ranges>

#include "model/error.h"
#include "model/printable.h"
#include "options/annotations.h"
#include "options/command_words.h"
#include "options/flags.h"

namespace sidetrack {
namespace {

using options::CommandWords;
using Arguments = std::span<const std::string_view>;

bool asks_for_version(std::string_view word) { return word == "--version" || word == "version"; }

// The name by which a program is called.
std::string_view base_name(std::string_view program) { return program.substr(program.rfind('/') + 1); }

// Returns the words by which CLI11 tells the command, which has no command that options alone mean. Sets drop_in.
std::vector<std::string_view> with_command(Arguments arguments, CommandLine& line) {
  using options::drop_in_clean_name;
  using options::drop_in_name;
  std::string_view name = base_name(arguments.front());
  arguments = arguments.subspan(1);
  if (!arguments.empty() && (arguments.front() == drop_in_name || arguments.front() == drop_in_clean_name)) {
    name = arguments.front();
    arguments = arguments.subspan(1);
  }
  const bool cleans = name == drop_in_clean_name;
  line.drop_in = cleans || name == drop_in_name;
  const std::string_view first = arguments.empty() ? "" : arguments.front();
  if (!asks_for_version(first) && first != "--help" && first != "-h") line.drop_in |= first.starts_with('-');
  std::vector<std::string_view> words(arguments.begin(), arguments.end());
  if (line.drop_in && !asks_for_version(first)) {
    if (cleans) words.insert(words.begin(), "--cleanup-only");
    words.insert(words.begin(), drop_in_name);
  }
  return words;
}

// Whether the options that make rules have a meaning for the command, from wherever they come.
bool takes_options_of_rules(const CommandLine& line) {
  if (!line.command) return false;
  switch (*line.command) {
    case Command::apply:
    case Command::render:
    case Command::verify:
      return true;
    case Command::diff:
      return !line.clean && line.compared.empty();
    case Command::explain:
    case Command::map:
    case Command::lint:
      return line.plan || !line.manifest.pod.empty();
    default:
      return false;
  }
}

// Kubernetes gives every container NAME_PORT=tcp://10.96.0.1:80 for each service of the namespace: with a service named
// "envoy" that is ENVOY_PORT, and was not meant for us.
bool is_service_link(std::string_view value) {
  return value.starts_with("tcp://") || value.starts_with("udp://") || value.starts_with("sctp://");
}

// An empty variable says nothing where empty is no value.
bool says_something(const Flag& flag, std::string_view value) {
  if (flag.kind == Kind::list || flag.kind == Kind::text) return true;
  return !value.empty() && !is_service_link(value);
}

// What the command line leaves open.
void set_from_environment(CommandLine& line, const CommandWords& given, const Environment& environment) {
  for (const Flag& flag : flags()) {
    if (!flag.commands.contains(*line.command) || given.find(flag) != nullptr) continue;
    for (const std::string_view variable : std::views::reverse(flag.variables)) {
      const auto value = variable.empty() ? std::nullopt : environment(variable);
      if (!value || !says_something(flag, *value)) continue;
      flag.set(line, {flag, *value, variable});
      break;
    }
  }
}

// The place of the one word that the command takes among those that it knows.
std::size_t choice_of_words(const CommandLine& line, const std::vector<std::string>& words, std::string_view what) {
  const CommandInfo& command = info(*line.command);
  const auto known = each_choice(command.words[0]);
  const auto refuse = [&](const std::string& given) {
    throw Error(ExitCode::usage, fmt::format("{}: {}: expected one of {}", command.name, given, fmt::join(known, ", ")),
                fmt::format("for example: {}", command.example));
  };
  if (words.empty()) refuse(fmt::format("no {} given", what));
  if (words.size() > 1) refuse(fmt::format("more than one {} given", what));
  const auto found = std::ranges::find(known, words.front());
  if (found == known.end()) refuse(fmt::format("'{}'", excerpt(words.front())));
  return static_cast<std::size_t>(found - known.begin());
}

bool takes_words(const CommandLine& line) {
  return line.command == Command::explain || line.command == Command::completion || line.command == Command::cni ||
         (line.command == Command::diff && line.effect);
}

void refuse_words(const CommandLine& line, const CommandWords& given, Arguments arguments) {
  if (takes_words(line) || given.words.empty()) return;
  const std::string& word = given.words.front();
  const auto place = std::find(arguments.rbegin(), arguments.rend(), word);
  std::string before = arguments.rend() - place > 1 ? std::string(place[1]) : "";
  if (before == "--cleanup-only") before.clear();  // what istio-clean-iptables stands for
  std::string hint;
  if (find_command(word) != nullptr) {
    hint = fmt::format("the command comes first: sidetrack {} ...", word);
  } else if (word == "help" || !takes_options_of_rules(line)) {
    hint = fmt::format("sidetrack {} --help lists the options", name(*line.command));
  } else if (word == "true" || word == "false") {
    hint = fmt::format("write it as {}={}", before.empty() ? "--flag" : excerpt(before), word);
  } else {
    hint = "quote '*' so that the shell does not expand it; separate the items of a list with commas only";
  }
  throw Error(ExitCode::usage,
              before.empty() ? fmt::format("'{}': not expected here", excerpt(word))
                             : fmt::format("'{}': not expected after '{}'", excerpt(word), excerpt(before)),
              std::move(hint));
}

[[noreturn]] void refuse_combination(const std::string& message, std::string hint = {}) {
  throw Error(ExitCode::usage, message, std::move(hint));
}

void check_cni(const CommandLine& line, const CommandWords& given) {
  const std::string_view action = each_choice(info(Command::cni).words[0])[static_cast<std::size_t>(line.cni.action)];
  constexpr std::string_view of_install[] = {"backend", "exclude-namespaces", "plugin-log", "allow-dynamic"};
  for (const auto& [flag, values] : given.flags) {
    if (line.cni.action != CniAction::install &&
        (makes_rules(flag->group) || std::ranges::find(of_install, flag->name) != std::end(of_install)))
      refuse_combination(fmt::format("{}: without effect on cni {}", spelled(*flag), action), "it is for cni install");
    if (line.cni.action != CniAction::uninstall && flag->name == "now")
      refuse_combination(fmt::format("--now: without effect on cni {}", action), "it is for cni uninstall");
    if (line.cni.action == CniAction::status && flag->name == "watch")
      refuse_combination("--watch: not for cni status, which looks once",
                         "--watch goes with cni install and cni uninstall");
    if (line.cni.action != CniAction::status && (flag->name == "json" || flag->name == "format"))
      refuse_combination(fmt::format("{}: cni {} prints no result", spelled(*flag), action), "it goes with cni status");
  }
}

// What the manifest says is not to be said again.
void check_pod(const CommandWords& given, const OptionsOfPod& of_pod) {
  for (const auto& [flag, values] : given.flags) {
    if (flag->group != Group::traffic) continue;
    const bool is_of_pod = std::ranges::find(of_pod.arguments, short_name(*flag)) != of_pod.arguments.end();
    const auto row = std::ranges::find(annotation_table(), flag->name, &AnnotationInfo::flag);
    if (is_of_pod || (row != annotation_table().end() && row->passed != Passed::if_annotated))
      refuse_combination(fmt::format("{}: the manifest of --pod says it", spelled(*flag)), "leave one of them out");
  }
}

void check_manifest(const CommandLine& line) {
  const auto missing = [&](std::string_view what) {
    refuse_combination(fmt::format("{}: no {} given", name(*line.command), what),
                       fmt::format("for example: {}", info(*line.command).example));
  };
  if (line.command == Command::args || line.command == Command::inject) {
    if (line.manifest.files.empty()) missing("file");
    if (line.command == Command::inject && line.manifest.injected.empty()) missing("template");
    return;
  }
  if (!line.manifest.pod.empty()) return;
  if (!line.manifest.set.empty() || !line.manifest.values.empty())
    refuse_combination("--set, --values: Helm values without a pod", "they go with --pod");
  if (line.manifest.injector != Injector::istio)
    refuse_combination("--injector: which injector, without a pod", "it goes with --pod");
}

void check_compared(const CommandLine& line) {
  if (!line.effect || line.compared.empty()) return;
  const auto& files = line.compared;
  if (files.size() != 2) {
    refuse_combination(fmt::format("diff --effect: {} file{} or pod{} given: expected two, or none", files.size(),
                                   files.size() == 1 ? "" : "s", files.size() == 1 ? "" : "s"),
                       "each is a file that `sidetrack render --format json` or `sidetrack show --json` has written, "
                       "or a pod: pid:PID, "
                       "netns:NAME; without them, the live rules are compared with those that the options ask for");
  }
  if (files[0] == "-" && files[1] == "-") refuse_combination("diff --effect: standard input is given twice");
  if (line.pid || !line.netns.empty() || line.clean || !line.manifest.pod.empty())
    refuse_combination("diff --effect: --pid, --netns, --clean and --pod cannot be combined with two files or pods");
}

// The rules of a text are read without a kernel, for commands that only look at rules.
void check_text(const CommandLine& line, const CommandWords& given) {
  const auto& files = line.text.files;
  if (files.empty()) {
    for (const char* option : {"address", "route"}) {
      if (given.find(option) != nullptr)
        refuse_combination(fmt::format("--{}: without a pod", option), "it goes with --rules");
    }
    return;
  }
  if (std::ranges::count(files, "-") > 1) refuse_combination("--rules: standard input is given twice");
  for (const char* option : {"pid", "netns", "host", "watch", "pod", "plan", "mesh"}) {
    if (given.find(option) != nullptr)
      refuse_combination(fmt::format("--rules and --{} exclude each other: the rules are those of the text", option));
  }
  if (line.command == Command::diff) {
    if (!line.effect || !line.compared.empty())
      refuse_combination("--rules: expected --effect, and no files or pods besides",
                         "sidetrack diff --effect --rules FILE compares its rules with those of the options");
    return;
  }
  if (given.find("backend") != nullptr)
    refuse_combination("--rules and --backend exclude each other: the text says of which backend its rules are");
  if (line.plan) refuse_combination("--rules and options of rules exclude each other: the rules are those of the text");
}

// ---- Options of one dataplane given with the other.

constexpr std::string_view of_ambient_alone[] = {"probe-address", "probe-address6", "ingress"};
constexpr std::string_view of_both[] = {"dataplane",  "envoy-port",   "inbound-capture-port", "inbound-tunnel-port",
                                        "dual-stack", "redirect-dns", "track-forwarded-dns",  "kube-virt-interfaces"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// A value that is as if nothing were given.
bool is_default(const Flag& flag, const Config& config) {
  const OptionValue value = flag.value_of.get(flag, config);
  const bool is_usual_proxy = (flag.name == "proxy-uid" || flag.name == "proxy-gid") &&
                              value == OptionValue(std::vector<std::uint32_t>{istio_proxy_id});
  return is_usual_proxy || value == flag.value_of.get(flag, Config());
}

// Owner groups and the proxy's user are names until the host is asked.
bool is_default(const Flag& flag, const CommandLine& line) {
  if (flag.variables[0] == "ISTIO_OUTBOUND_OWNER_GROUPS") return line.names.owner_groups == Names().owner_groups;
  if (flag.variables[0] == "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE") return line.names.owner_groups_exclude.empty();
  if (flag.variables[0] == "ENVOY_USER") return line.names.envoy_user == Names().envoy_user;
  if (flag.name == "dns-server") return !line.config.dns_servers;
  return !flag.is_of_plan() || is_default(flag, line.config);
}

// What gives an option its value: "-u, --proxy-uid", or the variable.
std::string source_of(const Flag& flag, const CommandWords& given, const Environment& environment) {
  if (!flag.name.empty() && given.find(flag) != nullptr) return spelled(flag);
  for (const std::string_view variable : std::views::reverse(flag.variables)) {
    if (!variable.empty() && environment(variable)) return std::string(variable);
  }
  return spelled(flag);
}

void check_dataplane(const CommandLine& line, const CommandWords& given, const Environment& environment) {
  const bool ambient = line.config.dataplane == Dataplane::ambient;
  if (ambient && line.run_validation) {
    refuse_combination("--run-validation: not with --dataplane ambient: it connects as a sidecar does",
                       "sidetrack verify --probe --dataplane ambient tries real connections");
  }
  for (const Flag& flag : flags()) {
    if (!flag.commands.contains(*line.command) || is_among(of_both, flag.name)) continue;
    if (is_among(of_ambient_alone, flag.name) == ambient || is_default(flag, line)) continue;
    const std::string source = source_of(flag, given, environment);
    if (ambient)
      refuse_combination(fmt::format("{}: not with --dataplane ambient, whose rules do not depend on it", source),
                         "leave it out; ztunnel is known by the mark of its sockets, and captures all TCP");
    refuse_combination(fmt::format("{}: without effect on the rules of a sidecar", source),
                       "it goes with --dataplane ambient");
  }
}

// --json stands behind --format in the table: it has the last word.
void check_format(const CommandLine& line, const CommandWords& given) {
  const options::Occurrence* format = given.find("format");
  if (format == nullptr || line.format != Format::json || format->values.back() == "json") return;
  refuse_combination(fmt::format("--json and --format {} exclude each other: give one of them", format->values.back()));
}

// The option by which apply changes no rules; empty: none is given.
std::string_view changes_nothing(const CommandLine& line) {
  return line.dry_run           ? "--dry-run"
         : line.cleanup_only    ? "--cleanup-only"
         : line.skip_rule_apply ? "--skip-rule-apply"
                                : "";
}

// What would be ignored without a word is refused.
void check_combinations(const CommandLine& line, const CommandWords& given) {
  check_manifest(line);
  check_compared(line);
  check_text(line, given);
  check_format(line, given);
  const int places = (line.netns.empty() ? 0 : 1) + (line.pid ? 1 : 0) + (line.network_namespace.empty() ? 0 : 1);
  if (places > 1) refuse_combination("--netns, --pid and --network-namespace exclude each other: give one of them");

  if (line.config.families && !line.config.families->contains(Family::ipv4)) {
    refuse_combination(
        fmt::format("--ip-families: '{}': expected ipv4, or ipv4,ipv6", given.find("ip-families")->values.back()),
        "the rules for IPv4 are always built, as istio-iptables does: give ipv4,ipv6");
  }

  if (!line.config.capture_udp.empty() && line.config.mode != Mode::tproxy) {
    refuse_combination("--capture-udp: only -m TPROXY captures UDP, as it alone keeps the original destination",
                       "give -m TPROXY, or leave --capture-udp out");
  }
  if (!line.mesh.empty() && line.command == Command::diff && !line.clean)
    refuse_combination("--mesh: whose rules clean would remove", "it goes with diff --clean, and with clean");
  if (!line.mesh.empty() && line.config.dataplane == Dataplane::ambient)
    refuse_combination("--mesh and --dataplane ambient exclude each other: an ambient pod's rules are Istio's");
  const bool prints = line.command == Command::render || line.dry_run;
  const std::string_view unchanged = changes_nothing(line);
  if (line.command == Command::apply && line.check && line.dry_run) {
    refuse_combination("--check and --dry-run exclude each other: give one of them");
  }
  if (line.command == Command::apply && line.prove && !unchanged.empty()) {
    refuse_combination(fmt::format("--prove checks the rules after the change, {} changes no rules", unchanged),
                       "sidetrack lint checks only options");
  }
  if (line.when_ready && !unchanged.empty()) {
    refuse_combination(fmt::format("--when-ready waits before rules are installed, {} installs none", unchanged),
                       "leave one of them out");
  }
  if (line.confirm && (line.check || !unchanged.empty())) {
    refuse_combination(fmt::format("--confirm rolls back what was installed, {} installs nothing",
                                   unchanged.empty() ? "--check" : unchanged),
                       "leave one of them out");
  }
  if (line.command == Command::apply && line.check && line.cleanup_only) {
    refuse_combination("--check asks about rules to be installed, and cleaning installs none: leave one of them out");
  }
  if (line.command == Command::apply && !prints) {
    if (line.printed != Families::both()) {
      refuse_combination("--family: apply installs both families",
                         "--family goes with render and --dry-run; to install "
                         "only IPv4: --ip-families ipv4");
    }
    if (line.format != Format::text) {
      refuse_combination("--format: apply prints no rules", "--format and --json go with render and --dry-run");
    }
  }
  if (line.command == Command::explain && line.packet.words.empty()) {
    refuse_combination("explain: no packet given", fmt::format("for example: {}", info(Command::explain).example));
  }
  if (line.command == Command::cni) {
    check_cni(line, given);
  } else if (!takes_options_of_rules(line)) {
    for (const auto& [flag, values] : given.flags) {
      // As clean's: whether an agent's rules count, too.
      const bool tells_whose = line.command == Command::diff && line.clean && flag->name == "dataplane";
      if (!makes_rules(flag->group) || tells_whose) continue;
      refuse_combination(fmt::format("{}: without effect on the live rules", spelled(*flag)),
                         line.command != Command::diff ? "--plan asks about the rules of the given options"
                         : !line.compared.empty()      ? "the files have the rules"
                                                       : "diff --clean takes no options of the rules but --dataplane");
    }
  }
}

// The options of a pod's manifest, as if they were given here.
void take_pod(CommandLine& line, const CommandWords& given, const PodReader& read_pod) {
  if (!read_pod) refuse_combination("--pod: only the program reads manifests");
  const OptionsOfPod of_pod = read_pod(line.manifest);
  check_pod(given, of_pod);
  line.manifest.warnings = of_pod.warnings;
  std::vector<std::string_view> words{name(*line.command)};
  words.insert(words.end(), of_pod.arguments.begin(), of_pod.arguments.end());
  CommandWords together = options::read_words(words);
  for (const auto& [flag, values] : together.flags) {
    for (const std::string& value : values) flag->set(line, {*flag, value, {}});
  }
  together.flags.insert(together.flags.end(), given.flags.begin(), given.flags.end());
  set_from_environment(line, together, [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = of_pod.environment.find(name);
    return found != of_pod.environment.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
  });
  line.plan = true;
}

}  // namespace

std::optional<std::string_view> process_environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value != nullptr ? std::optional<std::string_view>(value) : std::nullopt;
}

bool works_by_plan(const CommandLine& line) { return takes_options_of_rules(line) && !line.cleanup_only; }

CommandLine parse_apply(std::span<const std::string> options) {
  std::vector<std::string_view> words{"sidetrack", "apply"};
  std::map<std::string_view, std::string_view> variables;
  for (const std::string_view option : options) {
    const auto equals = std::min(option.find('='), option.size());
    if (flag_of_variable(option.substr(0, equals)) == nullptr) {
      words.push_back(option);
    } else {
      variables[option.substr(0, equals)] = option.substr(std::min(equals + 1, option.size()));
    }
  }
  return parse(words, [&](std::string_view name) {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  });
}

CommandLine parse(Arguments arguments, const Environment& environment, const PodReader& read_pod) {
  CommandLine line;
  line.help = arguments.size() < 2 && base_name(arguments.front()) != options::drop_in_clean_name;
  if (line.help) return line;
  const std::vector<std::string_view> words = with_command(arguments, line);
  const CommandWords given = options::read_words(words);
  line.command = given.command;
  line.help = given.help;
  if (line.help && given.find("cleanup-only") != nullptr) line.command = Command::clean;  // istio-clean-iptables
  line.version = given.version;
  if (!line.command || line.help) return line;

  const auto set = [&](bool platform) {
    for (const auto& [flag, values] : given.flags) {
      if ((flag->name == "platform") != platform) continue;
      for (const std::string& value : values) flag->set(line, {*flag, value, {}});
    }
  };
  set(true);  // of its folders those are overridden that are named
  set(false);
  if (line.command == Command::completion) line.shell = static_cast<Shell>(choice_of_words(line, given.words, "shell"));
  if (line.command == Command::cni)
    line.cni.action = static_cast<CniAction>(choice_of_words(line, given.words, "action"));
  // What is asked about options is not asked about the live rules.
  line.plan |= line.command == Command::lint &&
               std::ranges::any_of(given.flags, [](const auto& each) { return makes_rules(each.flag->group); });
  line.packet.words = given.words;
  if (line.command == Command::diff) line.compared = given.words;
  refuse_words(line, given, Arguments(words).subspan(1));
  if (!line.manifest.pod.empty()) {
    take_pod(line, given, read_pod);
  } else if (takes_options_of_rules(line)) {
    set_from_environment(line, given, environment);
  }
  if (takes_options_of_rules(line) || line.command == Command::cni) check_dataplane(line, given, environment);
  check_combinations(line, given);
  // Neither touches anything: they need no address of the pod.
  line.dry_run |= line.command == Command::render || line.plan || !line.text.files.empty();
  return line;
}

}  // namespace sidetrack
