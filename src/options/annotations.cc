// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/error.h"
#include "model/printable.h"
#include "options/flags.h"
#include "options/values.h"

namespace sidetrack {
namespace {

constexpr std::string_view status_annotation = "sidecar.istio.io/status";
constexpr std::string_view inject_annotation = "sidecar.istio.io/inject";
constexpr std::string_view mode_annotation = "sidecar.istio.io/interceptionMode";
constexpr std::string_view init_container = "istio-init";

constexpr std::string_view excluded_ports_flag = "istio-local-exclude-ports";
constexpr std::uint16_t usual_status_port = 15020;
constexpr std::uint16_t ports_of_proxy[] = {15021, 15090};  // readiness, Prometheus

constexpr AnnotationInfo table[] = {
    {{mode_annotation}, "istio-inbound-interception-mode", "REDIRECT"},
    {{"traffic.sidecar.istio.io/includeOutboundIPRanges"}, "istio-service-cidr", "*"},
    {{"traffic.sidecar.istio.io/excludeOutboundIPRanges"}, "istio-service-exclude-cidr", ""},
    {{"traffic.sidecar.istio.io/includeInboundPorts"}, "istio-inbound-ports", "*"},
    {{"traffic.sidecar.istio.io/excludeInboundPorts"}, excluded_ports_flag, ""},
    {{"traffic.sidecar.istio.io/includeOutboundPorts"}, "istio-outbound-ports", ""},
    {{"traffic.sidecar.istio.io/excludeOutboundPorts"}, "istio-local-outbound-ports-exclude", ""},
    {{"traffic.sidecar.istio.io/excludeInterfaces"}, "istio-exclude-interfaces", ""},
    {{"istio.io/reroute-virtual-interfaces", "traffic.sidecar.istio.io/kubevirtInterfaces"},
     "kube-virt-interfaces",
     ""},
};

const Flag& flag_named(std::string_view name) { return *std::ranges::find(flags(), name, &Flag::name); }

// Of an annotation that is no option's alone; the flag gives it a type.
Given given(std::string_view annotation, std::string_view text) {
  return {flag_named(excluded_ports_flag), text, annotation};
}

std::optional<std::string_view> find(const Annotations& annotations, std::string_view name) {
  const auto found = annotations.find(name);
  return found != annotations.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
}

bool is_false(std::string_view inject) {
  if (inject.empty()) return false;
  const Given value = given(inject_annotation, inject);
  return !options::boolean({value, inject});
}

// {"initContainers": ["istio-init"], "containers": ["istio-proxy"], …}; either may be null.
bool lists_init_container(std::string_view status) {
  const auto refuse = [&](std::string_view expected) { options::refuse(given(status_annotation, status), expected); };
  const auto document = nlohmann::json::parse(status, nullptr, false);
  if (!document.is_object()) refuse("a JSON object, as the sidecar injector writes it");
  bool listed = false;
  for (const char* key : {"initContainers", "containers"}) {
    const auto list = document.find(key);
    if (list == document.end() || list->is_null()) continue;
    if (!list->is_array()) refuse(fmt::format("a list of names as its \"{}\"", key));
    for (const auto& name : *list) {
      if (!name.is_string()) refuse(fmt::format("a list of names as its \"{}\"", key));
      listed = listed || name.get_ref<const std::string&>() == init_container;
    }
  }
  return listed;
}

std::optional<std::uint16_t> status_port(const Annotations& annotations) {
  const auto text = find(annotations, status_port_annotation);
  if (!text) return usual_status_port;
  if (text->empty() || *text == "0") return std::nullopt;
  const Given value = given(status_port_annotation, *text);
  try {
    return options::port({value, *text});
  } catch (const Error&) {
    options::refuse(value, "a port from 1 to 65535, or 0 for none");
  }
}

// The pod's ports, then those of the proxy, none twice.
std::string excluded_ports(std::vector<std::uint16_t> of_pod, const Annotations& annotations) {
  if (const auto port = status_port(annotations)) of_pod.push_back(*port);
  of_pod.insert(of_pod.end(), std::begin(ports_of_proxy), std::end(ports_of_proxy));
  std::vector<std::uint16_t> once;
  for (const std::uint16_t port : of_pod) {
    if (std::ranges::find(once, port) == once.end()) once.push_back(port);
  }
  return fmt::format("{}", fmt::join(once, ","));
}

// Checks the value as the option checks it, and returns it.
std::string_view checked(const AnnotationInfo& row, const Annotations& annotations, CommandLine& line) {
  for (const std::string_view name : row.names) {
    const auto text = name.empty() ? std::nullopt : find(annotations, name);
    if (!text) continue;
    const Given value{flag_named(row.flag), *text, name};
    if (text->starts_with('@')) options::refuse(value, "the values themselves, not the name of a file");
    try {
      value.flag.set(line, value);
    } catch (const Error& error) {
      throw Error(error.code(), error.what());  // what to do with an option does not help who writes an annotation
    }
    return *text;
  }
  return row.preset;
}

}  // namespace

std::span<const AnnotationInfo> annotation_table() { return table; }

Interception interception(const Annotations& annotations) {
  const auto status = find(annotations, status_annotation);
  if (!status) return {fmt::format("it has no annotation {}", status_annotation), {}};
  const auto inject = find(annotations, inject_annotation);
  if (inject && is_false(*inject)) return {fmt::format("{} is {}", inject_annotation, *inject), {}};
  if (lists_init_container(*status)) return {fmt::format("its init container {} programs it", init_container), {}};

  Interception result;
  CommandLine line;
  for (const AnnotationInfo& row : table) {
    std::string value(checked(row, annotations, line));
    if (row.flag == excluded_ports_flag) value = excluded_ports(line.config.inbound_exclude_ports, annotations);
    // One word: a value may begin with a dash, as the name of an interface may.
    if (!value.empty()) result.options.push_back(fmt::format("--{}={}", row.flag, value));
  }
  if (line.config.mode == Mode::none) return {fmt::format("{} is NONE", mode_annotation), {}};
  return result;
}

}  // namespace sidetrack
