// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "options/flags.h"
#include "options/suggest.h"
#include "options/values.h"

namespace sidetrack {
namespace {

constexpr std::string_view template_with_init_container = "sidecar";  // of Istio's own the only one

constexpr std::uint16_t ports_of_proxy[] = {15021, 15090};  // readiness, Prometheus

constexpr std::string_view capture_udp_annotation = "sidetrack/capture-udp";

using enum Passed;
constexpr AnnotationInfo table[] = {
    {mode_annotation, "istio-inbound-interception-mode", always, mode_value},
    {"traffic.sidecar.istio.io/includeOutboundIPRanges", "istio-service-cidr", always, "global.proxy.includeIPRanges"},
    {"traffic.sidecar.istio.io/excludeOutboundIPRanges", "istio-service-exclude-cidr", always,
     "global.proxy.excludeIPRanges"},
    {"traffic.sidecar.istio.io/includeInboundPorts", "istio-inbound-ports", always, "global.proxy.includeInboundPorts"},
    {"traffic.sidecar.istio.io/excludeInboundPorts", excluded_ports_flag, always, "global.proxy.excludeInboundPorts"},
    {"traffic.sidecar.istio.io/includeOutboundPorts", "istio-outbound-ports", if_asked,
     "global.proxy.includeOutboundPorts"},
    {"traffic.sidecar.istio.io/excludeOutboundPorts", "istio-local-outbound-ports-exclude", if_asked,
     "global.proxy.excludeOutboundPorts"},
    {"istio.io/reroute-virtual-interfaces", "kube-virt-interfaces", if_asked, "",
     "traffic.sidecar.istio.io/kubevirtInterfaces"},
    {"traffic.sidecar.istio.io/excludeInterfaces", "istio-exclude-interfaces", if_asked},
    {proxy_uid_annotation, "proxy-uid", before_all},
    {"sidetrack/proxy-gid", "proxy-gid", if_annotated},
    {"sidetrack/exclude-uids", "exclude-uids", if_asked},
    {"sidetrack/exclude-gids", "exclude-gids", if_asked},
    {"sidetrack/exclude-uid-ports", "exclude-uid-ports", if_asked},
    {"sidetrack/bypass-cgroup", "bypass-cgroup", if_asked},
    {capture_udp_annotation, "capture-udp", if_asked},
    {"sidetrack/include-inbound-ranges", "include-inbound-ranges", if_asked},
    {"sidetrack/exclude-inbound-ranges", "exclude-inbound-ranges", if_asked},
};

// As Istio's agent reads them.
constexpr AnnotationInfo table_of_ambient[] = {
    {"ambient.istio.io/bypass-inbound-capture", "ingress", if_asked},
    {"ambient.istio.io/dns-capture", "redirect-dns", if_asked},
    {"istio.io/reroute-virtual-interfaces", "kube-virt-interfaces", if_asked},
};

constexpr std::string_view traffic_prefix = "traffic.sidecar.istio.io/";

// What becomes of an annotation that nobody reads, by how its name begins. Where Istio has many others it is warned of
// if it is written almost as one that is read.
enum class Unread : std::uint8_t { refused, warned_of, warned_of_if_alike };
struct Prefix {
  std::string_view text;
  Unread unread;
};
constexpr Prefix prefixes[] = {{own_prefix, Unread::refused},
                               {traffic_prefix, Unread::warned_of},
                               {"sidecar.istio.io/", Unread::warned_of_if_alike},
                               {"status.sidecar.istio.io/", Unread::warned_of_if_alike},
                               {"inject.istio.io/", Unread::warned_of_if_alike},
                               {"proxy.istio.io/", Unread::warned_of_if_alike},
                               {"istio.io/", Unread::warned_of_if_alike}};
constexpr Prefix prefixes_of_ambient[] = {{own_prefix, Unread::refused},
                                          {"ambient.istio.io/", Unread::warned_of_if_alike},
                                          {"istio.io/", Unread::warned_of_if_alike}};

using AnnotationNames = std::vector<std::string_view>;

void add_names(AnnotationNames& names, std::span<const AnnotationInfo> rows) {
  for (const AnnotationInfo& row : rows) {
    names.push_back(row.name);
    if (!row.older.empty()) names.push_back(row.older);
  }
}

std::vector<std::string> unread(const Annotations& annotations, const AnnotationNames& read,
                                std::span<const Prefix> known, std::string_view usual_hint) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : annotations) {
    const std::string_view prefix = std::string_view(name).substr(0, name.find('/') + 1);
    const auto found = std::ranges::find(known, prefix, &Prefix::text);
    if (found == known.end() || std::ranges::find(read, name) != read.end()) continue;
    AnnotationNames alike;
    for (const std::string_view each : read) {
      if (each.starts_with(prefix)) alike.push_back(each.substr(prefix.size()));
    }
    const auto meant = options::nearest(std::string_view(name).substr(prefix.size()), alike);
    const std::string hint = meant ? fmt::format("did you mean {}{}?", prefix, *meant) : "";
    const std::string what = fmt::format("annotation {}: unknown", excerpt(name));
    if (found->unread == Unread::refused)
      throw Error(ExitCode::usage, what, hint.empty() ? std::string(usual_hint) : hint);
    if (found->unread == Unread::warned_of || meant) warnings.push_back(hint.empty() ? what : what + "; " + hint);
  }
  return warnings;
}

