// SPDX-License-Identifier: GPL-2.0-or-later
// Rules that translate to networks, to ranges and to ports alone: where one outcome is certain `explain` says it, as
// real connections have it; else it says that the kernel chooses.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kernel/routes.h"
#include "render/render.h"
#include "support/packets.h"
#include "support/traffic.h"
#include "walk/explain.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

struct TranslationCase {
  const char* rule;
  std::uint16_t port;    // of the service, to which the app connects
  const char* sentence;  // of explain: a part of it
};
constexpr TranslationCase of_iptables[] = {
    {"OUTPUT -p tcp -d 10.96.0.0/16 -j NETMAP --to 10.97.0.0/16", 80, "leaves the pod by eth0 to 10.97.0.10:80"},
    {"OUTPUT -p tcp -j NETMAP --to 10.97.0.10/32", 443, "leaves the pod by eth0 to 10.97.0.10:443"},
    {"OUTPUT -p tcp -j REDIRECT --to-ports 8080-8081", 8081, "lands on 127.0.0.1:8081"},
    {"OUTPUT -p tcp -j REDIRECT --to-ports 15001-15006", 15006, "lands on 127.0.0.1:15006"},
    {"OUTPUT -p tcp -j DNAT --to-destination 10.97.0.10:8080-8081", 8080, "leaves the pod by eth0 to 10.97.0.10:8080"},
    {"OUTPUT -p tcp -j DNAT --to-destination 10.97.0.10:8080-8099/79", 80, "leaves the pod by eth0 to 10.97.0.10:8081"},
    {"OUTPUT -p tcp -j DNAT --to-destination :8080", 80, "leaves the pod by eth0 to 10.96.0.10:8080"},
    {"POSTROUTING -p tcp -j MASQUERADE --to-ports 20000-20010", 80, "leaves the pod by eth0 to 10.96.0.10:80"},
};
constexpr TranslationCase of_nft[] = {
    {"meta l4proto tcp dnat ip prefix to 10.97.0.0/16", 80, "leaves the pod by eth0 to 10.97.0.10:80"},
    {"meta l4proto tcp redirect to :8080-8081", 8081, "lands on 127.0.0.1:8081"},
    {"meta l4proto tcp dnat to :8080", 80, "leaves the pod by eth0 to 10.96.0.10:8080"},
    // What a rule asks before it changes the packet, as that of kube-proxy which masquerades does.
    {"meta mark set 0x4001; meta l4proto tcp meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000 redirect to "
     ":8080;"
     "meta l4proto tcp redirect to :15006",
     80, "lands on 127.0.0.1:8080"},
    {"meta mark set 0x1; meta l4proto tcp meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000 redirect to :8080;"
     "meta l4proto tcp redirect to :15006",
     80, "lands on 127.0.0.1:15006"},
};
constexpr TranslationCase of_untracked[] = {
    {"ct mark set ct mark | 1 drop", 80, "leaves the pod by eth0"},
    {"meta mark set ct mark drop", 80, "leaves the pod by eth0"},
    {"ct mark set 1 drop", 80, "dropped: by rule 1 of ip t c"},
};
constexpr TranslationCase of_iptables_by_choice[] = {
    {"OUTPUT -p tcp -j REDIRECT --to-ports 8080-8081", 80, "unknown: which port the kernel chooses for"},
    {"OUTPUT -p tcp -j REDIRECT --to-ports 8080-8081 --random", 8080, "unknown: which port the kernel chooses for"},
    {"OUTPUT -p tcp -j DNAT --to-destination 10.97.0.10-10.97.0.11", 80, "unknown: which address the kernel chooses"},
};
constexpr TranslationCase of_nft_by_choice[] = {
    {"dnat ip to tcp dport map { 80 : 10.97.0.10 }", 80, "unknown: what `dnat to what it looks up` of rule 1"},
};

class Translation : public KernelTest {
 protected:
  [[nodiscard]] Trace explained(std::uint16_t port) const {
    Packet packet;
    packet.destination = service(port).address;
    packet.destination_port = port;
    packet.owner = Owner{1000, 1000};
    return explain(packet, pod_.ns().run(read_pod), pod_.ns().run(read_all));
  }
  // Also of all packets at once, or nothing is said of them.
  void expect_certain(const TranslationCase& each) const {
    const Trace trace = explained(each.port);
    EXPECT_THAT(sentence(trace.outcome), HasSubstr(each.sentence));
    Landing seen = pod_.connect(as_app, {.to = service(each.port), .protocol = Protocol::tcp, .from = {}});
    seen.oddity.clear();  // addresses are translated here
    EXPECT_EQ(seen, predicted(trace.outcome, Protocol::tcp, pod_)) << trace_text(trace, {});
  }
  static Endpoint service(std::uint16_t port) { return {addresses(Family::ipv4).service, port}; }

