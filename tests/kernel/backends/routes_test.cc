// SPDX-License-Identifier: GPL-2.0-or-later
// Policy rules, routes and addresses, made by rtnetlink and listed by iproute2.
#include "kernel/routes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/rtnetlink.h>
#include <sys/syscall.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "kernel/kernel.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "support/backend_test.h"
#include "unit/usual_config.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Address passthrough = *Address::parse("::6");

const Routing all_routing{{fwmark_rule(Family::ipv4, 1337, 133), fwmark_rule(Family::ipv6, 1337, 133)},
                          {local_default(Family::ipv4, 133), local_default(Family::ipv6, 133)},
                          {passthrough}};

PolicyRule ambient_rule(Family family) { return placed(fwmark_rule(family, 0x111, 100, 0xfff), 32764, true); }

struct RoutesTest : KernelTest {
  Namespace space;

  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) space.must({"ip", "link", "set", "lo", "up"});
  }

  void add(const Routing& wanted) const {
    space.run([&] { open_routes()->add(wanted); });
  }
  void remove(const Routing& unwanted) const {
    space.run([&] { open_routes()->remove(unwanted); });
  }
  Routing read() const {
    return space.run([] { return open_routes()->read().ours; });
  }
  void shell(const std::string& commands) const { space.must({"sh", "-ec", commands}); }

  // All that there is, as iproute2 tells it, but for the routes that the kernel makes by itself: those of an address
  // come some time after it.
  std::string listed() const {
    return space.must(
        {"sh", "-ec",
         "for f in -4 -6; do ip $f -details rule; ip $f -details route show table all | sed '/proto kernel/d'; done; "
         "ip -oneline address show dev lo"});
  }
};

TEST_F(RoutesTest, AddsTaggedAndReadsBack) {
  EXPECT_EQ(read(), Routing{});
  add(all_routing);
  EXPECT_EQ(read(), all_routing);
  const std::string text = listed();
  EXPECT_THAT(text, HasSubstr("32765:\tfrom all fwmark 0x539 lookup 133 proto 137"));
  EXPECT_THAT(text, HasSubstr("local default dev lo table 133 proto 137 scope host"));
  EXPECT_THAT(text, HasSubstr("inet6 ::6/128 scope global"));
}

TEST_F(RoutesTest, AddingAgainChangesNothing) {
  add(all_routing);
  const std::string before = listed();
  add(all_routing);
  EXPECT_EQ(listed(), before);
}

// Both find nothing, both add: for the second of them each is there already. But for a policy rule: its priority is
// the kernel's choice, so that it may be there twice, which read() and remove() take as one.
TEST_F(RoutesTest, TwoAtOnceDisturbNeitherOfThem) {
  const std::string before = listed();
  for (int round = 0; round < 200; ++round) {
    std::barrier start(2);
    const auto add_at_once = [&] {
      space.run([&] {
        start.arrive_and_wait();
        EXPECT_NO_THROW(open_kernel(istio_rules, {.write = true})
                            ->add(all_routing));  // one after the other: the kernel doubles rules
      });
    };
    std::jthread other(add_at_once);
    add_at_once();
    other.join();
    ASSERT_EQ(read(), all_routing);
    remove(all_routing);
    ASSERT_EQ(listed(), before);
  }
}

TEST_F(RoutesTest, RemovesAllThatItAdded) {
  const std::string before = listed();
  add(all_routing);
  remove(all_routing);
  EXPECT_EQ(listed(), before);
  EXPECT_NO_THROW(remove(all_routing)) << "gone already";
}

TEST_F(RoutesTest, RemovesWhatIsAskedForAlone) {
  add(all_routing);
  remove({{all_routing.policy_rules[0]}, {all_routing.local_routes[0]}, {}});
  const Routing rest{{all_routing.policy_rules[1]}, {all_routing.local_routes[1]}, {passthrough}};
  EXPECT_EQ(read(), rest);
}

constexpr const char* by_istio =
    "ip rule add fwmark 1337 lookup 133; ip route add local default dev lo table 133;"
    "ip -6 rule add fwmark 1337 lookup 133; ip -6 route add local default dev lo table 133;"
    "ip address add ::6/128 dev lo nodad";

