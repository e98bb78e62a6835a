// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/printable.h"
#include "render/json_parts.h"
#include "render/layout.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view by_default = "default";

std::string_view origin(const InitArgument& argument) {
  return argument.from.empty() ? by_default : std::string_view(argument.from);
}

std::string value_text(const InitArgument& argument) {
  return argument.form == InitArgument::Form::alone ? "" : shell_quoted(argument.value);
}

std::string table(const InitArguments& init) {
  std::size_t widest_option = 0;
  std::size_t widest = 0;
  for (const InitArgument& argument : init.arguments) {
    widest_option = std::max(widest_option, argument.option.size());
    widest = std::max(widest, value_text(argument).size());
  }
  std::string text;
  for (const InitArgument& argument : init.arguments) {
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", argument.option, widest_option, value_text(argument), widest,
                        origin(argument));
  }
  return text;
}

Json json(const PodArguments& of) {
  Json pod = object({{"kind", of.pod.kind}, {"name", of.pod.name}, {"namespace", of.pod.namespace_}});
  pod["inject"] = of.init.not_injected.empty();
  if (!of.init.not_injected.empty()) pod["reason"] = of.init.not_injected;
  pod["args"] = words(of.init);
  pod["why"] = Json::array();
  for (const InitArgument& argument : of.init.arguments) {
    pod["why"].push_back(object({{"option", argument.option}, {"value", argument.value}, {"from", origin(argument)}}));
  }
  return pod;
}

}  // namespace

std::string not_injected(const PodTemplate& pod, std::string_view reason) {
  return fmt::format("{}: not injected: {}", title(pod), reason);
}

std::string arguments_text(std::span<const PodArguments> pods) {
  std::string text;
  for (const PodArguments& pod : pods) {
    if (!pod.init.not_injected.empty()) continue;
    std::vector<std::string> quoted;
    for (const std::string& word : words(pod.init)) quoted.push_back(shell_quoted(word));
    text += fmt::format("{}\n", fmt::join(quoted, " "));
  }
  return text;
}

std::string why_text(std::span<const PodArguments> pods) {
  std::string text;
  for (const PodArguments& pod : pods) {
    if (!text.empty()) text += "\n";
    text += pod.init.not_injected.empty() ? fmt::format("{}\n{}", title(pod.pod), table(pod.init))
                                          : fmt::format("{}\n", not_injected(pod.pod, pod.init.not_injected));
  }
  return text;
}

std::string arguments_json(std::span<const PodArguments> pods, const std::vector<std::string>& errors) {
  Json document = object({{"pods", Json::array()}, {"errors", errors}});
  for (const PodArguments& pod : pods) document["pods"].push_back(json(pod));
  return dumped(std::move(document));
}

}  // namespace sidetrack::manifest
