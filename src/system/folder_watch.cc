// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/folder_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "model/error.h"
#include "model/printable.h"

namespace sidetrack {
namespace {

// A file counts when it is complete: IN_CLOSE_WRITE, not IN_MODIFY.
constexpr std::uint32_t mask = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                               IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

Error cannot_watch(int error) {
  return system_error(error, "cannot watch directories", ExitCode::failed,
                      "a user may have so many watches: sysctl fs.inotify.max_user_instances");
}

}  // namespace

FolderWatch::FolderWatch(std::initializer_list<int> changes) : inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (!inotify_.valid()) throw cannot_watch(errno);
  sigset_t held;
  sigemptyset(&held);
  for (const auto& signals : {std::initializer_list<int>{SIGTERM, SIGINT}, changes}) {
    for (const int signal : signals) sigaddset(&held, signal);
  }
  signals_ = Descriptor(signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) throw cannot_watch(errno);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

// A signal that has come by now asked for what ends with this object.
FolderWatch::~FolderWatch() {
  signalfd_siginfo heard{};
  while (read(signals_.get(), &heard, sizeof heard) == sizeof heard) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool FolderWatch::arm(const std::vector<std::string>& folders) {
  std::map<int, std::set<std::string>> wanted;
  for (const std::string& folder : folders) {
    // From above: a folder that is made after its parent was asked about is an event of the parent.
    for (std::size_t end = 1; end <= folder.size();) {
      const std::size_t next_begin = folder.find_first_not_of('/', end);
      const std::size_t next_end = folder.find('/', next_begin);
      const bool last = next_begin == std::string::npos;
      const std::string path = folder.substr(0, end);
      const int watch = inotify_add_watch(inotify_.get(), path.c_str(), mask);
      if (watch < 0 && (errno == ENOENT || errno == ENOTDIR)) break;
      if (watch < 0) {
        throw system_error(
            errno, fmt::format("cannot watch the directory '{}'", excerpt(path)), ExitCode::failed,
            errno == ENOSPC ? "a user may have so many watches: sysctl fs.inotify.max_user_watches" : "");
      }
      wanted[watch].insert(last ? "" : folder.substr(next_begin, next_end - next_begin));
      if (last) break;
      end = next_end == std::string::npos ? folder.size() : next_end;
    }
  }
  bool added = false;
  for (const auto& [watch, names] : wanted) added |= watched_[watch] != names;
  for (const auto& [watch, names] : watched_) {
    if (!wanted.contains(watch)) inotify_rm_watch(inotify_.get(), watch);
  }
  watched_ = std::move(wanted);
  return added;
}

bool FolderWatch::take_events() {
  bool counts = false;
  alignas(inotify_event) char buffer[16384];
  while (true) {
    const ssize_t size = read(inotify_.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return counts;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer + at, sizeof event);
      const std::string name = event.len > 0 ? buffer + at + sizeof event : "";
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) counts = true;
      const auto found = watched_.find(event.wd);
      if (found == watched_.end()) continue;
      // The folder itself is gone, or has another name: what leads there is to be watched anew.
      const bool itself = (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0;
      counts |= itself || found->second.contains("") || found->second.contains(name);
      if ((event.mask & IN_IGNORED) != 0) watched_.erase(found);
    }
  }
}

FolderWatch::Woken FolderWatch::wait(std::chrono::milliseconds longest) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Woken::timeout;
    pollfd ready[] = {{inotify_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    const int count = poll(ready, 2, static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) throw system_error(errno, "cannot wait for changes of directories");
    if (count <= 0) continue;
    signalfd_siginfo signal{};
    if (read(signals_.get(), &signal, sizeof signal) == sizeof signal)
      return signal.ssi_signo == SIGTERM || signal.ssi_signo == SIGINT ? Woken::asked_to_end : Woken::changed;
    if (take_events()) return Woken::changed;
  }
}

}  // namespace sidetrack
