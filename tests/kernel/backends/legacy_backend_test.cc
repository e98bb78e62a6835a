// SPDX-License-Identifier: GPL-2.0-or-later
// Backend iptables-legacy against the kernel and against iptables' own programs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>

#include "kernel/inspect.h"
#include "mesh/catalogue.h"
#include "model/error.h"
#include "rule/iptables.h"
#include "support/backend_test.h"
#include "support/backends.h"
#include "support/read_back.h"
#include "support/refused_call.h"
#include "support/starting_states.h"
#include "support/traffic.h"
#include "unit/asking.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// ---- rules

const ProtocolMatch tcp{Protocol::tcp, false};
const ProtocolMatch udp{Protocol::udp, false};
InterfaceMatch in(const char* name, bool negated = false) { return {InterfaceDirection::in, name, negated}; }
InterfaceMatch out(const char* name, bool negated = false) { return {InterfaceDirection::out, name, negated}; }
AddressMatch to(const char* range, bool negated = false) {
  return {End::destination, {*AddressRange::parse(range)}, negated};
}
AddressMatch from(const char* range, bool negated = false) {
  return {End::source, {*AddressRange::parse(range)}, negated};
}
PortMatch dport(std::vector<PortRange> ports, bool negated = false) {
  return {End::destination, std::move(ports), negated};
}
PortMatch sport(std::vector<PortRange> ports, bool negated = false) { return {End::source, std::move(ports), negated}; }
OwnerMatch uid(std::uint32_t id, bool negated = false) { return {OwnerKind::uid, {{id, id}}, negated}; }
OwnerMatch gid(std::uint32_t id, bool negated = false) { return {OwnerKind::gid, {{id, id}}, negated}; }

struct Builder {
  Ruleset ruleset;
  Families families = Families::both();
  Builder& add(Table table, const char* chain, std::vector<Match> matches, Target target, MeshRule made_as = {}) {
    ruleset.rules.push_back(
        {families, table, chain, std::move(matches), std::move(target), {made_as, nullptr, {}}, {}});
    return *this;
  }
  Builder& insert(Table table, const char* chain, unsigned at, std::vector<Match> matches, Target target) {
    add(table, chain, std::move(matches), std::move(target));
    ruleset.rules.back().insert_at = at;
    return *this;
  }
};

