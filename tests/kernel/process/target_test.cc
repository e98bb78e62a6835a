// SPDX-License-Identifier: GPL-2.0-or-later
// Every command, from inside a namespace and from outside: by process, by path, by name; with and without a user
// namespace of the pod's own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/user_namespace.h"
#include "support/words.h"
#include "unit/temporary_file.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
// A process that sits in the namespaces, as a pod's pause does.
class Occupant {
 public:
  Occupant(const Namespace& network, const Words& enter) {
    Words words = enter + Words{"sh", "-c", "echo; exec sleep infinity"};
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int ends[2];
    check(pipe2(ends, O_CLOEXEC), "pipe");
    const FileDescriptor read_end(ends[0]);
    FileDescriptor write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    const int error =
        network.run([&] { return posix_spawnp(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ); });
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::system_error(error, std::generic_category(), "run " + words[0]);
    write_end = {};
    char byte = 0;
    if (read(read_end.get(), &byte, 1) != 1) throw std::runtime_error("the namespaces cannot be entered");
  }
  ~Occupant() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Occupant(const Occupant&) = delete;
  Occupant& operator=(const Occupant&) = delete;

  [[nodiscard]] std::string pid() const { return std::to_string(pid_); }

 private:
  pid_t pid_ = 0;
};

// A name in /run/netns.
class Named {
 public:
  Named(std::string name, const std::string& pid) : name_(std::move(name)) {
    node_.must({"ip", "netns", "attach", name_, pid});
  }
  ~Named() { static_cast<void>(node_.program({"ip", "netns", "delete", name_})); }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

 private:
  std::string name_;
  Namespace node_;
};

struct Direction {
  const char* name;
  Words (*target)(const std::string& pid, const std::string& name);
};
const Direction ways[] = {
    {"by_pid",
     [](const std::string& pid, const std::string&) {
       return Words{"--pid", pid};
     }},
    {"by_path",
     [](const std::string& pid, const std::string&) {
       return Words{"--netns", "/proc/" + pid + "/ns/net"};
     }},
    {"by_name",
     [](const std::string&, const std::string& name) {
       return Words{"--netns", name};
     }},
};

class Target : public KernelTest, public ::testing::WithParamInterface<std::tuple<Direction, bool>> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (std::get<bool>(GetParam())) users_.emplace();
    pod_.emplace(users_ ? users_->network() : Namespace());
    ip(*pod_,
       "link set lo up\nlink add eth0 type veth peer name eth0-peer\naddr add 10.244.1.5/24 dev eth0\n"
       "link set eth0 up\n");
    occupant_.emplace(*pod_, users_ ? users_->inside({}) : Words{});
    const std::string name = "sidetrack-test-" + occupant_->pid();
    named_.emplace(name, occupant_->pid());
    target_ = std::get<Direction>(GetParam()).target(occupant_->pid(), name);
  }

  [[nodiscard]] Output inside(const Words& words) const {
    const Words all = Words{program_under_test()} + words;
    return pod_->program(users_ ? users_->inside(all) : all);
  }
  // From a namespace that has nothing to do with it, like the node.
  [[nodiscard]] Output outside(const Words& words) const {
    return node_.program(Words{program_under_test()} + words + target_);
  }
  // In the network namespace alone, as people do on a node.
  [[nodiscard]] Output by_nsenter(const Words& words) const {
    return node_.program(Words{"nsenter", "-t", occupant_->pid(), "-n", program_under_test()} + words);
  }
  // The same from both sides.
  void expect_same(const Words& words, int exit_code) const {
    SCOPED_TRACE(::testing::PrintToString(words));
    const Output here = inside(words);
    const Output there = outside(words);
    EXPECT_EQ(here.exit_code, exit_code) << here.err;
    EXPECT_EQ(there.exit_code, exit_code) << there.err;
    EXPECT_EQ(there.out, here.out);
    EXPECT_EQ(there.err, here.err);
  }

  const Words options_{"-u", "1337", "-i", "*", "-b", "*", "--ip-families", "ipv4,ipv6"};

 private:
  Namespace node_;
  std::optional<UserNamespace> users_;
  std::optional<Namespace> pod_;
  std::optional<Occupant> occupant_;
  std::optional<Named> named_;
  Words target_;
};

TEST_P(Target, OfEveryCommand) {
  expect_same({"show"}, 0);
  expect_same(Words{"diff"} + options_, 6);
  expect_same(Words{"verify"} + options_, 6);

  for (const char* backend : {"iptables-legacy", "nftables", "iptables-nft"}) {
    SCOPED_TRACE(backend);
    const Words asked = options_ + Words{"--backend", backend};
    const Output checked = outside(Words{"apply", "--check"} + asked);
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    const Output applied = outside(Words{"apply"} + asked);
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_THAT(applied.err, HasSubstr(backend));

    expect_same(Words{"verify"} + asked, 0);
    expect_same(Words{"diff"} + asked, 0);
    expect_same({"diff", "--clean"}, 6);
    EXPECT_THAT(inside({"show"}).out, HasSubstr("15001"));
    expect_same({"show"}, 0);
    EXPECT_EQ(by_nsenter({"show"}).out, inside({"show"}).out);
    expect_same({"show", "--json"}, 0);
    expect_same({"explain", "out", "tcp", "10.96.0.10:443", "--uid", "1000"}, 0);
    expect_same({"explain", "in", "tcp", ":8080", "--from", "10.1.2.3", "--brief"}, 0);
    expect_same(Words{"render"} + options_, 0);

    const Output cleaned = outside({"clean"});
    EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
    EXPECT_THAT(inside({"show"}).out, Not(HasSubstr("15001")));
  }
  const Output doctor = outside({"doctor"});
  EXPECT_EQ(doctor.exit_code, 0) << doctor.err;
}

