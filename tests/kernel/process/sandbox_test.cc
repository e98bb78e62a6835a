// SPDX-License-Identifier: GPL-2.0-or-later
// What is left to a process after enter_sandbox(). That every command works in it, the other tests show.
#include "system/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

#include "kernel/kernel.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "support/cannot_run.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "system/capabilities.h"
#include "system/read_write.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

namespace fs = std::filesystem;

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What `act` says in a process of its own, in the namespace: a sandbox cannot be left.
std::string in_child(const Namespace& space, const std::function<std::string()>& act) {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC), "pipe");
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      space.enter();
      said = act();
    } catch (const std::exception& error) {
      said = std::string("thrown: ") + error.what();
    }
    static_cast<void>(write_all(write_end.get(), said));
    _exit(0);
  }
  write_end = {};
  std::string said;
  static_cast<void>(read_all(read_end.get(), 1U << 20, said));
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + "ended with status " + std::to_string(status);
}

// ---- What no filter allows

struct Attempt {
  const char* name;
  std::function<long()> act;
};

long open_readable() { return open("/etc/hostname", O_RDONLY | O_CLOEXEC); }
long open_writable() { return open("/tmp/sidetrack-sandbox-test", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); }

const Attempt never[] = {
    {"fork", [] { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
    {"a thread in another namespace",
     [] { return syscall(SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET, 0, 0, 0, 0); }},
    {"clone3", [] { return syscall(SYS_clone3, nullptr, 0); }},
    {"execve", [] { return syscall(SYS_execve, "/bin/true", nullptr, nullptr); }},
    {"execveat", [] { return syscall(SYS_execveat, AT_FDCWD, "/bin/true", nullptr, nullptr, 0); }},
    {"ptrace", [] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }},
    {"process_vm_writev", [] { return syscall(SYS_process_vm_writev, getppid(), nullptr, 0, nullptr, 0, 0); }},
    {"kill", [] { return syscall(SYS_kill, getppid(), 0); }},
    {"unshare", [] { return syscall(SYS_unshare, 0); }},
    {"setns", [] { return syscall(SYS_setns, 0, 0); }},
    {"mount", [] { return syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, nullptr); }},
    {"bpf", [] { return syscall(SYS_bpf, 0, nullptr, 0); }},
    {"io_uring", [] { return syscall(SYS_io_uring_setup, 1, nullptr); }},
    {"userfaultfd", [] { return syscall(SYS_userfaultfd, 0); }},
    {"a packet socket", [] { return long{socket(AF_PACKET, SOCK_RAW, 0)}; }},
    {"a Unix socket", [] { return long{socket(AF_UNIX, SOCK_STREAM, 0)}; }},
    {"memory to execute",
     [] {
       void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       return memory == MAP_FAILED ? -1L : 0L;
     }},
};
const Attempt only_with_files[] = {
    {"a file", open_readable},
    {"a folder's content", [] { return syscall(SYS_getdents64, -1, nullptr, 0); }},
};
const Attempt only_installing[] = {
    {"a file to write", open_writable},
    {"to rename", [] { return syscall(SYS_renameat2, AT_FDCWD, "/nonexistent", AT_FDCWD, "/nonexistent2", 0); }},
    {"to change a mode", [] { return syscall(SYS_fchmod, -1, 0777); }},
};
const Attempt only_connected[] = {
    {"to accept", [] { return syscall(SYS_accept4, -1, nullptr, nullptr, 0); }},
};
const Attempt only_probing[] = {
    {"a TCP socket", [] { return long{socket(AF_INET, SOCK_STREAM, 0)}; }},
    {"to connect", [] { return long{::connect(0, nullptr, 0)}; }},
    {"to connect by sendto",
     [] {
       const sockaddr_in to{AF_INET, 0, {}, {}};
       return syscall(SYS_sendto, -1, "", 0, MSG_FASTOPEN, &to, sizeof to);
     }},
    {"to connect by sendmsg", [] { return syscall(SYS_sendmsg, -1, nullptr, MSG_FASTOPEN); }},
    {"to use a listening socket anew", [] { return long{shutdown(-1, SHUT_RDWR)}; }},
    {"to listen", [] { return long{::listen(0, 1)}; }},
    {"a socket to rtnetlink", [] { return long{socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)}; }},
};

std::string not_refused(std::span<const Attempt> attempts) {
  std::string all;
  for (const Attempt& attempt : attempts) {
    errno = 0;
    // ENOSYS: of clone3, so that libc makes threads in another way.
    if (attempt.act() != -1 || (errno != EPERM && errno != ENOSYS)) all += std::string(attempt.name) + ", ";
  }
  return all;
}

