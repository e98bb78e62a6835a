// SPDX-License-Identifier: GPL-2.0-or-later
// Rules for a cgroup: of a packet whose cgroup is given, of one whose cgroup is not known, and of all packets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/host.h"
#include "mesh/plan.h"
#include "model/error.h"
#include "render/map.h"
#include "rule/iptables.h"
#include "space/regions.h"
#include "text/read_rule.h"
#include "unit/usual_config.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;

class Bypassing : public ::testing::Test {
 protected:
  Bypassing() {
    Config config = injected();
    config.bypass_cgroups = {{"a/b", 5}};
    plan_ = plan(config, {});
  }
  [[nodiscard]] Outcome end(const std::optional<std::string>& cgroup, BackendKind backend) const {
    Packet packet;
    packet.destination = Address::parse("198.51.100.1");
    packet.destination_port = 80;
    packet.owner = Owner{1000, 1000};
    packet.cgroup = cgroup;
    const Live live = as_live(plan_.ruleset, backend);
    return explain(packet, assumed_pod(plan_), {&live, 1}).outcome;
  }
  Plan plan_;
};

TEST_F(Bypassing, IsOfTheCgroupAndThoseBelow) {
  for (const BackendKind backend : all_backends) {
    for (const char* cgroup : {"a/b", "a/b/c"}) EXPECT_EQ(end(cgroup, backend).kind, Outcome::Kind::leaves) << cgroup;
    for (const char* cgroup : {"", "a", "a/bc", "b", "x/a/b"})
      EXPECT_EQ(end(cgroup, backend).kind, Outcome::Kind::lands) << cgroup;
  }
}

TEST_F(Bypassing, CannotBeKnownWithoutOne) {
  const Outcome outcome = end({}, BackendKind::iptables_nft);
  EXPECT_EQ(outcome.kind, Outcome::Kind::unknown);
}

TEST_F(Bypassing, IsAFieldOfTheMap) {
  std::vector<space::Side> sides;
  sides.push_back({assumed_pod(plan_), {as_live(plan_.ruleset, BackendKind::iptables_nft)}});
  space::Regions regions(std::move(sides));
  EXPECT_THAT(map_text(regions, 0, {.families = Family::ipv4}), HasSubstr("sent from cgroup a/b"));
}

// Where few are captured, they are named by what they are not.
TEST_F(Bypassing, AllOthersAreNamedByIt) {
  Config config = injected();
  config.bypass_cgroups = {{"a/b", 5}};
  config.outbound_ranges = {};
  config.redirect_dns = true;
  HostFacts facts;
  facts.dns_servers = {*Address::parse("10.96.0.10")};
  const Plan few = plan(config, facts);
  std::vector<space::Side> sides;
  sides.push_back({assumed_pod(few), {as_live(few.ruleset, BackendKind::iptables_nft)}});
  space::Regions regions(std::move(sides));
  EXPECT_THAT(map_text(regions, 0, {.families = Family::ipv4}), HasSubstr("sent from any cgroup but a/b"));
}

TEST(CgroupMatch, OfAnUnknownPathIsNeverEqualToAPath) {
  const CgroupMatch unknown{"", 5, false};
  EXPECT_EQ(unknown, (CgroupMatch{"", 5, false}));
  EXPECT_NE(unknown, (CgroupMatch{"", 6, false}));
  EXPECT_NE(unknown, (CgroupMatch{"a", 5, false}));
  EXPECT_EQ((CgroupMatch{"a", 5, false}), (CgroupMatch{"a", 0, false}));
  EXPECT_EQ(iptables_words(Match(unknown)), "[cgroup 5, whose path is not known]");
}

TEST(FindCgroup, SaysWhatIsWrong) {
  Config config = usual();
  config.bypass_cgroups = {{"a"}};
  Host host;
  host.addresses = [] { return std::vector<Address>{*Address::parse("10.0.0.1")}; };
  host.cgroup = [](const std::string& path) { return FoundCgroup{path, 0, "no such cgroup below /x"}; };
  try {
    (void)gather(config, {}, host);
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "--bypass-cgroup: 'a': no such cgroup below /x");
  }
  host.may_lack_addresses = true;  // a dry run
  (void)gather(config, {}, host);
  host.cgroup = [](const std::string&) { return FoundCgroup{"b", 7, ""}; };
  (void)gather(config, {}, host);
  EXPECT_EQ(config.bypass_cgroups, (std::vector<Cgroup>{{"b", 7}}));
}

}  // namespace
}  // namespace sidetrack
