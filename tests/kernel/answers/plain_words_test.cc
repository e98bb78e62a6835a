// SPDX-License-Identifier: GPL-2.0-or-later
// Rules with extensions that are only read are shown as iptables lists them, whichever backend holds them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

struct Listed {
  const char* table;
  const char* rule;
};
constexpr Listed listed_rules[] = {
    {"filter", "INPUT -m limit --limit 5/min -j ACCEPT"},
    {"filter", "INPUT -m limit --limit 3/hour --limit-burst 7 -j ACCEPT"},
    {"filter", "INPUT -m limit --limit 100/sec -j ACCEPT"},
    {"mangle", "PREROUTING -m socket --transparent --nowildcard -j ACCEPT"},
    {"mangle", "PREROUTING -p tcp -m socket -j ACCEPT"},
    {"filter", "INPUT -p tcp --tcp-flags FIN,SYN,RST,ACK SYN -j ACCEPT"},
    {"filter", "INPUT -p tcp ! --tcp-flags SYN,ACK SYN,ACK -j ACCEPT"},
    {"filter", "INPUT -m statistic --mode random --probability 0.25000000000 -j ACCEPT"},
    {"filter", "INPUT -m statistic --mode nth --every 3 --packet 0 -j ACCEPT"},
    {"filter", "INPUT -m quota --quota 1000 -j ACCEPT"},
    {"filter", "INPUT -p tcp -m connlimit --connlimit-above 3 --connlimit-mask 32 --connlimit-saddr -j DROP"},
    {"filter", "INPUT -p tcp -m connlimit --connlimit-upto 3 --connlimit-mask 24 --connlimit-daddr -j DROP"},
    {"filter", "INPUT -m length --length 100:200 -j ACCEPT"},
    {"filter", "INPUT -m ttl --ttl-lt 5 -j ACCEPT"},
    {"filter", "INPUT -m ttl ! --ttl-eq 5 -j ACCEPT"},
    {"filter", "INPUT -m pkttype --pkt-type broadcast -j ACCEPT"},
    {"filter", "INPUT -m dscp --dscp 0x0a -j ACCEPT"},
    {"filter", "INPUT -m tos --tos 0x10/0x3f -j ACCEPT"},
    {"filter", "INPUT -m ecn --ecn-ip-ect 1 -j ACCEPT"},
    {"filter", "INPUT -p tcp -m ecn ! --ecn-tcp-cwr -j ACCEPT"},
    {"filter", "INPUT -m mac --mac-source 00:11:22:33:44:55 -j ACCEPT"},
    {"filter", "INPUT -m addrtype --dst-type LOCAL -j ACCEPT"},
    {"filter", "INPUT -m addrtype ! --src-type UNICAST,LOCAL --limit-iface-in -j ACCEPT"},
    {"filter", "INPUT -m physdev --physdev-in veth0 -j ACCEPT"},
    {"filter", "FORWARD -m physdev ! --physdev-is-bridged -j ACCEPT"},
    {"filter", "INPUT -m helper --helper ftp -j ACCEPT"},
    {"filter", "INPUT -m cpu --cpu 1 -j ACCEPT"},
    {"filter", "INPUT -p tcp -m tcpmss --mss 500:600 -j ACCEPT"},
    {"filter", "INPUT -m string --string \"attack\" --algo bm --to 65535 -j DROP"},
    {"filter", "INPUT -m string ! --string \"attack\" --algo kmp --from 7 --to 99 --icase -j DROP"},
    {"filter", "INPUT -m recent --set --name bad --rsource -j ACCEPT"},
    {"filter", "INPUT -m recent --update --seconds 60 --hitcount 4 --name bad --rdest -j DROP"},
    {"filter", "INPUT -p icmp -m icmp --icmp-type 8 -j ACCEPT"},
    {"filter", "INPUT -p icmp -m icmp --icmp-type 3/1 -j ACCEPT"},
    {"filter", "INPUT -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT"},
    {"filter",
     "INPUT -m conntrack --ctstate NEW --ctproto 6 --ctorigsrc 10.0.0.0/8 ! --ctorigdst 10.0.0.1 --ctorigdstport 80:90 "
     "--ctstatus ASSURED,CONFIRMED --ctexpire 5:9 --ctdir ORIGINAL -j ACCEPT"},
    {"filter", "INPUT -m conntrack ! --ctreplsrc 10.0.0.1 --ctrepldstport 80 --ctstatus NONE -j ACCEPT"},
    {"filter", "INPUT -p tcp -m multiport ! --ports 53,8000:8080 -j ACCEPT"},
    {"filter",
     "INPUT -m hashlimit --hashlimit-above 40/sec --hashlimit-burst 20 --hashlimit-mode srcip,dstport --hashlimit-name "
     "h "
     "--hashlimit-htable-max 2000 --hashlimit-htable-expire 2000 --hashlimit-srcmask 24 -j DROP"},
    {"filter", "INPUT -m time --timestart 01:02:03 --timestop 04:05:06 --weekdays Mon,Sun -j DROP"},
    {"filter", "INPUT -m time --monthdays 1,31 --datestart 2001-02-03T04:05:06 --kerneltz -j DROP"},
    {"filter", "INPUT -m u32 --u32 \"0x6&0xff=0x1,0x6:0x11&&0x4>>0x10=0x0\" -j DROP"},
    {"filter", "INPUT -m bpf --bytecode \"4,48 0 0 9,21 0 1 6,6 0 0 1,6 0 0 0\" -j DROP"},
    {"filter", "OUTPUT -m cgroup ! --cgroup 1 -j DROP"},
    {"filter", "INPUT -m connbytes ! --connbytes 0:1000 --connbytes-mode bytes --connbytes-dir both -j DROP"},
    {"raw", "PREROUTING -m rpfilter --loose --validmark --invert -j DROP"},
    {"nat", "PREROUTING -j NETMAP --to 10.0.0.0/8"},
    {"nat", "PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1:1000-2000/3000"},
    {"mangle", "PREROUTING -j TEE --gateway 10.0.0.1 --oif lo"},
    {"filter", "INPUT -j LOG --log-prefix \"seen: \" --log-level 6 --log-uid"},
    {"filter", "INPUT -j LOG"},
    {"filter", "INPUT -p tcp -j REJECT --reject-with tcp-reset"},
    {"filter", "INPUT -j REJECT --reject-with icmp-admin-prohibited"},
    {"filter", "INPUT -j NFLOG --nflog-prefix seen --nflog-group 3"},
    {"filter", "INPUT -j NFLOG --nflog-prefix \"two words\" --nflog-group 3 --nflog-size 20 --nflog-threshold 4"},
    {"mangle", "FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu"},
    {"mangle", "FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1400"},
    {"mangle", "FORWARD -j DSCP --set-dscp 0x1a"},
    {"mangle", "FORWARD -j TOS --set-tos 0x10/0x3f"},
    {"mangle", "FORWARD -j TTL --ttl-set 64"},
    {"mangle", "FORWARD -j TTL --ttl-dec 1"},
    {"filter", "INPUT -j NFQUEUE --queue-num 3 --queue-bypass"},
    {"filter", "INPUT -j NFQUEUE --queue-balance 3:6"},
    {"mangle", "FORWARD -j CLASSIFY --set-class 1:10"},
    {"mangle", "FORWARD -j CHECKSUM --checksum-fill"},
    {"raw", "PREROUTING -j CT --zone-reply 5"},
    {"raw", "OUTPUT -j CT --zone-orig 7"},
    {"raw", "OUTPUT -j CT --zone mark"},
    {"raw", "OUTPUT -j CT --ctevents new,related,destroy,reply,assured,protoinfo,helper,mark,natseqinfo,secmark"},
    {"raw", "OUTPUT -j CT --ctevents mark --expevents new --zone 5"},
    {"raw", "PREROUTING -j TRACE"},
};

