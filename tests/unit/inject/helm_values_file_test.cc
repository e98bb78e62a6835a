// SPDX-License-Identifier: GPL-2.0-or-later
// Files of Helm values: what is taken of them, and what is said of wrong ones.
#include "inject/manifest/helm_values_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "inject/manifest/read.h"
#include "model/error.h"

namespace sidetrack::manifest {
namespace {

// Each value, where it is from; a null is "-".
std::string values_of(const std::vector<std::string>& files) {
  HelmValues values;
  std::vector<std::string> warnings;
  std::string said;
  try {
    for (const std::string& file : files) read_helm_values(values, parse_documents(file, "values.yaml"), warnings);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  for (const auto& [name, value] : values)
    said += fmt::format("{} = {} of {}\n", name, value.is_null ? "-" : value.text, value.from);
  for (const std::string& warning : warnings) said += warning + "\n";
  return said;
}

TEST(HelmValuesFile, HasTheValuesThatCount) {
  const std::string chart = R"(
global:
  proxy: {statusPort: 0x10, includeIPRanges: 10.0.0.0/8, excludeIPRanges: , image: x}
  other: [1]
meshConfig:
  proxyListenPort: '7'
  defaultConfig:
    interceptionMode: TPROXY
    proxyMetadata: {A: b, C: }
)";
  const std::string expected =
      "global.proxy.excludeIPRanges = - of values.yaml: global.proxy.excludeIPRanges\n"
      "global.proxy.includeIPRanges = 10.0.0.0/8 of values.yaml: global.proxy.includeIPRanges\n"
      "global.proxy.statusPort = 16 of values.yaml: global.proxy.statusPort\n"
      "meshConfig.defaultConfig.interceptionMode = TPROXY of values.yaml: meshConfig.defaultConfig.interceptionMode\n"
      "meshConfig.defaultConfig.proxyMetadata.A = b of values.yaml: meshConfig.defaultConfig.proxyMetadata.A\n"
      "meshConfig.defaultConfig.proxyMetadata.C = - of values.yaml: meshConfig.defaultConfig.proxyMetadata.C\n"
      "meshConfig.proxyListenPort = 7 of values.yaml: meshConfig.proxyListenPort\n";
  EXPECT_EQ(values_of({chart}), expected);
  EXPECT_EQ(values_of({"---\n# nothing\n---" + chart}), expected);
  // A null takes all of a mapping back; of variables each.
  EXPECT_EQ(
      values_of({chart, "meshConfig: {defaultConfig: {proxyMetadata: }, proxyListenPort: 8}\nglobal: {proxy: }\n"}),
      "global.proxy.autoInject = - of values.yaml: global.proxy.autoInject\n"
      "global.proxy.excludeIPRanges = - of values.yaml: global.proxy.excludeIPRanges\n"
      "global.proxy.excludeInboundPorts = - of values.yaml: global.proxy.excludeInboundPorts\n"
      "global.proxy.excludeOutboundPorts = - of values.yaml: global.proxy.excludeOutboundPorts\n"
      "global.proxy.includeIPRanges = - of values.yaml: global.proxy.includeIPRanges\n"
      "global.proxy.includeInboundPorts = - of values.yaml: global.proxy.includeInboundPorts\n"
      "global.proxy.includeOutboundPorts = - of values.yaml: global.proxy.includeOutboundPorts\n"
      "global.proxy.statusPort = - of values.yaml: global.proxy.statusPort\n"
      "meshConfig.defaultConfig.interceptionMode = TPROXY of values.yaml: "
      "meshConfig.defaultConfig.interceptionMode\n"
      "meshConfig.proxyListenPort = 8 of values.yaml: meshConfig.proxyListenPort\n");
}

// As protobuf and Helm's chart name them, too.
TEST(HelmValuesFile, HasOtherNames) {
  EXPECT_EQ(
      values_of(
          {"cni: {enabled: true}\nmeshConfig: {default_config: {proxy_metadata: {A: b}}, proxy_listen_port: 7}\n"}),
      "meshConfig.defaultConfig.proxyMetadata.A = b of values.yaml: meshConfig.defaultConfig.proxyMetadata.A\n"
      "meshConfig.proxyListenPort = 7 of values.yaml: meshConfig.proxyListenPort\n"
      "pilot.cni.enabled = true of values.yaml: pilot.cni.enabled\n");
  EXPECT_EQ(values_of({"cni: {enabled: true}\npilot: {cni: {enabled: false}}\n"}),
            "pilot.cni.enabled = false of values.yaml: pilot.cni.enabled\n");
  EXPECT_EQ(
      values_of({"global: {proxy: {excludeInboundPorts: 22}}\n"}),
      "global.proxy.excludeInboundPorts = 22 of values.yaml: global.proxy.excludeInboundPorts\n"
      "values.yaml, line 1: global.proxy.excludeInboundPorts: a number: Istio's injector then refuses every pod; write "
      "it in quotes\n");
}

// It has the chart's values below one key, and the mesh's configuration beside them, which counts.
TEST(HelmValuesFile, MayBeAnIstioOperator) {
  EXPECT_EQ(values_of({"kind: IstioOperator\nspec:\n  meshConfig: {proxyListenPort: 1}\n  values:\n    meshConfig: "
                       "{proxyListenPort: 2, proxyInboundListenPort: 3}\n    global: {proxy: {statusPort: 4}}\nglobal: "
                       "{proxy: {statusPort: 5}}\n"}),
            "global.proxy.statusPort = 4 of values.yaml: global.proxy.statusPort\n"
            "meshConfig.proxyInboundListenPort = 3 of values.yaml: meshConfig.proxyInboundListenPort\n"
            "meshConfig.proxyListenPort = 1 of values.yaml: meshConfig.proxyListenPort\n"
            "spec.profile = default of values.yaml: spec.profile\n");
}

// As `istioctl manifest generate` has it: the component turns the plugin on, and nothing is before unvalidatedValues.
TEST(HelmValuesFile, OfAnIstioOperatorHasItsOwnOrder) {
  const std::string start = "kind: IstioOperator\nspec:\n  profile: empty\n";
  const std::string profile = "spec.profile = empty of values.yaml: spec.profile\n";
  EXPECT_EQ(values_of({start + "  components: {cni: {enabled: true}}\n"}),
            "pilot.cni.enabled = true of values.yaml: pilot.cni.enabled\n" + profile);
  EXPECT_EQ(values_of({start + "  values: {pilot: {cni: {enabled: true}}}\n"}),
            profile +
                "values.yaml, line 4: spec.values.pilot.cni.enabled: without effect: an IstioOperator says it by "
                "spec.components.cni.enabled\n");
  EXPECT_EQ(
      values_of({start + "  meshConfig: {proxyListenPort: 1}\n  components: {cni: {enabled: true}}\n  "
                         "unvalidatedValues: {pilot: {cni: {enabled: false}}, meshConfig: {proxyListenPort: 2}}\n"}),
      "meshConfig.proxyListenPort = 2 of values.yaml: meshConfig.proxyListenPort\n"
      "pilot.cni.enabled = false of values.yaml: pilot.cni.enabled\n" +
          profile);
  // Its profile is not the chart's.
  EXPECT_EQ(values_of({start + "  values: {profile: demo}\n"}), "profile = demo of values.yaml: profile\n" + profile);
}

TEST(HelmValuesFile, HasLists) {
  EXPECT_EQ(values_of({"sidecarInjectorWebhook: {defaultTemplates: [sidecar, mine]}\n"}),
            "sidecarInjectorWebhook.defaultTemplates = sidecar,mine of values.yaml: "
            "sidecarInjectorWebhook.defaultTemplates\n");
  HelmValues values;
  std::vector<std::string> warnings;
  read_helm_values(values,
                   parse_documents("sidecarInjectorWebhook:\n  neverInjectSelector:\n  - matchLabels: {a: b}\n    "
                                   "matchExpressions: [{key: c, operator: NotIn, values: [d, e]}]\n  - {}\n"
                                   "  - matchExpressions: [{key: f, operator: Exists}]\n",
                                   "values.yaml"),
                   warnings);
  const auto& selectors = values.at("sidecarInjectorWebhook.neverInjectSelector").selectors;
  ASSERT_EQ(selectors.size(), 3U);
  EXPECT_TRUE(selects(selectors[0], {{"a", "b"}}));
  EXPECT_TRUE(selects(selectors[0], {{"a", "b"}, {"c", "f"}}));
  EXPECT_FALSE(selects(selectors[0], {{"a", "b"}, {"c", "e"}}));
  EXPECT_FALSE(selects(selectors[0], {{"a", "c"}}));
  EXPECT_FALSE(selects(selectors[1], {{"a", "b"}}));
  EXPECT_TRUE(selects(selectors[2], {{"f", ""}}));
  EXPECT_FALSE(selects(selectors[2], {{"a", "b"}}));
}

// The text of a template of the user's own is not evaluated.
TEST(HelmValuesFile, WarnsOfTemplatesThatMayChangeIstioInit) {
  EXPECT_EQ(values_of({"sidecarInjectorWebhook:\n  templates:\n    mine: |\n      metadata: {}\n    sidecar: |\n      "
                       "a: b\n    init: |\n      - name: istio-init\n"}),
            "values.yaml, line 5: sidecarInjectorWebhook.templates.sidecar: not evaluated: the arguments are those of "
            "Istio's own template\nvalues.yaml, line 7: sidecarInjectorWebhook.templates.init: not evaluated: the "
            "arguments are those of Istio's own template\n");
}

TEST(HelmValuesFile, SaysInWhichLineWhatIsWrong) {
  const std::pair<std::string, std::string> all[] = {
      {"\n- a\n", "values.yaml, line 2: the document: a list: expected a mapping of Helm values"},
      {"kind: Pod\n", "values.yaml, line 1: kind: a string 'Pod': expected Helm values, or an IstioOperator"},
      {"\nglobal: 5\n", "values.yaml, line 2: global: a number '5': expected a mapping"},
      {"global:\n  proxy: [a]\n", "values.yaml, line 2: global.proxy: a list: expected a mapping"},
      {"global:\n  proxy:\n    statusPort: {}\n",
       "values.yaml, line 3: global.proxy.statusPort: a mapping: expected a string or a number"},
      {"global:\n  proxy:\n    statusPort: yes\n",
       "values.yaml, line 3: global.proxy.statusPort: a boolean 'yes': expected a string or a number"},
      {"meshConfig:\n  defaultConfig:\n    proxyMetadata: a\n",
       "values.yaml, line 3: meshConfig.defaultConfig.proxyMetadata: a string 'a': expected a mapping"},
      {"meshConfig:\n  defaultConfig:\n    proxyMetadata: {A: 5}\n",
       "values.yaml, line 3: meshConfig.defaultConfig.proxyMetadata.A: a number '5': expected a string, in quotes"},
      {"kind: IstioOperator\nspec: a\n", "values.yaml, line 2: spec: a string 'a': expected a mapping"},
      {"global: {proxy: {}}\nglobal: {}\n", "values.yaml, line 2: 'global': duplicate key"},
      {"sidecarInjectorWebhook: {defaultTemplates: a}\n",
       "values.yaml, line 1: sidecarInjectorWebhook.defaultTemplates: a string 'a': expected a list of strings"},
      {"sidecarInjectorWebhook: {neverInjectSelector: [{matchExpressions: [{key: a, operator: in, values: [b]}]}]}\n",
       "values.yaml, line 1: sidecarInjectorWebhook.neverInjectSelector: a mapping: expected key, operator (In, NotIn, "
       "Exists or DoesNotExist) and, for the first two, values"},
      {"sidecarInjectorWebhook: {alwaysInjectSelector: [{app: a}]}\n",
       "values.yaml, line 1: sidecarInjectorWebhook.alwaysInjectSelector: app: a string 'a': expected a mapping "
       "matchLabels, or a list matchExpressions"},
  };
  for (const auto& [text, expected] : all) EXPECT_EQ(values_of({text}), expected) << text;
}

}  // namespace
}  // namespace sidetrack::manifest
