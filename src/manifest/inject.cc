// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "manifest/write.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view overrides_annotation = "proxy.istio.io/overrides";
constexpr std::string_view revision = "default";
constexpr std::string_view program_word = "istio-iptables";
constexpr std::string_view template_image = "auto";  // the image of the template counts

constexpr std::string_view init_containers_key = "initContainers";
constexpr std::string_view containers_key = "containers";
constexpr std::string_view volumes_key = "volumes";
constexpr std::string_view image_pull_secrets_key = "imagePullSecrets";

// The lists of a pod's spec that the status names, in its order.
constexpr std::array lists = {init_containers_key, containers_key, volumes_key, image_pull_secrets_key};

Node empty_node(Node::Type type) {
  Node node;
  node.type = type;
  return node;
}

// Without quotes where every reader of YAML takes it for a string.
Node text_node(std::string_view text) {
  Node node = Node::string(text);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '/';
  };
  constexpr std::size_t longest_word_of_yaml = 5;  // false
  if (text.size() > longest_word_of_yaml && is_letter(text[0]) && std::ranges::all_of(text, is_plain))
    node.style = Node::Style::plain;
  return node;
}

// A member of a mapping, made if it is not there, or null.
Node& member(Node& mapping, std::string_view key, Node::Type type) {
  auto found = std::ranges::find(mapping.entries, key, &Entry::key);
  if (found == mapping.entries.end())
    found = mapping.entries.insert(found, {std::string(key), Node::Style::plain, empty_node(type)});
  if (found->value.is_null()) found->value = empty_node(type);
  return found->value;
}

void put(Node& mapping, std::string_view key, Node value) { member(mapping, key, Node::Type::null) = std::move(value); }

void erase(Node& mapping, std::string_view key) {
  std::erase_if(mapping.entries, [&](const Entry& entry) { return entry.key == key; });
}

Node* find_named(std::vector<Node>& nodes, std::string_view name) {
  const auto found = std::ranges::find(nodes, name, name_of);
  return found == nodes.end() ? nullptr : &*found;
}

class Injection {
 public:
  Injection(Node& pod, const InjectionTemplate& injected, const std::string& title)
      : pod_(pod), injected_(injected), title_(title) {}

  // What is no pod is refused before anything is put into it.
  void check() const {
    check_type(&pod_, "metadata", Node::Type::mapping);
    check_type(pod_.find("metadata"), "annotations", Node::Type::mapping);
    check_type(&pod_, "spec", Node::Type::mapping);
    for (const std::string_view list : lists) check_type(pod_.find("spec"), list, Node::Type::list);
  }

  // The pod as it was before an earlier injection.
  void undo() {
    Node* metadata = pod_.find("metadata");
    Node* annotations = metadata == nullptr ? nullptr : metadata->find("annotations");
    if (annotations == nullptr) return;
    if (const Node* status = annotations->find(status_annotation)) take_out(read(status_annotation, status->text));
    if (const Node* overrides = annotations->find(overrides_annotation))
      put_back(read(overrides_annotation, overrides->text));
  }

  void run(const InitArguments& init, const Variables& environment) {
    Node& spec = member(pod_, "spec", Node::Type::mapping);
    Node overrides = empty_node(Node::Type::mapping);

    std::vector<Node> first{init_container(init, environment)};
    auto& own_init = member(spec, init_containers_key, Node::Type::list).items;
    std::erase_if(own_init, [](const Node& container) { return name_of(container) == init_container_name; });
    // A native sidecar of the template may stand among the containers of a pod that was made for the other kind.
    for (const Node& container : injected_.init_containers)
      first.push_back(taken(container, spec, {init_containers_key, containers_key}, overrides));
    names_[0] = first;
    own_init.insert(own_init.begin(), first.begin(), first.end());

    if (!injected_.containers.empty()) {
      auto& own = member(spec, containers_key, Node::Type::list).items;
      for (const Node& container : injected_.containers)
        names_[1].push_back(taken(container, spec, {containers_key, init_containers_key}, overrides));
      own.insert(own.end(), names_[1].begin(), names_[1].end());
    }
    names_[2] = added(spec, volumes_key, injected_.volumes);
    names_[3] = added(spec, image_pull_secrets_key, injected_.image_pull_secrets);

    Node& annotations = member(member(pod_, "metadata", Node::Type::mapping), "annotations", Node::Type::mapping);
    if (overrides.entries.empty()) {
      erase(annotations, overrides_annotation);
    } else {
      put(annotations, overrides_annotation, annotation(json_text(overrides)));
    }
    put(annotations, status_annotation, annotation(status()));
  }

 private:
  void check_type(const Node* mapping, std::string_view key, Node::Type type) const {
    const Node* found = mapping == nullptr ? nullptr : mapping->find(key);
    if (found == nullptr || found->type == type) return;
    throw Error(ExitCode::usage, fmt::format("{}: {}: {}: expected {}", title_, key, name(found->type), name(type)));
  }

  // Of JSON, single quotes are the readable ones.
  static Node annotation(std::string_view text) {
    Node node = Node::string(text);
    node.style = Node::Style::single_quoted;
    return node;
  }

