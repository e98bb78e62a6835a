// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "inject/manifest/istio_template.h"
#include "inject/manifest/scalar.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view proxy_metadata_key = "proxyMetadata";
constexpr std::string_view uid_range_annotation = "openshift.io/sa.scc.uid-range";

// Where an object has a pod template: from key to key, as "spec.template"; "": it is one itself.
constexpr std::string_view each = "*";  // every item of the list, or every value of the mapping

// What it means if there is none in such a place, and if there is one.
struct Template {
  bool has_pod_spec = true;  // containers can be put into it
  bool required = true;      // it has to be there
};
constexpr Template optional{.required = false};
constexpr Template without_containers{.has_pod_spec = false};
constexpr Template overrides{false, false};  // of pods that are made all the same

// Each text is a list of words, apart by blanks.
struct KindInfo {
  std::string_view kinds;
  std::string_view groups;  // of apiVersion, without the version; "core": it has none
  std::string_view places;
  Template is{};
};
constexpr std::string_view core = "core";
constexpr std::string_view usual_path = "spec.template";
constexpr KindInfo kind_table[] = {
    {"Pod", "core", ""},
    {"Deployment ReplicaSet", "apps extensions", usual_path},
    {"StatefulSet", "apps apps.kruise.io", usual_path},
    {"DaemonSet", "apps extensions apps.kruise.io", usual_path},
    {"ReplicationController", "core", usual_path},
    {"Job", "batch", usual_path},
    {"CronJob", "batch", "spec.jobTemplate.spec.template"},
    {"PodTemplate", "core", "template"},
    {"DeploymentConfig", "apps.openshift.io core", usual_path},
    {"Rollout", "argoproj.io", usual_path},
    {"CloneSet BroadcastJob", "apps.kruise.io", usual_path},
    {"AdvancedCronJob", "apps.kruise.io",
     "spec.template.jobTemplate.spec.template spec.template.broadcastJobTemplate.spec.template", optional},
    {"UnitedDeployment", "apps.kruise.io",
     "spec.template.statefulSetTemplate.spec.template spec.template.advancedStatefulSetTemplate.spec.template "
     "spec.template.cloneSetTemplate.spec.template spec.template.deploymentTemplate.spec.template",
     optional},
    {"Service Configuration", "serving.knative.dev", usual_path},
    {"Revision", "serving.knative.dev", ""},
    {"ContainerSource", "sources.knative.dev", usual_path},
    {"Job", "batch.volcano.sh", "spec.tasks.*.template"},
    {"JobSet", "jobset.x-k8s.io", "spec.replicatedJobs.*.template.spec.template"},
    {"VirtualMachine VirtualMachineInstanceReplicaSet", "kubevirt.io", usual_path, without_containers},
    {"VirtualMachineInstance", "kubevirt.io", "", without_containers},
    {"VirtualMachinePool", "pool.kubevirt.io", "spec.virtualMachineTemplate.spec.template", without_containers},
    {"ScaledJob", "keda.sh", "spec.jobTargetRef.template"},
    {"LeaderWorkerSet", "leaderworkerset.x-k8s.io", "spec.leaderWorkerTemplate.workerTemplate"},
    {"LeaderWorkerSet", "leaderworkerset.x-k8s.io", "spec.leaderWorkerTemplate.leaderTemplate", optional},
    {"GameServer", "agones.dev", usual_path},
    {"GameServerSet Fleet", "agones.dev", "spec.template.spec.template"},
    {"AutoscalingRunnerSet", "actions.github.com", usual_path},
    {"EphemeralRunner", "actions.github.com", "spec"},
    {"RunnerDeployment RunnerReplicaSet RunnerSet", "actions.summerwind.dev", usual_path, without_containers},
    {"Runner", "actions.summerwind.dev", "", without_containers},
    {"RayCluster", "ray.io", "spec.headGroupSpec.template"},
    {"RayCluster", "ray.io", "spec.workerGroupSpecs.*.template", optional},
    {"RayJob", "ray.io", "spec.rayClusterSpec.headGroupSpec.template spec.rayClusterSpec.workerGroupSpecs.*.template",
     optional},
    {"RayService", "ray.io", "spec.rayClusterConfig.headGroupSpec.template"},
    {"RayService", "ray.io", "spec.rayClusterConfig.workerGroupSpecs.*.template", optional},
    {"TFJob", "kubeflow.org", "spec.tfReplicaSpecs.*.template"},
    {"PyTorchJob", "kubeflow.org", "spec.pytorchReplicaSpecs.*.template"},
    {"MPIJob", "kubeflow.org", "spec.mpiReplicaSpecs.*.template"},
    {"XGBoostJob", "kubeflow.org", "spec.xgbReplicaSpecs.*.template"},
    {"PaddleJob", "kubeflow.org", "spec.paddleReplicaSpecs.*.template"},
    {"MXJob", "kubeflow.org", "spec.mxReplicaSpecs.*.template"},
    {"Notebook", "kubeflow.org", usual_path},
    {"SeldonDeployment", "machinelearning.seldon.io", "spec.predictors.*.componentSpecs.*", overrides},
    {"Sensor EventSource", "argoproj.io", usual_path, overrides},
    {"FlinkDeployment", "flink.apache.org", "spec.podTemplate spec.jobManager.podTemplate spec.taskManager.podTemplate",
     overrides},
    {"MongoDBCommunity", "mongodbcommunity.mongodb.com", "spec.statefulSet.spec.template", overrides},
    {"RabbitmqCluster", "rabbitmq.com", "spec.override.statefulSet.spec.template", overrides},
    {"CassandraDatacenter", "cassandra.datastax.com", "spec.podTemplateSpec", overrides},
    {"ClickHouseInstallation", "clickhouse.altinity.com", "spec.templates.podTemplates.*", overrides},
    {"Grafana", "grafana.integreatly.org", "spec.deployment.spec.template", overrides},
    {"Keycloak", "k8s.keycloak.org", "spec.unsupported.podTemplate", overrides},
    {"Pooler", "postgresql.cnpg.io", usual_path, overrides},
    {"Elasticsearch", "elasticsearch.k8s.elastic.co", "spec.nodeSets.*.podTemplate", overrides},
    {"Kibana", "kibana.k8s.elastic.co", "spec.podTemplate", overrides},
    {"Logstash", "logstash.k8s.elastic.co", "spec.podTemplate", overrides},
    {"ApmServer", "apm.k8s.elastic.co", "spec.podTemplate", overrides},
    {"EnterpriseSearch", "enterprisesearch.k8s.elastic.co", "spec.podTemplate", overrides},
    {"ElasticMapsServer", "maps.k8s.elastic.co", "spec.podTemplate", overrides},
    {"Beat", "beat.k8s.elastic.co", "spec.deployment.podTemplate spec.daemonSet.podTemplate", overrides},
    {"Agent", "agent.k8s.elastic.co",
     "spec.deployment.podTemplate spec.daemonSet.podTemplate spec.statefulSet.podTemplate", overrides},
    {"Kafka", "kafka.strimzi.io",
     "spec.kafka.template.pod spec.zookeeper.template.pod spec.entityOperator.template.pod "
     "spec.cruiseControl.template.pod spec.kafkaExporter.template.pod",
     overrides},
    {"KafkaNodePool KafkaConnect KafkaMirrorMaker KafkaMirrorMaker2 KafkaBridge", "kafka.strimzi.io",
     "spec.template.pod", overrides},
};

