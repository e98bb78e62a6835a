// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/namespace.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <stdexcept>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

constexpr int guard_ms = 60'000;  // a program that is silent for so long hangs

// The system calls themselves: they change the calling thread alone, glibc's functions of that name all threads.
void take_on(const Identity& identity) {
  if (identity.uid == 0 && identity.gid == 0) return;
  if (identity.keep_capabilities) check(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP), "keep capabilities");
  check(syscall(SYS_setgroups, 0, nullptr), "drop supplementary groups");
  check(syscall(SYS_setresgid, identity.gid, identity.gid, identity.gid), "take on the gid");
  check(syscall(SYS_setresuid, identity.uid, identity.uid, identity.uid), "take on the uid");
}

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
  Pipe() {
    std::array<int, 2> ends{};
    check(pipe2(ends.data(), O_CLOEXEC), "pipe");
    read = FileDescriptor(ends[0]);
    write = FileDescriptor(ends[1]);
  }
};

FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(check(memfd_create("input", MFD_CLOEXEC), "memfd_create"));
  check(pwrite(file.get(), text.data(), text.size(), 0), "write the input");
  return file;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

pid_t spawn(std::vector<std::string> words, const std::vector<std::string>& added, int in, int out, int err) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  environment.insert(environment.begin(), added.begin(), added.end());  // getenv(3) takes the first

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                                 pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), "run " + words.front());
  return pid;
}

// Reads both until both are closed; false if nothing came for too long.
bool drain(std::array<pollfd, 2> ends, std::array<std::string*, 2> texts) {
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends.data(), ends.size(), guard_ms) <= 0) return false;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t size = read(ends[i].fd, buffer.data(), buffer.size());
      if (size > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(size));
      if (size <= 0) ends[i].fd = -1;  // poll(2) passes over negative descriptors
    }
  }
  return true;
}

}  // namespace

Namespace::Namespace() {
  std::packaged_task<FileDescriptor()> make([] {
    check(unshare(CLONE_NEWNET), "make a network namespace");
    return FileDescriptor(check(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "open the network namespace"));
  });
  auto made = make.get_future();
  std::thread(std::move(make)).join();
  fd_ = made.get();
}

void Namespace::enter(Identity identity) const {
  check(setns(fd_.get(), CLONE_NEWNET), "enter the network namespace");
  take_on(identity);
}

Output Namespace::program(const std::vector<std::string>& words, const std::string& input,
                          const std::vector<std::string>& environment, Identity identity) const {
  const FileDescriptor in = file_with(input);
  Pipe out;
  Pipe err;
  const pid_t pid =
      run([&] { return spawn(words, environment, in.get(), out.write.get(), err.write.get()); }, identity);
  out.write = {};
  err.write = {};

  Output output;
  const bool in_time =
      drain({pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}}, {&output.out, &output.err});
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  check(waitpid(pid, &status, 0), "wait for " + words.front());
  if (!in_time) throw std::runtime_error(words.front() + " hangs; so far it said: " + output.out + output.err);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  // No error that a test may expect.
  if (words.front() == program_under_test() && (output.out + output.err).find("internal error") != std::string::npos) {
    throw std::runtime_error("ended with " + std::to_string(output.exit_code) + ":\n" + output.out + output.err);
  }
  return output;
}

std::string Namespace::must(const std::vector<std::string>& words, const std::string& input) const {
  Output output = program(words, input);
  if (output.exit_code == 0) return output.out;
  std::string line;
  for (const auto& word : words) line += word + ' ';
  throw std::runtime_error(line + "ended with " + std::to_string(output.exit_code) + ":\n" + output.err + input);
}

}  // namespace sidetrack::netns
