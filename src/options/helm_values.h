// SPDX-License-Identifier: GPL-2.0-or-later
// Istio's Helm values that count where a pod has no annotation of its own.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace sidetrack {

struct HelmValueInfo {
  std::string_view name;
  std::string_view preset;  // in Istio's chart
  bool is_switch = false;   // true or false
};
[[nodiscard]] std::span<const HelmValueInfo> helm_value_table();

struct HelmValue {
  std::string text;
  std::string from;      // "--set global.proxy.includeIPRanges"
  bool is_null = false;  // as if nobody had set it
};

// By HelmValueInfo::name, and by the names of the mesh's variables: below this one.
using HelmValues = std::map<std::string, HelmValue, std::less<>>;
inline constexpr std::string_view proxy_metadata_value = "meshConfig.defaultConfig.proxyMetadata";

// A value as it is written, and by what: an annotation's name, or HelmValue::from.
struct Setting {
  std::string_view value;
  std::string_view from;  // empty: the default
};

// What is set, else what the chart has.
[[nodiscard]] Setting helm_setting(const HelmValues& values, std::string_view name);

// Whether a switch is on. Throws Error (usage) for what is neither true nor false.
[[nodiscard]] bool is_on(const HelmValues& values, std::string_view name);

// "NAME=VALUE[,NAME=VALUE]…" of --set, as Helm and istioctl take it: `values.` may be before a name, a comma that no
// name follows is the value's, with or without a backslash before it, and null is no value. Throws Error (usage) for a
// name that is not in the table.
void set_helm_values(HelmValues& values, std::string_view text);

}  // namespace sidetrack
