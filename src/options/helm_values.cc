// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/helm_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/error.h"
#include "model/printable.h"
#include "options/suggest.h"

namespace sidetrack {
namespace {

constexpr HelmValueInfo values_of_chart[] = {
    {"global.proxy.includeIPRanges", "*"},     {"global.proxy.excludeIPRanges", ""},
    {"global.proxy.includeInboundPorts", "*"}, {"global.proxy.excludeInboundPorts", ""},
    {"global.proxy.includeOutboundPorts", ""}, {"global.proxy.excludeOutboundPorts", ""},
    {"global.proxy.statusPort", "15020"},      {"meshConfig.defaultConfig.interceptionMode", "REDIRECT"},
    {"meshConfig.proxyListenPort", "15001"},   {"meshConfig.proxyInboundListenPort", "15006"},
    {"global.proxy.autoInject", "enabled"},    {"global.logging.level", "default:info"},
    {"global.logAsJson", "false", true},       {"global.nativeNftables", "false", true},
    {"pilot.cni.enabled", "false", true},      {"global.proxy_init.forceApplyIptables", "false", true},
};

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
  if (is_variable(bare)) return bare;
  const auto* const found = std::ranges::find(values_of_chart, bare, &HelmValueInfo::name);
  if (found != std::end(values_of_chart)) return found->name;
  std::vector<std::string_view> names;
  for (const HelmValueInfo& known : values_of_chart) names.push_back(known.name);
  const auto meant = options::nearest(bare, names);
  throw Error(ExitCode::usage,
              fmt::format("--set: '{}': not a value that istio-init's arguments depend on", excerpt(name)),
              meant ? fmt::format("did you mean {}?", *meant) : fmt::format("these are: {}", fmt::join(names, ", ")));
}

bool names_something(std::string_view text) {
  const auto part = text.substr(0, text.find(','));
  return part.find('=') != std::string_view::npos;
}

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
  const auto found = values.find(name);
  if (found != values.end() && !found->second.is_null) return {found->second.text, found->second.from};
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
    const bool is_null = value == "null";
    values.insert_or_assign(std::string(name), HelmValue{std::move(value), fmt::format("--set {}", name), is_null});
  } while (!text.empty());
}

}  // namespace sidetrack
