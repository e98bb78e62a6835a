// SPDX-License-Identifier: GPL-2.0-or-later
// Random options, and the pod in which they are applied.
#pragma once

#include <string>

#include "support/packets.h"
#include "support/pod.h"

namespace sidetrack::netns {

// Options as on the command line, and variables of the environment; nothing that is not in the other tests, but in all
// combinations. The proxy is always uid 1337.
[[nodiscard]] std::string random_options(Dice& dice);
// Those of an ambient pod.
[[nodiscard]] std::string random_ambient_options(Dice& dice);

// A pod whose proxy has all ports that these options may name.
class PodOf {
 public:
  explicit PodOf(const std::string& options);
  [[nodiscard]] Pod& pod() { return pod_; }
  [[nodiscard]] const Namespace& ns() const { return pod_.ns(); }
  void apply(const char* backend, const std::string& options) const;

 private:
  Pod pod_;
};

}  // namespace sidetrack::netns