class PlainWords : public KernelTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(, PlainWords, ::testing::Values("legacy", "nft"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(PlainWords, AreThoseOfIptables) {
  for (const auto& [table, rule] : listed_rules) {
    SCOPED_TRACE(rule);
    const Namespace pod;
    pod.must({fmt::format("iptables-{}-restore", GetParam())}, fmt::format("*{}\n-A {}\nCOMMIT\n", table, rule));
    const auto shown = nlohmann::json::parse(pod.must({program_under_test(), "show", "--json"}));
    std::string words;
    for (const auto& chain : shown.at("chains")) {
      for (const auto& each : chain.at("rules")) words += each.at("rule").get<std::string>();
    }
    EXPECT_EQ(words, fmt::format("-A {}", rule));
  }
}

constexpr const char* with_route =
    "link set lo up\nlink add eth0 type veth peer name eth1\naddress add 10.1.2.3/24 dev eth0\nlink set eth0 up\n"
    "link set eth1 up\nroute add default via 10.1.2.1\n";

TEST_P(PlainWords, ACopyDecidesNothing) {
  const Namespace pod;
  ip(pod, with_route);
  pod.must({fmt::format("iptables-{}-restore", GetParam())}, "*mangle\n-A OUTPUT -j TEE --gateway 10.0.0.1\nCOMMIT\n");
  const std::string answer = pod.must({program_under_test(), "explain", "out", "tcp", "10.96.0.10:80"});
  EXPECT_THAT(answer, ::testing::HasSubstr("-j TEE --gateway 10.0.0.1"));
  EXPECT_THAT(answer, ::testing::Not(::testing::HasSubstr("unknown")));
}

TEST_F(KernelTest, ADupOfNftDecidesNothing) {
  const Namespace pod;
  ip(pod, with_route);
  pod.must(
      {"nft", "-f", "-"},
      "table ip t {\n chain c {\n type filter hook output priority 0; dup to 10.0.0.1\n numgen inc mod 2 vmap { 0 : "
      "accept, 1 : accept }\n drop\n }\n}\n");
  const std::string answer = pod.must({program_under_test(), "explain", "out", "tcp", "10.96.0.10:80"});
  EXPECT_THAT(answer, ::testing::HasSubstr("dup to 10.0.0.1 "));
  EXPECT_THAT(answer, ::testing::HasSubstr("\nleaves the pod by eth0 to 10.96.0.10:80, untouched"));
}

}  // namespace
}  // namespace sidetrack::netns
