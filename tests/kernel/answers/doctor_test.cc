// SPDX-License-Identifier: GPL-2.0-or-later
// `doctor` on the real kernel, and what a kernel that lacks something makes of the other commands.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/kernel_test.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/trace.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// A program before ours, and what the kernel lacks.
struct Where {
  Words outer{};
  const char* without = "";
};

class Doctor : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) ip(ns, "link set lo up\n");
  }

  void TearDown() override { unlink(lock.c_str()); }

  [[nodiscard]] Output sidetrack(Words words, const Where& where) const {
    words.insert(words.begin(), program_under_test());
    words.insert(words.begin(), where.outer.begin(), where.outer.end());
    Words environment{"XTABLES_LOCKFILE=" + lock};
    if (*where.without != '\0') {
      environment.emplace_back("LD_PRELOAD=" SIDETRACK_WITHOUT);
      environment.emplace_back(std::string("WITHOUT=") + where.without);
    }
    return ns.program(words, {}, environment);
  }

  // Nothing may change.
  [[nodiscard]] Json diagnosis(const Where& where = {}) const {
    const std::string before = trace(ns);
    const Output output = sidetrack({"doctor", "--json"}, where);
    EXPECT_EQ(output.exit_code, 0);
    EXPECT_EQ(output.err, "");
    EXPECT_EQ(trace(ns), before);
    return Json::parse(output.out);
  }

  void apply(Words options) const {
    options.insert(options.begin(), {"apply", "--ip-families", "ipv4,ipv6", "-b", "*", "-i", "*"});
    const Output output = sidetrack(options, {});
    ASSERT_EQ(output.exit_code, 0) << output.err;
  }

  static std::vector<std::string> findings(const Json& diagnosis) {
    std::vector<std::string> all;
    for (const Json& finding : diagnosis["findings"]) all.push_back(finding["what"]);
    return all;
  }

  Namespace ns;
  std::string lock = absent_lock_file();
};

Json rules(int sidecar, int others) { return {{"sidecar", sidecar}, {"others", others}}; }
constexpr const char* backends[] = {"iptables-legacy", "iptables-nft", "nftables"};
const Words net_admin_alone{"setpriv", "--bounding-set", "-all,+net_admin"};
const Words nobody{"setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--bounding-set", "-all"};

TEST_F(Doctor, OfAFreshNamespaceFindsNothingMissing) {
  const Json d = diagnosis();
  utsname kernel{};
  ASSERT_EQ(uname(&kernel), 0);
  EXPECT_EQ(d["host"]["kernel"], kernel.release);
  EXPECT_THAT(findings(d), IsEmpty());
  EXPECT_EQ(d["automatic"], "iptables-nft");
  EXPECT_EQ(d["tables"]["iptables_legacy"], Json::array());
  EXPECT_EQ(d["tables"]["nf_tables"], Json::array());
  EXPECT_EQ(d["families"], Json({"ipv4", "ipv6"}));
  ASSERT_EQ(d["backends"].size(), 3U);
  for (const Json& backend : d["backends"]) {
    EXPECT_EQ(backend["usable"], true) << backend;
    EXPECT_EQ(backend["rules"], rules(0, 0));
    EXPECT_GE(backend["features"].size(), 10U);
    for (const Json& feature : backend["features"]) EXPECT_EQ(feature["available"], d["families"]) << feature;
    EXPECT_EQ(backend["unchecked"].empty(), backend["backend"] != "iptables-legacy");
  }
  EXPECT_NE(access(lock.c_str(), F_OK), 0) << "a lock file was made";
}

TEST_F(Doctor, SeesWhoseRulesAreWhere) {
  for (std::size_t at = 0; at < 3; ++at) {
    ns = Namespace();
    ip(ns, "link set lo up\n");
    apply({"--backend", backends[at], "-m", "TPROXY"});
    const Json d = diagnosis();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(d["backends"][i]["rules"]["sidecar"] > 0, i == at) << d["backends"][i]["backend"];
      EXPECT_EQ(d["backends"][i]["rules"]["others"], 0);
    }
    EXPECT_EQ(d["routing"]["rules"].size(), 2U);
    constexpr const char* because[] = {"legacy tables are in use here", "",
                                       "nftables holds rules of the sidecar already"};
    EXPECT_EQ(d["automatic"], backends[at]);
    EXPECT_EQ(d["because"], because[at]);
    unlink(lock.c_str());
  }
}

