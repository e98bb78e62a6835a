// SPDX-License-Identifier: GPL-2.0-or-later
// By which connections somebody may work on a machine, where no sshd tells: tests/kernel/state/virtual_machine_test.cc
// has one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "support/background.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A machine and another one, with a connection between them to a port of the machine.
class SessionsWithoutSshd : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    join(vm, "eth0", admin, "eth0");
    for (const Namespace* one : {&vm, &admin}) {
      trust_addresses(*one);
      ip(*one, std::string("link set lo up\naddress add 192.0.2.") + (one == &vm ? "2" : "1") + "/24 dev eth0\n");
      wait_for_addresses(*one);
    }
  }

  // Takes one connection and keeps it.
  static Words serve(int port) {
    return {"python3", "-c",
            fmt::format("import socket, sys; s = socket.create_server(('', {})); print('listens', flush=True); c = "
                        "s.accept(); sys.stdin.read()",
                        port)};
  }
  static Words connect(const char* to, int port) {
    return {"python3", "-c",
            fmt::format("import socket, sys; c = socket.create_connection(('{}', {})); print('is connected', "
                        "flush=True); sys.stdin.read()",
                        to, port)};
  }
  [[nodiscard]] static Words apply(const Words& more = {}) {
    return Words{program_under_test(), "apply", "-i", "*", "-b", "*", "--ip-families", "ipv4"} + more;
  }

  Namespace vm, admin;
};

TEST_F(SessionsWithoutSshd, OnPort22WhoeverServesIt) {
  const auto before = state(vm);
  for (const int port : {22, 23}) {
    Background server(vm, serve(port));
    server.wait_for("listens");
    Background client(admin, connect("192.0.2.2", port));
    client.wait_for("is connected");
    const Output output = vm.program(apply({"--check"}));
    EXPECT_EQ(output.exit_code, port == 22 ? 6 : 0) << output.err;
    EXPECT_EQ(output.err.find("active SSH sessions") != std::string::npos, port == 22);
    if (port == 22) {
      EXPECT_THAT(output.err, ContainsRegex("192\\.0\\.2\\.2:22 from 192\\.0\\.2\\.1:[0-9]+ \\(port 22\\): "));
    }
    EXPECT_EQ(state(vm), before);
  }
}

// An agent that was told over the network to run the program waits for its answer.
TEST_F(SessionsWithoutSshd, OfTheProgramThatAsks) {
  Background server(admin, serve(9000));
  server.wait_for("listens");
  const Output output = vm.program(Words{"python3", "-c",
                                         "import socket, subprocess, sys; c = socket.create_connection(('192.0.2.1', "
                                         "9000)); sys.exit(subprocess.run(sys.argv[1:]).returncode)"} +
                                   apply());
  EXPECT_EQ(output.exit_code, 6) << output.err;
  EXPECT_THAT(output.err,
              ContainsRegex("192\\.0\\.2\\.2:[0-9]+ to 192\\.0\\.2\\.1:9000 \\(python3, process [0-9]+\\): "));
}

TEST_F(SessionsWithoutSshd, ThatCannotBeSeenAreSaidToBe) {
  const Words as_user{"setpriv",
                      "--reuid=65534",
                      "--regid=65534",
                      "--clear-groups",
                      "--inh-caps=+net_admin,+net_raw",
                      "--ambient-caps=+net_admin,+net_raw"};
  EXPECT_THAT(vm.program(as_user + apply({"--check"})).err, Not(HasSubstr("unknown: "))) << "there is no connection";
  Background server(admin, serve(9000));
  server.wait_for("listens");
  Background client(vm, connect("192.0.2.1", 9000));
  client.wait_for("is connected");
  const Output output = vm.program(as_user + apply({"--check"}));
  EXPECT_THAT(output.err, HasSubstr(fmt::format("warning: unknown: whether the rules cut a session of ssh: the "
                                                "connections of kernel_tests (process {}) cannot be seen: that takes "
                                                "root\n",
                                                getpid())));
  EXPECT_THAT(vm.program(apply({"--check"})).err, Not(HasSubstr("unknown: ")));
}

}  // namespace
}  // namespace sidetrack::netns
