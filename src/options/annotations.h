// SPDX-License-Identifier: GPL-2.0-or-later
// What a pod's annotations ask for, as options of `sidetrack apply`: one table, for all who read annotations. The CNI
// plugin takes it as what is to be installed (interception()); istio_init.h as the arguments that Istio's injector
// writes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/flags.h"
#include "options/helm_values.h"

namespace sidetrack {

using Annotations = std::map<std::string, std::string, std::less<>>;

// When an injector writes the option.
enum class Passed : std::uint8_t {
  always,
  if_asked,
  if_annotated,  // nothing else says it: beside --pod it may be given as an option
  before_all,    // -u, which the pod may say in other ways, too
};

// In the order in which istio-init gets the options.
struct AnnotationInfo {
  std::string_view name;
  std::string_view flag;  // the option that takes the value: Flag::name
  Passed passed;
  std::string_view helm_value = {};  // what counts if no annotation is there: HelmValueInfo::name; empty: nothing
  std::string_view older = {};       // another name, which counts if the first is not there; empty: there is none
};
[[nodiscard]] std::span<const AnnotationInfo> annotation_table();

inline constexpr std::string_view inject_annotation = "sidecar.istio.io/inject";  // newer: a label of this name
inline constexpr std::string_view status_annotation = "sidecar.istio.io/status";  // of a pod that is injected
inline constexpr std::string_view mode_annotation = "sidecar.istio.io/interceptionMode";
inline constexpr std::string_view proxy_uid_annotation = "sidetrack/proxy-uid";
inline constexpr std::string_view own_prefix = "sidetrack/";  // of the annotations that Istio has not
inline constexpr std::string_view templates_annotation = "inject.istio.io/templates";
inline constexpr std::string_view proxy_config_annotation = "proxy.istio.io/config";
inline constexpr std::string_view overrides_annotation = "proxy.istio.io/overrides";
inline constexpr std::string_view native_annotation = "sidecar.istio.io/nativeSidecar";
inline constexpr std::string_view log_level_annotation = "sidecar.istio.io/agentLogLevel";
// The containers of Istio's.
inline constexpr std::string_view proxy_container = "istio-proxy";
inline constexpr std::string_view init_container_name = "istio-init";
inline constexpr std::string_view validation_container_name = "istio-validation";
// Of an ambient pod. The first is a label in Istio, which no plugin gets.
inline constexpr std::string_view dataplane_annotation = "istio.io/dataplane-mode";
inline constexpr std::string_view excluded_ports_flag = "istio-local-exclude-ports";
// The port that the kubelet's probes are sent to; not intercepted.
inline constexpr std::string_view status_port_annotation = "status.sidecar.istio.io/port";

// What counts for a row, as it is written.
[[nodiscard]] Setting asked_for(const AnnotationInfo& row, const Annotations& annotations, const HelmValues& helm);

// The same, checked by its option, which stores it in `line`. Nothing is read but the text: that of a pod
// must not name files (@FILE) of whoever reads it. Throws Error (usage) that names the annotation or the Helm value,
// the value, and what was expected.
[[nodiscard]] Setting setting(const AnnotationInfo& row, const Annotations& annotations, const HelmValues& helm,
                              CommandLine& line);

// What annotations are refused for together; `config` is what they ask for. Throws as setting() does.
void check_combined(const Config& config, const Annotations& annotations);

// What an error or a warning begins with in the words of who wrote the annotation that gave the option:
// "sidetrack/bypass-cgroup: 'x': …" for "--bypass-cgroup: 'x': …". Any other text stays as it is.
[[nodiscard]] std::string in_words_of(const Annotations& annotations, std::string text);

// The annotation of that name.
[[nodiscard]] std::optional<std::string_view> find(const Annotations& annotations, std::string_view name);

// The port of probes, as it is written; none if it is "0" or empty. Throws as setting() does, unless it is Istio's
// injector that looks at it.
[[nodiscard]] Setting status_port(const Annotations& annotations, const HelmValues& helm,
                                  Injector injector = Injector::sidetrack);

// A value that is no option's alone, for messages.
[[nodiscard]] Given given_by(std::string_view annotation, std::string_view text);

struct Interception {
  std::string left_alone;  // why the pod is not to be intercepted; empty: it is
  std::vector<std::string>
      options;  // if it is: "--istio-service-cidr=*", one word each, as `sidetrack apply` takes them
  std::vector<std::string> warnings{};  // see unknown_annotations()
};

// Whether groups are asked for by name: only the pod's image tells their numbers.
[[nodiscard]] bool has_group_names(const Names& names);

// Whether an annotation of that name says something of a pod's traffic, or whether it is injected.
[[nodiscard]] bool is_read_of_pod(std::string_view name);

// Those that nobody reads: under traffic.sidecar.istio.io/ all, under sidecar.istio.io/ and istio.io/, where Istio has
// many others, those that are written almost as one that is read. A sentence each, to be warned of: upstream does not
// mind them. Throws Error (usage) for one under sidetrack/.
[[nodiscard]] std::vector<std::string> unknown_annotations(const Annotations& annotations);

using Variables = std::map<std::string, std::string, std::less<>>;

// Holds what istio-init takes from the annotation proxy.istio.io/config; inject/manifest/pods.h reads it.
struct ProxyConfig {
  std::string interception_mode;  // empty: not said
  Variables metadata{};           // proxyMetadata
};

// Returns why a proxy with these variables has no Envoy to which traffic could go; empty: it has one. `from` says whose
// they are. Throws as setting() does.
[[nodiscard]] std::string without_envoy(const Variables& metadata, std::string_view from);

// Returns the mode that a number stands for in Istio's configuration, "1": TPROXY; any other text as it is.
[[nodiscard]] std::string_view mode_of_number(std::string_view text);

// Why the injector's templates have no init container for this pod: the annotation inject.istio.io/templates, or else
// the mesh, names some, and "sidecar" is none of them (gateway, grpc-agent, one of the user). Empty: they have one.
[[nodiscard]] std::string without_init_container(const Annotations& annotations, const HelmValues& helm = {});

// Why no rules are for this pod, whatever the others ask for: it has no sidecar.istio.io/status, its
// sidecar.istio.io/inject is false, or istio-init is among the containers of the status; or istio-validation is not,
// and no template with an init container was used, or no proxy was injected. Empty: it is to be intercepted, unless its
// mode is NONE. Throws as setting() does.
[[nodiscard]] std::string why_left_alone(const Annotations& annotations);
// The same of the mode NONE, which an annotation says, or a value; empty: it is another one.
[[nodiscard]] std::string why_mode_none(const Annotations& annotations, const HelmValues& helm);

// A pod is left alone for that, or if its mode is NONE, or if its variables say that its proxy has no Envoy. What a
// variable of the pod asks for comes after the options of annotations, as "--redirect-dns=true", or as
// "ISTIO_OUTBOUND_OWNER_GROUPS=5" if there is no option for it; one of which the injector itself passes the option
// counts for nothing, as for istio-init. Throws as setting() does.
[[nodiscard]] Interception interception(const Annotations& annotations, const ProxyConfig& config = {});

// The same of a pod where those without a sidecar are ambient: it is, unless the annotation istio.io/dataplane-mode is
// none. Without what makes it ambient: "--ingress=true". Throws for one under sidetrack/, unless it is an empty list:
// an ambient pod has none. Warned of are those under traffic.sidecar.istio.io/, and those under ambient.istio.io/ and
// istio.io/ that are written almost as one that is read.
[[nodiscard]] Interception ambient_interception(const Annotations& annotations);

}  // namespace sidetrack
