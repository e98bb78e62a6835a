// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/helm_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "model/error.h"
#include "model/printable.h"
#include "options/annotations.h"
#include "options/suggest.h"

namespace sidetrack {
namespace {

constexpr auto string_value = HelmValueInfo::Kind::string;
constexpr auto boolean_value = HelmValueInfo::Kind::boolean;
constexpr auto list_value = HelmValueInfo::Kind::list;
constexpr auto selectors_value = HelmValueInfo::Kind::selectors;
constexpr HelmValueInfo values_of_chart[] = {
    {"global.proxy.includeIPRanges", "*", string_value},
    {"global.proxy.excludeIPRanges", "", string_value},
    {"global.proxy.includeInboundPorts", "*", string_value},
    {"global.proxy.excludeInboundPorts", "", string_value},
    {"global.proxy.includeOutboundPorts", "", string_value},
    {"global.proxy.excludeOutboundPorts", "", string_value},
    {"global.proxy.statusPort", "15020"},
    {mode_value, "REDIRECT"},
    {"meshConfig.proxyListenPort", "15001"},
    {"meshConfig.proxyInboundListenPort", "15006"},
    {"global.proxy.autoInject", "enabled"},
    {"global.logging.level", "default:info"},
    {"global.logAsJson", "false", boolean_value},
    {"global.nativeNftables", "false", boolean_value},
    {cni_value, "false", boolean_value},
    {"global.proxy_init.forceApplyIptables", "false", boolean_value},
    {default_templates_value, "sidecar", list_value},
    {never_inject_value, "", selectors_value},
    {always_inject_value, "", selectors_value},
    {"profile", ""},
    {"global.profile", ""},
    {"platform", ""},
    {"global.platform", ""},
};

// What profiles set of the values above, and those of the chart that set nothing of them. An IstioOperator turns the
// plugin on or off, whatever its values say.
struct ProfileSetting {
  std::string_view profile;
  std::string_view name = {};
  std::string_view value = {};
};
constexpr std::string_view dns_capture = "meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE";
constexpr std::string_view hbone = "meshConfig.defaultConfig.proxyMetadata.ISTIO_META_ENABLE_HBONE";
constexpr ProfileSetting operator_profiles[] = {
    {"ambient", cni_value, "true"},
    {"ambient", "profile", "ambient"},
    {"default", cni_value, "false"},
    {"demo", cni_value, "false"},
    {"empty", cni_value, "false"},
    {"minimal", cni_value, "false"},
    {"openshift", cni_value, "true"},
    {"openshift", "global.platform", "openshift"},
    {"openshift-ambient", cni_value, "true"},
    {"openshift-ambient", "profile", "ambient"},
    {"openshift-ambient", "global.platform", "openshift"},
    {"preview", cni_value, "false"},
    {"preview", "profile", "preview"},
    {"remote", cni_value, "false"},
    {"stable", cni_value, "false"},
};
constexpr ProfileSetting platforms[] = {
    {"openshift", cni_value, "true"}, {"gke"}, {"k3d"}, {"k3s"}, {"microk8s"}, {"minikube"}};
constexpr ProfileSetting profiles[] = {
    {"preview", dns_capture, "true"}, {"ambient", hbone, "true"}, {"demo"}, {"remote"}, {"stable"}};

// In this order; of two names the first that is not empty counts.
struct ProfileKind {
  std::array<std::string_view, 2> names;
  std::span<const ProfileSetting> settings;
};
constexpr ProfileKind profile_kinds[] = {{{operator_profile_value}, operator_profiles},
                                         {{"platform", "global.platform"}, platforms},
                                         {{"profile", "global.profile"}, profiles}};

bool is_known(std::span<const ProfileSetting> settings, std::string_view profile) {
  return std::ranges::find(settings, profile, &ProfileSetting::profile) != settings.end();
}

// Returns the value that is set; nullptr: none is, or null.
const HelmValue* value_set(const HelmValues& values, std::string_view name) {
  const auto found = values.find(name);
  return found != values.end() && !found->second.is_null ? &found->second : nullptr;
}

Setting profile_of(const HelmValues& values, const ProfileKind& kind) {
  for (const std::string_view name : kind.names) {
    const HelmValue* set = value_set(values, name);
    if (set != nullptr && !set->text.empty()) return {set->text, set->from};
  }
  return {};
}

// "meshConfig.defaultConfig.proxyMetadata.ISTIO_META_DNS_CAPTURE"
bool is_variable(std::string_view name) {
  if (!name.starts_with(proxy_metadata_value)) return false;
  name.remove_prefix(proxy_metadata_value.size());
  return name.size() > 1 && name[0] == '.';
}

std::string_view known_name(std::string_view name) {
  constexpr std::string_view of_istioctl = "values.";
  std::string_view bare = name;
  if (bare.starts_with(of_istioctl)) bare.remove_prefix(of_istioctl.size());
  if (bare == "components.cni.enabled" || bare == cni_value_of_chart) return cni_value;
  if (is_variable(bare)) return bare;
  const auto* const found = std::ranges::find(values_of_chart, bare, &HelmValueInfo::name);
  if (found != std::end(values_of_chart) && found->kind != selectors_value) return found->name;
  for (const std::string_view selectors : {never_inject_value, always_inject_value}) {
    if (bare.starts_with(selectors))
      throw Error(ExitCode::usage, fmt::format("--set: '{}': expected it in a file of --values", excerpt(name)));
  }
  std::vector<std::string_view> names;
  for (const HelmValueInfo& known : values_of_chart) names.push_back(known.name);
  const auto meant = options::nearest(bare, names);
  throw Error(ExitCode::usage,
              fmt::format("--set: '{}': not a value that istio-init's arguments depend on", excerpt(name)),
              meant ? fmt::format("did you mean {}?", *meant) : fmt::format("these are: {}", fmt::join(names, ", ")));
}

bool names_something(std::string_view text) { return text.substr(0, text.find(',')).find('=') != text.npos; }

// Up to the comma that another name follows; without the backslashes that Helm wants before the others.
std::string take_value(std::string_view& text) {
  std::string value;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '\\' && text.starts_with(',')) continue;
    if (c == ',' && names_something(text)) break;
    value += c;
  }
  return value;
}

}  // namespace

