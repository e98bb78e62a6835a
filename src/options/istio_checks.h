// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

#include "options/annotations.h"

namespace sidetrack {

// Throws Error (usage) for the annotations that Istio's injector refuses a pod for. It reads some otherwise than
// istio-init reads the option: it wants "10.0.0.0/32" for "10.0.0.0", and takes the port 0.
void check_as_istio(const Annotations& annotations);

// Whether it is one of Kubernetes, as "100m", "1.5Gi", "2e3".
[[nodiscard]] bool is_quantity(std::string_view text);

// As strings.TrimSpace of Go: without the blanks of Unicode around it, of which some are more than a byte.
[[nodiscard]] std::string_view trimmed(std::string_view text);

}  // namespace sidetrack
