// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "inject/manifest/key_index.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "model/printable.h"
#include "options/istio_checks.h"
#include "options/values.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view revision = "default";
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
  auto& entries = mapping.entries.own();
  auto found = std::ranges::find(entries, key, &Entry::key);
  if (found == entries.end()) found = entries.insert(found, {std::string(key), Node::Style::plain, empty_node(type)});
  if (found->value.is_null()) found->value = empty_node(type);
  return found->value;
}

void put(Node& mapping, std::string_view key, Node value) { member(mapping, key, Node::Type::null) = std::move(value); }

void erase(Node& mapping, std::string_view key) {
  if (std::ranges::find(mapping.entries, key, &Entry::key) == mapping.entries.end()) return;
  std::erase_if(mapping.entries.own(), [&](const Entry& entry) { return entry.key == key; });
}

const Node* find_named(const Node* list, std::string_view name) {
  if (list == nullptr || name.empty()) return nullptr;
  const auto found = std::ranges::find(list->items, name, name_of);
  return found == list->items.end() ? nullptr : &*found;
}

const Node* find_named(const Node& mapping, std::array<std::string_view, 2> where, std::string_view name) {
  for (const std::string_view list : where) {
    if (const Node* found = find_named(mapping.find(list), name)) return found;
  }
  return nullptr;
}

using Names = std::set<std::string_view>;

Names names_of(const Node* list) {
  Names names;
  if (list == nullptr) return names;
  for (const Node& name : list->items) names.insert(name.text);
  return names;
}

class Injection {
 public:
  Injection(Node& pod, const InjectionTemplate& injected, const std::string& title)
      : pod_(pod), injected_(injected), title_(title) {}

  // Refuses what is no pod before anything is put into it. left_alone() has looked at the rest.
  void check() const {
    for (const std::string_view list : lists) {
      const Node* found = child(std::as_const(pod_).find("spec"), list);
      if (found == nullptr || found->type == Node::Type::list) continue;
      throw Error(ExitCode::usage, fmt::format("{}: {}: {}: expected a list", title_, list, name(found->type)));
    }
  }

  // The pod as it was before an earlier injection, with what its annotation says of containers of the template.
  void undo() {
    const Node* annotations = child(child(&pod_, "metadata"), "annotations");
    if (annotations == nullptr) return;
    if (const Node* status = annotations->find(status_annotation)) {
      status_ = read(status_annotation, status->text);
      take_out();
    }
    if (const Node* overrides = annotations->find(overrides_annotation)) {
      overrides_ = read(overrides_annotation, overrides->text);
      put_back();
      for (const Node& container : injected_.init_containers)
        put_over(container, {init_containers_key, containers_key});
      for (const Node& container : injected_.containers) put_over(container, {containers_key, init_containers_key});
    }
  }

  // Whether a container of the pod's own, of that name, is a native sidecar.
  [[nodiscard]] bool has_native(std::string_view name) const {
    const Node* own = find_named(child(child(&pod_, "spec"), init_containers_key), name);
    return child_text(own, "restartPolicy") == "Always";
  }

  void run(const InitArguments& init, const Variables& environment) {
    Node& spec = member(pod_, "spec", Node::Type::mapping);
    Node overrides = empty_node(Node::Type::mapping);

    std::vector<Node> first{init_container(init, environment)};
    auto& own_init = member(spec, init_containers_key, Node::Type::list).items.own();
    std::erase_if(own_init, [](const Node& container) { return name_of(container) == init_container_name; });
    // A native sidecar of the template may stand among the containers of a pod that was made for the other kind.
    for (const Node& container : injected_.init_containers)
      first.push_back(taken(container, spec, {init_containers_key, containers_key}, overrides));
    names_[0] = first;
    auto& before = member(spec, init_containers_key, Node::Type::list).items.own();
    before.insert(before.begin(), first.begin(), first.end());

    if (!injected_.containers.empty()) {
      for (const Node& container : injected_.containers)
        names_[1].push_back(taken(container, spec, {containers_key, init_containers_key}, overrides));
      auto& own = member(spec, containers_key, Node::Type::list).items.own();
      own.insert(own.end(), names_[1].begin(), names_[1].end());
    }
    names_[2] = added(spec, volumes_key, injected_.volumes);
    names_[3] = added(spec, image_pull_secrets_key, injected_.image_pull_secrets);

    Node& annotations = member(member(pod_, "metadata", Node::Type::mapping), "annotations", Node::Type::mapping);
    if (!overrides.entries.empty()) {
      put(annotations, overrides_annotation, annotation(json_text(overrides)));
    } else if (is_put_back_) {
      erase(annotations, overrides_annotation);
    }
    put(annotations, status_annotation, annotation(status()));
  }