TEST_F(RoutesTest, TakesIstiosForOurs) {
  const std::string before = listed();
  shell(by_istio);
  EXPECT_EQ(read(), all_routing);
  const std::string istio = listed();
  add(all_routing);
  EXPECT_EQ(listed(), istio) << "left alone";
  remove(all_routing);
  EXPECT_EQ(listed(), before);
}

TEST_F(RoutesTest, RemovesADoubledRuleWholly) {
  const std::string before = listed();
  shell(std::string(by_istio) + "; ip rule add fwmark 1337 lookup 133");
  Routing doubled = all_routing;
  doubled.policy_rules.insert(doubled.policy_rules.begin(), all_routing.policy_rules.front());
  EXPECT_EQ(read(), doubled);
  remove(read());
  EXPECT_EQ(listed(), before);
}

TEST_F(RoutesTest, RemovesAsManyAsAreAskedFor) {
  shell(std::string(by_istio) + "; ip rule add fwmark 1337 lookup 133");
  remove({{all_routing.policy_rules.front()}, {}, {}});
  EXPECT_EQ(read(), all_routing);
}

TEST_F(RoutesTest, LeavesOthersAlone) {
  shell(
      "ip rule add fwmark 1 lookup 100; ip route add local default dev lo table 100;"         // a transparent proxy's
      "ip rule add fwmark 1337 iif lo lookup 133; ip rule add fwmark 1337/0xfff lookup 133;"  // more, or less, in it
      "ip rule add fwmark 1337 lookup 133 protocol zebra; ip rule add not fwmark 1337 lookup 133;"
      "ip rule add fwmark 1337 lookup 133 suppress_prefixlength 0;"
      "ip route add local default dev lo table 133;"  // without its rule
      "ip address add ::7/128 dev lo nodad; ip address add 10.0.0.6/32 dev lo");
  EXPECT_EQ(read(), Routing{});
  const std::string before = listed();
  remove(all_routing);
  remove({{fwmark_rule(Family::ipv4, 1, 100)}, {local_default(Family::ipv4, 100)}, {}});
  EXPECT_EQ(listed(), before);
}

// Those of an ambient pod: the rule asks for some bits of the mark, and has its place. An agent's are ours if they are
// claimed.
TEST_F(RoutesTest, OfAnAmbientPod) {
  const Routing wanted{{ambient_rule(Family::ipv4), ambient_rule(Family::ipv6)},
                       {local_default(Family::ipv4, 100), local_default(Family::ipv6, 100)},
                       {}};
  const std::string before = listed();
  add(wanted);
  EXPECT_EQ(read(), wanted);
  EXPECT_THAT(listed(), HasSubstr("32764:\tfrom all fwmark 0x111/0xfff lookup 100 proto 137"));
  const std::string tagged = listed();
  add(wanted);
  EXPECT_EQ(listed(), tagged);
  remove(wanted);
  EXPECT_EQ(listed(), before);

  shell(
      "for f in -4 -6; do ip $f rule add fwmark 0x111/0xfff pref 32764 lookup 100; "
      "ip $f route add local default dev lo table 100; done");
  EXPECT_EQ(read(), Routing{});
  const std::string of_agent = listed();
  add(wanted);
  EXPECT_EQ(listed(), of_agent) << "it has the same effect";
  remove(wanted);
  EXPECT_EQ(listed(), of_agent);
  space.run([&] {
    const Routing theirs = open_routes(AgentRules::ours)->read().ours;
    EXPECT_NE(theirs, wanted);
    EXPECT_EQ(without_origin(theirs), wanted);
    open_routes(AgentRules::ours)->remove(theirs);
  });
  EXPECT_EQ(listed(), before);
}

