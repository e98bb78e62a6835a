// SPDX-License-Identifier: GPL-2.0-or-later
// What a dump of nf_tables says: which tables are iptables', whose the rules are, and what goes with them.
#include <gmock/gmock.h>
#include <linux/netfilter/nf_tables.h>

#include "kernel/nft/nf_tables.h"
#include "mesh/istio_rules.h"
#include "unit/kernel/round_trip.h"

namespace sidetrack::nft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const HookPoint output_of_nat{Hook::output, -100, ChainType::nat, {}};
const std::vector<Match> tcp{ProtocolMatch{Protocol::tcp, false}};

KernelRule written(const char* chain, std::vector<Match> matches, Target target, std::string comment = "") {
  const Rule rule{Family::ipv4, Table::nat, chain, std::move(matches), std::move(target), {}, {}};
  return {1, bytes_of(iptables_rule(rule, Family::ipv4).expressions), std::move(comment)};
}

// meta l4proto FIRST-LAST jump ISTIO_OUTPUT: as many rules of iptables.
KernelRule of_protocols(std::uint64_t handle, std::uint8_t first, std::uint8_t last) {
  const std::vector<Expression> expressions{MetaLoad{NFT_META_L4PROTO},
                                            CompareRange{false, Data::host(first), Data::host(last)},
                                            Decide{NFT_JUMP, "ISTIO_OUTPUT"}};
  return {handle, bytes_of(expressions), ""};
}

KernelTable table(std::uint8_t family, const char* name, std::vector<KernelChain> chains) {
  KernelTable made;
  made.key = {family, name};
  made.chains = std::move(chains);
  made.uses = static_cast<std::uint32_t>(made.chains.size());
  return made;
}

// As Istio leaves them.
KernelTable istios(Verdict policy = Verdict::accept) {
  return table(NFPROTO_IPV4, "nat",
               {{"OUTPUT", output_of_nat, {}, policy, {written("OUTPUT", tcp, Jump{"ISTIO_OUTPUT"})}},
                {"ISTIO_OUTPUT", {}, {}, Verdict::accept, {written("ISTIO_OUTPUT", {}, Verdict::return_)}}});
}

Live live(std::vector<KernelTable> tables) { return iptables_live({7, std::move(tables)}, {}, istio_rules); }

