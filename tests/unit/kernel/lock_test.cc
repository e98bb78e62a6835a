// SPDX-License-Identifier: GPL-2.0-or-later
// Locks on files, as those of legacy iptables: what is no file, who holds it, and how long it is waited for.
#include "kernel/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "kernel/inspect.h"
#include "kernel/legacy/lock.h"
#include "model/error.h"
#include "support/cannot_run.h"
#include "system/capabilities.h"
#include "unit/apart.h"
#include "unit/temporary_folder.h"

namespace sidetrack {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Without /proc and CAP_NET_ADMIN no file stands for the namespace: each time the reason is said, not what failed last.
TEST(NamespaceLocks, SayWhyThereIsNone) {
  const std::string said = testing::apart([]() -> std::string {
    if (!testing::enter_new(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, nullptr) != 0 || keep_only({}) != 0)
      return "skip";
    const Deadline deadline(milliseconds(0));
    NamespaceLock lock(deadline);
    const std::string first = lock.warning();
    errno = EXDEV;
    lock.take(deadline);
    return first == lock.warning() ? first : first + "; then " + lock.warning();
  });
  if (said == "skip") return cannot_run("it takes a mount namespace");
  EXPECT_EQ(said,
            "continuing without the lock of the network namespace: /proc/thread-self/ns/net: No such file or directory "
            "(ENOENT)");
}

class LockFiles : public ::testing::Test {
 protected:
  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path() / "lock";

  // An open file, of which the kernel knows no other name: another lock than any other's.
  [[nodiscard]] Descriptor opened() const {
    return Descriptor(open(path_.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  }
  [[nodiscard]] bool is_free() const { return flock(opened().get(), LOCK_EX | LOCK_NB) == 0; }
  [[nodiscard]] Error error_of(const OpenedLockFile& file) const {
    try {
      const legacy::XtablesLock lock(
          std::make_shared<OpenedLockFile>(OpenedLockFile{file.path, Descriptor(dup(file.file.get())), file.error}),
          Deadline(milliseconds(0)));
      return Error(ExitCode::done, lock.warning());
    } catch (const Error& error) {
      return error;
    }
  }
};

TEST_F(LockFiles, WhoHoldsOneIsNamed) {
  const Descriptor held = opened();
  EXPECT_EQ(lock_holder(held.get()), "");
  EXPECT_EQ(inspect_lock(path_).holder, "");
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  const std::string who = fmt::format("held by unit_tests (pid {})", getpid());
  EXPECT_EQ(lock_holder(held.get()), who);
  EXPECT_EQ(inspect_lock(path_).holder, who);
  EXPECT_EQ(inspect_lock(path_).problem, "");
  EXPECT_FALSE(is_free()) << "to look at it does not take it";
  // Of another file of the same folder.
  const std::string other = path_ + "-other";
  EXPECT_EQ(lock_holder(Descriptor(open(other.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600)).get()), "");
  EXPECT_EQ(lock_holder(-1), "");
}

TEST_F(LockFiles, OneThatIsHeldIsWaitedForAsLongAsThePatienceLasts) {
  const Descriptor held = opened();
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  const auto start = std::chrono::steady_clock::now();
  const Descriptor other = opened();
  try {
    lock_file(other.get(), "the lock", Deadline(milliseconds(1200)));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::busy);
    EXPECT_EQ(error.what(), fmt::format("the lock is still held by unit_tests (pid {}) after 1.2 s", getpid()));
    EXPECT_EQ(error.hint(), "wait for it to end, or wait longer with --wait");
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(1200));
  flock(held.get(), LOCK_UN);
  EXPECT_NO_THROW(lock_file(other.get(), "the lock", Deadline(milliseconds(0))));
  EXPECT_FALSE(is_free());
  EXPECT_THROW(lock_file(-1, "the lock", Deadline(milliseconds(0))), Error);
}

TEST_F(LockFiles, ALockOfXtablesLastsAsLongAsTheObject) {
  {
    const legacy::XtablesLock lock(open_lock_file(path_), Deadline(milliseconds(0)));
    EXPECT_EQ(lock.warning(), "");
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
  struct stat made {};
  ASSERT_EQ(stat(path_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777U, 0600U);
  const Descriptor held = opened();
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  EXPECT_EQ(error_of({path_, opened(), 0}).code(), ExitCode::busy);
}

// Where it cannot be made, what needs none goes on without it; what else is wrong is said.
TEST_F(LockFiles, WhereThereCanBeNone) {
  for (const int error : {EROFS, ENOENT, EACCES}) {
    const Error warned = error_of({"/x/lock", Descriptor(), error});
    EXPECT_EQ(warned.code(), ExitCode::done);
    EXPECT_THAT(warned.what(), HasSubstr("continuing without xtables.lock: /x/lock: "));
  }
  for (const int error : {EMFILE, EISDIR, ELOOP}) {
    const Error refused = error_of({"/x/lock", Descriptor(), error});
    EXPECT_NE(refused.code(), ExitCode::done);
    EXPECT_THAT(refused.what(), HasSubstr("cannot open lock file /x/lock: "));
  }
  const std::string nowhere = folder_.path() / "missing" / "lock";
  EXPECT_FALSE(open_lock_file(nowhere)->file.valid());
  EXPECT_EQ(open_lock_file(nowhere)->error, ENOENT);
  EXPECT_EQ(open_lock_file(nowhere)->path, nowhere);
  EXPECT_EQ(inspect_lock(nowhere).problem, "No such file or directory (ENOENT)");
  EXPECT_EQ(inspect_lock(path_).problem, "") << "it can be made";
  EXPECT_EQ(access(path_.c_str(), F_OK), -1) << "and was not";
  const std::string below_a_file = path_ + "-file/lock";
  const Descriptor file(open((path_ + "-file").c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  EXPECT_EQ(inspect_lock(below_a_file).problem, "Not a directory (ENOTDIR)");
}

TEST_F(LockFiles, WhatIsNoFileIsNoLock) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(inspect_lock(path_).problem, "a FIFO, not a regular file");
  const auto opened = open_lock_file(path_);
  ASSERT_TRUE(opened->file.valid());
  const Error refused = error_of(*opened);
  EXPECT_EQ(refused.code(), ExitCode::usage);
  EXPECT_EQ(refused.what(), "lock file " + path_ + " is a FIFO, not a regular file");
}

TEST_F(LockFiles, WhereItIsSaidToBe) {
  const auto where = [] { return inspect_lock("").path; };
  unsetenv("XTABLES_LOCKFILE");
  EXPECT_EQ(where(), "/run/xtables.lock");
  setenv("XTABLES_LOCKFILE", "", 1);
  EXPECT_EQ(where(), "/run/xtables.lock");
  setenv("XTABLES_LOCKFILE", path_.c_str(), 1);
  EXPECT_EQ(where(), path_);
  EXPECT_EQ(inspect_lock("/x/another").path, "/x/another");
  unsetenv("XTABLES_LOCKFILE");
}

}  // namespace
}  // namespace sidetrack
