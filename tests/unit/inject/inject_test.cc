// SPDX-License-Identifier: GPL-2.0-or-later
// A manifest and a template in, the manifest out. That nothing else changes is tested by tests/manifest/run, too, with
// another parser.
#include "inject/manifest/inject.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "inject/manifest/arguments.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "support/amount.h"
#include "unit/all_arguments.h"
#include "unit/temporary_file.h"

namespace sidetrack::manifest {
namespace {

using sidetrack::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* proxy = R"(spec:
  containers:
  - name: istio-proxy
    image: envoy:1
    env: [{name: LEVEL, value: info}]
    securityContext: {runAsUser: 2000}
  volumes:
  - {name: sidecar, configMap: {name: sidecar}}
)";

struct Result {
  std::string text;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

Result inject_into(const std::string& manifest, const std::string& injected = proxy) {
  const TemporaryFile file(manifest);
  const TemporaryFile template_file(injected);
  ManifestOptions options;
  options.files = {file.path()};
  options.injected = template_file.path();
  Result result;
  result.text = manifest::injected(options, result.notes, result.warnings);
  return result;
}

Node pod_of(const std::string& manifest, const std::string& injected = proxy) {
  return parse_documents(inject_into(manifest, injected).text, "result").list[0].root;
}

std::vector<std::string> names(const Node& pod, std::string_view list) {
  std::vector<std::string> made;
  const Node* found = pod.find("spec")->find(list);
  if (found == nullptr) return made;
  for (const Node& item : found->items) made.emplace_back(name_of(item));
  return made;
}

const Node& container(const Node& pod, std::string_view list, std::string_view name) {
  const auto& items = pod.find("spec")->find(list)->items;
  return *std::ranges::find(items, name, name_of);
}

std::string annotation(const Node& pod, std::string_view name) {
  const Node* found = pod.find("metadata")->find("annotations")->find(name);
  return found == nullptr ? "" : found->text;
}

std::string error_of(const std::string& manifest, const std::string& injected = proxy) {
  try {
    (void)inject_into(manifest, injected);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  return "no error";
}

constexpr const char* plain_pod = "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: web}]}\n";

TEST(Inject, PutsTheProxyLastAndIstioInitFirst) {
  const Node pod = pod_of(
      "kind: Pod\nspec:\n  initContainers: [{name: migrate}, {name: istio-init, image: old}]\n  containers: [{name: "
      "web}]\n  volumes: [{name: data}]\n");
  EXPECT_THAT(names(pod, "initContainers"), ElementsAre("istio-init", "migrate"));
  EXPECT_THAT(names(pod, "containers"), ElementsAre("web", "istio-proxy"));
  EXPECT_THAT(names(pod, "volumes"), ElementsAre("data", "sidecar"));
  const Node& init = container(pod, "initContainers", "istio-init");
  EXPECT_THAT(init.find("image")->text, StartsWith("localhost/sidetrack:")) << "not of the one that was there";
  std::vector<std::string> args;
  for (const Node& word : init.find("args")->items) args.push_back(word.text);
  EXPECT_THAT(args, ElementsAre("istio-iptables", "-p", "15001", "-z", "15006", "-u", "2000", "-m", "REDIRECT", "-i",
                                "*", "-x", "", "-b", "*", "-d", "15090,15021,15020"))
      << "the template's user is the proxy's";
}

std::string pod_with(const std::string& annotations) {
  return "kind: Pod\nmetadata: {name: web, annotations: {" + annotations +
         "}}\nspec: {containers: [{name: web, image: web}]}\n";
}

// Else a Job never ends.
TEST(Inject, MakesTheProxyANativeSidecarWhereThePodAsksForIt) {
  const std::string asks = pod_with("sidecar.istio.io/nativeSidecar: 'true'");
  const std::string once = inject_into(asks).text;
  const Node pod = pod_of(asks);
  EXPECT_THAT(names(pod, "initContainers"), ElementsAre("istio-init", "istio-proxy"));
  EXPECT_THAT(names(pod, "containers"), ElementsAre("web"));
  EXPECT_EQ(container(pod, "initContainers", "istio-proxy").find("restartPolicy")->text, "Always");
  EXPECT_EQ(inject_into(once).text, once);
  const std::string native = "initContainers: [{name: istio-proxy, image: x, restartPolicy: Always}]\n";
  EXPECT_THAT(names(pod_of(asks, native), "initContainers"), ElementsAre("istio-init", "istio-proxy"));
  const Node other = pod_of(pod_with("sidecar.istio.io/nativeSidecar: 'false'"), native);
  EXPECT_THAT(names(other, "initContainers"), ElementsAre("istio-init"));
  EXPECT_EQ(container(other, "containers", "istio-proxy").find("restartPolicy"), nullptr);
}

// As a pod that overrides something of the proxy is written for native sidecars.
TEST(Inject, LeavesTheProxyThatThePodHasAsANativeSidecarAmongThem) {
  const std::string own =
      "kind: Pod\nmetadata: {name: a}\nspec:\n  initContainers: [{name: istio-proxy, image: auto, restartPolicy: "
      "Always}]\n  containers: [{name: web, image: web}]\n";
  const Node pod = pod_of(own);
  EXPECT_THAT(names(pod, "initContainers"), ElementsAre("istio-init", "istio-proxy"));
  EXPECT_THAT(names(pod, "containers"), ElementsAre("web"));
  EXPECT_EQ(container(pod, "initContainers", "istio-proxy").find("image")->text, "envoy:1");
  const std::string once = inject_into(own).text;
  EXPECT_EQ(inject_into(once).text, once);
}

TEST(Inject, LeavesAProxyWithoutEnvoyAlone) {
  const Result result = inject_into(pod_with("proxy.istio.io/config: '{proxyMetadata: {DISABLE_ENVOY: \"true\"}}'"));
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("not injected: proxyMetadata: DISABLE_ENVOY is true")));
}

TEST(Inject, GivesTheProxyTheResourcesAndVolumesOfThePodsAnnotations) {
  const std::string text = pod_with(
      "sidecar.istio.io/proxyCPU: 100m, sidecar.istio.io/proxyMemoryLimit: 1Gi, "
      "sidecar.istio.io/userVolume: '{\"mine\": {\"emptyDir\": {}}}', "
      "sidecar.istio.io/userVolumeMount: '{\"mine\": {\"mountPath\": \"/mine\", \"name\": \"x\"}}'");
  const Node pod = pod_of(text);
  const Node& made = container(pod, "containers", "istio-proxy");
  const Node& resources = *made.find("resources");
  EXPECT_EQ(resources.find("requests")->find("cpu")->text, "100m");
  EXPECT_EQ(resources.find("requests")->find("memory"), nullptr) << "as Istio: what the annotations say alone";
  EXPECT_EQ(resources.find("limits")->find("memory")->text, "1Gi");
  const Node& mount = made.find("volumeMounts")->items.back();
  EXPECT_EQ(mount.find("name")->text, "mine");
  EXPECT_EQ(mount.find("mountPath")->text, "/mine");
  EXPECT_THAT(names(pod, "volumes"), ElementsAre("sidecar", "mine"));
  const Node listed =
      pod_of(pod_with("sidecar.istio.io/userVolumeMount: '[{\"name\": \"certs\", \"mountPath\": \"/c\"}]'"));
  EXPECT_EQ(container(listed, "containers", "istio-proxy").find("volumeMounts")->items.back().find("name")->text,
            "certs");
  const std::string once = inject_into(text).text;
  EXPECT_EQ(inject_into(once).text, once);
  EXPECT_THAT(error_of(pod_with("sidecar.istio.io/proxyCPU: much")),
              HasSubstr("sidecar.istio.io/proxyCPU: 'much': expected a quantity"));
  for (const std::string wrong : {"x", "[]", "[{}]", "{\"a\": 5}"})
    EXPECT_THAT(error_of(pod_with("sidecar.istio.io/userVolume: '" + wrong + "'")),
                HasSubstr("expected a JSON object of objects"))
        << wrong;
}

TEST(Inject, WritesTheStatusAsIstioDoes) {
  EXPECT_EQ(annotation(pod_of(plain_pod), "sidecar.istio.io/status"),
            R"({"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["sidecar"],)"
            R"("imagePullSecrets":null,"revision":"default"})");
  EXPECT_EQ(annotation(pod_of(plain_pod, "containers: [{name: a}]\nimagePullSecrets: [{name: s}]\n"),
                       "sidecar.istio.io/status"),
            R"({"initContainers":["istio-init"],"containers":["a"],"volumes":null,"imagePullSecrets":["s"],)"
            R"("revision":"default"})");
}

