// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/catalogue.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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

// Forty characters of values stand in a flag; of more it is said how many there are.
TEST(Catalogue, SaysHowManyValuesALongListHas) {
  const auto of_ports = [](std::vector<PortRange> ports) {
    return reason_of(
        instantiate(MeshRule::outbound_excluded_port, {tcp, PortMatch{End::destination, std::move(ports), false}}));
  };
  const Reason fits = of_ports({10001, 10003, 10005, 10007, 10009, 10011, 9999});
  EXPECT_EQ(fits.flag, "-o 10001,10003,10005,10007,10009,10011,9999");
  EXPECT_EQ(fits.values.size(), 40U);
  EXPECT_EQ(fits.sentence, "outbound to port 10001, 10003, 10005, 10007, 10009 and 2 more bypasses the proxy");
  EXPECT_EQ(of_ports({10001, 10003, 10005, 10007, 10009, 10011, 10013}).flag, "-o … (7 ports)");
  EXPECT_EQ(of_ports({{10001, 10100}, {20001, 20100}, {30001, 30100}, {40001, 40100}}).flag, "-o … (400 ports)");
  const auto of_ids = [](OwnerKind kind, std::vector<IdRange> ids) {
    return reason_of(instantiate(MeshRule::outbound_excluded_owner, {tcp, OwnerMatch{kind, std::move(ids), false}}));
  };
  EXPECT_EQ(of_ids(OwnerKind::uid, {{0, 4294967294}}).flag, "--exclude-uids 0-4294967294");
  EXPECT_EQ(of_ids(OwnerKind::gid, {1, 2}).flag, "--exclude-gids 1,2");
  EXPECT_EQ(of_ids(OwnerKind::gid, {1, 2}).sentence, "outbound of gid 1, 2 bypasses the proxy");
  EXPECT_EQ(of_ids(OwnerKind::uid, {{0, 4294967293}, {4294967294, 4294967294}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}).flag,
            "--exclude-uids 0-4294967293,4294967294,1,2,3,4");
  EXPECT_EQ(
      of_ids(OwnerKind::uid, {{0, 4294967293}, {4294967294, 4294967294}, {100, 199}, {200, 299}, {3000, 3000}}).flag,
      "--exclude-uids … (4294967496 ids)");
  std::vector<AddressRange> ranges(4, *AddressRange::parse("10.200.0.0/16"));
  EXPECT_EQ(
      reason_of(instantiate(MeshRule::outbound_excluded_range, {AddressMatch{End::destination, ranges, false}})).flag,
      "-x … (4 ranges)");
}

// Of a rule that matches all addresses there is no match: its family says which.
TEST(Catalogue, SaysAllAddressesOfAFamily) {
  for (const auto& [family, words] : {std::pair{Family::ipv4, "0.0.0.0/0"}, {Family::ipv6, "::/0"}}) {
    Rule rule = instantiate(MeshRule::outbound_excluded_range, {destination(range)});
    rule.matches.clear();
    rule.families = family;
    EXPECT_EQ(reason_of(rule).flag, std::string("-x ") + words);
    EXPECT_EQ(reason_of(rule).sentence, std::string("outbound to ") + words + " bypasses the proxy");
  }
}

// A rule of the mesh that was edited by hand, or read without a match that matches everything.
TEST(Catalogue, HasTextsForRulesThatLostAMatch) {
  for (const Row& row : catalogue()) {
    Rule rule{Family::ipv4, row.table, row.chain, {}, row.target, {}, {}};
    if (auto* nat = std::get_if<Nat>(&rule.target); nat != nullptr && !nat->addresses)
      rule.target = source_nat(range.first);
    rule.origin.rule = row.id;
    for (const RowMatch& each : row.matches) rule.matches.push_back(each.match);
    while (!rule.matches.empty()) {
      rule.matches.pop_back();
      EXPECT_EQ(reason_of(rule).sentence.find('{'), std::string::npos) << reason_of(rule).sentence;
    }
  }
  Rule rule = instantiate(MeshRule::tproxy_restore_mark, {ConnmarkMatch{1, 0xff, false}});
  EXPECT_EQ(reason_of(rule).flag, "-t 1");
  rule.matches = {tcp};
  EXPECT_EQ(reason_of(rule).flag, "-t any");
  rule = instantiate(MeshRule::outbound_excluded_port, {tcp, dport(22)});
  rule.matches.clear();
  EXPECT_EQ(reason_of(rule).sentence, "outbound to port any bypasses the proxy");
}

TEST(Catalogue, KnowsEarlierVersionsOfARule) {
  const Rule jump{Family::ipv4, Table::nat, output, {tcp}, Jump{istio_output}, {}, {}};
  EXPECT_TRUE(is_of(jump, MeshRule::outbound_jump));
  EXPECT_EQ(row_of(jump)->sentence, std::string("outbound TCP is checked"));
  EXPECT_EQ(kind_of({Family::ipv4, Table::nat, output, {udp}, Jump{istio_output}, {}, {}}), MeshRule::dns_zone_jump);
  EXPECT_EQ(row_of({Family::ipv4, Table::nat, output, {except(tcp)}, Jump{istio_output}, {}, {}}), nullptr);
}

}  // namespace
}  // namespace sidetrack
