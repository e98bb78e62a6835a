// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/istio_init.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "options/istio_checks.h"
#include "options/options.h"
#include "options/values.h"

namespace sidetrack {
namespace {

constexpr std::string_view ports_of_envoy = "15090,15021";
constexpr std::string_view usual_uid = "1337";
constexpr std::string_view inject_label = "label sidecar.istio.io/inject";

// Istio's webhook never injects there.
constexpr std::string_view system_namespaces[] = {"kube-system", "kube-public", "kube-node-lease",
                                                  "local-path-storage"};

InitArguments not_injected(std::string_view reason, std::string sentence) { return {reason, std::move(sentence), {}}; }

// As written, unless the port of probes has to be added: then without blanks and empty items.
std::string with_status_port(std::string_view of_pod, std::string_view port) {
  port = trimmed(port);
  if (port.empty() || port == "0") return std::string(of_pod);
  std::string joined;
  for (const std::string_view item : split_at_each(of_pod, ',')) {
    if (item == port) return std::string(of_pod);
    if (const auto bare = trimmed(item); !bare.empty()) joined += fmt::format("{},", bare);
  }
  return joined += port;
}

InitArgument excluded_ports(const Setting& of_pod, const Setting& status_port) {
  const std::string more = with_status_port(of_pod.value, status_port.value);
  std::string from(of_pod.from);
  if (!status_port.from.empty()) from += fmt::format("{}{}", from.empty() ? "" : ", ", status_port.from);
  return {"", more.empty() ? std::string(ports_of_envoy) : fmt::format("{},{}", ports_of_envoy, more), std::move(from)};
}

constexpr std::string_view outbound_port_value = "meshConfig.proxyListenPort";
constexpr std::string_view inbound_port_value = "meshConfig.proxyInboundListenPort";

InitArgument port(const HelmValues& helm, std::string_view name, Injector injector) {
  Setting asked = helm_setting(helm, name);
  // Its template takes 0 for none, and istiod refuses it of the other port.
  if (injector == Injector::istio && name == inbound_port_value && asked.value == "0") asked = helm_setting({}, name);
  static_cast<void>(options::port(given_by(asked.from, asked.value)));
  return {"", std::string(asked.value), std::string(asked.from)};
}

InitArgument proxy_uid(const PodMetadata& pod, bool is_tproxy, Injector injector) {
  const bool is_istio = injector == Injector::istio;
  std::string of_container = fmt::format("runAsUser of {}", excerpt(pod.proxy));
  // It takes that of a container of the pod's own in every mode.
  if (is_istio && pod.proxy_uid && *pod.proxy_uid != "0") return {"", *pod.proxy_uid, std::move(of_container)};
  if (const auto asked = find(pod.annotations, proxy_uid_annotation); asked && !is_istio)
    return {"", std::string(*asked), std::string(proxy_uid_annotation)};
  // TPROXY's proxy runs as root: 1337 stands for its group then.
  if (is_tproxy) return {"", std::string(usual_uid), ""};
  if (pod.proxy_uid && !is_istio) {
    static_cast<void>(options::id(given_by(of_container, *pod.proxy_uid)));
    return {"", *pod.proxy_uid, std::move(of_container)};
  }
  if (pod.namespace_uid)
    return {"", *pod.namespace_uid, fmt::format("uid range of namespace {}", excerpt(pod.namespace_))};
  return {"", std::string(usual_uid), ""};
}

bool is_read(std::string_view variable) {
  return std::ranges::any_of(
      flags(), [&](const Flag& flag) { return std::ranges::find(flag.variables, variable) != flag.variables.end(); });
}

// As istio-init takes it, which has no other.
void check_variable(std::string_view name, std::string_view value, std::string_view from) {
  const auto refuse = [&](std::string_view words) { throw Error(ExitCode::usage, fmt::format("{}: {}", from, words)); };
  if (name.empty() || name.find('=') != std::string_view::npos)
    refuse(fmt::format("'{}': expected the name of a variable", excerpt(name)));
  if (value.starts_with('@'))
    refuse(
        fmt::format("{}: '{}': expected the values themselves, not the name of a file", excerpt(name), excerpt(value)));
  if (!is_read(name)) return;
  constexpr std::string_view apply[] = {"sidetrack", "apply"};
  std::string problem;
  try {
    const CommandLine line = parse(apply, [&](std::string_view asked) {
      return asked == name ? std::optional<std::string_view>(value) : std::nullopt;
    });
    if (has_group_names(line.names))
      problem = fmt::format("{}: '{}': expected gids: its image has no /etc/group", excerpt(name), excerpt(value));
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!problem.empty()) refuse(problem);
}

bool is_passed(const AnnotationInfo& row, const Setting& asked) {
  if (row.passed == Passed::before_all) return false;
  if (row.passed == Passed::always || !asked.value.empty()) return true;
  return !asked.from.empty() && (asked.from == row.name || asked.from == row.older);
}

bool is_own(std::string_view annotation) { return annotation.starts_with(own_prefix); }

// How it logs, and what is without a value. Sidetrack's istio-init has its own way to log unless it is told.
void add_switches(InitArguments& made, const PodMetadata& pod, const HelmValues& helm, Injector injector) {
  struct Switch {
    std::string_view helm_value;
    std::string_view option;
  };
  constexpr std::string_view cni = cni_value, force = "global.proxy_init.forceApplyIptables";
  constexpr Switch switches[] = {{"global.logAsJson", "--log_as_json"},
                                 {cni, "--run-validation"},
                                 {cni, "--skip-rule-apply"},
                                 {force, "--force-apply"},
                                 {"global.nativeNftables", "--native-nftables"}};
  const auto annotation = find(pod.annotations, log_level_annotation);
  const Setting level =
      annotation ? Setting{*annotation, log_level_annotation} : helm_setting(helm, "global.logging.level");
  if (injector == Injector::istio || !level.from.empty())
    made.arguments.push_back(
        {"--log_output_level", std::string(level.value), std::string(level.from), InitArgument::Form::joined});
  const bool by_plugin = is_on(helm, cni);
  if (by_plugin && injector == Injector::sidetrack)
    made.warnings.push_back(
        fmt::format("{}: without effect: istio-init is put into the pod anyway", helm_setting(helm, cni).from));
  for (const auto& [name, option] : switches) {
    const bool is_ignored =
        name == cni ? injector == Injector::sidetrack : name == force && by_plugin && injector == Injector::istio;
    if (is_on(helm, name) && !is_ignored)
      made.arguments.push_back(
          {std::string(option), "", std::string(helm_setting(helm, name).from), InitArgument::Form::alone});
  }
}

// Why istio-init would end with an error: the injector passes on more than it takes. `line` gets the options.
std::string why_refused(const InitArguments& made, CommandLine& line) {
  for (const InitArgument& argument : made.arguments) {
    const Flag& flag = *flag_of(argument.option);
    const std::string_view value = flag.kind == Kind::boolean ? "true" : std::string_view(argument.value);
    const Given given{flag, value, argument.from};
    try {
      if (value.starts_with('@')) options::refuse(given, "the values themselves, not the name of a file");
      flag.set(line, given);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return {};
}

// What the person who wrote the annotations will not expect.
void add_config_warnings(InitArguments& made, const Annotations& annotations, const Config& config) {
  constexpr std::string_view excluded = "traffic.sidecar.istio.io/excludeInboundPorts";
  if (const auto value = find(annotations, excluded); value && !value->empty() && !config.inbound_ports.all)
    made.warnings.push_back(
        fmt::format("{}: without effect: it is for traffic.sidecar.istio.io/includeInboundPorts '*'", excluded));
  if (config.outbound_ranges.empty()) return;
  for (const AddressRange& range : merged(config.outbound_exclude_ranges)) {
    if (range.prefix_length() == 0)
      made.warnings.push_back(
          fmt::format("-x {0} excludes all of {1}: no outbound {1} is captured", range.text(), title(range.family())));
  }
}

// istiod looks at their types alone. What istio-init does not take, it refuses in each pod.
void check_types(const HelmValues& helm) {
  const Setting mode = helm_setting(helm, mode_value);
  const auto modes = each_choice(flag_named("istio-inbound-interception-mode").choices);
  if (!to_number<std::int32_t>(mode.value) && std::ranges::find(modes, mode.value) == modes.end())
    options::refuse(given_by(mode.from, mode.value), fmt::format("one of {}", fmt::join(modes, "|")));
  const Setting status = helm_setting(helm, "global.proxy.statusPort");
  if (!to_number<std::uint32_t>(status.value))
    options::refuse(given_by(status.from, status.value), "a port, or 0 for none");
}

}  // namespace

InitArguments why_not_injected(const PodMetadata& pod, const HelmValues& helm, Injector injector) {
  if (pod.host_network) return not_injected("host_network", "spec.hostNetwork is true");
  if (std::ranges::find(system_namespaces, pod.namespace_) != std::end(system_namespaces)) {
    return not_injected("system_namespace", fmt::format("nothing is injected in the namespace {}", pod.namespace_));
  }
  const auto annotation = find(pod.annotations, inject_annotation);
  const auto label = find(pod.labels, inject_annotation);
  std::string_view word = label ? *label : annotation.value_or("");
  if (const auto said = options::to_boolean(word); said && injector == Injector::sidetrack)
    word = *said ? "true" : "false";  // as for the CNI plugin
  if (word == "false") {
    return not_injected("inject_false",
                        fmt::format("{} {} is false", label ? "the label" : "the annotation", inject_annotation));
  }
  // The webhook takes any other word for the default, and the user for whatever it seems to say.
  const bool is_word = word != "true" && !word.empty();
  const std::string_view from = label ? inject_label : inject_annotation;
  if (is_word && injector == Injector::sidetrack) options::refuse(given_by(from, word), "true or false");
  InitArguments made;
  if (is_word)
    made.warnings.push_back(
        fmt::format("{}: '{}': neither true nor false: as if it were not there", from, excerpt(word)));
  if (word != "true") {
    const auto selected = [&](std::string_view name) {
      const auto found = helm.find(name);
      return found != helm.end() && std::ranges::any_of(found->second.selectors, [&](const LabelSelector& selector) {
               return selects(selector, pod.labels);
             });
    };
    if (selected(never_inject_value))
      return not_injected("selector",
                          fmt::format("{} selects its labels", helm_setting(helm, never_inject_value).from));
    const Setting automatic = helm_setting(helm, "global.proxy.autoInject");
    if (automatic.value == "disabled" && !selected(always_inject_value))
      return not_injected("auto_inject",
                          fmt::format("{} is disabled, and the pod does not ask for it", automatic.from));
  }
  if (injector == Injector::istio) check_as_istio(pod.annotations);
  if (std::string why = without_init_container(pod.annotations, helm); !why.empty())
    return not_injected("template", std::move(why));
  return made;
}

InitArguments why_not_injected_by_mode(const Annotations& annotations, const HelmValues& helm) {
  std::string why = why_mode_none(annotations, helm);
  return why.empty() ? InitArguments{} : not_injected("mode_none", std::move(why));
}

InitArguments istio_init_arguments(const PodMetadata& pod, const HelmValues& helm, Injector injector) {
  InitArguments made = why_not_injected(pod, helm, injector);
  if (!made.not_injected.empty()) return made;
  const bool is_istio = injector == Injector::istio;
  Annotations annotations = pod.annotations;
  if (is_istio) {
    std::erase_if(annotations, [&](const auto& annotation) {
      if (!is_own(annotation.first)) return false;
      made.warnings.push_back(
          fmt::format("annotation {}: without effect on Istio's injector; --injector sidetrack answers for Sidetrack's",
                      excerpt(annotation.first)));
      return true;
    });
  }
  const auto add = [](std::vector<InitArgument>& list, std::string option, InitArgument argument) {
    argument.option = std::move(option);
    list.push_back(std::move(argument));
  };
  CommandLine line;
  bool is_tproxy = false;
  std::vector<InitArgument> of_rows;
  for (const AnnotationInfo& row : annotation_table()) {
    if (is_istio && is_own(row.name)) continue;
    const Setting asked = is_istio ? asked_for(row, annotations, helm) : setting(row, annotations, helm, line);
    if (row.name == mode_annotation && asked.value == "NONE")
      return not_injected("mode_none", fmt::format("{} is NONE", asked.from));
    is_tproxy |= row.name == mode_annotation && asked.value == "TPROXY";
    if (!is_passed(row, asked)) continue;
    InitArgument argument = row.flag == excluded_ports_flag
                                ? excluded_ports(asked, status_port(annotations, helm, injector))
                                : InitArgument{"", std::string(asked.value), std::string(asked.from)};
    add(of_rows, short_name(flag_named(row.flag)), std::move(argument));
  }
  std::ranges::move(unknown_annotations(annotations), std::back_inserter(made.warnings));
  check_combined(line.config, annotations);
  add(made.arguments, "-p", port(helm, outbound_port_value, injector));
  add(made.arguments, "-z", port(helm, inbound_port_value, injector));
  add(made.arguments, "-u", proxy_uid(pod, is_tproxy, injector));
  std::ranges::move(of_rows, std::back_inserter(made.arguments));
  add_switches(made, pod, helm, injector);
  if (is_istio) made.refused = why_refused(made, line);
  add_config_warnings(made, annotations, line.config);
  return made;
}

Variables init_variables(const HelmValues& helm, const Variables& of_pod, std::string_view from) {
  Variables made;
  for (const auto& [name, value] : helm) {
    if (!name.starts_with(proxy_metadata_value) || value.is_null) continue;
    const std::string variable = name.substr(proxy_metadata_value.size() + 1);
    if (of_pod.contains(variable)) continue;
    check_variable(variable, value.text, value.from);
    made.insert_or_assign(variable, value.text);
  }
  for (const auto& [name, value] : of_pod) {
    check_variable(name, value, from);
    made.insert_or_assign(name, value);
  }
  return made;
}

void check_helm_values(const HelmValues& helm, Injector injector) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : helm) bytes += name.size() + value.text.size();
  if (bytes > largest_annotations)
    throw Error(ExitCode::usage, fmt::format("Helm values: {} bytes: expected at most {}", bytes, largest_annotations),
                "every pod gets them");
  if (injector == Injector::istio) {
    check_types(helm);
  } else {
    CommandLine line;
    for (const AnnotationInfo& row : annotation_table()) static_cast<void>(setting(row, {}, helm, line));
    static_cast<void>(status_port({}, helm));
    static_cast<void>(init_variables(helm, {}, {}));
  }
  for (const HelmValueInfo& known : helm_value_table()) {
    if (known.kind == HelmValueInfo::Kind::boolean) static_cast<void>(is_on(helm, known.name));
  }
  const Setting automatic = helm_setting(helm, "global.proxy.autoInject");
  if (automatic.value != "enabled" && automatic.value != "disabled")
    options::refuse(given_by(automatic.from, automatic.value), "enabled or disabled");
  for (const std::string_view name : {outbound_port_value, inbound_port_value})
    static_cast<void>(port(helm, name, injector));
}

std::vector<std::string> words(const InitArguments& init) {
  std::vector<std::string> made;
  for (const InitArgument& argument : init.arguments) {
    made.push_back(argument.option);
    if (argument.form == InitArgument::Form::two_words) made.push_back(argument.value);
    if (argument.form == InitArgument::Form::joined) made.back() += "=" + argument.value;
  }
  return made;
}

}  // namespace sidetrack
