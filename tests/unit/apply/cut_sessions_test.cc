// SPDX-License-Identifier: GPL-2.0-or-later
// Options, a connection, and what keeps it.
#include "apply/cut_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apply/apply.h"
#include "apply/restore.h"
#include "options/options.h"
#include "unit/fake_kernel.h"
#include "unit/live_rules.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Endpoint end(const char* address, std::uint16_t port) {
  Endpoint made;
  made.address = *Address::parse(address);
  made.port = port;
  return made;
}

// From another host to sshd here; from an agent here to its server.
const Session ssh{{end("192.0.2.2", 22), end("198.51.100.7", 51234), 0, 1}, true, "sshd, process 7"};
const Session ssh6{{end("2001:db8::2", 22), end("2001:db8:1::7", 51234), 0, 2}, true, "sshd, process 8"};
const Session agent{{end("192.0.2.2", 40000), end("203.0.113.9", 443), 1000, 3}, false, "agent, process 9"};

class CutSessionsTest : public ::testing::Test {
 protected:
  CutSessionsTest() {
    kernel.routes.view.interfaces = {
        {"lo", {{*Address::parse("127.0.0.1"), 8}, {*Address::parse("::1"), 128}}},
        {"eth0", {{*Address::parse("192.0.2.2"), 24}, {*Address::parse("2001:db8::2"), 64}}}};
    kernel.routes.view.routes = {{*AddressRange::parse("192.0.2.0/24"), "eth0"},
                                 {*AddressRange::parse("2001:db8::/64"), "eth0"},
                                 {*AddressRange::parse("0.0.0.0/0"), "eth0"},
                                 {*AddressRange::parse("::/0"), "eth0"}};
  }

  CutSessions cut(const std::vector<std::string>& options, std::vector<Session> list, bool taken_up = true) {
    CommandLine line = parse_apply(options);
    line.config.proxy_uids = line.config.proxy_gids = {1337};
    const Plan wanted = plan(line.config, dual_stack());
    Sessions sessions;
    sessions.list = std::move(list);
    sessions.taken_up = taken_up;
    const Request request{.plan = &wanted, .options = &line.applying};
    return cut_sessions(sessions, request, line.config, kernel);
  }

  FakeKernel kernel;
};

TEST_F(CutSessionsTest, WhatKeepsThem) {
  struct Case {
    std::vector<std::string> options;
    std::vector<Session> sessions;
    std::string remedy;  // "none": nothing is cut
  };
  const std::vector<Case> cases = {
      {{"-i", "*", "-b", "*"}, {ssh}, "add -d 22 -x 198.51.100.7/32"},
      {{"-i", "*", "-b", "*"}, {ssh6}, "add -d 22 -x 2001:db8:1::7/128"},
      {{"-i", "*", "-b", "*"}, {ssh, ssh6}, "add -d 22 -x 198.51.100.7/32,2001:db8:1::7/128"},
      {{"-b", "*"}, {ssh}, "add -d 22"},
      {{"-i", "*"}, {ssh}, "add -x 198.51.100.7/32"},
      {{"-i", "*", "-d", "22", "-b", "*"}, {ssh}, "add -x 198.51.100.7/32"},
      {{"-i", "10.0.0.0/8", "-b", "80,22"}, {ssh}, "leave 22 out of -b"},
      {{"-i", "10.0.0.0/8", "-b", "80,20-25"}, {ssh}, "leave 22 out of -b"},
      {{"-i", "10.0.0.0/8", "-b", "22-23,21-22"}, {ssh}, "leave 22 out of -b"},
      {{"-i", "10.0.0.0/8", "-b", "22,8000-9000"}, {ssh}, "leave 22 out of -b"},
      {{"-i", "*", "-b", "80,20-25"}, {ssh}, "leave 22 out of -b, and add -x 198.51.100.7/32"},
      {{"-i", "*", "-b", "*"}, {ssh, agent}, "add -d 22,40000 -x 198.51.100.7/32 -o 443"},
      {{"-i", "*", "-o", "443", "-b", "*"}, {agent}, "add -d 40000"},
      {{"-b", "*"}, {ssh, ssh6}, "add -d 22"},
      {{"-i", "*", "-b", "80,22"}, {ssh}, "leave 22 out of -b, and add -x 198.51.100.7/32"},
      {{"-q", "51234"}, {ssh}, "add -x 198.51.100.7/32"},
      {{"-i", "*"}, {agent}, "add -o 443"},
      {{"-i", "*", "-b", "*"}, {agent}, "add -d 40000 -o 443"},
      {{"-m", "TPROXY", "-b", "*"}, {ssh}, "add -d 22"},
      {{"-b", "80", "-i", "10.0.0.0/8"}, {ssh, ssh6, agent}, "none"},
      {{"-i", "*", "-b", "*", "-c", "eth0"}, {ssh}, "none"},
      {{"-i", "*", "-b", "*", "-d", "22", "-x", "198.51.100.0/24"}, {ssh}, "none"},
      {{"-m", "NONE"}, {ssh}, "none"},
      {{"-i", "*", "-b", "*"}, {}, "none"},
  };
  for (const auto& [options, sessions, remedy] : cases) {
    SCOPED_TRACE(::testing::PrintToString(options));
    const CutSessions found = cut(options, sessions);
    if (remedy == "none") {
      EXPECT_THAT(found.list, IsEmpty()) << found.list.front();
    } else {
      EXPECT_EQ(found.list.size(), sessions.size());
      EXPECT_EQ(found.remedy, remedy);
    }
  }
}

