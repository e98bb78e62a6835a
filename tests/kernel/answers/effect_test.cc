// SPDX-License-Identifier: GPL-2.0-or-later
// `diff --effect` of two pods: the same rules in another backend are the same, and what it says to differ lands
// differently in the two.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/traffic.h"
#include "unit/asking.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class TwoPods : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    one_.emplace();
    other_.emplace();
  }
  static void apply(const Pod& pod, const char* backend, std::vector<std::string> more) {
    more.insert(more.begin(), {program_under_test(), "apply", "--backend", backend, "--ip-families", "ipv4,ipv6"});
    pod.ns().must(more);
  }
  static std::string word(const Pod& pod) { return fmt::format("netns:/proc/{}/fd/{}", getpid(), pod.ns().fd()); }
  [[nodiscard]] Output compare() const {
    const Namespace elsewhere;
    return elsewhere.program({program_under_test(), "diff", "--effect", word(*one_), word(*other_), "--json"});
  }
  std::optional<Pod> one_;
  std::optional<Pod> other_;
};

TEST_F(TwoPods, AreTheSameWhateverTheBackend) {
  for (const char* mode : {"REDIRECT", "TPROXY"}) {
    apply(*one_, "iptables-legacy", {"-i", "*", "-b", "80,8080", "-m", mode});
    apply(*other_, "nftables", {"-i", "*", "-b", "8080,80", "-m", mode});
    const Output output = compare();
    EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
    EXPECT_EQ(Json::parse(output.out).at("same"), true);
  }
}

TEST_F(TwoPods, DifferWhereTheWitnessLandsDifferently) {
  const std::string service(addresses(Family::ipv4).service);
  apply(*one_, "iptables-nft", {"-i", "*", "-b", "*"});
  apply(*other_, "nftables", {"-i", "*", "-b", "*", "-x", service, "-d", "8080"});
  const Output output = compare();
  EXPECT_EQ(output.exit_code, 6) << output.err;
  std::size_t sent = 0;
  const Json said = Json::parse(output.out);
  for (const Json& region : said.at("regions")) {
    const Packet packet = packet_of(region.at("witness").get<std::string>());
    const bool can_be_sent = packet.direction == Direction::out && packet.protocol == Protocol::tcp &&
                             packet.mark == 0 && packet.state == ConnectionState::new_ && !packet.source &&
                             !packet.source_port && packet.interface.empty() && packet.destination->text() == service;
    if (!can_be_sent) continue;
    Request request;
    request.to = Endpoint(service, 80);
    Actor actor = as_app;
    actor.identity = {packet.owner->uid, packet.owner->gid};
    EXPECT_NE(one_->connect(actor, request), other_->connect(actor, request)) << region.at("witness");
    ++sent;
  }
  EXPECT_GT(sent, 0U);
}

// Whatever they look like beside their rules.
TEST_F(TwoPods, AreTakenToHaveTheSameAddresses) {
  apply(*one_, "iptables-nft", {"-i", "*"});
  const Namespace elsewhere;
  const Output output = elsewhere.program({program_under_test(), "diff", "--effect", word(*one_), word(*one_)});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(output.out,
            "every packet of tcp, udp and icmp is treated the same\ncompared by their rules: both pods are taken to "
            "have the same assumed addresses, interfaces and routes\n");
}

// Each pod is read by a process of its own.
TEST_F(TwoPods, ThatCannotBeReadAreNamed) {
  const Namespace elsewhere;
  const auto disturbed = [&](const std::string& fault) {
    const Output output = elsewhere.program({"strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=" + fault,
                                             program_under_test(), "diff", "--effect", word(*one_), word(*other_)});
    EXPECT_EQ(output.exit_code, 1) << output.err;
    EXPECT_EQ(output.out, "");
    return output.err;
  };
  EXPECT_THAT(disturbed("setns:signal=SIGKILL"),
              AllOf(HasSubstr("error: 'netns:/proc/"), HasSubstr("': its rules could not be read\n")));
  EXPECT_THAT(disturbed("recvfrom:error=EPERM:syscall=getpgrp:when=10+"),
              HasSubstr("the sandbox refused system call "));
}

TEST_F(TwoPods, RefuseWhatIsNone) {
  const Namespace elsewhere;
  for (const auto& [word, why] : {std::pair{"pid:0", "expected pid: and the number of a process"},
                                  std::pair{"pid:x", "expected pid: and the number of a process"},
                                  std::pair{"netns:no-such-one", "no-such-one"}}) {
    const Output output = elsewhere.program({program_under_test(), "diff", "--effect", word, word});
    EXPECT_EQ(output.exit_code, 2) << word;
    EXPECT_THAT(output.err, HasSubstr(why));
  }
}

}  // namespace
}  // namespace sidetrack::netns
