// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/cgroup.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/file_descriptor.h"

namespace sidetrack::netns {
namespace {

// Where the hierarchy is mounted.
std::string mount_point() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string source;
    std::string point;
    std::string kind;
    words >> source >> point >> kind;
    if (kind == "cgroup2") return point;
  }
  throw std::runtime_error("no cgroup v2 hierarchy is mounted");
}

// "0::/PATH"
std::string own_path() {
  std::ifstream cgroups("/proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    if (line.starts_with("0::")) return line == "0::/" ? "" : line.substr(3);
  }
  throw std::runtime_error("this process is in no cgroup v2");
}

void enter(const std::string& folder) {
  std::ofstream processes(folder + "/cgroup.procs");
  processes << "0" << std::flush;
  if (!processes) throw std::runtime_error("cannot enter the cgroup " + folder);
}

}  // namespace

TestCgroup::TestCgroup(const std::string& name, const TestCgroup* parent)
    : path_(fmt::format("{}/{}", parent != nullptr ? parent->path() : own_path(),
                        parent != nullptr ? name : fmt::format("sidetrack-{}-{}", name, getpid()))),
      folder_(mount_point() + path_) {
  check(mkdir(folder_.c_str(), 0755), "mkdir " + folder_);
}

TestCgroup::~TestCgroup() { rmdir(folder_.c_str()); }

void TestCgroup::make_anew() const {
  check(rmdir(folder_.c_str()), "rmdir " + folder_);
  check(mkdir(folder_.c_str(), 0755), "mkdir " + folder_);
}

InCgroup::InCgroup(const TestCgroup& cgroup) : before_(mount_point() + own_path()) { enter(cgroup.folder()); }

InCgroup::~InCgroup() { enter(before_); }

}  // namespace sidetrack::netns
