// SPDX-License-Identifier: GPL-2.0-or-later
// apply --when-ready: nothing changes, and nobody waits for a lock, until the proxy listens.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "support/background.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "support/server.h"
#include "support/trace.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint16_t port = 15021;
constexpr const char* waiting = "waiting for the proxy";

// Listens at one address alone, as a user.
FileDescriptor listen_at(const Namespace& where, const Endpoint& at, Identity identity, bool ipv6_only = false) {
  return where.run(
      [&] {
        FileDescriptor socket(check(::socket(at.domain(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
        const int on = 1;
        check(setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
        if (ipv6_only) check(setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), "IPV6_V6ONLY");
        const sockaddr_storage address = at.socket_address();
        check(bind(socket.get(), pointer(address), socket_address_size), "bind");
        check(listen(socket.get(), 1), "listen");
        return socket;
      },
      identity);
}

class WhenReady : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pod_.emplace();
    trust_addresses(*pod_);
    ip(*pod_, "link set lo up\n");
  }

  [[nodiscard]] static Words words(const char* command, const Words& more = {}) {
    return Words{program_under_test(), command,    "--backend", GetParam(), "-i", "*", "-b", "*",
                 "--ip-families",      "ipv4,ipv6"} +
           more;
  }
  [[nodiscard]] static Words apply(const std::string& when_ready, const Words& more = {}) {
    return words("apply", Words{"--when-ready", when_ready, "--log_output_level", "default:debug"} + more);
  }
  void expect_applied() const { EXPECT_EQ(pod_->program(words("verify")).exit_code, 0); }

  std::optional<Namespace> pod_;
};

TEST_P(WhenReady, TheRulesComeWhenTheProxyListensAtAnyAddress) {
  for (const Endpoint at : {Endpoint("0.0.0.0", port), Endpoint("::", port), Endpoint("127.0.0.1", port),
                            Endpoint("::1", port), Endpoint("127.0.0.2", port)}) {
    pod_->must({program_under_test(), "clean"});
    const std::string before = trace(*pod_);
    Background running(*pod_, apply("15021,10m"));
    running.wait_for(waiting);
    EXPECT_EQ(trace(*pod_), before);
    // No lock is held: another writer does not wait.
    EXPECT_EQ(pod_->program({program_under_test(), "clean", "--wait", "20s"}).exit_code, 0);
    const FileDescriptor proxy = listen_at(*pod_, at, proxy_identity);
    const Output output = running.end();
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_THAT(output.err, AllOf(HasSubstr("installed "), HasSubstr(" s for the proxy on port 15021"))) << at;
    expect_applied();
  }
}

TEST_P(WhenReady, AProxyThatListensAlreadyIsNotWaitedFor) {
  const FileDescriptor proxy = listen_at(*pod_, {"0.0.0.0", port}, proxy_identity);
  const Output output = pod_->program(words("apply", {"--when-ready", "15021"}));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, AllOf(HasSubstr("waited 0.0 s"), Not(HasSubstr(waiting))));
  EXPECT_EQ(std::ranges::count(output.err, '\n'), 1) << output.err;
  expect_applied();
}

TEST_P(WhenReady, WhatIsWaitedForIsSaidOnce) {
  Background running(*pod_, words("apply", {"--when-ready", "15021,10m"}));
  running.wait_for("waiting for the proxy (uid 1337) to listen on port 15021, for at most 10m\n");
  const FileDescriptor proxy = listen_at(*pod_, {"0.0.0.0", port}, proxy_identity);
  const Output output = running.end();
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(std::ranges::count(output.err, '\n'), 2) << output.err;
}

// Each listener in turn, all of the port that the rules lead to: only the last one takes all that they lead there.
struct Step {
  Endpoint at;
  bool ipv6_only;
};
struct Reached {
  Words options;
  std::vector<Step> too_few;  // each alone
  std::vector<Step> enough;   // together
};

TEST_P(WhenReady, ThePortOfTheRulesHasToTakeWhatTheyLeadThere) {
  ip(*pod_,
     "link add eth0 type veth peer name peer0\naddr add 10.1.0.2/24 dev eth0\nlink set eth0 up\nlink set peer0 up\n");
  const Words both{"--ip-families", "ipv4,ipv6"};
  const Words ipv4{"--ip-families", "ipv4"};
  const Reached all[] = {
      {ipv4 + Words{"--when-ready", "15001,10m"},
       {{{"::", 15001}, true}, {{"10.1.0.2", 15001}, false}, {{"127.0.0.2", 15001}, false}},
       {{{"127.0.0.1", 15001}, false}}},
      {ipv4 + Words{"--when-ready", "15006,10m"}, {{{"127.0.0.1", 15006}, false}}, {{{"::", 15006}, false}}},
      {ipv4 + Words{"--when-ready", "15006,10m", "-m", "TPROXY"},
       {{{"10.1.0.2", 15006}, false}},
       {{{"0.0.0.0", 15006}, false}}},
      {both + Words{"--when-ready", "15001,10m"},
       {{{"0.0.0.0", 15001}, false}, {{"::", 15001}, true}, {{"127.0.0.1", 15001}, false}},
       {{{"127.0.0.1", 15001}, false}, {{"::1", 15001}, false}}},
      // No rule leads there.
      {ipv4 + Words{"--when-ready", "15021,10m"}, {{{"::", 15021}, true}}, {{{"10.1.0.2", 15021}, false}}},
  };
  for (const Reached& each : all) {
    const Words options =
        Words{program_under_test(), "apply", "--backend", GetParam(), "-i", "*", "-b", "*"} + each.options;
    for (const Step& step : each.too_few) {
      const FileDescriptor proxy = listen_at(*pod_, step.at, proxy_identity, step.ipv6_only);
      Words impatient = options;
      std::ranges::replace_if(
          impatient, [](const auto& word) { return word.ends_with(",10m"); }, std::to_string(step.at.port) + ",100ms");
      const Output output = pod_->program(impatient);
      EXPECT_EQ(output.exit_code, 1) << step.at << "\n" << output.err;
      EXPECT_THAT(output.err, AllOf(HasSubstr("listens on port"), HasSubstr("only, but must also listen at")));
    }
    Background running(*pod_, options);
    running.wait_for(waiting);
    std::vector<FileDescriptor> proxy;
    for (const Step& step : each.enough) proxy.push_back(listen_at(*pod_, step.at, proxy_identity, step.ipv6_only));
    EXPECT_EQ(running.end().exit_code, 0);
    pod_->must({program_under_test(), "clean"});
  }
}

// ztunnel is root's.
TEST_P(WhenReady, InAnAmbientPodWhoeverListensIsZtunnel) {
  const Words options{program_under_test(), "apply", "--backend",    GetParam(), "--dataplane", "ambient",
                      "--ip-families",      "ipv4",  "--when-ready", "15001"};
  Background running(*pod_, options);
  running.wait_for("waiting for ztunnel to listen on port 15001, for at most 60 s");
  const FileDescriptor proxy = listen_at(*pod_, {"0.0.0.0", 15001}, {});
  const Output output = running.end();
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr(" s for ztunnel on port 15001"));
  const Words verify{program_under_test(), "verify",  "--backend",     GetParam(),
                     "--dataplane",        "ambient", "--ip-families", "ipv4"};
  EXPECT_EQ(pod_->program(verify).exit_code, 0);
}

