// SPDX-License-Identifier: GPL-2.0-or-later
// What the goldens of tests/golden/manifests do not show: what is refused, and how.
#include "options/istio_init.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <memory>
#include <regex>

#include "inject/manifest/arguments.h"
#include "model/error.h"
#include "unit/all_arguments.h"
#include "unit/error_text.h"
#include "unit/options_text.h"
#include "unit/temporary_file.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using testing::error_text;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::parse_arguments;
using ::testing::SizeIs;
using testing::TemporaryFile;

std::string error_of_manifest(const std::string& text, Injector injector = Injector::sidetrack) {
  const TemporaryFile file(text);
  std::vector<std::string> warnings;
  std::string error = error_text([&] {
    ManifestOptions options;
    options.files = {file.path()};
    options.injector = injector;
    (void)testing::all_arguments(options, warnings);
  });
  const auto path = error.find(file.path());
  return path == std::string::npos ? error : error.replace(path, file.path().size(), "FILE");
}

std::string with_annotation(const std::string& line) {
  return "kind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    metadata:\n      "
         "annotations:\n        " +
         line + "\n";
}

struct Answer {
  std::vector<manifest::PodArguments> pods;
  std::vector<std::string> warnings;
};

// Returns what `args` finds in a file with this text.
Answer answer_for(const std::string& text, ManifestOptions options = {}) {
  const TemporaryFile file(text);
  options.files = {file.path()};
  Answer answer;
  answer.pods = testing::all_arguments(options, answer.warnings);
  return answer;
}

struct Said {
  std::string words;
  std::vector<std::string> warnings;
};

// What `args` says of a pod with these annotations, each a line of YAML.
Said by_istio(const std::vector<std::string>& annotations, const std::string& set = "",
              const std::string& spec = "{}") {
  std::string text = "kind: Pod\nspec: " + spec + "\nmetadata:\n  name: web\n  annotations:\n    a: b\n";
  for (const std::string& line : annotations) text += "    " + line + "\n";
  ManifestOptions options;
  if (!set.empty()) set_helm_values(options.set, set);
  const Answer answer = answer_for(text, options);
  Said said{{}, answer.warnings};
  for (const manifest::PodArguments& pod : answer.pods)
    said.words =
        pod.init.not_injected.empty() ? fmt::format("{}", fmt::join(words(pod.init), " ")) : pod.init.not_injected;
  return said;
}

TEST(IstioInit, AWrongValueIsRefusedWithFileObjectAnnotationAndExpectation) {
  const std::pair<std::string, std::string> all[] = {
      {"sidecar.istio.io/interceptionMode: tproxy", "'tproxy': expected one of REDIRECT|TPROXY|NONE"},
      {"traffic.sidecar.istio.io/includeOutboundIPRanges: 10.0.0.0/33", "'10.0.0.0/33': expected an address range"},
      {"traffic.sidecar.istio.io/excludeOutboundIPRanges: '*'", "'*': expected address ranges, not everything"},
      {"traffic.sidecar.istio.io/includeInboundPorts: 80,http", "'http': expected a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/excludeInboundPorts: '70000'", "'70000': expected a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/includeOutboundPorts: '*'", "'*': expected a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/excludeOutboundPorts: '1:2'", "'1:2': expected a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/excludeInterfaces: a/b", "'a/b': expected an interface name"},
      {"traffic.sidecar.istio.io/kubevirtInterfaces: '+'", "'+': expected the name of an interface"},
      {"istio.io/reroute-virtual-interfaces: a b", "'a b': expected an interface name"},
      {"status.sidecar.istio.io/port: http", "'http': expected a port from 1 to 65535, or 0 for none"},
      {"sidecar.istio.io/inject: 'no'", "'no': expected true or false"},
      {"traffic.sidecar.istio.io/includeInboundPorts: '@/etc/passwd'", "not the name of a file"},
  };
  for (const auto& [line, expected] : all) {
    const std::string error = error_of_manifest(with_annotation(line));
    EXPECT_THAT(error, HasSubstr("FILE: Deployment shop/web: " + line.substr(0, line.find(':')) + ": ")) << line;
    EXPECT_THAT(error, HasSubstr(expected)) << line;
  }
}

TEST(IstioInit, AnAnnotationIsAString) {
  const std::string_view name = "traffic.sidecar.istio.io/includeInboundPorts";
  EXPECT_EQ(
      error_of_manifest(with_annotation(std::string(name) + ": 80")),
      "FILE, line 7: Deployment shop/web: traffic.sidecar.istio.io/includeInboundPorts: a number '80': expected a "
      "string; write it in quotes: traffic.sidecar.istio.io/includeInboundPorts: \"80\"");
  EXPECT_THAT(error_of_manifest(with_annotation("a: yes")), HasSubstr("a: a boolean 'yes': expected a string"));
  // Charts write checksums of files that are not there: null is an empty string to the API server.
  EXPECT_EQ(error_of_manifest(with_annotation("checksum/config:")), "no error");
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/includeOutboundIPRanges:"}).words, HasSubstr("-i  -x"));
  EXPECT_THAT(error_of_manifest(with_annotation("a: [b]")), HasSubstr("a: a list: expected a string"));
  EXPECT_THAT(error_of_manifest("kind: Pod\nmetadata: {name: web, labels: {v: 1.0}}\n"),
              HasSubstr("FILE, line 2: Pod web: v: a number '1.0': expected a string"));
}

TEST(IstioInit, WhatIsWrongInAnAnnotationsDocumentIsRefusedWithItsPlaceThere) {
  const std::pair<std::string, std::string> all[] = {
      {"proxyMetadata: {A: true}", ", line 1: A: a boolean 'true': expected a string"},
      {"interceptionMode: 5", ": interceptionMode: '5': expected one of REDIRECT|TPROXY|NONE"},
      {"x", ", line 1: the document: a string 'x': expected one mapping"},
      {"proxyMetadata: {A: '@/etc/passwd'}", ": proxyMetadata: A: '@/etc/passwd': expected the values themselves"},
      {"proxyMetadata: {'': x}", ": proxyMetadata: '': expected the name of a variable"},
      {"proxyMetadata: {A=B: x}", ": proxyMetadata: 'A=B': expected the name of a variable"},
      {"proxyMetadata: {ISTIO_META_DNS_CAPTURE: maybe}", ": proxyMetadata: ISTIO_META_DNS_CAPTURE: 'maybe': expected"},
      {"proxyMetadata: {ISTIO_OUTBOUND_OWNER_GROUPS: app}",
       ": proxyMetadata: ISTIO_OUTBOUND_OWNER_GROUPS: 'app': expected gids: its image has no /etc/group"},
  };
  for (const auto& [config, expected] : all) {
    EXPECT_THAT(error_of_manifest(with_annotation("proxy.istio.io/config: \"" + config + "\"")),
                HasSubstr("FILE: Deployment shop/web: proxy.istio.io/config" + expected))
        << config;
  }
}

