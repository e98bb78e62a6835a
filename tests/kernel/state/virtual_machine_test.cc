// SPDX-License-Identifier: GPL-2.0-or-later
// A machine with sshd, and an administrator logged in from another one: apply does not cut him off unless he says so.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "support/background.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* sshd = "/usr/sbin/sshd";

// What `apply` captures with, everything.
const Words everything{"-i", "*", "-b", "*", "--ip-families", "ipv4,ipv6"};

// A machine and a host from which it is administered, by keys of their own.
class Machine {
 public:
  Machine() {
    join(vm, "eth0", admin, "eth0");
    for (const Namespace* one : {&vm, &admin}) {
      trust_addresses(*one);
      const std::string last = one == &vm ? "2" : "1";
      ip(*one, "link set lo up\naddress add 192.0.2." + last + "/24 dev eth0\naddress add 2001:db8::" + last +
                   "/64 dev eth0\n");
      wait_for_addresses(*one);
    }
    for (const char* key : {"host", "user"})
      vm.must({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder_ / key});
    fs::copy(folder_ / "user.pub", folder_ / "authorized");
    // sshd wants /run/sshd: its own, since tests run side by side.
    server_.emplace(
        vm, Words{"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run && mkdir /run/sshd && exec \"$@\"", "sh",
                  sshd, "-D", "-e", "-f", "/dev/null", "-h", folder_ / "host", "-o",
                  "AuthorizedKeysFile=" + (folder_ / "authorized").string(), "-o", "StrictModes=no", "-o", "UsePAM=no",
                  "-o", "PermitRootLogin=yes", "-o", "PidFile=none",
                  // What serves a session that is cut ends soon.
                  "-o", "ClientAliveInterval=1", "-o", "ClientAliveCountMax=4"});
    server_->wait_for("Server listening on", 2);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // `ssh machine COMMAND`, which gives up soon after the connection is cut.
  [[nodiscard]] Words ssh(Family family, const std::string& command) const {
    return {"ssh",
            "-q",
            "-F",
            "/dev/null",
            "-i",
            folder_ / "user",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "ConnectTimeout=10",
            "-o",
            "ServerAliveInterval=1",
            "-o",
            "ServerAliveCountMax=4",
            family == Family::ipv4 ? "root@192.0.2.2" : "root@2001:db8::2",
            command};
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

  Namespace vm;
  Namespace admin;

 private:
  const testing::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  std::optional<Background> server_;  // the first to go: it uses the folder and the namespaces
};

class VirtualMachine : public KernelTest, public ::testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (access(sshd, X_OK) == 0) return machine_.emplace(), void();
    cannot_run("sshd is missing (Debian: openssh-server)");
  }

  [[nodiscard]] static Words sidetrack(const char* command, const Words& more = {}) {
    return Words{program_under_test(), command, "--backend", std::get<0>(GetParam())} + everything + more;
  }
  // In a shell.
  [[nodiscard]] static std::string quoted(const Words& words) {
    std::string line;
    for (const std::string& word : words) line += "'" + word + "' ";
    return line;
  }
  [[nodiscard]] static Family family() { return std::get<1>(GetParam()); }
  // What leaves the session alone.
  [[nodiscard]] static Words remedy() {
    return {"-d", "22", "-x", family() == Family::ipv4 ? "192.0.2.1/32" : "2001:db8::1/128"};
  }
  [[nodiscard]] static std::string remedy_words() {
    return "add -d 22 -x " + std::string(family() == Family::ipv4 ? "192.0.2.1/32" : "2001:db8::1/128");
  }

  // A shell by ssh, which works.
  void log_in(std::optional<Background>& shell) const {
    shell.emplace(machine_->admin, machine_->ssh(family(), "sh"));
    expect_works(*shell);
  }
  static void expect_works(Background& shell) {
    static int times = 0;
    const std::string mark = "alive-" + std::to_string(++times) + "-";
    shell.type("echo " + mark + "$((40 + 2))\n");
    EXPECT_NO_THROW(shell.wait_for(mark + "42"));
  }
  static void expect_cut(Background& shell) {
    try {
      shell.type("echo still here\n");
    } catch (const std::system_error& error) {  // ssh has ended: a segment that was still under way was reset
      if (error.code() != std::errc::broken_pipe) throw;
    }
    const Output output = shell.end();
    EXPECT_EQ(output.exit_code, 255) << output.err;
  }
  [[nodiscard]] int verify(const Words& more = {}) const {
    return machine_->vm.program(sidetrack("verify", more)).exit_code;
  }

  std::optional<Machine> machine_;
};

