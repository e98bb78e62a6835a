// SPDX-License-Identifier: GPL-2.0-or-later
// Landlock, Linux 5.13: what a process may do with files, whatever its user may.
#pragma once

#include <string>
#include <vector>

namespace sidetrack {

// From now on this process writes, makes and removes files below these folders alone; what it has open stays. A folder
// that is not there gives nothing. Needs no_new_privs. Returns 0, or errno; 0 also where the kernel has no Landlock.
[[nodiscard]] int write_only_below(const std::vector<std::string>& folders);

}  // namespace sidetrack
