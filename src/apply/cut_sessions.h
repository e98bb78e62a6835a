// SPDX-License-Identifier: GPL-2.0-or-later
// Which sessions the rules would cut, and which options may leave them alone.
#pragma once

#include <string>
#include <vector>

#include "apply/decide.h"
#include "host/sessions.h"
#include "kernel/kernel.h"

namespace sidetrack {

// What becomes of the next packets of established connections once the plan is applied.
//
// A connection that the kernel does not track yet, as none is before the first rules, begins anew for it with the next
// packet of either side: what the rules do with new connections happens to it, in both directions. Of one that it
// tracks, rules of nat are not asked.
struct CutSessions {
  std::vector<std::string> list;  // "192.0.2.2:22 from 192.0.2.1:51234 (sshd, process 4711): what comes in: lands on …"
  std::string remedy;             // "add -d 22 -x 192.0.2.1/32", which is not tried; empty: no such option is known
};

// None if nothing would change. `config` is what the request's plan was made of.
[[nodiscard]] CutSessions cut_sessions(const Sessions& sessions, const Request& request, const Config& config,
                                       Kernel& kernel);

}  // namespace sidetrack