TEST_F(CutSessionsTest, TheWordsSayWhichAndWhy) {
  const CutSessions found = cut({"-i", "*", "-b", "*"}, {ssh});
  ASSERT_EQ(found.list.size(), 1U);
  EXPECT_EQ(found.list.front(),
            "192.0.2.2:22 from 198.51.100.7:51234 (sshd, process 7): what comes in: lands on 192.0.2.2:15006 (Envoy "
            "inbound); original destination 192.0.2.2:22; what goes out: lands on 127.0.0.1:15001 (Envoy outbound); "
            "original destination 198.51.100.7:51234");
}

// What the kernel does not take up is invalid: nat leaves it alone, and --drop-invalid does not.
TEST_F(CutSessionsTest, AKernelThatTakesUpNoConnection) {
  EXPECT_THAT(cut({"-i", "*", "-b", "*"}, {ssh}, false).list, IsEmpty());
  const CutSessions dropped = cut({"-i", "*", "-b", "*", "--drop-invalid"}, {ssh}, false);
  ASSERT_EQ(dropped.list.size(), 1U);
  EXPECT_THAT(dropped.list.front(), HasSubstr("what comes in: dropped"));
  EXPECT_EQ(dropped.remedy, "");
}

TEST_F(CutSessionsTest, WhatIsTrackedAlreadyIsNotAskedAbout) {
  const Plan first = plan(injected(), dual_stack());
  for (const BackendKind kind : all_backends) {
    kernel.backends[kind].replace(kernel.backends[kind].live, canonical(kind, first.ruleset));
    EXPECT_THAT(cut({"-i", "*", "-b", "*"}, {ssh, ssh6, agent}).list, IsEmpty());
    kernel.backends[kind].replace(kernel.backends[kind].live, {});
  }
}

// Where others have connections tracked, the first rules of TPROXY mark later packets alone: their socket is found.
TEST_F(CutSessionsTest, WhatOthersTrackIsNotLedElsewhere) {
  for (const BackendKind kind : {BackendKind::iptables_legacy, BackendKind::iptables_nft}) {
    Live tracking;
    tracking.backend = kind;
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      LiveChain& input = tracking.chains.emplace_back(chain(family, Table::filter, "INPUT", false, {}));
      input.rules.push_back({{family,
                              Table::filter,
                              "INPUT",
                              {ConntrackStateMatch{ConntrackStateMatch::established, false}},
                              Verdict::accept,
                              {},
                              {}},
                             {},
                             false});
    }
    kernel.backends[kind].live = tracking;
    EXPECT_THAT(cut({"-m", "TPROXY", "-i", "*", "-b", "*"}, {ssh, ssh6, agent}).list, IsEmpty()) << name(kind);
    kernel.backends[kind].live = {};
    kernel.backends[kind].live.backend = kind;
  }
}

TEST(RestoreTest, WhateverWasThereComesBack) {
  ApplyOptions options;
  for (const BackendKind kind : all_backends) {
    for (const char* interfaces : {"", "eth0,eth1"}) {
      FakeKernel kernel;
      Config config = injected();
      config.mode = Mode::tproxy;
      if (*interfaces != '\0') config.virtual_interfaces = {"eth0", "eth1"};
      const Plan older = plan(config, dual_stack());
      options.backend = kind;
      const auto apply = [&](const Plan& wanted) {
        static_cast<void>(converge(Request{.plan = &wanted, .options = &options}, kernel));
      };
      apply(older);
      const Snapshot before = snapshot(kernel.survey());
      const Plan newer = plan(injected(), dual_stack());
      for (const BackendKind other : all_backends) {
        options.backend = other;
        apply(newer);
        restore(before, kernel, [](const std::string& sentence) { FAIL() << sentence; });
        const Survey after = kernel.survey();
        for (const BackendKind each : all_backends)
          EXPECT_TRUE(equal(*after.live(each), canonical(each, each == kind ? older.ruleset : Ruleset{})))
              << name(kind) << name(other) << name(each) << ": "
              << first_difference(diff(*after.live(each), canonical(each, each == kind ? older.ruleset : Ruleset{})));
        EXPECT_EQ(after.routing, older.routing);
      }
    }
  }
}

}  // namespace
}  // namespace sidetrack
