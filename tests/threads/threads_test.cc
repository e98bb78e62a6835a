// SPDX-License-Identifier: GPL-2.0-or-later
// The public interface, called by many threads of a program that has timers and children of its own. Alone in its
// program, so that ThreadSanitizer can look at it: scripts/test sanitizers. $SIDETRACK_SEED: other choices.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sidetrack/error.h>
#include <sidetrack/pod.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "support/cannot_run.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;

constexpr const char* backends[] = {"nftables", "iptables-nft", "iptables-legacy"};

// A new network namespace, by its path; empty: this user may make none.
class NetworkNamespace {
 public:
  NetworkNamespace() {
    std::thread([this] {
      if (unshare(CLONE_NEWNET) == 0) file_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    }).join();
  }
  ~NetworkNamespace() {
    if (file_ >= 0) close(file_);
  }
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;
  [[nodiscard]] std::string path() const { return file_ < 0 ? "" : fmt::format("/proc/self/fd/{}", file_); }
  [[nodiscard]] int file() const { return file_; }

 private:
  int file_ = -1;
};

// The first cgroup (v2) there is; empty: none is mounted.
std::string some_cgroup() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string source, point, kind, rest; mounts >> source >> point >> kind && std::getline(mounts, rest);) {
    if (kind != "cgroup2") continue;
    for (const auto& entry : std::filesystem::directory_iterator(point))
      if (entry.is_directory()) return entry.path().filename().string();
  }
  return "";
}

Options options(const char* backend, const std::string& cgroup) {
  std::vector<std::string> words{"--backend", backend, "--ip-families", "ipv4", "-u", "1337", "-i", "*", "-b", "*"};
  if (!cgroup.empty()) words.insert(words.end(), {"--bypass-cgroup", cgroup});
  return Options::parse(words);
}

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (pods_[0].path().empty()) return cannot_run("it takes network namespaces");
    setenv("XTABLES_LOCKFILE", fmt::format("/tmp/sidetrack-threads-{}.lock", getpid()).c_str(), 1);
  }
  void TearDown() override {
    if (const char* file = std::getenv("XTABLES_LOCKFILE")) unlink(file);
    unsetenv("XTABLES_LOCKFILE");
  }

  const NetworkNamespace pods_[3]{};
  const std::string cgroup_ = some_cgroup();
};

