// SPDX-License-Identifier: GPL-2.0-or-later
// Follows Istio's injection template, which writes the text of annotations and values into a YAML document, some of it
// between double quotes, some without.
#pragma once

#include <string>
#include <string_view>

#include "inject/manifest/node.h"
#include "options/annotations.h"

namespace sidetrack::manifest {

// Returns the text of an annotation or a Helm value as istio-init gets it from between the double quotes. Throws Error
// (usage) where the template would be no YAML, or another one.
[[nodiscard]] std::string in_template(std::string_view from, std::string_view text);

// Throws Error (usage) for annotations, Helm values and variables that Istio's injector writes into its template and
// then refuses the pod for.
void check_in_template(const Annotations& annotations, const HelmValues& helm, const Variables& variables);

// Returns the list of arguments that the annotation proxy.istio.io/overrides has for an init container; null if it has
// none. Throws Error (usage) for what is no such annotation.
[[nodiscard]] Node args_in_overrides(const Annotations& annotations, std::string_view name);

}  // namespace sidetrack::manifest