TEST_P(WhenReady, AProxyThatNeverListensIsAnError) {
  const std::string before = trace(*pod_);
  const FileDescriptor other_port = listen_at(*pod_, {"0.0.0.0", 15020}, proxy_identity);
  const Output output = pod_->program(words("apply", {"--when-ready", "15021,100ms"}));
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("the proxy (uid 1337) did not listen on port 15021 within 0.1 s; nothing was "
                                    "changed"));
  EXPECT_EQ(trace(*pod_), before);
}

TEST_P(WhenReady, AnotherUsersPortIsNotTheProxys) {
  const std::string before = trace(*pod_);
  {
    const FileDescriptor other = listen_at(*pod_, {"0.0.0.0", port}, app_identity);
    const Output output = pod_->program(words("apply", {"--when-ready", "15021,100ms"}));
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_THAT(output.err, AllOf(HasSubstr("port 15021 is held by uid 1000, not by the proxy (-u 1337)"),
                                  HasSubstr("within 0.1 s: port 15021 is held by uid 1000, not by the proxy (-u 1337); "
                                            "nothing was changed")));
    EXPECT_EQ(trace(*pod_), before);
    // As the options name the proxy.
    EXPECT_EQ(pod_->program(words("apply", {"--when-ready", "15021", "-u", "7,1000"})).exit_code, 0);
    pod_->must({program_under_test(), "clean"});
  }
  std::optional<FileDescriptor> other = listen_at(*pod_, {"::1", port}, app_identity);
  Background running(*pod_, apply("15021,10m"));
  running.wait_for("held by uid 1000");
  other.reset();
  const FileDescriptor proxy = listen_at(*pod_, {"::1", port}, proxy_identity);
  EXPECT_EQ(running.end().exit_code, 0);
  expect_applied();
}

