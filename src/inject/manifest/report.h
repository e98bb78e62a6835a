// SPDX-License-Identifier: GPL-2.0-or-later
// What `args` prints.
#pragma once

#include <span>
#include <string>

#include "inject/manifest/pods.h"

namespace sidetrack::manifest {

struct PodArguments {
  PodTemplate pod;
  InitArguments init;
};

// A line for each pod that is injected: its arguments, quoted for a shell.
[[nodiscard]] std::string arguments_text(std::span<const PodArguments> pods);

// A table for each pod: argument, value, what it comes from.
[[nodiscard]] std::string why_text(std::span<const PodArguments> pods);

// `errors`: of arguments().
[[nodiscard]] std::string arguments_json(std::span<const PodArguments> pods, const std::vector<std::string>& errors);

// "Deployment shop/web: not injected: spec.hostNetwork is true"
[[nodiscard]] std::string not_injected(const PodTemplate& pod, std::string_view reason);

}  // namespace sidetrack::manifest