bool is_false(std::string_view inject) {
  if (inject.empty()) return false;
  return !options::boolean(given_by(inject_annotation, inject));
}

// {"initContainers": ["istio-init"], "containers": ["istio-proxy"], …}; either may be null.
struct InjectionStatus {
  std::set<std::string, std::less<>> init_containers;
  std::set<std::string, std::less<>> containers;

  [[nodiscard]] bool lists(std::string_view name) const {
    return init_containers.contains(name) || containers.contains(name);
  }
  // One that says nothing of containers may be anybody's.
  [[nodiscard]] bool has_proxy() const {
    return !containers.empty() || init_containers.empty() || init_containers.contains(proxy_container);
  }
};

InjectionStatus status_of(std::string_view text) {
  const auto refuse = [&](std::string_view expected) { options::refuse(given_by(status_annotation, text), expected); };
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || text.find('\0') != std::string_view::npos)
    refuse("a JSON object, as the sidecar injector writes it");
  InjectionStatus status;
  for (const auto& [key, names] :
       {std::pair("initContainers", &status.init_containers), std::pair("containers", &status.containers)}) {
    const auto list = document.find(key);
    if (list == document.end() || list->is_null()) continue;
    const auto is_name = [](const nlohmann::json& name) { return name.is_string(); };
    if (!list->is_array() || !std::ranges::all_of(*list, is_name))
      refuse(fmt::format("a list of names as its \"{}\"", key));
    *names = list->get<std::set<std::string, std::less<>>>();
  }
  return status;
}

// The pod's ports, then those of the proxy that are not among them; none twice.
std::string excluded_ports(const std::vector<PortRange>& of_pod, const Annotations& annotations) {
  std::vector<std::uint16_t> of_proxy;
  const Setting asked = status_port(annotations, {});
  if (!asked.value.empty() && asked.value != "0") of_proxy.push_back(options::port(given_by(asked.from, asked.value)));
  of_proxy.insert(of_proxy.end(), std::begin(ports_of_proxy), std::end(ports_of_proxy));
  std::vector<PortRange> all;
  std::set<PortRange> known;
  const auto add = [&](const PortRange& ports) {
    if (known.insert(ports).second) all.push_back(ports);
  };
  std::ranges::for_each(of_pod, add);
  for (const std::uint16_t port : of_proxy) {
    if (std::ranges::none_of(of_pod, [&](const PortRange& ports) { return ports.contains(port); })) add(port);
  }
  return list_text(all);
}

AnnotationNames read_of_pod() {
  AnnotationNames read{inject_annotation,    status_annotation,       status_port_annotation, log_level_annotation,
                       templates_annotation, proxy_config_annotation, native_annotation,      overrides_annotation};
  add_names(read, table);
  return read;
}

constexpr std::string_view no_envoy_variable = "DISABLE_ENVOY";

std::string of_metadata(std::string_view variable) {
  return fmt::format("{}: proxyMetadata: {}", proxy_config_annotation, variable);
}

