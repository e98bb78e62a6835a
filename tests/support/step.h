// SPDX-License-Identifier: GPL-2.0-or-later
// A command that writes and meets with a fault.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/namespace.h"

namespace sidetrack::netns {

// From the older rules in one backend to the newer ones, in the same or in another. From nullptr: from nothing; to
// nullptr: to nothing, by clean.
struct Step {
  const char* from;
  const char* to;
};

// From every backend to every one, and to nothing.
[[nodiscard]] std::vector<Step> steps();

[[nodiscard]] std::string step_name(const ::testing::TestParamInfo<Step>& tested);

// In a namespace that holds the older rules.
class StepTest : public KernelTest, public ::testing::WithParamInterface<Step> {
 protected:
  using State = std::map<std::string, std::string>;

  void SetUp() override;

  // The command under test.
  [[nodiscard]] static std::vector<std::string> words();

  // The usual case. The others are tested with fewer faults.
  [[nodiscard]] static bool stays();

  // Back to the older rules, whatever is there.
  void begin();
  void restart();  // the same, and makes sure of it

  // Expects the new state of a command that succeeded; else an error and the old state, or one that says what stands,
  // from which the next run ends right. Returns the state.
  State judge(const Output& output, const std::string& what) const;

  Namespace ns;
  State old_state;
  State new_state;
};

}  // namespace sidetrack::netns
