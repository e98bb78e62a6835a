// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "sidetrack/address.h"

namespace sidetrack::host {

// The name servers of a resolv.conf(5), in its order; a scope ("fe80::1%eth0") is left out. A line whose address does
// not parse is passed over with a warning, as the resolver of the C library passes over it. Throws Error if the file
// cannot be read.
[[nodiscard]] std::vector<Address> name_servers(const std::string& path, std::vector<std::string>& warnings);

}  // namespace sidetrack::host
