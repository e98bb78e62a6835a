// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "system/descriptor.h"

namespace sidetrack {

// Waits until something changes in folders, which may be missing, made later, renamed and made anew (inotify(7)), or
// until the process is asked to end: while it lives, SIGTERM and SIGINT are held in the thread that
// made it, and in those that it starts, and end wait() instead. To be made and destroyed by one thread.
class FolderWatch {
 public:
  // `changes`: signals that are held, too, and count as a change. Throws Error (failed) if the kernel has no more
  // watches for this user.
  explicit FolderWatch(std::initializer_list<int> changes = {});
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Watches these absolute paths alone, and what leads there. What changes from now on ends the next wait(). Returns
  // whether anything is watched that was not before: then a look at the folders may have come too early.
  bool arm(const std::vector<std::string>& folders);

  enum class Woken : std::uint8_t { changed, timeout, asked_to_end };
  Woken wait(std::chrono::milliseconds longest);

 private:
  // Whether the events that are pending are of the folders or of what leads there.
  bool take_events();

  sigset_t before_{};   // the signals that were held
  Descriptor signals_;  // those that are
  Descriptor inotify_;
  // By the number of the watch: the names in that folder that count; the empty one stands for all.
  std::map<int, std::set<std::string>> watched_;
};

}  // namespace sidetrack