  void restore(const char* kind, const std::string& rule) const {
    pod_.ns().must({fmt::format("iptables-{}-restore", kind)}, fmt::format("*nat\n{}COMMIT\n", rule));
  }
  void replace_table(const std::string& rule, const char* type = "type nat hook output priority -100") const {
    pod_.ns().must({"nft", "-f", "-"},
                   fmt::format("table ip t\ndelete table ip t\ntable ip t {{ chain c {{ {}; {}; }}; }}", type, rule));
  }

  const Pod pod_;
};

// 0x34 is saved of 0x1234, and 0x30 restored of it.
TEST_F(Translation, ByMarksOfWhichPartsAreSavedAndRestored) {
  const TranslationCase redirected{"", 80, "lands on 127.0.0.1:8080"};
  for (const char* kind : {"legacy", "nft"}) {
    SCOPED_TRACE(kind);
    restore(kind,
            "COMMIT\n*mangle\n-A OUTPUT -p tcp -j MARK --set-mark 0x1234\n"
            "-A OUTPUT -j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff\n-A OUTPUT -p tcp -j MARK --set-mark 0x500\n"
            "-A OUTPUT -j CONNMARK --restore-mark --nfmask 0xff0 --ctmask 0xf0\nCOMMIT\n*nat\n"
            "-A OUTPUT -p tcp -m mark ! --mark 0x30 -j REDIRECT --to-ports 15006\n"
            "-A OUTPUT -p tcp -m connmark --mark 0x34 -j REDIRECT --to-ports 8080\n");
    expect_certain(redirected);
    pod_.ns().must({fmt::format("iptables-{}-restore", kind)}, "*mangle\nCOMMIT\n*nat\nCOMMIT\n");
  }
  pod_.ns().must({"nft", "-f", "-"},
                 "table ip marks { chain c { type filter hook output priority -150; meta mark set 0x1234; "
                 "ct mark set meta mark & 0xff; meta mark set 0x500; meta mark set ct mark & 0xf0; }; }");
  replace_table(
      "meta l4proto tcp meta mark != 0x30 redirect to :15006; meta l4proto tcp ct mark 0x34 redirect to :8080");
  expect_certain(redirected);
}

TEST_F(Translation, IsSaidWhereItIsCertain) {
  for (const char* kind : {"legacy", "nft"}) {
    for (const TranslationCase& each : of_iptables) {
      SCOPED_TRACE(fmt::format("{}: {}", kind, each.rule));
      restore(kind, fmt::format("-A {}\n", each.rule));
      expect_certain(each);
      restore(kind, "");
    }
  }
  for (const TranslationCase& each : of_nft) {
    SCOPED_TRACE(each.rule);
    replace_table(each.rule);
    expect_certain(each);
  }
}

// Before there is a connection, a rule of nf_tables ends where it reads the mark of that.
TEST_F(Translation, OfNoConnectionIsNoMark) {
  for (const TranslationCase& each : of_untracked) {
    SCOPED_TRACE(each.rule);
    replace_table(each.rule, "type filter hook output priority -310");
    expect_certain(each);
  }
}

TEST_F(Translation, IsTheKernelsChoiceElse) {
  for (const TranslationCase& each : of_iptables_by_choice) {
    SCOPED_TRACE(each.rule);
    restore("nft", fmt::format("-A {}\n", each.rule));
    EXPECT_THAT(sentence(explained(each.port).outcome), HasSubstr(each.sentence));
    restore("nft", "");
  }
  for (const TranslationCase& each : of_nft_by_choice) {
    SCOPED_TRACE(each.rule);
    replace_table(each.rule);
    EXPECT_THAT(sentence(explained(each.port).outcome), HasSubstr(each.sentence));
  }
}

// `show`, `map` and `lint` know as much of a translation that is the kernel's choice.
TEST_F(Translation, IsUnknownToAllCommandsAlike) {
  restore("nft", "-A OUTPUT -p tcp -j REDIRECT --to-ports 8080-8081 --random\n");
  const std::string rule = "`-j REDIRECT --to-ports 8080-8081 --random`";
  const std::string program = program_under_test();
  EXPECT_THAT(pod_.ns().must({program, "show"}), HasSubstr("TCP has an unknown outcome (" + rule + ")"));
  EXPECT_THAT(pod_.ns().must({program, "map", "--family", "ipv4"}), HasSubstr("-> unknown: " + rule));
  const Output found = pod_.ns().program({program, "lint"});
  EXPECT_EQ(found.exit_code, 6) << found.err;
  EXPECT_THAT(found.out, HasSubstr("ST011 outcome unknown: outbound tcp, IPv4"));
  EXPECT_THAT(found.out, HasSubstr(rule));
  EXPECT_THAT(found.err, ::testing::Not(HasSubstr("nothing is captured")));
}

}  // namespace
}  // namespace sidetrack::netns
