// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/descriptor.h"
#include "system/file.h"

namespace sidetrack {
namespace {

constexpr const char* needed =
    "CAP_SYS_ADMIN and CAP_SYS_PTRACE are needed to enter another user's namespaces: run as root on the node";
constexpr const char* running =
    "it must be the id of a running process, as seen from here (see 'crictl inspect' or 'ps')";
constexpr const char* a_namespace =
    "give a file such as /run/netns/NAME or /proc/PID/ns/net, or a name that 'ip netns' lists";

Error cannot_open(const std::string& target, const std::string& path, int error, const char* hint) {
  const bool forbidden = error == EACCES || error == EPERM;
  return system_error(error, target + ": cannot open " + path, ExitCode::usage, forbidden ? needed : hint);
}

Error not_a_network_namespace(const std::string& target) {
  return {ExitCode::usage, target + " is not a network namespace", a_namespace};
}

// Whether that is the namespace that this process is in. Both kinds are files of the kernel's, told apart by number.
bool is_ours(const Descriptor& file, const char* own) {
  struct stat ours {};
  if (stat(own, &ours) != 0) {
    throw system_error(errno, fmt::format("cannot tell which namespace this process is in: {}", own), ExitCode::failed,
                       "/proc must be mounted");
  }
  struct stat its {};
  if (fstat(file.get(), &its) != 0) throw system_error(errno, "cannot inspect the namespace");
  return its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

void set_namespace(const Descriptor& fd, int kind, const std::string& target) {
  if (setns(fd.get(), kind) == 0) return;
  if (errno == EINVAL && kind == CLONE_NEWUSER) {
    throw Error(ExitCode::not_permitted,
                target + ": it belongs to another user namespace, which a process of several threads cannot enter",
                "use the program: 'sidetrack' with --pid or --netns");
  }
  if (errno == EINVAL) throw not_a_network_namespace(target);
  throw system_error(errno, target + ": cannot enter the namespace", ExitCode::failed, needed);
}

// linux/sched.h of the kernel itself: shown in /proc/PID/stat, the ninth field.
constexpr unsigned long kernel_thread_flag = 0x00200000;  // PF_KTHREAD

// "4711 (name) S 1 4711 4711 0 -1 4194560 …": the name may hold blanks and brackets.
bool is_kernel_thread(const std::string& stat_line) {
  const auto end_of_name = stat_line.rfind(')');
  if (end_of_name == std::string::npos) return false;
  const auto from_third = split_words(std::string_view(stat_line).substr(end_of_name + 1));
  if (from_third.size() <= 6) return false;
  return (to_number<unsigned long>(from_third[6]).value_or(0) & kernel_thread_flag) != 0;
}

std::string read_line(const Descriptor& folder, const char* name) {
  const Descriptor file(openat(folder.get(), name, O_RDONLY | O_CLOEXEC));
  char buffer[1024];
  const ssize_t size = file.valid() ? read(file.get(), buffer, sizeof buffer) : -1;
  return {buffer, size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::shared_ptr<const Descriptor> open_in(const Descriptor& folder, const char* name, int flags,
                                          const std::string& target) {
  auto file = std::make_shared<const Descriptor>(openat(folder.get(), name, flags | O_CLOEXEC));
  if (file->valid()) return file;
  // A process that has ended and was not waited for has a folder still, and nothing in it.
  const bool ended = errno == ENOENT || errno == ESRCH;
  throw cannot_open(target + (ended ? " has ended" : ""), name, errno, running);
}

}  // namespace

Place place_of_process(std::uint32_t pid) {
  const std::string folder_name = "/proc/" + std::to_string(pid);
  Place place;
  place.name = "process " + std::to_string(pid);
  const Descriptor folder(open(folder_name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT) {
    throw Error(ExitCode::usage, place.name + " does not exist", running);
  }
  if (!folder.valid()) throw cannot_open(place.name, folder_name, errno, running);
  if (is_kernel_thread(read_line(folder, "stat"))) {
    const std::string name = read_line(folder, "comm");
    throw Error(ExitCode::usage,
                fmt::format("{} is a thread of the kernel ({}): it is in no pod, and its namespace is the machine's",
                            place.name, printable(name.substr(0, name.find('\n')))),
                "give the id of a process of the pod (see 'crictl inspect' or 'ps')");
  }
  place.net = open_in(folder, "ns/net", O_RDONLY, place.name);
  place.root = open_in(folder, "root", O_PATH | O_DIRECTORY, place.name);
  place.root_name = folder_name + "/root";
  place.ours = is_ours(*place.net, "/proc/thread-self/ns/net");
  return place;
}

bool is_network_namespace(const std::string& path) {
  struct statfs system {};
  if (path.empty()) return false;
  const bool is_there = statfs(path.c_str(), &system) == 0;
  if (is_there && system.f_type != NSFS_MAGIC) return false;
  const Descriptor file(is_there ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ESRCH)) return false;
  if (!file.valid()) throw system_error(errno, "cannot look at " + excerpt(path));
  const int kind = ioctl(file.get(), NS_GET_NSTYPE);
  return kind < 0 || kind == CLONE_NEWNET;
}

Place place_of_netns(const std::string& path_or_name) {
  Place place;
  place.name = fmt::format("network namespace '{}'", excerpt(path_or_name));
  const bool is_path = path_or_name.find('/') != std::string::npos;
  const std::string path = is_path ? path_or_name : "/run/netns/" + path_or_name;
  host::OpenedFile opened = host::open_regular(-1, path);
  if (!opened.file.valid()) {
    if (!opened.type.empty()) {
      throw Error(ExitCode::usage,
                  fmt::format("'{}' is {}, not a network namespace", excerpt(path_or_name), opened.type), a_namespace);
    }
    throw cannot_open(place.name, excerpt(path), opened.error, "'ip netns' lists the names; a path must have a '/'");
  }
  // Linux 4.11; of another file, setns(2) says it.
  const int kind = ioctl(opened.file.get(), NS_GET_NSTYPE);
  if (kind >= 0 && kind != CLONE_NEWNET) throw not_a_network_namespace(place.name);
  place.net = std::make_shared<const Descriptor>(std::move(opened.file));
  place.ours = is_ours(*place.net, "/proc/thread-self/ns/net");
  return place;
}

void enter(const Place& place) {
  if (place.ours) return;
  // EPERM: the owner is a user namespace outside of ours. What may be done from here, the kernel decides later.
  const Descriptor owner(ioctl(place.net->get(), NS_GET_USERNS));
  if (owner.valid() && !is_ours(owner, "/proc/thread-self/ns/user")) set_namespace(owner, CLONE_NEWUSER, place.name);
  set_namespace(*place.net, CLONE_NEWNET, place.name);
}

}  // namespace sidetrack