// Lists where objects describe pods that a controller makes, other than by a pod template: they are not read.
struct ElsewhereInfo {
  std::string_view path;
  std::string_view said;
  std::string_view group = {};  // of no other
  std::string_view kinds = {};  // a list of words: of no others
};
constexpr std::string_view of_its_own = "its controller makes pods of it";
constexpr std::string_view with_annotations = "its controller makes pods with the annotations of spec.podAnnotations";
constexpr ElsewhereInfo elsewhere_table[] = {
    {"spec", "its controller makes a pod for each task", "tekton.dev"},
    {"spec", "its controller makes a pod for each build", "build.openshift.io"},
    {"spec.driver", "its controller makes pods of spec.driver and spec.executor", "sparkoperator.k8s.io"},
    {"spec.predictor", "its controller makes pods of spec.predictor, spec.transformer and spec.explainer",
     "serving.kserve.io"},
    {"spec.jobManager", "its controller makes pods of spec.jobManager and spec.taskManager"},
    {"spec", "its controller makes pods of spec.nats, spec.jetstream or spec.kafka", "argoproj.io", "EventBus"},
    {"spec", with_annotations, "acid.zalan.do", "postgresql"},
    {"spec", with_annotations, "opentelemetry.io", "OpenTelemetryCollector TargetAllocator"},
    {"spec.instances", of_its_own, "postgres-operator.crunchydata.com"},
    {"spec", of_its_own, "pxc.percona.com", "PerconaXtraDBCluster"},
    {"spec", of_its_own, "psmdb.percona.com", "PerconaServerMongoDB"},
    {"spec", of_its_own, "pgv2.percona.com", "PerconaPGCluster"},
    {"spec", of_its_own, "redis.redis.opstreelabs.in"},
    {"spec", of_its_own, "minio.min.io", "Tenant"},
    {"spec", of_its_own, "jaegertracing.io", "Jaeger"},
    {"spec", of_its_own, "opensearch.opster.io", "OpenSearchCluster"},
    {"spec", of_its_own, "solr.apache.org", "SolrCloud"},
    {"spec", of_its_own, "zookeeper.pravega.io", "ZookeeperCluster"},
    {"spec", of_its_own, "kubernetes.dask.org"},
    {"spec", of_its_own, "openfaas.com", "Function"},
    {"spec", of_its_own, "nuclio.io", "NuclioFunction"},
    {"spec.environmentVariables", "its variables count for istio-init of the pods that it selects",
     "networking.istio.io", "ProxyConfig"},
    {"spec.inheritedMetadata", "its controller makes pods with the annotations of spec.inheritedMetadata"},
    {"spec", of_its_own, "postgresql.cnpg.io", "Cluster"},
    {"spec.podAnnotations", with_annotations},
    {"spec.podTemplate", "its controller makes pods of spec.podTemplate"},
    {"spec.podMetadata", "its controller makes pods with the annotations of spec.podMetadata"},
    {"spec.templates", "its controller makes a pod for each of spec.templates"},
    {"spec.workflowSpec.templates", "its controller makes a pod for each of spec.workflowSpec.templates"},
};

