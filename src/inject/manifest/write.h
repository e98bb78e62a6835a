// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>

#include "inject/manifest/read.h"

namespace sidetrack::manifest {

// The document as YAML: its order, and quotes as they are in the nodes. What it reads back as is checked.
[[nodiscard]] std::string yaml_text(const Node& root);

// As JSON: in one line, or indented.
enum class Layout : bool { one_line, indented };
[[nodiscard]] std::string json_text(const Node& root, Layout layout = Layout::one_line);

// The file with the documents as they are now, in its form. Those whose number is not in `changed`, which is in order,
// keep every byte.
[[nodiscard]] std::string written(const Documents& documents, std::span<const std::size_t> changed);

}  // namespace sidetrack::manifest
