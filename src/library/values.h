// SPDX-License-Identifier: GPL-2.0-or-later
// What the classes of include/sidetrack hold.
#pragma once

#include <sidetrack/options.h>
#include <sidetrack/pod.h>
#include <sidetrack/rules.h>

#include <optional>
#include <string>
#include <vector>

#include "mesh/plan.h"
#include "model/config.h"
#include "model/packet.h"
#include "system/namespaces.h"
#include "walk/explain.h"

namespace sidetrack {

struct Options::Values {
  Config config;
  Names names;
  ApplyOptions applying;
};

struct Rules::Values {
  Config config;  // completed from the host
  ApplyOptions applying;
  Plan plan;
};

struct Pod::Values {
  std::optional<Place> place;  // nothing: where the calling thread is
};

// The packet of the words after `sidetrack explain`. Throws Error (usage).
[[nodiscard]] Packet packet_of_words(const std::vector<std::string>& words);

[[nodiscard]] Explanation explanation(const Trace& trace);

}  // namespace sidetrack
