// SPDX-License-Identifier: GPL-2.0-or-later
// sidetrack::Pod: pods are worked in from outside, and the caller stays where it is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sidetrack/error.h>
#include <sidetrack/pod.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <thread>

#include "support/network.h"
#include "support/trace.h"
#include "support/traffic.h"
#include "support/user_namespace.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using LibraryPod = sidetrack::Pod;  // a Pod here is one with an app, a proxy and a client

ino_t own_namespace() {
  struct stat status {};
  EXPECT_EQ(stat("/proc/thread-self/ns/net", &status), 0);
  return status.st_ino;
}

class Library : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const Namespace* each : {&here, &pod, &other}) ip(*each, "link set lo up\n");
  }

  [[nodiscard]] static LibraryPod pod_of(const Namespace& where) {
    return LibraryPod::of_namespace(fmt::format("/proc/self/fd/{}", where.fd()));
  }

  [[nodiscard]] static Options options(std::string_view ports = "*") {
    return Options::parse(
        {"--backend", GetParam(), "--ip-families", "ipv4", "-u", "1337", "-i", "*", "-b", std::string(ports)});
  }

  // As a program that is in a namespace of its own calls it.
  template <typename Act>
  auto call(Act act) const {
    return here.run([&] {
      const ino_t before = own_namespace();
      auto result = act();
      EXPECT_EQ(own_namespace(), before);
      return result;
    });
  }

  Namespace here;
  Namespace pod;
  Namespace other;
};

