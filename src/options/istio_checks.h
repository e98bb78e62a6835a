// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "options/annotations.h"

namespace sidetrack {

// Throws Error (usage) for the annotations that Istio's injector refuses a pod for. It reads some otherwise than
// istio-init reads the option: it wants "10.0.0.0/32" for "10.0.0.0", and takes the port 0.
void check_as_istio(const Annotations& annotations);

// Whether it is one of Kubernetes, as "100m", "1.5Gi", "2e3".
[[nodiscard]] bool is_quantity(std::string_view text);

// Returns the value as istio-init gets it: the template writes it between double quotes, where YAML folds lines.
// Throws Error (usage) for quotes and backslashes, with which the template is another one.
[[nodiscard]] std::string in_template(std::string_view annotation, std::string_view value);

}  // namespace sidetrack