 private:
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
      Node root = parse_json(text, name, limits_of_annotation)[0].root;
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

  void take_out() {
    const Node& status = status_;
    for (const std::string_view list : lists) {
      const Names names = names_of(status.find(list));
      const Node* spec = std::as_const(pod_).find("spec");
      if (names.empty() || spec == nullptr || spec->find(list) == nullptr) continue;
      std::erase_if(pod_.find("spec")->find(list)->items.own(),
                    [&](const Node& item) { return names.contains(name_of(item)); });
    }
    for (const std::string_view list : {init_containers_key, containers_key})
      taken_out_.merge(names_of(status.find(list)));
  }

  // The pod's own containers that were merged into those that are taken out. Others of the annotation are not: as for
  // Istio, the pod's own stay as they are.
  void put_back() {
    for (const std::string_view list : {init_containers_key, containers_key}) {
      std::vector<Node> own = own_containers(list);
      is_put_back_ = is_put_back_ || !own.empty();
      if (const Node* present = child(std::as_const(pod_).find("spec"), list)) {
        const KeyIndex known(present->items, name_of);
        std::erase_if(own, [&](const Node& container) { return known.contains(name_of(container)); });
      }
      if (own.empty()) continue;
      auto& items = member(member(pod_, "spec", Node::Type::mapping), list, Node::Type::list).items.own();
      items.insert(items.end(), own.begin(), own.end());
    }
  }

  // Those in the annotation of which one is taken out, the first of each name. istio-init is the template's alone.
  [[nodiscard]] std::vector<Node> own_containers(std::string_view list) const {
    std::vector<Node> own;
    Names known;
    const Node* all = overrides_.find(list);
    if (all == nullptr) return own;
    for (const Node& container : all->items) {
      const std::string_view name = name_of(container);
      if (name.empty() || name == init_container_name || !taken_out_.contains(name)) continue;
      if (known.insert(name).second) own.push_back(container);
    }
    return own;
  }

  // What the annotation says of a container of the template: over it, and the pod's own of that name below it.
  void put_over(const Node& container, std::array<std::string_view, 2> where) {
    const std::string_view name = name_of(container);
    const Node* said = taken_out_.contains(name) ? nullptr : find_named(overrides_, where, name);
    if (said == nullptr) return;
    Node& spec = member(pod_, "spec", Node::Type::mapping);
    for (const std::string_view list : where) {
      if (find_named(std::as_const(spec).find(list), name) == nullptr) continue;
      auto& items = spec.find(list)->items.own();
      Node& own = *std::ranges::find(items, name, name_of);
      own = merged(without(own, container), *said);
      return;
    }
    member(spec, where[0], Node::Type::list).items.own().push_back(*said);
  }

  // The template's container, with what the pod's own of that name says; that is taken out, and kept in `overrides`.
  Node taken(const Node& container, Node& spec, std::array<std::string_view, 2> where, Node& overrides) const {
    const std::string_view name = name_of(container);
    for (const std::string_view list : where) {
      const Node* own = find_named(std::as_const(spec).find(list), name);
      if (own == nullptr) continue;
      Node said = read_again(*own);
      auto& items = spec.find(list)->items.own();
      items.erase(std::ranges::find(items, name, name_of));
      Node made = merged(container, said);
      member(overrides, list, Node::Type::list).items.own().push_back(std::move(said));
      return made;
    }
    return container;
  }

  // As it will be read from the annotation by the next injection, which has to write the same bytes.
  [[nodiscard]] Node read_again(const Node& container) const {
    const std::string text = json_text(container);
    if (text.size() > largest_annotations)
      throw Error(
          ExitCode::usage,
          fmt::format("{}: container {}: {} bytes of JSON: expected at most {}, as it is kept in the annotation {}",
                      title_, excerpt(name_of(container)), text.size(), largest_annotations, overrides_annotation));
    Node again = parse_json(text, "a container")[0].root;
    const Node* image = again.find("image");
    if (image != nullptr && image->text == template_image) erase(again, "image");
    return again;
  }

