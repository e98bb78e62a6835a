// SPDX-License-Identifier: GPL-2.0-or-later
// What a pod's annotations ask for, as options of `sidetrack apply`: one table, for all who read annotations.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

using Annotations = std::map<std::string, std::string, std::less<>>;

struct AnnotationInfo {
  std::array<std::string_view, 2> names;  // the second counts if the first is not there; it may be empty
  std::string_view flag;                  // the option that takes the value: Flag::name
  std::string_view preset;                // its value without an annotation
};
[[nodiscard]] std::span<const AnnotationInfo> annotation_table();

// The port that the kubelet's probes are sent to; not intercepted.
inline constexpr std::string_view status_port_annotation = "status.sidecar.istio.io/port";

struct Interception {
  std::string left_alone;  // why the pod is not to be intercepted; empty: it is
  std::vector<std::string>
      options;  // if it is: "--istio-service-cidr=*", one word each, as `sidetrack apply` takes them
};

// A pod is intercepted if it carries sidecar.istio.io/status, unless sidecar.istio.io/inject is false, istio-init is
// among the containers of the status, or the mode is NONE. Nothing is read but the annotations: the text of a pod must
// not name files (@FILE) of whoever reads it. Throws Error (usage) that names the annotation, its value, and what was
// expected.
[[nodiscard]] Interception interception(const Annotations& annotations);

}  // namespace sidetrack