// The template passes the option itself, and an option counts more than a variable.
bool is_passed_by_template(const Flag& flag) {
  constexpr std::string_view of_no_annotation[] = {"envoy-port", "inbound-capture-port", "proxy-uid"};
  return std::ranges::find(of_no_annotation, flag.name) != std::end(of_no_annotation) ||
         std::ranges::any_of(table,
                             [&](const AnnotationInfo& row) { return row.flag == flag.name && row.passed == always; });
}

bool has_option(const Interception& of, std::string_view flag) {
  const std::string words = fmt::format("--{}=", flag);
  return std::ranges::any_of(of.options, [&](const std::string& option) { return option.starts_with(words); });
}

// Takes options that make rules alone: a pod must not choose how the plugin works.
void add_variable(const Flag& flag, std::string_view name, std::string_view value, Interception& result) {
  if (is_passed_by_template(flag) || has_option(result, flag.name)) return;
  const std::string from = of_metadata(name);
  const std::string option = flag.name.empty() ? std::string(name) : fmt::format("--{}", flag.name);
  const bool is_read =
      makes_rules(flag.group) || (flag.group == Group::environment && name != "ENVOY_USER");  // beside -u
  if (!is_read) {
    result.warnings.push_back(fmt::format("{}: without effect: the CNI plugin does not read it", from));
    return;
  }
  const Given given{flag, value, from};
  if (value.starts_with('@')) options::refuse(given, "the values themselves, not the name of a file");
  CommandLine line;
  flag.set(line, given);
  if (has_group_names(line.names))
    options::refuse(given, "gids: the names of groups are known only in the image of the pod");
  result.options.push_back(fmt::format("{}={}", option, value));
  // Which servers the pod is to ask is not known yet when it is given its network.
  if (flag.name == "redirect-dns") result.options.push_back(fmt::format("--capture-all-dns={}", value));
}

void add_variables(const Variables& metadata, Interception& result) {
  for (const Flag& flag : flags()) {
    // Prefers the second of two names, as istio-init does; an empty value is none.
    for (auto name = flag.variables.rbegin(); name != flag.variables.rend(); ++name) {
      const auto value = name->empty() ? std::nullopt : find(metadata, *name);
      if (!value || (value->empty() && flag.kind == Kind::boolean)) continue;
      add_variable(flag, *name, *value, result);
      break;
    }
  }
}

AnnotationNames read_of_ambient() {
  AnnotationNames read{dataplane_annotation};
  add_names(read, table_of_ambient);
  return read;
}

// The others. Those of a sidecar are no part of an ambient pod's rules: one that asks for something must not be ignored
// without a word.
Annotations without_sidecars_own(Annotations annotations, const std::string& hint) {
  CommandLine line;
  for (const AnnotationInfo& row : table) {
    const std::string_view name = row.name;
    if (!name.starts_with(own_prefix) || !find(annotations, name)) continue;
    const Setting asked = setting(row, annotations, {}, line);
    const Flag& flag = flag_named(row.flag);
    if (flag.value_of.get(flag, line.config) != flag.value_of.get(flag, Config())) {
      throw Error(
          ExitCode::usage,
          fmt::format("{}: '{}': not for an ambient pod, whose rules do not depend on it", name, excerpt(asked.value)),
          hint);
    }
    annotations.erase(annotations.find(name));
  }
  return annotations;
}

}  // namespace

std::span<const AnnotationInfo> annotation_table() { return table; }

// The option gives it a type.
Given given_by(std::string_view annotation, std::string_view text) {
  return {flag_named(excluded_ports_flag), text, annotation};
}

std::optional<std::string_view> find(const Annotations& annotations, std::string_view name) {
  const auto found = annotations.find(name);
  return found != annotations.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
}

Setting asked_for(const AnnotationInfo& row, const Annotations& annotations, const HelmValues& helm) {
  for (const std::string_view name : {row.name, row.older}) {
    if (const auto text = name.empty() ? std::nullopt : find(annotations, name)) return {*text, name};
  }
  return row.helm_value.empty() ? Setting{} : helm_setting(helm, row.helm_value);
}

