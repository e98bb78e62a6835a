// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/facts.h"

#include <fmt/format.h>

#include <limits>

#include "inject/manifest/scalar.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "options/values.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view rewrite_annotation = "sidecar.istio.io/rewriteAppHTTPProbers";

// `what`: whose value it is. Throws usage for what the API server would refuse, too.
template <typename Number>
std::optional<Number> number_of(const Node* node, const std::string& what) {
  if (node == nullptr || node->type == Node::Type::null) return std::nullopt;
  const std::string text = node->type == Node::Type::number ? json_number(node->text) : "";
  const auto value = to_number<Number>(text);
  if (!value) {
    const std::string given =
        node->is_scalar() ? fmt::format("'{}'", excerpt(node->text)) : std::string(name(node->type));
    throw Error(ExitCode::usage,
                fmt::format("{}: {}: expected a number from 0 to {}", what, given, std::numeric_limits<Number>::max()));
  }
  return value;
}

// A number, or the name of one of the container's ports.
std::optional<std::uint16_t> port_of(const Node* port, const Node& container, const std::string& what) {
  if (port == nullptr || port->type != Node::Type::string) return number_of<std::uint16_t>(port, what);
  if (const Node* ports = child(&container, "ports")) {
    for (const Node& one : ports->items) {
      if (child_text(&one, "name") == port->text) return number_of<std::uint16_t>(child(&one, "containerPort"), what);
    }
  }
  throw Error(ExitCode::usage, fmt::format("{}: '{}': expected a port, or the name of one of the container's ports",
                                           what, excerpt(port->text)));
}

void add_probes(const Node& container, const std::string& name, std::vector<lint::Probe>& probes) {
  for (const char* kind : {"startupProbe", "readinessProbe", "livenessProbe"}) {
    const Node* probe = child(&container, kind);
    for (const char* how : {"httpGet", "tcpSocket", "grpc"}) {
      const Node* asked = child(probe, how);
      if (!child_text(asked, "host").empty()) continue;  // the kubelet asks another host
      const std::string what = fmt::format("container {}: {}.{}.port", printable(name), kind, how);
      if (const auto port = port_of(child(asked, "port"), container, what)) probes.push_back({name, kind, *port});
    }
  }
}

}  // namespace

lint::PodFacts facts_of(const PodTemplate& pod, std::string_view proxy) {
  lint::PodFacts made;
  made.title = title(pod);
  const Node* spec = child(pod.pod, "spec");
  const Node* of_pod = child(spec, "securityContext");
  const std::string rewrite = child_text(child(child(pod.pod, "metadata"), "annotations"), rewrite_annotation);
  const bool rewritten = options::to_boolean(rewrite).value_or(false);
  for (const char* key : {"initContainers", "containers"}) {
    const Node* containers = child(spec, key);
    if (containers == nullptr) continue;
    for (const Node& container : containers->items) {
      const std::string name = child_text(&container, "name");
      const bool ends = key == std::string_view("initContainers") &&
                        child_text(&container, "restartPolicy") != "Always";  // else a native sidecar
      if (ends || name == proxy || name == init_container_name) continue;
      const Node* own = child(&container, "securityContext");
      const auto id = [&](std::string_view which) {
        const Node* of_container = child(own, which);
        return number_of<std::uint32_t>(of_container != nullptr ? of_container : child(of_pod, which),
                                        fmt::format("container {}: {}", printable(name), which));
      };
      made.containers.push_back({name, id("runAsUser"), id("runAsGroup")});
      if (!rewritten) add_probes(container, name, made.probes);
    }
  }
  return made;
}

}  // namespace sidetrack::manifest
