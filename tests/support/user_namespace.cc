// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <stdexcept>

namespace sidetrack::netns {
namespace {

FileDescriptor open_path(const std::string& path) {
  return FileDescriptor(check(open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path));
}

void map_ids(const std::string& path) {
  std::ofstream file(path);
  file << "0 " << UserNamespace::first_outside << " 65536" << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace

// A user namespace is made by a process with a single thread: a child, which lives until its namespaces are held here.
// The network namespace comes second, as with container runtimes: its files in /proc/net belong to the user who is root
// in the user namespace by then.
UserNamespace::UserNamespace() {
  std::array<int, 2> pipe_up{};
  std::array<int, 2> pipe_down{};
  check(pipe2(pipe_up.data(), O_CLOEXEC), "pipe");
  check(pipe2(pipe_down.data(), O_CLOEXEC), "pipe");
  const pid_t child = check(fork(), "fork");
  if (child == 0) {  // nothing but system calls: other threads may hold locks
    close(pipe_down[1]);
    char byte = 0;
    for (const int kind : {CLONE_NEWUSER, CLONE_NEWNET}) {
      if (unshare(kind) != 0 || write(pipe_up[1], &byte, 1) != 1 || read(pipe_down[0], &byte, 1) != 1) break;
    }
    _exit(0);
  }
  const FileDescriptor up(pipe_up[0]);
  const FileDescriptor down(pipe_down[1]);
  close(pipe_up[1]);
  close(pipe_down[0]);
  const auto made = [&] {
    char byte = 0;
    return read(up.get(), &byte, 1) == 1;
  };
  const auto go_on = [&] { check(write(down.get(), "", 1), "tell the child to go on"); };
  const std::string folder = "/proc/" + std::to_string(child) + "/";
  try {
    if (!made()) throw std::runtime_error("cannot make a user namespace");
    map_ids(folder + "uid_map");
    map_ids(folder + "gid_map");
    go_on();
    if (!made()) throw std::runtime_error("cannot make a network namespace in it");
    user_ = open_path(folder + "ns/user");
    net_ = open_path(folder + "ns/net");
    go_on();
  } catch (...) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    throw;
  }
  check(waitpid(child, nullptr, 0), "wait for the child");
}

Namespace UserNamespace::network() const {
  return Namespace(FileDescriptor(check(fcntl(net_.get(), F_DUPFD_CLOEXEC, 0), "duplicate")));
}

std::vector<std::string> UserNamespace::inside(std::vector<std::string> words) const {
  const std::string folder = "/proc/" + std::to_string(getpid()) + "/fd/";
  words.insert(words.begin(), {"nsenter", "--user=" + folder + std::to_string(user_.get()),
                               "--net=" + folder + std::to_string(net_.get())});
  return words;
}

}  // namespace sidetrack::netns