TEST_P(VirtualMachine, ASessionThatWouldBeCutIsARefusalThatSaysWhatKeepsIt) {
  std::optional<Background> shell;
  log_in(shell);
  const auto before = state(machine_->vm);
  shell->type(quoted(sidetrack("apply")) + "; echo status=$?\n");
  shell->wait_for("status=6");
  EXPECT_EQ(state(machine_->vm), before);
  // By its environment; by its ancestors; and from another namespace.
  shell->type("unset SSH_CONNECTION; " + quoted(sidetrack("apply", {"--check"})) + "; echo second=$?\n");
  shell->wait_for("second=6");
  const std::string netns = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(machine_->vm.fd());
  const Output outside = machine_->admin.program(sidetrack("apply", {"--netns", netns}));
  EXPECT_EQ(outside.exit_code, 6);
  EXPECT_THAT(outside.err, AllOf(HasSubstr("(sshd, process "), HasSubstr("what comes in: lands on"),
                                 HasSubstr("what goes out: lands on"), HasSubstr(remedy_words())));
  EXPECT_EQ(state(machine_->vm), before);

  shell->type(quoted(sidetrack("apply", remedy())) + "; echo third=$?\n");
  shell->wait_for("third=0");
  expect_works(*shell);
  EXPECT_EQ(verify(remedy()), 0);
  // The connection is tracked now: rules of nat are not asked about it any more.
  shell->type(quoted(sidetrack("apply")) + "; echo fourth=$?\n");
  shell->wait_for("fourth=0");
  expect_works(*shell);
  EXPECT_EQ(verify(), 0);
  shell->type("exit\n");
  EXPECT_THAT(shell->end().err, HasSubstr(remedy_words()));
}

TEST_P(VirtualMachine, WhatIsRefusedWouldReallyBeCut) {
  std::optional<Background> shell;
  log_in(shell);
  // Whoever asks: no ssh is among the ancestors here, and no variable set.
  const Output refused = machine_->vm.program(sidetrack("apply"));
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("(sshd, process "), HasSubstr(remedy_words())));
  expect_works(*shell);
  machine_->vm.must(sidetrack("istio-iptables"));
  expect_cut(*shell);
}

// -d 22 alone is not enough where sshd is the first to send after the change.
TEST_P(VirtualMachine, WhatSshdSendsFirstBeginsTheConnectionAnew) {
  for (const bool kept : {false, true}) {
    const fs::path fifo = machine_->folder() / ("fifo" + std::to_string(kept));
    check(mkfifo(fifo.c_str(), 0600), "make a FIFO");
    Background session(machine_->admin, machine_->ssh(family(), "echo begun; cat " + fifo.string()));
    session.wait_for("begun");
    machine_->vm.must(sidetrack("istio-iptables", kept ? remedy() : Words{"-d", "22"}));
    std::ofstream(fifo) << "the end\n";
    const Output output = session.end();
    EXPECT_EQ(output.exit_code, kept ? 0 : 255) << output.err;
    machine_->vm.must({program_under_test(), "clean"});
  }
}

TEST_P(VirtualMachine, TheFormOfIstioIptablesWarns) {
  std::optional<Background> shell;
  log_in(shell);
  const fs::path log = machine_->folder() / "log";
  shell->type(quoted(sidetrack("istio-iptables", {"--log_target", log})) + "; echo still here\n");
  EXPECT_EQ(shell->end().exit_code, 255);
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, AllOf(HasSubstr("warn\tthe rules cut active SSH sessions"), HasSubstr(remedy_words()),
                          HasSubstr("installed ")));
  EXPECT_EQ(verify(), 0);
}

TEST_P(VirtualMachine, OptionsThatCaptureNothingOfItAreApplied) {
  std::optional<Background> shell;
  log_in(shell);
  for (const Words& options : {Words{"-i", "198.51.100.0/24", "-b", "80"}, Words{"-b", "*", "-c", "eth0", "-i", "*"},
                               Words{"-q", "443", "-b", "80"}}) {
    shell->type(quoted(Words{program_under_test(), "apply", "--backend", std::get<0>(GetParam()), "--ip-families",
                             "ipv4,ipv6"} +
                       options) +
                "; echo applied-$?-\n");
    shell->wait_for("applied-0-");
    expect_works(*shell);
    machine_->vm.must({program_under_test(), "clean"});
    shell->type("exit\n");
    static_cast<void>(shell->end());
    log_in(shell);
  }
}

// The real thing: the session is cut after it has been said how to confirm, and can be had again after the time.
TEST_P(VirtualMachine, ASessionThatIsCutCannotConfirm) {
  const auto was = state(machine_->vm);
  std::optional<Background> shell;
  log_in(shell);
  const fs::path fifo = machine_->folder() / "done";
  check(mkfifo(fifo.c_str(), 0600), "make a FIFO");
  shell->type("trap '' HUP; (" + quoted(sidetrack("apply", {"--confirm", "3s"})) + " </dev/null; echo $? >" +
              fifo.string() + ")\n");
  shell->wait_for("or 'kill -USR1 ");
  std::ifstream done(fifo);  // when it has ended
  std::string status;
  done >> status;
  EXPECT_EQ(status, "1");
  EXPECT_EQ(state(machine_->vm), was);
  EXPECT_EQ(machine_->admin.program(machine_->ssh(family(), "true")).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(, VirtualMachine, settings(), setting_name);

}  // namespace
}  // namespace sidetrack::netns