TEST(Inject, NativeSidecarsComeBeforeThePodsOwnInitContainers) {
  const std::string native =
      "spec:\n  initContainers:\n  - {name: render}\n  - {name: istio-proxy, restartPolicy: Always, securityContext: "
      "{runAsUser: 2000}}\n";
  const Node pod = pod_of("kind: Pod\nspec: {initContainers: [{name: migrate}], containers: [{name: web}]}\n", native);
  EXPECT_THAT(names(pod, "initContainers"), ElementsAre("istio-init", "render", "istio-proxy", "migrate"));
  EXPECT_THAT(names(pod, "containers"), ElementsAre("web"));
  EXPECT_EQ(container(pod, "initContainers", "istio-proxy").find("restartPolicy")->text, "Always");
  EXPECT_EQ(container(pod, "initContainers", "istio-init").find("args")->items[6].text, "2000");
}

TEST(Inject, ArgumentsAreAWordALineHoweverTheTemplateWritesItsOwn) {
  const Node pod = pod_of("kind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: web\n",
                          std::string(proxy) + "  initContainers:\n  - name: istio-init\n    args: [--dual-stack]\n");
  EXPECT_FALSE(container(pod, "initContainers", "istio-init").find("args")->flow);
}

TEST(Inject, WarnsOfAnnotationsThatNobodyReads) {
  const Result result = inject_into(
      "kind: Pod\nmetadata: {name: web, annotations: {traffic.sidecar.istio.io/excludeInboundPort: '80'}}\n"
      "spec: {containers: [{name: web, image: web}]}\n");
  EXPECT_THAT(result.warnings,
              ElementsAre("Pod web: annotation traffic.sidecar.istio.io/excludeInboundPort: unknown; did "
                          "you mean traffic.sidecar.istio.io/excludeInboundPorts?"));
}

TEST(Inject, TheTemplatesOwnIstioInitCountsMore) {
  const Node pod = pod_of(plain_pod, std::string(proxy) +
                                         "  initContainers:\n  - {name: istio-init, image: mine, args: [--dual-stack], "
                                         "securityContext: {readOnlyRootFilesystem: false}}\n");
  const Node& init = container(pod, "initContainers", "istio-init");
  EXPECT_EQ(init.find("image")->text, "mine");
  EXPECT_EQ(init.find("args")->items.front().text, "istio-iptables");
  EXPECT_EQ(init.find("args")->items.back().text, "--dual-stack");
  EXPECT_EQ(init.find("securityContext")->find("readOnlyRootFilesystem")->text, "false");
  EXPECT_EQ(init.find("securityContext")->find("runAsUser")->text, "0");
}

TEST(Inject, TheVariablesOfThePodAreThoseOfIstioInit) {
  const Node pod = pod_of(
      "kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: '{proxyMetadata: {ISTIO_META_DNS_CAPTURE: "
      "\"true\"}}'}}\nspec: {containers: [{name: web}]}\n");
  const Node& env = *container(pod, "initContainers", "istio-init").find("env");
  ASSERT_EQ(env.items.size(), 1U);
  EXPECT_EQ(json_text(env.items[0]), R"({"name":"ISTIO_META_DNS_CAPTURE","value":"true"})");
}

