// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/agents.h"

#include <fmt/format.h>

#include <regex>
#include <string>

#include "support/listing.h"
#include "support/network.h"

namespace sidetrack::netns {
namespace {

// {0}: the loopback address; {1}: that of the kubelet's probes

// What all releases that have iptables rules program alike: the rest of table nat, and table raw.
const std::string nat_output_and_raw = R"(-A ISTIO_OUTPUT -d {1} -p tcp -m tcp -j ACCEPT
-A ISTIO_OUTPUT ! -o lo -p udp -m mark ! --mark 0x539/0xfff -m udp --dport 53 -j REDIRECT --to-port 15053
-A ISTIO_OUTPUT ! -d {0} -p tcp --dport 53 -m mark ! --mark 0x539/0xfff -j REDIRECT --to-ports 15053
-A ISTIO_OUTPUT -p tcp -m mark --mark 0x111/0xfff -j ACCEPT
-A ISTIO_OUTPUT ! -d {0} -o lo -j ACCEPT
-A ISTIO_OUTPUT ! -d {0} -p tcp -m mark ! --mark 0x539/0xfff -j REDIRECT --to-ports 15001
COMMIT
*raw
-N ISTIO_OUTPUT
-N ISTIO_PRERT
-A PREROUTING -j ISTIO_PRERT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -p udp -m mark --mark 0x539/0xfff -m udp --dport 53 -j CT --zone 1
-A ISTIO_PRERT -p udp -m mark ! --mark 0x539/0xfff -m udp --sport 53 -j CT --zone 1
COMMIT
)";

const std::string of_istio = R"(*mangle
-N ISTIO_PRERT
-N ISTIO_OUTPUT
-A PREROUTING -j ISTIO_PRERT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_PRERT -m mark --mark 0x539/0xfff -j CONNMARK --set-xmark 0x111/0xfff
-A ISTIO_OUTPUT -m connmark --mark 0x111/0xfff -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
COMMIT
*nat
-N ISTIO_PRERT
-N ISTIO_OUTPUT
-A OUTPUT -j ISTIO_OUTPUT
-A PREROUTING -j ISTIO_PRERT
-A ISTIO_PRERT -s {1} -p tcp -m tcp -j ACCEPT
-A ISTIO_PRERT ! -d {0} -p tcp ! --dport 15008 -m mark ! --mark 0x539/0xfff -j REDIRECT --to-ports 15006
)" + nat_output_and_raw;

// Istio 1.21 to 1.23, of TPROXY
const std::string of_istio_1_22 = R"(*mangle
-N ISTIO_PRERT
-N ISTIO_OUTPUT
-A PREROUTING -j ISTIO_PRERT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_PRERT -m mark --mark 0x539/0xfff -j CONNMARK --set-xmark 0x111/0xfff
-A ISTIO_PRERT -s {1} -p tcp -m tcp -j ACCEPT
-A ISTIO_PRERT ! -d {0} -p tcp -i lo -j ACCEPT
-A ISTIO_PRERT -p tcp -m tcp --dport 15008 -m mark ! --mark 0x539/0xfff -j TPROXY --on-port 15008 --tproxy-mark 0x111/0xfff
-A ISTIO_PRERT -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ISTIO_PRERT ! -d {0} -p tcp -m mark ! --mark 0x539/0xfff -j TPROXY --on-port 15006 --tproxy-mark 0x111/0xfff
-A ISTIO_OUTPUT -m connmark --mark 0x111/0xfff -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
COMMIT
*nat
-N ISTIO_OUTPUT
-A OUTPUT -j ISTIO_OUTPUT
)" + nat_output_and_raw;

constexpr const char* of_cilium = R"(*mangle
-N CILIUM_PREROUTING
-N CILIUM_OUTPUT
-A PREROUTING -j CILIUM_PREROUTING
-A OUTPUT -j CILIUM_OUTPUT
-A CILIUM_PREROUTING -m mark --mark 0x539/0xfff -j CONNMARK --set-xmark 0x111/0xfff
-A CILIUM_OUTPUT -m connmark --mark 0x111/0xfff -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0xffffffff
COMMIT
*nat
-N CILIUM_PREROUTING
-N CILIUM_OUTPUT
-A PREROUTING -j CILIUM_PREROUTING
-A OUTPUT -j CILIUM_OUTPUT
-A CILIUM_PREROUTING ! -d {0} -p tcp -m tcp ! --dport 15008 -m mark ! --mark 0x539/0xfff -j REDIRECT --to-ports 15006
-A CILIUM_OUTPUT -p tcp -m mark --mark 0x111/0xfff -j ACCEPT
-A CILIUM_OUTPUT ! -d {0} -o lo -j ACCEPT
-A CILIUM_OUTPUT ! -d {0} -p tcp -m mark ! --mark 0x539/0xfff -j REDIRECT --to-ports 15001
COMMIT
)";

