// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sidetrack {

struct FolderEntry {
  std::string name;
  bool is_folder = false;
};

// By name, without "." and "..". Nothing, with errno set, if it cannot be read.
[[nodiscard]] std::optional<std::vector<FolderEntry>> entries_of(const std::string& folder);

// Of an absolute path: "/a" of "/a/b", "/" of "/a".
[[nodiscard]] std::string folder_above(const std::string& path);

}  // namespace sidetrack