// Every match and every target, each at least once; most of these rules are of no shape of Istio's.
Ruleset everything() {
  Builder all;
  all.add(Table::nat, "PREROUTING", {tcp}, Jump{"ISTIO_INBOUND"})
      .add(Table::nat, "ISTIO_INBOUND", {tcp, dport({{15008, 15008}})}, Verdict::return_)
      .add(Table::nat, "ISTIO_INBOUND", {tcp}, Jump{"ISTIO_IN_REDIRECT"})
      .add(Table::nat, "ISTIO_IN_REDIRECT", {tcp}, Redirect{15006})
      .insert(Table::nat, "PREROUTING", 1, {in("vm0")}, Verdict::return_)
      .insert(Table::nat, "PREROUTING", 1, {in("veth+")}, Jump{"ISTIO_REDIRECT"})
      .add(Table::nat, "ISTIO_REDIRECT", {tcp}, Redirect{15001})
      .add(Table::nat, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"})
      .add(Table::nat, "ISTIO_OUTPUT", {out("lo"), tcp, dport({{53, 53}, {15008, 15008}}, true), uid(1337)},
           Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {out("lo", true), udp, sport({{1000, 2000}})}, Verdict::accept)
      .add(Table::nat, "ISTIO_OUTPUT", {udp, sport({{53, 53}}), dport({{53, 53}}, true)}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {tcp, sport({{1, 1}, {5, 9}, {65535, 65535}})}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {gid(1, true), gid(2, true)}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::uid, {{10, 20}}, true}}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {ProtocolMatch{Protocol::tcp, true}}, Jump{"ISTIO_DROP"})
      .add(Table::mangle, "PREROUTING", {ConntrackStateMatch{ConntrackStateMatch::invalid}}, Jump{"ISTIO_DROP"})
      .add(Table::mangle, "ISTIO_DROP", {}, Verdict::drop)
      .add(Table::mangle, "PREROUTING",
           {tcp, ConntrackStateMatch{ConntrackStateMatch::related | ConntrackStateMatch::established |
                                         ConntrackStateMatch::new_ | ConntrackStateMatch::untracked,
                                     true}},
           Jump{"ISTIO_DIVERT"})
      .add(Table::mangle, "ISTIO_DIVERT", {}, SetMark{1337})
      .add(Table::mangle, "ISTIO_DIVERT", {}, Verdict::accept)
      .add(Table::mangle, "PREROUTING", {tcp}, Jump{"ISTIO_TPROXY"})
      .add(Table::mangle, "ISTIO_TPROXY", {tcp}, Tproxy{15006, 1337, 0xffffffff})
      .add(Table::mangle, "PREROUTING", {tcp, MarkMatch{1337}}, Connmark::save)
      .add(Table::mangle, "OUTPUT", {tcp, ConnmarkMatch{1337}}, Connmark::restore)
      .add(Table::mangle, "ISTIO_DIVERT", {tcp, MarkMatch{0x10, 0xff, true}, ConnmarkMatch{1, 0xf, true}},
           Verdict::return_)
      .add(Table::raw, "OUTPUT", {}, Jump{"ISTIO_OUTPUT_DNS"})
      .add(Table::raw, "ISTIO_OUTPUT_DNS", {udp, dport({{53, 53}}), uid(1337)}, CtZone{1})
      .add(Table::raw, "ISTIO_OUTPUT_DNS", {udp, sport({{15053, 15053}}), gid(1337)}, CtZone{2});
  all.families = Family::ipv4;
  all.add(Table::nat, "ISTIO_OUTPUT", {out("lo"), from("127.0.0.6/32")}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {to("10.0.0.0/8", true)}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {ProtocolMatch{Protocol::icmp}, to("0.0.0.0/0")}, Jump{"ISTIO_REDIRECT"});
  all.families = Family::ipv6;
  all.add(Table::nat, "ISTIO_OUTPUT", {out("lo"), from("::6/128"), to("fd00::/9", true)}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {ProtocolMatch{Protocol::icmpv6}, to("::/0")}, Jump{"ISTIO_REDIRECT"});
  return all.ruleset;
}

// Rules of ours in every table of both families.
Ruleset asked() {
  return planned(
             "-m TPROXY -b * -d 15090,15021 -i * -x 10.0.0.0/8,fd00::/8 -c veth+ -k vm0 -o 25 --drop-invalid "
             "--redirect-dns --dns-server 10.96.0.53,fd00:96::53")
      .ruleset;
}

Ruleset redirect_to(std::uint16_t port) {
  return Builder()
      .add(Table::nat, "OUTPUT", {tcp}, Jump{"ISTIO_OUTPUT"})
      .add(Table::nat, "ISTIO_OUTPUT", {uid(1337)}, Verdict::return_)
      .add(Table::nat, "ISTIO_OUTPUT", {}, Jump{"ISTIO_REDIRECT"})
      .add(Table::nat, "ISTIO_REDIRECT", {tcp}, Redirect{port})
      .ruleset;
}

// ---- the namespace

struct LegacyTest : KernelTest {
  Namespace space;

  std::unique_ptr<Backend> open() const { return open_iptables_legacy({.lock = open_lock_file()}); }

  void commit(const Ruleset& wanted) const {
    space.run([&] {
      const auto backend = open();
      backend->replace(backend->read(), wanted);
    });
  }

  Live read() const {
    return space.run([&] { return open()->read(); });
  }
};

std::string without_comments(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = text.find('\n', i) + 1;
    if (text[i] != '#') result += text.substr(i, end - i);
    i = end;
  }
  return result;
}