TEST(IstioInit, TheLabelIsSaidToBeOne) {
  EXPECT_THAT(error_of_manifest("kind: Pod\nmetadata: {labels: {sidecar.istio.io/inject: maybe}}\n"),
              HasSubstr("FILE: Pod: label sidecar.istio.io/inject: 'maybe': expected true or false"));
}

TEST(IstioInit, WhatIsNoObjectIsRefused) {
  const std::pair<std::string, std::string> all[] = {
      {"- a\n", "FILE, line 1: the document: a list: expected a Kubernetes object"},
      {"a: b\n", "FILE: kind: missing: expected a Kubernetes object, which has a kind"},
      {"kind: 5\n", "FILE, line 1: kind: a number '5': expected a string"},
      {"kind: Deployment\nmetadata: {name: web}\n",
       "FILE: Deployment web: spec.template: missing: expected a pod template"},
      {"kind: Deployment\nmetadata: {name: web}\nspec: {template: [a]}\n",
       "FILE, line 3: Deployment web: spec.template: a list: expected a pod template"},
      {"kind: CronJob\nspec: {template: {}}\n", "spec.jobTemplate.spec.template: missing"},
      {"kind: List\nitems: {a: b}\n", "FILE, line 2: items: a mapping: expected a list"},
      {"kind: List\nitems: [5]\n", "FILE, item 1, line 2: the document: a number '5'"},
      {"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n", "Service a: spec.template: missing"},
      {"kind: Service\n---\nkind: Pod\nmetadata: 5\n",
       "FILE, document 2, line 4: metadata: a number '5': expected a mapping"},
      {"kind: Pod\nspec: {hostNetwork: 'true'}\n", "hostNetwork: a string 'true': expected a boolean"},
      {"kind: Pod\nspec: {containers: [{name: istio-proxy, securityContext: {runAsUser: '5'}}]}\n",
       "runAsUser: a string '5': expected a number"},
      {"kind: Pod\nspec: {containers: [{name: istio-proxy, securityContext: {runAsUser: -5}}]}\n",
       "runAsUser of istio-proxy: '-5': expected a number from 0 to 4294967294"},
      {"kind: Pod\nspec: {containers: [a]}\n", "containers: a string 'a': expected a list of containers"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: 'a: ['}}\n",
       "proxy.istio.io/config, line 1, column 5: not YAML"},
      {"kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: 'interceptionMode: 5'}}\n",
       "interceptionMode: '5': expected one of REDIRECT|TPROXY|NONE"},
      {"", "FILE: empty: expected a Pod, Deployment"},
  };
  for (const auto& [text, expected] : all) EXPECT_THAT(error_of_manifest(text), HasSubstr(expected)) << text;
}

TEST(IstioInit, AnAnnotationIsSmall) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\\n";
  for (char c = 'b'; c < 'h'; ++c) {
    const std::string before = "*" + std::string(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [" + before;
    for (int i = 1; i < 10; ++i) bomb += ", " + before;
    bomb += "]\\n";
  }
  EXPECT_THAT(error_of_manifest("kind: Pod\nmetadata: {annotations: {proxy.istio.io/config: \"" + bomb + "\"}}\n"),
              HasSubstr("proxy.istio.io/config, line 5: more than 50000 values"));
}

TEST(IstioInit, WhatIsNotUnderstoodDoesNotTakeTheOthersWithIt) {
  const Answer answer = answer_for(
      "kind: Deployment\nmetadata: {name: a}\n---\n- b\n---\nkind: List\nitems: [5, {kind: Pod, metadata: {name: "
      "c}}]\n---\n"
      "apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nspec: {podMetadata: {}}\n---\n"
      "apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nspec: {podMetadata: {}}\n");
  ASSERT_THAT(answer.pods, SizeIs(1));
  EXPECT_EQ(answer.pods[0].pod.name, "c");
  EXPECT_THAT(
      answer.warnings,
      ElementsAre(HasSubstr("kind Prometheus of monitoring.coreos.com: unknown, skipped"),
                  HasSubstr("document 1: Deployment a: spec.template: missing: expected a pod template: skipped"),
                  HasSubstr("document 2, line 4: the document: a list: expected a Kubernetes object: skipped"),
                  HasSubstr("item 1, line 7: the document: a number '5'")));
}

TEST(IstioInit, AnnotationsOfTheObjectItselfAreWarnedOf) {
  const Answer answer = answer_for(
      "kind: Deployment\nmetadata: {name: a, annotations: {traffic.sidecar.istio.io/excludeOutboundPorts: '22', other: "
      "x}}\n"
      "spec: {template: {}}\n");
  EXPECT_THAT(answer.pods, SizeIs(1));
  EXPECT_THAT(
      answer.warnings,
      ElementsAre("Deployment a: annotation traffic.sidecar.istio.io/excludeOutboundPorts: without effect: it is the "
                  "Deployment's own, not that of its pod template"));
}

TEST(ByIstio, SaysWhatHasNoEffect) {
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/includeInboundPorts: '80'"}).warnings, IsEmpty());
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/includeInboundPorts: '80'",
                        "traffic.sidecar.istio.io/excludeInboundPorts: '99'"})
                  .warnings,
              ElementsAre(HasSubstr("traffic.sidecar.istio.io/excludeInboundPorts: without effect")));
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/excludeOutboundIPRanges: '0.0.0.0/0'"}).warnings,
              ElementsAre("Pod web: -x 0.0.0.0/0 excludes all of IPv4: no outbound IPv4 is captured"));
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/excludeOutboundIPRanges: '128.0.0.0/1,::1/128,0.0.0.0/1'"}).warnings,
              ElementsAre("Pod web: -x 0.0.0.0/0 excludes all of IPv4: no outbound IPv4 is captured"));
}

