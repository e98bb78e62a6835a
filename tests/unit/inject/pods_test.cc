// SPDX-License-Identifier: GPL-2.0-or-later
// The pods of manifests: which there are, what is said of wrong ones, and the one pod of --pod.
#include "inject/manifest/pods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "inject/manifest/arguments.h"
#include "inject/manifest/facts.h"
#include "model/error.h"
#include "unit/all_arguments.h"
#include "unit/error_text.h"
#include "unit/temporary_file.h"

namespace sidetrack::manifest {
namespace {

using sidetrack::testing::error_text;
using sidetrack::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What `args` says of a wrong manifest.
std::string error_of_pods(const std::string& manifest) {
  return error_text([&] {
    Documents documents = parse_documents(manifest, "a.yaml");
    std::vector<std::string> skipped;
    for (const PodTemplate& pod : pod_templates(documents, skipped)) static_cast<void>(init_arguments(pod, {}));
  });
}

TEST(Pods, AreOfTheseKinds) {
  Documents documents = parse_documents(R"(
kind: Pod
metadata: {name: a, namespace: shop}
---
kind: Deployment
metadata: {generateName: b-}
spec: {template: {}}
---
kind: CronJob
metadata: {namespace: mail}
spec: {jobTemplate: {spec: {template: {}}}}
---
kind: PodTemplate
template: {}
---
kind: PodList
items: [{metadata: {name: c}}, {kind: Job, spec: {template: {}}}]
---
kind: List
items: []
---
kind: Rollout
spec: {template: {spec: {containers: []}}}
---
kind: Rollout
spec: {template: {spec: {containers: []}}}
---
kind: Other
spec: {template: {spec: {volumes: []}}}
---
kind: List
---
kind: Service
---
)",
                                        "a.yaml");
  std::vector<std::string> skipped;
  std::vector<std::string> found;
  for (const PodTemplate& pod : pod_templates(documents, skipped))
    found.push_back(fmt::format("{} {}", title_with_place(pod), pod.document));
  EXPECT_THAT(found, ElementsAre("a.yaml, document 1: Pod shop/a 1", "a.yaml, document 2: Deployment b- 2",
                                 "a.yaml, document 3: CronJob mail/ 3", "a.yaml, document 4: PodTemplate 4",
                                 "a.yaml, document 5, item 1: Pod c 5", "a.yaml, document 5, item 2: Job 5"));
  EXPECT_THAT(skipped, ElementsAre("kind Rollout: unknown, skipped: it seems to have a pod template, spec.template"));
  Documents one = parse_documents("kind: Pod\n", "a.yaml");
  EXPECT_EQ(title_with_place(pod_templates(one, skipped).at(0)), "a.yaml: Pod");
}

// It names the place, the object, what was found and what was expected.
TEST(Pods, OfWhatIsWrongItIsSaidWhere) {
  const std::pair<std::string, std::string> all[] = {
      {"5\n", "a.yaml, line 1: the document: a number '5': expected a Kubernetes object"},
      {"a: 1\n", "a.yaml: kind: missing: expected a Kubernetes object, which has a kind"},
      {"---\nkind: Service\n---\nkind: 5\n", "a.yaml, document 2, line 4: kind: a number '5': expected a string"},
      {"kind: Deployment\n", "a.yaml: Deployment: spec.template: missing: expected a pod template"},
      {"kind: CronJob\nspec: {jobTemplate: {spec: {template: x}}}\n",
       "a.yaml, line 2: CronJob: spec.jobTemplate.spec.template: a string 'x': expected a pod template"},
      {"kind: PodTemplate\ntemplate: []\n", "a.yaml, line 2: PodTemplate: template: a list: expected a pod template"},
      {"kind: PodList\nitems: {}\n", "a.yaml, line 2: items: a mapping: expected a list"},
      {"kind: List\nitems: [{kind: Service}, 5]\n",
       "a.yaml, item 2, line 2: the document: a number '5': expected a Kubernetes object"},
      {"kind: Pod\nmetadata: {name: [a]}\n", "a.yaml, line 2: name: a list: expected a string"},
      {"kind: Pod\nmetadata: {name: a, annotations: {b: 5}}\n",
       "a.yaml, line 2: Pod a: b: a number '5': expected a string; write it in quotes: b: \"5\""},
      {"kind: Pod\nmetadata: {labels: {b: }, annotations: {c: ~}}\n", "no error"},
      {"kind: Pod\nmetadata: {labels: {b: c, b: d}, annotations: {b: c, b: d}}\n", "no error"},
      {"kind: Pod\nmetadata: {labels: {sidecar.istio.io/inject: c, sidecar.istio.io/inject: d}}\n",
       "a.yaml: Pod: line 2: 'sidecar.istio.io/inject': duplicate key"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: c, proxy.istio.io/config: d}}\n",
       "a.yaml: Pod: line 2: 'proxy.istio.io/config': duplicate key"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: \"interceptionMode: NONE\\ninterceptionMode: "
       "TPROXY\"}}\n",
       "a.yaml: Pod: proxy.istio.io/config: line 2: 'interceptionMode': duplicate key"},
      {"kind: Pod\nmetadata: {name: a}\nmetadata: {name: b}\n", "a.yaml: line 3: 'metadata': duplicate key"},
      {"kind: Pod\nspec: {containers: [{name: web, image: a, image: b}]}\n", "no error"},
      {"kind: Pod\nmetadata: {labels: {b: []}}\n", "a.yaml, line 2: Pod: b: a list: expected a string"},
      {"kind: Pod\nspec: {hostNetwork: 'true'}\n",
       "a.yaml, line 2: Pod: hostNetwork: a string 'true': expected a boolean"},
      {"kind: Pod\nspec: {containers: [a]}\n",
       "a.yaml, line 2: Pod: containers: a string 'a': expected a list of containers"},
      {"kind: Pod\nspec: {containers: [{name: istio-proxy, securityContext: {runAsUser: x}}]}\n",
       "a.yaml, line 2: Pod: runAsUser: a string 'x': expected a number"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: \"a: 1\\n\\tb: 2\"}}\n",
       "a.yaml: Pod: proxy.istio.io/config, line 2, column 1: not YAML: found a tab character that violates "
       "indentation; indent "
       "with spaces, not tabs"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: '[]'}}\n",
       "a.yaml: Pod: proxy.istio.io/config, line 1: the document: a list: expected one mapping, Istio's ProxyConfig"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: '{a: 1} {a: 2}'}}\n",
       "a.yaml: Pod: proxy.istio.io/config, line 1, column 8: not YAML: did not find expected <document start>"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: '{\"a\": 1} {\"a\": 2}'}}\n",
       "a.yaml: Pod: proxy.istio.io/config: the document: a mapping: expected one mapping, Istio's ProxyConfig"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: 'interceptionMode: 5'}}\n",
       "a.yaml: Pod: proxy.istio.io/config: interceptionMode: '5': expected one of REDIRECT|TPROXY|NONE"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: ''}}\n", "no error"},
      {"kind: Pod\nspec: {initContainers: [{name: a}]}\n", "no error"},
      {"kind: Pod\nspec: {hostNetwork: true}\nmetadata: {annotations: {proxy.istio.io/config: 'proxyMetadata: 5'}}\n",
       "no error"},  // nobody puts anything into it
  };
  for (const auto& [manifest, expected] : all) EXPECT_EQ(error_of_pods(manifest), expected) << manifest;
}