// Both families as iptables lists them. The kernel lists tables in the order in which they came to life; here they
// have one order.
std::string listed(const Namespace& space, bool counters = false) {
  std::string text;
  for (const char* program : {"iptables-legacy-save", "ip6tables-legacy-save"}) {
    const std::string all = without_comments(space.must({program, "-c"}));
    for (const char* table : {"raw", "mangle", "nat", "filter"}) {
      const std::size_t start = all.find(std::string("*") + table);
      if (start == std::string::npos) continue;  // listing it would bring it to life
      text += all.substr(start, all.find("COMMIT\n", start) + 7 - start);
    }
  }
  if (counters) return text;
  return std::regex_replace(text, std::regex(R"(\[\d+:\d+\] ?)"), "");
}

void restore(const Namespace& space, const char* program, const std::string& text) {
  space.must({program, "--noflush", "--counters"}, text);
}
void restore(const Namespace& space, const Ruleset& ruleset) {
  restore(space, "iptables-legacy-restore", iptables_restore(ruleset, Family::ipv4));
  restore(space, "ip6tables-legacy-restore", iptables_restore(ruleset, Family::ipv6));
}

std::string existing_tables() {
  std::string text;
  for (const char* file : {"ip_tables_names", "ip6_tables_names"}) {
    std::ifstream stream(std::string("/proc/thread-self/net/") + file);
    text += std::string(std::istreambuf_iterator<char>(stream), {});
  }
  return text;
}

void drop_capability(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
  data[0].effective &= ~(1U << capability);
  ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

// ---- what is committed

TEST_F(LegacyTest, ListsAsThePrintedTextLoadedByIptablesRestore) {
  const Ruleset rules = everything();
  commit(rules);
  const Namespace other;
  restore(other, rules);
  const std::string text = listed(space);
  EXPECT_EQ(text, listed(other));
  EXPECT_THAT(text, HasSubstr("-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006"));
}

TEST_F(LegacyTest, ReadsBackWhatItCommitted) {
  const Ruleset rules = everything();
  commit(rules);
  EXPECT_THAT(differences(whoever_wrote(read()), rules), IsEmpty());
}

TEST_F(LegacyTest, KnowsItsOwnRules) {
  commit(asked());
  EXPECT_THAT(differences(read(), asked()), IsEmpty());
  const Namespace other;
  restore(other, asked());
  EXPECT_EQ(listed(space), listed(other));
}

TEST_F(LegacyTest, ReadsWhatIptablesWrote) {
  const Ruleset rules = everything();
  restore(space, rules);
  EXPECT_THAT(differences(whoever_wrote(read()), rules), IsEmpty());
}

TEST_F(LegacyTest, EqualRulesAreNotSentAgain) {
  const Ruleset rules = asked();
  commit(rules);
  // Without the capability the kernel takes nothing: what succeeds has sent nothing.
  EXPECT_EQ(error_in(space,
                     [&] {
                       const auto backend = open();
                       const Live seen = backend->read();
                       drop_capability(CAP_NET_ADMIN);
                       backend->replace(seen, rules);
                     })
                .code(),
            ExitCode::done);
  EXPECT_EQ(error_in(space,
                     [&] {
                       const auto backend = open();
                       const Live seen = backend->read();
                       drop_capability(CAP_NET_ADMIN);
                       backend->replace(seen, redirect_to(15001));
                     })
                .code(),
            ExitCode::not_permitted);
}

TEST_F(LegacyTest, ReplacesOtherRulesOfOurs) {
  commit(asked());
  commit(redirect_to(15001));
  const Namespace other;
  restore(other, redirect_to(15001));
  // Tables that came to life stay so, empty.
  EXPECT_THAT(differences(read(), redirect_to(15001)), IsEmpty());
  EXPECT_THAT(listed(space), Not(HasSubstr("ISTIO_INBOUND")));
  EXPECT_THAT(listed(space), HasSubstr("*mangle"));
  EXPECT_EQ(space.must({"iptables-legacy", "-t", "nat", "-S"}), other.must({"iptables-legacy", "-t", "nat", "-S"}));
}

TEST_F(LegacyTest, ReplacesTheRulesOfAnOldIstio) {
  make_state(space, "istio_1_1", "legacy");
  const Ruleset rules = everything();
  commit(rules);
  const Namespace other;
  restore(other, rules);
  EXPECT_EQ(listed(space), listed(other));
}

TEST_F(LegacyTest, AnEmptyRulesetRemovesUs) {
  restore(space, "iptables-legacy-restore", "*nat\n:OTHERS - [0:0]\n-A OUTPUT -p icmp -j OTHERS\nCOMMIT\n");
  const std::string before = space.must({"iptables-legacy", "-t", "nat", "-S"});
  commit(asked());
  commit({});
  EXPECT_EQ(space.must({"iptables-legacy", "-t", "nat", "-S"}), before);
  EXPECT_THAT(listed(space), Not(HasSubstr("ISTIO_")));
  EXPECT_THAT(listed(space), Not(HasSubstr("vm0")));
}

// ---- others' rules

constexpr const char* others = R"(*nat
:OTHERS - [0:0]
:PREROUTING ACCEPT [1:2]
[3:4] -A PREROUTING -p tcp -m tcp --dport 1:7 -m comment --comment "it's mine" -j OTHERS
[5:6] -A OUTPUT -d 10.9.8.7/32 -p udp -m string --string abc --algo bm -j DNAT --to-destination 1.2.3.4:5
[7:8] -A OTHERS -m statistic --mode random --probability 0.5 -j RETURN
[9:10] -A OTHERS
[0:0] -A POSTROUTING -s 10.0.0.0/255.0.255.0 -j MASQUERADE --random
COMMIT
*filter
:INPUT DROP [1:1]
[11:12] -A INPUT -m limit --limit 5/min -j LOG --log-prefix "x "
COMMIT
)";

