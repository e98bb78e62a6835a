// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/template.h"

#include <fmt/format.h>
#include <sidetrack/version.h>

#include <algorithm>
#include <map>
#include <set>

#include "inject/manifest/key_index.h"
#include "inject/manifest/pods.h"
#include "inject/manifest/scalar.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "model/printable.h"
#include "options/values.h"

namespace sidetrack::manifest {
namespace {

// What istio-init needs, and no more. Of the template's own container of that name each key comes first.
constexpr std::string_view usual_init_container = R"(
name: istio-init
image: localhost/sidetrack:{}
imagePullPolicy: IfNotPresent
args: []
terminationMessagePolicy: FallbackToLogsOnError
resources:
  requests: {{cpu: 10m, memory: 16Mi}}
  limits: {{memory: 64Mi}}
securityContext:
  allowPrivilegeEscalation: false
  privileged: false
  readOnlyRootFilesystem: true
  runAsGroup: 0
  runAsNonRoot: false
  runAsUser: 0
  capabilities:
    add: [NET_ADMIN, NET_RAW]
    drop: [ALL]
)";

// A ConfigMap holds no more, and every pod gets it.
constexpr std::size_t largest_template = 1U << 20;  // bytes of JSON

constexpr std::string_view keys_of_pod[] = {"apiVersion", "kind", "metadata", "spec"};

struct KeyInfo {
  std::string_view key;
  Node::Type type;
  std::string_view known_by = {};  // of a list of which no two items may have the same one
};
constexpr KeyInfo keys_of_container[] = {{"image", Node::Type::string},
                                         {"command", Node::Type::list},
                                         {"args", Node::Type::list},
                                         {"env", Node::Type::list, "name"},
                                         {"volumeMounts", Node::Type::list, "mountPath"},
                                         {"volumeDevices", Node::Type::list, "devicePath"},
                                         {"ports", Node::Type::list},
                                         {"resources", Node::Type::mapping},
                                         {"securityContext", Node::Type::mapping}};

class TemplateReader {
 public:
  TemplateReader(const Documents& documents, std::vector<std::string>& warnings)
      : name_(documents.name), warnings_(warnings) {
    const auto is_one = [](const Document& document) { return !document.root.is_null(); };
    if (std::ranges::count_if(documents.list, is_one) != 1) refuse(0, "expected one document, a pod's manifest");
    const Node& root = std::ranges::find_if(documents.list, is_one)->root;
    if (root.type != Node::Type::mapping) refuse(root.line, "expected a pod's manifest");
    spec_ = &root;
    if (const Node* spec = root.find("spec")) {
      for (const Entry& entry : root.entries) {
        if (std::ranges::find(keys_of_pod, entry.key) == std::end(keys_of_pod))
          refuse(entry.value.line, fmt::format("'{}': expected a pod's manifest", excerpt(entry.key)));
      }
      const Node* kind = root.find("kind");
      if (kind != nullptr && kind->text != "Pod")
        refuse(kind->line, fmt::format("kind: '{}': expected a pod's manifest", excerpt(kind->text)));
      spec_ = spec;
    }
    if (spec_->type != Node::Type::mapping) refuse(spec_->line, "spec: expected a mapping");
    if (const std::size_t size = json_text(*spec_).size(); size > largest_template)
      refuse(0, fmt::format("{} bytes of JSON: expected at most {}", size, largest_template), "every pod gets them");
  }

  InjectionTemplate read() {
    InjectionTemplate made;
    const std::string usual = fmt::format(fmt::runtime(usual_init_container), version);
    made.init = parse_yaml(usual, "istio-init")[0].root;
    const std::map<std::string_view, std::vector<Node>*> parts{{"initContainers", &made.init_containers},
                                                               {"containers", &made.containers},
                                                               {"volumes", &made.volumes},
                                                               {"imagePullSecrets", &made.image_pull_secrets}};
    for (const Entry& entry : spec_->entries) {
      const auto part = parts.find(entry.key);
      if (part == parts.end()) {
        refuse(entry.value.line, fmt::format("'{}': not put into pods", excerpt(entry.key)),
               "a template has initContainers, containers, volumes and imagePullSecrets");
      }
      *part->second = named(entry);
    }
    check_names(made);
    for (const auto* list : {&made.init_containers, &made.containers}) {
      for (const Node& container : *list) check_container(container);
    }
    if (made.containers.empty() && made.init_containers.empty())
      refuse(0, "no containers: expected those of the proxy");
    const auto init = std::ranges::find(made.init_containers, init_container_name, name_of);
    if (init != made.init_containers.end()) {
      check_init(*init);
      made.init = merged(made.init, *init);
      check_rights(made.init, init->line);
      made.init_containers.erase(init);
    }
    find_proxy(made);
    return made;
  }

 private:
  [[noreturn]] void refuse(std::size_t line, const std::string& problem, std::string hint = {}) const {
    throw Error(ExitCode::usage, fmt::format("{}: {}", place(name_, line), problem), std::move(hint));
  }

  // What would keep it from ending, or from being written.
  void check_init(const Node& init) const {
    const Node* policy = init.find("restartPolicy");
    if (policy != nullptr)
      refuse(policy->line,
             fmt::format("{}: restartPolicy: '{}': expected none", init_container_name, excerpt(policy->text)),
             "it has to end before the app starts");
    if (init.find("image") == nullptr)
      warnings_.push_back(fmt::format("{}: {}: no image: that of this build is taken, which clusters cannot pull",
                                      place(name_, init.line), init_container_name));
  }

