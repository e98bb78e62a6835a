// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "manifest/scalar.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view proxy_metadata_key = "proxyMetadata";
constexpr std::string_view uid_range_annotation = "openshift.io/sa.scc.uid-range";

using Path = std::array<std::string_view, 4>;  // of keys; empty ones at its end

struct KindInfo {
  std::string_view kind;
  Path pod;  // where the object has its pod template
};
constexpr Path usual_path = {"spec", "template"};
constexpr KindInfo kind_table[] = {
    {"Pod", {}},
    {"Deployment", usual_path},
    {"StatefulSet", usual_path},
    {"DaemonSet", usual_path},
    {"ReplicaSet", usual_path},
    {"ReplicationController", usual_path},
    {"DeploymentConfig", usual_path},  // of OpenShift
    {"Job", usual_path},
    {"CronJob", {"spec", "jobTemplate", "spec", "template"}},
    {"PodTemplate", {"template"}},
};

std::string joined(const Path& path) {
  std::string text;
  for (const std::string_view key : path) {
    if (!key.empty()) text += fmt::format("{}{}", text.empty() ? "" : ".", key);
  }
  return text;
}

// What a message points to.
struct Where {
  std::string place;  // "web.yaml, document 2"
  std::string title;  // "Deployment shop/web"; may be empty

  // "web.yaml, document 2, line 12: Deployment shop/web"
  [[nodiscard]] std::string text(std::size_t line = 0) const {
    std::string text = place;
    if (line != 0 && !place.empty()) text += fmt::format(", line {}", line);
    if (!place.empty() && !title.empty()) text += ": ";
    return text + title;
  }
};

Where where(const PodTemplate& pod) { return {pod.place, title(pod)}; }

std::string described(const Node* found) {
  if (found == nullptr) return "missing";
  if (!found->is_scalar() || found->is_null()) return std::string(name(found->type));
  return fmt::format("{} '{}'", name(found->type), excerpt(found->text));
}

[[noreturn]] void refuse(const Where& where, std::string_view what, const Node* found, std::string_view expected,
                         std::string hint = {}) {
  throw Error(ExitCode::usage,
              fmt::format("{}: {}: {}: expected {}", where.text(found == nullptr ? 0 : found->line), what,
                          described(found), expected),
              std::move(hint));
}

// A member of a mapping, if it is there and of this type.
const Node* member(const Node* mapping, std::string_view key, Node::Type type, const Where& where) {
  const Node* found = mapping == nullptr ? nullptr : mapping->find(key);
  if (found != nullptr && found->type != type) refuse(where, key, found, name(type));
  return found;
}

std::string_view text_of(const Node* mapping, std::string_view key, const Where& where) {
  const Node* found = member(mapping, key, Node::Type::string, where);
  return found == nullptr ? std::string_view() : found->text;
}

Node* at(Node& object, const Path& path) {
  Node* node = &object;
  for (const std::string_view key : path) {
    if (key.empty() || node == nullptr) break;
    node = node->find(key);
  }
  return node;
}

class Finder {
 public:
  Finder(std::vector<PodTemplate>& found, std::vector<std::string>& skipped) : found_(found), skipped_(skipped) {}

  void document(Document& document, const std::string& place) {
    document_ = document.number;
    object(document.root, {place, ""});
  }

 private:
  // `kind`: of an item of a typed list, which need not say it.
  void object(Node& object, const Where& place, std::string_view kind = {}) {
    if (object.type != Node::Type::mapping) refuse(place, "the document", &object, "a Kubernetes object");
    if (const std::string_view own = text_of(&object, "kind", place); !own.empty()) kind = own;
    if (kind.empty())
      refuse(place, "kind", std::as_const(object).find("kind"), "a Kubernetes object, which has a kind");
    Node* items = object.find("items");
    if (kind.ends_with(list_suffix) && items != nullptr) return list(*items, place, kind);
    const auto* const known = std::ranges::find(kind_table, kind, &KindInfo::kind);
    if (known == std::end(kind_table)) return other(object, kind);

    const Node* metadata = member(&object, "metadata", Node::Type::mapping, place);
    PodTemplate made{std::string(kind),
                     std::string(text_of(metadata, "name", place)),
                     std::string(text_of(metadata, "namespace", place)),
                     place.place,
                     document_,
                     nullptr};
    if (made.name.empty()) made.name = text_of(metadata, "generateName", place);
    made.pod = at(object, known->pod);
    if (made.pod == nullptr || made.pod->type != Node::Type::mapping)
      refuse(where(made), joined(known->pod), made.pod, "a pod template");
    found_.push_back(std::move(made));
  }

