// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/hostile_pod.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace sidetrack::netns {
namespace {

bool mount_silent(const char* where) {
  const int device = open("/dev/fuse", O_RDWR);
  std::array<char, 128> options{};
  std::snprintf(options.data(), options.size(), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  return device >= 0 && mount("silent", where, "fuse", MS_NOSUID | MS_NODEV, options.data()) == 0;
}

}  // namespace

// The child does nothing but system calls: other threads of this process may hold locks.
HostilePod::HostilePod(const Namespace& network, bool silent_file_system)
    : root_(::testing::TempDir() + "sidetrack-hostile-XXXXXX") {
  if (mkdtemp(root_.data()) == nullptr) throw std::runtime_error("cannot make " + root_);
  for (const char* folder : {"/etc", "/run", "/proc", "/hang"})
    check(mkdir(path(folder).c_str(), 0755), "make a folder");
  const std::string proc = path("/proc");
  const std::string hang = path("/hang");
  std::array<int, 2> ready{};
  check(pipe2(ready.data(), O_CLOEXEC), "pipe");
  pid_ = check(fork(), "fork");
  if (pid_ == 0) {
    const bool made = setns(network.fd(), CLONE_NEWNET) == 0 && unshare(CLONE_NEWNS) == 0 &&
                      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                      mount("proc", proc.c_str(), "proc", 0, nullptr) == 0 &&
                      (!silent_file_system || mount_silent(hang.c_str())) && chroot(root_.c_str()) == 0 &&
                      chdir("/") == 0 && write(ready[1], "", 1) == 1;
    close(ready[1]);
    while (made) pause();
    _exit(1);
  }
  const FileDescriptor from(ready[0]);
  close(ready[1]);
  char byte = 0;
  if (read(from.get(), &byte, 1) != 1) {
    waitpid(pid_, nullptr, 0);
    throw std::runtime_error("cannot make the root of a pod");
  }
}

HostilePod::~HostilePod() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

}  // namespace sidetrack::netns
