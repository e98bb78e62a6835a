// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/starting_states.h"

#include <algorithm>

#include "golden/scenario.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

// Istio 1.1: everything by one port.
constexpr const char* istio_1_1 = R"(*nat
-N ISTIO_IN_REDIRECT
-N ISTIO_OUTPUT
-N ISTIO_REDIRECT
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -j ISTIO_REDIRECT
-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
COMMIT
)";

// Istio 1.14.
constexpr const char* istio_1_14 = R"(*nat
-N ISTIO_INBOUND
-N ISTIO_IN_REDIRECT
-N ISTIO_OUTPUT
-N ISTIO_REDIRECT
-A PREROUTING -p tcp -j ISTIO_INBOUND
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN
-A ISTIO_INBOUND -p tcp --dport 15090 -j RETURN
-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN
-A ISTIO_INBOUND -p tcp --dport 15020 -j RETURN
-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT
-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
-A ISTIO_OUTPUT -s 127.0.0.6/32 -o lo -j RETURN
-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
COMMIT
)";

// Istio's native nftables mode.
constexpr const char* istio_nftables = R"(
table inet istio-proxy-nat {
  chain istio-redirect { meta l4proto tcp counter redirect to :15001; }
  chain istio-in-redirect { meta l4proto tcp counter redirect to :15006; }
  chain istio-inbound { tcp dport 15008 counter return; meta l4proto tcp counter jump istio-in-redirect; }
  chain istio-output { meta skuid 1337 counter return; ip daddr 127.0.0.1 counter return; counter jump istio-redirect; }
  chain prerouting { type nat hook prerouting priority -100; meta l4proto tcp counter jump istio-inbound; }
  chain output { type nat hook output priority -100; counter jump istio-output; }
}
table inet istio-proxy-mangle {
  chain istio-drop { counter drop; }
  chain prerouting { type filter hook prerouting priority -150; ct state invalid counter jump istio-drop; }
}
table inet istio-proxy-raw {
  chain istio-output-dns { udp dport 53 counter ct zone set 1; }
  chain output { type filter hook output priority -300; counter jump istio-output-dns; }
}
)";

void restore(const Namespace& where, const std::string& variant, const std::string& text) {
  where.must({"iptables-" + variant + "-restore", "--noflush"}, text);
}

void restore_scenario(const Namespace& where, const std::string& variant, const char* scenario) {
  for (const auto& [tool, file] : {std::pair("iptables-", "ipv4.rules"), std::pair("ip6tables-", "ipv6.rules")}) {
    const std::string text = read_file(std::string(SIDETRACK_SOURCE_DIR "/rules/") + scenario + "/" + file);
    if (!text.empty()) where.must({tool + variant + "-restore", "--noflush"}, text);
  }
}

void sidetrack(const Namespace& where, const std::vector<std::string>& options) {
  std::vector<std::string> words{program_under_test(), "apply", "--ip-families", "ipv4,ipv6"};
  words.insert(words.end(), options.begin(), options.end());
  where.must(words);
}

}  // namespace

const std::vector<StartingState>& starting_states() {
  using Where = const Namespace&;
  using Variant = const std::string&;
  static const std::vector<StartingState> all{
      {"nothing", [](Where, Variant) {}, false},
      {"istio_1_1", [](Where where, Variant variant) { restore(where, variant, istio_1_1); }, true},
      {"istio_1_14", [](Where where, Variant variant) { restore(where, variant, istio_1_14); }, true},
      {"istio_redirect", [](Where where, Variant variant) { restore_scenario(where, variant, "redirect-dual-stack"); },
       true},
      {"istio_tproxy",
       [](Where where, Variant variant) {
         restore_scenario(where, variant, "tproxy-dual-stack");
         for (const char* family : {"-4", "-6"}) {
           where.must({"ip", family, "rule", "add", "fwmark", "1337", "lookup", "133"});
           where.must({"ip", family, "route", "add", "local", "default", "dev", "lo", "table", "133"});
         }
         ip(where, "addr add ::6/128 dev lo nodad\n");
       },
       true},
      {"istio_dns", [](Where where, Variant variant) { restore_scenario(where, variant, "dns-dual-stack"); }, true},
      {"istio_everything", [](Where where, Variant variant) { restore_scenario(where, variant, "everything"); }, true},
      {"istio_nftables",
       [](Where where, Variant) {
         where.must({"nft", "-f", "-"}, istio_nftables);
       },
       false},
      {"no_jump",
       [](Where where, Variant variant) {
         restore(where, variant, istio_1_14);
         restore(where, variant, "*nat\n-D OUTPUT -p tcp -j ISTIO_OUTPUT\nCOMMIT\n");
       },
       true},
      {"doubled_jump",
       [](Where where, Variant variant) {
         restore_scenario(where, variant, "redirect-dual-stack");
         restore(where, variant, "*nat\n-A OUTPUT -j ISTIO_OUTPUT\n-I PREROUTING 1 -p tcp -j ISTIO_INBOUND\nCOMMIT\n");
       },
       true},
      {"half_of_a_chain",
       [](Where where, Variant variant) {
         restore_scenario(where, variant, "redirect-dual-stack");
         restore(where, variant, "*nat\n-D ISTIO_OUTPUT 2\n-D ISTIO_OUTPUT 1\n-F ISTIO_REDIRECT\nCOMMIT\n");
       },
       true},
      {"swapped_rules",
       [](Where where, Variant variant) {
         restore_scenario(where, variant, "redirect-dual-stack");
         restore(
             where, variant,
             "*nat\n-D ISTIO_INBOUND -p tcp --dport 15090 -j RETURN\n-A ISTIO_INBOUND -p tcp --dport 15090 -j RETURN\n"
             "COMMIT\n");
       },
       true},
      {"empty_chains",
       [](Where where, Variant variant) {
         restore(where, variant, "*nat\n-N ISTIO_OUTPUT\n-N ISTIO_TPROXY\nCOMMIT\n");
       },
       true},
      {"other_options",
       [](Where where, Variant variant) {
         sidetrack(where, {"--backend", "iptables-" + variant, "-m", "TPROXY", "-b", "80,443", "-i", "10.0.0.0/8", "-c",
                           "net1", "-k", "net2", "--drop-invalid", "--redirect-dns", "--capture-all-dns"});
       },
       true},
      {"our_ambient",
       [](Where where, Variant variant) {
         sidetrack(where, {"--backend", "iptables-" + variant, "--dataplane", "ambient", "--redirect-dns"});
       },
       true},
      {"our_ambient_nftables",
       [](Where where, Variant) {
         sidetrack(where, {"--backend", "nftables", "--dataplane", "ambient", "-k", "net1"});
       },
       false},
      {"other_options_nftables",
       [](Where where, Variant) {
         sidetrack(where, {"--backend", "nftables", "-m", "TPROXY", "-b", "80", "-x", "10.0.0.0/8,fd00::/8"});
       },
       false},
  };
  return all;
}

void make_state(const Namespace& where, std::string_view name, const std::string& variant) {
  std::ranges::find(starting_states(), name, &StartingState::name)->make(where, variant);
}

}  // namespace sidetrack::netns