  static constexpr std::string_view list_suffix = "List";

  void list(Node& items, const Where& place, std::string_view kind) {
    if (items.type != Node::Type::list) refuse(place, "items", &items, "a list");
    std::size_t number = 0;
    for (Node& item : items.items.own())
      object(item, {fmt::format("{}, item {}", place.place, ++number), ""},
             kind.substr(0, kind.size() - list_suffix.size()));
  }

  void other(Node& object, std::string_view kind) {
    const Node* pod = at(object, usual_path);
    const Node* spec = pod == nullptr ? nullptr : pod->find("spec");
    if (spec == nullptr || spec->find("containers") == nullptr) return;
    if (const auto [known, is_new] = kinds_.emplace(kind); is_new) skipped_.push_back(*known);
  }

  std::vector<PodTemplate>& found_;
  std::vector<std::string>& skipped_;
  std::set<std::string, std::less<>> kinds_;  // of `skipped_`
  std::size_t document_ = 1;
};

// Annotations, labels or variables; nullptr if there are none. Of anything but strings the API server says that it
// cannot unmarshal it.
const Node* strings(const Node* metadata, std::string_view key, const Where& where) {
  const Node* mapping = member(metadata, key, Node::Type::mapping, where);
  if (mapping == nullptr) return mapping;
  for (const Entry& entry : mapping->entries) {
    if (entry.value.type == Node::Type::string) continue;
    refuse(where, excerpt(entry.key), &entry.value, "a string",
           entry.value.is_scalar() ? fmt::format("write it in quotes: {}: \"{}\"", excerpt(entry.key),
                                                 entry.value.is_null() ? "" : excerpt(entry.value.text))
                                   : "");
  }
  return mapping;
}

Annotations strings_of(const Node* mapping) {
  Annotations made;
  if (mapping == nullptr) return made;
  for (const Entry& entry : mapping->entries) made.insert_or_assign(entry.key, entry.value.text);
  return made;
}

// All that reads an annotation takes time and memory by its length.
const Node* annotations_node(const Node* metadata, const Where& where) {
  constexpr std::string_view key = "annotations";
  const Node* annotations = strings(metadata, key, where);
  std::size_t bytes = 0;
  if (annotations != nullptr) {
    for (const Entry& entry : annotations->entries) bytes += entry.key.size() + entry.value.text.size();
  }
  if (bytes > largest_annotations)
    throw Error(ExitCode::usage,
                fmt::format("{}: {}: {} bytes: expected at most {}", where.text(annotations->line), key, bytes,
                            largest_annotations),
                "Kubernetes takes no more, names and values together");
  return annotations;
}

// Its own runAsUser, wherever it is: among the init containers it is a native sidecar.
std::optional<std::string> uid_of(std::string_view proxy, const Node* spec, const Where& where) {
  for (const std::string_view key : {"containers", "initContainers"}) {
    const Node* containers = member(spec, key, Node::Type::list, where);
    if (containers == nullptr) continue;
    for (const Node& container : containers->items) {
      if (container.type != Node::Type::mapping) refuse(where, key, &container, "a list of containers");
      if (text_of(&container, "name", where) != proxy) continue;
      const Node* context = member(&container, "securityContext", Node::Type::mapping, where);
      const Node* uid = member(context, "runAsUser", Node::Type::number, where);
      if (uid != nullptr) return json_number(uid->text);
    }
  }
  return std::nullopt;
}

// Of a pod that is injected already: the container that the injector put first into it, if that is not istio-proxy.
std::string proxy_of(const Annotations& annotations) {
  const auto status = sidetrack::find(annotations, status_annotation);
  if (!status) return std::string(proxy_container);
  try {
    const Node document = parse_json(*status, status_annotation, limits_of_annotation)[0].root;
    for (const std::string_view key : {"containers", "initContainers"}) {
      const Node* names = document.find(key);
      if (names == nullptr) continue;
      const auto is_proxy = [](const Node& name) { return name.text == proxy_container; };
      if (std::ranges::any_of(names->items, is_proxy)) break;
      for (const Node& name : names->items) {
        if (name.text != init_container_name) return name.text;
      }
    }
  } catch (const Error&) {  // inject() says so
  }
  return std::string(proxy_container);
}