constexpr const char* own_proxy =
    "kind: Pod\nspec:\n  containers:\n  - {name: istio-proxy, image: mine, env: [{name: MORE, value: x}, {name: LEVEL, "
    "value: debug}]}\n  - {name: web}\n";

TEST(Inject, AContainerOfThePodsOwnIsMergedIntoTheTemplates) {
  const Node pod = pod_of(own_proxy);
  EXPECT_THAT(names(pod, "containers"), ElementsAre("web", "istio-proxy"));
  const Node& merged = container(pod, "containers", "istio-proxy");
  EXPECT_EQ(
      json_text(merged),
      R"({"name":"istio-proxy","image":"mine","env":[{"name":"MORE","value":"x"},{"name":"LEVEL","value":"debug"}],)"
      R"("securityContext":{"runAsUser":2000}})");
  EXPECT_EQ(annotation(pod, "proxy.istio.io/overrides"),
            R"({"containers":[{"name":"istio-proxy","image":"mine","env":[{"name":"MORE","value":"x"},)"
            R"({"name":"LEVEL","value":"debug"}]}]})");
}

TEST(Inject, AgainChangesNoByte) {
  for (const char* manifest : {plain_pod, own_proxy}) {
    const std::string once = inject_into(manifest).text;
    EXPECT_NE(once, manifest);
    EXPECT_EQ(inject_into(once).text, once);
  }
  const std::string own_volume =
      "kind: Pod\nspec: {volumes: [{name: sidecar, emptyDir: {}}], containers: [{name: web}]}\n";
  const std::string once = inject_into(own_volume).text;
  EXPECT_EQ(inject_into(once).text, once);
  EXPECT_THAT(once, Not(HasSubstr("configMap"))) << "the pod's own counts";
}

TEST(Inject, AnotherTemplateTakesThePlaceOfTheFirst) {
  const std::string other =
      "containers:\n- {name: haproxy, image: haproxy, securityContext: {runAsUser: 99}}\nvolumes: [{name: other}]\n";
  const std::string twice = inject_into(inject_into(plain_pod).text, other).text;
  EXPECT_EQ(twice, inject_into(plain_pod, other).text);
  // What the pod had of its own comes back.
  const Node pod = parse_documents(inject_into(inject_into(own_proxy).text, other).text, "a").list[0].root;
  EXPECT_THAT(names(pod, "containers"), ElementsAre("web", "istio-proxy", "haproxy"));
  EXPECT_EQ(container(pod, "containers", "istio-proxy").find("securityContext"), nullptr);
  EXPECT_EQ(annotation(pod, "proxy.istio.io/overrides"), "");
}

// Numbers and booleans of YAML come back from the API server as JSON has them.
TEST(Inject, AgainIsTheSameHoweverNumbersAreWritten) {
  const std::string injected =
      "containers: [{name: a, stdin: yes, securityContext: {runAsUser: 0x539}}]\n"
      "volumes: [{name: v, configMap: {name: v, defaultMode: 0644}}]\n";
  const std::string once = inject_into(plain_pod, injected).text;
  EXPECT_THAT(once, HasSubstr("\"-u\", \"1337\""));
  const std::string as_json = json_text(parse_documents(once, "a").list[0].root);
  EXPECT_THAT(as_json, HasSubstr("\"defaultMode\":420"));
  EXPECT_EQ(inject_into(as_json, injected).text, as_json);
}

TEST(Inject, OverridesCountBeforeThePodsOwnContainerWithoutAStatus) {
  const std::string manifest =
      "kind: Pod\nmetadata:\n  annotations:\n    proxy.istio.io/overrides: "
      "'{\"containers\":[{\"name\":\"istio-proxy\",\"image\":\"mine\"}]}'\nspec: {containers: [{name: web}";
  for (const std::string rest : {"]}\n", ", {name: istio-proxy, image: other}]}\n"}) {
    const std::string once = inject_into(manifest + rest).text;
    const Node pod = parse_documents(once, "a").list[0].root;
    EXPECT_THAT(names(pod, "containers"), ElementsAre("web", "istio-proxy"));
    EXPECT_EQ(container(pod, "containers", "istio-proxy").find("image")->text, "mine");
    EXPECT_THAT(annotation(pod, "proxy.istio.io/overrides"), HasSubstr("mine"));
    EXPECT_EQ(inject_into(once).text, once);
  }
}

