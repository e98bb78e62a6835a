// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "host/descriptor.h"
#include "sidetrack/error.h"

namespace sidetrack {
namespace {

Descriptor open_namespace(const std::string& path, const std::string& target, const char* hint) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw system_error(errno, target + ": cannot open " + path, ExitCode::usage, hint);
  return fd;
}

void enter(const Descriptor& fd, int kind, const std::string& target) {
  if (setns(fd.get(), kind) == 0) return;
  if (errno == EINVAL) {
    throw Error(ExitCode::usage, target + " is not a network namespace",
                "give a file such as /run/netns/NAME or /proc/PID/ns/net, or a name that 'ip netns' lists");
  }
  throw system_error(errno, target + ": cannot enter the namespace", ExitCode::failed,
                     "CAP_SYS_ADMIN is needed to enter a namespace of somebody else: run as root on the node");
}

bool same_namespace(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

std::string netns_path(const std::string& path_or_name) {
  return path_or_name.find('/') != std::string::npos ? path_or_name : "/run/netns/" + path_or_name;
}

void enter_netns(const std::string& path_or_name) {
  const std::string target = "network namespace '" + path_or_name + "'";
  const Descriptor fd =
      open_namespace(netns_path(path_or_name), target, "'ip netns' lists the names; a path must have a '/'");
  enter(fd, CLONE_NEWNET, target);
}

void enter_netns_of(std::uint32_t pid) {
  const std::string target = "process " + std::to_string(pid);
  const std::string folder = "/proc/" + std::to_string(pid) + "/ns/";
  const char* hint = "it must be the id of a running process, as seen from here ('crictl inspect' or 'ps' tell)";
  if (access(("/proc/" + std::to_string(pid)).c_str(), F_OK) != 0) {
    throw Error(ExitCode::usage, target + " does not exist", hint);
  }
  // Both are opened before the first is entered: from inside the user namespace /proc may not show them any more.
  const Descriptor net = open_namespace(folder + "net", target, hint);
  if (!same_namespace(folder + "user", "/proc/self/ns/user")) {
    enter(open_namespace(folder + "user", target, hint), CLONE_NEWUSER, target);
  }
  enter(net, CLONE_NEWNET, target);
}

}  // namespace sidetrack
