// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/helm_values_file.h"

#include <fmt/format.h>

#include "manifest/read.h"
#include "manifest/scalar.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::manifest {
namespace {

[[noreturn]] void refuse(const Documents& file, const Node& node, std::string_view what, std::string_view expected) {
  const std::string given =
      node.is_scalar() ? fmt::format("{} '{}'", name(node.type), excerpt(node.text)) : std::string(name(node.type));
  throw Error(ExitCode::usage,
              fmt::format("{}: {}: {}: expected {}", place(file.name, node.line), what, given, expected));
}

// "global.proxy.statusPort", from key to key.
const Node* at(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (node != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    node = node->find(path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return node;
}

// An IstioOperator has the chart's values below one key, the mesh's configuration beside them.
const Node* of_operator(const Node& root, std::string_view name) {
  const Node* beside = at(root, fmt::format("spec.{}", name));
  return beside != nullptr ? beside : at(root, fmt::format("spec.values.{}", name));
}

}  // namespace

void read_helm_values(HelmValues& values, const std::string& file) {
  const Documents documents = read_documents(file);
  for (const Document& document : documents.list) {
    const Node& root = document.root;
    if (root.is_null()) continue;
    if (root.type != Node::Type::mapping) refuse(documents, root, "the document", "a mapping of Helm values");
    const Node* kind = root.find("kind");
    const bool is_operator = kind != nullptr && kind->text == "IstioOperator";
    for (const HelmValueInfo& known : helm_value_table()) {
      const Node* found = is_operator ? of_operator(root, known.name) : at(root, known.name);
      if (found == nullptr) continue;
      if (found->type != Node::Type::string && found->type != Node::Type::number)
        refuse(documents, *found, known.name, "a string or a number");
      std::string text = found->type == Node::Type::number ? json_number(found->text) : found->text;
      values.insert_or_assign(std::string(known.name),
                              HelmValue{std::move(text), fmt::format("{}: {}", excerpt(documents.name), known.name)});
    }
  }
}

}  // namespace sidetrack::manifest
