// SPDX-License-Identifier: GPL-2.0-or-later
// cgroups (v2): the path of each, and the number by which nf_tables knows it, that of its directory's inode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sidetrack {

struct FoundCgroup {
  std::string path;      // within the hierarchy, without a slash at its ends
  std::uint64_t id = 0;  // 0: there is none, as the problem says
  std::string problem;   // "no such cgroup below /sys/fs/cgroup", "of cgroup v1 (memory): …"
};

// A path within the hierarchy, or that of the directory; slashes at its ends do not count.
[[nodiscard]] FoundCgroup find_cgroup(const std::string& path);

// The one of the second version in the text of /proc/PID/cgroup, as own_cgroup().
[[nodiscard]] std::optional<std::string> cgroup_in(std::string_view text);

// That of this process; nothing: it is not known.
[[nodiscard]] std::optional<std::string> own_cgroup();

// The path of a cgroup that is so many levels below the root. Empty: there is none, or it is not known: looked for are
// those that find_cgroup() has found, and all if hold_cgroups() was called or the process may still open files.
[[nodiscard]] std::string cgroup_path(std::uint64_t id, std::uint32_t level);

// Reads which cgroups there are. For a process that cannot open files any more.
void hold_cgroups();

}  // namespace sidetrack