// Beside an agent's, before that is removed: of two default routes in a table each has a metric of its own.
TEST_F(RoutesTest, OursIsPutBesideAnAgents) {
  const Routing wanted{{ambient_rule(Family::ipv4), ambient_rule(Family::ipv6)},
                       {local_default(Family::ipv4, 100), local_default(Family::ipv6, 100)},
                       {}};
  const auto add_beside = [&](const std::string& metric) {
    shell(
        fmt::format("for f in -4 -6; do ip $f rule add fwmark 0x111/0xfff pref 32764 lookup 100; "
                    "ip $f route add local default dev lo table 100 {}; done",
                    metric));
    space.run([&] {
      EXPECT_EQ(open_routes(AgentRules::ours)->add(wanted), wanted);
      Routing theirs = open_routes(AgentRules::ours)->read().ours;
      std::erase_if(theirs.policy_rules, [](const PolicyRule& rule) { return rule.origin == RoutingOrigin::ours; });
      std::erase_if(theirs.local_routes, [](const Route& route) { return route.origin == RoutingOrigin::ours; });
      EXPECT_EQ(theirs.policy_rules.size(), 2U);
      open_routes(AgentRules::ours)->remove(theirs);
    });
    EXPECT_EQ(read(), wanted);
    const std::string text = listed();
    remove(wanted);
    EXPECT_THAT(listed(), Not(HasSubstr("table 100")));
    return text;
  };
  EXPECT_THAT(add_beside(""), AllOf(HasSubstr("local default dev lo table 100 proto 137 scope host metric 1 "),
                                    HasSubstr("local default dev lo table 100 proto 137 scope global metric 1025 ")));
  EXPECT_THAT(add_beside("metric 7"),
              AllOf(HasSubstr("local default dev lo table 100 proto 137 scope host \n"),
                    HasSubstr("local default dev lo table 100 proto 137 scope global metric 1024 ")));
}

// It stands before what could take the packets elsewhere, even if it was to come later.
TEST_F(RoutesTest, APreferenceIsTheLatestPlace) {
  shell("ip rule add pref 100 lookup 77");
  add({{ambient_rule(Family::ipv4)}, {local_default(Family::ipv4, 100)}, {}});
  EXPECT_THAT(listed(), HasSubstr("99:\tfrom all fwmark 0x111/0xfff lookup 100 proto 137"));
}

// Just as a plan would ask for it, and where it has its effect.
TEST_F(RoutesTest, TellsWhatAnotherProgramMadeAlike) {
  const auto of_others = [&] { return space.run([] { return open_routes()->read().others; }); };
  EXPECT_EQ(of_others(), Routing{});
  shell("ip rule add pref 200 fwmark 5 lookup 100; ip route add local default dev lo table 100");
  EXPECT_EQ(of_others(), (Routing{{fwmark_rule(Family::ipv4, 5, 100)}, {local_default(Family::ipv4, 100)}, {}}));
  shell("ip rule add pref 100 lookup 77");
  EXPECT_EQ(of_others(), (Routing{{fwmark_rule(Family::ipv4, 5, 100)}, {local_default(Family::ipv4, 100)}, {}}))
      << "of an empty table";
  shell("ip route add throw 10.1.0.0/16 table 77");
  EXPECT_EQ(of_others(), (Routing{{fwmark_rule(Family::ipv4, 5, 100)}, {local_default(Family::ipv4, 100)}, {}}))
      << "that goes on";
  shell("ip route add blackhole 10.2.0.0/16 table 77");
  EXPECT_EQ(of_others(), (Routing{{}, {local_default(Family::ipv4, 100)}, {}})) << "another rule is asked before";
}

// What may keep packets from where the rules send them.
TEST_F(RoutesTest, WhatIsUnusualIsTold) {
  const auto unusual = [&] { return space.run([] { return open_routes()->read().unusual; }); };
  const struct {
    const char* made;
    const char* undone;
    bool unusual;
  } all[] = {
      {"ip route add 10.1.0.0/16 dev lo", "ip route del 10.1.0.0/16", true},
      {"ip address add 10.1.0.1/32 dev lo", "ip address del 10.1.0.1/32 dev lo", false},
      {"ip address add 10.1.0.1/32 dev lo; ip route del local 10.1.0.1 table local",
       "ip address del 10.1.0.1/32 dev lo", true},
      {"ip route add 10.1.0.0/16 dev lo table 77", "ip route del 10.1.0.0/16 table 77", true},
      {"ip route add blackhole 10.1.0.0/16", "ip route del blackhole 10.1.0.0/16", true},
      {"ip route add local 10.1.0.0/16 dev lo", "ip route del local 10.1.0.0/16", true},
      {"ip rule add pref 100 lookup 77", "ip rule del pref 100", true},
      {"ip -6 rule add pref 100 lookup 77", "ip -6 rule del pref 100", true},
      {"ip rule del pref 32767", "ip rule add pref 32767 lookup default", false},
      {"sysctl -qw net.ipv4.conf.all.src_valid_mark=1", "sysctl -qw net.ipv4.conf.all.src_valid_mark=0", true},
      {"sysctl -qw net.ipv4.tcp_fwmark_accept=1", "sysctl -qw net.ipv4.tcp_fwmark_accept=0", true},
      {"sysctl -qw net.ipv4.conf.lo.src_valid_mark=1", "sysctl -qw net.ipv4.conf.lo.src_valid_mark=0", false},
      {"ip route del local 127.0.0.1 table local; ip route del local 127.0.0.0/8 table local",
       "ip route add local 127.0.0.0/8 dev lo table local proto kernel", true},
      {"ip link set lo down", "ip link set lo up", true},
  };
  EXPECT_FALSE(unusual());
  for (const auto& each : all) {
    shell(each.made);
    EXPECT_EQ(unusual(), each.unusual) << each.made;
    shell(each.undone);
    EXPECT_FALSE(unusual()) << each.undone;
  }
  add(all_routing);
  EXPECT_FALSE(unusual()) << "ours";
  shell("sysctl -qw net.ipv4.conf.lo.src_valid_mark=1");
  EXPECT_TRUE(unusual()) << "what has the mark is looked up by it";
}