TEST_P(WhenReady, SignalsEndTheWaitAndNothingIsChanged) {
  const std::string before = trace(*pod_);
  for (const auto& [number, name] : {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGINT, "SIGINT"),
                                     std::pair(SIGHUP, "SIGHUP"), std::pair(SIGQUIT, "SIGQUIT")}) {
    Background running(*pod_, apply("15021,10m"));
    running.wait_for(waiting);
    running.signal(number);
    const Output output = running.end();
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_THAT(output.err, AllOf(HasSubstr(std::string("ended by ") + name), HasSubstr("nothing was changed")));
    EXPECT_EQ(trace(*pod_), before);
  }
}

TEST_P(WhenReady, WhatCannotBeAppliedFailsBeforeTheWait) {
  pod_->must({"nft", "-f", "-"},
             "table ip other {\nchain out {\ntype nat hook output priority -110\nmeta skuid 1337 tcp dport 80 redirect "
             "to :15001\n}\n}\n");
  const std::string before = trace(*pod_);
  const Output output = pod_->program(words("apply", {"--when-ready", "15021,8000h", "--prove"}));
  EXPECT_EQ(output.exit_code, 126) << output.err;
  EXPECT_EQ(trace(*pod_), before);
}

TEST_P(WhenReady, CheckWaitsAndChangesNothing) {
  const std::string before = trace(*pod_);
  Background running(*pod_, apply("15021,10m", {"--check"}));
  running.wait_for(waiting);
  const FileDescriptor proxy = listen_at(*pod_, {"127.0.0.1", port}, proxy_identity);
  const Output output = running.end();
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, AllOf(HasSubstr("the kernel would accept"), HasSubstr("for the proxy on port 15021")));
  EXPECT_EQ(trace(*pod_), before);
}

TEST_P(WhenReady, AProxyThatDiesBeforeTheCommitIsWaitedForAgain) {
  Background running(*pod_, apply("15021,10m"));
  running.wait_for(waiting);
  FileDescriptor lock(
      pod_->run([] { return check(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "open the namespace"); }));
  check(flock(lock.get(), LOCK_EX), "lock the namespace");
  {
    const FileDescriptor proxy = listen_at(*pod_, {"::", port}, proxy_identity);
    running.wait_for("the proxy listens on port 15021");
  }
  const std::string before = trace(*pod_);
  lock = {};  // only now can it go on
  running.wait_for(waiting, 2);
  EXPECT_EQ(trace(*pod_), before);
  const FileDescriptor proxy = listen_at(*pod_, {"::", port}, proxy_identity);
  const Output output = running.end();
  EXPECT_EQ(output.exit_code, 0) << output.err;
  expect_applied();
}

TEST_P(WhenReady, TheStateIsSurveyedAfterTheWait) {
  Background running(*pod_, apply("15021,10m"));
  running.wait_for(waiting);
  pod_->must(words("apply", {"--backend", "nftables", "-o", "80"}));
  pod_->must(words("apply", {"--backend", "iptables-nft", "-m", "TPROXY"}));
  const FileDescriptor proxy = listen_at(*pod_, {"::", port}, proxy_identity);
  EXPECT_EQ(running.end().exit_code, 0);
  expect_applied();
}

TEST_P(WhenReady, AnotherNamespacesProxyIsMeant) {
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(pod_->fd());
  const Namespace node;
  const FileDescriptor of_the_node = listen_at(node, {"0.0.0.0", port}, proxy_identity);
  Background running(node, apply("15021,10m", {"--netns", path}));
  running.wait_for(waiting);
  const FileDescriptor proxy = listen_at(*pod_, {"0.0.0.0", port}, proxy_identity);
  const Output output = running.end();
  EXPECT_EQ(output.exit_code, 0) << output.err;
  expect_applied();
}

INSTANTIATE_TEST_SUITE_P(, WhenReady, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
