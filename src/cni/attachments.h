// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "cni/record.h"

namespace sidetrack::cni {

// Where libcni keeps what ADD was called with. CRI-O calls DEL with that, whatever the configuration says by then.
inline constexpr const char* libcni_cache = "/var/lib/cni/results";

// The ids of the containers for which a runtime may still call the plugin, each once, sorted: those with a record of
// ours, and those whose cached configuration names it. A folder that is not there holds none. Throws Error (failed,
// not_permitted) if one cannot be read.
[[nodiscard]] std::vector<std::string> attached_containers(const std::string& records = records_folder,
                                                           const std::string& cache = libcni_cache);

}  // namespace sidetrack::cni