TEST_P(Library, WorksInAPodFromOutside) {
  const std::string untouched = trace(here);
  const LibraryPod target = pod_of(pod);

  EXPECT_FALSE(call([&] { return target.diff(options()); }).equal);
  try {
    (void)call([&] { return target.verify(options()); });
    ADD_FAILURE() << "verify passed where nothing is installed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::differs);
    EXPECT_THAT(error.what(), HasSubstr("+-A ISTIO_OUTPUT"));
  }

  const LibraryPod::Applied applied = call([&] { return target.apply(options()); });
  EXPECT_TRUE(applied.changed);
  EXPECT_EQ(applied.backend, GetParam());
  EXPECT_THAT(applied.summary, StartsWith("installed "));
  EXPECT_FALSE(call([&] { return target.apply(options()); }).changed);
  // The program sees the same.
  const Output verified = pod.program({program_under_test(), "verify", "--backend", GetParam(), "--ip-families", "ipv4",
                                       "-u", "1337", "-i", "*", "-b", "*"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const LibraryPod::Difference equal = call([&] { return target.verify(options()); });
  EXPECT_TRUE(equal.as_requested);
  EXPECT_THAT(equal.text, IsEmpty());
  EXPECT_EQ(equal.summary, std::string("rules and routes are as requested, through ") + GetParam());
  const LibraryPod::Difference differs = call([&] { return target.diff(options("80")); });
  EXPECT_FALSE(differs.equal);
  EXPECT_THAT(differs.text, HasSubstr("80"));

  const Explanation lands = call([&] { return target.explain({"lo", "tcp", ":80", "--uid", "1337"}); });
  EXPECT_EQ(lands.result, Explanation::Result::lands);
  EXPECT_EQ(lands.port, 80);

  const LibraryPod::Cleaned cleaned = call([&] { return target.clean(); });
  EXPECT_TRUE(cleaned.changed);
  EXPECT_EQ(cleaned.summary, std::string("removed all rules and routes of the mesh from ") + GetParam());
  EXPECT_FALSE(call([&] { return target.clean(); }).changed);
  EXPECT_EQ(trace(here), untouched);
}

TEST_P(Library, WorksWhereTheCallerIs) {
  setenv("XTABLES_LOCKFILE", absent_lock_file().c_str(), 1);
  EXPECT_TRUE(call([] { return LibraryPod::own().apply(options()); }).changed);
  EXPECT_TRUE(call([] { return LibraryPod::own().verify(options()); }).as_requested);
  EXPECT_TRUE(call([] { return LibraryPod::own().clean(); }).changed);
  unlink(absent_lock_file().c_str());
  unsetenv("XTABLES_LOCKFILE");
}

// Each thread has its pod, and both sets of rules are what was asked for there.
TEST_P(Library, WorksInTwoPodsAtOnce) {
  const auto work = [](const Namespace& where, std::string_view ports) {
    const LibraryPod target = pod_of(where);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(target.apply(options(ports)).changed);
      EXPECT_TRUE(target.verify(options(ports)).as_requested);
      EXPECT_TRUE(target.clean().changed);
    }
    EXPECT_TRUE(target.apply(options(ports)).changed);
  };
  std::thread first([&] { work(pod, "80"); });
  std::thread second([&] { work(other, "443"); });
  first.join();
  second.join();
  EXPECT_FALSE(pod_of(pod).diff(options("443")).equal);
  EXPECT_TRUE(pod_of(other).diff(options("443")).equal);
}

INSTANTIATE_TEST_SUITE_P(, Library, ::testing::ValuesIn(backends), backend_name);

using LibraryErrors = KernelTest;

template <typename Act>
void expect_error(ExitCode code, const char* message, Act act) {
  try {
    act();
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

// A pod that turns out to be where the caller is may be the machine.
TEST_F(LibraryErrors, TheCallersOwnNamespaceIsNoPod) {
  const Namespace here;
  here.run([] {
    expect_error(ExitCode::usage, "the network namespace is the caller's own",
                 [] { (void)LibraryPod::of_namespace("/proc/thread-self/ns/net"); });
  });
  expect_error(ExitCode::usage, "the network namespace is the caller's own",
               [] { (void)LibraryPod::of_process(static_cast<std::uint32_t>(getpid())); });
  expect_error(ExitCode::usage, "does not exist", [] { (void)LibraryPod::of_process(4194305); });
  expect_error(ExitCode::usage, "is not a network namespace",
               [] { LibraryPod::of_namespace("/proc/self/status").clean(); });
}

TEST_F(LibraryErrors, ANamespaceOfAnotherUserNamespaceIsRefused) {
  const UserNamespace users;
  const Namespace network = users.network();
  const std::string before = trace(network);
  const LibraryPod target = LibraryPod::of_namespace(fmt::format("/proc/self/fd/{}", network.fd()));
  expect_error(ExitCode::not_permitted, "another user namespace", [&] {
    target.apply(Options::parse({"-b", "*", "--ip-families", "ipv4"}));
  });
  EXPECT_EQ(trace(network), before);
}

// A process in the namespace, which ends with this object or with the test.
class Sleeper {
 public:
  explicit Sleeper(const Namespace& where) {
    EXPECT_EQ(pipe(ends_), 0);
    pid_ = where.run([this] {
      const pid_t child = fork();
      if (child != 0) return child;
      close(ends_[1]);
      char none = 0;
      (void)!read(ends_[0], &none, 1);
      _exit(0);
    });
  }
  ~Sleeper() {
    close(ends_[0]);
    close(ends_[1]);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  int ends_[2] = {-1, -1};
  pid_t pid_ = -1;
};

// The files are those of the process that names the pod.
TEST_F(LibraryErrors, NameTheFileOfThePod) {
  const Environment unknown_user = [](std::string_view name) {
    return name == "ENVOY_USER" ? std::optional<std::string_view>("nobody-of-that-name") : std::nullopt;
  };
  const std::vector<std::string> words{"-b", "*", "--ip-families", "ipv4"};
  const Namespace elsewhere;
  const Sleeper process(elsewhere);
  const LibraryPod target = LibraryPod::of_process(process.pid());
  const std::string file = fmt::format("in /proc/{}/root/etc/passwd", process.pid());
  expect_error(ExitCode::usage, file.c_str(), [&] { target.apply(Options::parse(words, unknown_user)); });
  EXPECT_THAT(target.explain({"out", "icmp", "192.0.2.1"}).sentence, HasSubstr("no route"));
  const LibraryPod::Difference none = target.diff(Options::parse({"-m", "NONE", "--ip-families", "ipv4"}));
  EXPECT_TRUE(none.equal);
  EXPECT_EQ(none.backend, "");
}

}  // namespace
}  // namespace sidetrack::netns
