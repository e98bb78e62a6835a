// SPDX-License-Identifier: GPL-2.0-or-later
// What a process gives up: capabilities, files, system calls. Each in a process of its own.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "doctor/doctor.h"
#include "support/cannot_run.h"
#include "system/capabilities.h"
#include "system/id_map.h"
#include "system/known_file.h"
#include "system/sandbox.h"
#include "unit/apart.h"

namespace sidetrack {
namespace {

using testing::apart;
using testing::Ids;
using testing::map_ids;

std::string read_text(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Those of the network, of one beyond the first 32, and one that is given up with them: "NET_ADMIN SYSLOG".
std::string effective() {
  std::string all;
  const std::pair<unsigned, const char*> named[] = {
      {CAP_CHOWN, "CHOWN"},   {CAP_NET_ADMIN, "NET_ADMIN"}, {CAP_NET_RAW, "NET_RAW"},     {CAP_SETUID, "SETUID"},
      {CAP_SETGID, "SETGID"}, {CAP_SYS_ADMIN, "SYS_ADMIN"}, {CAP_MAC_ADMIN, "MAC_ADMIN"}, {CAP_SYSLOG, "SYSLOG"}};
  for (const auto& [number, name] : named) {
    if (has_capability(number)) all += fmt::format("{}{}", all.empty() ? "" : " ", name);
  }
  return all;
}

// As root of a user namespace, who has all of them there.
std::string as_root(const std::function<std::string()>& act) {
  return apart([&] { return unshare(CLONE_NEWUSER) == 0 || geteuid() == 0 ? act() : "skip"; });
}

constexpr const char* everything = "CHOWN NET_ADMIN NET_RAW SETUID SETGID SYS_ADMIN MAC_ADMIN SYSLOG";

TEST(Capabilities, AreKeptAsNamedAndGoForEver) {
  const auto kept = [](std::initializer_list<unsigned> numbers) {
    return as_root([&] {
      if (effective() != everything) return std::string("skip");
      const int error = keep_only(numbers);
      return error == 0 ? effective() : fmt::format("error {}", error);
    });
  };
  if (kept({CAP_NET_RAW}) == "skip") return cannot_run("it takes a user namespace");
  EXPECT_EQ(kept({}), "");
  EXPECT_EQ(kept({CAP_NET_RAW}), "NET_RAW");
  EXPECT_EQ(kept({CAP_SYSLOG, CAP_CHOWN}), "CHOWN SYSLOG");
  EXPECT_EQ(kept({CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_MAC_ADMIN}), "NET_ADMIN SYS_ADMIN MAC_ADMIN");
  // What is not there is not got by it, nor is what was given up before.
  EXPECT_EQ(as_root([] {
              static_cast<void>(keep_only({CAP_NET_RAW}));
              const int again = keep_only({CAP_NET_RAW, CAP_SYS_ADMIN});
              return fmt::format("{} {}", again, effective());
            }),
            "0 NET_RAW");
}

TEST(Capabilities, DoNotCountForAWhile) {
  const std::string said = as_root([] {
    if (effective() != everything) return std::string("skip");
    std::string all;
    {
      const WithoutCapabilities without;
      all = effective() + "; ";
    }
    all += effective() + "; ";
    static_cast<void>(keep_only({CAP_NET_RAW, CAP_SYSLOG}));
    {
      const WithoutCapabilities without;
      all += effective() + "; ";
    }
    return all + effective();
  });
  if (said == "skip") return cannot_run("it takes a user namespace");
  EXPECT_EQ(said, fmt::format("; {}; ; NET_RAW SYSLOG", everything));
}

TEST(Capabilities, AreListedForDoctor) {
  const auto text = [] {
    std::string all;
    for (const Capability& each : capabilities()) all += fmt::format("{}={} ", each.name, each.effective);
    return all;
  };
  const std::string said = as_root([&] {
    if (effective() != everything) return std::string("skip");
    const std::string before = text();
    static_cast<void>(keep_only({CAP_NET_RAW}));
    return before + "| " + text();
  });
  if (said == "skip") return cannot_run("it takes a user namespace");
  EXPECT_EQ(said,
            "CAP_NET_ADMIN=true CAP_NET_RAW=true CAP_SYS_ADMIN=true | CAP_NET_ADMIN=false CAP_NET_RAW=true "
            "CAP_SYS_ADMIN=false ");
  EXPECT_EQ(capabilities().front().bounding, may_get_capability(CAP_NET_ADMIN));
  EXPECT_FALSE(may_get_capability(63));
}

// ---- Ids

TEST(IdMap, IsThatOfTheUserNamespace) {
  const auto text = [](const std::vector<IdMapping>& ids) {
    std::string all;
    for (const IdMapping& each : ids) all += fmt::format("{} {} {};", each.inside, each.outside, each.count);
    return all;
  };
  const std::string said = apart([&] {
    const Ids ids{geteuid(), getegid()};
    if (unshare(CLONE_NEWUSER) != 0) return std::string("skip");
    const std::string before = text(mapped_uids()) + text(mapped_gids());
    map_ids(ids, {7, 9});
    return fmt::format("{}|{}{}", before, text(mapped_uids()), text(mapped_gids()));
  });
  if (said == "skip") return cannot_run("it takes a user namespace");
  EXPECT_EQ(said, fmt::format("|7 {} 1;9 {} 1;", geteuid(), getegid()));
}

// ---- Files that stay open

TEST(KnownFiles, AreHeldForWhatIsDone) {
  const auto held = [](KnownFilesFor what) {
    return apart([what] {
      preopen_proc_files(what);
      std::string all;
      for (const KnownFile file :
           {KnownFile::ephemeral_ports, KnownFile::rp_filter, KnownFile::accept_local, KnownFile::fwmark_reflect_ipv4,
            KnownFile::uid_map, KnownFile::locks, KnownFile::tcp_sockets}) {
        const KnownText first = read_known_file(file);
        const KnownText again = read_known_file(file);
        // Locks and connections of other programs come and go in between.
        const bool changes = file == KnownFile::locks || file == KnownFile::tcp_sockets;
        const bool same = first.error == again.error && (first.text == again.text || changes);
        all += first.error != 0 ? fmt::format("{} ", first.error) : same ? "yes " : "other ";
      }
      return all;
    });
  };
  const std::string none = fmt::format("{} ", ENOENT);
  EXPECT_EQ(held(KnownFilesFor::all), "yes yes yes yes yes yes yes ");
  EXPECT_EQ(held(KnownFilesFor::answers), "yes yes yes yes " + none + none + none);
  EXPECT_EQ(held(KnownFilesFor::changes), "yes yes " + none + none + "yes yes " + none);
}

TEST(KnownFiles, AreReadWhole) {
  EXPECT_STREQ(path_of(KnownFile::ephemeral_ports), "/proc/sys/net/ipv4/ip_local_port_range");
  EXPECT_STREQ(path_of(KnownFile::locks), "/proc/locks");
  for (const KnownFile file : {KnownFile::ephemeral_ports, KnownFile::gid_map}) {
    const KnownText read = read_known_file(file);
    EXPECT_EQ(read.error, 0);
    EXPECT_EQ(read.text, read_text(path_of(file)));
  }
}

// ---- The host

TEST(HostState, IsThatOfTheNamespacesOfTheCaller) {
  const auto text = [](const HostState& state) {
    return fmt::format("{} {} lo {} ipv6 {}{}", state.user_namespace.initial ? "initial" : "user namespace",
                       state.user_namespace.owns_network_namespace ? "of its own" : "of another",
                       state.loopback_up ? "up" : "down", state.ipv6.off ? "off " : "on ",
                       state.ipv6.off_on_lo ? "off" : "on");
  };
  const std::string said = apart([&] {
    const Ids ids{geteuid(), getegid()};
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return std::string("skip");
    map_ids(ids, {0, 0});
    std::string all = text(inspect_host());
    std::ofstream("/proc/sys/net/ipv6/conf/lo/disable_ipv6") << '1';
    all += "\n" + text(inspect_host());
    std::ofstream("/proc/sys/net/ipv6/conf/all/disable_ipv6") << '1';
    all += "\n" + text(inspect_host());
    // The network namespace is that of the user namespace above.
    if (unshare(CLONE_NEWUSER) != 0) return std::string("skip");
    return all + "\n" + text(inspect_host());
  });
  if (said == "skip" || read_text("/proc/sys/net/ipv6/conf/all/disable_ipv6").empty())
    return cannot_run("it takes a network namespace with IPv6");
  EXPECT_EQ(said,
            "user namespace of its own lo down ipv6 on on\n"
            "user namespace of its own lo down ipv6 on off\n"
            "user namespace of its own lo down ipv6 off off\n"
            "user namespace of another lo down ipv6 off off");
}

TEST(HostState, KnowsTheKernelAndARootThatCannotBeWritten) {
  utsname name{};
  ASSERT_EQ(uname(&name), 0);
  const HostState here = inspect_host();
  EXPECT_EQ(here.kernel, name.release);
  EXPECT_EQ(here.machine, name.machine);
  ASSERT_EQ(here.capabilities.size(), 3U);
  EXPECT_EQ(here.capabilities.front().effective, has_capability(CAP_NET_ADMIN));
  const std::string said = apart([]() -> std::string {
    if (!testing::enter_new(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
      return "skip";
    const bool after = inspect_host().read_only_root;
    if (mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr) != 0) return "skip";
    return fmt::format("{} {}", after, inspect_host().read_only_root);
  });
  if (said == "skip") return cannot_run("it takes a mount namespace");
  EXPECT_EQ(said, "true false");
}

// ---- The sandbox

#if !defined(SIDETRACK_SANITIZED)
TEST(SandboxOf, EachKindKeepsWhatItNeeds) {
  const auto kept = [](Sandbox kind) {
    return as_root([kind] {
      if (effective() != everything) return std::string("skip");
      std::string all = enter_sandbox(kind);
      all += effective() + "; ";
      if (kind != Sandbox::compute) give_up_capabilities();  // it has none
      return all + effective();
    });
  };
  if (kept(Sandbox::read) == "skip") return cannot_run("it takes a user namespace");
  EXPECT_EQ(kept(Sandbox::compute), "; ");
  for (const Sandbox kind : {Sandbox::read, Sandbox::write, Sandbox::plugin})
    EXPECT_EQ(kept(kind), "NET_ADMIN NET_RAW; ");
  EXPECT_EQ(kept(Sandbox::probe), "NET_ADMIN NET_RAW SETUID SETGID; ");
}

TEST(SandboxOf, TheFirstOneStays) {
  EXPECT_EQ(apart([] {
              std::string all = entered_sandbox() ? "entered; " : "";
              all += enter_sandbox(Sandbox::read);
              all += enter_sandbox(Sandbox::compute);
              all += entered_sandbox() == Sandbox::read ? "read; " : "another; ";
              // Of `compute` it would be refused.
              return all + (socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0 ? "may ask" : "may not ask");
            }),
            "read; may ask");
  EXPECT_EQ(apart([] {
              give_up_capabilities();
              return std::string(entered_sandbox() ? "entered" : "none");
            }),
            "none");
}

TEST(SandboxOf, ARefusedCallFailsAndIsRemembered) {
  EXPECT_EQ(apart([] {
              if (refused_call()) return std::string("before");
              std::string all = enter_sandbox(Sandbox::compute);
              const long made = syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0);
              // What it answered goes unsaid: the worker tells of the call.
              return all + (made == -1 && errno == EPERM ? "" : "it was made");
            }),
            fmt::format("refused call {}", SYS_socket));
  for (const Sandbox kind : {Sandbox::read, Sandbox::write, Sandbox::plugin}) {
    EXPECT_EQ(apart([kind] {
                static_cast<void>(enter_sandbox(kind));
                return fmt::format("{}", syscall(SYS_openat, AT_FDCWD, "/", 0));
              }),
              fmt::format("refused call {}", SYS_openat));
  }
  EXPECT_EQ(refusal_words(41),
            "internal error: the sandbox refused system call 41 (ausyscall 41 names it): do not rely on what is said "
            "here; --no-sandbox works without it; please report it with the command line");
}
#endif

}  // namespace
}  // namespace sidetrack