TEST(IstioInit, KindsArePodsByTheirApiGroup) {
  const std::string spec = "\nmetadata: {name: a}\nspec: {template: {}, tasks: [{template: {}}, {template: {}}]}\n";
  const std::pair<const char*, std::size_t> all[] = {{"apiVersion: batch/v1\nkind: Job", 1},
                                                     {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job", 2},
                                                     {"apiVersion: example.com/v1\nkind: Job", 0},
                                                     {"apiVersion: argoproj.io/v1alpha1\nkind: Rollout", 1},
                                                     {"apiVersion: serving.knative.dev/v1\nkind: Service", 1},
                                                     {"apiVersion: v1\nkind: Service", 0},
                                                     {"apiVersion: kubevirt.io/v1\nkind: VirtualMachine", 1},
                                                     {"apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig", 1},
                                                     {"apiVersion: apps/v1beta2\nkind: Deployment", 1},
                                                     {"kind: Job", 1},
                                                     {"kind: Service", 0}};
  for (const auto& [head, count] : all) {
    EXPECT_THAT(answer_for(head + spec).pods, SizeIs(count)) << head;
  }
  const Answer answer = answer_for(
      "apiVersion: template.openshift.io/v1\nkind: Template\nobjects: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, "
      "kind: Service}]\n");
  EXPECT_THAT(answer.pods, SizeIs(1));
}

TEST(IstioInit, OtherObjectsAreLeftOutAndThoseWithAPodTemplateAreSaid) {
  const Answer answer = answer_for(
      "kind: Service\n---\nkind: Rollout\nspec: {template: {spec: {containers: [{name: web}]}}}\n---\nkind: "
      "Rollout\nspec: {template: {spec: {containers: []}}}\n");
  EXPECT_THAT(answer.pods, IsEmpty());
  EXPECT_THAT(answer.warnings,
              ElementsAre(HasSubstr("kind Rollout: unknown, skipped: it seems to have a pod template")));
  const Answer of_service = answer_for("kind: Service\n");
  EXPECT_THAT(of_service.pods, IsEmpty());
  EXPECT_THAT(of_service.warnings, ElementsAre(HasSubstr("no pod: looked for")));
}

// ---- By Istio's injector

TEST(ByIstio, RefusesWhatItsInjectorRefuses) {
  const std::pair<std::string, std::string> all[] = {
      {"traffic.sidecar.istio.io/includeOutboundIPRanges: 10.0.0.0", "address ranges with their lengths"},
      {"traffic.sidecar.istio.io/excludeOutboundIPRanges: '10.0.0.0/8, 11.0.0.0/8'", "without blanks"},
      {"traffic.sidecar.istio.io/excludeOutboundIPRanges: '*'", "address ranges"},
      {"traffic.sidecar.istio.io/includeInboundPorts: 1-5", "ports from 0 to 65535"},
      {"traffic.sidecar.istio.io/includeInboundPorts: '80,'", "ports from 0 to 65535"},
      {"traffic.sidecar.istio.io/excludeInterfaces: 0eth", "names of interfaces"},
      {"sidecar.istio.io/interceptionMode: ''", "one of REDIRECT|TPROXY|NONE"},
      {"status.sidecar.istio.io/port: ''", "a port from 0 to 65535"},
      {"sidecar.istio.io/proxyCPU: 1 core", "a quantity"},
      {"prometheus.istio.io/merge-metrics: 'yes'", "true or false"},
      {"readiness.status.sidecar.istio.io/periodSeconds: '-1'", "a number from 0"},
      {"proxy.istio.io/config: 'interceptionMode: tproxy'", "one of REDIRECT|TPROXY|NONE"},
      {"traffic.sidecar.istio.io/includeOutboundPorts: 'a\"b'", "text that stays as it is between the double quotes"},
      {"traffic.sidecar.istio.io/includeInboundPorts: \"80\\v\"", "text that stays as it is between the double quotes"},
      {"sidecar.istio.io/agentLogLevel: 'a: b'", "a word that is one in YAML, too"},
      {"sidecar.istio.io/agentLogLevel: \"a\\nb\"", "a word that is one in YAML, too"},
      {"sidecar.istio.io/logLevel: 'a:'", "a word that is one in YAML, too"},
      {"sidecar.istio.io/componentLogLevel: \"a\\x01\"", "a word that is one in YAML, too"},
      {"sidecar.istio.io/userVolume: x", "a JSON object of objects, by the names of volumes, or a list of them"},
      {"sidecar.istio.io/userVolumeMount: '{\"a\": {}}'", "a JSON object of objects"},
      {"sidecar.istio.io/userVolume: '5'", "a JSON object of objects"},
      {"proxy.istio.io/overrides: ''", "a JSON object of lists of containers"},
      {"proxy.istio.io/overrides: '[]'", "a JSON object of lists of containers"},
      {"proxy.istio.io/overrides: '{\"containers\": [5]}'", "a JSON object of lists of containers"},
      {"inject.istio.io/templates: ''", "names of templates"},
      {"inject.istio.io/templates: 'sidecar,'", "names of templates"},
  };
  for (const auto& [line, expected] : all) {
    const std::string error = error_of_manifest(with_annotation(line), Injector::istio);
    EXPECT_THAT(error, HasSubstr("FILE: Deployment shop/web: " + line.substr(0, line.find(':')))) << line;
    EXPECT_THAT(error, HasSubstr(expected)) << line;
  }
  // By another template of Istio's, too.
  const auto error_of_template = [](const std::string& name, const std::string& line) {
    return error_of_manifest(with_annotation(line + "\n        inject.istio.io/templates: " + name), Injector::istio);
  };
  EXPECT_THAT(error_of_template("gateway", "sidecar.istio.io/logLevel: 'a:'"), HasSubstr("a word that is one in YAML"));
  EXPECT_EQ(error_of_template("grpc-simple", "sidecar.istio.io/logLevel: 'a:'"), "no error");
  EXPECT_EQ(error_of_template("gateway", "sidecar.istio.io/userVolume: x"), "no error");
  EXPECT_THAT(error_of_template("grpc-agent", "sidecar.istio.io/userVolume: x"), HasSubstr("a JSON object of objects"));
  EXPECT_THAT(error_of_template("sidecar", "sidecar.istio.io/proxyImage: 'a/b\"'"), HasSubstr("a word that is one"));
  EXPECT_EQ(error_of_template("sidecar", "sidecar.istio.io/proxyImage: 'ab\"'"), "no error");
  // Whatever the template is.
  EXPECT_THAT(
      error_of_manifest(with_annotation("proxy.istio.io/overrides: x\n        inject.istio.io/templates: gateway"),
                        Injector::istio),
      HasSubstr("FILE: Deployment shop/web: proxy.istio.io/overrides: 'x'"));
  // With its place in the annotation, or in the mesh's configuration.
  for (const std::string_view variable : {"5: x", "A: 'x\"y'", "'a: b': x"}) {
    EXPECT_THAT(error_of_manifest(
                    with_annotation(fmt::format("proxy.istio.io/config: \"proxyMetadata: {{{}}}\"",
                                                std::regex_replace(std::string(variable), std::regex("\""), "\\\""))),
                    Injector::istio),
                HasSubstr("FILE: Deployment shop/web: proxyMetadata: "))
        << variable;
  }
  EXPECT_THAT(error_text([] { (void)by_istio({}, "global.logging.level=a: b"); }),
              HasSubstr("--set global.logging.level: 'a: b': expected a word that is one in YAML"));
  EXPECT_THAT(error_text([] { (void)by_istio({}, "meshConfig.defaultConfig.proxyMetadata.A=x\"y"); }),
              HasSubstr("proxyMetadata: A: 'x\"y'"));
  EXPECT_THAT(error_of_manifest("kind: Pod\nspec: {hostNetwork: true}\nmetadata: {annotations: "
                                "{sidecar.istio.io/interceptionMode: '', proxy.istio.io/config: '['}}\n",
                                Injector::istio),
              "no error");
  // A bad port beside a mode without rules.
  EXPECT_THAT(error_of_manifest(with_annotation("sidecar.istio.io/interceptionMode: NONE\n        "
                                                "traffic.sidecar.istio.io/includeInboundPorts: http"),
                                Injector::istio),
              HasSubstr("'http'"));
}

TEST(ByIstio, PassesOnWhatIstioInitRefusesAndSaysSo) {
  const std::pair<std::string, std::string> all[] = {
      {"traffic.sidecar.istio.io/includeInboundPorts: '0'", "-b 0 "},
      {"traffic.sidecar.istio.io/includeOutboundPorts: any thing", "-q any thing "},
      {"traffic.sidecar.istio.io/includeOutboundPorts: '@/etc/passwd'", "-q @/etc/passwd "},
      {"sidecar.istio.io/agentLogLevel: loud", "--log_output_level=loud"},
      {"proxy.istio.io/config: 'proxyMetadata: {ISTIO_DUAL_STACK: maybe}'", "-p 15001 "},
      {"proxy.istio.io/config: 'interceptionMode: 9'", "-m 9 "},
      {"traffic.sidecar.istio.io/excludeOutboundPorts: \"\\u00a022\"", "-o \u00a022 "},
  };
  for (const auto& [line, expected] : all) {
    const Said said = by_istio({line});
    EXPECT_THAT(said.words, HasSubstr(expected)) << line;
    EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("Pod web: istio-init would end with an error: "))) << line;
  }
}