// As Istio's injector has it (reapplyOverwrittenContainers): what the annotation says of a container is for the
// template's, and the pod's own of another name stay.
TEST(Inject, OverridesAreOfTheTemplatesContainersAlone) {
  const auto pod = [](const std::string& overrides, const std::string& spec) {
    return "kind: Pod\nmetadata:\n  annotations:\n    proxy.istio.io/overrides: '" + overrides + "'\nspec: {" + spec +
           "}\n";
  };
  const auto injected = [](const std::string& manifest) {
    const std::string once = inject_into(manifest).text;
    EXPECT_EQ(inject_into(once).text, once);
    return parse_documents(once, "once").list[0].root;
  };
  const std::string web = R"({"containers":[{"name":"web","image":"evil"}]})";
  Node made = injected(pod(web, "containers: [{name: web, image: good}]"));
  EXPECT_THAT(names(made, "containers"), ElementsAre("web", "istio-proxy"));
  EXPECT_EQ(json_text(container(made, "containers", "web")), R"({"name":"web","image":"good"})");
  EXPECT_EQ(annotation(made, "proxy.istio.io/overrides"), web) << "which is not ours to remove";
  // In the other list, of istio-init, and of one that the pod has not.
  made = injected(pod(R"({"initContainers":[{"name":"web","image":"evil"},{"name":"istio-init","image":"evil"},)"
                      R"({"name":"more"}],"containers":[{"name":"other"}]})",
                      "containers: [{name: web, image: good}]"));
  EXPECT_THAT(names(made, "containers"), ElementsAre("web", "istio-proxy"));
  EXPECT_THAT(names(made, "initContainers"), ElementsAre("istio-init"));
  EXPECT_THAT(json_text(*made.find("spec")), Not(HasSubstr("evil")));
  // Of what is used, that alone is kept.
  made = injected(pod(R"({"containers":[{"name":"web","image":"evil"},{"name":"istio-proxy","image":"mine"}]})",
                      "containers: [{name: web, image: good}]"));
  EXPECT_EQ(container(made, "containers", "istio-proxy").find("image")->text, "mine");
  EXPECT_EQ(container(made, "containers", "web").find("image")->text, "good");
  EXPECT_EQ(annotation(made, "proxy.istio.io/overrides"), R"({"containers":[{"name":"istio-proxy","image":"mine"}]})");
  // The pod's own below the template's, and over both what the annotation says.
  made = injected(
      pod(R"({"containers":[{"name":"istio-proxy","tty":true,"securityContext":{"runAsGroup":1}}]})",
          "containers: [{name: istio-proxy, image: own, stdin: true, args: [a], env: [{name: LEVEL, value: own}, "
          "{name: OWN, value: x}], securityContext: {runAsUser: 3000, privileged: true}}]"));
  EXPECT_EQ(json_text(container(made, "containers", "istio-proxy")),
            R"({"name":"istio-proxy","tty":true,"securityContext":{"runAsGroup":1,"privileged":true,"runAsUser":2000},)"
            R"("stdin":true,"args":["a"],"env":[{"name":"OWN","value":"x"},{"name":"LEVEL","value":"info"}],)"
            R"("image":"envoy:1"})");
  EXPECT_EQ(annotation(made, "proxy.istio.io/overrides"),
            R"({"containers":[{"name":"istio-proxy","tty":true,"securityContext":{"runAsGroup":1,"privileged":true},)"
            R"("stdin":true,"args":["a"],"env":[{"name":"OWN","value":"x"}]}]})");
  EXPECT_EQ(container(made, "initContainers", "istio-init").find("args")->items[6].text, "2000");
  made = injected(pod(R"({"containers":[{"name":"istio-proxy","securityContext":{"runAsUser":4000}}]})",
                      "containers: [{name: istio-proxy, securityContext: {runAsUser: 3000}}]"));
  EXPECT_EQ(container(made, "initContainers", "istio-init").find("args")->items[6].text, "4000");
  // The image auto is the template's there, too.
  made = injected(pod(R"({"containers":[{"name":"istio-proxy","image":"auto"}]})",
                      "containers: [{name: istio-proxy, image: auto}]"));
  EXPECT_EQ(container(made, "containers", "istio-proxy").find("image")->text, "envoy:1");
}

// What an earlier injection merged is the pod's own again, unless the pod has one of that name.
TEST(Inject, OverridesOfAnInjectedPodAreThePodsOwn) {
  const auto injected = [](const std::string& names_of_status, const std::string& spec) {
    const std::string once =
        inject_into("kind: Pod\nmetadata:\n  annotations:\n    sidecar.istio.io/status: '" + names_of_status +
                    "'\n    proxy.istio.io/overrides: '{\"containers\":[{\"name\":\"old\",\"image\":"
                    "\"own\"},{\"name\":\"web\",\"image\":\"evil\"}]}'\nspec: {" +
                    spec + "}\n")
            .text;
    EXPECT_EQ(inject_into(once).text, once);
    return parse_documents(once, "once").list[0].root;
  };
  Node made =
      injected(R"({"containers":["old"]})", "containers: [{name: old, image: merged}, {name: web, image: good}]");
  EXPECT_THAT(names(made, "containers"), ElementsAre("web", "old", "istio-proxy"));
  EXPECT_EQ(container(made, "containers", "old").find("image")->text, "own");
  EXPECT_EQ(container(made, "containers", "web").find("image")->text, "good");
  EXPECT_EQ(annotation(made, "proxy.istio.io/overrides"), "");
  made = injected(R"({"initContainers":["old"]})", "containers: [{name: old, image: new}]");
  EXPECT_THAT(names(made, "containers"), ElementsAre("old", "istio-proxy"));
  EXPECT_EQ(container(made, "containers", "old").find("image")->text, "new");
}

// Whatever status and overrides say, and wherever containers of these names stand, of each name one.
TEST(Inject, AgainChangesNothingWhateverTheAnnotationsSay) {
  const unsigned seed = amount("SIDETRACK_SEED", 7);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  std::vector<std::string> all{"istio-proxy", "istio-init", "first", "web", "other", "more"};
  const auto container = [&](const std::string& name) {
    return fmt::format(R"({{"name":"{}","image":"{}","a{}":{{"b{}":{}}},"env":[{{"name":"E{}","value":"{}"}}]}})", name,
                       below(4) == 0 ? "auto" : "own", below(3), below(3), below(9), below(3), below(9));
  };
  const auto quoted = [](const std::string& name) { return "\"" + name + "\""; };
  // Some of the names in each list.
  const auto lists = [&](const std::function<std::string(const std::string&)>& each) {
    std::ranges::shuffle(all, random);
    const std::size_t first = below(all.size());
    const std::size_t second = first + below(all.size() - first + 1);
    std::vector<std::string> texts;
    std::ranges::transform(all, std::back_inserter(texts), each);
    const auto begin = texts.begin();
    const auto at = [&](std::size_t place) { return begin + static_cast<std::ptrdiff_t>(place); };
    return fmt::format(R"({{"initContainers":[{}],"containers":[{}]}})", fmt::join(begin, at(first), ","),
                       fmt::join(at(first), at(second), ","));
  };
  const std::string injected =
      "initContainers: [{name: first, image: f, a0: {b0: t}}]\ncontainers: [{name: istio-proxy, image: e, a0: {b0: t}, "
      "env: "
      "[{name: E0, value: t}], securityContext: {runAsUser: 1}}]\n";
  for (int i = 0; i < 500; ++i) {
    std::string annotations;
    if (below(2) == 0) annotations += fmt::format("\n    sidecar.istio.io/status: '{}'", lists(quoted));
    if (below(4) != 0) annotations += fmt::format("\n    proxy.istio.io/overrides: '{}'", lists(container));
    const std::string pod =
        fmt::format("kind: Pod\nmetadata:\n  annotations:{}\nspec: {}\n", annotations, lists(container));
    const std::string once = inject_into(pod, injected).text;
    ASSERT_EQ(inject_into(once, injected).text, once) << pod << "\nSIDETRACK_SEED=" << seed;
  }
}

