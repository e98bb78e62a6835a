// SPDX-License-Identifier: GPL-2.0-or-later
// A pod in which no process listens, as it is when its init containers run.
#pragma once

#include <string>
#include <vector>

#include "model/address.h"
#include "support/namespace.h"

namespace sidetrack::netns {

// The pod's default route leads to a node that forwards, and that counts what comes out of the pod.
class QuietPod {
 public:
  explicit QuietPod(Families families);

  [[nodiscard]] const Namespace& ns() const { return pod_; }

  // Runs the program under test in the pod.
  [[nodiscard]] Output run(std::vector<std::string> words, Identity identity = {}) const;

  // Packets of tcp and udp that have come out of the pod; those of them that could go beyond the node.
  [[nodiscard]] int came_out() const { return counted("came_out"); }
  [[nodiscard]] int could_go_on() const { return counted("could_go_on"); }

 private:
  [[nodiscard]] int counted(const std::string& counter) const;
  Namespace pod_;
  Namespace node_;
};

// `apply` and the like, with a backend and options that are separated by blanks.
[[nodiscard]] std::vector<std::string> words(const std::string& line);

// As istio-validation runs: no capabilities, in a mount namespace whose root cannot be written to.
[[nodiscard]] std::vector<std::string> confined(std::vector<std::string> words, unsigned uid = 1337);

// Takes one rule of ours away, found by its chain and by words that its line in the backend's own listing has.
void take_away(const Namespace& where, const std::string& backend, Family family, const std::string& chain,
               const std::string& part, const std::string& table = "nat");

}  // namespace sidetrack::netns