  [[nodiscard]] Node read(std::string_view name, const std::string& text) const {
    const auto refuse = [&] {
      throw Error(ExitCode::usage,
                  fmt::format("{}: {}: '{}': expected a JSON object of lists, as the sidecar injector writes it",
                              title_, name, excerpt(text)),
                  "remove the annotation if the pod is not injected");
    };
    try {
      Node root = parse_json(text, name, most_nodes_of_annotation)[0].root;
      for (const std::string_view list : lists) {
        const Node* found = root.find(list);
        if (found != nullptr && found->type != Node::Type::list) refuse();
      }
      if (root.type == Node::Type::mapping) return root;
    } catch (const Error&) {
    }
    refuse();
    return {};
  }

  void take_out(const Node& status) {
    Node* spec = pod_.find("spec");
    for (const std::string_view list : lists) {
      const Node* names = status.find(list);
      Node* present = spec == nullptr ? nullptr : spec->find(list);
      if (names == nullptr || present == nullptr) continue;
      std::erase_if(present->items, [&](const Node& item) {
        return std::ranges::find(names->items, name_of(item), &Node::text) != names->items.end();
      });
    }
  }

  // They count before a container that the pod has, as for Istio, also where no status says that it was injected.
  void put_back(const Node& overrides) {
    for (const std::string_view list : {init_containers_key, containers_key}) {
      const Node* own = overrides.find(list);
      if (own == nullptr) continue;
      auto& present = member(member(pod_, "spec", Node::Type::mapping), list, Node::Type::list).items;
      std::erase_if(present, [&](const Node& item) {
        return std::ranges::find(own->items, name_of(item), name_of) != own->items.end();
      });
      present.insert(present.end(), own->items.begin(), own->items.end());
    }
  }

  // The template's container, with what the pod's own of that name says; that is taken out, and kept in `overrides`.
  static Node taken(const Node& container, Node& spec, std::array<std::string_view, 2> where, Node& overrides) {
    for (const std::string_view list : where) {
      Node* own = spec.find(list);
      const Node* same = own == nullptr ? nullptr : find_named(own->items, name_of(container));
      if (same != nullptr) return taken(container, own->items, same, list, overrides);
    }
    return container;
  }
  static Node taken(const Node& container, std::vector<Node>& own, const Node* same, std::string_view list,
                    Node& overrides) {
    // As it will be read from the annotation by the next injection, which has to write the same bytes.
    Node of_pod = parse_json(json_text(*same), list)[0].root;
    const Node* image = of_pod.find("image");
    if (image != nullptr && image->text == template_image) erase(of_pod, "image");
    Node made = merged(container, of_pod);
    member(overrides, list, Node::Type::list).items.push_back(std::move(of_pod));
    own.erase(own.begin() + (same - own.data()));
    return made;
  }

  // Those of the template that the pod has none of that name of.
  static std::vector<Node> added(Node& spec, std::string_view list, const std::vector<Node>& wanted) {
    std::vector<Node> made;
    if (wanted.empty()) return made;
    auto& own = member(spec, list, Node::Type::list).items;
    for (const Node& node : wanted) {
      if (find_named(own, name_of(node)) == nullptr) made.push_back(node);
    }
    own.insert(own.end(), made.begin(), made.end());
    return made;
  }

  [[nodiscard]] Node init_container(const InitArguments& init, const Variables& environment) const {
    Node made = injected_.init;
    Node& args = member(made, "args", Node::Type::list);
    std::vector<Node> all{text_node(program_word)};
    for (const std::string& word : words(init)) all.push_back(text_node(word));
    args.flow = false;
    args.items.insert(args.items.begin(), all.begin(), all.end());
    if (environment.empty()) return made;
    auto& variables = member(made, "env", Node::Type::list).items;
    for (const auto& [name, value] : environment) {
      Node variable = empty_node(Node::Type::mapping);
      put(variable, "name", text_node(name));
      put(variable, "value", text_node(value));
      std::erase_if(variables, [&](const Node& other) { return name_of(other) == name; });
      variables.push_back(std::move(variable));
    }
    return made;
  }

  // {"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":null,"imagePullSecrets":null,"revision":"default"}
  [[nodiscard]] std::string status() const {
    Node document = empty_node(Node::Type::mapping);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Node names = empty_node(names_[i].empty() ? Node::Type::null : Node::Type::list);
      for (const Node& node : names_[i]) names.items.push_back(Node::string(name_of(node)));
      document.entries.push_back({std::string(lists[i]), Node::Style::double_quoted, std::move(names)});
    }
    document.entries.push_back({"revision", Node::Style::double_quoted, Node::string(revision)});
    return json_text(document);
  }

  Node& pod_;
  const InjectionTemplate& injected_;
  std::string title_;
  std::array<std::vector<Node>, lists.size()> names_;  // what is injected, by list
};

}  // namespace

Injected inject(const PodTemplate& pod, const InjectionTemplate& injected, const HelmValues& helm) {
  Node made = *pod.pod;
  PodTemplate before = pod;
  before.pod = &made;
  Injection injection(made, injected, title_with_place(pod));
  injection.check();
  injection.undo();
  const InitArguments init = init_arguments(before, helm, injected.proxy_name, injected.proxy_uid);
  if (!init.not_injected.empty()) return {init.reason, init.not_injected, false, {}, init.warnings};
  injection.run(init, init_environment(before, helm));
  if (made == *pod.pod) return {{}, {}, false, {}, init.warnings};
  std::swap(*pod.pod, made);
  return {{}, {}, true, std::move(made), init.warnings};
}

}  // namespace sidetrack::manifest
