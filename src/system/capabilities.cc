// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace sidetrack {
namespace {

struct Sets {
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {};
};

bool get(Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return syscall(SYS_capget, &header, sets.words) == 0;
}
bool set(const Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return syscall(SYS_capset, &header, sets.words) == 0;
}

}  // namespace

bool has_capability(unsigned number) {
  Sets sets;
  return get(sets) && (sets.words[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number)) != 0;
}

bool may_get_capability(unsigned number) { return prctl(PR_CAPBSET_READ, number) == 1; }

int keep_only(std::initializer_list<unsigned> numbers) {
  Sets sets;
  if (!get(sets)) return errno;
  Sets kept;
  for (const unsigned number : numbers) {
    const std::uint32_t bit = CAP_TO_MASK(number);
    kept.words[CAP_TO_INDEX(number)].permitted |= sets.words[CAP_TO_INDEX(number)].permitted & bit;
    kept.words[CAP_TO_INDEX(number)].effective |= sets.words[CAP_TO_INDEX(number)].effective & bit;
  }
  return set(kept) ? 0 : errno;
}

WithoutCapabilities::WithoutCapabilities() { swap_effective(); }

WithoutCapabilities::~WithoutCapabilities() { swap_effective(); }

void WithoutCapabilities::swap_effective() {
  Sets sets;
  if (!get(sets)) return;
  for (std::size_t i = 0; i < effective_.size(); ++i) std::swap(effective_[i], sets.words[i].effective);
  static_cast<void>(set(sets));
}

}  // namespace sidetrack
