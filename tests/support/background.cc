// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/background.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace sidetrack::netns {
namespace {

constexpr int patience_ms = 30000;

std::vector<char*> pointers_to(Words& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

int occurrences(std::string_view text, std::string_view what) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; at += what.size()) ++count;
  return count;
}

}  // namespace

Background::Background(const Namespace& where, const Words& words, const Words& environment, bool terminal) {
  Words program = words;
  Words variables = environment;  // getenv(3) takes the first
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // nohup, and a shell's `&`, leave signals ignored.
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  short flags = POSIX_SPAWN_SETSIGDEF;
  FileDescriptor their_in;
  FileDescriptor their_err;
  if (terminal) {
    err_ = FileDescriptor(check(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "make a terminal"));
    check(grantpt(err_.get()), "make a terminal");
    check(unlockpt(err_.get()), "make a terminal");
    std::array<char, 64> name{};
    check(ptsname_r(err_.get(), name.data(), name.size()), "make a terminal");
    // The first one that the leader of a session opens is its terminal.
    flags |= POSIX_SPAWN_SETSID;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, name.data(), O_RDWR, 0);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, stream);
  } else {
    std::array<int, 2> ends{};
    check(pipe2(ends.data(), O_CLOEXEC), "pipe");
    their_in = FileDescriptor(ends[0]);
    in_ = FileDescriptor(ends[1]);
    check(pipe2(ends.data(), O_CLOEXEC), "pipe");
    err_ = FileDescriptor(ends[0]);
    their_err = FileDescriptor(ends[1]);
    posix_spawn_file_actions_adddup2(&actions, their_in.get(), STDIN_FILENO);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_adddup2(&actions, their_err.get(), stream);
  }
  posix_spawnattr_setflags(&attributes, flags);
  const int error = where.run([&] {
    return posix_spawnp(&pid_, program.front().c_str(), &actions, &attributes, pointers_to(program).data(),
                        pointers_to(variables).data());
  });
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), "run " + words.front());
}

Background::~Background() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Background::read_more() {
  pollfd readable{err_.get(), POLLIN, 0};
  if (poll(&readable, 1, patience_ms) <= 0) throw std::runtime_error("nothing is said; so far: " + said_);
  std::array<char, 4096> buffer{};
  const ssize_t size = read(err_.get(), buffer.data(), buffer.size());  // EIO: nobody has the terminal any more
  if (size > 0) said_.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0;
}

void Background::wait_for(std::string_view text, int times) {
  while (occurrences(said_, text) < times) {
    if (!read_more()) throw std::runtime_error("ended without '" + std::string(text) + "': " + said_);
  }
}

void Background::type(std::string_view text) const {
  const int to = in_.get() >= 0 ? in_.get() : err_.get();
  // One that has ended is an error of the test, which must go on to remove what it made.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const ssize_t written = write(to, text.data(), text.size());
  std::signal(SIGPIPE, before);
  check(written, "type");
}

void Background::hang_up() { err_ = {}; }

void Background::signal(int number) const { check(kill(pid_, number), "send a signal"); }

Output Background::end() {
  while (err_.get() >= 0 && read_more()) {
  }
  int status = 0;
  check(waitpid(pid_, &status, 0), "wait for a program");
  pid_ = 0;
  if (said_.find("internal error") != std::string::npos) throw std::runtime_error(said_);  // no error to be expected
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), {}, said_};
}

}  // namespace sidetrack::netns
