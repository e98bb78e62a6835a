// SPDX-License-Identifier: GPL-2.0-or-later
// What `show` says of a namespace, in tests/kernel/answers/shown/. SIDETRACK_UPDATE=1 writes these files
// (scripts/update-rules).
#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "golden/scenario.h"
#include "support/background.h"
#include "support/client.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "support/starting_states.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* foreign =
    "*nat\n-N KUBE-MARK\n-A KUBE-MARK -j MARK --set-xmark 0x4000/0x4000\n"
    "-A PREROUTING -d 10.96.0.1/32 -p tcp -m comment --comment \"default/kubernetes:https\" -m tcp --dport 443"
    " -j DNAT --to-destination 10.0.0.1:6443\n"
    "-A OUTPUT -p udp -m udp --dport 9 -j KUBE-MARK\n-A POSTROUTING -s 10.244.0.0/16 ! -o lo -j MASQUERADE\nCOMMIT\n";

void apply(const Namespace& ns, std::vector<std::string> options) {
  options.insert(options.begin(), {program_under_test(), "apply", "-i", "*", "-b", "*", "-d", "15090,15021,15020"});
  ns.must(options);
}

// A refused connection to this pod's own address: each rule on its way counts one packet.
void try_once(const Namespace& ns, const char* to) {
  connect(ns, {}, {.to = Endpoint(to), .protocol = Protocol::tcp, .from = {}});
}

struct Shown {
  const char* name;
  void (*prepare)(const Namespace& ns);
};

const Shown states[] = {
    {"nothing", [](const Namespace&) {}},
    {"ours-in-iptables-nft",
     [](const Namespace& ns) {
       apply(ns, {"--backend", "iptables-nft", "--ip-families", "ipv4"});
       try_once(ns, "127.0.0.1:9");
     }},
    {"ours-in-nftables",
     [](const Namespace& ns) {
       apply(ns, {"--backend", "nftables", "--ip-families", "ipv4,ipv6", "-m", "TPROXY"});
       try_once(ns, "[::1]:9");
     }},
    {"ours-in-iptables-legacy",
     [](const Namespace& ns) {
       apply(ns, {"--backend", "iptables-legacy", "--ip-families", "ipv4,ipv6", "--redirect-dns", "--dns-server",
                  "10.96.0.10", "-x", "192.0.2.0/24,2001:db8::/32", "-o", "3306"});
     }},
    {"istio-1.14", [](const Namespace& ns) { make_state(ns, "istio_1_14", "legacy"); }},
    {"istio-nftables", [](const Namespace& ns) { make_state(ns, "istio_nftables", ""); }},
    {"foreign", [](const Namespace& ns) { ns.must({"iptables-nft-restore"}, foreign); }},
    {"several",
     [](const Namespace& ns) {
       make_state(ns, "istio_1_1", "legacy");
       ns.must({"iptables-nft-restore"}, foreign);
       make_state(ns, "istio_nftables", "");
     }},
};

struct OthersTest : KernelTest {};
class ShowTest : public KernelTest, public ::testing::WithParamInterface<Shown> {};

TEST_P(ShowTest, SaysWhatIsThere) {
  const Namespace ns;
  ip(ns, "link set lo up\n");
  GetParam().prepare(ns);
  const std::string shown = ns.must({program_under_test(), "show"});

  const std::string file = std::string(SIDETRACK_SOURCE_DIR "/tests/kernel/answers/shown/") + GetParam().name + ".txt";
  if (std::getenv("SIDETRACK_UPDATE") != nullptr) std::ofstream(file, std::ios::binary) << shown;
  EXPECT_EQ(shown, read_file(file)) << "run scripts/update-rules";
  // The same in JSON, rule by rule.
  const auto json = nlohmann::json::parse(ns.must({program_under_test(), "show", "--json"}));
  for (const auto& chain : json["chains"]) {
    if (chain["rules"].empty()) continue;
    EXPECT_THAT(shown, HasSubstr(chain["chain"].get<std::string>()));
  }
}

