// SPDX-License-Identifier: GPL-2.0-or-later
// The lock of a network namespace where /proc is not mounted, or nothing can be locked.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "kernel/lock.h"
#include "support/backend_test.h"
#include "support/refused_call.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

struct NamespaceLockTest : KernelTest {
  Namespace space;

  static void without_proc() { refuse_call(SYS_openat, 2, O_RDONLY | O_CLOEXEC, ENOENT); }
  [[nodiscard]] Error error_of_taking() const {
    return error_in(space, [] {
      without_proc();
      EXPECT_EQ(NamespaceLock(Deadline(std::chrono::milliseconds(20))).warning(), "");
    });
  }
};

// The namespace is known by a socket, too: it is the same lock.
TEST_F(NamespaceLockTest, IsTheSameWithoutProc) {
  EXPECT_EQ(error_of_taking().code(), ExitCode::done);
  ASSERT_EQ(flock(space.fd(), LOCK_EX), 0);
  const Error held = error_of_taking();
  EXPECT_EQ(held.code(), ExitCode::busy);
  EXPECT_STREQ(held.what(), "the lock of the network namespace is still held by another process after 0.0 s");
  ASSERT_EQ(flock(space.fd(), LOCK_UN), 0);
  EXPECT_EQ(error_of_taking().code(), ExitCode::done);
  const Namespace other;
  ASSERT_EQ(flock(other.fd(), LOCK_EX), 0);
  EXPECT_EQ(error_of_taking().code(), ExitCode::done) << "of another namespace";
}

TEST_F(NamespaceLockTest, ThatCannotBeHadIsSaid) {
  space.run([] {
    without_proc();
    refuse_call(SYS_socket, 0, AF_UNIX, EMFILE);
    EXPECT_EQ(NamespaceLock(Deadline(std::chrono::milliseconds(20))).warning(),
              "continuing without the lock of the network namespace: /proc/thread-self/ns/net: No such file or "
              "directory (ENOENT)");
  });
  space.run([] {
    refuse_call(SYS_flock, 1, LOCK_EX | LOCK_NB, EOPNOTSUPP);
    EXPECT_THAT(NamespaceLock(Deadline(std::chrono::milliseconds(20))).warning(), HasSubstr("(EOPNOTSUPP)"));
  });
}

}  // namespace
}  // namespace sidetrack::netns
