// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "system/descriptor.h"

namespace sidetrack {
namespace {

constexpr std::uint64_t truncate = 1U << 14;  // LANDLOCK_ACCESS_FS_TRUNCATE, Linux 6.2
constexpr std::uint64_t of_files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                   LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr std::uint64_t of_others = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

}  // namespace

int write_only_below(const std::vector<std::string>& folders) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0) return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : errno;
  const std::uint64_t allowed = of_files | (version >= 3 ? truncate : 0);
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = allowed | of_others;
  const Descriptor rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!rules.valid()) return errno;
  for (const std::string& path : folders) {
    const Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid()) continue;
    landlock_path_beneath_attr below{};
    below.allowed_access = allowed;
    below.parent_fd = folder.get();
    if (syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &below, 0) != 0) return errno;
  }
  return syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 ? 0 : errno;
}

}  // namespace sidetrack
