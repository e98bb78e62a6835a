// SPDX-License-Identifier: GPL-2.0-or-later
// cgroups (v2): the path of each, and the number by which nf_tables knows it, that of its directory's inode.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

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

// Which path each cgroup has, read once, when the first is asked for: the cgroups of one moment. A process that has
// called hold_cgroups(), or is in a sandbox, which opens no file, knows those that were there then, and those that
// find_cgroup() has found. One thread at a time may use an object.
class CgroupPaths {
 public:
  // Returns the path of a cgroup that is so many levels below the root; empty if there is none, or it is not known.
  [[nodiscard]] std::string path(std::uint64_t id, std::uint32_t level) const;

 private:
  mutable std::optional<std::map<std::uint64_t, std::string>> paths_;
};

// Reads which cgroups there are. For a process that cannot open files any more.
void hold_cgroups();

}  // namespace sidetrack
