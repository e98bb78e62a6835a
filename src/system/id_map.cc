// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/id_map.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

namespace sidetrack {
namespace {

std::vector<IdMapping> mappings(const char* path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> map(std::fopen(path, "re"), std::fclose);
  if (!map) return {{0, 0, std::numeric_limits<std::uint32_t>::max()}};
  std::vector<IdMapping> list;
  char line[128];
  while (std::fgets(line, sizeof line, map.get()) != nullptr) {
    IdMapping mapping;
    if (std::sscanf(line, "%u %u %u", &mapping.inside, &mapping.outside, &mapping.count) == 3) list.push_back(mapping);
  }
  return list;
}

}  // namespace

std::vector<IdMapping> mapped_uids() { return mappings("/proc/self/uid_map"); }
std::vector<IdMapping> mapped_gids() { return mappings("/proc/self/gid_map"); }

bool is_mapped(const std::vector<IdMapping>& ids, std::uint32_t id) {
  return std::ranges::any_of(
      ids, [&](const IdMapping& range) { return id >= range.inside && id - range.inside < range.count; });
}

}  // namespace sidetrack
