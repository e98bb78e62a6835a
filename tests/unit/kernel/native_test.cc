// SPDX-License-Identifier: GPL-2.0-or-later
// What rules look like in nft's words.
#include <gmock/gmock.h>

#include "kernel/nft/script.h"
#include "kernel/survey.h"
#include "model/error.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string script(std::string_view options) {
  return nft_script(canonical(BackendKind::nftables, planned(options).ruleset));
}

// More values than are read at a glance are a set with a name, which says whose they are.
TEST(Native, LongListsHaveNames) {
  const std::string many = "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33";
  EXPECT_THAT(script("-m TPROXY -u " + many), AllOf(HasSubstr("set proxy-uids "), HasSubstr("skuid @proxy-uids")));
  EXPECT_THAT(script("-m TPROXY -g " + many), AllOf(HasSubstr("skgid @proxy-gids"), Not(HasSubstr("proxy-uids"))));
  EXPECT_THAT(script("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=" + many), HasSubstr("skgid @nat-ISTIO_OUTPUT "));
  EXPECT_THAT(script("-m TPROXY -u 1,3"), Not(HasSubstr("proxy-uids")));
}

TEST(Native, NetworksThatTouchAreOneRange) {
  EXPECT_THAT(script("-x 10.0.0.0/24,10.0.1.0/24,10.0.2.0/24"), HasSubstr("ip daddr 10.0.0.0-10.0.2.255 "));
}

Rule rule(std::vector<Match> matches, Target target = Verdict::return_) {
  return {Family::ipv4, Table::nat, "ISTIO_OUTPUT", std::move(matches), std::move(target), {}, {}};
}

// What a caller of the library may ask for, and what is only read.
TEST(Native, RefusesWhatItCannotSay) {
  const auto refused = [](const Rule& one) -> std::string {
    try {
      static_cast<void>(nft_script({{one}}));
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  const PortMatch web{End::destination, {{80, 80}}, false};
  const std::string no_protocol = "a match of ports without -p tcp or -p udp: -A ISTIO_OUTPUT ";
  EXPECT_EQ(refused(rule({web})), no_protocol + "--dport 80 -j RETURN");
  EXPECT_EQ(refused(rule({ProtocolMatch{Protocol{132}, false}, web})), no_protocol + "-p 132 --dport 80 -j RETURN");
  EXPECT_EQ(refused(rule({ProtocolMatch{Protocol::tcp, true}, web})), no_protocol + "! -p tcp --dport 80 -j RETURN");
  EXPECT_EQ(refused(rule({ProtocolMatch{Protocol::udp, false}, web})), "taken");
  EXPECT_EQ(refused(rule({InterfaceMatch{InterfaceDirection::out, "+", true}})),
            "no packet can match: -A ISTIO_OUTPUT ! -o + -j RETURN");
  const std::string unknown = "a rule that is not understood cannot be programmed: -A ISTIO_OUTPUT ";
  EXPECT_EQ(refused(rule({UnknownMatch{"-m string"}})), unknown + "-m string -j RETURN");
  EXPECT_EQ(refused(rule({SocketMatch{true}})), unknown + "-m owner ! --socket-exists -j RETURN");
  EXPECT_EQ(refused(rule({SocketMatch{false}})), "taken");
  EXPECT_EQ(refused(rule({}, UnknownTarget{"-j QUEUE"})), unknown + "-j QUEUE");
  EXPECT_EQ(refused(rule({}, Continue{"-j LOG"})), unknown + "-j LOG");
  EXPECT_EQ(refused(rule({}, Continue{})), "taken");
  EXPECT_EQ(refused(rule({}, Nat{End::source, {}, {}, "-j MASQUERADE"})), unknown + "-j MASQUERADE");
  EXPECT_EQ(refused(rule({}, source_nat(*Address::parse("10.0.0.1")))), "taken");
}

}  // namespace
}  // namespace sidetrack