TEST_P(Target, OfTheDropIn) {
  const Words asked = Words{"istio-iptables"} + options_;
  const Output applied = outside(asked);
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(inside({"show"}).out, HasSubstr("15001"));
  EXPECT_EQ(outside(Words{"istio-iptables", "--cleanup-only"}).exit_code, 0);
  EXPECT_THAT(inside({"show"}).out, Not(HasSubstr("15001")));
}

std::string way_name(const ::testing::TestParamInfo<Target::ParamType>& tested) {
  const auto& [way, users] = tested.param;
  return std::string(way.name) + (users ? "_with_a_user_namespace" : "");
}
INSTANTIATE_TEST_SUITE_P(, Target, ::testing::Combine(::testing::ValuesIn(ways), ::testing::Bool()), way_name);

// As the CNI plugin calls it on the node: --network-namespace names the pod's, and the lock is the namespace's.
struct CniTest : KernelTest {
  Namespace node;
  Namespace pod;
  Output cni(const Words& words) const {
    return node.program(
        Words{program_under_test(), "istio-iptables", "--cni-mode", "-i", "*", "-b", "*", "--ip-families", "ipv4"} +
        words);
  }
};

TEST_F(CniTest, ProgramsTheNamedNamespaceUnderItsOwnLock) {
  const Occupant pause(pod, {});
  const Named name("sidetrack-test-" + pause.pid(), pause.pid());
  for (const std::string& target : {"/proc/" + pause.pid() + "/ns/net", "sidetrack-test-" + pause.pid()}) {
    for (const char* binary : {"legacy", "nft"}) {
      // A process holds the node's lock: it has nothing to do with the pod's rules.
      const Output output = node.program({"flock", "/run/xtables.lock", program_under_test(), "istio-iptables",
                                          "--cni-mode", "-i", "*", "-b", "*", "--ip-families", "ipv4",
                                          "--network-namespace", target, "--force-iptables-binary", binary});
      EXPECT_EQ(output.exit_code, 0) << output.err;
      const std::string listed = pod.must({"iptables-" + std::string(binary) + "-save"});
      EXPECT_THAT(listed, HasSubstr("-j ISTIO_REDIRECT"));
      EXPECT_EQ(cni({"--network-namespace", target, "--cleanup-only"}).exit_code, 0);
    }
  }
  EXPECT_THAT(node.must({"nft", "list", "ruleset"}), Not(HasSubstr("ISTIO")));
}

struct WrongTarget {
  Words words;
  const char* reason;
};

TEST_F(CniTest, AWrongTargetIsToldWithTheReason) {
  const WrongTarget wrong[] = {
      {{"show", "--pid", "999999999"}, "process 999999999 does not exist"},
      {{"show", "--pid", "self"}, "--pid: 'self': expected a process id"},
      {{"show", "--netns", "no-such-name"}, "network namespace 'no-such-name': cannot open /run/netns/no-such-name"},
      {{"show", "--netns", "/proc/self/ns/mnt"}, "'/proc/self/ns/mnt' is not a network namespace"},
      {{"show", "--netns", "/etc/passwd"}, "'/etc/passwd' is not a network namespace"},
      {{"show", "--netns", "a", "--pid", "1"}, "--pid"},
      {{"istio-iptables", "--network-namespace", "/no/such", "-b", "*"}, "cannot open /no/such"},
  };
  for (const WrongTarget& target : wrong) {
    SCOPED_TRACE(::testing::PrintToString(target.words));
    const Output output = node.program(Words{program_under_test()} + target.words);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_THAT(output.out + output.err, HasSubstr(target.reason));  // the drop-in form logs to standard output
  }
}

TEST_F(CniTest, WithoutProcItIsNotKnownWhoseNamespaceItIs) {
  const testing::TemporaryFile file("");
  const Output output = node.program({"unshare", "--mount", "sh", "-c",
                                      "mount --bind /proc/self/ns/net \"$0\" && mount -t tmpfs none /proc && exec "
                                      "\"$@\" --netns \"$0\"",
                                      file.path(), program_under_test(), "show"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("cannot tell which namespace this process is in: /proc/thread-self/ns/net: No such "
                                    "file or directory (ENOENT); /proc must be mounted"));
}

// apply takes no --pod: what would program the manifest's rules has to be asked for.
TEST_F(CniTest, WhatAManifestAsksForIsProgrammedByTheOptionsThatArgsPrints) {
  const std::string file = SIDETRACK_SOURCE_DIR "/docs/deployment.yaml";
  const Words verify = {program_under_test(), "verify", "--ip-families", "ipv4", "--pod", file};
  const Output differs = pod.program(verify);
  EXPECT_EQ(differs.exit_code, 6);
  EXPECT_THAT(differs.err, HasSubstr("'sidetrack apply' with the options that 'sidetrack args' prints would install"));
  pod.must({"ip", "link", "set", "lo", "up"});
  const Output printed = pod.program({program_under_test(), "args", "-f", file});
  pod.must({"sh", "-c", program_under_test() + " apply --ip-families ipv4 " + printed.out});
  EXPECT_EQ(pod.program(verify).exit_code, 0);
}

// Without the rights to enter: exit 4, and what is needed.
TEST_F(CniTest, EnteringNeedsARight) {
  const Occupant pause(pod, {});
  const Output output =
      node.program({program_under_test(), "show", "--pid", pause.pid()}, {}, {}, {.uid = 65534, .gid = 65534});
  EXPECT_EQ(output.exit_code, 4);
  EXPECT_THAT(output.err, AllOf(HasSubstr("process " + pause.pid()), HasSubstr("CAP_SYS_ADMIN")));
}

}  // namespace
}  // namespace sidetrack::netns
