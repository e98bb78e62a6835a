// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/id_map.h"

#include <algorithm>
#include <limits>

#include "model/scan.h"
#include "system/known_file.h"

namespace sidetrack {
namespace {

std::vector<IdMapping> mappings(KnownFile file) {
  const KnownText map = read_known_file(file);
  if (map.error != 0) return {{0, 0, std::numeric_limits<std::uint32_t>::max()}};
  std::vector<IdMapping> list;
  for (const std::string_view line : split_lines(map.text)) {
    const auto numbers = split_words(line);
    const auto at = [&](std::size_t i) {
      return i < numbers.size() ? to_number<std::uint32_t>(numbers[i]) : std::nullopt;
    };
    if (const auto inside = at(0), outside = at(1), count = at(2); inside && outside && count)
      list.push_back({*inside, *outside, *count});
  }
  return list;
}

}  // namespace

std::vector<IdMapping> mapped_uids() { return mappings(KnownFile::uid_map); }
std::vector<IdMapping> mapped_gids() { return mappings(KnownFile::gid_map); }

bool is_mapped(const std::vector<IdMapping>& ids, std::uint32_t id) {
  return std::ranges::any_of(
      ids, [&](const IdMapping& range) { return id >= range.inside && id - range.inside < range.count; });
}

}  // namespace sidetrack
