// SPDX-License-Identifier: GPL-2.0-or-later
// The arguments with which Istio's injector starts istio-init in a pod, in its order and with its words:
// -p -z -u -m -i -x -b -d [-q] [-o] [-k] [-c], how it logs, switches. Sidetrack's has options of its own after -c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options/annotations.h"
#include "options/options.h"

namespace sidetrack {

// Bytes of a pod's annotations, names and values together: Kubernetes takes no more (TotalAnnotationSizeLimitB). So
// much may also be what is said for all pods in place of annotations.
inline constexpr std::size_t largest_annotations = 256U << 10;

// What of a pod the injector looks at.
struct PodMetadata {
  std::string namespace_;
  Annotations annotations;
  Labels labels;  // sidecar.istio.io/inject wins over the annotation
  bool host_network = false;
  std::string proxy = "istio-proxy";           // the name of the proxy's container, for messages
  std::optional<std::string> proxy_uid;        // its runAsUser
  std::optional<std::string> namespace_uid{};  // the one that Istio gives to a proxy there (OpenShift), if it is known
};

struct InitArgument {
  // As words: "-p" "15001"; "--log_output_level=default:info"; "--run-validation".
  enum class Form : std::uint8_t { two_words, joined, alone };
  std::string option;  // "-p"
  std::string value;   // as written
  std::string from;    // what it comes from, several separated by ", "; empty: the default
  Form form = Form::two_words;
};

struct InitArguments {
  std::string_view reason;   // a word for not_injected: "host_network", "system_namespace", "inject_false",
                             // "selector", "auto_inject", "template", "mode_none", "no_envoy"
  std::string not_injected;  // why the pod gets no istio-init; empty: it gets it
  std::vector<InitArgument> arguments;
  std::vector<std::string> warnings{};  // unknown_annotations(), and what is without effect
  std::string refused{};                // why istio-init ends with an error; empty: it takes the arguments
};

// Whether the pod gets an istio-init at all, unless its mode is NONE: without arguments. Throws as the next one does.
[[nodiscard]] InitArguments why_not_injected(const PodMetadata& pod, const HelmValues& helm, Injector injector);
// The same of the mode. Throws as setting() does.
[[nodiscard]] InitArguments why_not_injected_by_mode(const Annotations& annotations, const HelmValues& helm);

// Values are passed on as they are given: of Istio's injector, that of in_template(). Of Sidetrack's injector: throws
// Error (usage) as setting() does for what the option would refuse. Of Istio's: throws as check_as_istio() does.
[[nodiscard]] InitArguments istio_init_arguments(const PodMetadata& pod, const HelmValues& helm,
                                                 Injector injector = Injector::sidetrack);

// The variables of istio-init: the mesh's, by its Helm values, and over them `of_pod`, which come from `from`. Throws
// Error (usage) that names what it comes from, for what is no name of a variable, and for a value that istio-init would
// refuse.
[[nodiscard]] Variables init_variables(const HelmValues& helm, const Variables& of_pod, std::string_view from);

// Throws Error (usage) for values that pods without annotations would be refused for.
void check_helm_values(const HelmValues& helm, Injector injector = Injector::sidetrack);

// "-p", "15001", …
[[nodiscard]] std::vector<std::string> words(const InitArguments& init);

}  // namespace sidetrack
