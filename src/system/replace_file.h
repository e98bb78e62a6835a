// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sidetrack {

// Which file is at a path, and since when it is as it is. Symbolic links are not followed.
struct FileVersion {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t seconds = 0;  // of its last change
  std::int64_t nanoseconds = 0;
  unsigned mode = 0;  // as stat(2) gives it
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};
[[nodiscard]] std::optional<FileVersion> file_version(
    const std::string& path);  // nothing, with errno set, if there is none

// Puts a file with this content and this mode at the path, in one step: readers see the file that was there, or this
// one, even after a crash. It is written beside the path first, to temporary_name(); several processes at the same time
// wait for each other. Throws Error (failed, not_permitted) with the path and the cause; nothing has changed then.
// What is there and is no file, as /dev/null, is not replaced: Error (usage).
// With `instead_of`, throws Error (busy) if another version than that is at the path by now: who writes back what he
// has read must not undo what others have written in between.
struct Replacement {
  unsigned mode = 0600;
  std::string hint{};  // of the Error: what to do
  bool links = false;  // whether a symbolic link is replaced, too
  std::optional<FileVersion> instead_of{};
};
void replace_file(const std::string& path, std::string_view content, const Replacement& how);

// Of a process that was killed in between, this file stays until the next one. Hidden, and without the path's ending.
[[nodiscard]] std::string temporary_name(const std::string& path);

// After a file of this folder was renamed or removed: that it lasts through a crash. Throws as above.
void flush_folder_of(const std::string& path);

}  // namespace sidetrack