constexpr const char* of_istio_in_nftables = R"(
table inet istio-ambient-nat {
  chain istio-prerouting {
    meta l4proto tcp ip saddr 169.254.7.127 counter accept
    meta l4proto tcp ip6 saddr fd16:9254:7127:1337:ffff:ffff:ffff:ffff counter accept
    ip daddr != 127.0.0.1/32 tcp dport != 15008 meta mark & 0xfff != 0x539 counter redirect to :15006
    ip6 daddr != ::1/128 tcp dport != 15008 meta mark & 0xfff != 0x539 counter redirect to :15006
  }
  chain istio-output {
    meta l4proto tcp ip daddr 169.254.7.127 counter accept
    meta l4proto tcp ip6 daddr fd16:9254:7127:1337:ffff:ffff:ffff:ffff counter accept
    oifname != "lo" meta mark & 0xfff != 0x539 udp dport 53 counter redirect to :15053
    ip daddr != 127.0.0.1/32 tcp dport 53 meta mark & 0xfff != 0x539 counter redirect to :15053
    ip6 daddr != ::1/128 tcp dport 53 meta mark & 0xfff != 0x539 counter redirect to :15053
    meta l4proto tcp meta mark & 0xfff == 0x111 counter accept
    oifname "lo" ip daddr != 127.0.0.1/32 counter accept
    oifname "lo" ip6 daddr != ::1/128 counter accept
    meta l4proto tcp ip daddr != 127.0.0.1/32 meta mark & 0xfff != 0x539 counter redirect to :15001
    meta l4proto tcp ip6 daddr != ::1/128 meta mark & 0xfff != 0x539 counter redirect to :15001
  }
  chain prerouting { type nat hook prerouting priority -100; jump istio-prerouting; }
  chain output { type nat hook output priority -100; jump istio-output; }
}
table inet istio-ambient-mangle {
  chain istio-prerouting { meta mark & 0xfff == 0x539 counter ct mark set ct mark & 0xfffff000 | 0x111; }
  chain istio-output { ct mark & 0xfff == 0x111 counter meta mark set ct mark; }
  chain prerouting { type filter hook prerouting priority -150; jump istio-prerouting; }
  chain output { type route hook output priority -150; jump istio-output; }
}
table inet istio-ambient-raw {
  chain istio-prerouting { udp sport 53 meta mark & 0xfff != 0x539 counter ct zone set 1; }
  chain istio-output { udp dport 53 meta mark & 0xfff == 0x539 counter ct zone set 1; }
  chain prerouting { type filter hook prerouting priority -300; jump istio-prerouting; }
  chain output { type filter hook output priority -300; jump istio-output; }
}
)";

void routes(const Namespace& where) {
  for (const char* family : {"-4", "-6"}) {
    where.must({"ip", family, "rule", "add", "fwmark", "0x111/0xfff", "pref", "32764", "lookup", "100"});
    where.must({"ip", family, "route", "add", "local", "default", "dev", "lo", "table", "100"});
  }
}

void restore(const Namespace& where, const std::string& variant, const std::string& rules) {
  where.must({"iptables-" + variant + "-restore", "--noflush"},
             fmt::format(fmt::runtime(rules), "127.0.0.1/32", "169.254.7.127"));
  where.must({"ip6tables-" + variant + "-restore", "--noflush"},
             fmt::format(fmt::runtime(rules), "::1/128", "fd16:9254:7127:1337:ffff:ffff:ffff:ffff"));
  routes(where);
}

}  // namespace

const std::vector<Agent>& agents() {
  static const std::vector<Agent> all{
      {"istio_legacy", "Istio", [](const Namespace& where) { restore(where, "legacy", of_istio); }, "iptables-legacy"},
      {"istio_nft", "Istio", [](const Namespace& where) { restore(where, "nft", of_istio); }, "iptables-nft"},
      {"istio_tproxy_legacy", "Istio", [](const Namespace& where) { restore(where, "legacy", of_istio_1_22); },
       nullptr},
      {"istio_tproxy_nft", "Istio", [](const Namespace& where) { restore(where, "nft", of_istio_1_22); }, nullptr},
      {"istio_nftables", "Istio",
       [](const Namespace& where) {
         where.must({"nft", "-f", "-"}, of_istio_in_nftables);
         routes(where);
       },
       nullptr},
      {"cilium_legacy", "Cilium", [](const Namespace& where) { restore(where, "legacy", of_cilium); }, nullptr},
      {"cilium_nft", "Cilium", [](const Namespace& where) { restore(where, "nft", of_cilium); }, nullptr},
  };
  return all;
}

std::string everything(const Namespace& where) {
  std::string all;
  for (const char* tool : {"iptables-legacy-save", "ip6tables-legacy-save"}) {
    all += std::regex_replace(without_time(where.must({tool})), std::regex(R"(\[\d+:\d+\])"), "");
  }
  all += where.must({"nft", "--stateless", "list", "ruleset"});
  for (const char* family : {"-4", "-6"}) {
    all += where.must({"ip", family, "rule", "list"});
    all += where.program({"ip", family, "route", "list", "table", "100"}).out;
  }
  return all;
}

}  // namespace sidetrack::netns