struct Kind {
  const char* name;
  Sandbox kind;
  const char* capabilities;  // their numbers, of linux/capability.h
};
class InSandbox : public KernelTest, public ::testing::WithParamInterface<Kind> {
 protected:
  Namespace space;
};

TEST_P(InSandbox, WhatTheRestDoesNotNeedIsRefused) {
  const Sandbox kind = GetParam().kind;
  EXPECT_EQ(in_child(space,
                     [&] {
                       const std::string problem = enter_sandbox(kind);
                       const bool probes = kind == Sandbox::probe;
                       const bool installs = kind == Sandbox::install;
                       const bool serves = kind == Sandbox::serve;
                       const bool reads_files = kind == Sandbox::inspect || installs || serves;
                       return problem + not_refused(never) + (reads_files ? "" : not_refused(only_with_files)) +
                              (installs ? "" : not_refused(only_installing)) +
                              (serves || probes ? "" : not_refused(only_connected)) +
                              (probes ? "" : not_refused(only_probing));
                     }),
            "");
}

TEST_P(InSandbox, CapabilitiesThatAreNotNeededAreGone) {
  const Sandbox kind = GetParam().kind;
  const std::string held = in_child(space, [&] {
    std::string all = enter_sandbox(kind);
    for (unsigned number = 0; number <= CAP_LAST_CAP; ++number) {
      if (has_capability(number)) all += std::to_string(number) + " ";
    }
    return all;
  });
  EXPECT_EQ(held, GetParam().capabilities);
}

TEST_P(InSandbox, ARefusedCallIsRemembered) {
  const Sandbox kind = GetParam().kind;
  EXPECT_EQ(in_child(space,
                     [&] {
                       std::string said = enter_sandbox(kind) + (refused_call() ? "refused" : "none");
                       static_cast<void>(syscall(SYS_unshare, 0));
                       return said + (refused_call() == SYS_unshare ? ", unshare" : ", another");
                     }),
            "none, unshare");
}

constexpr const char* over_network = "12 13 ";  // CAP_NET_ADMIN, CAP_NET_RAW
INSTANTIATE_TEST_SUITE_P(, InSandbox,
                         ::testing::Values(Kind{"compute", Sandbox::compute, ""},
                                           Kind{"read", Sandbox::read, over_network},
                                           Kind{"write", Sandbox::write, over_network},
                                           Kind{"plugin", Sandbox::plugin, over_network},
                                           Kind{"probe", Sandbox::probe, "6 7 12 13 "},  // CAP_SETGID, CAP_SETUID
                                           Kind{"inspect", Sandbox::inspect, "2 "},      // CAP_DAC_READ_SEARCH
                                           Kind{"install", Sandbox::install, "1 2 3 "},  // CAP_DAC_OVERRIDE, CAP_FOWNER
                                           Kind{"serve", Sandbox::serve, "2 "}),
                         [](const auto& test) { return test.param.name; });

// ---- Where files may be written and removed

class InSandboxWithFiles : public KernelTest {
 protected:
  Namespace space;
};