TEST(ByIstio, InjectsByDefaultForAnyOtherWord) {
  const Said said = by_istio({"sidecar.istio.io/inject: 'no'"});
  EXPECT_THAT(said.words, HasSubstr("-p 15001"));
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("sidecar.istio.io/inject: 'no': neither true nor false")));
  const std::string disabled = "global.proxy.autoInject=disabled";
  EXPECT_THAT(by_istio({}, disabled).words, HasSubstr("global.proxy.autoInject is disabled"));
  EXPECT_THAT(by_istio({"sidecar.istio.io/inject: 'true'"}, disabled).words, HasSubstr("-p 15001"));
}

// Sidetrack's takes the words that its CNI plugin takes.
TEST(BySidetrack, InjectsByAnyWordForTrue) {
  const auto said = [](const char* word) {
    ManifestOptions options;
    options.injector = Injector::sidetrack;
    const Answer answer = answer_for(
        fmt::format("kind: Pod\nmetadata: {{annotations: {{sidecar.istio.io/inject: '{}'}}}}\n", word), options);
    EXPECT_THAT(answer.warnings, IsEmpty());
    return answer.pods.at(0).init.not_injected;
  };
  for (const char* word : {"true", "True", "T", "1"}) EXPECT_EQ(said(word), "") << word;
  for (const char* word : {"false", "FALSE", "f", "0"})
    EXPECT_EQ(said(word), "the annotation sidecar.istio.io/inject is false") << word;
}

TEST(ByIstio, LeavesOutWhatItsTemplateDoesNotPass) {
  const Said said = by_istio({"sidetrack/proxy-uid: '5'", "sidetrack/unknown: x"});
  EXPECT_THAT(said.words, HasSubstr("-u 1337 "));
  EXPECT_THAT(said.warnings, ElementsAre(HasSubstr("sidetrack/proxy-uid: without effect on Istio's injector"),
                                         HasSubstr("sidetrack/unknown: without effect")));
}

// It takes the uid of the pod's own proxy, if that is not root's, in every mode.
TEST(ByIstio, TakesTheUidOfThePodsOwnProxy) {
  const auto with_uid = [](const std::string& uid) {
    return by_istio({"sidecar.istio.io/interceptionMode: TPROXY"}, "",
                    "{containers: [{name: istio-proxy, securityContext: {runAsUser: " + uid + "}}]}")
        .words;
  };
  EXPECT_THAT(with_uid("1234"), HasSubstr("-u 1234 "));
  EXPECT_THAT(with_uid("0"), HasSubstr("-u 1337 "));
}

// The template writes values between double quotes of YAML.
TEST(ByIstio, FoldsLines) {
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/includeInboundPorts: \"80\\n\""}).words, HasSubstr("-b 80  -d"));
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/excludeInboundPorts: \"80\\n\""}).words, HasSubstr("15021,80,15020"));
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/includeOutboundPorts: \"x\\n\\n y z \""}).words,
              HasSubstr("-q x\ny z  --log"));
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/includeInboundPorts: \"80\\r\\n,81\""}).words,
              HasSubstr("-b 80 ,81 -d"));
  EXPECT_THAT(by_istio({"traffic.sidecar.istio.io/excludeInboundPorts: \"80,\\u200381\\u00a0\""}).words,
              HasSubstr("15021,80,81,15020"));
  EXPECT_THAT(by_istio({"sidecar.istio.io/agentLogLevel: 'a\\bc'"}).words, HasSubstr("--log_output_level=a\bc"));
}

