// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/helm_values_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "inject/manifest/pods.h"
#include "inject/manifest/read.h"
#include "inject/manifest/scalar.h"
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

// "proxy_listen_port": protobuf takes this form of the names of its fields, too.
std::string in_snake_case(std::string_view name) {
  std::string made;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') made += '_';
    made += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return made;
}

class ValuesReader {
 public:
  ValuesReader(HelmValues& values, const Documents& file, std::vector<std::string>& warnings)
      : values_(values), file_(file), warnings_(warnings) {}

  void document(const Node& root) {
    if (root.type != Node::Type::mapping) refuse(file_, root, "the document", "a mapping of Helm values");
    const Node* kind = root.find("kind");
    const bool is_operator = kind != nullptr && kind->text == "IstioOperator";
    if (kind != nullptr && !is_operator) refuse(file_, *kind, "kind", "Helm values, or an IstioOperator");
    const auto found = [&](std::string_view name) {
      return is_operator ? of_operator(root, name) : of_chart(root, name);
    };
    if (is_operator) take_operator(root);
    for (const HelmValueInfo& known : helm_value_table()) {
      if (const Node* value = found(known.name)) take(known, *value);
    }
    if (const Node* variables = found(proxy_metadata_value)) take_variables(*variables);
    if (const Node* templates = found(templates_value)) warn_of_templates(*templates);
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
      const std::string_view key = left.substr(0, dot);
      auto entry = std::ranges::find(node->entries, key, &Entry::key);
      if (entry == node->entries.end() && path.find("meshConfig.") != std::string_view::npos)
        entry = std::ranges::find(node->entries, in_snake_case(key), &Entry::key);
      if (entry == node->entries.end()) return nullptr;
      node = &entry->value;
      node->check_fault(path.substr(0, path.size() - left.size() + std::min(dot, left.size())),
                        fmt::format("{}, ", excerpt(file_.name)));
      left.remove_prefix(dot == std::string_view::npos ? left.size() : dot + 1);
    }
    return node;
  }

  [[nodiscard]] const Node* of_chart(const Node& root, std::string_view name) const {
    const Node* value = at(root, name);
    return value == nullptr && name == cni_value ? at(root, cni_value_of_chart) : value;
  }

  // An IstioOperator has the chart's values below two keys, the mesh's configuration and the plugin beside them, where
  // they count before the second.
  [[nodiscard]] const Node* of_operator(const Node& root, std::string_view name) const {
    if (const Node* unvalidated = at(root, fmt::format("spec.unvalidatedValues.{}", name))) return unvalidated;
    if (name == cni_value) return at(root, components_cni);
    const Node* beside = name.starts_with("meshConfig.") ? at(root, fmt::format("spec.{}", name)) : nullptr;
    return beside != nullptr ? beside : at(root, fmt::format("spec.values.{}", name));
  }

  void take_operator(const Node& root) {
    const Node* profile = at(root, operator_profile_value);
    if (profile != nullptr && !profile->is_null()) {
      take({operator_profile_value, ""}, *profile);
    } else {
      values_.try_emplace(std::string(operator_profile_value),
                          HelmValue{"default", fmt::format("{}: {}", excerpt(file_.name), operator_profile_value)});
    }
    if (const Node* ignored = at(root, fmt::format("spec.values.{}", cni_value)); ignored != nullptr)
      warnings_.push_back(fmt::format("{}: spec.values.{}: without effect: an IstioOperator says it by {}",
                                      place(file_.name, ignored->line), cni_value, components_cni));
  }

  // Their text is a program in Go's template language. Those without an init container's name do not change it.
  void warn_of_templates(const Node& templates) {
    if (templates.is_null()) return;
    if (templates.type != Node::Type::mapping) refuse(file_, templates, templates_value, "a mapping");
    for (const Entry& entry : templates.entries) {
      const std::string& text = entry.value.text;
      if (entry.key == "sidecar" || text.find(init_container_name) != std::string::npos ||
          text.find(validation_container_name) != std::string::npos)
        warnings_.push_back(fmt::format("{}: {}.{}: not evaluated: the arguments are those of Istio's own template",
                                        place(file_.name, entry.value.line), templates_value, excerpt(entry.key)));
    }
  }

  HelmValue& set(std::string name, std::string text, bool is_null) {
    std::string from = fmt::format("{}: {}", excerpt(file_.name), excerpt(name));
    return values_.insert_or_assign(std::move(name), HelmValue{std::move(text), std::move(from), is_null})
        .first->second;
  }

  void take(const HelmValueInfo& known, const Node& value) {
    HelmValue& made = set(std::string(known.name), "", value.is_null());
    if (made.is_null) return;
    const auto require = [&](bool is_right, std::string_view expected) {
      if (!is_right) refuse(file_, value, known.name, expected);
    };
    const bool is_number = value.type == Node::Type::number;
    switch (known.kind) {
      case HelmValueInfo::Kind::string:
        if (is_number)
          warnings_.push_back(
              fmt::format("{}: {}: a number: Istio's injector then refuses every pod; write it in quotes",
                          place(file_.name, value.line), known.name));
        [[fallthrough]];
      case HelmValueInfo::Kind::text:
        require(is_number || value.type == Node::Type::string, "a string or a number");
        made.text = is_number ? json_number(value.text) : value.text;
        if (is_number && known.name == mode_value) made.text = mode_of_number(made.text);
        break;
      case HelmValueInfo::Kind::boolean:
        require(value.type == Node::Type::boolean, "true or false");
        made.text = value.is_true() ? "true" : "false";
        break;
      case HelmValueInfo::Kind::list:
        made.text = fmt::format("{}", fmt::join(strings(value, known.name), ","));
        break;
      case HelmValueInfo::Kind::selectors:
        require(value.type == Node::Type::list, "a list of label selectors");
        for (const Node& item : value.items) made.selectors.push_back(selector(item, known.name));
        break;
    }
  }

  [[nodiscard]] std::vector<std::string> strings(const Node& list, std::string_view what) const {
    if (list.type != Node::Type::list) refuse(file_, list, what, "a list of strings");
    std::vector<std::string> made;
    for (const Node& item : list.items) {
      if (item.type != Node::Type::string) refuse(file_, item, what, "a list of strings");
      made.push_back(item.text);
    }
    return made;
  }

  // {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [a]}]}
  [[nodiscard]] LabelSelector selector(const Node& node, std::string_view what) const {
    using Operator = LabelRequirement::Operator;
    constexpr std::string_view operators[] = {"In", "NotIn", "Exists", "DoesNotExist"};  // as in the enumeration
    if (node.type != Node::Type::mapping) refuse(file_, node, what, "a list of label selectors");
    LabelSelector made;
    for (const Entry& part : node.entries) {
      if (part.key == "matchLabels" && part.value.type == Node::Type::mapping) {
        for (const Entry& label : part.value.entries) {
          if (label.value.type != Node::Type::string) refuse(file_, label.value, what, "labels, which are strings");
          made.push_back({label.key, Operator::in, {label.value.text}});
        }
      } else if (part.key == "matchExpressions" && part.value.type == Node::Type::list) {
        for (const Node& expression : part.value.items) {
          const auto member = [&](std::string_view key) {
            return expression.type == Node::Type::mapping ? expression.find(key) : nullptr;
          };
          const Node* key = member("key");
          const Node* word = member("operator");
          const Node* values = member("values");
          const auto* const known = std::ranges::find(operators, word == nullptr ? "" : word->text);
          const bool has_values = values != nullptr && !values->items.empty();
          if (key == nullptr || known == std::end(operators) || has_values != (known - operators < 2))
            refuse(file_, expression, what,
                   "key, operator (In, NotIn, Exists or DoesNotExist) and, for the first two, values");
          made.push_back({key->text, static_cast<Operator>(known - operators),
                          has_values ? strings(*values, what) : std::vector<std::string>()});
        }
      } else if (!part.value.is_null()) {
        refuse(file_, part.value, fmt::format("{}: {}", what, excerpt(part.key)),
               "a mapping matchLabels, or a list matchExpressions");
      }
    }
    return made;
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
        refuse(file_, entry.value, name, "a string, in quotes");
      set(std::move(name), entry.value.text, entry.value.is_null());
    }
  }

  static constexpr std::string_view templates_value = "sidecarInjectorWebhook.templates";
  static constexpr std::string_view components_cni = "spec.components.cni.enabled";

  HelmValues& values_;
  const Documents& file_;
  std::vector<std::string>& warnings_;
};

}  // namespace

void read_helm_values(HelmValues& values, const Documents& file, std::vector<std::string>& warnings) {
  for (const Document& document : file.list) {
    if (!document.root.is_null()) ValuesReader(values, file, warnings).document(document.root);
  }
}

}  // namespace sidetrack::manifest