TEST(Inject, WhatIsKeptInAnAnnotationHasToFitThere) {
  const auto pod = [](std::size_t size) {
    return "kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: istio-proxy, image: " +
           std::string(size, 'x') + "}]}\n";
  };
  EXPECT_EQ(error_of(pod(262'144 - 33)), "no error");
  EXPECT_THAT(
      error_of(pod(262'144 - 32)),
      HasSubstr("Pod web: container istio-proxy: 262145 bytes of JSON: expected at most 262144, as it is kept in the "
                "annotation proxy.istio.io/overrides"));
}

TEST(Inject, TakesNoMoreAnnotationsThanKubernetes) {
  const auto pod = [](std::size_t size) {
    return "kind: Pod\nmetadata:\n  name: web\n  annotations:\n    a: " + std::string(size, 'x') +
           "\n    b: ''\nspec: {}\n";
  };
  EXPECT_EQ(error_of(pod(262'142)), "no error");
  EXPECT_THAT(
      error_of(pod(262'143)),
      HasSubstr("line 5: Pod web: annotations: 262145 bytes: expected at most 262144; Kubernetes takes no more, names "
                "and values together"));
}

TEST(Inject, PortsOfOneNumberAreKept) {
  const std::string injected =
      "containers: [{name: dns, securityContext: {runAsUser: 1}, ports: [{containerPort: 53, protocol: TCP}, "
      "{containerPort: 53, protocol: UDP}]}]\n";
  const Node pod = pod_of("kind: Pod\nspec: {containers: [{name: dns, ports: [{containerPort: 80}]}]}\n", injected);
  EXPECT_EQ(container(pod, "containers", "dns").find("ports")->items.size(), 3U);
}

TEST(Inject, VariablesAreTheMeshsAndOverThemThePods) {
  const TemporaryFile file(
      "kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: '{proxyMetadata: {B: pod}}'}}\nspec: {}\n");
  const TemporaryFile injected(proxy);
  const TemporaryFile values("meshConfig: {defaultConfig: {proxyMetadata: {A: mesh, B: mesh, C: mesh, D: mesh}}}\n");
  const TemporaryFile later("meshConfig: {defaultConfig: {proxyMetadata: {C: null}}}\n");
  ManifestOptions options;
  options.files = {file.path()};
  options.injected = injected.path();
  options.values = {values.path(), later.path()};
  set_helm_values(options.set, "meshConfig.defaultConfig.proxyMetadata.D=null");
  std::vector<std::string> ignored;
  const Node pod = parse_documents(manifest::injected(options, ignored, ignored), "a").list[0].root;
  const Node* variables = container(pod, "initContainers", "istio-init").find("env");
  ASSERT_NE(variables, nullptr);
  EXPECT_EQ(json_text(*variables), R"([{"name":"A","value":"mesh"},{"name":"B","value":"pod"}])");
}

TEST(Inject, LeavesAloneWhatIsNotInjected) {
  const std::string manifest =
      "# Nothing of this changes.\nkind: Pod\nmetadata: {name: web}   # not even this\nspec: {hostNetwork:   true}";
  const Result result = inject_into(manifest);
  EXPECT_EQ(result.text, manifest);
  EXPECT_THAT(result.notes, ElementsAre("Pod web: not injected: spec.hostNetwork is true"));
}

TEST(Inject, OtherDocumentsKeepEveryByte) {
  const std::string service = "# The service.\nkind:   Service # of the pod\n";
  const std::string map = "kind: ConfigMap\ndata: {a:   \"b\"}\n# the end";
  const std::string text = inject_into(service + "---\n" + plain_pod + "--- # the map\n" + map).text;
  EXPECT_THAT(text, StartsWith(service + "---\nkind: Pod\n"));
  EXPECT_TRUE(text.ends_with("--- # the map\n" + map)) << text;
}

// All that YAML 1.1 takes for the end of a line, and letters of several bytes.
TEST(Inject, OtherDocumentsKeepEveryByteWhateverEndsTheirLines) {
  const std::string byte_order_mark = "\xEF\xBB\xBF";
  for (const std::string_view end : {"\n", "\r", "\r\n", "\u0085", "\u2028", "\u2029"}) {
    const auto lines = [&](std::string text) {
      for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += end.size())
        text.replace(at, 1, end);
      return text;
    };
    const std::string service = lines("kind: Service\n# é\u2028# x\n");
    const std::string map = lines("---\nkind: ConfigMap\ndata: {a: 'é\u0085b'}\n");
    const std::string pod = lines("---\n" + std::string(plain_pod));
    for (const std::string& before : {std::string(), byte_order_mark}) {
      const std::string text = inject_into(before + service + pod + map + pod + map).text;
      EXPECT_THAT(text, StartsWith(before + service + "---\nkind: Pod\n"));
      const auto second = text.find(map);
      ASSERT_NE(second, std::string::npos) << text;
      EXPECT_THAT(text.substr(second + map.size()), StartsWith("---\nkind: Pod\n"));
      EXPECT_TRUE(text.ends_with(map)) << text;
      EXPECT_EQ(parse_documents(text, "result").list.size(), 5U) << text;
    }
  }
}

// The proxy's uid as it will run: the pod's own container of the name says it last, in either list.
TEST(Inject, InitGetsTheUidOfTheProxyThatWillRun) {
  const std::string injected =
      "containers: [{name: envoy, image: e, securityContext: {runAsUser: 101}}]\n"
      "initContainers: [{name: istio-init, image: i}]\n";
  const auto uid = [&](const std::string& containers) {
    const std::string text = inject_into("kind: Pod\nmetadata: {name: a}\nspec: {" + containers + "}\n", injected).text;
    EXPECT_EQ(inject_into(text, injected).text, text);
    const Node pod = parse_documents(text, "result").list[0].root;
    EXPECT_THAT(names(pod, "initContainers"), Not(::testing::Contains("envoy")));
    const auto& words = pod.find("spec")->find("initContainers")->items[0].find("args")->items;
    const auto found = std::ranges::find(words, "-u", &Node::text);
    return found == words.end() ? "" : (found + 1)->text;
  };
  EXPECT_EQ(uid("containers: [{name: app}]"), "101");
  EXPECT_EQ(uid("containers: [{name: app}, {name: envoy, securityContext: {runAsUser: 202}}]"), "202");
  EXPECT_EQ(uid("containers: [{name: app}], initContainers: [{name: envoy, securityContext: {runAsUser: 203}}]"),
            "203");
  EXPECT_EQ(uid("containers: [{name: istio-proxy, securityContext: {runAsUser: 7}}]"), "101");
}

// The container that the injector put first into it.
TEST(Inject, OfAnInjectedPodTheStatusSaysWhoIsTheProxy) {
  const auto uid = [](const std::string& status) {
    const TemporaryFile file(R"(kind: Pod
metadata: {name: web, annotations: {sidecar.istio.io/status: ')" +
                             status + R"('}}
spec:
  initContainers: [{name: istio-init}, {name: native, securityContext: {runAsUser: 3000}}]
  containers:
  - {name: app, securityContext: {runAsUser: 1000}}
  - {name: agent, securityContext: {runAsUser: 2000}}
  - {name: istio-proxy, securityContext: {runAsUser: 4000}}
)");
    ManifestOptions options;
    options.files = {file.path()};
    options.injector = Injector::sidetrack;
    std::vector<std::string> warnings;
    const std::vector<PodArguments> pods = sidetrack::testing::all_arguments(options, warnings);
    for (const InitArgument& argument : pods.at(0).init.arguments) {
      if (argument.option == "-u") return argument.value;
    }
    return std::string("none");
  };
  EXPECT_EQ(uid(R"({"initContainers":["istio-init"],"containers":["agent"]})"), "2000");
  EXPECT_EQ(uid(R"({"containers":["agent","istio-proxy"]})"), "4000");
  EXPECT_EQ(uid(R"({"initContainers":["istio-init","native"],"containers":null})"), "3000");
  EXPECT_EQ(uid(R"({"initContainers":["istio-init"]})"), "4000");
  EXPECT_EQ(uid("{}"), "4000");
}

TEST(Inject, TheImageAutoIsTheTemplates) {
  const std::string text =
      inject_into(
          "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: istio-proxy, image: auto, stdin: yes}]}\n")
          .text;
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("image: 'envoy:1'"), Not(HasSubstr("auto"))));
  EXPECT_EQ(inject_into(text).text, text);
}

TEST(Inject, StreamsOfJsonStayOnes) {
  const std::string text =
      inject_into("{\"kind\": \"Service\"}\n---\n{\"kind\": \"Pod\", \"spec\": {}} {\"kind\": \"Role\"}").text;
  const auto documents = parse_documents(text, "result");
  EXPECT_EQ(documents.form, Form::json);
  ASSERT_EQ(documents.list.size(), 3U);
  EXPECT_THAT(names(documents.list[1].root, "initContainers"), ElementsAre("istio-init"));
}

TEST(Inject, UtfSixteenIsRefused) { EXPECT_THROW(static_cast<void>(parse_documents("\xFF\xFEk\0", "a.yaml")), Error); }

TEST(Inject, JsonStaysJson) {
  const std::string text = inject_into(R"({"kind": "Pod", "spec": {"containers": [{"name": "web", "n": 1.50}]}})").text;
  EXPECT_THAT(text, StartsWith("{\n  \"kind\": \"Pod\",\n"));
  EXPECT_THAT(text, HasSubstr("\"n\": 1.50"));
  EXPECT_EQ(parse_documents(text, "a").form, Form::json);
  EXPECT_EQ(inject_into(text).text, text);
}

TEST(Inject, WhatIsWrongIsSaid) {
  EXPECT_THAT(error_of("kind: Pod\nmetadata: {annotations: {sidecar.istio.io/status: injected}}\n"),
              HasSubstr("Pod: sidecar.istio.io/status: 'injected': expected a JSON object of lists"));
  EXPECT_THAT(error_of("kind: Pod\nmetadata: {annotations: {sidecar.istio.io/status: '{\"containers\": 5}'}}\n"),
              HasSubstr("expected a JSON object of lists"));
  EXPECT_THAT(error_of("kind: Pod\nspec: {volumes: {}}\n"), HasSubstr("volumes: a mapping: expected a list"));
  EXPECT_THAT(error_of("kind: Pod\nmetadata: {annotations: {traffic.sidecar.istio.io/includeInboundPorts: http}}\n"),
              HasSubstr("Pod: traffic.sidecar.istio.io/includeInboundPorts: 'http': expected a port"));
}

TEST(Template, WhatIsWrongIsSaid) {
  const std::pair<std::string, std::string> all[] = {
      {"", "expected one document, a pod's manifest"},
      {"a: 1\n---\nb: 2\n", "expected one document"},
      {"- a\n", "line 1: expected a pod's manifest"},
      {"spec: {}\n", "no containers: expected those of the proxy"},
      {"spec: {containers: [{name: a}], hostNetwork: true}\n",
       "line 1: 'hostNetwork': not put into pods; a template has"},
      {"template: {}\nspec: {containers: [{name: a}]}\n", "'template': expected a pod's manifest"},
      {"containers: {}\n", "containers: expected a list"},
      {"containers: [{image: a}]\n", "containers: expected a name"},
      {"containers: [{name: a}, {name: a}]\n", "containers: 'a' is there already"},
      {"containers: [{name: a, securityContext: {runAsUser: root}}]\n",
       "container a: runAsUser: a string 'root': expected a number"},
      {"containers: [{name: a, securityContext: {runAsUser: -1}}]\n",
       "line 1: container a: runAsUser: '-1': expected a number from 0 to 4294967294"},
      {"containers: [{name: a, image: no}]\n", "line 1: a: image: a boolean: expected a string"},
      {"containers: [{name: a, securityContext: 5}]\n", "a: securityContext: a number: expected a mapping"},
      {"containers: [{name: a, args: [a, 5]}]\n", "a: args: a number '5': expected a list of strings"},
      {"containers: [{name: a}]\ninitContainers: [{name: istio-init, image: i, env: 5}]\n",
       "line 2: istio-init: env: a number: expected a list"},
      {"containers: [{name: a, env: [{name: A}, {name: A}]}]\n", "a: env: 'A' is there already"},
      {"containers: [{name: a, volumeMounts: [{name: v, mountPath: /a}, {name: w, mountPath: /a}]}]\n",
       "a: volumeMounts: '/a' is there already"},
      {"containers: [{name: a, env: [{value: A}]}]\n", "a: env: expected a name"},
      {"containers: [{name: a}]\ninitContainers: [{name: a}]\n", "containers: 'a' is among the initContainers already"},
      {"containers: [{name: istio-init}]\n", "containers: 'istio-init': expected it among the initContainers"},
      {"containers: [{name: a}]\ninitContainers: [{name: istio-init, image: i, restartPolicy: Always}]\n",
       "line 2: istio-init: restartPolicy: 'Always': expected none"},
      {"kind: Deployment\nspec: {containers: [{name: a}]}\n", "line 1: kind: 'Deployment': expected a pod's manifest"},
  };
  for (const auto& [injected, expected] : all)
    EXPECT_THAT(error_of(plain_pod, injected), HasSubstr(expected)) << injected;
}

TEST(Template, AProxyWithoutAUserIsLikelyAMistake) {
  EXPECT_THAT(inject_into(plain_pod, "containers: [{name: envoy}]\n").warnings,
              ElementsAre(HasSubstr("container envoy: no securityContext.runAsUser")));
  EXPECT_THAT(inject_into(plain_pod).warnings, IsEmpty());
}

TEST(Template, WhatTakesFromIstioInitWhatItNeedsIsLikelyAMistake) {
  const std::string user = "securityContext does not say runAsUser: 0";
  const std::string capability = "does not add the capability NET_ADMIN";
  const std::pair<std::string, std::vector<std::string>> all[] = {
      {"{}", {}},
      {"{capabilities: {drop: [ALL]}}", {}},
      {"{runAsUser: 0x0, capabilities: {add: [ALL]}}", {}},
      {"{privileged: true, capabilities: {add: []}}", {}},
      {"{runAsUser: 1337}", {user}},
      {"{runAsNonRoot: yes}", {"runAsNonRoot: true: the kubelet will not start it"}},
      {"{capabilities: {add: [NET_RAW]}}", {capability}},
      {"null", {user, capability}},
  };
  for (const auto& [context, expected] : all) {
    const std::string injected =
        "containers: [{name: a, securityContext: {runAsUser: 1}}]\n"
        "initContainers: [{name: istio-init, image: i, securityContext: " +
        context + "}]\n";
    const auto warnings = inject_into(plain_pod, injected).warnings;
    ASSERT_EQ(warnings.size(), expected.size()) << context;
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_THAT(warnings[i], HasSubstr("line 2: istio-init: ")) << context;
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_THAT(warnings[i], HasSubstr(expected[i])) << context;
  }
}

// ---- What is written reads back.

TEST(Write, KeepsEveryKindOfScalar) {
  const std::string text =
      "plain: word\nsingle: 'it''s'\ndouble: \"a\\tb\\u00e9\\U0001F600\"\nempty: ''\nnothing:\nnone: ~\nyes: no\n"
      "number: 0o644\nfloat: 1.50\ndate: 2001-01-01\n\"on\": 'off'\n8080: port\nliteral: |\n  a\n   b\n\n  c\nstrip: "
      "|-\n  a\n"
      "keep: |+\n  a\n\nfolded: >\n  a\n  b\n\n  c\nindented: |2\n    a\n  b\nblank: \" a \"\nlong: a b\n  c\nlist:\n- "
      "- a\n  - []\n- {}\n"
      "trailing: |\n  a \n  b\t\n";
  const Node root = parse_yaml(text, "a")[0].root;
  const std::string written = yaml_text(root);
  EXPECT_EQ(parse_yaml(written, "b")[0].root, root) << written;
  EXPECT_EQ(yaml_text(parse_yaml(written, "b")[0].root), written);
  EXPECT_THAT(written, HasSubstr("single: 'it''s'\n"));
  EXPECT_THAT(written, HasSubstr("literal: |\n  a\n   b\n\n  c\n"));
}

TEST(Write, JsonHasJsonsNumbers) {
  EXPECT_EQ(json_text(parse_yaml("{a: 0o17, b: yes, c: ~, d: \"\\x01é\", e: [.inf, 1_000], f: {}}", "a")[0].root),
            R"({"a":15,"b":true,"c":null,"d":"\u0001é","e":[".inf",1000],"f":{}})");
}

// What `args --injector sidetrack` says of a pod is what `inject` does with it.
TEST(Inject, DoesWhatArgsSays) {
  struct Choice {
    std::string_view annotation;
    std::vector<std::string_view> values;
  };
  const std::vector<Choice> choices{
      {"sidecar.istio.io/inject", {"true", "False", "no", ""}},
      {"sidecar.istio.io/interceptionMode", {"TPROXY", "NONE", "x", ""}},
      {"sidecar.istio.io/proxyCPU", {"1", "1Zi", ""}},
      {"sidecar.istio.io/userVolume", {"{}", "x", "[5]"}},
      {"sidecar.istio.io/userVolumeMount", {R"({"a": {"mountPath": "/a"}})", "", "5"}},
      {"proxy.istio.io/overrides",
       {"", "{}", R"({"containers": [{"name": "istio-proxy", "securityContext": {"runAsUser": 55}}]})",
        R"({"initContainers": 5})"}},
      {"sidecar.istio.io/status", {"", "{}", R"({"containers": ["istio-proxy"]})", "x"}},
      {"proxy.istio.io/config",
       {"interceptionMode: NONE", "proxyMetadata: {DISABLE_ENVOY: 'true'}", "a: [",
        "proxyMetadata: {ISTIO_DUAL_STACK: maybe}", "- a", "proxyMetadata: {A: null}"}},
      {"inject.istio.io/templates", {"gateway", "sidecar", ""}},
      {"traffic.sidecar.istio.io/includeInboundPorts", {"80", "http"}},
      {"sidetrack/unknown", {"x"}},
      {"sidecar.istio.io/nativeSidecar", {"true", "x"}},
  };
  const TemporaryFile template_file(
      "containers: [{name: istio-proxy, image: envoy, securityContext: {runAsUser: 1337}}]\n");
  std::mt19937 random(amount("SIDETRACK_SEED", 41));
  const unsigned count = amount("SIDETRACK_PODS", 1'500);
  const auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
  std::size_t refused = 0, left_alone = 0, injected_pods = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::string annotations;
    bool has_status = false;
    for (unsigned many = random() % 4; many > 0; --many) {
      const Choice& choice = choices[random() % choices.size()];
      if (annotations.find(choice.annotation) != std::string::npos) continue;
      has_status |= choice.annotation == "sidecar.istio.io/status";
      annotations += fmt::format("{}\"{}\": {}", annotations.empty() ? "" : ", ", choice.annotation,
                                 json_text(Node::string(choice.values[random() % choice.values.size()])));
    }
    std::string spec = chance(8) ? "hostNetwork: true, " : "";
    if (!has_status && chance(4))
      spec += fmt::format("initContainers: [{{name: istio-proxy, {}securityContext: {{runAsUser: 7}}}}], ",
                          chance(2) ? "restartPolicy: Always, " : "");
    const std::string own = !has_status && chance(4) ? ", {name: istio-proxy, securityContext: {runAsUser: 8}}" : "";
    const TemporaryFile file(fmt::format(
        "kind: Pod\nmetadata: {{name: web, annotations: {{{}}}}}\nspec: {{{}containers: [{{name: web}}{}]}}\n",
        annotations, spec, own));
    ManifestOptions options;
    options.files = {file.path()};
    options.injected = template_file.path();
    options.injector = Injector::sidetrack;
    std::vector<std::string> warnings, errors, notes;
    const auto said = arguments(options, warnings, errors);
    std::string text, error;
    try {
      text = injected(options, notes, warnings);
    } catch (const Error& what) {
      error = text_with_hint(what);
    }
    SCOPED_TRACE(annotations + "\n" + spec + own);
    if (!error.empty()) {
      ++refused;
      ASSERT_THAT(errors, ElementsAre(error));
      continue;
    }
    ASSERT_THAT(errors, IsEmpty());
    ASSERT_EQ(said.size(), 1U);
    if (!notes.empty()) {
      ++left_alone;
      ASSERT_THAT(notes, ElementsAre(not_injected(said[0].pod, said[0].init.not_injected)));
      continue;
    }
    ++injected_pods;
    const Node pod = parse_documents(text, "result").list[0].root;
    std::vector<std::string> words_there;
    for (const Node& word : container(pod, "initContainers", "istio-init").find("args")->items)
      words_there.push_back(word.text);
    std::vector<std::string> expected = words(said[0].init);
    expected.insert(expected.begin(), "istio-iptables");
    ASSERT_EQ(words_there, expected);
  }
  EXPECT_GT(std::min({refused, left_alone, injected_pods}), count / 10);
}

// A bad annotation of a pod that nothing is put into takes no other with it.
TEST(Inject, LooksNoFurtherAtPodsThatItLeavesAlone) {
  const std::string other = "\n---\n" + std::string(plain_pod);
  for (const std::string annotation :
       {"sidecar.istio.io/proxyCPU: 1Zi", "sidecar.istio.io/userVolume: x", "proxy.istio.io/overrides: x",
        "sidecar.istio.io/status: ''", "proxy.istio.io/config: '['", "sidetrack/unknown: x",
        "traffic.sidecar.istio.io/includeInboundPorts: http"}) {
    EXPECT_THAT(inject_into(pod_with(annotation + ", sidecar.istio.io/inject: 'false'") + other).text,
                HasSubstr("istio-iptables"))
        << annotation;
    EXPECT_NE(error_of(pod_with(annotation) + other), "no error") << annotation;
  }
}

}  // namespace
}  // namespace sidetrack::manifest