TEST_F(Doctor, SeesOthersRules) {
  ns.must({"iptables-nft", "-t", "nat", "-A", "OUTPUT", "-j", "ACCEPT"});
  ns.must({"nft", "add", "table", "inet", "others"});
  ns.must({"ip6tables-legacy", "-t", "mangle", "-A", "OUTPUT", "-j", "ACCEPT"});
  const Json d = diagnosis();
  EXPECT_EQ(d["backends"][0]["rules"], rules(0, 1));
  EXPECT_EQ(d["backends"][1]["rules"], rules(0, 1));
  EXPECT_EQ(d["tables"]["iptables_legacy"], Json({"mangle (ipv6)"}));
  EXPECT_EQ(d["tables"]["nf_tables"], Json({"inet others", "ip nat"}));
}

TEST_F(Doctor, WithNetAdminAlone) {
  const Json d = diagnosis({.outer = net_admin_alone});
  EXPECT_EQ(d["backends"][0]["usable"], false);
  EXPECT_EQ(d["backends"][1]["usable"], true);
  EXPECT_EQ(d["backends"][2]["usable"], true);
  EXPECT_THAT(findings(d), ::testing::ElementsAre("CAP_NET_RAW is missing"));
  EXPECT_THAT(d["backends"][0]["problem"], HasSubstr("CAP_NET_RAW is missing"));
}

// As apply does, whichever backend it is to take.
TEST_F(Doctor, WithNetAdminAloneBesideLegacyTablesSaysThatApplyRefuses) {
  for (const auto& [table, refuses] : {std::pair("mangle", true), std::pair("security", false)}) {
    ns = Namespace();
    ns.must({"iptables-legacy", "-t", table, "-A", "OUTPUT", "-p", "tcp", "--dport", "9", "-j", "ACCEPT"});
    const Json d = diagnosis({.outer = net_admin_alone});
    EXPECT_EQ(d["automatic"], refuses ? Json() : Json("iptables-nft")) << table;
    for (const char* backend : {"auto", "iptables-nft", "nftables"}) {
      const Output applied =
          sidetrack({"apply", "--ip-families", "ipv4", "-i", "*", "--backend", backend}, {.outer = net_admin_alone});
      EXPECT_EQ(applied.exit_code, refuses ? 4 : 0) << table << " " << backend << applied.err;
    }
  }
}

TEST_F(Doctor, SaysWhichCapabilitiesItHasAndMayGet) {
  const auto said = [](const Json& d) {
    std::vector<std::string> all;
    for (const Json& each : d["host"]["capabilities"]) {
      all.push_back(each["name"].get<std::string>() + (each["effective"].get<bool>() ? ": has it" : ": has not") +
                    (each["bounding"].get<bool>() ? ", may get it" : ", may not"));
    }
    return all;
  };
  const auto remedy = [](const Json& d) { return d["findings"][0]["remedy"].get<std::string>(); };
  EXPECT_THAT(said(diagnosis({})), ::testing::Each(HasSubstr(": has it, may get it")));
  const Json alone = diagnosis({.outer = net_admin_alone});
  EXPECT_THAT(said(alone),
              AllOf(Contains("CAP_NET_ADMIN: has it, may get it"), Contains("CAP_NET_RAW: has not, may not")));
  EXPECT_EQ(remedy(alone), "securityContext.capabilities.add: [NET_RAW]");
  const Json user = diagnosis({.outer = {"setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"}});
  EXPECT_THAT(said(user), ::testing::Each(HasSubstr(": has not, may get it")));
  EXPECT_THAT(remedy(user), HasSubstr("the container allows it: run as root"));
}

TEST_F(Doctor, WithoutAnyCapabilitySaysWhatItCouldNotSee) {
  apply({"--backend", "iptables-legacy"});
  const Json d = diagnosis({.outer = nobody});
  EXPECT_TRUE(d["automatic"].is_null());
  EXPECT_TRUE(d["tables"]["iptables_legacy"].is_null());
  EXPECT_TRUE(d["tables"]["nf_tables"].is_null());
  EXPECT_THAT(findings(d), Contains("CAP_NET_ADMIN is missing"));
  for (const Json& backend : d["backends"]) EXPECT_EQ(backend["usable"], false);
  const Output text = sidetrack({"doctor"}, {.outer = nobody});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("legacy tables     not permitted to read"),
                              HasSubstr("nf_tables         not permitted to read")));
  unlink(lock.c_str());
}

