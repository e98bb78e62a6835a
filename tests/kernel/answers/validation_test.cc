// SPDX-License-Identifier: GPL-2.0-or-later
// --run-validation, as the injector and the CNI plugin use it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>

#include "support/network.h"
#include "support/quiet_pod.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Validation : public KernelTest, public ::testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) pod_.emplace(family());
  }
  [[nodiscard]] std::string backend() const { return std::get<const char*>(GetParam()); }
  [[nodiscard]] Family family() const { return std::get<Family>(GetParam()); }
  // The drop-in form, with what the injector passes; its log is on standard output.
  [[nodiscard]] std::vector<std::string> command(const std::string& more) const {
    return words("sidetrack istio-iptables --backend " + backend() + " " + std::string(injected) + " " + more);
  }
  [[nodiscard]] Output run(const std::string& more, Identity identity = {}) const {
    return pod_->run(command(more), identity);
  }
  void must(const std::string& more) const {
    const Output output = run(more);
    ASSERT_EQ(output.exit_code, 0) << output.out << output.err;
  }
  [[nodiscard]] std::string probed() const { return family() == Family::ipv4 ? "127.0.0.6:15002" : "[::6]:15002"; }

  std::optional<QuietPod> pod_;
};
INSTANTIATE_TEST_SUITE_P(, Validation, settings(), setting_name);

const std::string only_validate = "--skip-rule-apply --run-validation";
const std::string only_validate_briefly = only_validate + " --probe-timeout 100ms";

TEST_P(Validation, FollowsApply) {
  const Output output = run("--run-validation");
  EXPECT_EQ(output.exit_code, 0) << output.out;
  EXPECT_THAT(output.out, AllOf(HasSubstr("installed"), HasSubstr("validated"), HasSubstr(probed())));
  EXPECT_THAT(output.out, HasSubstr("with its original destination"));
  EXPECT_EQ(pod_->came_out(), 0);
}

// As the istio-validation container: it may not read the rules, and does not have to.
TEST_P(Validation, RunsConfinedAsTheProxy) {
  const Output before = pod_->run(confined(command(only_validate_briefly)));
  EXPECT_EQ(before.exit_code, 126) << before.out << before.err;
  EXPECT_THAT(before.out, HasSubstr("the rules cannot be read here; likely missing is one of:"));
  must("");
  const Output after = pod_->run(confined(command(only_validate)));
  EXPECT_EQ(after.exit_code, 0) << after.out << after.err;
  EXPECT_EQ(pod_->could_go_on(), 0);
}

TEST_P(Validation, FailsWithoutRulesAndNamesThem) {
  const Output output = run(only_validate_briefly);
  EXPECT_EQ(output.exit_code, 126);
  if (family() == Family::ipv6) {
    EXPECT_THAT(output.out, AllOf(HasSubstr("::6 is not an address of this pod; "),
                                  HasSubstr("; missing:\n  ip -6 addr add ::6/128 dev lo")));
    ip(pod_->ns(), "addr add ::6/128 dev lo nodad\n");
  }
  const Output refused = run(only_validate_briefly);
  EXPECT_EQ(refused.exit_code, 126);
  EXPECT_THAT(refused.out, AllOf(HasSubstr(probed() + " is refused"), HasSubstr("-t nat -A OUTPUT -j ISTIO_OUTPUT"),
                                 HasSubstr("--uid-owner 1337 -j ISTIO_IN_REDIRECT (-u 1337)"),
                                 HasSubstr("-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006 (-z 15006)")));
  EXPECT_EQ(pod_->came_out(), 0);
}

struct LeftOut {
  const char* chain;
  const char* listed;         // in the listing of iptables
  const char* listed_by_nft;  // in that of nft
  const char* named;          // in our message
};
constexpr LeftOut left_out[] = {
    {"OUTPUT", "-j ISTIO_OUTPUT", "jump nat-ISTIO_OUTPUT", "-A OUTPUT -j ISTIO_OUTPUT"},
    {"ISTIO_OUTPUT", "--uid-owner 1337 -j ISTIO_IN_REDIRECT", "skuid 1337 counter packets",
     "--uid-owner 1337 -j ISTIO_IN_REDIRECT (-u 1337)"},
    {"ISTIO_IN_REDIRECT", "-j REDIRECT", "redirect to", "-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT"},
};

TEST_P(Validation, NamesTheOneRuleThatIsMissing) {
  for (const LeftOut& part : left_out) {
    must("--force-apply");
    const bool nft = backend() == "nftables";
    // The family's own rule where the two have one each: the line with the loopback address that is left out.
    const std::string loopback = family() == Family::ipv4 ? "ip daddr != 127.0.0.1" : "ip6 daddr != ::1";
    const bool by_owner = std::string(part.chain) == "ISTIO_OUTPUT";
    take_away(pod_->ns(), backend(), family(), part.chain,
              !nft       ? part.listed
              : by_owner ? loopback
                         : part.listed_by_nft);
    const Output output = run(only_validate_briefly);
    EXPECT_EQ(output.exit_code, 126) << part.named;
    EXPECT_THAT(output.out, AllOf(HasSubstr("; missing:\n"), HasSubstr(part.named)));
    for (const LeftOut& other : left_out) {
      if (&other != &part) {
        EXPECT_THAT(output.out, Not(HasSubstr(other.named)));
      }
    }
  }
}

