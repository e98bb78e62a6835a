// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/cgroup.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <vector>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/file.h"
#include "system/folder.h"
#include "system/sandbox.h"

namespace sidetrack {
namespace {

constexpr std::size_t most_cgroups = 65'536;

struct Mount {
  std::string root;   // the part of the hierarchy that is mounted
  std::string point;  // where
  std::string kind;   // "cgroup2", "cgroup"
  std::string options;
};

// "36 35 98:0 /root /point rw,noatime … - kind source options"
std::vector<Mount> cgroup_mounts() {
  std::vector<Mount> all;
  const std::string text = host::read_file(-1, "/proc/self/mountinfo").text.value_or("");
  for (const std::string_view line : split_lines(text)) {
    const auto words = split_words(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.end() - dash < 3 || dash - words.begin() < 6) continue;
    if (dash[1] == "cgroup2" || dash[1] == "cgroup")
      all.push_back({std::string(words[3]), std::string(words[4]), std::string(dash[1]), std::string(words.back())});
  }
  return all;
}

// The rest of a path that is within another; both without slashes at their ends.
std::optional<std::string> below(const std::string& path, const std::string& of) {
  if (of.empty()) return path;
  if (path == of) return "";
  return path.starts_with(of + "/") ? std::optional(path.substr(of.size() + 1)) : std::nullopt;
}

// The whole hierarchy, if it is mounted, else a part of it.
const Mount* hierarchy(const std::vector<Mount>& mounts) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (mount.kind == "cgroup2" && (found == nullptr || mount.root == "/")) found = &mount;
  }
  return found;
}

using Paths = std::map<std::uint64_t, std::string>;

// What a process knows that may open no file by then.
struct KnownCgroups {
  std::mutex mutex;
  std::optional<Paths> all;
  Paths found;
};
KnownCgroups& known_cgroups() {
  static KnownCgroups known;
  return known;
}

void read_below(const std::string& folder, const std::string& path, Paths& paths) {
  if (paths.size() > most_cgroups) return;
  const auto entries = entries_of(folder);
  if (!entries) return;  // gone in the meantime
  for (const FolderEntry& entry : *entries) {
    if (!entry.is_folder) continue;
    const std::string inner = folder + "/" + entry.name;
    const std::string own = path.empty() ? entry.name : path + "/" + entry.name;
    struct stat status {};
    if (stat(inner.c_str(), &status) != 0) continue;
    paths[status.st_ino] = own;
    read_below(inner, own, paths);
  }
}

Paths read_paths() {
  Paths paths;
  const std::vector<Mount> mounts = cgroup_mounts();
  if (const Mount* mount = hierarchy(mounts)) read_below(mount->point, without_slashes(mount->root), paths);
  return paths;
}

Paths known_paths() {
  {
    const std::lock_guard lock(known_cgroups().mutex);
    if (known_cgroups().all || entered_sandbox()) {
      Paths known = known_cgroups().found;
      if (known_cgroups().all) known.insert(known_cgroups().all->begin(), known_cgroups().all->end());
      return known;
    }
  }
  return read_paths();
}

}  // namespace

FoundCgroup find_cgroup(const std::string& given) {
  FoundCgroup found{without_slashes(given), 0, ""};
  const auto refused = [&](std::string problem) {
    found.problem = std::move(problem);
    return found;
  };
  const std::vector<Mount> mounts = cgroup_mounts();
  for (const Mount& mount : mounts) {
    if (mount.kind != "cgroup" || !below(found.path, without_slashes(mount.point))) continue;
    return refused(fmt::format("a directory of cgroup v1 ({}), whose processes netfilter does not know by a path",
                               printable(mount.options)));
  }
  const Mount* mount = hierarchy(mounts);
  if (mount == nullptr)
    return refused("no cgroup v2 hierarchy is mounted here ('ip netns exec' leaves none in /sys: use --netns)");
  const std::string root = without_slashes(mount->root);
  if (const auto rest = below(found.path, without_slashes(mount->point))) {
    found.path = root.empty() || rest->empty() ? root + *rest : root + "/" + *rest;
  }
  const auto inside = below(found.path, root);
  struct stat status {};
  const std::string folder = mount->point + "/" + inside.value_or("");
  const int error = inside && stat(folder.c_str(), &status) != 0 ? errno : 0;
  if (inside && error == 0 && !S_ISDIR(status.st_mode)) return refused("a file, not a cgroup's directory");
  if (found.path.empty()) return refused("the root of the hierarchy, which every process is in");
  if (!inside || error == ENOENT || error == ENOTDIR)
    return refused(fmt::format("no such cgroup below {}", printable(mount->point)));
  if (error != 0) return refused(errno_words(error));
  found.id = status.st_ino;
  // For the time when no file can be opened any more.
  const std::lock_guard lock(known_cgroups().mutex);
  if (known_cgroups().found.size() < most_cgroups) known_cgroups().found[found.id] = found.path;
  return found;
}

std::optional<std::string> cgroup_in(std::string_view text) {
  for (const std::string_view line : split_lines(text)) {
    if (line.starts_with("0::")) return without_slashes(line.substr(3));
  }
  return std::nullopt;
}

std::optional<std::string> own_cgroup() {
  static const std::optional<std::string> own = cgroup_in(host::read_file(-1, "/proc/self/cgroup").text.value_or(""));
  return own;
}

std::string CgroupPaths::path(std::uint64_t id, std::uint32_t level) const {
  if (!paths_) paths_ = known_paths();
  const auto found = paths_->find(id);
  if (found == paths_->end() || std::ranges::count(found->second, '/') + 1 != std::int64_t{level}) return "";
  return found->second;
}

void hold_cgroups() {
  const std::lock_guard lock(known_cgroups().mutex);
  if (!known_cgroups().all) known_cgroups().all = read_paths();
}

}  // namespace sidetrack