  // Those of the template that the pod has none of that name of.
  static std::vector<Node> added(Node& spec, std::string_view list, const std::vector<Node>& wanted) {
    std::vector<Node> made;
    if (wanted.empty()) return made;
    auto& own = member(spec, list, Node::Type::list).items.own();
    const KeyIndex present(own, name_of);
    for (const Node& node : wanted) {
      if (!present.contains(name_of(node))) made.push_back(node);
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
    args.items.own().insert(args.items.own().begin(), all.begin(), all.end());
    if (environment.empty()) return made;
    auto& variables = member(made, "env", Node::Type::list).items.own();
    std::erase_if(variables, [&](const Node& other) { return environment.contains(name_of(other)); });
    for (const auto& [name, value] : environment) {
      Node variable = empty_node(Node::Type::mapping);
      put(variable, "name", text_node(name));
      put(variable, "value", text_node(value));
      variables.push_back(std::move(variable));
    }
    return made;
  }

  // {"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":null,"imagePullSecrets":null,"revision":"default"}
  [[nodiscard]] std::string status() const {
    Node document = empty_node(Node::Type::mapping);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Node names = empty_node(names_[i].empty() ? Node::Type::null : Node::Type::list);
      for (const Node& node : names_[i]) names.items.own().push_back(Node::string(name_of(node)));
      document.entries.own().push_back({std::string(lists[i]), Node::Style::double_quoted, std::move(names)});
    }
    document.entries.own().push_back({"revision", Node::Style::double_quoted, Node::string(revision)});
    return json_text(document);
  }

  Node& pod_;
  const InjectionTemplate& injected_;
  std::string title_;
  Node status_;      // of an earlier injection
  Node overrides_;   // the annotation; null: there is none
  Names taken_out_;  // containers; of the status
  bool is_put_back_ = false;
  std::array<std::vector<Node>, lists.size()> names_;  // what is injected, by list
};

// ---- What annotations of Istio's say of the proxy.

std::optional<std::string_view> annotation_of(const Node& pod, std::string_view name) {
  const Node* found = child(child(child(&pod, "metadata"), "annotations"), name);
  return found == nullptr ? std::nullopt : std::optional<std::string_view>(found->text);
}

// "true": the proxy is a native sidecar, which ends with the app: else a Job never does. "false": it is none.
void take_native(InjectionTemplate& made, std::string_view word) {
  const bool native = word == "true";
  if (!native && word != "false") return;  // as the template has it
  auto& from = native ? made.containers : made.init_containers;
  auto& to = native ? made.init_containers : made.containers;
  const auto proxy = std::ranges::find(from, made.proxy_name, name_of);
  if (proxy == from.end()) return;
  Node moved = std::move(*proxy);
  from.erase(proxy);
  erase(moved, "restartPolicy");
  if (native) put(moved, "restartPolicy", text_node("Always"));
  to.insert(to.begin(), std::move(moved));
}

Node* proxy_in(InjectionTemplate& made) {
  for (auto* list : {&made.containers, &made.init_containers}) {
    const auto proxy = std::ranges::find(*list, made.proxy_name, name_of);
    if (proxy != list->end()) return &*proxy;
  }
  return nullptr;
}

struct ResourceInfo {
  std::string_view annotation;
  std::string_view list;
  std::string_view name;
};
constexpr ResourceInfo resources_table[] = {{"sidecar.istio.io/proxyCPU", "requests", "cpu"},
                                            {"sidecar.istio.io/proxyMemory", "requests", "memory"},
                                            {"sidecar.istio.io/proxyCPULimit", "limits", "cpu"},
                                            {"sidecar.istio.io/proxyMemoryLimit", "limits", "memory"}};

// As Istio's template: what the annotations say alone, not what they do not.
void take_resources(Node& proxy, const Node& pod) {
  Node resources = empty_node(Node::Type::mapping);
  for (const auto& [annotation, list, name] : resources_table) {
    const auto value = annotation_of(pod, annotation);
    if (!value) continue;
    if (!is_quantity(*value)) options::refuse(given_by(annotation, *value), "a quantity, as 100m or 1Gi");
    put(member(resources, list, Node::Type::mapping), name, Node::string(*value));
  }
  if (!resources.entries.empty()) put(proxy, "resources", std::move(resources));
}

// {"NAME": {…}}: each with its name; or [{"name": "NAME", …}].
void take_volumes(std::vector<Node>& volumes, const Node& pod, std::string_view annotation) {
  const auto text = annotation_of(pod, annotation);
  if (!text) return;
  const auto refuse = [&] {
    options::refuse(given_by(annotation, *text),
                    "a JSON object of objects, by the names of volumes, or a list of them");
  };
  Node document;
  try {
    document = parse_json(*text, annotation, limits_of_annotation)[0].root;
  } catch (const Error&) {
    refuse();
  }
  if (document.type == Node::Type::list && !document.items.empty()) {
    for (const Node& item : document.items) {
      const Node* name = item.type == Node::Type::mapping ? item.find("name") : nullptr;
      if (name == nullptr || name->type != Node::Type::string) refuse();
      volumes.push_back(item);
    }
    return;
  }
  if (document.type != Node::Type::mapping) refuse();
  for (const Entry& entry : document.entries) {
    if (entry.value.type != Node::Type::mapping) refuse();
    Node volume = empty_node(Node::Type::mapping);
    put(volume, "name", Node::string(entry.key));
    for (const Entry& said : entry.value.entries) {
      if (said.key != "name") put(volume, said.key, said.value);
    }
    volumes.push_back(std::move(volume));
  }
}

