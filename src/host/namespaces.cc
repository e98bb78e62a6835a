// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "host/descriptor.h"
#include "sidetrack/error.h"

namespace sidetrack {
namespace {

constexpr const char* needed =
    "CAP_SYS_ADMIN and CAP_SYS_PTRACE are needed to enter the namespaces of somebody else: run as root on the node";

Descriptor open_namespace(const std::string& path, const std::string& target, const char* hint) {
  Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.valid()) return fd;
  const bool forbidden = errno == EACCES || errno == EPERM;
  throw system_error(errno, target + ": cannot open " + path, ExitCode::usage, forbidden ? needed : hint);
}

void enter(const Descriptor& fd, int kind, const std::string& target) {
  if (setns(fd.get(), kind) == 0) return;
  if (errno == EINVAL) {
    throw Error(ExitCode::usage, target + " is not a network namespace",
                "give a file such as /run/netns/NAME or /proc/PID/ns/net, or a name that 'ip netns' lists");
  }
  throw system_error(errno, target + ": cannot enter the namespace", ExitCode::failed, needed);
}

bool is_ours(const Descriptor& user_namespace) {
  struct stat its {};
  struct stat ours {};
  return fstat(user_namespace.get(), &its) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
         its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

void enter_with_owner(const Descriptor& net, const std::string& target) {
  // EPERM: the owner is a user namespace outside of ours. What may be done from here, the kernel decides later.
  const Descriptor owner(ioctl(net.get(), NS_GET_USERNS));
  if (owner.valid() && !is_ours(owner)) enter(owner, CLONE_NEWUSER, target);
  enter(net, CLONE_NEWNET, target);
}

}  // namespace

std::string netns_path(const std::string& path_or_name) {
  return path_or_name.find('/') != std::string::npos ? path_or_name : "/run/netns/" + path_or_name;
}

void enter_netns(const std::string& path_or_name) {
  const std::string target = "network namespace '" + path_or_name + "'";
  const Descriptor fd =
      open_namespace(netns_path(path_or_name), target, "'ip netns' lists the names; a path must have a '/'");
  enter_with_owner(fd, target);
}

void enter_netns_of(std::uint32_t pid) {
  const std::string target = "process " + std::to_string(pid);
  const char* hint = "it must be the id of a running process, as seen from here ('crictl inspect' or 'ps' tell)";
  if (access(("/proc/" + std::to_string(pid)).c_str(), F_OK) != 0) {
    throw Error(ExitCode::usage, target + " does not exist", hint);
  }
  enter_with_owner(open_namespace("/proc/" + std::to_string(pid) + "/ns/net", target, hint), target);
}

}  // namespace sidetrack
