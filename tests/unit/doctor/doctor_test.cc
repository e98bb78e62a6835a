// SPDX-License-Identifier: GPL-2.0-or-later
// What `doctor` makes of the facts.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "render/render.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Feature feature(const char* need, const char* name, Families available = Families::both(), bool essential = false) {
  return {need,
          name,
          std::string("without ") + name + " no mesh",
          essential,
          available,
          available == Families::both() ? "" : "the kernel lacks it",
          available == Families::both() ? "" : "modprobe it"};
}

// A pod in which all is well.
Diagnosis healthy() {
  Diagnosis d;
  d.host.kernel = "6.1.0-18-amd64";
  d.host.machine = "x86_64";
  d.host.capabilities = {{"CAP_NET_ADMIN", true, true}, {"CAP_NET_RAW", true, true}, {"CAP_SYS_ADMIN", false, false}};
  d.host.user_namespace = {true, true, {{0, 0, 4294967295}}, {{0, 0, 4294967295}}};
  d.host.ipv6 = {true, false, false};
  d.lock = {"/run/xtables.lock", "", ""};
  d.families = Families::both();
  d.backends.resize(3);
  d.backends[0].kind = BackendKind::iptables_legacy;
  d.backends[0].features = {feature("owner, meta skuid", "owner", Families::both(), true),
                            feature("TPROXY, tproxy", "TPROXY")};
  d.backends[0].unchecked = {"whether it has a table"};
  d.backends[1] = d.backends[0];
  d.backends[1].kind = BackendKind::iptables_nft;
  d.backends[1].unchecked.clear();
  d.backends[1].rules_of_sidecar = 18;
  d.backends[1].rules_of_others = 2;
  d.backends[2].kind = BackendKind::nftables;
  d.backends[2].features = {feature("owner, meta skuid", "meta skuid", Families::both(), true),
                            feature("TPROXY, tproxy", "tproxy"), feature("nat in inet", "nat in inet")};
  d.automatic = BackendKind::iptables_nft;
  d.legacy_tables.emplace();
  d.nf_tables = {"inet filter", "ip nat"};
  d.routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133)};
  return d;
}

TEST(DoctorTest, APageThatIsReadAtAGlance) {
  EXPECT_THAT(findings(healthy()), IsEmpty());
  EXPECT_EQ(diagnosis_text(healthy(), false), R"(kernel            Linux 6.1.0-18-amd64 x86_64
capabilities      CAP_NET_ADMIN, CAP_NET_RAW
user namespace    the initial one
root              writable
IPv6              on
lo                up
xtables lock      /run/xtables.lock, free
legacy tables     none
nf_tables         inet filter, ip nat
routing           ip rule add fwmark 1337 lookup 133

                                iptables-legacy  iptables-nft     nftables
usable                          probably         yes              yes
rules of the sidecar            0                18               0
rules of other programs         0                2                0
owner, meta skuid               yes              yes              yes
TPROXY, tproxy                  yes              yes              yes
nat in inet                                                       yes

apply would use iptables-nft.

What could not be checked
- whether it has a table
)");
}

TEST(DoctorTest, ColoursTakeNoPlace) {
  std::string text = diagnosis_text(healthy(), true);
  EXPECT_THAT(text, HasSubstr("\033[32myes\033[0m"));
  for (std::size_t at; (at = text.find('\033')) != std::string::npos;) text.erase(at, text.find('m', at) - at + 1);
  EXPECT_EQ(text, diagnosis_text(healthy(), false));
}

// Without CAP_NET_ADMIN nothing else helps.
TEST(DoctorTest, CapabilitiesAreRedWithoutTheOneThatMatters) {
  Diagnosis d = healthy();
  EXPECT_THAT(diagnosis_text(d, true), HasSubstr("\033[32mCAP_NET_ADMIN, CAP_NET_RAW\033[0m"));
  d.host.capabilities[1].effective = false;
  EXPECT_THAT(diagnosis_text(d, true), HasSubstr("\033[32mCAP_NET_ADMIN\033[0m"));
  d.host.capabilities = healthy().host.capabilities;
  d.host.capabilities[0].effective = false;
  EXPECT_THAT(diagnosis_text(d, true), HasSubstr("\033[31mCAP_NET_RAW\033[0m"));
}

