// SPDX-License-Identifier: GPL-2.0-or-later
// What a template is taken for, and the whole of what `inject` writes.
#include "inject/manifest/template.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "inject/manifest/inject.h"
#include "inject/manifest/write.h"
#include "model/error.h"

namespace sidetrack::manifest {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Node node_of(std::string_view yaml) { return parse_yaml(yaml, "test")[0].root; }

InjectionTemplate read(const std::string& text, std::vector<std::string>& warnings) {
  return read_template(parse_documents(text, "proxy.yaml"), warnings);
}

// All of it, as text.
std::string said_of(const std::string& text) {
  std::vector<std::string> warnings;
  std::string said;
  try {
    const InjectionTemplate made = read(text, warnings);
    for (const auto* list : {&made.init_containers, &made.containers, &made.volumes, &made.image_pull_secrets}) {
      for (const Node& each : *list) said += std::string(name_of(each)) + " ";
      said += "| ";
    }
    said += made.proxy_name + " " + made.proxy_uid.value_or("none") + "\n";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    said = std::string(error.what()) + (error.hint().empty() ? "" : "; " + error.hint()) + "\n";
  }
  for (const std::string& warning : warnings) said += warning + "\n";
  return said;
}

TEST(Template, IsAPodOrItsSpec) {
  const std::string spec = "{containers: [{name: a, securityContext: {runAsUser: 0x10}}]}";
  const std::string expected = "| a | | | a 16\n";
  EXPECT_EQ(said_of(spec), expected);
  EXPECT_EQ(said_of("---\n---\n# nothing\n---\n" + spec), expected);
  EXPECT_EQ(said_of("spec: " + spec), expected);
  EXPECT_EQ(said_of("apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: " + spec), expected);
  const std::string not_pod = "expected a pod's manifest\n";
  EXPECT_EQ(said_of("spec: " + spec + "\nmore:\n  a: b\n"), "proxy.yaml, line 3: 'more': " + not_pod);
  EXPECT_EQ(said_of("\nkind: Job\nspec: " + spec), "proxy.yaml, line 2: kind: 'Job': " + not_pod);
  EXPECT_EQ(said_of("\n- a\n"), "proxy.yaml, line 2: " + not_pod);
  EXPECT_EQ(said_of("spec: 5\n"), "proxy.yaml, line 1: spec: expected a mapping\n");
  EXPECT_EQ(said_of(""), "proxy.yaml: expected one document, a pod's manifest\n");
  EXPECT_EQ(said_of("{}\n---\n{}\n"), "proxy.yaml: expected one document, a pod's manifest\n");
  EXPECT_EQ(said_of("containers: []\n"), "proxy.yaml: no containers: expected those of the proxy\n");
  EXPECT_EQ(
      said_of("containers: []\n\ndnsPolicy: Default\n"),
      "proxy.yaml, line 3: 'dnsPolicy': not put into pods; a template has initContainers, containers, volumes and "
      "imagePullSecrets\n");
}

// Of istio-proxy, else of the first that runs beside the app; one among the init containers that does not end is it,
// too.
TEST(Template, SaysWhoIsTheProxy) {
  const std::string no_user =
      ": no securityContext.runAsUser: what it sends is sent back to it unless its image runs as user 1337\n";
  EXPECT_EQ(said_of("containers:\n- {name: a, securityContext: {runAsUser: 1}}\n- {name: istio-proxy, securityContext: "
                    "{runAsUser: 2}}\nvolumes: [{name: v}, {name: w}]\nimagePullSecrets: [{name: s}]\n"),
            "| a istio-proxy | v w | s | istio-proxy 2\n");
  EXPECT_EQ(said_of("containers: [{name: a, securityContext: {runAsUser: 1}}, {name: b}]\n"), "| a b | | | a 1\n");
  EXPECT_EQ(
      said_of("initContainers:\n- {name: a}\n- {name: b, restartPolicy: Always, securityContext: {runAsUser: 3}}\n"),
      "a b | | | | b 3\n");
  EXPECT_EQ(said_of("initContainers:\n- {name: a, restartPolicy: Never}\n"), "a | | | |  none\n");
  EXPECT_EQ(
      said_of(
          "volumes:\ncontainers:\n- {name: c, securityContext: {runAsUser: 9}}\ninitContainers:\n- {name: istio-proxy, "
          "restartPolicy: Always}\n"),
      "istio-proxy | c | | | istio-proxy none\nproxy.yaml, line 5: container istio-proxy" + no_user);
  EXPECT_EQ(said_of("\ncontainers:\n- {name: a}\n"), "| a | | | a none\nproxy.yaml, line 3: container a" + no_user);
  EXPECT_EQ(said_of("containers:\n- name: a\n  securityContext:\n    runAsUser: yes\n"),
            "proxy.yaml, line 4: container a: runAsUser: a boolean 'yes': expected a number\n");
  EXPECT_EQ(said_of("containers:\n- name: a\n  securityContext:\n    runAsUser: 4294967295\n"),
            "proxy.yaml, line 4: container a: runAsUser: '4294967295': expected a number from 0 to 4294967294\n");
}

// What the API server would refuse of every pod is refused here, with its line.
TEST(Template, SaysInWhichLineWhatIsWrong) {
  const auto container = [](const std::string& more) { return said_of("containers:\n- name: a\n  " + more + "\n"); };
  const std::string line = "proxy.yaml, line 3: ";
  EXPECT_EQ(container("image: [b]"), line + "a: image: a list: expected a string\n");
  EXPECT_EQ(container("command: b"), line + "a: command: a string: expected a list\n");
  EXPECT_EQ(container("args: {}"), line + "a: args: a mapping: expected a list\n");
  EXPECT_EQ(container("env: 5"), line + "a: env: a number: expected a list\n");
  EXPECT_EQ(container("volumeMounts: {}"), line + "a: volumeMounts: a mapping: expected a list\n");
  EXPECT_EQ(container("volumeDevices: {}"), line + "a: volumeDevices: a mapping: expected a list\n");
  EXPECT_EQ(container("ports: yes"), line + "a: ports: a boolean: expected a list\n");
  EXPECT_EQ(container("resources: []"), line + "a: resources: a list: expected a mapping\n");
  EXPECT_EQ(container("securityContext: []"), line + "a: securityContext: a list: expected a mapping\n");
  EXPECT_EQ(container("command: [b, no]"), line + "a: command: a boolean 'no': expected a list of strings\n");
  EXPECT_EQ(container("args: [5]"), line + "a: args: a number '5': expected a list of strings\n");
  EXPECT_EQ(container("env: [{name: b}, {name: b}]"), line + "a: env: 'b' is there already\n");
  EXPECT_EQ(container("env: [b]"), line + "a: env: expected a name\n");
  EXPECT_EQ(container("volumeMounts: [{mountPath: b}, {mountPath: b}]"),
            line + "a: volumeMounts: 'b' is there already\n");
  EXPECT_EQ(container("volumeMounts: [{name: b}]"), line + "a: volumeMounts: expected a mountPath\n");
  EXPECT_EQ(container("volumeDevices: [{}]"), line + "a: volumeDevices: expected a devicePath\n");
  EXPECT_EQ(said_of("volumes: 5\n"), "proxy.yaml, line 1: volumes: expected a list\n");
  EXPECT_EQ(said_of("volumes: [{}]\n"), "proxy.yaml, line 1: volumes: expected a name\n");
  EXPECT_EQ(said_of("volumes: [a]\n"), "proxy.yaml, line 1: volumes: expected a name\n");
  EXPECT_EQ(said_of("volumes: [{name: 5}]\n"), "proxy.yaml, line 1: volumes: expected a name\n");
  EXPECT_EQ(said_of("volumes:\n- {name: a}\n- {name: a}\n"), "proxy.yaml, line 3: volumes: 'a' is there already\n");
  EXPECT_EQ(said_of("containers:\n- {name: istio-init}\n"),
            "proxy.yaml, line 2: containers: 'istio-init': expected it among the initContainers\n");
  EXPECT_EQ(said_of("initContainers:\n- {name: b}\ncontainers:\n- {name: b}\n"),
            "proxy.yaml, line 4: containers: 'b' is among the initContainers already\n");
  EXPECT_EQ(said_of("initContainers:\n- name: istio-init\n  restartPolicy: Always\n"),
            "proxy.yaml, line 3: istio-init: restartPolicy: 'Always': expected none; it has to end before the app "
            "starts\n");
}

TEST(Template, WarnsOfAnInitContainerThatCannotDoItsWork) {
  const auto warnings = [](const std::string& init) {
    std::vector<std::string> said;
    static_cast<void>(read("initContainers:\n- {name: istio-init" + init + "}\n", said));
    return said;
  };
  const std::string start = "proxy.yaml, line 2: istio-init: ";
  EXPECT_THAT(warnings(", image: i"), IsEmpty());
  EXPECT_THAT(warnings(""), ElementsAre(start + "no image: that of this build is taken, which clusters cannot pull"));
  EXPECT_THAT(warnings(", image: i, securityContext: {runAsUser: 1}"),
              ElementsAre(start + "securityContext does not say runAsUser: 0: rules need root"));
  EXPECT_THAT(warnings(", image: i, securityContext: {runAsNonRoot: true}"),
              ElementsAre(start + "runAsNonRoot: true: the kubelet will not start it as root"));
  EXPECT_THAT(warnings(", image: i, securityContext: {capabilities: {add: [NET_RAW]}}"),
              ElementsAre(start + "securityContext does not add the capability NET_ADMIN, which rules need"));
  EXPECT_THAT(warnings(", image: i, securityContext: {capabilities: }"),
              ElementsAre(start + "securityContext does not add the capability NET_ADMIN, which rules need"));
  EXPECT_THAT(warnings(", image: i, securityContext: {privileged: false, capabilities: {add: [A, ALL]}}"), IsEmpty());
}

// `own` counts; of lists of named things item by item.
TEST(Template, IsMergedKeyByKey) {
  const auto merge = [](std::string_view base, std::string_view own) {
    return json_text(merged(node_of(base), node_of(own)));
  };
  EXPECT_EQ(merge("{a: 1, b: {c: 2, d: 3}}", "{b: {c: 4}, e: 5}"), R"({"b":{"c":4,"d":3},"e":5,"a":1})");
  EXPECT_EQ(merge("{a: {b: 1}}", "{a: 2}"), R"({"a":2})");
  EXPECT_EQ(merge("{a: 1}", "{a: {b: 2}}"), R"({"a":{"b":2}})");
  EXPECT_EQ(merge("{a: 1}", "5"), "5");
  EXPECT_EQ(merge("5", "{a: 1}"), R"({"a":1})");
  EXPECT_EQ(merge("{args: [a, b]}", "{args: [c]}"), R"({"args":["c"]})");
  EXPECT_EQ(merge("{env: [{name: a, value: x}, {name: b}]}", "{env: [{name: c}, {name: a, value: w}]}"),
            R"({"env":[{"name":"c"},{"name":"a","value":"w"},{"name":"b"}]})");
  EXPECT_EQ(merge("{env: [{name: a, value: x, more: 1}]}", "{env: [{name: a, value: w}]}"),
            R"({"env":[{"name":"a","value":"w","more":1}]})");
  EXPECT_EQ(merge("{env: [{name: a}]}", "{env: {name: a}}"), R"({"env":{"name":"a"}})");
  EXPECT_EQ(merge("{env: {name: a}}", "{env: [{name: b}]}"), R"({"env":[{"name":"b"}]})");
  EXPECT_EQ(
      merge("{ports: [{containerPort: 1, name: x}, {containerPort: 2}]}", "{ports: [{containerPort: 2, name: w}]}"),
      R"({"ports":[{"containerPort":2,"name":"w"},{"containerPort":1,"name":"x"}]})");
  EXPECT_EQ(merge("{volumeMounts: [{mountPath: a, name: x}]}", "{volumeMounts: [{mountPath: a, name: w}]}"),
            R"({"volumeMounts":[{"mountPath":"a","name":"w"}]})");
  EXPECT_EQ(merge("{volumeDevices: [{devicePath: a}]}", "{volumeDevices: [{devicePath: b}]}"),
            R"({"volumeDevices":[{"devicePath":"b"},{"devicePath":"a"}]})");
}

// Aliases count as what they stand for.
TEST(Template, IsNoLargerThanAConfigMap) {
  const auto template_of = [](std::size_t size) {
    return "containers:\n- name: a\n  securityContext: {runAsUser: 1}\n  a: &a " + std::string(size, 'x') +
           "\n  b: *a\n";
  };
  EXPECT_EQ(said_of(template_of(524'200)), "| a | | | a 1\n");
  const std::string large = template_of(524'260);
  EXPECT_EQ(json_text(node_of(large)).size(), 1'048'597U);
  EXPECT_EQ(said_of(large), "proxy.yaml: 1048597 bytes of JSON: expected at most 1048576; every pod gets them\n");
}

TEST(Template, WithoutIsWhatAnotherHasBeside) {
  const auto rest = [](std::string_view own, std::string_view base) {
    return json_text(without(node_of(own), node_of(base)));
  };
  EXPECT_EQ(rest("{a: 1, b: 2}", "{b: 3, c: 4}"), R"({"a":1})");
  EXPECT_EQ(rest("{a: {b: 1, c: 2}, d: {e: 1}}", "{a: {b: 3}, d: {e: 2}}"), R"({"a":{"c":2}})");
  EXPECT_EQ(rest("{a: {b: 1}, c: 1}", "{a: 2, c: {d: 1}}"), "{}");
  EXPECT_EQ(rest("{args: [a, b]}", "{args: []}"), "{}");
  EXPECT_EQ(rest("{env: [{name: a}, {name: b}]}", "{env: [{name: b, value: x}]}"), R"({"env":[{"name":"a"}]})");
  EXPECT_EQ(rest("{env: [{name: b}]}", "{env: [{name: b}]}"), "{}");
}

// The whole pod, byte by byte.
TEST(Inject, WritesThis) {
  std::vector<std::string> warnings;
  const InjectionTemplate wanted = read(R"(
initContainers:
- {name: istio-init, image: mine, env: [{name: LEVEL, value: info}, {name: A, value: x}], args: [--wait=5s]}
- {name: first}
containers:
- {name: istio-proxy, image: envoy, securityContext: {runAsUser: 1337}, env: [{name: B, value: c}]}
volumes: [{name: certificates}, {name: own}]
imagePullSecrets: [{name: secret}]
)",
                                        warnings);
  Documents documents = parse_documents(R"(# of the shop
kind: Pod
metadata:
  annotations:
    traffic.sidecar.istio.io/excludeOutboundPorts: '5432'
    proxy.istio.io/config: '{proxyMetadata: {LEVEL: debug, LONGER: a/b}}'
spec:
  initContainers:
  - name: mine
  containers:
  - name: istio-proxy
    image: auto
    env: [{name: B, value: d}]
  - name: web
  volumes:
  - name: own
    emptyDir: {}
)",
                                        "web.yaml");
  std::vector<std::string> skipped;
  const Injected result = inject(pod_templates(documents, skipped).front(), wanted, {});
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.before, parse_documents(documents.text, "web.yaml").list[0].root);
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(written(documents, [](const Document&) { return true; }), R"(kind: Pod
metadata:
  annotations:
    traffic.sidecar.istio.io/excludeOutboundPorts: '5432'
    proxy.istio.io/config: '{proxyMetadata: {LEVEL: debug, LONGER: a/b}}'
    proxy.istio.io/overrides: '{"containers":[{"name":"istio-proxy","env":[{"name":"B","value":"d"}]}]}'
    sidecar.istio.io/status: '{"initContainers":["istio-init","first"],"containers":["istio-proxy"],"volumes":["certificates"],"imagePullSecrets":["secret"],"revision":"default"}'
spec:
  initContainers:
  - {name: istio-init, image: mine, env: [{name: A, value: x}, {name: "LEVEL", value: "debug"}, {name: LONGER, value: "a/b"}], args: [istio-iptables, "-p", "15001", "-z", "15006", "-u", "1337", "-m", REDIRECT, "-i", "*", "-x", "", "-b", "*", "-d", "15090,15021,15020", "-o", "5432", --wait=5s], imagePullPolicy: IfNotPresent, terminationMessagePolicy: FallbackToLogsOnError, resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}, securityContext: {allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true, runAsGroup: 0, runAsNonRoot: false, runAsUser: 0, capabilities: {add: [NET_ADMIN, NET_RAW], drop: [ALL]}}}
  - {name: first}
  - name: mine
  containers:
  - name: web
  - {"name": "istio-proxy", "env": [{"name": "B", "value": "d"}], image: envoy, securityContext: {runAsUser: 1337}}
  volumes:
  - name: own
    emptyDir: {}
  - {name: certificates}
  imagePullSecrets:
  - {name: secret}
)");
}

// Words that every reader of YAML takes for strings stand without quotes.
TEST(Inject, QuotesWhatMayBeTakenForSomethingElse) {
  std::vector<std::string> warnings;
  const InjectionTemplate wanted = read("containers: [{name: a, securityContext: {runAsUser: 1}}]", warnings);
  const auto style = [&](const std::string& value) {
    Node variables;
    variables.type = Node::Type::mapping;
    variables.entries.own().push_back({"A", Node::Style::double_quoted, Node::string(value)});
    Node config;
    config.type = Node::Type::mapping;
    config.entries.own().push_back({"proxyMetadata", Node::Style::double_quoted, std::move(variables)});
    Node pod = node_of("{kind: Pod, metadata: {annotations: {}}}");
    pod.find("metadata")
        ->find("annotations")
        ->entries.own()
        .push_back({"proxy.istio.io/config", Node::Style::plain, Node::string(json_text(config))});
    PodTemplate of{"Pod", "", "", "", 1, &pod};
    static_cast<void>(inject(of, wanted, {}));
    const Node& variable = pod.find("spec")->find("initContainers")->items.front().find("env")->items.front();
    EXPECT_EQ(variable.find("value")->text, value);
    return variable.find("value")->style;
  };
  for (int c = ' '; c <= '~'; ++c) {
    const char byte = static_cast<char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool plain = letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '/';
    EXPECT_EQ(style(std::string("words") + byte) == Node::Style::plain, plain) << byte;
    if (byte == '@') continue;  // the name of a file
    EXPECT_EQ(style(byte + std::string("words")) == Node::Style::plain, letter) << byte;
  }
  EXPECT_EQ(style("words"), Node::Style::double_quoted) << "as false may be";
  EXPECT_EQ(style("sentence"), Node::Style::plain);
}

}  // namespace
}  // namespace sidetrack::manifest
