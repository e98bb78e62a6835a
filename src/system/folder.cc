// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>

namespace sidetrack {

std::optional<std::vector<FolderEntry>> entries_of(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  if (!opened) return std::nullopt;
  std::vector<FolderEntry> entries;
  errno = 0;
  while (const dirent* entry = readdir(opened.get())) {  // NOLINT(concurrency-mt-unsafe)
    FolderEntry found{entry->d_name, entry->d_type == DT_DIR};
    if (found.name != "." && found.name != "..") entries.push_back(std::move(found));
    errno = 0;
  }
  if (errno != 0) return std::nullopt;
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

std::string folder_above(const std::string& path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }

}  // namespace sidetrack