// A rule of another program, before ours.
TEST_P(Validation, SaysThatAllRulesAreThereAndOthersDecideBeforeThem) {
  must("");
  pod_->ns().must({"nft", "-f", "-"}, R"(table inet other {
      chain first {
        type nat hook output priority -150
        tcp dport 15002 redirect to :9
      }
    })");
  const Output output = run(only_validate_briefly);
  EXPECT_EQ(output.exit_code, 126);
  EXPECT_THAT(output.out, AllOf(HasSubstr("; all its rules are there: rules of other programs may decide before them "
                                          "('sidetrack show')\n"),
                                Not(HasSubstr("missing"))));
}

// As the reference has it: what matters is that the proxy gets the connection.
TEST_P(Validation, TheProxysOtherPortWillDo) {
  if (family() == Family::ipv6) ip(pod_->ns(), "addr add ::6/128 dev lo nodad\n");
  for (const auto& [port, code] : {std::pair{15006, 0}, {15001, 0}, {15002, 126}}) {
    pod_->ns().must({"nft", "-f", "-"}, fmt::format(R"(table inet other
      delete table inet other
      table inet other {{
      chain first {{
        type nat hook output priority -150
        tcp dport 15002 redirect to :{}
      }}
    }})",
                                                    port));
    const Output output = run(only_validate_briefly);
    EXPECT_EQ(output.exit_code, code) << port << output.out;
    if (code == 0) {
      EXPECT_THAT(output.out, HasSubstr(fmt::format(":{} with its original destination", port)));
    }
  }
}

TEST_P(Validation, GivesUpWhenToldTo) {
  if (family() == Family::ipv6) ip(pod_->ns(), "addr add ::6/128 dev lo nodad\n");
  const auto start = std::chrono::steady_clock::now();
  const Output output = run(only_validate + " --probe-timeout 1s200ms");
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(output.exit_code, 126);
  EXPECT_THAT(output.out, HasSubstr("validation failed after 1.2 s"));
  EXPECT_THAT(output.out, HasSubstr("see 'sidetrack cni status' there"));
  EXPECT_GE(took, std::chrono::milliseconds(1200));
  EXPECT_LT(took, std::chrono::seconds(4));  // a guard: the default is 5 s
}

// The container starts, and the node's agent programs the pod a little later.
TEST_P(Validation, WaitsForTheRules) {
  auto waiting = std::async(std::launch::async, [&] { return run(only_validate + " --probe-timeout 30s"); });
  must("");
  const Output output = waiting.get();
  EXPECT_EQ(output.exit_code, 0) << output.out;
}

TEST_P(Validation, RefusesOptionsThatItCannotSucceedWith) {
  for (const char* option : {"-o 15002", "-c lo"}) {
    const Output output = run(std::string("--run-validation ") + option);
    EXPECT_EQ(output.exit_code, 2) << option;
    EXPECT_THAT(output.out, AllOf(HasSubstr("--run-validation cannot succeed"), HasSubstr(std::string("(") + option)));
    EXPECT_EQ(pod_->run(words("sidetrack diff --clean")).exit_code, 0) << "something was installed";
  }
}

TEST_P(Validation, IsNotForOthersThanTheProxy) {
  must("");
  const Output output = pod_->run(confined(command(only_validate), 1000));
  EXPECT_EQ(output.exit_code, 4);
  EXPECT_THAT(output.out, HasSubstr("run it as uid 1337"));
}

// Neither of the proxy's ports: where the connection goes could not be seen.
TEST_P(Validation, NeedsAPortToListenAt) {
  const std::string low = "-p 80 -z 81 ";
  must(low);
  const Output output = pod_->run(confined(command(low + only_validate)));
  EXPECT_EQ(output.exit_code, 4);
  EXPECT_THAT(output.out, HasSubstr("--run-validation: cannot listen at port 80 or 81: Permission denied (EACCES)"));
  must("-p 15001 -z 81 --force-apply");
  EXPECT_EQ(pod_->run(confined(command("-p 15001 -z 81 " + only_validate_briefly))).exit_code, 126);
  must("-p 80 -z 15006 --force-apply");
  const Output one = pod_->run(confined(command("-p 80 -z 15006 " + only_validate)));
  EXPECT_EQ(one.exit_code, 0) << one.out << one.err;
}

TEST_P(Validation, HasNothingToDoWithoutInterception) {
  const Output output = run("-m NONE --run-validation");
  EXPECT_EQ(output.exit_code, 0) << output.out;
  EXPECT_THAT(output.out, HasSubstr("nothing to validate"));
}

// ---- With a proxy that is there already, and does not share its ports.

class ValidationBesideAProxy : public Traffic {};
INSTANTIATE_TEST_SUITE_P(, ValidationBesideAProxy, settings(), setting_name);

TEST_P(ValidationBesideAProxy, SeesWhereTheConnectionGoes) {
  const std::string options = std::string("sidetrack istio-iptables --backend ") + std::get<const char*>(GetParam()) +
                              " --dual-stack " + std::string(injected) + " ";
  ip(pod_->ns(), "addr add ::6/128 dev lo nodad\n");
  EXPECT_EQ(pod_->ns().program(words(options + only_validate_briefly)).exit_code, 126);
  apply(injected);
  const Output output = pod_->ns().program(words(options + only_validate));
  EXPECT_EQ(output.exit_code, 0) << output.out;
  EXPECT_THAT(output.out, HasSubstr("where the proxy listens"));
  const Output confined_too = pod_->ns().program(confined(words(options + only_validate)));
  EXPECT_EQ(confined_too.exit_code, 0) << confined_too.out << confined_too.err;
}

}  // namespace
}  // namespace sidetrack::netns
