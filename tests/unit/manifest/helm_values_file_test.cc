// SPDX-License-Identifier: GPL-2.0-or-later
// Files of Helm values: what is taken of them, and what is said of wrong ones.
#include "manifest/helm_values_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "manifest/read.h"
#include "model/error.h"

namespace sidetrack::manifest {
namespace {

// Each value, where it is from; a null is "-".
std::string values_of(const std::vector<std::string>& files) {
  HelmValues values;
  std::string said;
  try {
    for (const std::string& file : files) read_helm_values(values, parse_documents(file, "values.yaml"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  for (const auto& [name, value] : values)
    said += fmt::format("{} = {} of {}\n", name, value.is_null ? "-" : value.text, value.from);
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

// It has the chart's values below one key, and the mesh's configuration beside them, which counts.
TEST(HelmValuesFile, MayBeAnIstioOperator) {
  EXPECT_EQ(values_of({"kind: IstioOperator\nspec:\n  meshConfig: {proxyListenPort: 1}\n  values:\n    meshConfig: "
                       "{proxyListenPort: 2, proxyInboundListenPort: 3}\n    global: {proxy: {statusPort: 4}}\nglobal: "
                       "{proxy: {statusPort: 5}}\n"}),
            "global.proxy.statusPort = 4 of values.yaml: global.proxy.statusPort\n"
            "meshConfig.proxyInboundListenPort = 3 of values.yaml: meshConfig.proxyInboundListenPort\n"
            "meshConfig.proxyListenPort = 1 of values.yaml: meshConfig.proxyListenPort\n");
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
       "values.yaml, line 3: meshConfig.defaultConfig.proxyMetadata.A: a number '5': expected a string"},
      {"kind: IstioOperator\nspec: a\n", "values.yaml, line 2: spec: a string 'a': expected a mapping"},
  };
  for (const auto& [text, expected] : all) EXPECT_EQ(values_of({text}), expected) << text;
}

}  // namespace
}  // namespace sidetrack::manifest
