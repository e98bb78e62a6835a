// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/helm_values_file.h"

#include <fmt/format.h>

#include <algorithm>

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

class ValuesReader {
 public:
  ValuesReader(HelmValues& values, const Documents& file) : values_(values), file_(file) {}

  void document(const Node& root) {
    if (root.type != Node::Type::mapping) refuse(file_, root, "the document", "a mapping of Helm values");
    const Node* kind = root.find("kind");
    const bool is_operator = kind != nullptr && kind->text == "IstioOperator";
    if (kind != nullptr && !is_operator) refuse(file_, *kind, "kind", "Helm values, or an IstioOperator");
    const auto found = [&](std::string_view name) { return is_operator ? of_operator(root, name) : at(root, name); };
    for (const HelmValueInfo& known : helm_value_table()) {
      if (const Node* value = found(known.name)) take(known, *value);
    }
    if (const Node* variables = found(proxy_metadata_value)) take_variables(*variables);
  }

 private:
  // "global.proxy.statusPort", from key to key; a null ends the way. nullptr: it is not there.
  [[nodiscard]] const Node* at(const Node& root, std::string_view path) const {
    const Node* node = &root;
    std::string_view left = path;
    while (!left.empty() && !node->is_null()) {
      if (node->type != Node::Type::mapping)
        refuse(file_, *node, path.substr(0, path.size() - left.size() - 1), "a mapping");
      const auto dot = left.find('.');
      const auto entry = std::ranges::find(node->entries, left.substr(0, dot), &Entry::key);
      if (entry == node->entries.end()) return nullptr;
      node = &entry->value;
      left.remove_prefix(dot == std::string_view::npos ? left.size() : dot + 1);
    }
    return node;
  }

  // An IstioOperator has the chart's values below one key, the mesh's configuration beside them.
  [[nodiscard]] const Node* of_operator(const Node& root, std::string_view name) const {
    const Node* beside = at(root, fmt::format("spec.{}", name));
    return beside != nullptr ? beside : at(root, fmt::format("spec.values.{}", name));
  }

  void set(std::string name, std::string text, bool is_null) {
    std::string from = fmt::format("{}: {}", excerpt(file_.name), excerpt(name));
    values_.insert_or_assign(std::move(name), HelmValue{std::move(text), std::move(from), is_null});
  }

  void take(const HelmValueInfo& known, const Node& value) {
    const bool is_number = value.type == Node::Type::number && !known.is_switch;
    if (!is_number && value.type != (known.is_switch ? Node::Type::boolean : Node::Type::string) && !value.is_null())
      refuse(file_, value, known.name, known.is_switch ? "true or false" : "a string or a number");
    set(std::string(known.name),
        known.is_switch ? (value.is_true() ? "true" : "false")
        : is_number     ? json_number(value.text)
                        : value.text,
        value.is_null());
  }

  void take_variables(const Node& variables) {
    if (variables.is_null()) {
      std::erase_if(values_, [](const auto& value) { return value.first.starts_with(proxy_metadata_value); });
      return;
    }
    if (variables.type != Node::Type::mapping) refuse(file_, variables, proxy_metadata_value, "a mapping");
    for (const Entry& entry : variables.entries) {
      std::string name = fmt::format("{}.{}", proxy_metadata_value, entry.key);
      if (entry.value.type != Node::Type::string && !entry.value.is_null())
        refuse(file_, entry.value, name, "a string");
      set(std::move(name), entry.value.text, entry.value.is_null());
    }
  }

  HelmValues& values_;
  const Documents& file_;
};

}  // namespace

void read_helm_values(HelmValues& values, const Documents& file) {
  for (const Document& document : file.list) {
    if (!document.root.is_null()) ValuesReader(values, file).document(document.root);
  }
}

}  // namespace sidetrack::manifest