// What the pod says of the container itself comes in place of the template's.
TEST(ByIstio, TakesTheArgumentsOfThePodsOwnContainers) {
  const auto with = [](const std::string& annotation, const std::string& spec, const std::string& set = "") {
    return by_istio({annotation}, set, spec).words;
  };
  const std::string own = "{name: NAME, args: [istio-iptables, -p, '5', -u, '6']}";
  const std::string proxy = "containers: [{name: istio-proxy, securityContext: {runAsUser: 7}}]";
  const auto spec = [&](const std::string& name, const std::string& more = "") {
    return "{initContainers: [" + std::regex_replace(own, std::regex("NAME"), name) + "]" +
           (more.empty() ? "" : ", " + more) + "}";
  };
  const std::string cni = "pilot.cni.enabled=true";
  EXPECT_EQ(with("a: b", spec("istio-init")), "-p 5 -u 6");
  EXPECT_EQ(with("a: b", spec("istio-init", proxy)), "-p 5 -u 7");
  EXPECT_EQ(with("a: b", spec("istio-init"), cni), "-p 5 -u 6");
  EXPECT_EQ(with("a: b", spec("istio-validation"), cni), "-p 5 -u 6");
  EXPECT_THAT(with("a: b", spec("istio-validation")), HasSubstr("-p 15001 "));
  // Without one of the template's, too.
  EXPECT_EQ(with("sidecar.istio.io/interceptionMode: NONE", spec("istio-validation", proxy)), "-p 5 -u 7");
  EXPECT_EQ(with("inject.istio.io/templates: gateway", spec("istio-init", proxy)), "-p 5 -u 7");
  EXPECT_EQ(with("sidecar.istio.io/inject: 'false'", spec("istio-init", proxy)), "-p 5 -u 6");
  const std::string overrides =
      R"(proxy.istio.io/overrides: '{"initContainers": [{"name": "istio-init", "args": ["-p", "8"]}]}')";
  EXPECT_EQ(with(overrides, "{}"), "-p 8");
  EXPECT_EQ(with(overrides, spec("istio-init")), "-p 8");
  EXPECT_THAT(with(overrides, "{}", cni), HasSubstr("-p 15001 "));
  // Of a pod that is injected already what the status does not list is the pod's own.
  const auto with_status = [&](const std::string& containers) {
    return by_istio({overrides, "sidecar.istio.io/status: '{\"initContainers\": " + containers + "}'"}).words;
  };
  EXPECT_EQ(with_status("null"), "-p 8");
  EXPECT_EQ(with_status(R"(["istio-proxy"])"), "-p 8");
  EXPECT_THAT(with_status(R"(["istio-init"])"), HasSubstr("-p 15001 "));
  EXPECT_EQ(with_status("x"), "-p 8") << "it cannot be read";
  EXPECT_THAT(
      with("proxy.istio.io/overrides: '{\"containers\": [{\"name\": \"istio-init\", \"args\": [\"x\"]}]}'", "{}"),
      HasSubstr("-p 15001 "));
}

// istiod looks at their types alone.
TEST(ByIstio, PassesOnHelmValues) {
  EXPECT_THAT(by_istio({}, "global.proxy.includeOutboundPorts=a").words, HasSubstr("-q a --log"));
  EXPECT_THAT(by_istio({}, "global.proxy.includeIPRanges=x").words, HasSubstr("-i x "));
  EXPECT_THAT(by_istio({}, "global.proxy.excludeInboundPorts=a").words, HasSubstr("15021,a,15020"));
  EXPECT_THAT(by_istio({}, "meshConfig.proxyInboundListenPort=0").words, HasSubstr("-z 15006 "));
  for (const std::string set : {"meshConfig.proxyListenPort=0", "global.proxy.statusPort=", "global.proxy.statusPort=x",
                                "global.logAsJson=yes", "meshConfig.defaultConfig.interceptionMode=x"})
    EXPECT_THAT(error_text([&] { (void)by_istio({}, set); }), HasSubstr(": expected ")) << set;
}

TEST(ByIstio, TakesEveryValueOfTheTemplate) {
  const std::string usual =
      "-p 15001 -z 15006 -u 1337 -m REDIRECT -i * -x  -b * -d 15090,15021,15020 --log_output_level=";
  EXPECT_EQ(by_istio({}).words, usual + "default:info");
  EXPECT_EQ(by_istio({}, "global.logging.level=default:debug,global.logAsJson=true").words,
            usual + "default:debug --log_as_json");
  EXPECT_EQ(
      by_istio({}, "pilot.cni.enabled=true,global.nativeNftables=true,global.proxy_init.forceApplyIptables=true").words,
      usual + "default:info --run-validation --skip-rule-apply --native-nftables");
  EXPECT_EQ(by_istio({}, "global.proxy_init.forceApplyIptables=true").words, usual + "default:info --force-apply");
  EXPECT_THAT(error_text([] { (void)by_istio({}, "global.logAsJson=maybe"); }),
              HasSubstr("'maybe': expected true or false"));
}

// ---- Of a pod that is injected already

constexpr const char* injected_pod =
    "kind: Pod\nmetadata: {name: web, annotations: {traffic.sidecar.istio.io/includeInboundPorts: '80', "
    "sidecar.istio.io/status: '{\"initContainers\": [\"istio-validation\"]}'}}\nspec:\n"
    "  initContainers:\n  - name: other\n  - name: istio-validation\n    args: [istio-iptables, -p, '16001', -u, "
    "'1337', -m, TPROXY, -i, "
    "'*', -x, '', -b, '*', -d, '15090,15021,123', '--log_output_level=default:info', --run-validation, "
    "--skip-rule-apply]\n"
    "    env: [{name: ISTIO_DUAL_STACK, value: 'true'}, {name: POD, valueFrom: {fieldRef: {fieldPath: "
    "metadata.name}}}]\n";