TEST_F(InSandboxWithFiles, NoneButThoseOfItsFolders) {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */) < 0)
    return cannot_run("the kernel has no Landlock");
  const testing::TemporaryFolder folder;
  const fs::path inside = folder.path() / "inside";
  fs::create_directory(inside);
  const auto tried = [&](Sandbox kind) {
    for (const char* name : {"a", "inside/a"}) std::ofstream(folder.path() / name);
    fs::create_directory(inside / "b");
    const std::string said = in_child(space, [&] {
      std::string all = enter_sandbox(kind, {inside.string(), "/nonexistent"});
      const auto add = [&](long result) { all += (result >= 0 ? "done" : errno_words(errno)) + "; "; };
      const std::string outer = folder.path().string();
      add(syscall(SYS_unlinkat, AT_FDCWD, (outer + "/a").c_str(), 0));
      add(syscall(SYS_unlinkat, AT_FDCWD, (outer + "/inside/../a").c_str(), 0));
      add(syscall(SYS_unlinkat, AT_FDCWD, (outer + "/inside/a").c_str(), 0));
      add(syscall(SYS_unlinkat, AT_FDCWD, (outer + "/inside/b").c_str(), AT_REMOVEDIR));
      if (kind != Sandbox::install) return all;
      add(open((outer + "/a").c_str(), O_WRONLY | O_CLOEXEC));
      add(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
      add(open((outer + "/inside/c").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      add(rename((outer + "/inside/c").c_str(), (outer + "/d").c_str()));
      add(rename((outer + "/inside/c").c_str(), (outer + "/inside/d").c_str()));
      return all;
    });
    fs::remove_all(inside / "b");
    return said;
  };
  const std::string refused = "Permission denied (EACCES); ";
  EXPECT_EQ(tried(Sandbox::plugin), refused + refused + "done; Operation not permitted (EPERM); ");
  const std::string done = "done; ";
  EXPECT_EQ(tried(Sandbox::install), refused + refused + done + done + refused + refused + done + refused + done);
}

// ---- Reading cannot write

// nft flush ruleset: the shortest batch there is that changes anything.
struct Flush {
  struct Message {
    nlmsghdr header;
    nfgenmsg generic;
  };
  Message begin{{sizeof(Message), NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, 1, 0}, {0, 0, NFNL_SUBSYS_NFTABLES << 8}};
  Message remove{{sizeof(Message), NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, NLM_F_REQUEST | NLM_F_ACK, 2, 0}, {}};
  Message end{{sizeof(Message), NFNL_MSG_BATCH_END, NLM_F_REQUEST, 3, 0}, {0, 0, NFNL_SUBSYS_NFTABLES << 8}};
};
static_assert(sizeof(Flush) == 60);

std::string errno_of(long result) { return result >= 0 ? "done" : std::to_string(errno); }

class SandboxOfReaders : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(space, "link set lo up\n");
    space.must({"nft", "add table ip anybody"});
    space.must({"iptables-legacy", "-A", "OUTPUT", "-p", "tcp", "-j", "ACCEPT"});
  }
  [[nodiscard]] std::string state() const {
    return space.must({"nft", "list", "tables"}) + space.must({"iptables-legacy", "-S"}) + space.must({"ip", "rule"}) +
           space.must({"ip", "route", "show", "table", "all"});
  }

  // What comes of changing nf_tables once the rules have been read.
  static std::string flushed(Sandbox kind, long (*send_flush)(int socket, const Flush& flush)) {
    const auto kernel =
        open_kernel(istio_rules, {.write = kind == Sandbox::write, .reads_once = kind == Sandbox::read});
    const std::string problem = enter_sandbox(kind);
    static_cast<void>(kernel->survey());
    const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    if (const long sent = send_flush(socket.get(), Flush()); sent < 0) return problem + errno_of(sent);
    std::array<char, 4096> answer{};
    const ssize_t size = recv(socket.get(), answer.data(), answer.size(), 0);
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
    if (size < NLMSG_HDRLEN || header->nlmsg_type != NLMSG_ERROR) return "no answer";
    const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
    return problem + (error == 0 ? "done" : std::to_string(error));
  }

  Namespace space;
};

