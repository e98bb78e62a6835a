// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "model/error.h"
#include "system/capabilities.h"
#include "system/cgroup.h"
#include "system/descriptor.h"
#include "system/known_file.h"

namespace sidetrack {
namespace {

#include "system/seccomp_filters.h"

// Sanitizers make other system calls at the end.
#if defined(SIDETRACK_SANITIZED)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

using Capabilities = std::initializer_list<unsigned>;
constexpr Capabilities no_capability = {};
constexpr Capabilities over_network = {CAP_NET_ADMIN, CAP_NET_RAW};
constexpr Capabilities as_the_proxy = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_SETUID, CAP_SETGID};
constexpr Capabilities over_reading = {CAP_DAC_READ_SEARCH};
constexpr Capabilities over_files = {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER};

struct Confinement {
  Sandbox kind;
  std::span<const sock_filter> filter;
  Capabilities capabilities;
  std::optional<KnownFilesFor> files;  // that are read beside the rules; nothing: it asks for no rules
  bool has_folders = false;            // below which alone it writes
};
constexpr Confinement confinements[] = {
    {Sandbox::compute, compute_filter, no_capability, {}},
    {Sandbox::read, read_filter, over_network, KnownFilesFor::answers},
    {Sandbox::write, write_filter, over_network, KnownFilesFor::changes},
    {Sandbox::plugin, plugin_filter, over_network, KnownFilesFor::changes, true},
    {Sandbox::probe, probe_filter, as_the_proxy, KnownFilesFor::all},
    {Sandbox::inspect, inspect_filter, over_reading, {}},
    {Sandbox::install, install_filter, over_files, {}, true},
    {Sandbox::serve, serve_filter, over_reading, {}},
};

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
  if (info->si_syscall < 0) return;  // no call: a tracer (strace --inject) has left it out, and says what it returns
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

int install(std::span<const sock_filter> filter) {
  // The kernel only reads it.
  const sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
  // Kernels before 5.16 would slow it down for what may run in it, as protection of others from it. Nothing else runs.
  for (const unsigned long flags : {SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0UL})
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0) return 0;
  return errno;
}

// ---- Files

constexpr std::uint64_t truncate = 1U << 14;  // LANDLOCK_ACCESS_FS_TRUNCATE, Linux 6.2
constexpr std::uint64_t of_files = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                   LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr std::uint64_t of_others = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

// By Landlock, Linux 5.13, whatever its user may: from now on this process writes, makes and removes files below these
// folders alone; what it has open stays. A folder that is not there gives nothing. Needs no_new_privs. Returns 0, or
// errno; 0 also where the kernel has no Landlock.
int write_only_below(const std::vector<std::string>& folders) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 0) return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : errno;
  const std::uint64_t allowed = of_files | (version >= 3 ? truncate : 0);
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = allowed | of_others;
  const Descriptor rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
  if (!rules.valid()) return errno;
  for (const std::string& path : folders) {
    const Descriptor folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid()) continue;
    landlock_path_beneath_attr below{};
    below.allowed_access = allowed;
    below.parent_fd = folder.get();
    if (syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &below, 0) != 0) return errno;
  }
  return syscall(SYS_landlock_restrict_self, rules.get(), 0) == 0 ? 0 : errno;
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
  const Confinement& confinement = *std::ranges::find(confinements, kind, &Confinement::kind);
  if (kind == Sandbox::read) hold_cgroups();
  if (kind == Sandbox::probe) static_cast<void>(own_cgroup());
  if (confinement.files) preopen_proc_files(*confinement.files);
  std::string problems;
  const auto note = [&](const char* what, int error) {
    if (error != 0)
      problems +=
          fmt::format("{}{}: {}", problems.empty() ? "not all of the sandbox: " : "; ", what, errno_words(error));
    return error == 0;
  };
  takes_capabilities = note("capabilities stay (capset)", keep_only(confinement.capabilities));
  note("no no_new_privs (prctl)", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno);
  if (confinement.has_folders) note("files can be written anywhere (landlock)", write_only_below(folders));
  // Without the handler the filter would kill the process.
  if (note("no filter of system calls (sigaction)", handle_refused_calls()))
    note("no filter of system calls (seccomp)", install(confinement.filter));
  return problems;
}

}  // namespace sidetrack
