// SPDX-License-Identifier: GPL-2.0-or-later
// Which users and groups exist in the user namespace of this process: user_namespaces(7).
#pragma once

#include <cstdint>
#include <vector>

namespace sidetrack {

// A line of /proc/self/uid_map or gid_map: `count` ids from `inside` on are those from `outside` on.
struct IdMapping {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
};

// All ids, where the kernel has no user namespaces or there is no /proc.
[[nodiscard]] std::vector<IdMapping> mapped_uids();
[[nodiscard]] std::vector<IdMapping> mapped_gids();

[[nodiscard]] bool is_mapped(const std::vector<IdMapping>& ids, std::uint32_t id);

}  // namespace sidetrack