// The document in the annotation; nothing if there is none. Its lines are those of the annotation.
struct ConfigDocument {
  Where where;
  std::optional<Node> root;

  [[nodiscard]] const Node* node() const { return root ? &*root : nullptr; }
  // Either name of a field is right, that of JSON or that of protobuf.
  [[nodiscard]] std::string_view text(std::string_view field, std::string_view other) const {
    const std::string_view found = text_of(node(), field, where);
    return found.empty() ? text_of(node(), other, where) : found;
  }
  [[nodiscard]] const Node* metadata() const {
    const Node* found = strings(node(), proxy_metadata_key, where);
    return found != nullptr ? found : strings(node(), "proxy_metadata", where);
  }
};
ConfigDocument config_document(const Annotations& annotations, const Where& where) {
  const std::string place = where.text();
  ConfigDocument made{{fmt::format("{}{}{}", place, place.empty() ? "" : ": ", proxy_config_annotation), ""},
                      std::nullopt};
  const auto text = sidetrack::find(annotations, proxy_config_annotation);
  if (!text) return made;
  Documents documents = parse_documents(std::string(*text), made.where.place, limits_of_annotation);
  if (documents.empty()) return made;
  if (documents.list.size() > 1 || documents.list[0].root.type != Node::Type::mapping)
    refuse(made.where, "the document", &documents.list[0].root, "one mapping, Istio's ProxyConfig");
  made.root = std::move(documents.list[0].root);
  return made;
}

const Node* metadata_node(const PodTemplate& pod) {
  return member(pod.pod, "metadata", Node::Type::mapping, where(pod));
}

// Whether the word may be the value of an option that has none yet: no option itself, unless of a name.
bool may_be_value(std::string_view word, std::string_view option) {
  const Flag* flag = flag_of(option);
  if (flag != nullptr && (flag->name == "istio-exclude-interfaces" || flag->name == "kube-virt-interfaces"))
    return true;
  return !word.starts_with('-') && (flag == nullptr || flag->kind != Kind::boolean);
}

InitArguments arguments_of(const Node& args, std::string_view container, const Where& where) {
  InitArguments made;
  const std::string from = fmt::format("container {}", container);
  bool waits = false;  // the last one for its value
  for (const Node& word : args.items) {
    if (word.type != Node::Type::string) refuse(where, fmt::format("{}: args", from), &word, "a string");
    const bool is_first = &word == &args.items.front();
    if (is_first && word.text == program_word) continue;
    auto& all = made.arguments;
    if (waits && may_be_value(word.text, all.back().option)) {
      all.back().value = word.text;
      all.back().form = InitArgument::Form::two_words;
      waits = false;
      continue;
    }
    const auto equals = word.text.starts_with("--") ? word.text.find('=') : std::string::npos;
    waits = equals == std::string::npos;
    all.push_back({word.text.substr(0, equals), waits ? "" : word.text.substr(equals + 1), from,
                   waits ? InitArgument::Form::alone : InitArgument::Form::joined});
  }
  return made;
}

// Those that have a value of their own.
Variables variables_of(const Node& container, const Where& where) {
  Variables made;
  const Node* variables = member(&container, "env", Node::Type::list, where);
  if (variables == nullptr) return made;
  for (const Node& variable : variables->items) {
    if (variable.type != Node::Type::mapping) refuse(where, "env", &variable, "a list of variables");
    if (variable.find("value") != nullptr)
      made.insert_or_assign(std::string(text_of(&variable, "name", where)), text_of(&variable, "value", where));
  }
  return made;
}

// "1000670000/10000", "1000670000-1000679999": the last one.
std::string last_uid(const Node& range, const Where& where) {
  const std::string_view text = range.text;
  const auto mark = text.find_first_of("/-");
  const auto first = to_number<std::uint32_t>(text.substr(0, mark));
  const auto second = mark < text.size() ? to_number<std::uint32_t>(text.substr(mark + 1)) : std::nullopt;
  if (first && second) {
    const std::uint64_t last = text[mark] == '-' ? *second : std::uint64_t{*first} + *second - 1;
    if (last >= *first && last < UINT32_MAX) return std::to_string(last);
  }
  refuse(where, uid_range_annotation, &range, "START/SIZE or START-END, as OpenShift writes it");
}