Setting setting(const AnnotationInfo& row, const Annotations& annotations, const HelmValues& helm, CommandLine& line) {
  const Setting asked = asked_for(row, annotations, helm);
  const Given value{flag_named(row.flag), asked.value, asked.from};
  if (asked.value.starts_with('@')) options::refuse(value, "the values themselves, not the name of a file");
  try {
    value.flag.set(line, value);
  } catch (const Error& error) {
    throw Error(error.code(), error.what());  // what to do with an option does not help who writes an annotation
  }
  return asked;
}

void check_combined(const Config& config, const Annotations& annotations) {
  if (config.capture_udp.empty() || config.mode == Mode::tproxy) return;
  options::refuse(
      Given{flag_named("capture-udp"), find(annotations, capture_udp_annotation).value_or(""), capture_udp_annotation},
      fmt::format("{} TPROXY with it, as no other mode captures UDP", mode_annotation));
}

std::string in_words_of(const Annotations& annotations, std::string text) {
  const std::string option = text.substr(0, text.find_first_of(": ", text.starts_with("--") ? 0 : 4));
  for (const AnnotationInfo& row : table) {
    if (option != spelled(flag_named(row.flag)) && option != fmt::format("--{}", row.flag)) continue;
    for (const std::string_view name : {row.name, row.older}) {
      if (!name.empty() && find(annotations, name)) return text.replace(0, option.size(), name);
    }
  }
  return text;
}

Setting status_port(const Annotations& annotations, const HelmValues& helm, Injector injector) {
  const auto text = find(annotations, status_port_annotation);
  const Setting asked = text ? Setting{*text, status_port_annotation} : helm_setting(helm, "global.proxy.statusPort");
  if (asked.value.empty() || asked.value == "0" || injector == Injector::istio) return asked;
  const Given value = given_by(asked.from, asked.value);
  try {
    static_cast<void>(options::port(value));
  } catch (const Error&) {
    options::refuse(value, "a port from 1 to 65535, or 0 for none");
  }
  return asked;
}

bool has_group_names(const Names& names) {
  const auto is_name = [](const std::string& group) { return !to_number<std::uint32_t>(group); };
  return std::ranges::any_of(names.owner_groups.list, is_name) ||
         std::ranges::any_of(names.owner_groups_exclude, is_name);
}

bool is_read_of_pod(std::string_view name) {
  static const AnnotationNames read = read_of_pod();
  return name != status_annotation && std::ranges::find(read, name) != read.end();
}

std::vector<std::string> unknown_annotations(const Annotations& annotations) {
  static const AnnotationNames read = read_of_pod();
  return unread(annotations, read, prefixes, "");
}

std::string without_envoy(const Variables& metadata, std::string_view from) {
  const auto disabled = find(metadata, no_envoy_variable);
  if (!disabled) return {};
  const std::string variable = fmt::format("{}: {}", from, no_envoy_variable);
  return options::boolean(given_by(variable, *disabled)) ? fmt::format("{} is {}", variable, *disabled) : "";
}

std::string_view mode_of_number(std::string_view text) {
  static const std::vector<std::string_view> modes = each_choice(flag_named("istio-inbound-interception-mode").choices);
  const auto number = to_number<std::size_t>(text);
  return number && *number < modes.size() ? modes[*number] : text;
}

std::string without_init_container(const Annotations& annotations, const HelmValues& helm) {
  const auto text = find(annotations, templates_annotation);
  const Setting of_mesh = helm_setting(helm, default_templates_value);
  const Setting asked = text ? Setting{*text, templates_annotation} : of_mesh;
  if (asked.from.empty() || (!text && asked.value.empty())) return {};
  std::vector<std::string_view> names = split_at_each(asked.value, ',');
  for (std::string_view& name : names) name = options::without_blanks(name);
  if (std::ranges::find(names, template_with_init_container) != names.end()) return {};
  return fmt::format("{} is {}: not {}, the template with an init container", asked.from,
                     excerpt(fmt::format("{}", fmt::join(names, ","))), template_with_init_container);
}

std::string why_left_alone(const Annotations& annotations) {
  const auto status_text = find(annotations, status_annotation);
  if (!status_text) return fmt::format("it has no annotation {}", status_annotation);
  const auto inject = find(annotations, inject_annotation);
  if (inject && is_false(*inject)) return fmt::format("{} is {}", inject_annotation, *inject);
  const InjectionStatus status = status_of(*status_text);
  if (status.lists(init_container_name))
    return fmt::format("its init container {} installs its rules", init_container_name);
  if (status.lists(validation_container_name)) return {};
  if (!status.has_proxy()) return fmt::format("{} lists no proxy", status_annotation);
  return without_init_container(annotations);
}

