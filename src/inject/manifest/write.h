// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <string>

#include "inject/manifest/read.h"

namespace sidetrack::manifest {

// The document as YAML: its order, and quotes as they are in the nodes. What it reads back as is checked.
[[nodiscard]] std::string yaml_text(const Node& root);

// As JSON: in one line, or indented.
enum class Layout : bool { one_line, indented };
[[nodiscard]] std::string json_text(const Node& root, Layout layout = Layout::one_line);

// Changes a document. Returns whether it did.
using Change = std::function<bool(const Document&)>;

// The file, in its form, with its documents as they are after `change`, one after the other; each is empty afterwards.
// Keeps every byte of those that are not changed.
[[nodiscard]] std::string written(Documents& documents, const Change& change);

}  // namespace sidetrack::manifest
