// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"

namespace sidetrack::host {

// The name servers of the text of a resolv.conf(5), in its order; a scope ("fe80::1%eth0") is left out. A line whose
// address does not parse is ignored with a warning that begins with `name`, as the resolver of the C library ignores
// it.
[[nodiscard]] std::vector<Address> name_servers(std::string_view text, const std::string& name,
                                                std::vector<std::string>& warnings);

}  // namespace sidetrack::host