TEST_F(LegacyTest, OthersRulesSurviveWithTheirCounters) {
  restore(space, "iptables-legacy-restore", others);
  const std::string before = listed(space, true);
  commit(redirect_to(1));
  commit(asked());
  commit(redirect_to(2));
  commit({});
  const std::string after = listed(space, true);
  for (const char* words : {":PREROUTING ACCEPT [1:2]", "[3:4] -A PREROUTING", "[5:6] -A OUTPUT", "[7:8] -A OTHERS",
                            "[9:10] -A OTHERS", "[11:12] -A INPUT", "-A POSTROUTING -s 10.0.0.0/255.0.255.0"}) {
    EXPECT_THAT(before, HasSubstr(words));
    EXPECT_THAT(after, HasSubstr(words));
  }
}

TEST_F(LegacyTest, OthersRulesStayBeforeAndBehindOurs) {
  const auto iptables = [&](const char* action, const char* protocol) {
    space.must({"iptables-legacy", "-t", "nat", action, "OUTPUT", "-p", protocol, "-j", "ACCEPT"});
  };
  iptables("-A", "esp");
  commit(redirect_to(1));
  iptables("-A", "ah");
  commit(asked());
  EXPECT_EQ(space.must({"iptables-legacy", "-t", "nat", "-S", "OUTPUT"}),
            "-P OUTPUT ACCEPT\n-A OUTPUT -p esp -j ACCEPT\n-A OUTPUT -o veth+ -j RETURN\n-A OUTPUT -j ISTIO_OUTPUT\n"
            "-A OUTPUT -p ah -j ACCEPT\n");
}

TEST_F(LegacyTest, ShowsOthersRulesInWords) {
  restore(space, "iptables-legacy-restore", others);
  const Live live = space.run([&] { return open()->read(); });
  std::vector<std::string> words;
  for (const LiveChain& chain : live.chains) {
    EXPECT_FALSE(chain.ours);
    for (const LiveRule& rule : chain.rules) {
      EXPECT_FALSE(rule.ours);
      words.push_back(iptables_words(rule.rule));
    }
  }
  EXPECT_THAT(words, ElementsAre("-A PREROUTING -p tcp --dport 1:7 -m comment --comment \"it\\'s mine\" -j OTHERS",
                                 "-A OUTPUT -d 10.9.8.7/32 -p udp -m string --string \"abc\" --algo bm --to 65535 -j "
                                 "DNAT --to-destination 1.2.3.4:5",
                                 "-A POSTROUTING -s 10.0.0.0/255.0.255.0 -j MASQUERADE --random",
                                 "-A OTHERS -m statistic --mode random --probability 0.50000000000 -j RETURN",
                                 "-A OTHERS", "-A INPUT -m limit --limit 5/min -j LOG --log-prefix \"x \""));
  EXPECT_EQ(live.chains.back().table, Table::filter);
  EXPECT_EQ(live.chains.front().rules.front().counters, (Counters{3, 4}));
}