std::string why_mode_none(const Annotations& annotations, const HelmValues& helm) {
  const auto* const row = std::ranges::find(table, mode_annotation, &AnnotationInfo::name);
  CommandLine line;
  const Setting asked = setting(*row, annotations, helm, line);
  return line.config.mode == Mode::none ? fmt::format("{} is NONE", asked.from) : "";
}

Interception interception(const Annotations& annotations, const ProxyConfig& config) {
  if (std::string why = why_left_alone(annotations); !why.empty()) {
    Interception none{std::move(why), {}};
    // A label counts more for the injector than the annotation, and no runtime passes labels.
    const auto inject = find(annotations, inject_annotation), status = find(annotations, status_annotation);
    if (inject && status && status->find(validation_container_name) != std::string_view::npos && is_false(*inject)) {
      none.warnings.push_back(fmt::format(
          "{} is {}, and {} lists {}: left alone; if a label had it injected, remove the annotation: a plugin sees "
          "nothing else",
          inject_annotation, excerpt(*inject), status_annotation, validation_container_name));
    }
    return none;
  }
  if (std::string why = without_envoy(config.metadata, fmt::format("{}: proxyMetadata", proxy_config_annotation));
      !why.empty())
    return {std::move(why), {}};
  HelmValues helm;
  if (!config.interception_mode.empty())
    helm[std::string(mode_value)] = {config.interception_mode,
                                     fmt::format("{}: interceptionMode", proxy_config_annotation)};
  if (std::string why = why_mode_none(annotations, helm); !why.empty()) return {std::move(why), {}};

  Interception result;
  result.warnings = unknown_annotations(annotations);
  if (!find(annotations, templates_annotation) &&
      !status_of(find(annotations, status_annotation).value_or("")).lists(validation_container_name)) {
    result.warnings.push_back(fmt::format(
        "{} lists neither {} nor {}, and there is no annotation {}: taken for a sidecar; if it is a gateway "
        "or a waypoint, set {}: gateway",
        status_annotation, init_container_name, validation_container_name, templates_annotation, templates_annotation));
  }
  CommandLine line;
  for (const AnnotationInfo& row : table) {
    const Setting asked = setting(row, annotations, helm, line);
    std::string value(asked.value);
    if (row.flag == excluded_ports_flag) value = excluded_ports(line.config.inbound_exclude_ports, annotations);
    // One word: a value may begin with a dash, as the name of an interface may.
    // An annotation that is there and empty counts more than a variable.
    const bool says_nothing =
        row.passed == if_asked && !asked.from.empty() && !flag_named(row.flag).variables[0].empty();
    if (!value.empty() || says_nothing) result.options.push_back(fmt::format("--{}={}", row.flag, value));
  }
  check_combined(line.config, annotations);
  add_variables(config.metadata, result);
  return result;
}

Interception ambient_interception(const Annotations& annotations) {
  if (const auto mode = find(annotations, dataplane_annotation)) {
    const Given given{flag_named("dataplane"), *mode, dataplane_annotation};
    if (options::choice(given, "ambient|none") == 1) return {fmt::format("{} is none", dataplane_annotation), {}};
  }
  const AnnotationNames read = read_of_ambient();
  const std::string hint = fmt::format("of an ambient pod these are read: {}", fmt::join(read, ", "));
  Interception result;
  result.warnings = unread(without_sidecars_own(annotations, hint), read, prefixes_of_ambient, hint);
  for (const auto& [name, value] : annotations) {
    if (name.starts_with(traffic_prefix))
      result.warnings.push_back(fmt::format("annotation {}: without effect on an ambient pod", excerpt(name)));
  }
  CommandLine line;
  for (const AnnotationInfo& row : table_of_ambient) {
    if (!find(annotations, row.name)) continue;
    const std::string_view value = setting(row, annotations, {}, line).value;
    if (!value.empty()) result.options.push_back(fmt::format("--{}={}", row.flag, value));
  }
  return result;
}

}  // namespace sidetrack