struct Arguments {
  std::string text;
  std::vector<std::string> warnings;
};
Arguments arguments_of(const std::string& manifest) {
  const TemporaryFile file(manifest);
  ManifestOptions options;
  options.files = {file.path()};
  Arguments made;
  const auto pods = sidetrack::testing::all_arguments(options, made.warnings);
  made.text = arguments_text(pods);
  for (std::string& warning : made.warnings) {
    if (const auto at = warning.find(file.path()); at != std::string::npos)
      warning.replace(at, file.path().size(), "FILE");
  }
  return made;
}

TEST(Pods, ThatAreNotThereAreMissed) {
  EXPECT_THAT(arguments_of("kind: Service\n").warnings,
              ElementsAre("FILE: no pod: looked for a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or "
                          "CronJob"));
  EXPECT_THAT(arguments_of("kind: Rollout\nspec: {template: {spec: {containers: []}}}\n").warnings,
              ElementsAre("FILE: kind Rollout: unknown, skipped: it seems to have a pod template, spec.template"));
  EXPECT_THAT(arguments_of("kind: Pod\n").warnings, IsEmpty());
}

// Of several documents Istio reads the first, whatever the others are.
TEST(Pods, HaveOneProxyConfig) {
  for (const char* more : {"", "\\n---\\ninterceptionMode: NONE", "\\n---\\na: ["}) {
    EXPECT_THAT(arguments_of(fmt::format("kind: Pod\nmetadata: {{annotations: {{proxy.istio.io/config: "
                                         "\"interceptionMode: TPROXY{}\"}}}}\n",
                                         more))
                    .text,
                ::testing::HasSubstr("-m TPROXY "))
        << more;
  }
}