TEST_F(LegacyTest, AChainThatSomebodyElseJumpsToCannotGo) {
  commit(redirect_to(1));
  space.must({"iptables-legacy", "-t", "nat", "-N", "OTHERS"});
  space.must({"iptables-legacy", "-t", "nat", "-A", "OTHERS", "-p", "tcp", "-g", "ISTIO_OUTPUT"});
  const std::string before = listed(space);
  const Output refused = space.program({program_under_test(), "clean"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("-A OTHERS -p tcp -g ISTIO_OUTPUT"));
  EXPECT_EQ(listed(space), before);
}

// ---- nothing is touched

TEST_F(LegacyTest, ReadingAndCheckingBringNoTableToLife) {
  space.run([&] {
    const auto backend = open_iptables_legacy({});
    const Live live = backend->read();
    EXPECT_THAT(live.chains, IsEmpty());
    const auto unchecked = backend->check(live, everything());
    EXPECT_THAT(unchecked, ::testing::Contains(HasSubstr("whether the kernel has raw, mangle, nat (ipv6)")));
    EXPECT_EQ(existing_tables(), "");
  });
}

TEST_F(LegacyTest, AFailedCommitPutsBackTheTablesBeforeIt) {
  commit(asked());
  restore(space, "iptables-legacy-restore", others);
  // Counters that only a roll-back would give back.
  space.must({"iptables-legacy", "-t", "raw", "-R",    "ISTIO_OUTPUT_DNS", "1",    "-c", "21", "22",     "-p", "udp",
              "--dport",         "53", "-m",  "owner", "--uid-owner",      "1337", "-j", "CT", "--zone", "1"});
  space.must({"ip6tables-legacy", "-t", "mangle", "-I", "PREROUTING", "3", "-c", "23", "24", "-p", "esp"});
  const std::string state = listed(space, true);

  // The kernel refuses owner in PREROUTING. In nat of IPv6, the last table to be committed.
  Builder wrong;
  wrong.add(Table::raw, "PREROUTING", {udp}, Jump{"ISTIO_DROP"})
      .add(Table::raw, "ISTIO_DROP", {udp}, CtZone{7})
      .add(Table::mangle, "PREROUTING", {tcp}, Tproxy{1, 2, 3})
      .add(Table::mangle, "PREROUTING", {tcp}, Jump{"ISTIO_DIVERT"})
      .add(Table::mangle, "ISTIO_DIVERT", {}, Verdict::accept)
      .add(Table::nat, "PREROUTING", {tcp}, Jump{"ISTIO_INBOUND"})
      .add(Table::nat, "ISTIO_INBOUND", {tcp}, Redirect{5});
  wrong.families = Family::ipv6;
  wrong.add(Table::nat, "ISTIO_INBOUND", {uid(1337)}, Verdict::return_);
  const Error error = error_in(space, [&] {
    const auto backend = open();
    backend->replace(backend->read(), wrong.ruleset);
  });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("table nat (ipv6)"), HasSubstr("EINVAL"), Not(HasSubstr("put back"))));
  EXPECT_EQ(listed(space, true), state);

  // Without the wrong rule the same goes through.
  wrong.ruleset.rules.pop_back();
  commit(wrong.ruleset);
  EXPECT_THAT(listed(space), HasSubstr("--zone 7"));
}