// Each thread works in a pod of its own, and all look into the first one. What each call gives is what it gives alone.
TEST_F(Threads, MayCallAnything) {
  const char* given = std::getenv("SIDETRACK_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 1;
  const Pod shared = Pod::of_namespace(pods_[0].path());
  shared.apply(options("nftables", cgroup_));
  const std::vector<std::string> packet{"out", "tcp", "192.0.2.1:80", "--uid", "1000"};
  const std::string expected = Rules(options("nftables", cgroup_)).nft();
  std::atomic<int> calls = 0;
  const auto work = [&](std::size_t number) {
    std::mt19937 random(seed + static_cast<unsigned>(number));
    const Pod own = Pod::of_namespace(pods_[1 + number % 2].path());
    for (int i = 0; i < 12; ++i, ++calls) {
      const Options asked = options(backends[number % 2], cgroup_);
      switch (random() % 5) {
        case 0:
          EXPECT_EQ(Rules(options("nftables", cgroup_)).nft(), expected);
          break;
        case 1:
          EXPECT_NE(Rules(asked).explain(packet).sentence, "");
          break;
        case 2:
          EXPECT_NE(shared.explain(packet).sentence, "");
          break;
        case 3:
          EXPECT_TRUE(shared.diff(options("nftables", cgroup_)).equal);
          break;
        default:
          own.apply(asked);
          EXPECT_NE(own.explain(packet).json, "");
          if (number < 2) own.clean();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      try {
        work(i);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "seed " << seed << ", thread " << i << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 48);
}

// ---- A program with a timer, whose handler interrupts every call, and with children that it waits for itself.

std::atomic<int> ticks = 0;
std::atomic<int> waited = 0;

extern "C" void on_tick(int) { ++ticks; }
extern "C" void on_child(int) {
  const int error = errno;
  while (waitpid(-1, nullptr, WNOHANG) > 0) ++waited;
  errno = error;
}

class Host : public Threads {
 protected:
  void SetUp() override {
    Threads::SetUp();
    if (IsSkipped()) return;
    struct sigaction action {};
    action.sa_handler = on_tick;  // without SA_RESTART
    sigaction(SIGALRM, &action, &alarm_);
    action.sa_handler = on_child;
    sigaction(SIGCHLD, &action, &child_);
    const itimerval each{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &each, nullptr);
    ticks = waited = 0;
  }
  void TearDown() override {
    const itimerval none{};
    setitimer(ITIMER_REAL, &none, nullptr);
    sigaction(SIGALRM, &alarm_, nullptr);
    sigaction(SIGCHLD, &child_, nullptr);
    Threads::TearDown();
  }

 private:
  struct sigaction alarm_ {};
  struct sigaction child_ {};
};

std::string held_signals(const std::string& task) {
  std::ifstream status(fmt::format("/proc/self/task/{}/status", task));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return line.substr(line.find_last_of(" \t") + 1);
  return "";
}

TEST_F(Host, KeepsItsTimersAndItsChildren) {
  const std::string before = held_signals(std::to_string(gettid()));
  for (const char* backend : backends) {
    const Pod pod = Pod::of_namespace(pods_[1].path());
    EXPECT_TRUE(pod.apply(options(backend, cgroup_)).changed);
    EXPECT_TRUE(pod.diff(options(backend, cgroup_)).equal) << backend;
    EXPECT_NE(pod.explain({"out", "tcp", "192.0.2.1:80"}).sentence, "");
    EXPECT_TRUE(pod.clean().changed);
  }
  // One whose files are read by a child.
  const pid_t process = fork();
  if (process == 0) {
    signal(SIGALRM, SIG_IGN);
    if (unshare(CLONE_NEWNET) != 0) _exit(1);
    while (true) pause();
  }
  Pod::Difference difference;
  while (true) {  // until it has its own network namespace
    try {
      difference = Pod::of_process(static_cast<std::uint32_t>(process)).diff(Options::parse({"--ip-families", "ipv4"}));
      break;
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr("the caller's own"));
    }
  }
  EXPECT_FALSE(difference.equal);
  kill(process, SIGKILL);
  while (kill(process, 0) == 0) sched_yield();  // waited for by the handler
  EXPECT_EQ(held_signals(std::to_string(gettid())), before);
  EXPECT_GT(ticks, 0);
  EXPECT_GT(waited, 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

// While it waits for another writer, SIGTERM, SIGINT, SIGHUP and SIGQUIT wait, and no other signal does.
TEST_F(Host, HasFourSignalsHeldBack) {
  const int file = open(pods_[1].path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  std::atomic<pid_t> task = 0;
  std::thread working([&] {
    setns(pods_[1].file(), CLONE_NEWNET);
    const std::string mine = held_signals(std::to_string(gettid()));
    EXPECT_EQ(mine, "0000000000000000");
    task = gettid();
    EXPECT_TRUE(Pod::own().apply(options("nftables", cgroup_)).changed);
    EXPECT_EQ(held_signals(std::to_string(gettid())), mine);
    EXPECT_TRUE(Pod::own().clean().changed);
  });
  while (task == 0 || held_signals(std::to_string(task)) == "0000000000000000") sched_yield();
  EXPECT_EQ(held_signals(std::to_string(task)), fmt::format("{:016x}", 1U << (SIGTERM - 1) | 1U << (SIGINT - 1) |
                                                                           1U << (SIGHUP - 1) | 1U << (SIGQUIT - 1)));
  flock(file, LOCK_UN);
  working.join();
  close(file);
}

}  // namespace
}  // namespace sidetrack