// A wrong part is left out, and said; the others are answered.
TEST(Pods, ThatAreWrongDoNotEndTheOthers) {
  const TemporaryFile file(R"(
kind: Pod
metadata: {name: one, annotations: {sidecar.istio.io/interceptionMode: no}}
---
kind: Pod
metadata: {name: two
---
kind: Pod
metadata: {name: three, annotations: {a: !Ref b}}
---
kind: Deployment
metadata: {name: four, annotations: {traffic.sidecar.istio.io/includeInboundPorts: "1"}}
spec: {template: {metadata: {annotations: {traffic.sidecar.istio.io/includeInboundPorts: "http"}}}}
)");
  const TemporaryFile empty("# nothing\n");
  ManifestOptions options;
  options.files = {empty.path(), file.path()};
  std::vector<std::string> warnings, errors;
  const auto pods = arguments(options, warnings, errors);
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(title(pods[0].pod), "Pod three");
  for (std::string& error : errors) error = error.substr(error.find_first_of(",:"));
  EXPECT_THAT(errors,
              ElementsAre(::testing::StartsWith(": empty: expected a Pod"),
                          ", line 7, column 1: not YAML: did not find expected ',' or '}'",
                          ::testing::HasSubstr(", document 1, line 3: Pod one: sidecar.istio.io/interceptionMode: "),
                          ::testing::StartsWith(", document 4: Deployment four: traffic.sidecar.istio.io/include")));
  EXPECT_THAT(warnings, ElementsAre(::testing::HasSubstr("it is the Deployment's own")));
  EXPECT_THAT(arguments_json(pods, errors), ::testing::HasSubstr("\"errors\": [\n"));
}

TEST(Pods, WhatIsAboveThemSaysNothingOfThem) {
  EXPECT_THAT(arguments_of(R"(kind: CronJob
metadata: {name: a, labels: {sidecar.istio.io/inject: 'false', b: c}, annotations: {proxy.istio.io/config: '', b: c}}
spec:
  jobTemplate:
    metadata: {annotations: {inject.istio.io/templates: gateway, sidecar.istio.io/nativeSidecar: 'true'}}
    spec: {template: {}}
)")
                  .warnings,
              ElementsAre("CronJob a: annotation proxy.istio.io/config: without effect: it is the CronJob's own, not "
                          "that of its pod template",
                          "CronJob a: label sidecar.istio.io/inject: without effect: it is the CronJob's own, not that "
                          "of its pod template",
                          "CronJob a: annotation inject.istio.io/templates: without effect: it is that of "
                          "spec.jobTemplate, not that of its pod template",
                          "CronJob a: annotation sidecar.istio.io/nativeSidecar: without effect: it is that of "
                          "spec.jobTemplate, not that of its pod template"));
}

// Their pod templates are deeper, there may be several, or none.
TEST(Pods, OfOperatorsAreFound) {
  Documents documents = parse_documents(R"(
apiVersion: elasticsearch.k8s.elastic.co/v1
kind: Elasticsearch
metadata: {name: a}
spec: {nodeSets: [{name: a}, {podTemplate: {}}]}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: b}
spec: {headGroupSpec: {template: {}}, workerGroupSpecs: [{template: {}}, {template: {}}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledJob
metadata: {name: c}
spec: {jobTargetRef: {template: {}}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: d}
spec: {kafka: {template: {pod: {metadata: {}}}}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: e}
spec: {pytorchReplicaSpecs: {Master: {template: {}}, Worker: {template: {}}}}
---
apiVersion: kibana.k8s.elastic.co/v1
kind: Kibana
spec: {}
---
{apiVersion: tekton.dev/v1, kind: Task, spec: {steps: []}}
---
{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, spec: {driver: {}}}
---
{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, spec: {inheritedMetadata: {annotations: {}}}}
---
{apiVersion: x.y/v1, kind: Odd, spec: {a: [{b: {template: {spec: {containers: []}}}}]}}
---
{apiVersion: x.y/v1, kind: Plain, spec: {driver: x, template: {spec: {containers: 5}}}}
---
{apiVersion: v1, kind: CustomResourceDefinition, spec: {podTemplate: {}}}
)",
                                        "a.yaml");
  std::vector<std::string> skipped, found;
  for (const PodTemplate& pod : pod_templates(documents, skipped))
    found.push_back(fmt::format("{}{}", title(pod), pod.has_pod_spec ? "" : " without containers"));
  EXPECT_THAT(found, ElementsAre("Elasticsearch a without containers", "RayCluster b", "RayCluster b", "RayCluster b",
                                 "ScaledJob c", "Kafka d without containers", "PyTorchJob e", "PyTorchJob e"));
  EXPECT_THAT(
      skipped,
      ElementsAre("kind Kibana of kibana.k8s.elastic.co: no spec.podTemplate: its controller makes pods anyway",
                  "kind Task of tekton.dev: unknown, skipped: its controller makes a pod for each task",
                  "kind SparkApplication of sparkoperator.k8s.io: unknown, skipped: its controller makes pods of "
                  "spec.driver and spec.executor",
                  "kind Cluster of postgresql.cnpg.io: unknown, skipped: its controller makes pods with the "
                  "annotations of spec.inheritedMetadata",
                  "kind Odd of x.y: unknown, skipped: it seems to have a pod template, spec.a.*.b.template"));
}

// "Kind, group, spec": what is found of it, "-" for a pod whose containers its controller makes, or what is said.
TEST(Pods, OfMoreKindsAreFoundOrNamed) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"VirtualMachinePool, pool.kubevirt.io, {virtualMachineTemplate: {spec: {template: {}}}}", "-"},
      {"Revision, serving.knative.dev, {}", "+"},
      {"ContainerSource, sources.knative.dev, {template: {}}", "+"},
      {"AdvancedCronJob, apps.kruise.io, {template: {broadcastJobTemplate: {spec: {template: {}}}}}", "+"},
      {"UnitedDeployment, apps.kruise.io, {template: {cloneSetTemplate: {spec: {template: {}}}}}", "+"},
      {"BroadcastJob, apps.kruise.io, {template: {}}", "+"},
      {"SeldonDeployment, machinelearning.seldon.io, {predictors: [{componentSpecs: [{}, {}]}]}", "--"},
      {"Sensor, argoproj.io, {template: {}}", "-"},
      {"EventSource, argoproj.io, {}", "no spec.template: its controller makes pods anyway"},
      {"EventBus, argoproj.io, {nats: {}}", "spec.nats, spec.jetstream or spec.kafka"},
      {"RunnerDeployment, actions.summerwind.dev, {template: {}}", "-"},
      {"RunnerSet, actions.summerwind.dev, {template: {}}", "-"},
      {"Runner, actions.summerwind.dev, {}", "-"},
      {"KafkaMirrorMaker, kafka.strimzi.io, {template: {pod: {}}}", "-"},
      {"Kafka, kafka.strimzi.io, {cruiseControl: {template: {pod: {}}}, kafkaExporter: {template: {pod: {}}}}", "--"},
      {"FlinkDeployment, flink.apache.org, {podTemplate: {}, taskManager: {podTemplate: {}}}", "--"},
      {"FlinkCluster, flinkoperator.k8s.io, {jobManager: {}}", "pods of spec.jobManager and spec.taskManager"},
      {"MongoDBCommunity, mongodbcommunity.mongodb.com, {statefulSet: {spec: {template: {}}}}", "-"},
      {"RabbitmqCluster, rabbitmq.com, {}", "no spec.override.statefulSet.spec.template"},
      {"ClickHouseInstallation, clickhouse.altinity.com, {templates: {podTemplates: [{}]}}", "-"},
      {"InferenceService, serving.kserve.io, {predictor: {}}", "spec.predictor, spec.transformer and spec.explainer"},
      {"postgresql, acid.zalan.do, {}", "annotations of spec.podAnnotations"},
      {"OpenTelemetryCollector, opentelemetry.io, {}", "annotations of spec.podAnnotations"},
      {"Instrumentation, opentelemetry.io, {}", ""},
      {"BuildConfig, build.openshift.io, {}", "a pod for each build"},
      {"PostgresCluster, postgres-operator.crunchydata.com, {instances: []}", "its controller makes pods of it"},
      {"Tenant, minio.min.io, {}", "its controller makes pods of it"},
      {"Cluster, postgresql.cnpg.io, {}", "its controller makes pods of it"},
      {"ProxyConfig, networking.istio.io, {environmentVariables: {A: b}}", "variables count for istio-init"},
      {"ProxyConfig, networking.istio.io, {concurrency: 2}", ""},
      {"Odd, x.y, {podAnnotations: {}}", "annotations of spec.podAnnotations"},
      {"Odd, x.y, {a: {podAnnotations: {}}}", "it seems to have a pod template, spec.a.podAnnotations"},
  };
  for (const auto& [text, expected] : all) {
    const auto first = text.find(", ");
    const auto second = text.find(", ", first + 1);
    Documents documents =
        parse_documents(fmt::format("{{kind: {}, apiVersion: {}/v1, spec: {}}}", text.substr(0, first),
                                    text.substr(first + 2, second - first - 2), text.substr(second + 2)),
                        "a.yaml");
    std::vector<std::string> skipped;
    std::string found;
    for (const PodTemplate& pod : pod_templates(documents, skipped)) found += pod.has_pod_spec ? "+" : "-";
    for (const std::string& why : skipped) found += why;
    EXPECT_THAT(found, ::testing::HasSubstr(expected)) << text;
    EXPECT_EQ(found.empty(), expected.empty()) << text << found;
  }
}