  // The API server would refuse every pod for it.
  void check_container(const Node& container) const {
    const std::string title = excerpt(name_of(container));
    for (const KeyInfo& known : keys_of_container) {
      const Node* found = container.find(known.key);
      if (found == nullptr) continue;
      if (found->type != known.type)
        refuse(found->line,
               fmt::format("{}: {}: {}: expected {}", title, known.key, name(found->type), name(known.type)));
      if (!known.known_by.empty()) check_once(*found, fmt::format("{}: {}", title, known.key), known.known_by);
    }
    for (const char* key : {"command", "args"}) {
      const Node* words = container.find(key);
      if (words == nullptr) continue;
      for (const Node& word : words->items) {
        if (word.type != Node::Type::string)
          refuse(word.line, fmt::format("{}: {}: {} '{}': expected a list of strings", title, key, name(word.type),
                                        excerpt(word.text)));
      }
    }
  }

  void check_once(const Node& list, const std::string& title, std::string_view key) const {
    std::set<std::string> known;
    for (const Node& item : list.items) {
      const std::string id = child_text(&item, key);
      if (id.empty()) refuse(item.line, fmt::format("{}: expected a {}", title, key));
      if (!known.insert(id).second) refuse(item.line, fmt::format("{}: '{}' is there already", title, excerpt(id)));
    }
  }

  void check_names(const InjectionTemplate& made) const {
    const KeyIndex init_containers(made.init_containers, name_of);
    for (const Node& container : made.containers) {
      const std::string_view name = name_of(container);
      if (name == init_container_name)
        refuse(container.line, fmt::format("containers: '{}': expected it among the initContainers", name));
      if (init_containers.contains(name))
        refuse(container.line, fmt::format("containers: '{}' is among the initContainers already", excerpt(name)));
    }
  }

  // What the template says comes first, and may take from istio-init what it needs.
  void check_rights(const Node& init, std::size_t line) const {
    const auto warn = [&](std::string_view what) {
      warnings_.push_back(fmt::format("{}: {}: {}", place(name_, line), init_container_name, what));
    };
    const Node* context = init.find("securityContext");
    const std::string user = child_text(context, "runAsUser");
    if (user.empty() || json_number(user) != "0") warn("securityContext does not say runAsUser: 0: rules need root");
    const Node* not_root = child(context, "runAsNonRoot");
    if (not_root != nullptr && not_root->is_true()) warn("runAsNonRoot: true: the kubelet will not start it as root");
    const Node* privileged = child(context, "privileged");
    if (privileged != nullptr && privileged->is_true()) return;
    const Node* added = child(child(context, "capabilities"), "add");
    const auto gives = [](const Node& item) { return item.text == "NET_ADMIN" || item.text == "ALL"; };
    if (added == nullptr || std::ranges::none_of(added->items, gives))
      warn("securityContext does not add the capability NET_ADMIN, which rules need");
  }

  std::vector<Node> named(const Entry& list) const {
    if (list.value.is_null()) return {};
    if (list.value.type != Node::Type::list) refuse(list.value.line, fmt::format("{}: expected a list", list.key));
    const auto& items = list.value.items;
    for (const Node& item : items) {
      if (name_of(item).empty()) refuse(item.line, fmt::format("{}: expected a name", list.key));
    }
    if (const auto again = KeyIndex(items, name_of).repeated()) {
      const Node& item = items[*again];
      refuse(item.line, fmt::format("{}: '{}' is there already", list.key, excerpt(name_of(item))));
    }
    return items.get();
  }

  // Of istio-proxy, if there is one, else of the first that runs beside the app.
  void find_proxy(InjectionTemplate& made) {
    std::vector<const Node*> proxies;
    for (const Node& container : made.containers) proxies.push_back(&container);
    for (const Node& container : made.init_containers) {
      if (child_text(&container, "restartPolicy") == "Always") proxies.push_back(&container);
    }
    const auto is_named = [](const Node* container) { return name_of(*container) == proxy_container; };
    auto proxy = std::ranges::find_if(proxies, is_named);
    if (proxy == proxies.end()) proxy = proxies.begin();
    if (proxy == proxies.end()) return;
    made.proxy_name = name_of(**proxy);
    const Node* uid = child(child(*proxy, "securityContext"), "runAsUser");
    if (uid == nullptr) {
      warnings_.push_back(fmt::format(
          "{}: container {}: no securityContext.runAsUser: what it sends is sent back to it unless its image "
          "runs as user 1337",
          place(name_, (*proxy)->line), excerpt(made.proxy_name)));
      return;
    }
    if (uid->type != Node::Type::number)
      refuse(uid->line, fmt::format("container {}: runAsUser: {} '{}': expected a number", excerpt(made.proxy_name),
                                    name(uid->type), excerpt(uid->text)));
    made.proxy_uid = json_number(uid->text);
    const std::string title = fmt::format("container {}: runAsUser", excerpt(made.proxy_name));
    try {
      static_cast<void>(options::id({given_by(title, *made.proxy_uid), *made.proxy_uid}));
    } catch (const Error& error) {
      refuse(uid->line, error.what());
    }
  }

  std::string name_;
  std::vector<std::string>& warnings_;
  const Node* spec_ = nullptr;
};

}  // namespace

std::string_view name_of(const Node& named) {
  const Node* name = named.type == Node::Type::mapping ? named.find("name") : nullptr;
  return name == nullptr || name->type != Node::Type::string ? std::string_view() : name->text;
}

InjectionTemplate read_template(const Documents& documents, std::vector<std::string>& warnings) {
  return TemplateReader(documents, warnings).read();
}

}  // namespace sidetrack::manifest
