// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

namespace sidetrack {

// All of the bytes to a descriptor, in as many writes as it takes. Returns 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view bytes);

}  // namespace sidetrack
