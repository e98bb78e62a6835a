// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace sidetrack::cli {
namespace {

void (*pipe_signal)(int) = SIG_DFL;  // what SIGPIPE did when the program began

}  // namespace

void prepare_standard_streams() {
  pollfd streams[] = {{STDIN_FILENO, 0, 0}, {STDOUT_FILENO, 0, 0}, {STDERR_FILENO, 0, 0}};
  if (poll(streams, 3, 0) > 0) {
    for (const pollfd& stream : streams) {
      // The lowest free descriptor is this one. "/" is there where /dev is not.
      if ((stream.revents & POLLNVAL) != 0) (void)open("/", O_PATH);
    }
  }
  pipe_signal = std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f: a write fails, and what is installed is whole all the same
}

void end_by_closed_pipe() {
  if (pipe_signal != SIG_DFL) return;
  std::signal(SIGPIPE, SIG_DFL);
  (void)!write(STDOUT_FILENO, "\n", 1);  // the kernel sends it: a sandbox may not
}

}  // namespace sidetrack::cli
