// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

#include "inject/manifest/pods.h"
#include "lint/lint.h"

namespace sidetrack::manifest {

// Who runs beside the container `proxy`, and what the kubelet asks them. Init containers that end before the proxy
// starts do not count; nor do probes that the injector rewrites to the proxy's agent, as the annotation
// sidecar.istio.io/rewriteAppHTTPProbers says.
[[nodiscard]] lint::PodFacts facts_of(const PodTemplate& pod, std::string_view proxy);

}  // namespace sidetrack::manifest