void add_namespaces(const Node& object, const Where& place, ProxyUids& uids) {
  const Node* kind = object.find("kind");
  const Node* items = object.find("items");
  if (items != nullptr && items->type == Node::Type::list) {
    for (const Node& item : items->items) add_namespaces(item, place, uids);
  }
  if (kind == nullptr || kind->text != "Namespace") return;
  const Node* metadata = member(&object, "metadata", Node::Type::mapping, place);
  const std::string name(text_of(metadata, "name", place));
  const Where here{place.place, fmt::format("Namespace {}", excerpt(name))};
  const Node* annotations = strings(metadata, "annotations", here);
  const Node* range = annotations == nullptr ? nullptr : annotations->find(uid_range_annotation);
  if (range != nullptr) uids.insert_or_assign(name, last_uid(*range, here));
}

// All but what the annotation proxy.istio.io/config says.
PodMetadata bare_metadata(const PodTemplate& pod, std::string_view proxy) {
  const Where here = where(pod);
  const Node* metadata = metadata_node(pod);
  const Node* spec = member(pod.pod, "spec", Node::Type::mapping, here);
  PodMetadata made;
  made.namespace_ = pod.namespace_;
  made.annotations = strings_of(annotations_node(metadata, here));
  const Node* labels = strings(metadata, "labels", here);
  if (const Node* label = labels == nullptr ? nullptr : labels->find(inject_annotation))
    made.inject_label = label->text;
  const Node* host_network = member(spec, "hostNetwork", Node::Type::boolean, here);
  made.host_network = host_network != nullptr && host_network->is_true();
  made.proxy = proxy.empty() ? proxy_of(made.annotations) : std::string(proxy);
  made.proxy_uid = uid_of(made.proxy, spec, here);
  return made;
}

void take_mode(const ConfigDocument& config, HelmValues& helm) {
  const std::string_view mode = config.text("interceptionMode", "interception_mode");
  if (!mode.empty())
    helm.insert_or_assign("meshConfig.defaultConfig.interceptionMode",
                          HelmValue{std::string(mode), fmt::format("{}: interceptionMode", proxy_config_annotation)});
}

// OpenShift gives every container of a pod that says none the same uid. Istio does not take that for the proxy's.
bool is_uid_of_app(std::string_view uid, const Node* spec, const Where& where) {
  std::string of_app;
  for (const std::string_view key : {"containers", "initContainers"}) {
    const Node* containers = member(spec, key, Node::Type::list, where);
    if (containers == nullptr) continue;
    for (const Node& container : containers->items) {
      const std::string_view name = text_of(&container, "name", where);
      if (name == proxy_container || name == init_container_name || name == validation_container_name) continue;
      const Node* context = member(&container, "securityContext", Node::Type::mapping, where);
      const Node* its = member(context, "runAsUser", Node::Type::number, where);
      if (its != nullptr) of_app = json_number(its->text);
    }
  }
  return uid == of_app;
}

// Adds the place of the pod to an error of `make`.
InitArguments with_place(const PodTemplate& pod, const std::function<InitArguments()>& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where(pod).text(), error.what()), error.hint());
  }
}

void take_namespace(const PodTemplate& pod, const ProxyUids& of_namespaces, PodMetadata& metadata) {
  if (const auto uid = of_namespaces.find(pod.namespace_); uid != of_namespaces.end())
    metadata.namespace_uid = uid->second;
}

}  // namespace

std::string title(const PodTemplate& pod) {
  std::string text = excerpt(pod.kind);
  if (!pod.name.empty() || !pod.namespace_.empty()) text += " ";
  if (!pod.namespace_.empty()) text += excerpt(pod.namespace_) + "/";
  return text + excerpt(pod.name);
}

std::string title_with_place(const PodTemplate& pod) { return where(pod).text(); }

