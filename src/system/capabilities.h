// SPDX-License-Identifier: GPL-2.0-or-later
// capabilities(7) of the calling thread, asked of the kernel itself: /proc need not be there.
#pragma once

namespace sidetrack {

// `number` is that of linux/capability.h.
[[nodiscard]] bool has_capability(unsigned number);      // effective: it counts now
[[nodiscard]] bool may_get_capability(unsigned number);  // bounding: a program may have it by its file or as root

}  // namespace sidetrack