bool has_word(std::string_view words, std::string_view word) {
  const auto all = split_words(words);
  return std::ranges::find(all, word) != all.end();
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
  const Node* found = nullptr;
  try {
    if (mapping != nullptr) found = mapping->find(key);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where.text(), error.what()));
  }
  if (found != nullptr && found->type != type) refuse(where, key, found, name(type));
  return found;
}

std::string_view text_of(const Node* mapping, std::string_view key, const Where& where) {
  const Node* found = member(mapping, key, Node::Type::string, where);
  return found == nullptr ? std::string_view() : found->text;
}

using Above = std::vector<std::pair<std::string, const Node*>>;  // PodTemplate::above

// Calls `use` with what stands there, and with the metadata on the way; with nullptr if nothing does.
void each_at(Node* node, std::string_view path, const std::function<void(Node*, const Above&)>& use,
             const std::string& at = {}, Above above = {}) {
  if (node == nullptr || path.empty()) return use(node, above);
  const std::string_view key = path.substr(0, path.find('.'));
  const std::string_view rest = path.substr(std::min(key.size() + 1, path.size()));
  const auto below = [&](std::string_view next) { return fmt::format("{}{}{}", at, at.empty() ? "" : ".", next); };
  if (key == each) {
    for (Node& item : node->items.own()) each_at(&item, rest, use, below(each), above);
    for (Entry& entry : node->entries.own()) each_at(&entry.value, rest, use, below(entry.key), above);
    return;
  }
  if (node->type != Node::Type::mapping) return use(nullptr, above);
  if (const Node* metadata = node->find("metadata"); metadata != nullptr && metadata->type == Node::Type::mapping)
    above.emplace_back(fmt::format("that of {}", at), metadata);
  each_at(node->find(key), rest, use, below(key), std::move(above));
}

// Where an object of a kind that is not known has a pod template; "": nowhere.
std::string pod_template_in(const Node& node, const std::string& at) {
  constexpr std::string_view words[] = {"podTemplate", "podTemplateSpec", "podMetadata", "podAnnotations"};
  const auto child = [](const Node* parent, std::string_view key) {
    return parent == nullptr ? nullptr : parent->find_any(key);
  };
  for (const Entry& entry : node.entries) {
    const std::string here = fmt::format("{}{}{}", at, at.empty() ? "" : ".", entry.key);
    const Node* containers = entry.key == "template" ? child(child(&entry.value, "spec"), "containers") : nullptr;
    if (containers != nullptr && containers->type == Node::Type::list) return here;
    if (!entry.value.is_scalar() && std::ranges::find(words, entry.key) != std::end(words)) return here;
    if (std::string found = pod_template_in(entry.value, here); !found.empty()) return found;
  }
  for (const Node& item : node.items) {
    if (std::string found = pod_template_in(item, at + ".*"); !found.empty()) return found;
  }
  return {};
}

class Finder {
 public:
  Finder(std::vector<PodTemplate>& found, std::vector<std::string>& skipped) : found_(found), skipped_(skipped) {}

  // Throws the first error if there is no pod at all.
  void read(Documents& documents) {
    for (Document& document : documents.list) {
      if (document.root.is_null()) continue;
      const bool one = documents.list.size() == 1 && document.number == 1;
      document_ = document.number;
      take(document.root,
           {one ? excerpt(documents.name) : fmt::format("{}, document {}", excerpt(documents.name), document.number),
            ""});
    }
    if (found_.empty() && skipped_.empty() && !not_understood_.empty()) throw not_understood_.front();
    for (const Error& error : not_understood_) skipped_.push_back(fmt::format("{}: skipped", error.what()));
  }

 private:
  // One that is not understood does not keep the others from being read.
  void take(Node& any, const Where& place, std::string_view kind = {}) {
    try {
      object(any, place, kind);
    } catch (const Error& error) {
      not_understood_.push_back(error);
    }
  }