// The summary says what our rules do. Where rules of others come before them, show says so, as explain does.
TEST_F(OthersTest, DecideOtherwiseThanTheSummary) {
  for (const char* rule : {"nat -I PREROUTING -p tcp -j ACCEPT", "raw -I OUTPUT -p tcp -j DROP"}) {
    const Namespace ns;
    ip(ns,
       "link set lo up\nlink add eth0 type veth peer name peer0\naddr add 10.1.0.2/24 dev eth0\nlink set eth0 up\nlink "
       "set peer0 up\n");
    apply(ns, {"--backend", "iptables-nft", "--ip-families", "ipv4"});
    EXPECT_THAT(ns.must({program_under_test(), "show"}), Not(HasSubstr("\nbut ")));
    ns.must({"sh", "-c", std::string("iptables-nft -t ") + rule});
    EXPECT_THAT(ns.must({program_under_test(), "show"}), HasSubstr("\nbut           rule 1 of ")) << rule;
    const auto json = nlohmann::json::parse(ns.must({program_under_test(), "show", "--json"}));
    ASSERT_FALSE(json["obstacles"].empty()) << rule;
    for (const auto& obstacle : json["obstacles"]) {
      const auto packet = obstacle["packet"].get<std::string>();
      EXPECT_THAT(ns.must({"sh", "-c", std::string(program_under_test()) + " explain " + packet + " --brief"}),
                  HasSubstr(obstacle["instead"].get<std::string>()));
    }
  }
}

// A rule of others that brings packets to the same place is in nobody's way, whatever the place is called.
TEST_F(OthersTest, AreNotInTheWayIfThePacketLandsInTheSamePlace) {
  for (const std::string port : {"15001", "15555"}) {
    const Namespace ns;
    ip(ns,
       "link set lo up\nlink add eth0 type veth peer name peer0\naddr add 10.1.0.2/24 dev eth0\nlink set eth0 up\nlink "
       "set peer0 up\n"
       "route add default dev eth0\n");
    apply(ns, {"--backend", "iptables-nft", "--ip-families", "ipv4", "-p", port});
    ns.must(
        {"sh", "-c",
         "iptables-nft -t nat -I OUTPUT -p tcp --dport 443 -m owner --uid-owner 1000 -j REDIRECT --to-ports " + port});
    const Output verified = ns.program({program_under_test(), "verify", "-i", "*", "-b", "*", "-d", "15090,15021,15020",
                                        "--ip-families", "ipv4", "-p", port});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  }
}

std::string state_name(const ::testing::TestParamInfo<Shown>& tested) {
  std::string name = tested.param.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(, ShowTest, ::testing::ValuesIn(states), state_name);

struct WatchTest : KernelTest {
  Namespace ns;
  // Runs `show --watch` until awk has seen enough of it.
  [[nodiscard]] Output watch(const std::string& awk) const {
    return ns.program({"sh", "-c", program_under_test() + " show --watch | awk '" + awk + "'"});
  }
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns, "link set lo up\n");
    apply(ns, {"--ip-families", "ipv4"});
  }
};

TEST_F(WatchTest, MarksTheCountersThatMove) {
  auto watched = std::async(std::launch::async, [&] { return watch(R"(/ \+[0-9]/ { print; exit })"); });
  while (watched.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) try_once(ns, "127.0.0.1:9");
  const Output seen = watched.get();
  EXPECT_THAT(seen.out, HasSubstr("-j ISTIO_OUTPUT"));
  EXPECT_THAT(seen.out, Not(HasSubstr("\033"))) << "not a terminal";
}

TEST_F(WatchTest, MarksNothingWhereNothingMoves) {
  const Output seen = watch(R"(/ \+[0-9]/ { print } /^not captured/ && ++frames == 2 { exit })");
  EXPECT_EQ(seen.out, "");
}

TEST_F(WatchTest, ClearsATerminalBeforeEachFrame) {
  const std::string clear = "\033[H\033[2J\033[3J";
  Background watching(ns, {program_under_test(), "show", "--watch"}, {}, true);
  watching.wait_for("\nnot captured", 2);
  watching.signal(SIGTERM);
  const std::string seen = watching.end().err;
  EXPECT_THAT(seen, ::testing::StartsWith(clear));
  EXPECT_THAT(seen.substr(clear.size()), AllOf(HasSubstr("\n" + clear), Not(HasSubstr("\r\n\r\n" + clear))));
}

TEST_F(WatchTest, HasNoJson) {
  const Output output = ns.program({program_under_test(), "show", "--watch", "--json"});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("--watch: expected text"));
}

}  // namespace
}  // namespace sidetrack::netns