TEST(DoctorTest, WhatIsMissingCostsSomething) {
  Diagnosis d = healthy();
  d.backends[1].features[1] = feature("TPROXY, tproxy", "TPROXY", {});
  d.backends[2].features[1] = feature("TPROXY, tproxy", "tproxy", Family::ipv4);
  EXPECT_THAT(diagnosis_text(d, false),
              AllOf(HasSubstr("TPROXY, tproxy                  yes              no               IPv4 only\n"),
                    HasSubstr("usable                          probably         yes              yes\n"),
                    HasSubstr("- iptables-nft: no TPROXY (the kernel lacks it)\n"
                              "    without TPROXY no mesh\n"
                              "    to do: modprobe it\n"
                              "- nftables: no tproxy for IPv6 (the kernel lacks it)\n")));
}

TEST(DoctorTest, WithoutSomethingEssentialABackendIsOfNoUse) {
  Diagnosis d = healthy();
  d.backends[1].features[0].available = Family::ipv4;
  EXPECT_TRUE(usable(d.backends[1]));
  d.backends[1].features[0].available = {};
  EXPECT_FALSE(usable(d.backends[1]));
  d.automatic = BackendKind::iptables_legacy;
  d.because = "legacy tables are in use here";
  EXPECT_THAT(diagnosis_text(d, false),
              AllOf(HasSubstr("usable                          probably         no "),
                    HasSubstr("apply would use iptables-legacy (legacy tables are in use here).\n")));
  d.automatic.reset();
  EXPECT_THAT(diagnosis_text(d, false), HasSubstr("No usable backend.\n"));
}

// The capability says it: three backends that say it again would hide the rest.
TEST(DoctorTest, AMissingCapabilityIsToldOnce) {
  Diagnosis d = healthy();
  d.host.capabilities[0] = {"CAP_NET_ADMIN", false, true};
  d.host.capabilities[1] = {"CAP_NET_RAW", false, false};
  d.legacy_tables.reset();
  for (BackendState& backend : d.backends) {
    backend.problem = "not permitted to you";
    backend.permitted = false;
    backend.features.clear();
  }
  EXPECT_THAT(findings(d), ElementsAre(AllOf(Field(&Finding::what, "CAP_NET_ADMIN is missing"),
                                             Field(&Finding::remedy, HasSubstr("run as root"))),
                                       AllOf(Field(&Finding::what, "CAP_NET_RAW is missing"),
                                             Field(&Finding::cost, HasSubstr("apply refuses, whichever backend")),
                                             Field(&Finding::remedy, "securityContext.capabilities.add: [NET_RAW]"))));
  EXPECT_THAT(diagnosis_text(d, false),
              AllOf(HasSubstr("usable                          not permitted    not permitted    not permitted\n"),
                    HasSubstr("rules of the sidecar            ?                ?                ?\n"),
                    HasSubstr("legacy tables     not permitted to read\n"), Not(HasSubstr("to you"))));
  // Where nothing else explains it, it is told.
  d.host.capabilities = healthy().host.capabilities;
  EXPECT_EQ(findings(d).size(), 3U);
}

// Tables that Sidetrack writes to may hold rules of a sidecar; of others it does not matter.
TEST(DoctorTest, LegacyTablesThatMayNotBeReadKeepApplyFromAll) {
  Diagnosis d = healthy();
  d.host.capabilities[1] = {"CAP_NET_RAW", false, false};
  d.backends[0].problem = "not permitted to you";
  d.backends[0].permitted = false;
  const char* refuses = "apply would refuse: what legacy iptables holds cannot be seen.";
  const auto cost = [&] { return findings(d).at(0).cost; };
  for (const char* table : {"mangle (ipv4)", "nat (ipv6)", "raw (ipv4)"}) {
    d.legacy_tables = {"filter (ipv4)", table};
    EXPECT_THAT(diagnosis_text(d, false), HasSubstr(refuses)) << table;
    EXPECT_THAT(cost(), HasSubstr("apply refuses")) << table;
  }
  d.legacy_tables = {"filter (ipv4)", "security (ipv4)"};
  EXPECT_THAT(diagnosis_text(d, false), HasSubstr("apply would use iptables-nft."));
  EXPECT_EQ(cost(), "iptables-legacy cannot be used; the nf_tables backends do not need it");
  d.legacy_tables = {"mangle (ipv4)"};
  d.backends[0].permitted = true;  // it cannot be used for another reason
  EXPECT_THAT(diagnosis_text(d, false), HasSubstr("apply would use iptables-nft."));
}