TEST_F(LegacyTest, AChangeInBetweenIsBusy) {
  commit(redirect_to(1));
  std::string state;
  const Error error = error_in(space, [&] {
    const auto backend = open_iptables_legacy({});  // iptables would wait for the lock
    const Live seen = backend->read();
    space.must({"iptables-legacy", "-t", "nat", "-A", "PREROUTING", "-p", "esp", "-j", "ACCEPT"});
    state = listed(space, true);
    backend->replace(seen, redirect_to(2));
  });
  EXPECT_EQ(error.code(), ExitCode::busy);
  EXPECT_EQ(listed(space, true), state);
}

TEST_F(LegacyTest, ATableThatCameToLifeInBetweenIsBusy) {
  const Error error = error_in(space, [&] {
    const auto backend = open_iptables_legacy({});
    const Live seen = backend->read();
    make_state(space, "istio_1_1", "legacy");
    backend->replace(seen, redirect_to(2));
  });
  EXPECT_EQ(error.code(), ExitCode::busy);
  EXPECT_THAT(listed(space), HasSubstr("--to-ports 15001"));
}

// ---- what the kernel lacks or forbids

TEST_F(LegacyTest, NamesTheCapabilityThatIsMissing) {
  commit(redirect_to(1));
  const std::string state = listed(space, true);
  const auto error_without = [&](int capability) {
    return error_in(space, [&] {
      drop_capability(capability);
      const auto backend = open();
      backend->replace(backend->read(), redirect_to(2));
    });
  };
  const Error raw = error_without(CAP_NET_RAW);
  EXPECT_EQ(raw.code(), ExitCode::not_permitted);
  EXPECT_THAT(raw.what(), AllOf(HasSubstr("CAP_NET_RAW is missing"), Not(HasSubstr("CAP_NET_ADMIN"))));
  const Error admin = error_without(CAP_NET_ADMIN);
  EXPECT_EQ(admin.code(), ExitCode::not_permitted);
  EXPECT_THAT(admin.what(), AllOf(HasSubstr("CAP_NET_ADMIN is missing"), Not(HasSubstr("CAP_NET_RAW"))));
  EXPECT_EQ(listed(space, true), state);
}

constexpr int get_info = 64;             // IPT_SO_GET_INFO, and of IPv6 alike
constexpr int set_replace = 64;          // IPT_SO_SET_REPLACE
constexpr int get_revision_match = 66;   // IPT_SO_GET_REVISION_MATCH
constexpr int get_revision_target = 67;  // IPT_SO_GET_REVISION_TARGET

TEST_F(LegacyTest, NamesTheExtensionThatTheKernelLacks) {
  Builder rules;
  rules.families = Family::ipv4;
  rules.add(Table::nat, "OUTPUT", {tcp}, Jump{"ISTIO_OUTPUT"})
      .add(Table::nat, "ISTIO_OUTPUT", {uid(1337)}, Verdict::return_, MeshRule::proxy_return)
      .add(Table::nat, "ISTIO_OUTPUT", {tcp}, Redirect{15001});
  const auto commit_inside = [&] {
    const auto backend = open();
    backend->replace(backend->read(), rules.ruleset);
  };
  const Error match = error_in(space, [&] {
    refuse_call(SYS_setsockopt, 2, set_replace, ENOENT);
    refuse_call(SYS_getsockopt, 2, get_revision_match, ENOENT);
    commit_inside();
  });
  EXPECT_EQ(match.code(), ExitCode::kernel_lacks);
  EXPECT_THAT(match.what(), AllOf(HasSubstr("no match 'owner'"), HasSubstr("-A ISTIO_OUTPUT -m owner --uid-owner 1337"),
                                  HasSubstr("(from -u 1337)")));
  EXPECT_THAT(match.hint(), AllOf(HasSubstr("modprobe xt_owner"), HasSubstr("CONFIG_NETFILTER_XT_MATCH_OWNER")));

  // The first one, of the family that is asked about.
  Builder several;
  several.families = Family::ipv6;
  several.add(Table::nat, "OUTPUT", {MarkMatch{5, 5, false}}, Verdict::return_);
  several.families = Family::ipv4;
  several.add(Table::nat, "OUTPUT", {tcp, gid(5), dport({{1, 1}, {3, 3}})}, Verdict::return_);
  const Error first = error_in(space, [&] {
    refuse_call(SYS_getsockopt, 2, get_revision_match, ENOENT);
    const auto backend = open();
    backend->check(backend->read(), several.ruleset);
  });
  EXPECT_THAT(first.what(), AllOf(HasSubstr("table nat (ipv4): the kernel has no match 'owner'"),
                                  HasSubstr("-A OUTPUT -p tcp -m owner --gid-owner 5 -m multiport --dports 1,3")));

  const Error target = error_in(space, [&] {
    refuse_call(SYS_setsockopt, 2, set_replace, ENOENT);
    refuse_call(SYS_getsockopt, 2, get_revision_target, EPROTONOSUPPORT);
    commit_inside();
  });
  EXPECT_EQ(target.code(), ExitCode::kernel_lacks);
  EXPECT_THAT(target.what(), HasSubstr("no target 'REDIRECT' of revision 0"));

  const Error checked = error_in(space, [&] {
    refuse_call(SYS_getsockopt, 2, get_revision_match, ENOENT);
    const auto backend = open();
    backend->check(backend->read(), rules.ruleset);
  });
  EXPECT_EQ(checked.code(), ExitCode::kernel_lacks);
  EXPECT_STREQ(checked.what(), match.what());
}