TEST(PresentInit, SaysItsArguments) {
  const TemporaryFile file(injected_pod);
  ManifestOptions options;
  options.files = {file.path()};
  std::vector<std::string> warnings;
  for (options.injector = Injector::istio;; options.injector = Injector::sidetrack) {
    const auto pods = testing::all_arguments(options, warnings);
    EXPECT_EQ(
        fmt::format("{}", fmt::join(words(pods.at(0).init), " ")),
        "-p 16001 -u 1337 -m TPROXY -i * -x  -b * -d 15090,15021,123 --log_output_level=default:info --run-validation "
        "--skip-rule-apply");
    EXPECT_THAT(manifest::why_text(pods),
                HasSubstr("  -m                  TPROXY           container istio-validation\n"));
    EXPECT_THAT(manifest::why_text(pods),
                HasSubstr("  --skip-rule-apply                    container istio-validation\n"));
    if (options.injector == Injector::sidetrack) break;
  }
  EXPECT_THAT(warnings, IsEmpty());
}

// ---- Helm values

TEST(HelmValues, AreSetAsHelmAndIstioctlDo) {
  HelmValues values;
  set_helm_values(values, "global.proxy.includeIPRanges=10.0.0.0/8,11.0.0.0/8");
  EXPECT_EQ(values.at("global.proxy.includeIPRanges").text, "10.0.0.0/8,11.0.0.0/8");
  set_helm_values(values, R"(values.global.proxy.includeIPRanges=10.0.0.0/8\,11.0.0.0/8,global.proxy.statusPort=)");
  EXPECT_EQ(values.at("global.proxy.includeIPRanges").text, "10.0.0.0/8,11.0.0.0/8");
  EXPECT_EQ(values.at("global.proxy.statusPort").text, "");
}

// What a profile or a platform sets, unless something else does.
TEST(HelmValues, OfProfilesCountLast) {
  std::vector<std::string> warnings;
  const auto with = [&](const std::string& set, const std::string& profile = "") {
    HelmValues values;
    if (!profile.empty()) values["spec.profile"] = {profile, "a: spec.profile"};
    if (!set.empty()) set_helm_values(values, set);
    apply_profiles(values, warnings);
    const auto text = [&](std::string_view name) {
      const auto found = values.find(name);
      return found == values.end() ? std::string("-") : found->second.text;
    };
    return text("pilot.cni.enabled") + " " + text("meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE") +
           " " + text("meshConfig.defaultConfig.proxyMetadata.ISTIO_META_ENABLE_HBONE");
  };
  EXPECT_EQ(with(""), "- - -");
  EXPECT_EQ(with("profile=preview"), "- true -");
  EXPECT_EQ(with("global.profile=preview"), "- true -");
  EXPECT_EQ(with("values.profile=ambient"), "- - true");
  EXPECT_EQ(with("platform=openshift"), "true - -");
  EXPECT_EQ(with("global.platform=openshift,pilot.cni.enabled=false"), "false - -");
  EXPECT_EQ(with("profile=openshift"), "true - -") << "istioctl's: the chart has none";
  // Of an IstioOperator, which turns the plugin on or off itself.
  EXPECT_EQ(with("", "default"), "false - -");
  EXPECT_EQ(with("", "ambient"), "true - true");
  EXPECT_EQ(with("", "openshift-ambient"), "true - true");
  EXPECT_EQ(with("profile=ambient", "default"), "true - true");
  EXPECT_EQ(with("components.cni.enabled=false", "openshift"), "false - -");
  EXPECT_EQ(with("global.platform=openshift", "default"), "false - -");
  EXPECT_EQ(with("meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE=false", "preview"), "false false -");
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_EQ(with("platform=moon"), "- - -");
  EXPECT_THAT(warnings, ElementsAre("--set platform moon: not known, and what it sets is not taken into account"));
}

TEST(HelmValues, SayWhichPodsAreInjected) {
  const auto why = [](const HelmValues& values, const PodMetadata& pod) {
    return why_not_injected(pod, values, Injector::istio).not_injected;
  };
  using Operator = LabelRequirement::Operator;
  const std::vector<LabelSelector> web{{}, {{"app", Operator::in, {"web"}}}};
  PodMetadata pod;
  pod.labels = {{"app", "web"}};
  PodMetadata asks = pod;
  asks.annotations = {{"sidecar.istio.io/inject", "true"}};
  const HelmValues never{{"sidecarInjectorWebhook.neverInjectSelector", {"", "a: never", false, web}}};
  EXPECT_EQ(why(never, pod), "a: never selects its labels");
  EXPECT_EQ(why(never, asks), "");
  EXPECT_EQ(why(never, {}), "");
  HelmValues always{{"sidecarInjectorWebhook.alwaysInjectSelector", {"", "a: always", false, web}},
                    {"global.proxy.autoInject", {"disabled", "a: auto"}}};
  EXPECT_EQ(why(always, pod), "");
  EXPECT_EQ(why(always, {}), "a: auto is disabled, and the pod does not ask for it");
  always.insert(never.begin(), never.end());
  EXPECT_EQ(why(always, pod), "a: never selects its labels");
  HelmValues templates;
  set_helm_values(templates, "sidecarInjectorWebhook.defaultTemplates={gateway,mine}");
  EXPECT_EQ(why(templates, {}),
            "--set sidecarInjectorWebhook.defaultTemplates is gateway,mine: not sidecar, the template with an init "
            "container");
  asks.annotations = {{"inject.istio.io/templates", "sidecar"}};
  EXPECT_EQ(why(templates, asks), "");
  set_helm_values(templates, "sidecarInjectorWebhook.defaultTemplates=");
  EXPECT_EQ(why(templates, {}), "");
  EXPECT_THAT(error_text([&] { set_helm_values(templates, "sidecarInjectorWebhook.neverInjectSelector[0].a=b"); }),
              HasSubstr("expected it in a file of --values"));
  set_helm_values(templates, "global.proxy.autoInject=off");
  EXPECT_THAT(error_text([&] { check_helm_values(templates); }), HasSubstr("'off': expected enabled or disabled"));
}

// An enumeration of Istio's configuration may be given by its number.
TEST(HelmValues, TheModeMayBeANumber) {
  HelmValues values;
  set_helm_values(values, "meshConfig.defaultConfig.interceptionMode=1");
  EXPECT_EQ(values.at("meshConfig.defaultConfig.interceptionMode").text, "TPROXY");
  EXPECT_THAT(by_istio({"proxy.istio.io/config: '{interceptionMode: 1}'"}).words, HasSubstr("-m TPROXY"));
  EXPECT_THAT(by_istio({"proxy.istio.io/config: '{interceptionMode: 1.0}'"}).words, HasSubstr("-m TPROXY"));
  EXPECT_THAT(error_of_manifest(with_annotation("proxy.istio.io/config: '{interceptionMode: 1.5}'"), Injector::istio),
              HasSubstr("interceptionMode: a number '1.5': expected a string"));
  EXPECT_THAT(error_of_manifest(with_annotation("proxy.istio.io/config: '{interceptionMode: 3}'")),
              HasSubstr("interceptionMode: '3': expected one of REDIRECT|TPROXY|NONE"));
}