long by_sendto(int socket, const Flush& flush) { return send(socket, &flush, sizeof flush, 0); }
long by_write(int socket, const Flush& flush) { return write(socket, &flush, sizeof flush); }
long by_address(int socket, const Flush& flush) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  return sendto(socket, &flush, sizeof flush, 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
}
long by_sendmsg(int socket, const Flush& flush) {
  Flush copy = flush;
  iovec part{&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return sendmsg(socket, &message, 0);
}
TEST_F(SandboxOfReaders, CannotChangeNfTables) {
  const std::string before = state();
  const std::string refused = std::to_string(EPERM);
  for (const auto way : {by_sendto, by_write, by_address, by_sendmsg}) {
    EXPECT_EQ(in_child(space, [&] { return flushed(Sandbox::read, way); }), refused);
  }
  EXPECT_EQ(state(), before);
  EXPECT_EQ(in_child(space, [&] { return flushed(Sandbox::write, by_sendto); }), "done");
  EXPECT_THAT(state(), Not(HasSubstr("anybody")));
}

TEST_F(SandboxOfReaders, CannotChangeRoutes) {
  const std::string before = state();
  const Routing wanted{{}, {local_default(Family::ipv4, 133)}, {}};
  const auto add = [&](Sandbox kind) {
    return in_child(space, [&] {
      const auto kernel = open_kernel(istio_rules, {.write = kind == Sandbox::write});
      const std::string problem = enter_sandbox(kind);
      try {
        static_cast<void>(kernel->add(wanted));
        return problem + "done";
      } catch (const Error& error) {
        return problem + error.what();
      }
    });
  };
  EXPECT_THAT(add(Sandbox::read), HasSubstr("Operation not permitted"));
  EXPECT_EQ(state(), before);
  EXPECT_EQ(add(Sandbox::write), "done");
  EXPECT_NE(state(), before);
}

constexpr int ipt_so_set_replace = 64;  // of linux/netfilter_ipv4/ip_tables.h, which does not go with libc's headers

TEST_F(SandboxOfReaders, CannotChangeLegacyTables) {
  const auto replace = [&](Sandbox kind) {
    return in_child(space, [&] {
      const std::string problem = enter_sandbox(kind);
      const FileDescriptor socket(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
      return problem + errno_of(setsockopt(socket.get(), IPPROTO_IP, ipt_so_set_replace, "", 0));
    });
  };
  EXPECT_EQ(replace(Sandbox::read), std::to_string(EPERM));
  EXPECT_NE(replace(Sandbox::write), std::to_string(EPERM));  // the kernel looks at it
}

// ---- The program

TEST_F(SandboxOfReaders, IsLeftOutWhereAsked) {
  const Output with = space.program({program_under_test(), "show"});
  const Output without = space.program({program_under_test(), "show", "--no-sandbox"});
  EXPECT_EQ(with.out, without.out);
  EXPECT_THAT(with.err, IsEmpty());
  EXPECT_EQ(without.err, "sidetrack: not in a sandbox: --no-sandbox\n");
}

// A filter around the program, or an old kernel, may refuse it: the command goes on, and says so.
TEST_F(SandboxOfReaders, IsSaidToBeIncompleteWhereItIs) {
  for (const char* call : {"seccomp", "prctl", "capset"}) {
    const Output output = space.program({"strace", "-qq", "-o", "/dev/null", "-e",
                                         fmt::format("inject={}:error=EPERM", call), program_under_test(), "show"});
    EXPECT_EQ(output.exit_code, 0) << call << output.err;
    EXPECT_THAT(output.err, HasSubstr("sidetrack: warning: not all of the sandbox: ")) << call;
  }
}

// What others wrote is read before the sandbox is entered, and understood in it.
TEST_F(SandboxOfReaders, ManifestsAreUnderstoodInOne) {
  const std::string docs = SIDETRACK_SOURCE_DIR "/docs/";
  const std::vector<std::string> args{program_under_test(), "args", "-f", docs + "deployment.yaml"};
  const std::vector<std::string> inject{program_under_test(),     "inject",     "-f",
                                        docs + "deployment.yaml", "--template", docs + "proxy.yaml"};
  for (std::vector<std::string> command : {args, inject}) {
    std::vector<std::string> traced{"strace", "-qq", "-e", "trace=openat,read,seccomp,prctl", "-o", "/dev/stderr"};
    traced.insert(traced.end(), command.begin(), command.end());
    const std::string calls = space.program(traced).err;
    const std::size_t entered = calls.rfind("seccomp(SECCOMP_SET_MODE_FILTER");
    ASSERT_NE(entered, std::string::npos) << calls;
    EXPECT_THAT(calls.substr(entered), Not(AnyOf(HasSubstr("openat("), HasSubstr("read(")))) << command[1];
    EXPECT_THAT(calls.substr(0, entered), HasSubstr("PR_SET_NO_NEW_PRIVS")) << command[1];
    const Output with = space.program(command);
    command.emplace_back("--no-sandbox");
    const Output without = space.program(command);
    EXPECT_EQ(with.exit_code, 0) << with.err;
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(without.err, "sidetrack: not in a sandbox: --no-sandbox\n" + with.err);
  }
}

// The rules of others, too: those of a file, and those that a process of its own has read of a pod. What is wrong with
// them is found out in the sandbox.
TEST_F(SandboxOfReaders, RulesAreUnderstoodInOne) {
  const testing::TemporaryFolder folder;
  const std::string rules = folder.path() / "rules.json";
  const std::string wrong = folder.path() / "wrong.json";
  std::ofstream(rules) << space.must({program_under_test(), "render", "--format", "json", "--ip-families", "ipv4"});
  std::ofstream(wrong) << "{\"rules\":7}";
  const Namespace other;
  const std::string pod = fmt::format("netns:/proc/{}/fd/{}", getpid(), other.fd());
  for (const auto& [one, two, code] :
       {std::tuple(rules, rules, 0), {rules, wrong, 2}, {wrong, rules, 2}, {pod, pod, 0}, {pod, wrong, 2}}) {
    const Output output = space.program({"strace", "-qq", "-e", "trace=openat,read,seccomp,write", "-o", "/dev/stderr",
                                         program_under_test(), "diff", "--effect", one, two});
    EXPECT_EQ(output.exit_code, code) << output.err;
    const std::size_t entered = output.err.rfind("seccomp(SECCOMP_SET_MODE_FILTER");
    ASSERT_NE(entered, std::string::npos) << one << " " << two << "\n" << output.err;
    EXPECT_THAT(output.err.substr(entered), Not(AnyOf(HasSubstr("openat("), HasSubstr("read(")))) << one << " " << two;
    if (code != 2) continue;
    EXPECT_THAT(output.err.substr(entered), HasSubstr("wrong.json"));
  }
}

// A tracer that lets a call fail says why: that the sandbox allows no call of its number is not the reason.
TEST_F(SandboxOfReaders, AnErrorThatATracerMakesIsTheOneThatIsSaid) {
  for (const char* error : {"ENOMEM", "EMFILE"}) {
    const Output output =
        space.program({"strace", "-qq", "-o", "/dev/null", "-e", fmt::format("inject=recvfrom:error={}:when=3", error),
                       program_under_test(), "show"});
    EXPECT_EQ(output.exit_code, 1) << output.err;
    EXPECT_THAT(output.err, HasSubstr(fmt::format("({})", error)));
    EXPECT_THAT(output.err, Not(HasSubstr("EPERM")));
  }
}

// strace makes another call of one: a call that no filter allows.
const std::vector<std::string> refused_call_in_reading{
    "strace", "-qq", "-f", "-o", "/dev/null", "-e", "inject=recvfrom:error=EPERM:syscall=getpgrp:when=2"};

TEST_F(SandboxOfReaders, ARefusedCallIsNamedAndNothingElse) {
  for (const char* command : {"show", "map", "apply", "doctor"}) {
    std::vector<std::string> words = refused_call_in_reading;
    words.insert(words.end(), {program_under_test(), command});
    if (std::string_view(command) == "apply") words.insert(words.end(), {"--ip-families", "ipv4"});
    const Output output = space.program(words);
    EXPECT_EQ(output.exit_code, 1) << command;
    EXPECT_THAT(output.err, HasSubstr(fmt::format("the sandbox refused system call {}", SYS_getpgrp))) << command;
    EXPECT_THAT(output.err, Not(HasSubstr("CAP_NET_ADMIN"))) << command;
  }
}

// Each kind, by the commands that enter it: so many filters, one in each process.
TEST_F(SandboxOfReaders, EveryCommandThatReadsWhatOthersWroteEntersOne) {
  const testing::TemporaryFolder folder;
  fs::create_directory(folder.path() / "bin");
  const std::string cni = fmt::format("--net-dir {0} --bin-dir {0}/bin", folder.path().string());
  for (const std::string& words :
       {std::string("show"), std::string("map"), std::string("explain out tcp 10.0.0.1:80"), std::string("lint"),
        std::string("diff"), std::string("verify"), std::string("verify --probe"), std::string("doctor"),
        std::string("apply"), std::string("clean"), std::string("render"), "cni status " + cni,
        "cni install --allow-dynamic " + cni, "cni uninstall " + cni}) {
    const bool plans = words.starts_with("apply") || words.starts_with("verify") || words == "diff";
    const Output output = space.program({"bash", "-c",
                                         fmt::format("exec strace -f -qq -e trace=seccomp -o /dev/stderr \"$0\" {}{}",
                                                     words, plans ? " --ip-families ipv4" : ""),
                                         program_under_test()});
    EXPECT_THAT(output.err, ContainsRegex("seccomp\\(SECCOMP_SET_MODE_FILTER, .* = 0\n")) << words;
    EXPECT_THAT(output.err, Not(HasSubstr("not all of the sandbox"))) << words;
    EXPECT_THAT(output.err, Not(HasSubstr("internal error"))) << words;
  }
}

// The same without a sandbox: the attempts are such that nothing else refuses them all.
TEST_F(SandboxOfReaders, IsWhatRefuses) {
  EXPECT_THAT(
      in_child(space,
               [] {
                 const std::array harmless{never[7], never[8], never[14], never[15], never[16]};
                 const std::string all = not_refused(harmless) + not_refused(only_with_files) +
                                         not_refused(only_installing) + not_refused(only_probing);
                 unlink("/tmp/sidetrack-sandbox-test");
                 return all;
               }),
      AllOf(HasSubstr("kill, unshare, a packet socket, a Unix socket, memory to execute, a file, a folder's content, "
                      "a file to write, to rename, to change a mode, a TCP socket"),
            HasSubstr("to listen")));
}

}  // namespace
}  // namespace sidetrack::netns