TEST_F(LegacyTest, NamesTheTableThatTheKernelLacks) {
  const auto error_when = [&](int error) {
    return error_in(space, [&] {
      const auto backend = open();
      const Live seen = backend->read();
      refuse_call(SYS_getsockopt, 2, get_info, error);
      backend->replace(seen, redirect_to(1));
    });
  };
  const Error table = error_when(ENOENT);
  EXPECT_EQ(table.code(), ExitCode::kernel_lacks);
  EXPECT_THAT(table.hint(), AllOf(HasSubstr("iptable_nat"), HasSubstr("CONFIG_IP_NF_NAT")));
  const Error all = error_when(ENOPROTOOPT);
  EXPECT_EQ(all.code(), ExitCode::kernel_lacks);
  EXPECT_THAT(all.hint(), AllOf(HasSubstr("ip_tables"), HasSubstr("CONFIG_IP_NF_IPTABLES_LEGACY")));
  const Error refused = error_when(EPERM);  // by others than the kernel's own rules: the capabilities are there
  EXPECT_EQ(refused.code(), ExitCode::not_permitted);
  EXPECT_THAT(refused.hint(), AllOf(HasSubstr("another user namespace"), HasSubstr("seccomp")));
}

// A chain that is jumped to does not go. (`clean` sees such a rule before it asks.)
TEST_F(LegacyTest, NamesTheChainThatAnotherProgramUses) {
  commit(redirect_to(1));
  space.must({"iptables-legacy", "-t", "nat", "-N", "MINE"});
  space.must({"iptables-legacy", "-t", "nat", "-A", "MINE", "-j", "ISTIO_OUTPUT"});
  const std::string before = listed(space);
  const Error error = error_in(space, [&] {
    const auto backend = open();
    backend->replace(backend->read(), {});
  });
  EXPECT_EQ(error.code(), ExitCode::failed);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("nat"), HasSubstr("cannot delete chain ISTIO_OUTPUT: Too many links")));
  EXPECT_EQ(listed(space), before);
}

TEST_F(LegacyTest, NamesTheFamilyThatTheKernelLacks) {
  Builder rules;
  rules.add(Table::nat, "OUTPUT", {tcp}, Jump{"ISTIO_OUTPUT"}).add(Table::nat, "ISTIO_OUTPUT", {}, Verdict::return_);
  for (const bool check : {false, true}) {
    const Error error = error_in(space, [&] {
      refuse_call(SYS_socket, 0, AF_INET6, EAFNOSUPPORT);
      const auto backend = open();
      const Live seen = backend->read();
      if (check) backend->check(seen, rules.ruleset);
      if (!check) backend->replace(seen, rules.ruleset);
    });
    EXPECT_EQ(error.code(), ExitCode::kernel_lacks);
    EXPECT_THAT(error.what(), HasSubstr(": the kernel has no IPv6"));
    EXPECT_THAT(error.hint(), AllOf(HasSubstr("ipv6.disable=1"), HasSubstr("--ip-families ipv4")));
  }
  EXPECT_THAT(listed(space), Not(HasSubstr("ISTIO")));
}