TEST(HelmValues, ThatAreNotKnownAreRefused) {
  HelmValues values;
  const auto set = [&](std::string_view text) { return error_text([&] { set_helm_values(values, text); }); };
  EXPECT_EQ(set("global.proxy.includeIPranges=*"),
            "--set: 'global.proxy.includeIPranges': not a value that istio-init's arguments depend on; did you mean "
            "global.proxy.includeIPRanges?");
  EXPECT_THAT(set("global.hub=x"), HasSubstr("these are: global.proxy.includeIPRanges, "));
  EXPECT_THAT(set("global.proxy.statusPort"), HasSubstr("expected NAME=VALUE"));
  EXPECT_THAT(set("=5"), HasSubstr("expected NAME=VALUE"));
  EXPECT_THAT(set(""), HasSubstr("expected NAME=VALUE"));
}

std::string error_with(const std::string& set) {
  HelmValues values;
  set_helm_values(values, set);
  return error_text([&] { (void)istio_init_arguments({}, values); });
}

TEST(HelmValues, AreCheckedAsTheOptionsAre) {
  EXPECT_EQ(
      error_with("global.proxy.includeInboundPorts=http"),
      "--set global.proxy.includeInboundPorts: 'http': expected a port from 1 to 65535, or a range such as 9000-9100");
  EXPECT_THAT(error_with("global.proxy.statusPort=http"), HasSubstr("expected a port from 1 to 65535, or 0 for none"));
  EXPECT_THAT(error_with("meshConfig.proxyListenPort=0"), HasSubstr("--set meshConfig.proxyListenPort: '0'"));
  EXPECT_EQ(error_with("global.proxy.statusPort="), "no error");
}

TEST(HelmValues, OfAFileAreStringsOrNumbers) {
  const TemporaryFile file("global:\n  proxy:\n    includeIPRanges: true\n");
  ManifestOptions options;
  options.values = {file.path()};
  std::vector<std::string> warnings;
  EXPECT_THAT(error_text([&] { (void)testing::all_arguments(options, warnings); }),
              HasSubstr("line 3: global.proxy.includeIPRanges: a boolean 'true': expected a string or a number"));
}

std::vector<InitArgument> arguments_with(const std::vector<std::string>& files, const std::string& set = "") {
  const TemporaryFile file("kind: Pod\n");
  std::vector<std::unique_ptr<TemporaryFile>> values;
  ManifestOptions options;
  options.files = {file.path()};
  options.injector = Injector::sidetrack;
  for (const std::string& text : files) {
    values.push_back(std::make_unique<TemporaryFile>(text));
    options.values.push_back(values.back()->path());
  }
  if (!set.empty()) set_helm_values(options.set, set);
  std::vector<std::string> warnings;
  return testing::all_arguments(options, warnings)[0].init.arguments;
}

TEST(HelmValues, OfNullAreTakenBack) {
  const std::string first = "global: {proxy: {includeIPRanges: 10.0.0.0/8, statusPort: 5}}\n";
  const auto range = [](const std::vector<InitArgument>& arguments) { return arguments.at(4).value; };
  ASSERT_EQ(arguments_with({first}).at(4).option, "-i");
  EXPECT_EQ(range(arguments_with({first})), "10.0.0.0/8");
  for (const std::string later : {"global: {proxy: {includeIPRanges: null}}\n", "global: {proxy: ~}\n", "global:\n"}) {
    EXPECT_EQ(range(arguments_with({first, later})), "*") << later;
    EXPECT_EQ(range(arguments_with({first, later, first})), "10.0.0.0/8") << later;
  }
  EXPECT_EQ(range(arguments_with({first}, "global.proxy.includeIPRanges=null")), "*");
  EXPECT_EQ(arguments_with({first}, "global.proxy.includeIPRanges=null").back().value, "15090,15021,5");
}

TEST(HelmValues, ThatNoPodCouldHaveAreRefusedWithoutOne) {
  const auto error = [](const std::vector<std::string>& files, const std::string& set = "") {
    return error_text([&] { (void)arguments_with(files, set); });
  };
  EXPECT_EQ(
      error({}, "global.proxy.includeInboundPorts=http"),
      "--set global.proxy.includeInboundPorts: 'http': expected a port from 1 to 65535, or a range such as 9000-9100");
  EXPECT_THAT(error({}, "meshConfig.proxyListenPort=99999"), HasSubstr("--set meshConfig.proxyListenPort: '99999'"));
  EXPECT_THAT(error({}, "meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE=maybe"),
              HasSubstr("proxyMetadata.ISTIO_META_DNS_CAPTURE: ISTIO_META_DNS_CAPTURE: 'maybe': expected"));
  EXPECT_THAT(error({"global: {proxy: 5}\n"}), HasSubstr("line 1: global.proxy: a number '5': expected a mapping"));
  EXPECT_THAT(error({"kind: ConfigMap\n"}), HasSubstr("kind: a string 'ConfigMap': expected Helm values, or an"));
  EXPECT_THAT(error({"meshConfig: {defaultConfig: {proxyMetadata: {A: true}}}\n"}),
              HasSubstr("meshConfig.defaultConfig.proxyMetadata.A: a boolean 'true': expected a string, in quotes"));
}

// What counts for all pods may be as long as a pod's annotations.
TEST(HelmValues, AreNoLongerThanAnnotations) {
  const auto error = [](std::size_t size) {
    const std::string values = "meshConfig: {defaultConfig: {proxyMetadata: {A: " + std::string(size, 'x') + "}}}\n";
    return error_text([&] { (void)arguments_with({values}, ""); });
  };
  const std::size_t most = 262'144 - std::string_view("meshConfig.defaultConfig.proxyMetadata.A").size();
  EXPECT_EQ(error(most), "no error");
  EXPECT_THAT(error(most + 1), HasSubstr("Helm values: 262145 bytes: expected at most 262144; every pod gets them"));
}