TEST(Pods, OfAProjectHaveItsUids) {
  ProxyUids uids;
  const Documents documents = parse_documents(R"(
kind: Project
metadata: {name: a, annotations: {openshift.io/sa.scc.uid-range: 1000/10}}
---
kind: Namespace
metadata: {name: b, annotations: {openshift.io/sa.scc.uid-range: 0/1}}
)",
                                              "a.yaml");
  read_namespaces(documents, uids);
  ASSERT_EQ(uids.size(), 1U) << "Istio's template takes 0 for none";
  EXPECT_EQ(uids.at("a").uid, "1009");
}

// Those beside it are there, and each is said once.
TEST(Pods, BesideADocumentThatCannotBeReadAreFound) {
  const TemporaryFile injected_file("containers: [{name: a, image: a, securityContext: {runAsUser: 1}}]");
  const std::pair<std::string_view, std::string_view> all[] = {
      {"kind: Pod\nmetadata: {name: é\xff}\n", ", line 6, column 19: not YAML: invalid leading UTF-8 octet"},
      {"kind: Pod\n\x02\n", ", line 6, column 1: not YAML: control characters are not allowed"},
      {"kind: Pod\nkind: Pod\n", ", document 2: line 6: 'kind': duplicate key: skipped"},
      {"kind: Namespace\nkind: Namespace\n", ", document 2: line 6: 'kind': duplicate key: skipped"},
      {"kind: Template\nparameters: []\nobjects: []\nkind: Template\n",
       ", document 2: line 8: 'kind': duplicate key: skipped"},
  };
  for (const auto& [text, expected] : all) {
    const TemporaryFile file(
        fmt::format("kind: Pod\nmetadata:\n  name: one\n---\n{}---\nkind: Pod\nmetadata: {{name: three}}\n", text));
    ManifestOptions options;
    options.files = {file.path()};
    options.injected = injected_file.path();
    std::vector<std::string> warnings, errors, notes;
    const auto pods = arguments(options, warnings, errors);
    ASSERT_EQ(pods.size(), 2U) << text;
    EXPECT_EQ(title(pods[0].pod) + title(pods[1].pod), "Pod onePod three");
    std::vector<std::string> said = errors;
    said.insert(said.end(), warnings.begin(), warnings.end());
    ASSERT_THAT(said, ElementsAre(file.path() + std::string(expected))) << text;
    if (errors.empty()) continue;
    EXPECT_THAT([&] { (void)injected(options, notes, warnings); },
                ::testing::ThrowsMessage<Error>(file.path() + std::string(expected)));
  }
}

