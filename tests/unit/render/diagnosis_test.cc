// SPDX-License-Identifier: GPL-2.0-or-later
// What `doctor` prints, line by line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "render/render.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;

const std::string green = "\033[32m";
const std::string red = "\033[31m";
const std::string yellow = "\033[33m";
const std::string plain;

Diagnosis empty_pod() {
  Diagnosis made;
  made.host.ipv6.in_kernel = true;
  made.host.user_namespace.uids = made.host.user_namespace.gids = {{0, 0, 4294967295}};
  made.lock.path = "/run/xtables.lock";
  made.families = Families::both();
  return made;
}

TEST(Diagnosis, SaysEachFactInAColourThatSaysWhetherItIsWell) {
  struct Row {
    std::string line;
    std::string color;
    std::function<void(Diagnosis&)> make;
  };
  const std::vector<IdMapping> all = {{0, 0, 4294967295}};
  const std::vector<IdMapping> few = {{0, 100000, 1337}};
  const auto space = [](bool initial, bool owner, const std::vector<IdMapping>& uids,
                        const std::vector<IdMapping>& gids) {
    return [=](Diagnosis& d) { d.host.user_namespace = {initial, owner, uids, gids}; };
  };
  for (const auto& [line, color, make] : std::vector<Row>{
           {"capabilities      |none", red, [](Diagnosis&) {}},
           {"capabilities      |none", red,
            [](Diagnosis& d) {
              d.host.capabilities = {{"CAP_NET_ADMIN", false, true}};
            }},
           {"capabilities      |CAP_NET_RAW", red,
            [](Diagnosis& d) {
              d.host.capabilities = {{"CAP_NET_RAW", true, true}};
            }},
           {"capabilities      |CAP_NET_ADMIN", green,
            [](Diagnosis& d) {
              d.host.capabilities = {{"CAP_NET_ADMIN", true, true}, {"CAP_NET_RAW", false, true}};
            }},
           {"user namespace    |the initial one", green, space(true, true, all, all)},
           {"user namespace    |not the owner of the network namespace", red, space(false, false, all, all)},
           {"user namespace    |uid or gid 1337 is not mapped", red, space(false, true, few, all)},
           {"user namespace    |uid or gid 1337 is not mapped", red, space(false, true, all, few)},
           {"user namespace    |not the initial one; uid and gid 1337 are mapped", green, space(false, true, all, all)},
           {"root              |writable", plain, [](Diagnosis&) {}},
           {"root              |read-only", plain, [](Diagnosis& d) { d.host.read_only_root = true; }},
           {"IPv6              |on", green, [](Diagnosis&) {}},
           {"IPv6              |not in this kernel", yellow, [](Diagnosis& d) { d.host.ipv6 = {}; }},
           {"IPv6              |off (net.ipv6.conf.all.disable_ipv6 = 1)", yellow,
            [](Diagnosis& d) {
              d.host.ipv6 = {true, true, true};
            }},
           {"IPv6              |off on lo (net.ipv6.conf.lo.disable_ipv6 = 1)", red,
            [](Diagnosis& d) {
              d.host.ipv6 = {true, false, true};
            }},
           {"lo                |up", green, [](Diagnosis&) {}},
           {"lo                |down", red, [](Diagnosis& d) { d.host.loopback_up = false; }},
           {"xtables lock      |/run/xtables.lock, free", green, [](Diagnosis&) {}},
           {"xtables lock      |/run/xtables.lock: read-only", yellow,
            [](Diagnosis& d) { d.lock.problem = "read-only"; }},
           {"xtables lock      |/run/xtables.lock, held by pid 7", yellow,
            [](Diagnosis& d) { d.lock.holder = "held by pid 7"; }},
           {"legacy tables     |not permitted to read", yellow, [](Diagnosis&) {}},
           {"nf_tables         |none", plain, [](Diagnosis& d) { d.nf_tables.emplace(); }},
           {"routing           |none", plain, [](Diagnosis&) {}},
           {"routing           |ip rule add fwmark 1 lookup 2, ip rule add fwmark 3 lookup 4", plain,
            [](Diagnosis& d) {
              d.routing.policy_rules = {fwmark_rule(Family::ipv4, 1, 2), fwmark_rule(Family::ipv4, 3, 4)};
            }},
       }) {
    Diagnosis d = empty_pod();
    make(d);
    const std::size_t bar = line.find('|');
    const std::string end = color.empty() ? "" : "\033[0m";
    EXPECT_THAT("\n" + diagnosis_text(d, true),
                HasSubstr("\n" + line.substr(0, bar) + color + line.substr(bar + 1) + end + "\n"));
  }
}