  // `kind`: of an item of a typed list, which need not say it.
  void object(Node& object, const Where& place, std::string_view kind) {
    if (object.type != Node::Type::mapping) refuse(place, "the document", &object, "a Kubernetes object");
    if (const std::string_view own = text_of(&object, "kind", place); !own.empty()) kind = own;
    if (kind.empty())
      refuse(place, "kind", std::as_const(object).find("kind"), "a Kubernetes object, which has a kind");
    const std::string_view version = text_of(&object, "apiVersion", place);
    const std::string_view group =
        version.find('/') == std::string_view::npos ? core : version.substr(0, version.find('/'));
    Node* items = object.find("items");
    if (kind.ends_with(list_suffix) && items != nullptr) return list(*items, place, kind);
    Node* objects = object.find("objects");
    if (kind == "Template" && group == "template.openshift.io" && objects != nullptr) return list(*objects, place, {});
    std::vector<KindInfo> known;
    std::ranges::copy_if(kind_table, std::back_inserter(known), [&](const KindInfo& info) {
      if (!has_word(info.kinds, kind)) return false;
      return version.empty() ? split_words(info.groups)[0].find('.') == std::string_view::npos  // of Kubernetes
                             : has_word(info.groups, group);
    });
    if (known.empty()) return other(object, kind, group);

    const Node* metadata = member(&object, "metadata", Node::Type::mapping, place);
    PodTemplate made{std::string(kind),
                     std::string(text_of(metadata, "name", place)),
                     std::string(text_of(metadata, "namespace", place)),
                     place.place,
                     document_,
                     nullptr};
    if (made.name.empty()) made.name = text_of(metadata, "generateName", place);
    const std::size_t before = found_.size();
    for (const auto& [kinds, groups, places, is] : known) {
      for (const std::string_view path : split_at_each(places, ' '))
        each_at(&object, path, [&](Node* pod, const Above& above) {
          if (pod == nullptr && !is.required) return;
          if (pod == nullptr && std::as_const(object).find("spec") != nullptr &&
              std::as_const(object).find("spec")->find("workloadRef") != nullptr)
            return;  // a Rollout of another object's
          if (pod == nullptr || pod->type != Node::Type::mapping) refuse(where(made), path, pod, "a pod template");
          made.has_pod_spec = is.has_pod_spec;
          made.pod = pod;
          made.above = above;
          if (!made.above.empty() && made.above[0].second == metadata)
            made.above[0].first = fmt::format("the {}'s own", excerpt(kind));
          found_.push_back(made);
        });
    }
    if (found_.size() == before && !known[0].is.required) {
      const std::string_view first = split_words(known[0].places)[0];
      skip(kind, group, fmt::format("no {}: its controller makes pods anyway", first));
    }
  }

  void skip(std::string_view kind, std::string_view group, std::string_view why) {
    const std::string of_group = group == core ? "" : fmt::format(" of {}", excerpt(group));
    if (kinds_.insert(fmt::format("{}{}", kind, of_group)).second)
      skipped_.push_back(fmt::format("kind {}{}: {}", excerpt(kind), of_group, why));
  }

  static constexpr std::string_view list_suffix = "List";

  void list(Node& items, const Where& place, std::string_view kind) {
    if (items.type != Node::Type::list) refuse(place, "items", &items, "a list");
    std::size_t number = 0;
    for (Node& item : items.items.own())
      take(item, {fmt::format("{}, item {}", place.place, ++number), ""},
           kind.substr(0, kind.size() - std::min(kind.size(), list_suffix.size())));
  }

  void other(Node& object, std::string_view kind, std::string_view group) {
    if (kind == "CustomResourceDefinition") return;  // it describes objects
    constexpr std::string_view not_known = "unknown, skipped: ";
    for (const auto& [path, said, of_group, of_kinds] : elsewhere_table) {
      bool is_there = false;
      each_at(&object, path, [&](Node* found, const Above&) { is_there = found != nullptr && !found->is_scalar(); });
      if (is_there && (of_group.empty() || of_group == group) && (of_kinds.empty() || has_word(of_kinds, kind)))
        return skip(kind, group, fmt::format("{}{}", not_known, said));
    }
    if (const std::string at = pod_template_in(object, ""); !at.empty())
      skip(kind, group, fmt::format("{}it seems to have a pod template, {}", not_known, excerpt(at)));
  }

  std::vector<PodTemplate>& found_;
  std::vector<std::string>& skipped_;
  std::vector<Error> not_understood_;
  std::set<std::string, std::less<>> kinds_;  // of `skipped_`
  std::size_t document_ = 1;
};

// Annotations, labels or variables; nullptr if there are none. Of anything but strings the API server says that it
// cannot unmarshal it; null is an empty one.
const Node* strings(const Node* metadata, std::string_view key, const Where& where) {
  const Node* mapping = member(metadata, key, Node::Type::mapping, where);
  if (mapping == nullptr) return mapping;
  for (const Entry& entry : mapping->entries) {
    // kubectl takes the last of keys that nothing here depends on.
    if (is_read_of_pod(entry.key) || key == proxy_metadata_key)
      entry.value.check_fault(entry.key, fmt::format("{}: ", where.text()));
    if (entry.value.type == Node::Type::string || entry.value.is_null()) continue;
    refuse(where, excerpt(entry.key), &entry.value, "a string",
           entry.value.is_scalar()
               ? fmt::format("write it in quotes: {}: \"{}\"", excerpt(entry.key), excerpt(entry.value.text))
               : "");
  }
  return mapping;
}

Annotations strings_of(const Node* mapping) {
  Annotations made;
  if (mapping == nullptr) return made;
  for (const Entry& entry : mapping->entries)
    made.insert_or_assign(entry.key, entry.value.is_null() ? "" : entry.value.text);
  return made;
}