// A JobSet has Jobs, and those have pods.
TEST(Pods, OfAJobSetAreThoseOfItsJobs) {
  const Arguments said = arguments_of(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: a}
spec:
  replicatedJobs:
  - template:
      spec: {template: {metadata: {annotations: {traffic.sidecar.istio.io/includeInboundPorts: '81'}}, spec: {}}}
)");
  EXPECT_THAT(said.text, ::testing::HasSubstr("-b 81 -d"));
}

// Values that are put in a thousand times take memory, whatever the size of the file.
TEST(Pods, OfATemplateOfOpenShiftAreBounded) {
  std::string names;
  for (int i = 0; i < 100; ++i) names += "${A}";
  Documents documents = parse_documents(
      fmt::format("{{kind: Template, parameters: [{{name: A, value: '{}'}}], objects: [{{kind: Pod, x: '{}'}}]}}",
                  std::string(1U << 20, 'x'), names),
      "a.yaml");
  EXPECT_THAT([&] { set_parameters(documents); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("parameter A: its values take more than 32 MiB")));
}

TEST(Pods, OfATemplateOfOpenShiftHaveItsParameters) {
  const Arguments said = arguments_of(R"(apiVersion: template.openshift.io/v1
kind: Template
parameters: [{name: PORT, value: '80'}, {name: NONE}, {name: ALL, value: '90'}, {name: SECRET, generate: expression}]
objects:
- kind: Pod
  metadata: {annotations: {traffic.sidecar.istio.io/includeInboundPorts: '${PORT},${ALL}${NONE}'}}
  spec: {hostNetwork: '${{NONE}}'}
- kind: Pod
  metadata: {annotations: {traffic.sidecar.istio.io/includeOutboundPorts: '${SECRET}${PORT}$'}}
)");
  EXPECT_THAT(said.text,
              ::testing::AllOf(::testing::HasSubstr("-b 80,90 -d"), ::testing::HasSubstr("-q '${SECRET}80$'")));
}

