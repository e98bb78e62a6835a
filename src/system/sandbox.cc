// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/sandbox.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <span>
#include <type_traits>

#include "model/error.h"
#include "system/capabilities.h"
#include "system/cgroup.h"
#include "system/known_file.h"
#include "system/landlock.h"

namespace sidetrack {
namespace {

#include "system/seccomp_filters.h"

// Sanitizers make other system calls at the end.
#if defined(SIDETRACK_SANITIZED)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

std::span<const sock_filter> filter_of(Sandbox kind) {
  switch (kind) {
    case Sandbox::compute:
      return compute_filter;
    case Sandbox::read:
      return read_filter;
    case Sandbox::write:
      return write_filter;
    case Sandbox::plugin:
      return plugin_filter;
    case Sandbox::probe:
      return probe_filter;
    case Sandbox::inspect:
      return inspect_filter;
    case Sandbox::install:
      return install_filter;
    case Sandbox::serve:
      break;
  }
  return serve_filter;
}

volatile std::sig_atomic_t refused = -1;

// Where the value that a system call returns is when a signal handler returns.
auto& returned(ucontext_t& context) {
#if defined(__x86_64__)
  return context.uc_mcontext.gregs[REG_RAX];
#elif defined(__aarch64__)
  return context.uc_mcontext.regs[0];
#elif defined(__s390x__)
  return context.uc_mcontext.gregs[2];
#else
#error "the register of a system call's result is to be named"
#endif
}

extern "C" void on_refused_call(int /*SIGSYS*/, siginfo_t* info, void* context) {
  refused = info->si_syscall;
  using Register = std::remove_reference_t<decltype(returned(*static_cast<ucontext_t*>(context)))>;
  returned(*static_cast<ucontext_t*>(context)) = static_cast<Register>(-EPERM);
}

int handle_refused_calls() {
  struct sigaction action {};
  action.sa_sigaction = on_refused_call;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGSYS, &action, nullptr) == 0 ? 0 : errno;
}

std::optional<Sandbox> entered;
bool takes_capabilities = false;

int keep_capabilities(Sandbox kind) {
  switch (kind) {
    case Sandbox::compute:
      return keep_only({});
    case Sandbox::read:
    case Sandbox::write:
    case Sandbox::plugin:
      break;
    case Sandbox::probe:
      return keep_only({CAP_NET_ADMIN, CAP_NET_RAW, CAP_SETUID, CAP_SETGID});
    case Sandbox::inspect:
    case Sandbox::serve:
      return keep_only({CAP_DAC_READ_SEARCH});
    case Sandbox::install:
      return keep_only({CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER});
  }
  return keep_only({CAP_NET_ADMIN, CAP_NET_RAW});
}

bool asks_kernel(Sandbox kind) { return kind != Sandbox::compute && kind < Sandbox::inspect; }

int install(std::span<const sock_filter> filter) {
  // The kernel only reads it.
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  // Kernels before 5.16 would slow it down for what may run in it, as protection of others from it. Nothing else runs.
  for (const unsigned long flags : {SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0UL})
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0) return 0;
  return errno;
}

}  // namespace

std::optional<Sandbox> entered_sandbox() { return entered; }

void give_up_capabilities() {
  if (!takes_capabilities) return;
  if (const int error = keep_only({})) throw system_error(error, "cannot give up capabilities");
}

std::string refusal_words(int call) {
  return fmt::format(
      "internal error: the sandbox refused system call {} (ausyscall {} names it): do not rely on what is said here; "
      "--no-sandbox works without it; please report it with the command line",
      call, call);
}

std::optional<int> refused_call() { return refused < 0 ? std::nullopt : std::optional<int>(refused); }

std::string enter_sandbox(Sandbox kind, const std::vector<std::string>& folders) {
  if (sanitized || entered) return "";
  entered = kind;
  if (kind == Sandbox::read) hold_cgroups();
  if (kind == Sandbox::probe) static_cast<void>(own_cgroup());
  if (asks_kernel(kind)) {
    hold_known_files(kind == Sandbox::read    ? KnownFilesFor::answers
                     : kind == Sandbox::probe ? KnownFilesFor::all
                                              : KnownFilesFor::changes);
  }
  std::string problems;
  const auto note = [&](const char* what, int error) {
    if (error != 0) problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", what, errno_words(error));
    return error == 0;
  };
  takes_capabilities = note("capabilities stay (capset)", keep_capabilities(kind));
  note("no no_new_privs (prctl)", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno);
  if (kind == Sandbox::plugin || kind == Sandbox::install)
    note("files can be written anywhere (landlock)", write_only_below(folders));
  // Without the handler the filter would kill the process.
  if (note("no filter of system calls (sigaction)", handle_refused_calls()))
    note("no filter of system calls (seccomp)", install(filter_of(kind)));
  return problems;
}

}  // namespace sidetrack