// All that reads an annotation takes time and memory by its length.
const Node* annotations_node(const Node* metadata, const Where& where) {
  constexpr std::string_view key = "annotations";
  const Node* annotations = strings(metadata, key, where);
  if (annotations == nullptr) return nullptr;
  std::size_t bytes = 0;
  for (const Entry& entry : annotations->entries) bytes += entry.key.size() + entry.value.text.size();
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

// Reads what the injector has written into the pod; null if that cannot be read, which inject() says.
Node status_of(const Annotations& annotations) {
  try {
    if (const auto text = sidetrack::find(annotations, status_annotation))
      return parse_json(*text, status_annotation, limits_of_annotation)[0].root;
  } catch (const Error&) {
  }
  return {};
}

bool names_container(const Node& status, std::string_view key, std::string_view container) {
  const Node* names = status.find_any(key);
  return names != nullptr && std::ranges::find(names->items, container, &Node::text) != names->items.end();
}

// Of a pod that is injected already: the container that the injector put first into it, if that is not istio-proxy.
std::string proxy_of(const Annotations& annotations) {
  const Node status = status_of(annotations);
  for (const std::string_view key : {"containers", "initContainers"}) {
    const Node* names = status.find_any(key);
    if (names == nullptr) continue;
    if (names_container(status, key, proxy_container)) break;
    for (const Node& name : names->items) {
      if (name.text != init_container_name) return name.text;
    }
  }
  return std::string(proxy_container);
}

constexpr std::string_view mode_fields[] = {"interceptionMode", "interception_mode"};
constexpr std::string_view proxy_metadata_fields[] = {proxy_metadata_key, "proxy_metadata"};

// Returns the mode of a field, which may be given by number, as that of any enumeration; nothing if it is not given so.
std::optional<std::string> mode_by_number(const Node* config, std::string_view field) {
  const Node* found = config == nullptr ? nullptr : config->find(field);
  if (found == nullptr || found->type != Node::Type::number) return std::nullopt;
  const double number = std::strtod(json_number(found->text).c_str(), nullptr);
  const auto whole = static_cast<std::int32_t>(std::clamp<double>(number, INT32_MIN, INT32_MAX));
  return whole == number ? std::optional(std::string(mode_of_number(std::to_string(whole)))) : std::nullopt;
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
  // Throws for what is neither text nor a number.
  [[nodiscard]] std::string mode() const {
    for (const std::string_view field : mode_fields) {
      if (auto mode = mode_by_number(node(), field)) return *mode;
    }
    return std::string(text(mode_fields[0], mode_fields[1]));
  }
  [[nodiscard]] const Node* metadata() const {
    const Node* found = strings(node(), proxy_metadata_fields[0], where);
    return found != nullptr ? found : strings(node(), proxy_metadata_fields[1], where);
  }
};
ConfigDocument config_document(const Annotations& annotations, const Where& where) {
  const std::string place = where.text();
  ConfigDocument made{{fmt::format("{}{}{}", place, place.empty() ? "" : ": ", proxy_config_annotation), ""},
                      std::nullopt};
  const auto text = sidetrack::find(annotations, proxy_config_annotation);
  if (!text) return made;
  // Of several documents of YAML the first counts, as for Istio.
  Documents documents = parse_each_document(std::string(*text), made.where.place, limits_of_annotation);
  if (documents.list.empty()) return made;
  Document& first = documents.list[0];
  if (first.problem) throw *first.problem;
  const bool is_stream = documents.form == Form::json && documents.list.size() > 1;
  if (first.root.is_null() && !is_stream) return made;
  if (first.root.type != Node::Type::mapping || is_stream)
    refuse(made.where, "the document", &first.root, "one mapping, Istio's ProxyConfig");
  made.root = std::move(first.root);
  for (const Entry& entry : made.root->entries) {
    const auto is_read = [&](std::string_view field) { return entry.key == field; };
    if (std::ranges::any_of(mode_fields, is_read) || std::ranges::any_of(proxy_metadata_fields, is_read))
      entry.value.check_fault(entry.key, fmt::format("{}: ", made.where.text()));
  }
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
    // A whole command line; other words are of a program of the user's own.
    if (is_first && !word.text.starts_with('-') && word.text.find(' ') != std::string::npos)
      refuse(where, fmt::format("{}: args", from), &word, fmt::format("{}, or an option, first", program_word));
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

// An init container of the pod, and its arguments; nullptr if it has none of that name with arguments. Without any, it
// says something of the injector's own container: its image, its resources.
std::pair<const Node*, const Node*> own_init(const PodTemplate& pod, std::string_view name) {
  const Where here = where(pod);
  const Node* spec = member(pod.pod, "spec", Node::Type::mapping, here);
  const Node* containers = member(spec, "initContainers", Node::Type::list, here);
  if (containers == nullptr) return {};
  for (const Node& container : containers->items) {
    if (container.type != Node::Type::mapping || text_of(&container, "name", here) != name) continue;
    const Node* args = member(&container, "args", Node::Type::list, here);
    if (args != nullptr && !args->items.empty()) return {&container, args};
  }
  return {};
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

// "1000670000/10000", "1000670000-1000679999": the last one. Empty for 0, which Istio's template takes for none.
std::string last_uid(const Node& range, const Where& where) {
  const std::string_view text = range.text;
  const auto mark = text.find_first_of("/-");
  const auto first = to_number<std::uint32_t>(text.substr(0, mark));
  const auto second = mark < text.size() ? to_number<std::uint32_t>(text.substr(mark + 1)) : std::nullopt;
  if (first && second) {
    const std::uint64_t last = text[mark] == '-' ? *second : std::uint64_t{*first} + *second - 1;
    if (last >= *first && last < UINT32_MAX) return last == 0 ? "" : std::to_string(last);
  }
  refuse(where, uid_range_annotation, &range, "START/SIZE or START-END, as OpenShift writes it");
}

void add_namespaces(const Node& object, const Where& place, ProxyUids& uids) {
  const Node* kind = object.find_any("kind");
  const Node* items = object.find_any("items");
  if (items != nullptr && items->type == Node::Type::list) {
    for (const Node& item : items->items) add_namespaces(item, place, uids);
  }
  constexpr std::string_view kinds[] = {"Namespace", "Project"};  // of OpenShift, which is one
  if (kind == nullptr || std::ranges::find(kinds, kind->text) == std::end(kinds)) return;
  const Node* metadata = member(&object, "metadata", Node::Type::mapping, place);
  const std::string name(text_of(metadata, "name", place));
  const Where here{place.place, fmt::format("{} {}", kind->text, excerpt(name))};
  try {
    const Node* annotations = strings(metadata, "annotations", here);
    const Node* range = annotations == nullptr ? nullptr : annotations->find(uid_range_annotation);
    const std::string uid = range == nullptr ? "" : last_uid(*range, here);
    if (!uid.empty()) uids.insert_or_assign(name, ProxyUid{uid});
  } catch (const Error& error) {
    uids.insert_or_assign(name, ProxyUid{"", error});
  }
}

void take_mode(const ConfigDocument& config, HelmValues& helm) {
  std::string mode = config.mode();
  if (!mode.empty())
    helm.insert_or_assign(std::string(mode_value),
                          HelmValue{std::move(mode), fmt::format("{}: interceptionMode", proxy_config_annotation)});
}

// Those of init_environment(), whatever their values are.
Variables unchecked_variables(const ConfigDocument& config, const HelmValues& helm) {
  Variables made = strings_of(config.metadata());
  for (const auto& [name, value] : helm) {
    if (name.starts_with(proxy_metadata_value) && !value.is_null)
      made.try_emplace(name.substr(proxy_metadata_value.size() + 1), value.text);
  }
  return made;
}

// Istio's injector does, even where an annotation says another one. It takes any number.
void check_mode(const ConfigDocument& config) {
  const std::string_view choices = flag_named("istio-inbound-interception-mode").choices;
  const auto known = each_choice(choices);
  for (const std::string_view field : mode_fields) {
    const Node* given = config.node() == nullptr ? nullptr : config.node()->find(field);
    if (given == nullptr || mode_by_number(config.node(), field)) continue;
    if (std::ranges::find(known, text_of(config.node(), field, config.where)) == known.end())
      refuse(config.where, field, given, fmt::format("one of {}", choices));
  }
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
template <typename Make>
std::invoke_result_t<Make> with_place(const PodTemplate& pod, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where(pod).text(), error.what()), error.hint());
  }
}

constexpr std::size_t most_put_in = 32U << 20;  // bytes, as of a file

// Puts the values in place of "${NAME}" anywhere in a text, and of "${{NAME}}" as any value. `room`: how many bytes
// they may still take; throws usage beyond.
void put_values(Node& node, const Variables& values, std::size_t& room) {
  const auto value_of = [&](std::string_view name) {
    auto value = sidetrack::find(values, name);
    if (value && value->size() > room) {
      throw Error(ExitCode::usage,
                  fmt::format("parameter {}: its values take more than {} MiB", excerpt(name), most_put_in >> 20));
    }
    if (value) room -= value->size();
    return value;
  };
  if (!node.items.empty()) {
    for (Node& item : node.items.own()) put_values(item, values, room);
  }
  if (!node.entries.empty()) {
    for (Entry& entry : node.entries.own()) put_values(entry.value, values, room);
  }
  constexpr std::string_view open = "${";
  if (node.type != Node::Type::string || node.text.find(open) == std::string::npos) return;
  if (node.text.starts_with("${{") && node.text.ends_with("}}")) {
    const auto value = value_of(std::string_view(node.text).substr(3, node.text.size() - 5));
    if (!value) return;
    node.text = *value;
    node.type = type_of_plain(node.text);
    return;
  }
  std::string made;
  for (std::string_view left = node.text; !left.empty();) {
    const auto begin = std::min(left.find(open), left.size());
    const auto end = left.find('}', begin);
    const bool is_whole = begin < left.size() && end != std::string_view::npos;
    const auto value = is_whole ? value_of(left.substr(begin + open.size(), end - begin - open.size())) : std::nullopt;
    made += value ? fmt::format("{}{}", left.substr(0, begin), *value)
                  : std::string(left.substr(0, is_whole ? end + 1 : left.size()));
    left.remove_prefix(is_whole ? end + 1 : left.size());
  }
  node.text = made;
}

void take_namespace(const PodTemplate& pod, const ProxyUids& of_namespaces, PodMetadata& metadata) {
  const auto found = of_namespaces.find(pod.namespace_);
  if (found == of_namespaces.end()) return;
  if (const auto& problem = found->second.problem) with_place(pod, [&] { throw *problem; });
  metadata.namespace_uid = found->second.uid;
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
  Finder(found, skipped).read(documents);
  return found;
}

void read_namespaces(const Documents& documents, ProxyUids& uids) {
  for (const Document& document : documents.list) add_namespaces(document.root, {excerpt(documents.name), ""}, uids);
}

void set_parameters(Documents& documents) {
  for (Document& document : documents.list) {
    Node& root = document.root;
    const Node* kind = root.find_any("kind");
    const Node* parameters = kind != nullptr && kind->text == "Template" ? root.find_any("parameters") : nullptr;
    if (parameters == nullptr || root.find_any("objects") == nullptr) continue;
    Variables values;
    for (const Node& parameter : parameters->items) {
      const auto text = [&](std::string_view key) {
        const Node* found = parameter.find_any(key);
        return found != nullptr && !found->is_null() && found->is_scalar() ? std::optional<std::string>(found->text)
                                                                           : std::nullopt;
      };
      const auto value = text("value");
      if (value || (!text("generate") && text("required") != "true"))
        values.insert_or_assign(text("name").value_or(""), value.value_or(""));
    }
    std::size_t room = most_put_in;
    auto& entries = root.entries.own();
    put_values(std::ranges::find(entries, "objects", &Entry::key)->value, values, room);
  }
}

void check_annotations(const PodTemplate& pod) { static_cast<void>(annotations_node(metadata_node(pod), where(pod))); }

PodMetadata bare_metadata(const PodTemplate& pod, std::string_view proxy) {
  const Where here = where(pod);
  const Node* metadata = metadata_node(pod);
  const Node* spec = member(pod.pod, "spec", Node::Type::mapping, here);
  PodMetadata made;
  made.namespace_ = pod.namespace_;
  made.annotations = strings_of(annotations_node(metadata, here));
  made.labels = strings_of(strings(metadata, "labels", here));
  const Node* host_network = member(spec, "hostNetwork", Node::Type::boolean, here);
  made.host_network = host_network != nullptr && host_network->is_true();
  made.proxy = proxy.empty() ? proxy_of(made.annotations) : std::string(proxy);
  made.proxy_uid = uid_of(made.proxy, spec, here);
  return made;
}

PodMetadata metadata_of(const PodTemplate& pod, HelmValues& helm, std::string_view proxy) {
  PodMetadata made = bare_metadata(pod, proxy);
  take_mode(config_document(made.annotations, where(pod)), helm);
  return made;
}

ProxyConfig proxy_config(const Annotations& annotations) {
  const ConfigDocument config = config_document(annotations, {});
  return {config.mode(), strings_of(config.metadata())};
}

Variables init_environment(const PodTemplate& pod, const HelmValues& helm) {
  const Where here = where(pod);
  const ConfigDocument config = config_document(strings_of(annotations_node(metadata_node(pod), here)), here);
  const Variables variables = strings_of(config.metadata());
  return init_variables(helm, variables, fmt::format("{}: {}", config.where.text(), proxy_metadata_key));
}

bool is_injected(const PodTemplate& pod) {
  return child(member(metadata_node(pod), "annotations", Node::Type::mapping, where(pod)), status_annotation) !=
         nullptr;
}

std::optional<PresentInit> present_init(const PodTemplate& pod) {
  const Where here = where(pod);
  for (const std::string_view name : {init_container_name, validation_container_name}) {
    const auto [container, args] = own_init(pod, name);
    if (args != nullptr) return PresentInit{arguments_of(*args, name, here), variables_of(*container, here)};
  }
  return std::nullopt;
}

InitArguments left_alone(const PodTemplate& pod, const HelmValues& helm) {
  const PodMetadata metadata = bare_metadata(pod);
  InitArguments made = with_place(pod, [&] { return why_not_injected(metadata, helm, Injector::sidetrack); });
  if (!made.not_injected.empty()) return made;
  HelmValues values = helm;
  const ConfigDocument config = config_document(metadata.annotations, where(pod));
  take_mode(config, values);
  made = with_place(pod, [&] { return why_not_injected_by_mode(metadata.annotations, values); });
  if (!made.not_injected.empty()) return made;
  const Variables variables = unchecked_variables(config, helm);
  return with_place(pod, [&] {
    std::string why = without_envoy(variables, proxy_metadata_key);
    return why.empty() ? InitArguments{} : InitArguments{"no_envoy", std::move(why), {}};
  });
}

InitArguments init_arguments(const PodTemplate& pod, const HelmValues& helm, std::string_view proxy,
                             const std::optional<std::string>& proxy_uid, const ProxyUids& of_namespaces) {
  if (InitArguments made = left_alone(pod, helm); !made.not_injected.empty()) return made;
  HelmValues values = helm;
  PodMetadata metadata = metadata_of(pod, values, proxy);
  if (!metadata.proxy_uid) metadata.proxy_uid = proxy_uid;
  take_namespace(pod, of_namespaces, metadata);
  InitArguments made = with_place(pod, [&] { return istio_init_arguments(metadata, values); });
  static_cast<void>(init_environment(pod, helm));
  return made;
}

namespace {

// As they are between the double quotes of Istio's template.
void put_in_template(Annotations& annotations, HelmValues& values) {
  const auto put = [&](std::string_view annotation, std::string_view helm_value) {
    if (const auto text = annotations.find(annotation); text != annotations.end())
      text->second = in_template(annotation, text->second);
    if (const auto value = values.find(helm_value); value != values.end() && !value->second.is_null)
      value->second.text = in_template(value->second.from, value->second.text);
  };
  for (const AnnotationInfo& row : annotation_table()) {
    if (row.flag == excluded_ports_flag) continue;  // written with the port of probes
    for (const std::string_view name : {row.name, row.older}) put(name, row.helm_value);
  }
  put(log_level_annotation, "global.logging.level");
}

// Istio's injector puts the uid of the pod's own proxy into the arguments of whatever istio-init is there.
void put_uid(InitArguments& init, const PodMetadata& metadata) {
  if (!metadata.proxy_uid || *metadata.proxy_uid == "0") return;
  const auto uid = std::ranges::find(init.arguments, "-u", &InitArgument::option);
  if (uid != init.arguments.end()) uid->value = *metadata.proxy_uid;
}

// The arguments that the pod itself has for the container; the injector puts them in place of its own.
std::optional<InitArguments> own_arguments(const PodTemplate& pod, const Annotations& annotations, bool by_plugin) {
  const Where here = where(pod);
  const std::string_view name = by_plugin ? validation_container_name : init_container_name;
  const Node said = with_place(pod, [&] { return args_in_overrides(annotations, name); });
  if (names_container(status_of(annotations), "initContainers", name)) return std::nullopt;  // it is the injector's
  if (by_plugin) {
    // One of this name beside it stays, and runs.
    if (const Node* args = own_init(pod, init_container_name).second)
      return arguments_of(*args, init_container_name, here);
  }
  const Node* args = said.items.empty() ? own_init(pod, name).second : &said;
  return args == nullptr ? std::nullopt : std::optional(arguments_of(*args, name, here));
}

}  // namespace

InitArguments arguments_by_istio(const PodTemplate& pod, const HelmValues& helm, const ProxyUids& of_namespaces) {
  const Where here = where(pod);
  HelmValues values = helm;
  PodMetadata metadata = bare_metadata(pod, proxy_container);
  InitArguments why = with_place(pod, [&] { return why_not_injected(metadata, values, Injector::istio); });
  if (!why.not_injected.empty() && why.reason != "template") return why;
  const ConfigDocument config = config_document(metadata.annotations, here);
  const Variables variables = unchecked_variables(config, helm);
  take_mode(config, values);
  check_mode(config);
  const auto own = own_arguments(pod, metadata.annotations, is_on(values, cni_value));
  // A container of its own stays.
  const auto without_template = [&](InitArguments left_alone) {
    auto present = present_init(pod);
    if (!present) return left_alone;
    put_uid(present->init, metadata);
    return std::move(present->init);
  };
  why = with_place(pod, [&] {
    check_in_template(metadata.annotations, values, variables);
    return std::move(why);
  });
  if (!why.not_injected.empty()) return without_template(std::move(why));
  take_namespace(pod, of_namespaces, metadata);
  if (metadata.namespace_uid && metadata.proxy_uid &&
      is_uid_of_app(*metadata.proxy_uid, member(pod.pod, "spec", Node::Type::mapping, here), here))
    metadata.proxy_uid.reset();
  InitArguments made = with_place(pod, [&] {
    put_in_template(metadata.annotations, values);
    InitArguments by_template = istio_init_arguments(metadata, values, Injector::istio);
    const std::string excluded = short_name(flag_named(excluded_ports_flag));
    for (InitArgument& argument : by_template.arguments) {
      if (argument.option == excluded) argument.value = in_template(argument.from, argument.value);
    }
    if (!by_template.not_injected.empty()) return without_template(std::move(by_template));
    if (!own) return by_template;
    by_template.arguments = own->arguments;
    by_template.refused.clear();
    put_uid(by_template, metadata);
    return by_template;
  });
  if (!made.not_injected.empty() || !made.refused.empty()) return made;
  try {
    static_cast<void>(init_environment(pod, helm));
  } catch (const Error& error) {
    made.refused = error.what();
  }
  return made;
}

}  // namespace sidetrack::manifest
