// SPDX-License-Identifier: GPL-2.0-or-later
// What is wrong with options, with a pod's manifest, or with the rules that are there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lint/finding.h"
#include "mesh/plan.h"
#include "model/config.h"
#include "space/regions.h"

namespace sidetrack::lint {

// What lint has to know of the pod beside its rules: of its manifest.
struct Container {
  std::string name;
  std::optional<std::uint32_t> uid;  // as which it runs; nothing: as its image says
  std::optional<std::uint32_t> gid;
};
struct Probe {
  std::string container;
  std::string kind;  // "livenessProbe"
  std::uint16_t port = 0;
};
struct PodFacts {
  std::string title;                  // "Deployment shop/web"
  std::vector<Container> containers;  // but the proxy's, and those that end before it starts
  std::vector<Probe> probes;          // of the kubelet over the network, as they are when the pod runs
};

// What the options are about; it refers to what the caller holds. `pod`: nothing: one of documentation addresses.
struct Subject {
  const Config& config;
  const HostFacts& facts;
  std::optional<PodView> pod;
  const PodFacts* manifest = nullptr;
};
// Of options and a manifest: all findings.
[[nodiscard]] Findings lint_options(const Subject& subject);

// Of what is there.
[[nodiscard]] Findings lint_live(const PodView& pod, const std::vector<Live>& live);

// The promises of the plan, which `after` holds in that pod: those that are broken; see invariants.h.
[[nodiscard]] Findings violations_of(const Config& config, const Plan& plan, space::Side after);

}  // namespace sidetrack::lint