TEST(DoctorTest, IdsThatDoNotExistAreNamed) {
  Diagnosis d = healthy();
  d.host.user_namespace = {false, true, {{0, 100000, 1337}}, {{0, 100000, 1338}}};
  EXPECT_THAT(findings(d), ElementsAre(Field(&Finding::what, "user 1337 does not exist in this user namespace")));
  EXPECT_THAT(diagnosis_text(d, false), HasSubstr("user namespace    uid or gid 1337 is not mapped\n"));
  d.host.user_namespace.owns_network_namespace = false;
  EXPECT_THAT(findings(d).front().remedy, HasSubstr("--pid"));
}

TEST(DoctorTest, IdsAreMappedFromTheFirstToTheLast) {
  const std::vector<IdMapping> ids = {{0, 1000, 1}, {1337, 5000, 2}};
  for (std::uint32_t id : {0U, 1337U, 1338U}) EXPECT_TRUE(is_mapped(ids, id)) << id;
  for (std::uint32_t id : {1U, 1336U, 1339U}) EXPECT_FALSE(is_mapped(ids, id)) << id;
}

TEST(DoctorTest, TheLockMattersToLegacyAlone) {
  Diagnosis d = healthy();
  d.lock.problem = "Read-only file system (EROFS)";
  EXPECT_THAT(findings(d), ElementsAre(Field(&Finding::what,
                                             "no lock at /run/xtables.lock: Read-only file system "
                                             "(EROFS)")));
  d.backends[0].features[0].available = {};
  for (const Finding& finding : findings(d)) EXPECT_THAT(finding.what, Not(HasSubstr("lock")));
  d = healthy();
  d.lock.holder = "held by iptables (pid 4711)";
  EXPECT_THAT(findings(d), ElementsAre(Field(&Finding::what, "/run/xtables.lock is held by iptables (pid 4711)")));
}

TEST(DoctorTest, Ipv6IsMissedOnlyWhereAddressesAre) {
  Diagnosis d = healthy();
  d.host.ipv6 = {true, true, true};
  EXPECT_THAT(findings(d), IsEmpty());
  d.host.ipv6 = {true, false, true};
  EXPECT_THAT(findings(d), ElementsAre(Field(&Finding::cost, HasSubstr("::6"))));
}

TEST(DoctorTest, AsJson) {
  Diagnosis d = healthy();
  d.backends[1].features[1] = feature("TPROXY, tproxy", "TPROXY", {});
  d.nf_tables.reset();
  const auto json = nlohmann::json::parse(diagnosis_json(d));
  EXPECT_EQ(json["host"]["kernel"], "6.1.0-18-amd64");
  EXPECT_EQ(json["host"]["capabilities"][2]["effective"], false);
  EXPECT_EQ(json["host"]["user_namespace"]["uid_1337_is_mapped"], true);
  EXPECT_EQ(json["automatic"], "iptables-nft");
  EXPECT_EQ(json["backends"][1]["rules"]["others"], 2);
  EXPECT_EQ(json["backends"][1]["features"][1]["available"], nlohmann::json::array());
  EXPECT_EQ(json["findings"][0]["what"], "iptables-nft: no TPROXY (the kernel lacks it)");
  EXPECT_EQ(json["tables"]["iptables_legacy"], nlohmann::json::array());
  EXPECT_TRUE(json["tables"]["nf_tables"].is_null());
  EXPECT_EQ(json["routing"]["rules"][0]["fwmark"], 1337);
}

}  // namespace
}  // namespace sidetrack