// The files one after the other, as documents of one stream; nothing is understood before all of them are read.
TEST(Pods, OfSeveralFilesAreOneStream) {
  const TemporaryFile injected_file("containers: [{name: a, image: a, securityContext: {runAsUser: 1}}]");
  const TemporaryFile first("kind: Service");
  const TemporaryFile second("kind: Pod\nspec: {hostNetwork: true}\n");
  const TemporaryFile empty_values("{}");
  ManifestOptions options;
  options.files = {first.path(), second.path(), first.path()};
  options.injected = injected_file.path();
  options.values = {empty_values.path()};
  std::vector<std::string> notes, warnings;
  int read = 0;
  EXPECT_EQ(injected(options, notes, warnings, [&] { ++read; }),
            "kind: Service\n---\nkind: Pod\nspec: {hostNetwork: true}\n---\nkind: Service");
  EXPECT_EQ(read, 1);
  EXPECT_THAT(notes, ElementsAre("Pod: not injected: spec.hostNetwork is true"));
  EXPECT_EQ(warnings.size(), 2U) << "of the files without a pod";
  EXPECT_EQ(sidetrack::testing::all_arguments(options, warnings, [&] { ++read; }).size(), 1U);
  EXPECT_EQ(read, 2);
  const auto is_read_first = [&](std::string ManifestOptions::*file) {
    ManifestOptions missing = options;
    missing.files = {first.path()};
    missing.*file = "/no/such/file";
    read = 0;
    EXPECT_THAT(error_text([&] { static_cast<void>(injected(missing, notes, warnings, [&] { ++read; })); }),
                ::testing::StartsWith("/no/such/file: cannot be read"));
    return read == 0;
  };
  EXPECT_TRUE(is_read_first(&ManifestOptions::injected));
  // What --set says counts more than a file.
  const TemporaryFile values("global: {proxy: {statusPort: 5, includeIPRanges: 10.0.0.0/8}}");
  options.values = {values.path()};
  set_helm_values(options.set, "global.proxy.statusPort=6");
  const HelmValues all = helm_values(options, warnings);
  EXPECT_EQ(all.at("global.proxy.statusPort").text, "6");
  EXPECT_EQ(all.at("global.proxy.includeIPRanges").text, "10.0.0.0/8");
}

// ---- The one pod of --pod

ManifestOptions of_pod(const TemporaryFile& file) {
  ManifestOptions options;
  options.pod = file.path();
  return options;
}

