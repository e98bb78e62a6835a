// SPDX-License-Identifier: GPL-2.0-or-later
// Istio's Helm values that count where a pod has no annotation of its own.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

struct HelmValueInfo {
  enum class Kind : std::uint8_t {
    text,
    string,     // no number, which Istio's injector refuses
    boolean,    // true or false
    list,       // of names, without commas
    selectors,  // of labels; in a file alone
  };
  std::string_view name;
  std::string_view preset;  // in Istio's chart
  Kind kind = Kind::text;
};
[[nodiscard]] std::span<const HelmValueInfo> helm_value_table();

using Labels = std::map<std::string, std::string, std::less<>>;

struct LabelRequirement {
  enum class Operator : std::uint8_t { in, not_in, exists, does_not_exist };
  std::string key;
  Operator op;
  std::vector<std::string> values;  // of the first two
};
using LabelSelector = std::vector<LabelRequirement>;

// As Kubernetes has it, but that a selector without requirements selects nothing.
[[nodiscard]] bool selects(const LabelSelector& selector, const Labels& labels);

struct HelmValue {
  std::string text;      // of a list: "sidecar,mine"
  std::string from;      // "--set global.proxy.includeIPRanges"
  bool is_null = false;  // as if nobody had set it
  std::vector<LabelSelector> selectors{};
};

// By HelmValueInfo::name, and by the names of the mesh's variables: below this one.
using HelmValues = std::map<std::string, HelmValue, std::less<>>;
inline constexpr std::string_view proxy_metadata_value = "meshConfig.defaultConfig.proxyMetadata";
inline constexpr std::string_view mode_value = "meshConfig.defaultConfig.interceptionMode";
inline constexpr std::string_view cni_value = "pilot.cni.enabled";
inline constexpr std::string_view cni_value_of_chart = "cni.enabled";  // the same, of Helm's chart alone
inline constexpr std::string_view default_templates_value = "sidecarInjectorWebhook.defaultTemplates";
inline constexpr std::string_view never_inject_value = "sidecarInjectorWebhook.neverInjectSelector";
inline constexpr std::string_view always_inject_value = "sidecarInjectorWebhook.alwaysInjectSelector";
// The profile of an IstioOperator, which is not the chart's "profile": there if the values are one's.
inline constexpr std::string_view operator_profile_value = "spec.profile";

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

// Adds what the profiles and the platform among the values set, where nothing else does. `warnings` gets the names of
// those that are not known.
void apply_profiles(HelmValues& values, std::vector<std::string>& warnings);

}  // namespace sidetrack
