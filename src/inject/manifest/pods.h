// SPDX-License-Identifier: GPL-2.0-or-later
// The pods that a manifest asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inject/manifest/read.h"
#include "options/istio_init.h"

namespace sidetrack::manifest {

inline constexpr std::string_view program_word = "istio-iptables";  // with which the arguments of both begin

struct PodTemplate {
  std::string kind;          // of the object: "Deployment"
  std::string name;          // of the object, or its generateName; may be empty
  std::string namespace_;    // of the object; empty: that of the kubectl command
  std::string place;         // "web.yaml, document 2": where the object is
  std::size_t document = 1;  // its number
  Node* pod = nullptr;       // the mapping that has the pod's metadata and spec; a part of the documents
  bool has_pod_spec = true;  // not of KubeVirt, which makes the containers: an injector looks at its pods alone
  // Lists what is between the object and the pod, from the outside: where it is, and its own metadata.
  std::vector<std::pair<std::string, const Node*>> above{};
};

// "Deployment shop/web"
[[nodiscard]] std::string title(const PodTemplate& pod);
// "web.yaml, document 2: Deployment shop/web"
[[nodiscard]] std::string title_with_place(const PodTemplate& pod);

// Of each object that has a pod template, also in lists, in order. `skipped` gets a sentence for each kind of other
// objects that pods are made of, and for each document that is no object of Kubernetes. Throws Error (usage) if there
// is nothing but such documents.
[[nodiscard]] std::vector<PodTemplate> pod_templates(Documents& documents, std::vector<std::string>& skipped);

// Puts the values of their parameters into the objects of OpenShift's Templates, as `oc process` does without options.
// One that has no value, as it is required or generated, stays as it is written.
void set_parameters(Documents& documents);

// The uid that Istio gives to the proxy in pods of a namespace, by its name: the last one of the range that OpenShift
// has written into the Namespace, openshift.io/sa.scc.uid-range.
struct ProxyUid {
  std::string uid;
  std::optional<Error> problem{};  // why it is not known: what is there is no range
};
using ProxyUids = std::map<std::string, ProxyUid, std::less<>>;

// Reads the range of each Namespace among the documents that has one. Throws Error (usage) for metadata of another
// type.
void read_namespaces(const Documents& documents, ProxyUids& uids);

// Throws Error (usage) for annotations that are no strings, and for more of them than Kubernetes takes.
void check_annotations(const PodTemplate& pod);

// What the injector looks at, without a look into the annotation proxy.istio.io/config. Throws as the next one does.
[[nodiscard]] PodMetadata bare_metadata(const PodTemplate& pod, std::string_view proxy = {});

// The same; `proxy` is the name of the proxy's container, empty: the one that the pod says it was
// injected with, else istio-proxy. `helm` gets what the annotation proxy.istio.io/config says in place of the mesh's.
// Throws Error (usage) that names the object, what is wrong, and what was expected.
[[nodiscard]] PodMetadata metadata_of(const PodTemplate& pod, HelmValues& helm, std::string_view proxy = {});

// Reads the annotation proxy.istio.io/config, which is YAML; empty if it is not there. Throws Error (usage) that names
// the annotation for what is no mapping, or of another type.
[[nodiscard]] ProxyConfig proxy_config(const Annotations& annotations);

// The variables that istio-init has by proxyMetadata: of the mesh, and of the annotation proxy.istio.io/config. Throws
// as init_variables() does.
[[nodiscard]] Variables init_environment(const PodTemplate& pod, const HelmValues& helm);

// Returns why a pod gets no istio-init from Sidetrack's injector, whatever else it asks for; without arguments. Throws
// Error (usage) for what says neither yes nor no.
[[nodiscard]] InitArguments left_alone(const PodTemplate& pod, const HelmValues& helm);

// Returns what istio-init gets from Sidetrack's injector; `proxy_uid` counts if the pod's container `proxy` does not
// say its own, and `of_namespaces` if neither does. Throws as metadata_of() and init_environment() do.
[[nodiscard]] InitArguments init_arguments(const PodTemplate& pod, const HelmValues& helm, std::string_view proxy = {},
                                           const std::optional<std::string>& proxy_uid = std::nullopt,
                                           const ProxyUids& of_namespaces = {});

// The same of Istio's injector. Throws Error (usage) for what that refuses.
[[nodiscard]] InitArguments arguments_by_istio(const PodTemplate& pod, const HelmValues& helm,
                                               const ProxyUids& of_namespaces);

// Whether an injector has written into the pod that it was there.
[[nodiscard]] bool is_injected(const PodTemplate& pod);

// What istio-init of a pod gets that is injected already, or istio-validation, which tests the rules of a CNI plugin:
// the arguments that stand in its container, and its variables.
struct PresentInit {
  InitArguments init;
  Variables environment;
};

// Nothing if the pod has no such container. Throws Error
// (usage) for arguments that are no strings.
[[nodiscard]] std::optional<PresentInit> present_init(const PodTemplate& pod);

}  // namespace sidetrack::manifest