std::string error_of_pod(const std::string& manifest) {
  const TemporaryFile file(manifest);
  std::string said = error_text([&] { static_cast<void>(options_of_pod(of_pod(file))); });
  if (const auto at = said.find(file.path()); at != std::string::npos) said.replace(at, file.path().size(), "FILE");
  return said;
}

TEST(Namespaces, GiveTheLastUidOfTheirRange) {
  const auto uid = [](const std::string& range) {
    ProxyUids uids;
    read_namespaces(
        parse_documents("kind: Namespace\nmetadata: {name: shop, annotations: {openshift.io/sa.scc.uid-range: \"" +
                            range + "\"}}\n",
                        "a.yaml"),
        uids);
    if (uids.at("shop").problem) throw *uids.at("shop").problem;
    return uids.at("shop").uid;
  };
  EXPECT_EQ(uid("1000670000/10000"), "1000679999");
  EXPECT_EQ(uid("5/1"), "5");
  EXPECT_EQ(uid("1000-1999"), "1999");
  for (const char* wrong : {"", "5", "/", "5/0", "5-4", "5/x", "-1/5", "4294967290/6", "1/2/3"}) {
    EXPECT_EQ(error_text([&] { (void)uid(wrong); }),
              std::string("a.yaml, line 2: Namespace shop: openshift.io/sa.scc.uid-range: a string '") + wrong +
                  "': expected START/SIZE or START-END, as OpenShift writes it");
  }
}

// Of a range that is wrong no uid is known: another one would make a loop.
TEST(Namespaces, WithAWrongRangeLeaveTheirPodsOut) {
  const TemporaryFile file(R"(
kind: Namespace
metadata: {name: shop, annotations: {openshift.io/sa.scc.uid-range: 1000/}}
---
kind: Namespace
metadata: {name: mail, annotations: {openshift.io/sa.scc.uid-range: 2000/10}}
---
kind: Pod
metadata: {name: web, namespace: shop}
---
kind: Pod
metadata: {name: host, namespace: shop}
spec: {hostNetwork: true}
---
kind: Pod
metadata: {name: smtp, namespace: mail}
)");
  for (const Injector injector : {Injector::istio, Injector::sidetrack}) {
    ManifestOptions options;
    options.files = {file.path()};
    options.injector = injector;
    std::vector<std::string> warnings, errors;
    const auto pods = arguments(options, warnings, errors);
    ASSERT_EQ(pods.size(), 2U);
    EXPECT_EQ(pods[0].init.not_injected, "spec.hostNetwork is true");
    EXPECT_THAT(words(pods[1].init), ::testing::Contains("2009"));
    EXPECT_THAT(errors, ElementsAre(::testing::AllOf(
                            ::testing::HasSubstr("document 3: Pod shop/web: "),
                            ::testing::HasSubstr("line 3: Namespace shop: openshift.io/sa.scc.uid-range: a string "
                                                 "'1000/': expected START/SIZE or START-END"))));
  }
}

TEST(PodOption, IsTheOnePodThatHasRules) {
  const TemporaryFile file(R"(
kind: Pod
metadata: {name: host}
spec: {hostNetwork: true}
---
kind: Pod
metadata: {name: web, annotations: {proxy.istio.io/config: '{proxyMetadata: {A: b}}'}}
spec: {containers: [{name: istio-proxy, securityContext: {runAsUser: 7}}]}
---
kind: Pod
metadata: {name: other, annotations: {sidecar.istio.io/inject: 'false'}}
)");
  const OptionsOfPod options = options_of_pod(of_pod(file));
  EXPECT_THAT(options.arguments, ElementsAre("-p", "15001", "-z", "15006", "-u", "7", "-m", "REDIRECT", "-i", "*", "-x",
                                             "", "-b", "*", "-d", "15090,15021,15020"));
  EXPECT_EQ(options.environment, (Variables{{"A", "b"}}));
  EXPECT_EQ(facts_of_pod(of_pod(file)).title, "Pod web");
}

TEST(PodOption, RefusesNoneAndSeveral) {
  EXPECT_EQ(error_of_pod("kind: Service\n"),
            "FILE: no pod: expected a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob");
  EXPECT_EQ(error_of_pod("kind: Pod\nspec: {hostNetwork: true}\n"),
            "FILE: Pod: not injected: spec.hostNetwork is true; it has no rules to show");
  EXPECT_EQ(
      error_of_pod("kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b, namespace: shop}\n"),
      "FILE: 2 pods that are injected: Pod a, Pod shop/b: expected one; sidetrack args shows the options of each; "
      "kubectl get KIND NAME -o yaml prints one");
}