// Of a backend that could not be asked the rules are not known; of one that takes a rule for one family it says which.
TEST(Diagnosis, HasAColumnForEachBackend) {
  Diagnosis d = empty_pod();
  d.backends.resize(4);
  d.backends[0].kind = BackendKind::iptables_legacy;
  d.backends[0].problem = "no such table";
  d.backends[1].kind = BackendKind::iptables_nft;
  d.backends[1].features = {{"first", "a", "", true, Families::both(), "", ""},
                            {"second", "b", "worse", false, Family::ipv6, "refused", "load it"}};
  d.backends[1].rules_of_sidecar = 3;
  d.backends[1].rules_of_others = 12;
  d.backends[2].kind = BackendKind::nftables;
  d.backends[2].features = {{"second", "c", "", false, Family::ipv4, "refused", ""},
                            {"third", "d", "", false, {}, "refused", ""}};
  d.backends[2].unchecked = {"whether it rains", "whether it snows"};
  d.backends[3].kind = BackendKind::nftables;
  d.backends[3].problem = "not permitted";
  d.backends[3].permitted = false;
  d.automatic = BackendKind::iptables_nft;
  d.legacy_tables.emplace();
  const std::string text = diagnosis_text(d, false);
  EXPECT_EQ(text.substr(text.find("\n\n") + 1), R"(
                                iptables-legacy  iptables-nft     nftables         nftables
usable                          no               yes              probably         not permitted
rules of the sidecar            ?                3                0                ?
rules of other programs         ?                12               0                ?
first                                            yes
second                                           IPv6 only        IPv4 only
third                                                             no

apply would use iptables-nft.

What is missing, and the consequences
- iptables-legacy cannot be used: no such table
- iptables-nft: no b for IPv4 (refused)
    worse
    to do: load it
- nftables: no c for IPv6 (refused)
- nftables: no d (refused)
- nftables cannot be used: not permitted

What could not be checked
- whether it rains
- whether it snows
)");
  EXPECT_THAT(
      diagnosis_text(d, true),
      ::testing::AllOf(HasSubstr(red + "not permitted\033[0m"), HasSubstr(yellow + "probably\033[0m"),
                       HasSubstr(red + "no\033[0m"), HasSubstr(yellow + "IPv6 only\033[0m"),
                       HasSubstr(yellow + "?\033[0m"), HasSubstr("\n\033[1mWhat could not be checked\033[0m\n")));
}

TEST(Diagnosis, AsJsonHasEveryFact) {
  Diagnosis d = empty_pod();
  d.host.kernel = "6.1";
  d.host.machine = "x86_64";
  d.host.capabilities = {{"CAP_NET_ADMIN", true, false}, {"CAP_NET_RAW", false, true}};
  d.host.user_namespace = {false, true, {{0, 1000, 1}, {1337, 5000, 2}}, {{0, 100000, 1337}}};
  d.host.ipv6 = {true, false, true};
  d.host.loopback_up = false;
  d.host.read_only_root = true;
  d.lock = {"/l", "held", "none"};
  d.backends.resize(2);
  d.backends[0].kind = BackendKind::iptables_legacy;
  d.backends[0].problem = "broken";
  d.backends[0].remedy = "mend it";
  d.backends[1].kind = BackendKind::nftables;
  d.backends[1].features = {{"need", "name", "cost", false, Family::ipv6, "refusal", "remedy"}};
  d.backends[1].unchecked = {"much"};
  d.backends[1].rules_of_sidecar = 3;
  d.backends[1].rules_of_others = 4;
  d.automatic = BackendKind::nftables;
  d.because = "why";
  d.legacy_tables = {"nat (ipv4)"};
  const nlohmann::json said = nlohmann::json::parse(diagnosis_json(d));
  const nlohmann::json expected = nlohmann::json::parse(R"x({
    "host": {"kernel": "6.1", "machine": "x86_64",
             "capabilities": [{"name": "CAP_NET_ADMIN", "effective": true, "bounding": false},
                              {"name": "CAP_NET_RAW", "effective": false, "bounding": true}],
             "user_namespace": {"initial": false, "owns_network_namespace": true,
                                "uids": [{"inside": 0, "outside": 1000, "count": 1},
                                         {"inside": 1337, "outside": 5000, "count": 2}],
                                "gids": [{"inside": 0, "outside": 100000, "count": 1337}],
                                "uid_1337_is_mapped": true, "gid_1337_is_mapped": false},
             "ipv6": {"in_kernel": true, "off": false, "off_on_lo": true},
             "loopback_up": false, "read_only_root": true},
    "lock": {"path": "/l", "holder": "held", "problem": "none"},
    "families": ["ipv4", "ipv6"],
    "backends": [{"backend": "iptables-legacy", "usable": false, "problem": "broken", "remedy": "mend it",
                  "features": [], "unchecked": [], "rules": null},
                 {"backend": "nftables", "usable": true, "problem": "", "remedy": "",
                  "features": [{"name": "name", "available": ["ipv6"], "essential": false, "without": "cost",
                                "refusal": "refusal", "remedy": "remedy"}],
                  "unchecked": ["much"], "rules": {"sidecar": 3, "others": 4}}],
    "automatic": "nftables", "because": "why",
    "tables": {"iptables_legacy": ["nat (ipv4)"], "nf_tables": null},
    "routing": {"rules": [], "routes": [], "addresses": []}})x");
  nlohmann::json without_findings = said;
  without_findings.erase("findings");
  EXPECT_EQ(without_findings, expected) << said.dump(1);
  EXPECT_EQ(said["findings"][2]["what"], "iptables-legacy cannot be used: broken");
  EXPECT_EQ(said["findings"][2]["remedy"], "mend it");
}

}  // namespace
}  // namespace sidetrack