TEST_F(RoutesTest, LargeTableNumbersAndOtherMarks) {
  const Routing wanted{{fwmark_rule(Family::ipv4, 0xdeadbeef, 100000)}, {local_default(Family::ipv4, 100000)}, {}};
  add(wanted);
  EXPECT_EQ(read(), wanted);
  remove(wanted);
  EXPECT_EQ(read(), Routing{});
}

// ---- failures

TEST_F(RoutesTest, AFailedAdditionIsUndone) {
  // The last of the routes cannot be added: its table has another default route.
  shell("ip -6 route add default dev lo table 133 metric 1024");
  const std::string before = listed();
  const Error error = error_in(space, [] { open_routes()->add(all_routing); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("ip -6 route local default dev lo table 133"), HasSubstr("another default")));
  EXPECT_EQ(listed(), before);
}

TEST_F(RoutesTest, AnAddressThatIsThereOtherwiseIsSaid) {
  shell("ip address add ::6/64 dev lo nodad");
  const std::string before = listed();
  const Error error = error_in(space, [] { open_routes()->add(all_routing); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_STREQ(error.what(), "cannot add ip address ::6/128 dev lo: lo has it with another prefix length already");
  EXPECT_EQ(error.hint(), "see 'ip address show dev lo'; remove it there");
  EXPECT_EQ(listed(), before);
}

TEST_F(RoutesTest, WhatTheKernelSaysOfItIsSaid) {
  const Error error = error_in(space, [] { open_routes()->add({{}, {}, {*Address::parse("ff02::1")}}); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(), HasSubstr("ff02::1/128 dev lo: Cannot assign requested address (EADDRNOTAVAIL) ("));
}

TEST_F(RoutesTest, LoopbackDownIsSaid) {
  space.must({"ip", "link", "set", "lo", "down"});
  const Error error = error_in(space, [] { open_routes()->add(all_routing); });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(), HasSubstr("lo is down"));
  EXPECT_THAT(error.hint(), HasSubstr("ip link set lo up"));
  EXPECT_EQ(read(), Routing{});
}

TEST_F(RoutesTest, SwitchedOffIpv6IsSaid) {
  space.must({"sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"});
  for (const Routing& wanted : {Routing{{}, {}, {passthrough}}, Routing{{}, {local_default(Family::ipv6, 133)}, {}}}) {
    const Error error = error_in(space, [&] { open_routes()->add(wanted); });
    EXPECT_EQ(error.code(), ExitCode::kernel_lacks);
    EXPECT_THAT(error.what(), HasSubstr("net.ipv6.conf.lo.disable_ipv6"));
  }
  EXPECT_EQ(read(), Routing{});
}

// What `explain` follows, and what it says that it does not follow.
TEST_F(RoutesTest, EveryConditionOfAPolicyRuleIsRead) {
  shell("ip link add eth0 type veth peer name other");
  const std::pair<const char*, const char*> all[] = {
      // what ip(8) is told, and what is read
      {"from 10.1.0.0/16 to 10.2.0.0/24 lookup 7", "from 10.1.0.0/16 to 10.2.0.0/24 lookup 7"},
      {"not from 10.1.0.1 lookup main", "not from 10.1.0.1/32 lookup main"},
      {"fwmark 5 lookup 100", "fwmark 5 lookup 100"},
      {"fwmark 0x111/0xfff lookup 1000", "fwmark 0x111/0xfff lookup 1000"},
      {"iif eth0 lookup default", "iif eth0 lookup default"},
      {"oif eth0 lookup local", "oif eth0 lookup local"},
      {"iif lo lookup 9", "iif lo lookup 9"},
      {"iif gone lookup 9", "iif gone nop"},
      {"oif gone lookup 9", "oif gone nop"},
      {"not iif gone lookup 9", "not iif gone lookup 9"},
      {"ipproto tcp lookup 9", "ipproto tcp lookup 9"},
      {"ipproto udp sport 53 lookup 9", "sport 53 ipproto udp lookup 9"},
      {"ipproto 132 dport 80-90 lookup 9", "dport 80-90 ipproto 132 lookup 9"},
      {"uidrange 1000-1000 lookup 9", "uidrange 1000-1000 lookup 9"},
      {"tos 0x10 lookup 9", "tos 0x10 lookup 9"},
      {"tun_id 5 lookup 9", "tun_id lookup 9"},
      {"l3mdev", "l3mdev lookup 0"},
      {"from 10.0.0.1 lookup 9 realms 5", "from 10.0.0.1/32 lookup 9"},
      {"lookup main suppress_prefixlength 0", "from all lookup main suppress_prefixlength 0"},
      {"lookup main suppress_ifgroup 3", "suppress_ifgroup 3 lookup main"},
      {"blackhole", "from all blackhole"},
      {"unreachable", "from all unreachable"},
      {"prohibit", "from all prohibit"},
      {"goto 32766", "from all an action that is not followed"},
      {"nop", "from all nop"},
  };
  std::vector<std::string> expected;
  std::uint32_t priority = 100;
  for (const auto& [told, read] : all) {
    shell(fmt::format("ip rule add priority {} {}", priority, told));
    expected.push_back(fmt::format("ip rule {}: {}", priority++, read));
  }
  shell("ip -6 rule add priority 99 from fd00::/8 to fd01::1 lookup 7");
  expected.emplace_back("ip -6 rule 99: from fd00::/8 to fd01::1/128 lookup 7");
  std::vector<std::string> words;
  for (const PolicyRule& rule : space.run([] { return read_pod(); }).rules) {
    if (rule.priority != 0 && rule.priority < 32766) words.push_back(ip_words(rule));
  }
  EXPECT_EQ(words, expected);
}

TEST_F(RoutesTest, EveryKindOfRouteIsRead) {
  shell(
      "ip link add eth0 type veth peer name other; ip link set eth0 up; ip link set other up;"
      "ip address add 10.0.0.1/24 dev eth0;"
      "ip route add default via 10.0.0.254; ip route add 10.9.0.0/16 dev eth0 src 10.0.0.1;"
      "ip route add blackhole 10.1.0.0/16; ip route add unreachable 10.2.0.0/16; ip route add prohibit 10.3.0.0/16;"
      "ip route add throw 10.4.0.0/16; ip route add local 10.5.0.0/16 dev lo table 77;"
      "ip route add 10.6.0.0/16 nexthop via 10.0.0.2 dev eth0 nexthop dev other;"
      "ip -6 route add unreachable fd02::/16; ip -6 route add prohibit fd03::/16");
  std::vector<std::string> words;
  for (const Route& route : space.run([] { return read_pod(); }).routes) {
    if (route.table == local_table || route.device == "other" || route.to.first.is_link_local()) continue;
    words.push_back(ip_words(route) + (route.gateway ? " via " + route.gateway->text() : "") +
                    (route.source ? " src " + route.source->text() : "") +
                    (route.other_devices.empty() ? "" : " and others"));
  }
  EXPECT_THAT(
      words,
      ::testing::UnorderedElementsAre(
          "ip route default dev eth0 table main via 10.0.0.254",
          "ip route 10.0.0.0/24 dev eth0 table main src 10.0.0.1",
          "ip route 10.9.0.0/16 dev eth0 table main src 10.0.0.1", "ip route blackhole 10.1.0.0/16 table main",
          "ip route unreachable 10.2.0.0/16 table main", "ip route prohibit 10.3.0.0/16 table main",
          "ip route throw 10.4.0.0/16 table main", "ip route local 10.5.0.0/16 dev lo table 77",
          "ip route 10.6.0.0/16 dev eth0 table main via 10.0.0.2 and others",
          "ip -6 route unreachable fd02::/16 dev lo table main", "ip -6 route prohibit fd03::/16 dev lo table main"));
}

// Of two to the same network the one with the lower metric counts; what asks for more than the destination is not
// followed; and Linux before 5.14 made the first address of a network one of broadcasts, too.
TEST_F(RoutesTest, WhichRouteCounts) {
  shell(
      "ip link add eth0 type veth peer name other; ip link set eth0 up; ip link set other up;"
      "ip address add 10.0.0.1/24 dev eth0;"
      "ip route add 10.7.0.0/16 dev eth0 metric 20; ip route add 10.7.0.0/16 dev other metric 10;"
      "ip route add 10.8.0.0/16 dev eth0 tos 0x10; ip -6 route add fd03::/16 from fd04::/16 dev eth0");
  const auto pod = [&] { return space.run([] { return read_pod(); }); };
  std::vector<std::string> to_others;
  for (const Route& route : pod().routes) {
    const bool followed = route.kind != Route::Kind::unknown;
    if (route.to.text() == "10.7.0.0/16" || !followed)
      to_others.push_back(route.to.text() + " " + route.device + (followed ? "" : " not followed"));
  }
  EXPECT_THAT(to_others,
              ::testing::UnorderedElementsAre("10.7.0.0/16 other", "10.7.0.0/16 eth0", "10.8.0.0/16 eth0 not followed",
                                              "fd03::/16 eth0 not followed"));
  EXPECT_LT(std::ranges::find(to_others, "10.7.0.0/16 other"), std::ranges::find(to_others, "10.7.0.0/16 eth0"));
  EXPECT_FALSE(pod().first_is_broadcast);
  shell("ip route add broadcast 10.0.0.0 dev eth0 table local");
  EXPECT_TRUE(pod().first_is_broadcast);
}

// A line for each: its addresses, what its packets go on by, and its settings.
TEST_F(RoutesTest, EveryInterfaceIsRead) {
  const Namespace elsewhere;
  elsewhere.must({"ip", "link", "add", "far", "type", "veth", "peer", "name", "other"});
  elsewhere.must({"ip", "link", "add", "mv1", "link", "far", "type", "macvlan"});
  elsewhere.must({"ip", "link", "set", "mv1", "netns", fmt::format("/proc/{}/fd/{}", getpid(), space.fd())});
  shell(
      "for each in rp_filter src_valid_mark route_localnet accept_local; do"
      "  sysctl -qw net.ipv4.conf.all.$each=0 net.ipv4.conf.default.$each=0; done;"
      "ip link add br0 type bridge; ip link add p0 type veth peer name p1; ip link set p0 master br0; ip link set p1 "
      "up;"
      "ip link add mv0 link p1 type macvlan; ip link add mv2 link p1 type macvlan;"
      "sysctl -qw net.ipv4.conf.br0.rp_filter=1 net.ipv4.conf.p0.rp_filter=2 net.ipv4.conf.p1.src_valid_mark=1"
      "  net.ipv4.conf.mv0.route_localnet=1 net.ipv4.conf.mv2.accept_local=1 net.ipv6.conf.mv1.disable_ipv6=1;"
      "ip address add 10.0.0.1/24 dev p1; ip address add 10.0.1.1/24 dev p1 scope link;"
      "ip address add 10.0.2.1 peer 10.0.2.2/32 dev p1; ip address add fd00::1/64 dev p1 nodad preferred_lft 0;"
      "ip address add fd00::5/64 dev mv2");  // not in use as long as its interface is down
  const auto listed = [&] {
    std::vector<std::string> lines;
    for (const Interface& each : space.run([] { return read_pod(); }).interfaces) {
      if (each.name == "lo" || each.name == "sit0" || each.name == "ip6tnl0" || each.name == "tunl0") continue;
      std::string line = each.name + (each.up ? " up" : "") + (each.is_bridge ? " bridge" : "");
      for (const InterfaceAddress& one : each.addresses) {
        if (one.address.is_link_local()) continue;
        line += fmt::format(" {}/{}{}{}", one.address.text(), one.prefix_length, one.deprecated ? " deprecated" : "",
                            one.scope != 0 ? fmt::format(" scope {}", one.scope) : "");
      }
      for (const std::string& below : each.lower) line += " on " + below;
      if (each.rp_filter != RpFilter::off) line += each.rp_filter == RpFilter::strict ? " strict" : " loose";
      if (each.src_valid_mark) line += " by mark";
      if (each.route_localnet) line += " takes loopback";
      if (each.accept_local) line += " takes own source";
      if (each.disable_ipv6) line += " without IPv6";
      lines.push_back(line);
    }
    return lines;
  };
  EXPECT_THAT(listed(), ::testing::UnorderedElementsAre(
                            "br0 bridge on p0 strict", "p0 loose",
                            "p1 up 10.0.1.1/24 scope 253 10.0.0.1/24 10.0.2.1/32 fd00::1/64 deprecated by mark",
                            "mv0 on p1 takes loopback", "mv2 on p1 takes own source", "mv1 without IPv6"));
  shell(
      "for each in rp_filter src_valid_mark route_localnet accept_local; do sysctl -qw net.ipv4.conf.all.$each=1; "
      "done");
  for (const std::string& line : listed()) {
    EXPECT_THAT(line, HasSubstr(line.starts_with("p0 ") ? " loose" : " strict"));
    EXPECT_THAT(line, HasSubstr(" by mark takes loopback takes own source"));
  }
}

TEST_F(RoutesTest, SettingsOfTheNamespaceAreRead) {
  const auto pod = [&] { return space.run([] { return read_pod(); }); };
  EXPECT_FALSE(pod().tcp_fwmark_accept);
  EXPECT_EQ(pod().fwmark_reflect, Families{});
  EXPECT_FALSE(pod().first_is_broadcast);
  shell("sysctl -qw net.ipv4.ip_local_port_range='40000 50001' net.ipv4.tcp_fwmark_accept=1 net.ipv4.fwmark_reflect=1");
  EXPECT_EQ(pod().ephemeral_ports, (PortRange{40000, 50001}));
  EXPECT_TRUE(pod().tcp_fwmark_accept);
  EXPECT_EQ(pod().fwmark_reflect, Families(Family::ipv4));
  shell("sysctl -qw net.ipv4.fwmark_reflect=0 net.ipv6.fwmark_reflect=1");
  EXPECT_EQ(pod().fwmark_reflect, Families(Family::ipv6));
  // Of table local, what others put there.
  const auto local = [&] {
    std::vector<std::string> words;
    for (const Route& route : pod().routes) {
      if (route.table == local_table) words.push_back(ip_words(route));
    }
    return words;
  };
  EXPECT_THAT(local(), ::testing::IsEmpty());
  shell("ip route add local 10.9.0.0/16 dev lo table local");
  EXPECT_THAT(local(), ::testing::ElementsAre("ip route local 10.9.0.0/16 dev lo table local"));
}

TEST_F(RoutesTest, NeedsTheCapability) {
  const auto unprivileged = [&](auto act) { return error_in(space, act, {1337, 1337}); };
  const Error error = unprivileged([] { open_routes()->add(all_routing); });
  EXPECT_EQ(error.code(), ExitCode::not_permitted);
  EXPECT_THAT(error.hint(), HasSubstr("CAP_NET_ADMIN"));
  const std::pair<Routing, const char*> each[] = {
      {{{all_routing.policy_rules[0]}, {}, {}}, "ip rule fwmark 1337 lookup 133: "},
      {{{all_routing.policy_rules[1]}, {}, {}}, "ip -6 rule fwmark 1337 lookup 133: "},
      {{{}, {all_routing.local_routes[0]}, {}}, "ip route local default dev lo table 133: "},
      {{{}, {all_routing.local_routes[1]}, {}}, "ip -6 route local default dev lo table 133: "},
      {{{}, {}, {passthrough}}, "ip address ::6/128 dev lo: "},
  };
  for (const auto& [routing, words] : each) {
    EXPECT_THAT(unprivileged([&] { open_routes()->add(routing); }).what(),
                HasSubstr(std::string("cannot add ") + words));
  }
  add(all_routing);
  for (const auto& [routing, words] : each) {
    const Error kept = unprivileged([&] { open_routes()->remove(routing); });
    EXPECT_EQ(kept.code(), ExitCode::not_permitted);
    EXPECT_THAT(kept.what(), HasSubstr(std::string("cannot remove ") + words));
  }
  Routing seen;
  EXPECT_EQ(unprivileged([&] { seen = open_routes()->read().ours; }).code(), ExitCode::done);
  EXPECT_EQ(seen, all_routing) << "reading needs none";
}

}  // namespace
}  // namespace sidetrack::netns
