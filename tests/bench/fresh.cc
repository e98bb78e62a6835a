// SPDX-License-Identifier: GPL-2.0-or-later
// Times programs from exec to exit, each run in a network namespace of its own, taking turns (A B C A B C …) so that a
// machine that is busy for a while is so for all of them.
//
//   fresh [--cni|--again] ROUNDS LIMIT NAME INPUT PROGRAM ARGUMENT… [-- NAME INPUT PROGRAM ARGUMENT…]…
//
// --cni: the programs are CNI plugins, which run where this one is started and are given the namespace as CNI_NETNS,
// and a CNI_CONTAINERID of their own.
// --again: each program runs twice in its namespace, and the second time counts.
// INPUT is the file that is standard input. Prints a line for each: name, median, first and ninth decile of the time in
// µs, median of the processor time in µs, highest peak memory in KiB; separated by tabs. A program that takes longer
// than LIMIT seconds is ended, not run again, and has only its name there. hyperfine and time(1) cannot do this:
// whatever makes the namespace (ip netns exec, unshare) would be part of what they measure.
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Run {
  double microseconds = 0;
  double processor_microseconds = 0;
  long peak_kib = 0;
};

struct Command {
  const char* name;
  const char* input;
  char** words;  // ends with a null pointer
  std::vector<Run> runs;
  bool over_limit = false;
};

int home = -1;  // --cni: the namespace that plugins run in
bool again = false;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fresh: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int check(int result, const char* what) {
  if (result < 0) fail(what);
  return result;
}

// Moves this process into a new namespace with the address that every pod has. The one before is kept to the end:
// the kernel takes one down in the background, and would do so while the next run is timed.
void enter_fresh_namespace() {
  check(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "keep the namespace");
  check(unshare(CLONE_NEWNET), "make a network namespace");
  const int any = check(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  check(ioctl(any, SIOCSIFFLAGS, &request), "set lo up");
  if (home >= 0) {  // the plugin loopback refuses a lo that has it
    check(ioctl(any, SIOCBRADDBR, "pod"), "make an interface");
  }
  std::strcpy(request.ifr_name, home >= 0 ? "pod" : "lo:pod");
  request.ifr_addr = {};
  auto& address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x0a010002);  // 10.1.0.2
  check(ioctl(any, SIOCSIFADDR, &request), "set the address");
  close(any);
}

double microseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

[[noreturn]] void show_failure(const Command& command, int status, int output) {
  std::fprintf(stderr, "fresh: %s ended with status %d and said:\n", command.name, WEXITSTATUS(status));
  lseek(output, 0, SEEK_SET);
  char buffer[4096];
  for (ssize_t size = 0; (size = read(output, buffer, sizeof buffer)) > 0;)
    std::fwrite(buffer, 1, static_cast<std::size_t>(size), stderr);
  std::exit(1);
}

void become_plugin_call() {
  static int calls = 0;
  char text[64];
  std::snprintf(text, sizeof text, "/proc/%d/ns/net", static_cast<int>(getpid()));
  setenv("CNI_NETNS", text, 1);
  std::snprintf(text, sizeof text, "bench-%d", ++calls);
  setenv("CNI_CONTAINERID", text, 1);
}

// Nothing if it took longer than `limit` seconds. `started` is shared with the child, which knows when it calls exec.
std::optional<Run> run_here(const Command& command, unsigned limit, double* started) {
  const int input = check(open(command.input, O_RDONLY | O_CLOEXEC), command.input);
  const int output = check(memfd_create("output", MFD_CLOEXEC), "memfd_create");
  if (home >= 0) become_plugin_call();
  const pid_t child = check(fork(), "fork");
  if (child == 0) {
    if (home >= 0) check(setns(home, CLONE_NEWNET), "enter the namespace of the plugins");
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    alarm(limit);  // is kept by exec, and ends the program
    *started = now();
    execvp(command.words[0], command.words);
    fail(command.words[0]);
  }
  int status = 0;
  rusage usage{};
  check(wait4(child, &status, 0, &usage), "wait4");
  const double ended = now();
  const bool over_limit = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  if (status != 0 && !over_limit) show_failure(command, status, output);
  close(input);
  close(output);
  if (over_limit) return std::nullopt;
  return Run{ended - *started, microseconds(usage.ru_utime) + microseconds(usage.ru_stime), usage.ru_maxrss};
}

std::optional<Run> run(const Command& command, unsigned limit, double* started) {
  enter_fresh_namespace();
  const auto first = run_here(command, limit, started);
  return again && first ? run_here(command, limit, started) : first;
}

// The value below which `share` of all runs are.
double quantile(const Command& command, double Run::*value, double share) {
  std::vector<double> values;
  for (const Run& run : command.runs) values.push_back(run.*value);
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

std::vector<Command> parse(char** words) {
  std::vector<Command> commands;
  while (words[0] != nullptr && words[1] != nullptr && words[2] != nullptr) {
    commands.push_back({words[0], words[1], words + 2, {}});
    words += 2;
    while (*words != nullptr && std::string_view(*words) != "--") ++words;
    if (*words == nullptr) return commands;
    *words++ = nullptr;
  }
  return {};
}

void print(const Command& command) {
  if (command.over_limit) {
    std::printf("%s\n", command.name);
    return;
  }
  std::printf("%s\t%.0f\t%.0f\t%.0f\t%.0f\t%ld\n", command.name, quantile(command, &Run::microseconds, 0.5),
              quantile(command, &Run::microseconds, 0.1), quantile(command, &Run::microseconds, 0.9),
              quantile(command, &Run::processor_microseconds, 0.5),
              std::ranges::max(command.runs, {}, &Run::peak_kib).peak_kib);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--cni") {
    home = check(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "keep the namespace");
    --argc;
    ++argv;
  } else if (argc > 1 && std::string_view(argv[1]) == "--again") {
    again = true;
    --argc;
    ++argv;
  }
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;
  const int limit = argc > 2 ? std::atoi(argv[2]) : 0;
  std::vector<Command> commands = rounds > 0 && limit > 0 ? parse(argv + 3) : std::vector<Command>();
  if (commands.empty()) {
    std::fputs(
        "usage: fresh [--cni|--again] ROUNDS LIMIT NAME INPUT PROGRAM ARGUMENT… [-- NAME INPUT PROGRAM ARGUMENT…]…\n",
        stderr);
    return 2;
  }
  void* shared = mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap");

  for (int round = 0; round <= rounds; ++round) {
    for (Command& command : commands) {
      if (command.over_limit) continue;
      const auto result = run(command, static_cast<unsigned>(limit), static_cast<double*>(shared));
      command.over_limit = !result;
      // The first round reads the programs from the disk and loads modules; it does not count.
      if (round > 0 && result) command.runs.push_back(*result);
    }
  }
  for (const Command& command : commands) print(command);
}