// ---- --pod

CommandLine parse_with_pod(const std::string& manifest, std::vector<std::string_view> arguments) {
  const TemporaryFile file(manifest);
  arguments.insert(arguments.end(), {"--pod", file.path()});
  return parse(
      arguments, [](std::string_view) { return std::optional<std::string_view>("9999"); }, manifest::options_of_pod);
}

constexpr const char* pod =
    "kind: Pod\nmetadata:\n  name: web\n  annotations:\n    traffic.sidecar.istio.io/includeInboundPorts: 80,443\n"
    "    proxy.istio.io/config: '{proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}}'\n";

TEST(Pod, StandsForItsOptionsAndItsVariables) {
  const CommandLine line = parse_with_pod(pod, {"sidetrack", "render"});
  EXPECT_THAT(line.config.inbound_ports.list, ElementsAre(80, 443));
  EXPECT_TRUE(line.config.outbound_ranges.all);
  EXPECT_THAT(line.config.inbound_exclude_ports, ElementsAre(15090, 15021, 15020));
  EXPECT_THAT(line.config.proxy_uids, ElementsAre(1337U));
  EXPECT_TRUE(line.config.redirect_dns);
  EXPECT_EQ(line.config.tunnel_port, 15008) << "of this program's environment";
  EXPECT_TRUE(line.dry_run);
}

TEST(Pod, ThatIsInjectedStandsForItsContainer) {
  const CommandLine line = parse_with_pod(injected_pod, {"sidetrack", "render"});
  EXPECT_EQ(line.config.mode, Mode::tproxy);
  EXPECT_EQ(line.config.proxy_port, 16001);
  EXPECT_TRUE(line.config.inbound_ports.all);
  EXPECT_THAT(line.config.inbound_exclude_ports, ElementsAre(15090, 15021, 123));
  EXPECT_TRUE(line.config.dual_stack);
  EXPECT_FALSE(line.run_validation);
}

// All options in one word are none of istio-init's; a shell may understand them.
TEST(Pod, WhoseArgumentsAreOneWordIsRefused) {
  const std::string text =
      "kind: Pod\nspec: {initContainers: [{name: istio-init, args: ['istio-iptables -p 15001']}]}\n";
  EXPECT_EQ(error_of_manifest(text, Injector::istio),
            "FILE, line 2: Pod: container istio-init: args: a string 'istio-iptables -p 15001': expected "
            "istio-iptables, or an option, first");
}

TEST(Pod, NamesNoFilesOfItsReader) {
  for (const std::string word :
       {"-d, '@/etc/passwd'", "'-d@/etc/passwd'", "'--istio-local-exclude-ports=@/etc/passwd'"}) {
    const std::string text =
        "kind: Pod\nspec: {initContainers: [{name: istio-init, args: [istio-iptables, " + word + "]}]}\n";
    EXPECT_THAT(error_text([&] {
                  (void)parse_with_pod(text, {"sidetrack", "render"});
                }),
                HasSubstr("not the name of a file"))
        << word;
  }
  EXPECT_THAT(
      error_text([] {
        (void)parse_with_pod(
            "kind: Pod\nmetadata: {annotations: {traffic.sidecar.istio.io/includeOutboundPorts: '@/etc/passwd'}}\n",
            {"sidetrack", "render"});
      }),
      HasSubstr("traffic.sidecar.istio.io/includeOutboundPorts: '@/etc/passwd': expected the values themselves"));
}

TEST(Pod, TakesWhatItDoesNotSay) {
  const CommandLine line =
      parse_with_pod(pod, {"sidetrack", "render", "--dual-stack", "--redirect-dns=false", "-e", "5"});
  EXPECT_TRUE(line.config.dual_stack);
  EXPECT_FALSE(line.config.redirect_dns);
  EXPECT_EQ(line.config.tunnel_port, 5);
}

TEST(Pod, ExplainsItsPlan) {
  const CommandLine line = parse_with_pod(pod, {"sidetrack", "explain", "out", "tcp", "10.0.0.1:80"});
  EXPECT_TRUE(line.plan);
  EXPECT_TRUE(works_by_plan(line));
}

TEST(Pod, IsOneThatIsInjectedAndStandsAlone) {
  const auto error = [](const std::string& manifest, std::vector<std::string_view> arguments) {
    return error_text([&] { (void)parse_with_pod(manifest, arguments); });
  };
  EXPECT_THAT(error(pod, {"sidetrack", "render", "-b", "80"}),
              HasSubstr("-b, --istio-inbound-ports: the manifest of --pod says it"));
  EXPECT_THAT(error(pod, {"sidetrack", "render", "-c", "eth0"}), HasSubstr("the manifest of --pod says it"));
  EXPECT_THAT(error(pod, {"sidetrack", "apply"}), HasSubstr("--pod: not an option of apply"));
  EXPECT_THAT(error("kind: Pod\n---\nkind: Job\nmetadata: {name: b}\nspec: {template: {}}\n", {"sidetrack", "render"}),
              HasSubstr("2 pods that are injected: Pod, Job b: expected one"));
  EXPECT_THAT(error("kind: Service\n", {"sidetrack", "render"}), HasSubstr("no pod: expected a Pod"));
  EXPECT_THAT(error("kind: Pod\nspec: {hostNetwork: true}\n", {"sidetrack", "render"}),
              HasSubstr("not injected: spec.hostNetwork is true; it has no rules to show"));
  EXPECT_THAT(error_text([] {
                (void)parse_arguments({"sidetrack", "render", "--set", "global.proxy.statusPort=0"});
              }),
              HasSubstr("Helm values without a pod"));
  EXPECT_THAT(error_text([] { (void)parse_arguments({"sidetrack", "args"}); }), HasSubstr("args: no file given"));
  EXPECT_THAT(error_text([] {
                (void)parse_arguments({"sidetrack", "inject", "-f", "c", "--template", "a", "--template", "b"});
              }),
              HasSubstr("--template: 'b': expected one file, and 'a' is given already"));
  EXPECT_THAT(error(pod, {"sidetrack", "render", "--pod", "a"}), HasSubstr("expected one file, and 'a' is given"));
  EXPECT_THAT(error_text([] {
                (void)parse_arguments({"sidetrack", "render", "--pod", "-"});
              }),
              HasSubstr("only the program reads manifests"));
}

}  // namespace
}  // namespace sidetrack
