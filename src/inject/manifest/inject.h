// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "inject/manifest/pods.h"
#include "inject/manifest/template.h"

namespace sidetrack::manifest {

struct Injected {
  InitArguments init;    // what istio-init gets, or why nothing is put there
  bool changed = false;  // it was not as it is now, but
  Node before{};         // so; of one that is changed
};

// Puts the template into the pod: istio-init with the arguments that the pod's annotations ask for, first; then the
// template's other init containers; its containers last; its volumes; and the annotation sidecar.istio.io/status. What
// an earlier injection put there, by that annotation, is taken out first: doing it again changes nothing. A container
// of the pod's own that has the name of one of the template's is merged into that, and kept in the annotation
// proxy.istio.io/overrides.
// Throws Error (usage) as init_arguments() does, with nothing changed.
[[nodiscard]] Injected inject(const PodTemplate& pod, const InjectionTemplate& injected, const HelmValues& helm,
                              const ProxyUids& of_namespaces = {});

// Returns what istio-init gets by inject() with the template of an earlier injection, or with one whose proxy is called
// istio-proxy. Throws as that does, with the pod as it is.
[[nodiscard]] InitArguments arguments_by_inject(const PodTemplate& pod, const HelmValues& helm,
                                                const ProxyUids& of_namespaces);

}  // namespace sidetrack::manifest
