// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sidetrack {

bool has_capability(unsigned number) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  return (sets[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number)) != 0;
}

bool may_get_capability(unsigned number) { return prctl(PR_CAPBSET_READ, number, 0, 0, 0) == 1; }

}  // namespace sidetrack
