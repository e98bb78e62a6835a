// SPDX-License-Identifier: GPL-2.0-or-later
// What leads to a network namespace, and what does not. That rules land there is the matter of
// tests/kernel/process/target_test.cc.
#include "system/namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "model/error.h"
#include "support/cannot_run.h"
#include "system/descriptor.h"
#include "system/network_namespaces.h"
#include "unit/apart.h"
#include "unit/temporary_folder.h"

namespace sidetrack {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using testing::apart;
using testing::enter_new;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Act>
std::string refusal(Act act) {
  try {
    static_cast<void>(act());
  } catch (const Error& error) {
    return fmt::format("{}: {}; {}", static_cast<int>(error.code()), error.what(), error.hint());
  }
  return "";
}

constexpr const char* own = "/proc/self/ns/net";

// A process that has ended, and has a number as long as nobody waits for it.
class Ended {
 public:
  Ended() : pid_(fork()) {
    if (pid_ == 0) _exit(0);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  ~Ended() { waitpid(pid_, nullptr, 0); }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_;
};

TEST(PlaceOfProcess, IsItsNetworkNamespaceAndItsRoot) {
  const Place place = place_of_process(static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(place.name, fmt::format("process {}", getpid()));
  EXPECT_EQ(place.root_name, fmt::format("/proc/{}/root", getpid()));
  EXPECT_TRUE(place.ours);
  struct stat root {};
  struct stat found {};
  ASSERT_EQ(stat("/", &root), 0);
  ASSERT_EQ(fstat(place.root->get(), &found), 0);
  EXPECT_EQ(found.st_ino, root.st_ino);
  struct stat net {};
  ASSERT_EQ(fstat(place.net->get(), &net), 0);
  EXPECT_EQ(namespace_at(own), (NamespaceId{net.st_dev, net.st_ino}));
}

TEST(PlaceOfProcess, OneThatIsNotThereOrHasEndedIsSaid) {
  const std::string hint = "; it must be the id of a running process, as seen from here (see 'crictl inspect' or 'ps')";
  EXPECT_EQ(refusal([] { return place_of_process(4294967295U); }), "2: process 4294967295 does not exist" + hint);
  const Ended ended;
  EXPECT_EQ(refusal([&] { return place_of_process(ended.pid()); }),
            fmt::format("2: process {} has ended: cannot open ns/net: No such file or directory (ENOENT){}",
                        ended.pid(), hint));
}

TEST(PlaceOfNetns, IsAPathOrAName) {
  const Place place = place_of_netns(own);
  EXPECT_EQ(place.name, "network namespace '/proc/self/ns/net'");
  EXPECT_EQ(place.root, nullptr);
  EXPECT_TRUE(place.ours);
  enter(place);  // where it is already
  const std::string hint = "; 'ip netns' lists the names; a path must have a '/'";
  EXPECT_EQ(refusal([] { return place_of_netns("sidetrack-none"); }),
            "2: network namespace 'sidetrack-none': cannot open /run/netns/sidetrack-none: No such file or directory "
            "(ENOENT)" +
                hint);
  EXPECT_EQ(
      refusal([] { return place_of_netns("./sidetrack-none"); }),
      "2: network namespace './sidetrack-none': cannot open ./sidetrack-none: No such file or directory (ENOENT)" +
          hint);
}

TEST(PlaceOfNetns, WhatIsNoneIsSaid) {
  const std::string hint = "; give a file such as /run/netns/NAME or /proc/PID/ns/net, or a name that 'ip netns' lists";
  EXPECT_EQ(refusal([] { return place_of_netns("/proc/self/ns/mnt"); }),
            "2: network namespace '/proc/self/ns/mnt' is not a network namespace" + hint);
  EXPECT_EQ(refusal([] { return place_of_netns("/proc"); }),
            "2: '/proc' is a directory, not a network namespace" + hint);
  EXPECT_EQ(refusal([] { return place_of_netns("/dev/null"); }),
            "2: '/dev/null' is a device, not a network namespace" + hint);
  // Of another file the kernel says so.
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() / "file";
  close(creat(file.c_str(), 0600));
  EXPECT_EQ(apart([&] {
              return refusal([&] {
                const Place place = place_of_netns(file);
                if (!place.ours) enter(place);
                return 0;
              });
            }),
            fmt::format("2: network namespace '{}' is not a network namespace{}", file, hint));
}

TEST(NetworkNamespace, IsToldFromOtherFiles) {
  EXPECT_TRUE(is_network_namespace(own));
  EXPECT_FALSE(is_network_namespace(""));
  EXPECT_FALSE(is_network_namespace("/sidetrack-none"));
  EXPECT_FALSE(is_network_namespace("/dev/null"));
  EXPECT_FALSE(is_network_namespace("/dev/null/below"));
  EXPECT_FALSE(is_network_namespace("/proc/self/ns/mnt"));
  const Ended ended;
  EXPECT_FALSE(is_network_namespace(fmt::format("/proc/{}/ns/net", ended.pid())));
  const testing::TemporaryFolder folder;
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_EQ(refusal([&] { return is_network_namespace(folder.path() / "loop"); }),
            fmt::format("1: cannot look at {}: Too many levels of symbolic links (ELOOP); ",
                        (folder.path() / "loop").string()));
}

TEST(NamespaceAt, IsTheSameByEachWay) {
  const auto id = namespace_at(own);
  ASSERT_TRUE(id);
  EXPECT_EQ(namespace_at(fmt::format("/proc/{}/ns/net", getpid())), id);
  EXPECT_NE(namespace_at("/proc/self/ns/mnt"), id);
  EXPECT_EQ(namespace_at("/sidetrack-none"), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(namespace_at("/"), std::nullopt);
  EXPECT_EQ(errno, ENOTTY);
}

TEST(OwnNetworkNamespace, HasANameOfItsOwn) {
  const std::string here = own_network_namespace();
  EXPECT_THAT(here, AnyOf(StartsWith("cookie:"), StartsWith("inode:")));
  EXPECT_NE(here, "cookie:0");
  EXPECT_EQ(own_network_namespace(), here);
  EXPECT_EQ(apart([] { return own_network_namespace(); }), here);
  const std::string there = apart([] { return enter_new(CLONE_NEWNET) ? own_network_namespace() : ""; });
  if (there.empty()) return cannot_run("no namespace may be made");
  EXPECT_NE(there, here);
}

// From another one back to that of the process above, by its path.
TEST(OwnNetworkNamespace, IsEnteredByItsPlace) {
  const std::string said = apart([] {
    const Place before = place_of_netns(own);
    if (unshare(CLONE_NEWNET) != 0) return std::string("skip");
    const Place place = place_of_process(static_cast<std::uint32_t>(getppid()));
    if (place.ours || !before.ours) return std::string("it is taken for its own");
    const std::string there = own_network_namespace();
    enter(place);
    return own_network_namespace() == there ? "it stayed" : own_network_namespace();
  });
  if (said == "skip") return cannot_run("it takes root");
  EXPECT_EQ(said, own_network_namespace());
}

TEST(NetworkNamespaces, AreThoseOfOtherProcessesEachOnce) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  // Two processes in one new namespace, the second for as long as the first.
  const pid_t first = fork();
  if (first == 0) {
    const bool done = enter_new(CLONE_NEWNET);
    if (done && fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      static_cast<void>(!write(ends[1], "x", 1));
    } else if (!done) {
      static_cast<void>(!write(ends[1], "-", 1));
    }
    for (;;) pause();
  }
  close(ends[1]);
  char letter = 0;
  ASSERT_EQ(read(ends[0], &letter, 1), 1);
  std::vector<std::string> problems;
  std::vector<ProcessesOfNamespace> found;
  const auto id = namespace_at(fmt::format("/proc/{}/ns/net", first));
  const std::string refused = refusal([&] {
    found = network_namespaces(problems);
    return 0;
  });
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
  close(ends[0]);
  if (letter == '-') return cannot_run("no namespace may be made");
  if (!refused.empty()) return cannot_run(refused);
  EXPECT_EQ(std::ranges::count(found, id, &ProcessesOfNamespace::id), 1);
  const auto ours = std::ranges::find(found, id, &ProcessesOfNamespace::id);
  ASSERT_NE(ours, found.end());
  EXPECT_EQ(ours->pid, static_cast<std::uint32_t>(first));
  EXPECT_EQ(ours->process, "unit_tests");
  EXPECT_EQ(std::ranges::find(found, namespace_at(own), &ProcessesOfNamespace::id), found.end()) << "the caller's own";
}

TEST(NetworkNamespaces, OfProcessesThatMayNotBeLookedAtAreNamed) {
  const std::string said = apart([] {
    if (geteuid() != 0) return std::string("skip");
    if (setresuid(65533, 65533, 65533) != 0) return std::string("skip");
    std::vector<std::string> problems;
    const std::vector<ProcessesOfNamespace> found = network_namespaces(problems);
    if (!found.empty()) return std::string("something is found");
    return problems.size() == 1 ? problems.front() : fmt::format("{} problems", problems.size());
  });
  if (said == "skip") return cannot_run("it takes root");
  EXPECT_THAT(said, StartsWith("the network namespaces of these processes cannot be looked at: 1 ("));
  EXPECT_THAT(said, HasSubstr("), "));
  EXPECT_THAT(said, HasSubstr(": Permission denied (EACCES); it takes CAP_SYS_PTRACE: run as root on the node"));
}

}  // namespace
}  // namespace sidetrack