// ---- What lint knows of it

std::string facts_text(const std::string& manifest) {
  Documents documents = parse_documents(manifest, "a.yaml");
  std::vector<std::string> skipped;
  const lint::PodFacts facts = facts_of(pod_templates(documents, skipped).front(), "istio-proxy");
  const auto id = [](const std::optional<std::uint32_t>& value) { return value ? std::to_string(*value) : "none"; };
  std::string text;
  for (const auto& container : facts.containers)
    text += fmt::format("{} uid {} gid {}\n", container.name, id(container.uid), id(container.gid));
  for (const lint::Probe& probe : facts.probes)
    text += fmt::format("{} {} {}\n", probe.container, probe.kind, probe.port);
  return text;
}

TEST(Facts, AreTheUsersAndTheProbesOfTheContainersThatRun) {
  const std::string spec = R"(
spec:
  securityContext: {runAsUser: 5, runAsGroup: 0x10}
  initContainers:
  - {name: ends, securityContext: {runAsUser: 1}}
  - {name: native, restartPolicy: Always, securityContext: {runAsUser: 2}}
  containers:
  - name: web
    securityContext: {runAsUser: 1_000, runAsGroup: 7}
    ports: [{name: other, containerPort: 1}, {name: http, containerPort: 8080}]
    startupProbe: {httpGet: {port: http}}
    readinessProbe: {tcpSocket: {port: 9}}
    livenessProbe: {grpc: {port: 65535}}
  - {name: far, readinessProbe: {httpGet: {port: 80, host: example.org}}, livenessProbe: {exec: {command: [a]}}}
  - {name: istio-proxy, readinessProbe: {httpGet: {port: 15021}}}
  - {name: istio-init}
)";
  const std::string containers = "native uid 2 gid 16\nweb uid 1000 gid 7\nfar uid 5 gid 16\n";
  const std::string probes = "web startupProbe 8080\nweb readinessProbe 9\nweb livenessProbe 65535\n";
  EXPECT_EQ(facts_text("kind: Pod" + spec), containers + probes);
  const auto rewritten = [&](const char* value) {
    return facts_text(
        fmt::format("kind: Pod\nmetadata: {{annotations: {{sidecar.istio.io/rewriteAppHTTPProbers: '{}'}}}}", value) +
        spec);
  };
  for (const char* yes : {"1", "t", "T", "TRUE", "true", "True"}) EXPECT_EQ(rewritten(yes), containers) << yes;
  for (const char* no : {"0", "false", "yes", ""}) EXPECT_EQ(rewritten(no), containers + probes) << no;
  EXPECT_EQ(facts_text("kind: Pod\n"), "");
}

TEST(Facts, RefuseWhatTheApiServerRefuses) {
  const auto said = [](const std::string& container) {
    return error_text(
        [&] { static_cast<void>(facts_text("kind: Pod\nspec: {containers: [{name: web, " + container + "}]}\n")); });
  };
  EXPECT_EQ(said("securityContext: {runAsUser: root}"),
            "container web: runAsUser: 'root': expected a number from 0 to 4294967295");
  EXPECT_EQ(said("securityContext: {runAsGroup: -1}"),
            "container web: runAsGroup: '-1': expected a number from 0 to 4294967295");
  EXPECT_EQ(said("securityContext: {runAsGroup: []}"),
            "container web: runAsGroup: a list: expected a number from 0 to 4294967295");
  EXPECT_EQ(said("securityContext: {runAsGroup: }"), "no error");
  EXPECT_EQ(said("livenessProbe: {tcpSocket: {port: 65536}}"),
            "container web: livenessProbe.tcpSocket.port: '65536': expected a number from 0 to 65535");
  EXPECT_EQ(
      said("ports: [{name: a, containerPort: 1}], livenessProbe: {httpGet: {port: b}}"),
      "container web: livenessProbe.httpGet.port: 'b': expected a port, or the name of one of the container's ports");
  EXPECT_EQ(
      said("livenessProbe: {httpGet: {port: b}}"),
      "container web: livenessProbe.httpGet.port: 'b': expected a port, or the name of one of the container's ports");
}

}  // namespace
}  // namespace sidetrack::manifest
