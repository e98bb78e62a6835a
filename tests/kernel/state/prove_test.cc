// SPDX-License-Identifier: GPL-2.0-or-later
// `apply --prove` and `lint` where rules of others are: nothing is applied that breaks a promise, and the packet that
// they name is treated as they say.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/trace.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class Prove : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) pod_.emplace();
  }

  [[nodiscard]] Output run(std::vector<std::string> words) const {
    words.insert(words.begin(), program_under_test());
    return pod_->ns().program(words);
  }
  [[nodiscard]] Output apply(std::vector<std::string> more) const {
    std::vector<std::string> words{"apply", "--backend", GetParam(), "-i", "*", "-b", "*", "-d", "15090,15021,15020"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::ranges::find(more, "--ip-families") == more.end())
      words.insert(words.end(), {"--ip-families", "ipv4,ipv6"});
    return run(words);
  }
  [[nodiscard]] Role connect(const Actor& actor, Family family, std::uint16_t port) const {
    Request request;
    request.to = Endpoint(addresses(family).service, port);
    return pod_->connect(actor, request).role;
  }
  // A chain of another program, before ours.
  void rule(const std::string& family, const std::string& words) const {
    pod_->ns().must(
        {"nft", "-f", "-"},
        "table " + family + " other {\nchain out {\ntype nat hook output priority -110\n" + words + "\n}\n}\n");
  }

  // What `lint` says of the rules that are there, but of what the guest sends through the pod.
  [[nodiscard]] Json findings() const {
    const Output output = run({"lint", "--json"});
    EXPECT_EQ(output.exit_code, 6) << output.err;
    const Json said = Json::parse(output.out);
    Json others = Json::array();
    for (const Json& one : said.at("findings")) {
      if (one.at("code") != "ST013") others.push_back(one);
    }
    return others;
  }

  std::optional<Pod> pod_;
};

TEST_P(Prove, AppliesWhatKeepsItsPromises) {
  for (const char* mode : {"REDIRECT", "TPROXY"}) {
    const Output output = apply({"--prove", "-m", mode});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(findings(), Json::array());
  }
  EXPECT_EQ(connect(as_app, Family::ipv4, 80), Role::proxy_outbound);
}

TEST_P(Prove, AppliesNothingWhereTheProxysTrafficWouldComeBack) {
  rule("ip", "meta skuid 1337 tcp dport 80 redirect to :15001");
  const std::string before = trace(pod_->ns());
  for (const char* more : {"--backend=auto", "--check"}) {
    const Output output = apply({"--prove", more});
    EXPECT_EQ(output.exit_code, 126);
    EXPECT_THAT(output.err, AllOf(HasSubstr("nothing was changed"), HasSubstr("ST003 outbound tcp of the proxy, IPv4"),
                                  HasSubstr("`out tcp 198.51.100.1:80 --uid 1337 --gid 1337` 127.0.0.1:15001")));
    EXPECT_EQ(trace(pod_->ns()), before);
  }
  ASSERT_EQ(apply({}).exit_code, 0);  // without the proof
  EXPECT_EQ(connect(as_proxy, Family::ipv4, 80), Role::proxy_outbound);
  EXPECT_EQ(findings().at(0).at("code"), "ST003");
}

TEST_P(Prove, NamesWhatOthersKeepFromTheProxy) {
  ASSERT_EQ(apply({"--prove"}).exit_code, 0);
  rule("ip", "meta skuid 1000 tcp dport 443 redirect to :8080");
  const Json found = findings();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.at(0).at("code"), "ST009");
  EXPECT_THAT(found.at(0).at("witness"), HasSubstr(":443 --uid 1000"));
  EXPECT_EQ(connect(as_app, Family::ipv4, 443), Role::app);
  EXPECT_EQ(apply({"--prove"}).exit_code, 126);
}

TEST_P(Prove, NamesIpv6ThatIsNotCaptured) {
  ASSERT_EQ(apply({"--ip-families", "ipv4"}).exit_code, 0);
  const Json found = findings();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.at(0).at("code"), "ST005");
  EXPECT_EQ(connect(as_app, Family::ipv6, 80), Role::outside);
}

INSTANTIATE_TEST_SUITE_P(, Prove, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