TEST_F(Doctor, WithoutAnyCapabilityShowDoesNotGuess) {
  apply({"--backend", "iptables-nft"});
  for (const Words& words : {Words{"show"}, Words{"explain", "out", "tcp", "192.0.2.1:80"}}) {
    const Output output = sidetrack(words, {.outer = nobody});
    EXPECT_EQ(output.exit_code, 4);
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr("CAP_NET_ADMIN"));
  }
}

TEST_F(Doctor, SeesThatTheProxysIdDoesNotExist) {
  const Json d = diagnosis({.outer = {"unshare", "--user", "--net", "--map-root-user"}});
  EXPECT_EQ(d["host"]["user_namespace"]["initial"], false);
  EXPECT_EQ(d["host"]["user_namespace"]["owns_network_namespace"], true);
  EXPECT_EQ(d["host"]["user_namespace"]["uid_1337_is_mapped"], false);
  EXPECT_EQ(d["host"]["loopback_up"], false);
  EXPECT_THAT(findings(d), AllOf(Contains("user 1337 does not exist in this user namespace"),
                                 Contains("interface lo is down"), Contains(HasSubstr("iptables-nft: no owner (")),
                                 Contains(HasSubstr("iptables-legacy: no owner ("))));
  EXPECT_EQ(d["backends"][1]["usable"], false);
}

TEST_F(Doctor, SeesWhoHoldsTheLock) {
  const FileDescriptor held(open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  EXPECT_THAT(findings(diagnosis()), Contains(HasSubstr("(pid " + std::to_string(getpid()) + ")")));
  const auto without_proc = [&] {
    return diagnosis({.outer = {"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"}});
  };
  EXPECT_EQ(without_proc()["lock"]["holder"], "held by another process");
  ASSERT_EQ(flock(held.get(), LOCK_UN), 0);
  EXPECT_EQ(without_proc()["lock"]["holder"], "");
  EXPECT_THAT(findings(diagnosis()), IsEmpty());
  unlink(lock.c_str());
  lock = "/proc/sidetrack/lock";
  EXPECT_THAT(findings(diagnosis()), Contains(HasSubstr("no lock at /proc/sidetrack/lock")));
}

TEST_F(Doctor, SeesThatIpv6IsOff) {
  set_sysctl(ns, "ipv6/conf/lo/disable_ipv6", "1");
  EXPECT_THAT(findings(diagnosis()), Contains(HasSubstr("IPv6 is off only on lo")));
  set_sysctl(ns, "ipv6/conf/all/disable_ipv6", "1");
  EXPECT_THAT(findings(diagnosis()), IsEmpty());
  EXPECT_EQ(diagnosis()["host"]["ipv6"]["off"], true);
}

// ---- A kernel that lacks something.

struct Missing {
  const char* names;  // for preload/without.cc
  std::vector<const char*> findings;
  bool usable;
};

TEST_F(Doctor, SeesWhatTheKernelLacksAndWhatItCosts) {
  const Missing rows[] = {
      {"TPROXY,tproxy", {"iptables-legacy: no TPROXY (", "iptables-nft: no TPROXY (", "nftables: no tproxy ("}, true},
      {"REDIRECT,redir",
       {"iptables-legacy: no REDIRECT (", "iptables-nft: no REDIRECT (", "nftables: no redir ("},
       false},
      {"owner", {"iptables-legacy: no owner (", "iptables-nft: no owner ("}, false},
      {"multiport", {"iptables-legacy: no multiport (", "iptables-nft: no multiport ("}, true},
      {"conntrack,ct",
       {"iptables-legacy: no conntrack (", "iptables-nft: no conntrack (", "nftables: no ct state (",
        "nftables: no ct mark (", "nftables: no ct zone set ("},
       true},
      {"connmark", {"iptables-legacy: no connmark (", "iptables-nft: no connmark ("}, true},
      {"CONNMARK", {"iptables-legacy: no CONNMARK (", "iptables-nft: no CONNMARK ("}, true},
      {"mark", {"iptables-legacy: no mark ("}, true},  // native in iptables-nft
      {"MARK", {"iptables-legacy: no MARK (", "iptables-nft: no MARK ("}, true},
      {"CT", {"iptables-legacy: no CT (", "iptables-nft: no CT ("}, true},
  };
  for (const Missing& row : rows) {
    const Json d = diagnosis({.outer = {}, .without = row.names});
    std::vector<std::string> found;
    for (const std::string& what : findings(d)) {
      if (what.find(": no ") != std::string::npos) found.push_back(what.substr(0, what.find('(') + 1));
    }
    std::vector<std::string> expected(row.findings.begin(), row.findings.end());
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    // "ct mark set" is missing where ct is.
    if (std::string_view(row.names) == "conntrack,ct") std::erase(found, "nftables: no ct mark set (");
    EXPECT_EQ(found, expected) << row.names;
    EXPECT_EQ(d["backends"][1]["usable"], row.usable) << row.names;
    for (const Json& finding : d["findings"]) {
      EXPECT_NE(finding["cost"], "") << finding;
      EXPECT_THAT(finding["remedy"], HasSubstr("modprobe")) << finding;
    }
  }
}

TEST_F(Doctor, AutomaticChoiceTakesWhatTheKernelHas) {
  EXPECT_EQ(diagnosis({.outer = {}, .without = "owner"})["automatic"], "nftables");
  EXPECT_TRUE(diagnosis({.outer = {}, .without = "REDIRECT,redir"})["automatic"].is_null());
}

TEST_F(Doctor, ApplyNamesWhatEachBackendLacks) {
  const std::string before = trace(ns);
  const Output output =
      sidetrack({"apply", "--ip-families", "ipv4", "-b", "*", "-i", "*"}, {.outer = {}, .without = "REDIRECT,redir"});
  EXPECT_EQ(output.exit_code, 3);
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("\n  iptables-nft: "), HasSubstr("target 'REDIRECT'"), HasSubstr("xt_REDIRECT"),
                    HasSubstr("\n  nftables: "), HasSubstr("expression 'redir'"), HasSubstr("nft_redir"),
                    HasSubstr("\n  iptables-legacy: "), HasSubstr("no target 'REDIRECT'")));
  EXPECT_EQ(trace(ns), before);
  unlink(lock.c_str());
  const Output fallen_back =
      sidetrack({"apply", "--ip-families", "ipv4", "-b", "*", "-i", "*"}, {.outer = {}, .without = "owner"});
  EXPECT_EQ(fallen_back.exit_code, 0) << fallen_back.err;
  EXPECT_THAT(fallen_back.err, HasSubstr("through nftables"));
}

