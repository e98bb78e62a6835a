// SPDX-License-Identifier: GPL-2.0-or-later
// Which changes end the waiting. Each watch is in a process of its own: it holds signals as long as it lives.
#include "system/folder_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "model/error.h"
#include "unit/apart.h"
#include "unit/temporary_folder.h"

namespace sidetrack {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::apart;

// "changed", "timeout", "asked to end"
std::string woken(FolderWatch& watch, milliseconds longest = std::chrono::seconds(20)) {
  constexpr const char* names[] = {"changed", "timeout", "asked to end"};
  return names[static_cast<std::size_t>(watch.wait(longest))];
}

class FolderWatched : public ::testing::Test {
 protected:
  void put(const std::string& name) const { std::ofstream(path / name) << "text"; }

  const testing::TemporaryFolder temporary;
  const fs::path path = temporary.path() / "net.d";
};

TEST_F(FolderWatched, WhatChangesInItIsNoticedOnce) {
  fs::create_directory(path);
  EXPECT_EQ(apart([&] {
              FolderWatch watch;
              std::string all = watch.arm({path}) ? "new; " : "known; ";
              all += watch.arm({path}) ? "new; " : "known; ";
              all += woken(watch, milliseconds(1)) + "; ";
              const auto note = [&] {
                all += woken(watch) + " ";
                all += woken(watch, milliseconds(1)) + "; ";
              };
              put("one");
              note();
              fs::rename(path / "one", path / "two");
              note();
              fs::permissions(path / "two", fs::perms::owner_read);
              note();
              fs::remove(path / "two");
              note();
              fs::create_directory(path / "folder");
              note();
              put("folder/file");
              return all + woken(watch, milliseconds(1));
            }),
            "new; known; timeout; changed timeout; changed timeout; changed timeout; changed timeout; changed timeout; "
            "timeout");
}

// What leads there counts, and nothing beside it.
TEST_F(FolderWatched, OneThatIsMissingIsAwaited) {
  EXPECT_EQ(apart([&] {
              FolderWatch watch;
              const fs::path inner = path / "a" / "b";
              std::string all = watch.arm({inner.string()}) ? "new; " : "known; ";
              fs::create_directory(temporary.path() / "other");
              all += woken(watch, milliseconds(1)) + "; ";
              fs::create_directory(path);
              all += woken(watch) + "; ";
              all += watch.arm({inner.string()}) ? "new; " : "known; ";
              std::ofstream(path / "b") << "not the next one";
              all += woken(watch, milliseconds(1)) + "; ";
              fs::create_directories(inner);
              all += woken(watch) + "; ";
              all += watch.arm({inner.string()}) ? "new; " : "known; ";
              put("a/b/file");
              all += woken(watch) + "; ";
              fs::rename(path, temporary.path() / "moved");
              all += woken(watch) + "; ";
              all += watch.arm({inner.string()}) ? "new; " : "known; ";
              // It is not the one that is watched any more.
              std::ofstream(temporary.path() / "moved/a/b/another") << "text";
              return all + woken(watch, milliseconds(1));
            }),
            "new; timeout; changed; new; timeout; changed; new; changed; changed; known; timeout");
}

TEST_F(FolderWatched, AFileInItsPlaceIsNone) {
  std::ofstream(path) << "a file";
  EXPECT_EQ(apart([&] {
              FolderWatch watch;
              watch.arm({path.string(), (path / "below").string()});
              std::string all = woken(watch, milliseconds(1)) + "; ";
              fs::remove(path);
              return all + woken(watch);
            }),
            "timeout; changed");
}

TEST_F(FolderWatched, OneThatIsRemovedIsNoticed) {
  fs::create_directory(path);
  EXPECT_EQ(apart([&] {
              FolderWatch watch;
              watch.arm({path});
              fs::remove(path);
              std::string all = woken(watch) + "; ";
              fs::create_directory(path);
              all += woken(watch) + "; ";
              return all + (watch.arm({path}) ? "new" : "known");
            }),
            "changed; changed; new");
}

TEST_F(FolderWatched, OthersAreNotWatchedAnyMore) {
  fs::create_directory(path);
  EXPECT_EQ(apart([&] {
              FolderWatch watch;
              watch.arm({path, temporary.path()});
              put("one");
              std::string all = woken(watch) + "; ";
              watch.arm({});
              put("two");
              all += woken(watch, milliseconds(1)) + "; ";
              all += watch.arm({"/"}) ? "new" : "known";
              return all;
            }),
            "changed; timeout; new");
}

TEST_F(FolderWatched, SignalsEndTheWaitingOrCountAsAChange) {
  fs::create_directory(path);
  EXPECT_EQ(apart([&] {
              FolderWatch watch{SIGUSR1};
              watch.arm({path});
              std::string all;
              for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
                raise(signal);
                all += woken(watch) + "; ";
              }
              return all + woken(watch, milliseconds(0));
            }),
            "asked to end; asked to end; changed; timeout");
  EXPECT_EQ(apart([] {
              FolderWatch watch;
              raise(SIGUSR1);
              return std::string("it is not held");
            }),
            fmt::format("signal {}", SIGUSR1));
}

std::string held() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  std::string all;
  for (int signal = 1; signal < SIGRTMIN; ++signal) all += sigismember(&mask, signal) == 1 ? "x" : "";
  return all;
}

TEST_F(FolderWatched, SignalsAreAsBeforeAfterwards) {
  EXPECT_EQ(apart([] {
              std::string all = held();
              {
                const FolderWatch watch{SIGUSR1};
                all += held() + ";";
                for (const int signal : {SIGTERM, SIGUSR1}) raise(signal);  // heard, not acted upon
              }
              return all + held();
            }),
            "xxx;");
#ifndef SIDETRACK_SANITIZED  // the sanitizers take descriptors themselves
  // Also if none can be made.
  EXPECT_EQ(apart([] {
              rlimit none{};
              setrlimit(RLIMIT_NOFILE, &none);
              try {
                const FolderWatch watch;
              } catch (const Error& error) {
                return held() + error.what();
              }
              return std::string("made");
            }),
            "cannot watch directories: Too many open files (EMFILE)");
#endif
}

}  // namespace
}  // namespace sidetrack
