// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/catalogue.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "mesh/rule_words.h"

namespace sidetrack {
namespace {

using namespace words;

const AddressRange range = *AddressRange::parse("10.0.0.0/8");

TEST(Catalogue, FillsTheHolesOfARow) {
  const Rule rule = instantiate(MeshRule::virtual_machine_outbound, {in("net1"), destination(range)});
  EXPECT_EQ(
      rule,
      (Rule{Family::ipv4, Table::nat, prerouting, {in("net1"), destination(range)}, Jump{istio_redirect}, {}, {}}));
  EXPECT_EQ(rule.insert_at, 1U);
  EXPECT_EQ(reason_of(rule).flag, "-k net1");
  EXPECT_EQ(reason_of(rule).sentence, "what the virtual machine behind net1 sends to 10.0.0.0/8 is outbound traffic");
  EXPECT_EQ(rule.origin.rule, MeshRule::virtual_machine_outbound);
}

TEST(Catalogue, TakesTheRowWhoseHolesTheValuesFill) {
  EXPECT_TRUE(instantiate(MeshRule::outbound_included_range, {}).matches.empty());
  EXPECT_EQ(reason_of(instantiate(MeshRule::outbound_included_range, {destination(range)})).flag, "-i 10.0.0.0/8");
  EXPECT_THROW((void)instantiate(MeshRule::outbound_excluded_range, {}), std::logic_error);
  EXPECT_THROW((void)instantiate(MeshRule::outbound_included_range, {mark(1)}), std::logic_error);
}

TEST(Catalogue, KnowsARuleOfUsualValuesFromOneOfOthers) {
  const auto id_of = [](const Rule& rule) { return row_of(rule)->id; };
  const Rule loopback = instantiate(MeshRule::loopback_return, {destination(*AddressRange::parse("127.0.0.1/32"))});
  EXPECT_EQ(id_of(loopback), MeshRule::loopback_return);
  const Rule other = instantiate(MeshRule::loopback_return, {destination(range)});
  EXPECT_EQ(id_of(other), MeshRule::outbound_excluded_range);
  EXPECT_EQ(id_of(instantiate(MeshRule::tunnel_port, {dport(15009)})), MeshRule::inbound_excluded_port);
}

TEST(Catalogue, KnowsEarlierVersionsOfARule) {
  const Rule jump{Family::ipv4, Table::nat, output, {tcp}, Jump{istio_output}, {}, {}};
  EXPECT_TRUE(is_of(jump, MeshRule::outbound_jump));
  EXPECT_EQ(row_of(jump)->sentence, std::string("outbound TCP is checked"));
  EXPECT_EQ(row_of({Family::ipv4, Table::nat, output, {udp}, Jump{istio_output}, {}, {}}), nullptr);
}

}  // namespace
}  // namespace sidetrack