// ---- What looks leaves no trace, and so does what fails.

TEST_F(Doctor, LookingAndFailingLeaveNoTrace) {
  const Words plan{"--ip-families", "ipv4,ipv6", "-b", "*", "-i", "*"};
  const auto with_plan = [&](Words words) {
    words.insert(words.end(), plan.begin(), plan.end());
    return words;
  };
  for (const char* programmed : {"", "iptables-legacy", "iptables-nft", "nftables"}) {
    ns = Namespace();
    ip(ns, "link set lo up\n");
    if (*programmed != '\0') apply({"--backend", programmed, "-p", "15002"});
    unlink(lock.c_str());
    const std::string before = trace(ns);
    EXPECT_EQ(sidetrack({"doctor"}, {}).exit_code, 0);
    EXPECT_EQ(sidetrack(with_plan({"render"}), {}).exit_code, 0);
    EXPECT_EQ(sidetrack(with_plan({"verify"}), {}).exit_code, 6);
    EXPECT_EQ(sidetrack(with_plan({"diff"}), {}).exit_code, 6);
    EXPECT_EQ(sidetrack(with_plan({"apply", "--check"}), {}).exit_code, 0);
    for (const char* backend : {"iptables-nft", "nftables"}) {
      EXPECT_EQ(
          sidetrack(with_plan({"apply", "--backend", backend}), {.outer = {}, .without = "REDIRECT,redir"}).exit_code,
          3);
    }
    EXPECT_EQ(trace(ns), before) << programmed;
    // What may have to remove legacy rules reads them under their lock.
    if (std::string_view(programmed) != "iptables-legacy") {
      EXPECT_NE(access(lock.c_str(), F_OK), 0) << "a lock file was made";
    }
  }
}

}  // namespace
}  // namespace sidetrack::netns