// The template for this pod. Throws Error (usage) for annotations that are not what they should be.
InjectionTemplate for_pod(InjectionTemplate made, const Node& pod, std::vector<std::string>& warnings) {
  take_native(made, annotation_of(pod, native_annotation).value_or(""));
  if (Node* proxy = proxy_in(made)) {
    take_resources(*proxy, pod);
    std::vector<Node> mounts;
    take_volumes(mounts, pod, "sidecar.istio.io/userVolumeMount");
    if (!mounts.empty()) {
      auto& all = member(*proxy, "volumeMounts", Node::Type::list).items.own();
      all.insert(all.end(), mounts.begin(), mounts.end());
    }
  }
  take_volumes(made.volumes, pod, "sidecar.istio.io/userVolume");
  constexpr std::string_view hold = "holdApplicationUntilProxyStarts";
  const auto config = annotation_of(pod, proxy_config_annotation);
  if (config && config->find(hold) != std::string_view::npos)
    warnings.push_back(
        fmt::format("{}: {}: without effect: what waits for a proxy is its startupProbe, as a native sidecar, or its "
                    "postStart hook, in the template",
                    proxy_config_annotation, hold));
  return made;
}

// Whether an annotation asks for another template.
bool changes_template(const Node& pod) {
  constexpr std::string_view others[] = {native_annotation, proxy_config_annotation, "sidecar.istio.io/userVolume",
                                         "sidecar.istio.io/userVolumeMount"};
  const auto is_there = [&](std::string_view name) { return annotation_of(pod, name).has_value(); };
  return std::ranges::any_of(others, is_there) ||
         std::ranges::any_of(resources_table, is_there, &ResourceInfo::annotation);
}

}  // namespace

Injected inject(const PodTemplate& pod, const InjectionTemplate& given, const HelmValues& helm,
                const ProxyUids& of_namespaces) {
  std::vector<std::string> warnings;
  check_annotations(pod);
  if (InitArguments why = left_alone(pod, helm); !why.not_injected.empty()) return {std::move(why)};
  InjectionTemplate of_pod = given;
  if (changes_template(*pod.pod)) {
    try {
      of_pod = for_pod(given, *pod.pod, warnings);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", title_with_place(pod), error.what()), error.hint());
    }
  }
  Node made = *pod.pod;
  PodTemplate before = pod;
  before.pod = &made;
  Injection injection(made, of_pod, title_with_place(pod));
  injection.check();
  injection.undo();
  if (injection.has_native(given.proxy_name) && !annotation_of(*pod.pod, native_annotation))
    take_native(of_pod, "true");
  InitArguments init = init_arguments(before, helm, given.proxy_name, given.proxy_uid, of_namespaces);
  std::ranges::move(warnings, std::back_inserter(init.warnings));
  injection.run(init, init_environment(before, helm));
  const bool is_changed = made != *pod.pod;
  if (is_changed) std::swap(*pod.pod, made);
  return {std::move(init), is_changed, is_changed ? std::move(made) : Node()};
}

InitArguments arguments_by_inject(const PodTemplate& pod, const HelmValues& helm, const ProxyUids& of_namespaces) {
  if (!pod.has_pod_spec) return init_arguments(pod, helm, {}, {}, of_namespaces);
  const PodMetadata metadata = bare_metadata(pod);
  InjectionTemplate stand_in;
  stand_in.init = empty_node(Node::Type::mapping);
  stand_in.proxy_name = metadata.proxy;
  stand_in.proxy_uid = metadata.proxy_uid;
  Node proxy = empty_node(Node::Type::mapping);
  put(proxy, "name", Node::string(metadata.proxy));
  stand_in.containers.push_back(std::move(proxy));
  Node copy = *pod.pod;
  PodTemplate of_copy = pod;
  of_copy.pod = &copy;
  return inject(of_copy, stand_in, helm, of_namespaces).init;
}

}  // namespace sidetrack::manifest
