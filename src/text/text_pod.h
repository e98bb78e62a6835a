// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pod/given_pod.h"
#include "pod/pod_view.h"
#include "rule/live.h"

namespace sidetrack {

// A pod that holds these rules, as far as it is known; notes say what is assumed.
struct TextPod {
  PodView view;
  Routing routing;                 // what the rules need beside them
  std::vector<std::string> notes;  // for people
};

// Returns the pod that is given. What is not: addresses of documentation, the interfaces that the rules name, a default
// route for each family with an address; the policy rule and the route that TPROXY, and an ambient pod, need.
[[nodiscard]] TextPod pod_of_text(std::span<const Live> live, const GivenPod& given);

}  // namespace sidetrack
