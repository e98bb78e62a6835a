// SPDX-License-Identifier: GPL-2.0-or-later
// The pods of a node: those that the CNI plugin has recorded, and every other network namespace that a process is in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "node/findings.h"
#include "system/sandbox.h"

namespace sidetrack::cni {

struct PodReport : Findings {
  std::string pod_namespace;         // of the record; else empty
  std::string pod_name;              // the same
  std::string container_id;          // the same
  std::string netns;                 // the same: a path
  std::optional<std::uint32_t> pid;  // the lowest that is in its network namespace
  std::string process;               // the name of that process; as it is: not printable
  std::chrono::microseconds took{};
};

struct Node {
  std::vector<PodReport> pods;        // recorded ones by namespace and name, then the others by pid
  std::vector<std::string> problems;  // what of the node cannot be read, a sentence each: there may be more pods
  // Whether every recorded pod is as recorded, and everything could be read.
  [[nodiscard]] bool as_recorded() const;
};

struct NodeOptions {
  std::string records;
  std::chrono::milliseconds pod_timeout{};
  bool repair = false;  // apply what is recorded where it differs: each pod atomically
  std::function<void(Sandbox kind)> confine = [](Sandbox) {};  // called before the rules of a pod are read
};

// Each pod is looked at by a process of its own, several at a time, which is killed when it takes too long: no pod
// stalls the others. Throws Error (failed, not_permitted) if there is no /proc, or no process can be made.
[[nodiscard]] Node survey_node(const NodeOptions& options);

// A line for each pod: namespace/name, process, backend, what is captured, whether it is as recorded, other meshes.
[[nodiscard]] std::string node_text(const Node& node);
[[nodiscard]] std::string node_json(const Node& node);
// Prometheus' text format, as node_exporter's textfile collector reads it.
[[nodiscard]] std::string node_metrics(const Node& node);

}  // namespace sidetrack::cni
