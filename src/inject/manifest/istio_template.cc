// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/istio_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "inject/manifest/read.h"
#include "model/error.h"
#include "options/istio_checks.h"
#include "options/values.h"

namespace sidetrack::manifest {
namespace {

[[noreturn]] void refuse(std::string_view from, std::string_view text, std::string_view expected) {
  options::refuse(given_by(from, text), expected,
                  "Istio's injector refuses the pod; --injector sidetrack answers for Sidetrack's");
}

// Returns the only item of a list whose items stand where the template has the arguments of a container; nothing if the
// line makes another document of it.
std::optional<std::string> item_of(std::string_view line) {
  try {
    const Documents documents =
        parse_documents(fmt::format("spec:\n  containers:\n  - args:\n    - {}\n    env: []\n", line), "template",
                        limits_of_annotation);
    if (documents.list.size() != 1) return std::nullopt;
    const Node* containers = child(child(&documents.list[0].root, "spec"), "containers");
    const Node* container = containers == nullptr || containers->items.size() != 1 ? nullptr : &containers->items[0];
    const Node* args = child(container, "args");
    const bool is_one = args != nullptr && args->items.size() == 1 && child(container, "env") != nullptr &&
                        args->items[0].type == Node::Type::string;
    return is_one ? std::optional(args->items[0].text) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

// Lists what the templates write of pods beside the arguments of istio-init.
struct Written {
  std::string_view annotation;
  std::string_view helm_value;  // counts if the annotation is not there; empty: none
  std::string_view before;      // on the line; a quote: there is another one after it
  std::string_view only_with = {};
};
constexpr Written written_table[] = {
    {log_level_annotation, "global.logging.level", "--log_output_level="},
    {"sidecar.istio.io/logLevel", "", "--proxyLogLevel="},
    {"sidecar.istio.io/componentLogLevel", "", "--proxyComponentLogLevel="},
    {"sidecar.istio.io/proxyImage", "", "\"", "/"},
    {"sidecar.istio.io/proxyImageType", "", "\""},
};

// Lists the templates that write it. Others of Istio's write nothing of it, or as JSON.
struct TemplateInfo {
  std::string_view name;
  bool has_volumes;
};
constexpr TemplateInfo template_table[] = {{"sidecar", true}, {"gateway", false}, {"grpc-agent", true}};

// An item of a list, or the value of a key, is written on lines of its own.
void check_volumes(const Annotations& annotations, std::string_view name) {
  const auto text = find(annotations, name);
  if (!text) return;
  constexpr std::string_view expected = "a JSON object of objects, by the names of volumes, or a list of them";
  const auto is_volume = [](const Node& node) { return node.type == Node::Type::mapping && !node.entries.empty(); };
  try {
    const std::vector<Document> documents = parse_json(*text, name, limits_of_annotation);
    const Node& root = documents[0].root;
    const bool is_right = root.is_null() || root.type == Node::Type::list || root.type == Node::Type::mapping;
    if (documents.size() == 1 && is_right && std::ranges::all_of(root.items, is_volume) &&
        std::ranges::all_of(root.entries, is_volume, &Entry::value))
      return;
  } catch (const Error&) {
  }
  refuse(name, *text, expected);
}

// As Go reads JSON, whose keys are of any case.
const Node* member(const Node& mapping, std::string_view key) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  for (const Entry& entry : mapping.entries) {
    if (std::ranges::equal(entry.key, key, {}, lower, lower) && !entry.value.is_null()) return &entry.value;
  }
  return nullptr;
}

bool is_list_of(const Node* list, Node::Type type) {
  return list == nullptr || (list->type == Node::Type::list && std::ranges::all_of(list->items, [&](const Node& item) {
                               return item.type == type || item.is_null();
                             }));
}

bool is_container(const Node& container) {
  const Node* name = member(container, "name");
  return (name == nullptr || name->type == Node::Type::string) &&
         is_list_of(member(container, "args"), Node::Type::string);
}

}  // namespace

std::string in_template(std::string_view from, std::string_view text) {
  auto item = item_of(quoted(text));
  if (!item) refuse(from, text, "text that stays as it is between the double quotes of YAML");
  return *std::move(item);
}

void check_in_template(const Annotations& annotations, const HelmValues& helm, const Variables& variables) {
  const auto templates = split_at_each(
      find(annotations, templates_annotation).value_or(helm_setting(helm, default_templates_value).value), ',');
  const auto is_used = [&](const TemplateInfo& info) {
    return std::ranges::find(templates, info.name, trimmed) != templates.end();
  };
  if (std::ranges::none_of(template_table, is_used)) return;
  for (const auto& [annotation, helm_value, before, only_with] : written_table) {
    const auto text = find(annotations, annotation);
    const Setting asked = text                 ? Setting{*text, annotation}
                          : helm_value.empty() ? Setting{}
                                               : helm_setting(helm, helm_value);
    if (asked.from.empty() || asked.value.find(only_with) == std::string_view::npos) continue;
    const std::string line = before == "\"" ? quoted(asked.value) : fmt::format("{}{}", before, asked.value);
    if (!item_of(line)) refuse(asked.from, asked.value, "a word that is one in YAML, too");
  }
  for (const auto& [name, value] : variables) {
    if (!name.empty() && !item_of(name)) refuse("proxyMetadata", name, "the name of a variable");
    if (!item_of(quoted(value)))
      refuse(fmt::format("proxyMetadata: {}", name), value, "text without double quotes and backslashes");
  }
  const bool has_volumes =
      std::ranges::any_of(template_table, [&](const TemplateInfo& info) { return info.has_volumes && is_used(info); });
  if (!has_volumes) return;
  for (const std::string_view name : {"sidecar.istio.io/userVolume", "sidecar.istio.io/userVolumeMount"})
    check_volumes(annotations, name);
}

Node args_in_overrides(const Annotations& annotations, std::string_view name) {
  const auto text = find(annotations, overrides_annotation);
  if (!text) return {};
  try {
    const std::vector<Document> documents = parse_json(*text, overrides_annotation, limits_of_annotation);
    const Node& root = documents[0].root;
    const Node* lists[] = {member(root, "initContainers"), member(root, "containers")};
    const bool is_right = std::ranges::all_of(lists, [](const Node* list) {
      return is_list_of(list, Node::Type::mapping) &&
             (list == nullptr || std::ranges::all_of(list->items, is_container));
    });
    if (documents.size() == 1 && (root.is_null() || root.type == Node::Type::mapping) && is_right) {
      if (lists[0] == nullptr) return {};
      const auto found = std::ranges::find_if(lists[0]->items, [&](const Node& container) {
        const Node* its = member(container, "name");
        return its != nullptr && its->text == name;
      });
      const Node* args = found == lists[0]->items.end() ? nullptr : member(*found, "args");
      return args == nullptr || args->items.empty() ? Node() : *args;
    }
  } catch (const Error&) {
  }
  refuse(overrides_annotation, *text, "a JSON object of lists of containers, as the sidecar injector writes it");
}

}  // namespace sidetrack::manifest