std::span<const HelmValueInfo> helm_value_table() { return values_of_chart; }

Setting helm_setting(const HelmValues& values, std::string_view name) {
  if (const HelmValue* set = value_set(values, name)) return {set->text, set->from};
  return {std::ranges::find(values_of_chart, name, &HelmValueInfo::name)->preset, {}};
}

bool is_on(const HelmValues& values, std::string_view name) {
  const Setting asked = helm_setting(values, name);
  if (asked.value != "true" && asked.value != "false")
    throw Error(ExitCode::usage, fmt::format("{}: '{}': expected true or false", asked.from, excerpt(asked.value)));
  return asked.value == "true";
}

void set_helm_values(HelmValues& values, std::string_view text) {
  do {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      const std::string given = text.empty() ? "no value" : fmt::format("'{}'", excerpt(text));
      throw Error(ExitCode::usage, fmt::format("--set: {}: expected NAME=VALUE", given),
                  fmt::format("for example --set {}=10.0.0.0/8", values_of_chart[0].name));
    }
    const std::string_view name = known_name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    std::string value = take_value(text);
    if (name == default_templates_value && value.starts_with('{') && value.ends_with('}'))
      value = value.substr(1, value.size() - 2);
    if (name == mode_value) value = mode_of_number(value);
    const bool is_null = value == "null";
    values.insert_or_assign(std::string(name), HelmValue{std::move(value), fmt::format("--set {}", name), is_null});
  } while (!text.empty());
}

bool selects(const LabelSelector& selector, const Labels& labels) {
  using Operator = LabelRequirement::Operator;
  const auto holds = [&](const LabelRequirement& requirement) {
    const auto label = labels.find(requirement.key);
    const bool is_there = label != labels.end();
    const bool is_among = is_there && std::ranges::find(requirement.values, label->second) != requirement.values.end();
    switch (requirement.op) {
      case Operator::in:
        return is_among;
      case Operator::not_in:
        return !is_among;
      case Operator::exists:
        return is_there;
      case Operator::does_not_exist:
        return !is_there;
    }
    return false;
  };
  return !selector.empty() && std::ranges::all_of(selector, holds);
}

void apply_profiles(HelmValues& values, std::vector<std::string>& warnings) {
  // istioctl's --set profile is not the chart's, which has no name for some of them.
  const Setting set = profile_of(values, {{"profile"}, {}});
  if (set.from.starts_with("--set ") && (values.contains(operator_profile_value) || !is_known(profiles, set.value)) &&
      is_known(operator_profiles, set.value)) {
    values.insert_or_assign(std::string(operator_profile_value), values.find("profile")->second);
    values.erase(values.find("profile"));
  }
  for (const ProfileKind& kind : profile_kinds) {
    const Setting chosen = profile_of(values, kind);
    if (chosen.value.empty()) continue;
    const std::string from = fmt::format("{} {}", chosen.from, excerpt(chosen.value));
    if (!is_known(kind.settings, chosen.value))
      warnings.push_back(fmt::format("{}: not known, and what it sets is not taken into account", from));
    for (const ProfileSetting& setting : kind.settings) {
      if (setting.profile == chosen.value && !setting.name.empty() && value_set(values, setting.name) == nullptr)
        values.insert_or_assign(std::string(setting.name), HelmValue{std::string(setting.value), from});
    }
  }
}

}  // namespace sidetrack
