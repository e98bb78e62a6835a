// SPDX-License-Identifier: GPL-2.0-or-later
// Files that another program may have put there: nothing but a regular file is opened, none is read beyond a limit, and
// nothing waits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "system/descriptor.h"

namespace sidetrack::host {

inline constexpr std::size_t largest_file = 1U << 20;  // a passwd(5) of ten thousand users has half of it

// What reading a file gives.
struct FileText {
  std::optional<std::string> text;
  int error = 0;        // why there is none; ENOENT: there is no such file
  std::string problem;  // the same in words: "No such file or directory (ENOENT)", "a FIFO, not a regular file"
};

// The whole of a file. `root` is a directory in which the path is looked up as a process does that has it for its root:
// absolute symbolic links and ".." stay inside, /proc's links to elsewhere are not followed, and what answers later
// than in five seconds counts as unreadable (a file system in user space may never do). -1: as this process sees the
// path.
[[nodiscard]] FileText read_file(int root, const std::string& path);

// A descriptor to read from, or why there is none.
struct OpenedFile {
  Descriptor file;
  int error = 0;
  std::string problem;
  std::string_view type;  // "a directory", if that is why; empty: another reason
};
[[nodiscard]] OpenedFile open_regular(int root, const std::string& path);

// "a FIFO, not a regular file", of a mode as stat(2) gives it; empty if it is a regular file.
[[nodiscard]] std::string not_regular(unsigned mode);

}  // namespace sidetrack::host