// "ip nat OUTPUT ours: -p tcp -j X*", * marks what is ours.
std::vector<std::string> listed(const Live& live) {
  std::vector<std::string> lines;
  for (const LiveChain& chain : live.chains) {
    std::string line = chain.table_name + " " + chain.name + (chain.ours ? " ours" : "") +
                       (chain.dormant ? " dormant" : "") + (chain.policy == Verdict::drop ? " drops" : "") + ":";
    for (const LiveRule& each : chain.rules) {
      EXPECT_EQ(each.rule.chain, chain.name);
      EXPECT_EQ(each.rule.families, chain.families);
      const std::string words = iptables_words(each.rule);
      line += words.substr(words.find(' ', 3)) + (each.ours ? "*" : "");
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(Dump, TablesOfIptablesAreKnownByTheirNames) {
  for (const char* name : {"raw", "mangle", "nat", "filter", "security"}) {
    for (const std::uint8_t family : {NFPROTO_IPV4, NFPROTO_IPV6}) {
      EXPECT_TRUE(is_of_iptables({family, name})) << name;
      EXPECT_FALSE(is_native({family, name})) << name;
    }
    for (const std::uint8_t family : {NFPROTO_INET, NFPROTO_NETDEV, NFPROTO_ARP, NFPROTO_BRIDGE}) {
      EXPECT_FALSE(is_of_iptables({family, name})) << name;
      EXPECT_TRUE(is_native({family, name})) << name;
    }
  }
  EXPECT_FALSE(is_of_iptables({NFPROTO_IPV4, "other"}));
  EXPECT_TRUE(is_native({NFPROTO_IPV4, "other"}));
  EXPECT_FALSE(is_native({NFPROTO_DECNET, "other"})) << "no packet of a pod passes it";
}

TEST(Dump, WhatIsIstiosInTheTablesOfIptables) {
  KernelTable filter = table(NFPROTO_IPV6, "filter",
                             {{"FORWARD",
                               HookPoint{Hook::forward, 0, ChainType::filter, {}},
                               {},
                               Verdict::drop,
                               {written("FORWARD", tcp, Verdict::accept, "why")}},
                              {"ISTIO_OUTPUT", {}, {}, Verdict::accept, {}}});
  filter.flags = NFT_TABLE_F_DORMANT;
  const Live read = live({filter, istios(), table(NFPROTO_INET, "nat", {{"c", {}, {}, Verdict::accept, {}}})});
  EXPECT_EQ(read.backend, BackendKind::iptables_nft);
  EXPECT_EQ(read.generation, 7U);
  EXPECT_THAT(listed(read), ElementsAre("ip nat OUTPUT: -p tcp -j ISTIO_OUTPUT*",  //
                                        "ip nat ISTIO_OUTPUT ours: -j RETURN*",
                                        "ip6 filter FORWARD dormant drops: -p tcp -m comment --comment why -j ACCEPT",
                                        "ip6 filter ISTIO_OUTPUT dormant:"))
      << "those that are written to stand first";
  EXPECT_EQ(read.chains[0].hook, output_of_nat);
  EXPECT_EQ(read.chains[2].table, Table::filter);
  EXPECT_THAT(read.own_tables, ElementsAre("ip nat"));
  std::vector<std::string> names;
  for (const LiveTable& each : read.tables) names.push_back(each.name + (each.dormant ? " dormant" : ""));
  EXPECT_THAT(names, ElementsAre("ip6 filter dormant", "ip nat"));
}

// It goes with the rules only if nothing else is in it.
TEST(Dump, ATableIsOursIfItHoldsNothingElse) {
  EXPECT_THAT(live({istios()}).own_tables, ElementsAre("ip nat"));
  EXPECT_THAT(live({istios(Verdict::drop)}).own_tables, IsEmpty());
  EXPECT_THAT(live({table(NFPROTO_IPV4, "nat", {})}).own_tables, ElementsAre("ip nat"));
  KernelTable with_a_set = istios();
  ++with_a_set.uses;
  EXPECT_THAT(live({with_a_set}).own_tables, IsEmpty());
  KernelTable with_another_rule = istios();
  with_another_rule.chains[0].rules.push_back(written("OUTPUT", tcp, Verdict::drop));
  EXPECT_THAT(live({with_another_rule}).own_tables, IsEmpty());
  KernelTable elsewhere = istios();
  elsewhere.chains[0].hook->priority = 5;
  EXPECT_THAT(live({elsewhere}).own_tables, IsEmpty());
  KernelTable with_another_chain = istios();
  with_another_chain.chains.push_back({"OTHERS", {}, {}, Verdict::accept, {}});
  ++with_another_chain.uses;
  EXPECT_THAT(live({with_another_chain}).own_tables, IsEmpty());
  EXPECT_THAT(live({with_another_chain, table(NFPROTO_IPV6, "nat", {})}).own_tables, ElementsAre("ip6 nat"));
  EXPECT_THAT(live({table(NFPROTO_IPV4, "filter", {})}).own_tables, IsEmpty());
}

// A rule that is several of iptables is none that we write, though one of them may look so.
TEST(Dump, ADividedRuleIsNotOurs) {
  KernelTable nat = istios();
  KernelRule last = nat.chains[0].rules.front();
  last.handle = 4;
  nat.chains[0].rules.push_back(of_protocols(2, 6, 7));
  nat.chains[0].rules.push_back(of_protocols(3, 5, 6));
  nat.chains[0].rules.push_back(last);
  EXPECT_THAT(listed(live({nat})),
              ElementsAre("ip nat OUTPUT: -p tcp -j ISTIO_OUTPUT* -p tcp -j ISTIO_OUTPUT -p 7 -j ISTIO_OUTPUT -p 5 -j "
                          "ISTIO_OUTPUT -p tcp -j ISTIO_OUTPUT -p tcp -j ISTIO_OUTPUT*",
                          "ip nat ISTIO_OUTPUT ours: -j RETURN*"));
}

TEST(Dump, WhatIsSaidOfATable) {
  KernelTable one = table(NFPROTO_INET, "t", {{"a", {}, {}, Verdict::accept, {}}, {"b", {}, {}, Verdict::accept, {}}});
  one.sets["s"] = {};
  one.uses = 3;
  one.jumps = {{"m", "a"}};
  EXPECT_EQ(live_table(one), (LiveTable{"inet t", false, false, 0, false, {{"m", "a"}}}));
  one.uses = 4;
  one.flags = NFT_TABLE_F_DORMANT;
  one.owner = 99;
  EXPECT_EQ(live_table(one), (LiveTable{"inet t", true, false, 99, true, {{"m", "a"}}}));
  one.flags = 4;  // NFT_TABLE_F_PERSIST
  one.jumps.clear();
  EXPECT_EQ(live_table(one), (LiveTable{"inet t", false, true, 99, true, {}}));
}

// A chain at several devices is as many chains; one of another name than Istio's in its own tables is another
// program's.
TEST(Dump, NativeTables) {
  KernelTable devices = table(NFPROTO_NETDEV, "n",
                              {{"c",
                                HookPoint{Hook::ingress, 5, ChainType::filter, {}},
                                {"a", "b", "c"},
                                Verdict::drop,
                                {of_protocols(1, 6, 6)}},
                               {"jumped", {}, {}, Verdict::accept, {}}});
  KernelTable frames =
      table(NFPROTO_ARP, "f",
            {{"c", HookPoint{Hook::input, 0, ChainType::filter, {}}, {}, Verdict::accept, {of_protocols(1, 6, 6)}}});
  KernelTable own = table(NFPROTO_INET, "istio-proxy-nat",
                          {{"output", output_of_nat, {}, Verdict::accept, {}},
                           {"istio-output", {}, {}, Verdict::accept, {of_protocols(1, 6, 6)}},
                           {"others", {}, {}, Verdict::accept, {of_protocols(1, 6, 6)}}});
  // By its name alone a chain at another place is not what iptables has under it.
  KernelTable ours = table(NFPROTO_INET, "sidetrack",
                           {{"nat-OUTPUT", HookPoint{Hook::output, 5, ChainType::nat, {}}, {}, Verdict::accept, {}},
                            {"mangle-OUTPUT", builtin_hook(Table::mangle, "OUTPUT"), {}, Verdict::accept, {}},
                            {"raw-ISTIO_OUTPUT", {}, {}, Verdict::accept, {}},
                            {"others", {}, {}, Verdict::accept, {}}});
  const Live read = native_live({7, {devices, frames, own, ours, istios()}}, istio_rules);
  EXPECT_EQ(read.backend, BackendKind::nftables);
  EXPECT_EQ(read.generation, 7U);
  EXPECT_THAT(read.own_tables, ElementsAre("inet istio-proxy-nat", "inet sidetrack"));
  std::vector<std::string> chains;
  for (const LiveChain& chain : read.chains) {
    chains.push_back(fmt::format("{} {} {}{}{} {}", chain.table_name, chain.name, names(chain.families),
                                 chain.hook ? " " + chain.hook->device : "", chain.ours ? " ours" : "",
                                 name(chain.table)));
  }
  EXPECT_THAT(
      chains,
      ElementsAre("netdev n c ipv4, ipv6 b other", "netdev n c ipv4, ipv6 c other", "netdev n c ipv4, ipv6 a other",
                  "netdev n jumped ipv4, ipv6 other", "arp f c   other",
                  "inet istio-proxy-nat OUTPUT ipv4, ipv6  ours nat",
                  "inet istio-proxy-nat istio-output ipv4, ipv6 ours nat", "inet istio-proxy-nat others ipv4, ipv6 nat",
                  "inet sidetrack nat-OUTPUT ipv4, ipv6  ours nat", "inet sidetrack OUTPUT ipv4, ipv6  ours mangle",
                  "inet sidetrack ISTIO_OUTPUT ipv4, ipv6 ours raw", "inet sidetrack others ipv4, ipv6 nat"));
}

}  // namespace
}  // namespace sidetrack::nft
