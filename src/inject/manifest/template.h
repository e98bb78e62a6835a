// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inject/manifest/node.h"
#include "inject/manifest/read.h"

namespace sidetrack::manifest {

// What is put into pods: the user's proxy, as a pod's manifest or the spec of one.
struct InjectionTemplate {
  Node init;                          // the container istio-init, with all but its arguments and variables
  std::vector<Node> init_containers;  // the others, which come after it; native sidecars say restartPolicy: Always
  std::vector<Node> containers;
  std::vector<Node> volumes;
  std::vector<Node> image_pull_secrets;
  std::string proxy_name;                // of the container that is the proxy
  std::optional<std::string> proxy_uid;  // whose traffic is the proxy's
};

// Throws Error (usage) that says where what is wrong, for what is no template, too: what would be left out is refused.
// `warnings` gets what is likely a mistake.
[[nodiscard]] InjectionTemplate read_template(const Documents& documents, std::vector<std::string>& warnings);

// The member `name` of each, "" if there is none.
[[nodiscard]] std::string_view name_of(const Node& named);

// `own` over `base`: mappings key by key, lists of named things (env, ports, volumeMounts) item by item.
[[nodiscard]] Node merged(const Node& base, const Node& own);

// What `own` has beside `base`, by the same keys: merged() of it and anything is as if `base` had come over `own`.
[[nodiscard]] Node without(const Node& own, const Node& base);

}  // namespace sidetrack::manifest
