// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/istio_init.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/error.h"
#include "model/printable.h"
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

// The webhook takes any word but "false" for the namespace's default, and the user for whatever it seems to say.
bool is_refused_by_pod(const PodMetadata& pod) {
  const auto annotation = find(pod.annotations, inject_annotation);
  const std::string_view word = pod.inject_label ? *pod.inject_label : annotation.value_or("");
  if (word == "false") return true;
  if (word != "true" && !word.empty())
    options::refuse(given_by(pod.inject_label ? inject_label : inject_annotation, word), "true or false");
  return false;
}

InitArguments not_injected(std::string_view reason, std::string sentence) { return {reason, std::move(sentence), {}}; }

InitArguments why_not(const PodMetadata& pod) {
  if (pod.host_network) return not_injected("host_network", "spec.hostNetwork is true");
  if (std::ranges::find(system_namespaces, pod.namespace_) != std::end(system_namespaces)) {
    return not_injected("system_namespace", fmt::format("nothing is injected in the namespace {}", pod.namespace_));
  }
  if (is_refused_by_pod(pod)) {
    return not_injected("inject_false", fmt::format("{} {} is false", pod.inject_label ? "the label" : "the annotation",
                                                    inject_annotation));
  }
  if (std::string why = without_init_container(pod.annotations); !why.empty())
    return not_injected("template", std::move(why));
  return {};
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> items;
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = list.find(',');
    items.push_back(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return items;
}

// As written, unless the port of probes has to be added: then without blanks and empty items.
std::string with_status_port(std::string_view of_pod, std::string_view port) {
  if (port.empty() || port == "0") return std::string(of_pod);
  std::string joined;
  for (const std::string_view item : split(of_pod)) {
    if (item == port) return std::string(of_pod);
    if (const auto bare = options::without_blanks(item); !bare.empty()) joined += fmt::format("{},", bare);
  }
  return joined += port;
}

InitArgument excluded_ports(const Setting& of_pod, const Setting& status_port) {
  const std::string more = with_status_port(of_pod.value, status_port.value);
  std::string from(of_pod.from);
  if (!status_port.from.empty()) from += fmt::format("{}{}", from.empty() ? "" : ", ", status_port.from);
  return {"", more.empty() ? std::string(ports_of_envoy) : fmt::format("{},{}", ports_of_envoy, more), std::move(from)};
}

InitArgument port(const HelmValues& helm, std::string_view name) {
  const Setting asked = helm_setting(helm, name);
  static_cast<void>(options::port({given_by(asked.from, asked.value), asked.value}));
  return {"", std::string(asked.value), std::string(asked.from)};
}

InitArgument proxy_uid(const PodMetadata& pod, Mode mode) {
  if (const auto asked = find(pod.annotations, proxy_uid_annotation))
    return {"", std::string(*asked), std::string(proxy_uid_annotation)};
  // TPROXY's proxy runs as root: 1337 stands for its group then.
  if (mode == Mode::tproxy) return {"", std::string(usual_uid), ""};
  if (pod.proxy_uid) {
    std::string from = fmt::format("runAsUser of {}", excerpt(pod.proxy));
    static_cast<void>(options::id({given_by(from, *pod.proxy_uid), *pod.proxy_uid}));
    return {"", *pod.proxy_uid, std::move(from)};
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
  try {
    static_cast<void>(parse(apply, [&](std::string_view asked) {
      return asked == name ? std::optional<std::string_view>(value) : std::nullopt;
    }));
  } catch (const Error& error) {
    refuse(error.what());
  }
}

bool is_passed(const AnnotationInfo& row, const Setting& asked) {
  if (row.passed == Passed::always || !asked.value.empty()) return true;
  return std::ranges::find(row.names, asked.from) != row.names.end() && !asked.from.empty();
}

}  // namespace

InitArguments istio_init_arguments(const PodMetadata& pod, const HelmValues& helm) {
  InitArguments made = why_not(pod);
  if (!made.not_injected.empty()) return made;
  made.warnings = unknown_annotations(pod.annotations);

  const auto add = [](std::vector<InitArgument>& list, std::string option, InitArgument argument) {
    argument.option = std::move(option);
    list.push_back(std::move(argument));
  };
  CommandLine line;
  std::vector<InitArgument> of_rows;
  for (const AnnotationInfo& row : annotation_table()) {
    const Setting asked = setting(row, pod.annotations, helm, line);
    if (line.config.mode == Mode::none) return not_injected("mode_none", fmt::format("{} is NONE", asked.from));
    if (!is_passed(row, asked) || asked.from == proxy_uid_annotation) continue;
    add(of_rows, short_name(flag_named(row.flag)),
        row.flag == excluded_ports_flag ? excluded_ports(asked, status_port(pod.annotations, helm))
                                        : InitArgument{"", std::string(asked.value), std::string(asked.from)});
  }
  check_combined(line.config, pod.annotations);
  add(made.arguments, "-p", port(helm, "meshConfig.proxyListenPort"));
  add(made.arguments, "-z", port(helm, "meshConfig.proxyInboundListenPort"));
  add(made.arguments, "-u", proxy_uid(pod, line.config.mode));
  std::ranges::move(of_rows, std::back_inserter(made.arguments));
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

void check_helm_values(const HelmValues& helm) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : helm) bytes += name.size() + value.text.size();
  if (bytes > largest_annotations)
    throw Error(ExitCode::usage, fmt::format("Helm values: {} bytes: expected at most {}", bytes, largest_annotations),
                "every pod gets them");
  CommandLine line;
  for (const AnnotationInfo& row : annotation_table()) static_cast<void>(setting(row, {}, helm, line));
  static_cast<void>(status_port({}, helm));
  for (const std::string_view name : {"meshConfig.proxyListenPort", "meshConfig.proxyInboundListenPort"})
    static_cast<void>(port(helm, name));
  static_cast<void>(init_variables(helm, {}, {}));
}

std::vector<std::string> words(const InitArguments& init) {
  std::vector<std::string> made;
  for (const InitArgument& argument : init.arguments) {
    made.push_back(argument.option);
    made.push_back(argument.value);
  }
  return made;
}

}  // namespace sidetrack