std::vector<PodTemplate> pod_templates(Documents& documents, std::vector<std::string>& skipped) {
  std::vector<PodTemplate> found;
  Finder finder(found, skipped);
  for (Document& document : documents.list) {
    if (document.root.is_null()) continue;
    const bool one = documents.list.size() == 1 && document.number == 1;
    finder.document(document, one ? excerpt(documents.name)
                                  : fmt::format("{}, document {}", excerpt(documents.name), document.number));
  }
  return found;
}

void read_namespaces(const Documents& documents, ProxyUids& uids) {
  for (const Document& document : documents.list) add_namespaces(document.root, {excerpt(documents.name), ""}, uids);
}

void check_annotations(const PodTemplate& pod) { static_cast<void>(annotations_node(metadata_node(pod), where(pod))); }

PodMetadata metadata_of(const PodTemplate& pod, HelmValues& helm, std::string_view proxy) {
  PodMetadata made = bare_metadata(pod, proxy);
  take_mode(config_document(made.annotations, where(pod)), helm);
  return made;
}

ProxyConfig proxy_config(const Annotations& annotations) {
  const ConfigDocument config = config_document(annotations, {});
  return {std::string(config.text("interceptionMode", "interception_mode")), strings_of(config.metadata())};
}

Variables init_environment(const PodTemplate& pod, const HelmValues& helm) {
  const Where here = where(pod);
  const ConfigDocument config = config_document(strings_of(annotations_node(metadata_node(pod), here)), here);
  const Variables variables = strings_of(config.metadata());
  return init_variables(helm, variables, fmt::format("{}: {}", config.where.text(), proxy_metadata_key));
}

std::optional<PresentInit> present_init(const PodTemplate& pod) {
  const Where here = where(pod);
  const Node* spec = member(pod.pod, "spec", Node::Type::mapping, here);
  const Node* containers = member(spec, "initContainers", Node::Type::list, here);
  if (containers == nullptr) return std::nullopt;
  for (const std::string_view name : {init_container_name, validation_container_name}) {
    for (const Node& container : containers->items) {
      if (container.type != Node::Type::mapping || text_of(&container, "name", here) != name) continue;
      const Node* args = member(&container, "args", Node::Type::list, here);
      // Without any, it says something of the injector's own container: its image, its resources.
      if (args != nullptr && !args->items.empty())
        return PresentInit{arguments_of(*args, name, here), variables_of(container, here)};
    }
  }
  return std::nullopt;
}

InitArguments init_arguments(const PodTemplate& pod, const HelmValues& helm, std::string_view proxy,
                             const std::optional<std::string>& proxy_uid, const ProxyUids& of_namespaces) {
  HelmValues values = helm;
  PodMetadata metadata = metadata_of(pod, values, proxy);
  if (!metadata.proxy_uid) metadata.proxy_uid = proxy_uid;
  take_namespace(pod, of_namespaces, metadata);
  InitArguments made = with_place(pod, [&] { return istio_init_arguments(metadata, values); });
  if (made.not_injected.empty()) static_cast<void>(init_environment(pod, helm));
  return made;
}

InitArguments arguments_by_istio(const PodTemplate& pod, const HelmValues& helm, const ProxyUids& of_namespaces) {
  const Where here = where(pod);
  HelmValues values = helm;
  PodMetadata metadata = bare_metadata(pod, proxy_container);
  InitArguments why = with_place(pod, [&] { return why_not_injected(metadata, values, Injector::istio); });
  if (!why.not_injected.empty() && why.reason != "template") return why;
  const ConfigDocument config = config_document(metadata.annotations, here);
  static_cast<void>(config.metadata());
  take_mode(config, values);
  if (!why.not_injected.empty()) return why;
  take_namespace(pod, of_namespaces, metadata);
  if (metadata.namespace_uid && metadata.proxy_uid &&
      is_uid_of_app(*metadata.proxy_uid, member(pod.pod, "spec", Node::Type::mapping, here), here))
    metadata.proxy_uid.reset();
  InitArguments made = with_place(pod, [&] { return istio_init_arguments(metadata, values, Injector::istio); });
  if (!made.not_injected.empty() || !made.refused.empty()) return made;
  try {
    static_cast<void>(init_environment(pod, helm));
  } catch (const Error& error) {
    made.refused = error.what();
  }
  return made;
}

}  // namespace sidetrack::manifest
