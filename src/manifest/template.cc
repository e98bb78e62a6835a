// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/template.h"

#include <fmt/format.h>
#include <sidetrack/version.h>

#include <algorithm>

#include "manifest/pods.h"
#include "model/error.h"
#include "model/printable.h"

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

constexpr std::string_view keys_of_pod[] = {"apiVersion", "kind", "metadata", "spec"};

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
      spec_ = spec;
    }
    if (spec_->type != Node::Type::mapping) refuse(spec_->line, "spec: expected a mapping");
  }

  InjectionTemplate read() {
    InjectionTemplate made;
    const std::string usual = fmt::format(fmt::runtime(usual_init_container), version);
    made.init = parse_yaml(usual, "istio-init")[0].root;
    struct Part {
      std::string_view key;
      std::vector<Node>* nodes;
    };
    const Part parts[] = {{"initContainers", &made.init_containers},
                          {"containers", &made.containers},
                          {"volumes", &made.volumes},
                          {"imagePullSecrets", &made.image_pull_secrets}};
    for (const Entry& entry : spec_->entries) {
      const auto* const part = std::ranges::find(parts, entry.key, &Part::key);
      if (part == std::end(parts)) {
        refuse(entry.value.line, fmt::format("'{}': not put into pods", excerpt(entry.key)),
               "a template has initContainers, containers, volumes and imagePullSecrets");
      }
      *part->nodes = named(entry);
    }
    if (made.containers.empty() && made.init_containers.empty())
      refuse(0, "no containers: expected those of the proxy");
    const auto init = std::ranges::find(made.init_containers, init_container_name, name_of);
    if (init != made.init_containers.end()) {
      check_init(*init);
      made.init = merged(made.init, *init);
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
    const auto is_text = [](const Node& item) { return item.type == Node::Type::string; };
    for (const char* key : {"args", "command"}) {
      const Node* words = init.find(key);
      if (words == nullptr || (words->type == Node::Type::list && std::ranges::all_of(words->items, is_text))) continue;
      refuse(words->line,
             fmt::format("{}: {}: {}: expected a list of strings", init_container_name, key, name(words->type)));
    }
    if (init.find("image") == nullptr)
      warnings_.push_back(fmt::format("{}: {}: no image: that of this build is taken, which clusters cannot pull",
                                      place(name_, init.line), init_container_name));
  }

  std::vector<Node> named(const Entry& list) const {
    if (list.value.is_null()) return {};
    if (list.value.type != Node::Type::list) refuse(list.value.line, fmt::format("{}: expected a list", list.key));
    std::vector<Node> made;
    for (const Node& item : list.value.items) {
      if (name_of(item).empty()) refuse(item.line, fmt::format("{}: expected a name", list.key));
      if (std::ranges::find(made, name_of(item), name_of) != made.end())
        refuse(item.line, fmt::format("{}: '{}' is there already", list.key, excerpt(name_of(item))));
      made.push_back(item);
    }
    return made;
  }

  // Of istio-proxy, if there is one, else of the first that runs beside the app.
  void find_proxy(InjectionTemplate& made) {
    std::vector<const Node*> proxies;
    for (const Node& container : made.containers) proxies.push_back(&container);
    for (const Node& container : made.init_containers) {
      const Node* policy = container.find("restartPolicy");
      if (policy != nullptr && policy->text == "Always") proxies.push_back(&container);
    }
    const auto is_named = [](const Node* container) { return name_of(*container) == proxy_container; };
    auto proxy = std::ranges::find_if(proxies, is_named);
    if (proxy == proxies.end()) proxy = proxies.begin();
    if (proxy == proxies.end()) return;
    made.proxy_name = name_of(**proxy);
    const Node* context = (*proxy)->find("securityContext");
    const Node* uid = context == nullptr ? nullptr : context->find("runAsUser");
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
    made.proxy_uid = uid->text;
  }

  std::string name_;
  std::vector<std::string>& warnings_;
  const Node* spec_ = nullptr;
};

}  // namespace

std::string name_of(const Node& named) {
  const Node* name = named.type == Node::Type::mapping ? named.find("name") : nullptr;
  return name == nullptr || name->type != Node::Type::string ? "" : name->text;
}

InjectionTemplate read_template(const Documents& documents, std::vector<std::string>& warnings) {
  return TemplateReader(documents, warnings).read();
}

}  // namespace sidetrack::manifest
