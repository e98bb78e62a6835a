// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sidetrack/environment.h>

#include <memory>
#include <string>
#include <vector>

namespace sidetrack {

// Which traffic is to be intercepted and how: what `sidetrack apply` and istio-iptables take, parsed and checked. A
// value that never changes: copies are cheap, and any number of threads may use one.
class Options {
 public:
  // Parses the arguments after the command: {"-i", "*", "-b", "*", "-d", "15090,15021"}. What they leave open is taken
  // from the variables that the program knows (ENVOY_PORT, ISTIO_INBOUND_PORTS, …), if an environment is given, else it
  // is the default. Nothing is read but files that are named as @FILE. All is copied: neither the arguments nor the
  // environment are needed later.
  //
  // Options of logging are checked and have no effect. Throws Error (usage) as the program does, and for options that
  // choose what Rules and Pod have functions for: the place (--pid, --netns, …), what is printed (--format, --color, …,
  // whatever their value), and what to do (--dry-run, --check, --cleanup-only, --skip-rule-apply, --run-validation).
  [[nodiscard]] static Options parse(const std::vector<std::string>& arguments, const Environment& environment = {});

 private:
  friend class Rules;
  friend class Pod;
  struct Values;
  explicit Options(std::shared_ptr<const Values> values);
  std::shared_ptr<const Values> values_;
};

}  // namespace sidetrack