// What may not be seen is not in use: this backend could not be used anyway.
TEST_F(LegacyTest, IsInUseIfATableHoldsRules) {
  const auto in_use = [&](const std::function<void()>& before) {
    return space.run([&] {
      before();
      return iptables_legacy_in_use();
    });
  };
  const auto nothing = [] {};
  EXPECT_FALSE(in_use(nothing));
  space.must({"ip6tables-legacy", "-t", "nat", "-S"});
  EXPECT_FALSE(in_use(nothing)) << "a table without rules";
  space.must({"ip6tables-legacy", "-t", "nat", "-N", "X"});
  EXPECT_TRUE(in_use(nothing));
  EXPECT_FALSE(in_use([] { refuse_call(SYS_socket, 1, SOCK_RAW | SOCK_CLOEXEC, EPERM); }));
  EXPECT_FALSE(in_use([] { refuse_call(SYS_getsockopt, 2, get_info, EPERM); }));
  EXPECT_FALSE(in_use([] { refuse_call(SYS_openat, 2, O_RDONLY | O_CLOEXEC, EMFILE); }));
  EXPECT_EQ(space.run([] { return legacy_tables(); }), TableNames({"nat (ipv6)"}));
  EXPECT_EQ(space.run([] {
    refuse_call(SYS_openat, 2, O_RDONLY | O_CLOEXEC, EMFILE);
    return legacy_tables();
  }),
            std::nullopt);
}

// ---- the lock

struct LegacyLockTest : LegacyTest {
  const testing::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  const std::string path = folder / "xtables.lock";

  void SetUp() override {
    LegacyTest::SetUp();
    setenv("XTABLES_LOCKFILE", path.c_str(), 1);
  }
  void TearDown() override { unsetenv("XTABLES_LOCKFILE"); }
};

TEST_F(LegacyLockTest, HeldByAnotherIsBusyAndNamesTheHolder) {
  const FileDescriptor held(::open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  const Error error = error_in(space, [] {
    (void)open_iptables_legacy({.lock = open_lock_file(), .deadline = Deadline(std::chrono::milliseconds(30))});
  });
  EXPECT_EQ(error.code(), ExitCode::busy);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("(pid " + std::to_string(getpid()) + ")")));
  EXPECT_EQ(error_in(space, [] { (void)open_iptables_legacy({})->read(); }).code(), ExitCode::done);
}

TEST_F(LegacyLockTest, WaitsAndIsGivenBack) {
  FileDescriptor held(::open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  std::thread release([&] { held = {}; });
  EXPECT_EQ(error_in(space, [] { (void)open_iptables_legacy({.lock = open_lock_file()}); }).code(), ExitCode::done);
  release.join();
  const FileDescriptor again(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(flock(again.get(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(LegacyLockTest, IsHeldWhileTheBackendLives) {
  const auto backend = open_iptables_legacy({.lock = open_lock_file()});
  const FileDescriptor other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(flock(other.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(backend->warning(), "");
}

TEST_F(LegacyLockTest, WithoutAPlaceForItGoesOnAndWarns) {
  setenv("XTABLES_LOCKFILE", (folder / "missing" / "lock").c_str(), 1);
  space.run([&] {
    const auto backend = open_iptables_legacy({.lock = open_lock_file()});
    EXPECT_THAT(backend->warning(), HasSubstr("without xtables.lock"));
    backend->replace(backend->read(), redirect_to(1));
  });
  EXPECT_THAT(listed(space), HasSubstr("--to-ports 1\n"));
}

}  // namespace
}  // namespace sidetrack::netns
