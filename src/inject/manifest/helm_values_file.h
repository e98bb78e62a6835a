// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "inject/manifest/read.h"
#include "options/helm_values.h"

namespace sidetrack::manifest {

// Takes over what a file of Istio's Helm values, or an IstioOperator, sets of the values that count; the rest of it is
// not looked at. null takes back what earlier files set, there and below. `warnings` gets the templates of the user's
// own that may change istio-init, and what an IstioOperator ignores. Throws Error (usage) for an object of another
// kind, and for a value that is neither a string nor a number.
void read_helm_values(HelmValues& values, const Documents& file, std::vector<std::string>& warnings);

}  // namespace sidetrack::manifest
