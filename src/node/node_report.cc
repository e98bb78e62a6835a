// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/printable.h"
#include "node/node.h"
#include "render/json_parts.h"

namespace sidetrack::cni {
namespace {

std::string whose(const PodReport& pod) {
  if (!pod.pod_name.empty()) return printable(pod.pod_namespace + "/" + pod.pod_name);
  return pod.container_id.empty() ? "-" : pod.container_id;
}

std::string process(const PodReport& pod) {
  return pod.pid ? fmt::format("{} {}", *pod.pid, printable(pod.process)) : "-";
}

std::string backends(const PodReport& pod) {
  return pod.backends.empty() ? "-" : fmt::format("{}", fmt::join(pod.backends, "+"));
}

std::string state_words(const PodReport& pod) {
  std::string words(name(pod.state));
  std::ranges::replace(words, '_', ' ');
  if (!pod.detail.empty()) words += ": " + printable(pod.detail);
  return pod.meshes.empty() ? words : fmt::format("{}; rules of {}", words, fmt::join(pod.meshes, ", "));
}

constexpr std::size_t widest_column = 60;  // a longer one shifts the rest of its own line alone

// In the text format a value in quotes escapes these three.
std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string node_text(const Node& node) {
  using Columns = std::array<std::string, 3>;
  std::vector<Columns> rows;
  std::array<std::size_t, 3> widths{};
  for (const PodReport& pod : node.pods) {
    const Columns& row = rows.emplace_back(Columns{whose(pod), process(pod), backends(pod)});
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].size() <= widest_column) widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PodReport& pod = node.pods[i];
    for (std::size_t column = 0; column < widths.size(); ++column)
      text += fmt::format("{:<{}}  ", rows[i][column], widths[column]);
    text += fmt::format("{}  [{}]\n", pod.captured.empty() ? "-" : pod.captured, state_words(pod));
  }
  return text;
}

std::string node_json(const Node& node) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json pods = array_of(node.pods, [&](const PodReport& pod) {
    return object({{"namespace", or_null(pod.pod_namespace)},
                   {"pod", or_null(pod.pod_name)},
                   {"container_id", or_null(pod.container_id)},
                   {"netns", or_null(pod.netns)},
                   {"pid", pod.pid ? Json(*pod.pid) : Json()},
                   {"process", or_null(pod.process)},
                   {"backends", pod.backends},
                   {"meshes", pod.meshes},
                   {"captured", or_null(pod.captured)},
                   {"addresses", array_of(pod.addresses, [](const Address& address) { return address.text(); })},
                   {"ambient", pod.ambient},
                   {"state", name(pod.state)},
                   {"detail", or_null(pod.detail)},
                   {"microseconds", pod.took.count()}});
  });
  return dumped(object({{"as_recorded", node.as_recorded()}, {"pods", std::move(pods)}, {"problems", node.problems}}));
}

std::string node_metrics(const Node& node) {
  std::string text =
      "# HELP sidetrack_pods Pods and other network namespaces of this node, by what is known of their rules.\n"
      "# TYPE sidetrack_pods gauge\n";
  for (const std::string_view state : state_names) {
    const auto is_in = [&](const PodReport& pod) { return name(pod.state) == state; };
    text += fmt::format("sidetrack_pods{{state=\"{}\"}} {}\n", state, std::ranges::count_if(node.pods, is_in));
  }
  text +=
      "# HELP sidetrack_pod_as_recorded Whether the rules of a recorded pod are as the CNI plugin was asked.\n"
      "# TYPE sidetrack_pod_as_recorded gauge\n";
  for (const PodReport& pod : node.pods) {
    if (pod.container_id.empty()) continue;
    const bool good = pod.state == PodState::as_recorded || pod.state == PodState::repaired;
    text += fmt::format("sidetrack_pod_as_recorded{{namespace=\"{}\",pod=\"{}\",container_id=\"{}\"}} {}\n",
                        label(pod.pod_namespace), label(pod.pod_name), label(pod.container_id), good ? 1 : 0);
  }
  return text + fmt::format(
                    "# HELP sidetrack_node_problems What of this node could not be read.\n"
                    "# TYPE sidetrack_node_problems gauge\n"
                    "sidetrack_node_problems {}\n",
                    node.problems.size());
}

}  // namespace sidetrack::cni
