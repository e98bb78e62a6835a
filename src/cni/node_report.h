// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "cni/node.h"

namespace sidetrack::cni {

// A line for each pod: namespace/name, process, backend, what is captured, whether it is as recorded.
[[nodiscard]] std::string node_text(const Node& node);
[[nodiscard]] std::string node_json(const Node& node);
// Prometheus' text format, as node_exporter's textfile collector reads it.
[[nodiscard]] std::string node_metrics(const Node& node);

}  // namespace sidetrack::cni
