// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/other_meshes.h"

#include <gtest/gtest.h>

#include "mesh/describe.h"
#include "mesh/rule_words.h"
#include "options/flags.h"
#include "options/options.h"

namespace sidetrack {
namespace {

Rule rule(const char* chain, Target target) {
  Rule made;
  made.chain = chain;
  made.target = std::move(target);
  return made;
}

TEST(OtherMeshes, AreKnownByTheirChains) {
  EXPECT_EQ(mesh_of_rule(rule("OUTPUT", Jump{"PROXY_INIT_OUTPUT"})), "Linkerd");
  EXPECT_EQ(mesh_of_rule(rule("KUMA_MESH_INBOUND", Verdict::return_)), "Kuma");
  EXPECT_EQ(mesh_of_rule(rule("MESH_OUTBOUND", Verdict::return_)), "Kuma");
  EXPECT_EQ(mesh_of_rule(rule("OUTPUT", Jump{"ISTIO_OUTPUT"})), "");
  EXPECT_EQ(mesh_of_rule(rule("OUTPUT", Jump{"PROXY"})), "");
  EXPECT_EQ(mesh_of_rule(rule("MIRRORD_INPUT_a1B2c", Redirect{1})), "mirrord");
  EXPECT_EQ(mesh_of_rule(rule("MESH_REDIRECT", Redirect{1})), "Kuma");
  EXPECT_EQ(mesh_of_rule(rule("POLARIS_OUTPUT", Redirect{1})), "Polaris");
  EXPECT_EQ(mesh_of_rule(rule("CILIUM_POST_nat", Redirect{1})), "Cilium");
  for (const char* chain : {"MRDSTD_a1B2c", "MRDIN_0a1b2c3d4e5f", "MRD_ROUTE_LOCALNET", "MIRRORD_EXCLUDE_FROM_MESH"})
    EXPECT_EQ(mesh_of_rule(rule(chain, Redirect{1})), "mirrord") << chain;
  for (const char* chain : {"TEL_INBOUND_TCP", "TEL_PREROUTING_UDP", "TEL_OUTPUT_TCP", "TEL_MESH_BYPASS"})
    EXPECT_EQ(mesh_of_rule(rule(chain, Redirect{1})), "Telepresence") << chain;
  for (const char* nearly :
       {"MESH_TEST", "MESH_", "KUMA_MESH_INBOUND_", "MIRRORD_INPUT_a1B2", "MRDSTD_a1B2-", "MRDSTD_", "MRD_STD_a",
        "CILIUM_", "TEL_INBOUND_X", "TEL_MESH", "APISIX_CUSTOM", "POLARIS_OUTPUT2"})
    EXPECT_EQ(mesh_of_rule(rule(nearly, Redirect{1})), "") << nearly;
  Rule commented = rule("OUTPUT", Redirect{15053});
  EXPECT_EQ(mesh_of_rule(commented), "");
  commented.matches.emplace_back(CommentMatch{"kuma/mesh/transparent/proxy/redirect"});
  EXPECT_EQ(mesh_of_rule(commented), "Kuma");
  EXPECT_EQ(port_name(15053, commented), "Kuma DNS");
}

TEST(OtherMeshes, NameTheirPorts) {
  EXPECT_EQ(port_name(4140, rule("PROXY_INIT_OUTPUT", Redirect{4140})), "Linkerd outbound");
  EXPECT_EQ(port_name(15001, rule("PROXY_INIT_OUTPUT", Redirect{15001})), "") << "not Envoy's there";
  EXPECT_EQ(port_name(15003, rule("OSM_PROXY_IN_REDIRECT", Redirect{15003})), "Envoy inbound");
  EXPECT_EQ(port_name(15006, rule("KUMA_MESH_INBOUND_REDIRECT", Redirect{15006})), "Envoy inbound");
  EXPECT_EQ(port_name(15003, rule("ISTIO_REDIRECT", Redirect{15003})), "");
}

TEST(OtherMeshes, NameTheirProxy) {
  Rule returned = rule("PROXY_INIT_OUTPUT", Verdict::return_);
  returned.matches.emplace_back(words::owner(OwnerKind::uid, 2102));
  EXPECT_EQ(describe(returned).sentence, "traffic of Linkerd's proxy, uid 2102, is not captured");
  returned.chain = "OUTPUT";
  EXPECT_EQ(describe(returned).sentence, "");
  Rule other = rule("APPMESH_EGRESS", Verdict::return_);
  other.matches.emplace_back(words::owner(OwnerKind::gid, 1337));
  EXPECT_EQ(describe(other).sentence, "traffic of App Mesh's proxy, gid 1337, is not captured");
  other.matches = {words::owner(OwnerKind::uid, 7)};
  EXPECT_EQ(describe(other).sentence, "");
  other.matches = {words::except(words::owner(OwnerKind::uid, 1337))};
  EXPECT_EQ(describe(other).sentence, "");
}

TEST(OtherMeshes, HaveEachAWordToRemoveThem) {
  for (const std::string_view option : each_choice(mesh_names)) {
    const MeshRules rules = rules_of_mesh(option);
    EXPECT_FALSE(rules.name.empty()) << option;
    EXPECT_EQ(option_of_mesh(rules.name), option);
  }
  EXPECT_EQ(option_of_mesh("Cilium"), "");
  EXPECT_EQ(option_of_mesh("Istio"), "");
}

TEST(OtherMeshes, KnowTheRulesOfAnAgentByItsUid) {
  const Jump to_mesh{"TEL_OUTPUT_TCP"};
  const auto of_pod = words::destination(*AddressRange::parse("10.1.2.3/32"));
  const auto agent = words::owner(OwnerKind::uid, 7777);
  const auto not_dns = words::except(words::dport(53));
  struct Row {
    std::vector<Match> matches;
    Target target;
    bool ours;
  };
  const Row rows[] = {
      {{words::out("lo"), words::tcp, words::except(agent)}, to_mesh, true},
      {{of_pod, words::tcp, words::except(agent)}, to_mesh, true},
      {{of_pod, words::tcp, agent}, to_mesh, true},
      {{agent}, Verdict::return_, true},
      {{words::tcp, not_dns, agent}, Verdict::return_, true},
      {{of_pod, words::tcp}, to_mesh, false},
      {{words::source(*AddressRange::parse("10.1.2.3/32")), words::tcp, agent}, to_mesh, false},
      {{of_pod, words::tcp, words::dport(80), agent}, to_mesh, false},
      {{of_pod, words::tcp, words::owner(OwnerKind::uid, 7)}, to_mesh, false},
      {{words::owner(OwnerKind::uid, 7)}, Verdict::return_, false},
      {{words::owner(OwnerKind::gid, 7777)}, Verdict::return_, false},
      {{agent, words::owner(OwnerKind::gid, 7)}, Verdict::return_, false},
      {{words::except(agent)}, Verdict::return_, false},
      {{words::tcp, words::dport(53), agent}, Verdict::return_, false},
      {{words::tcp, words::except(words::dport(80)), agent}, Verdict::return_, false},
      {{of_pod, agent}, Verdict::return_, false},
      {{agent}, Verdict::accept, false},
  };
  std::vector<LiveChain> chains(3);
  chains[0].name = "TEL_OUTPUT_TCP";
  chains[1].name = "OUTPUT";
  chains[2].name = "PREROUTING";
  for (LiveChain& chain : chains) chain.families = Family::ipv4;
  for (const Row& row : rows) {
    Rule made = rule("OUTPUT", row.target);
    made.matches = row.matches;
    chains[1].rules.push_back({made, {}});
    if (&row != rows) chains[2].rules.push_back({made, {}});
  }
  const MeshRules mesh = rules_of_mesh("telepresence");
  mesh.mark_ours(mesh, chains);
  for (std::size_t i = 0; i < std::size(rows); ++i) EXPECT_EQ(chains[1].rules[i].ours, rows[i].ours) << i;
  for (const LiveRule& each : chains[2].rules) EXPECT_FALSE(each.ours) << "the uid is known where OUTPUT leads it";
}

// Kuma before 2.9 has two rules for each network of containers, without comments.
TEST(OtherMeshes, KnowKumasRulesForNetworks) {
  const auto outside = words::except(words::destination(*AddressRange::parse("172.17.0.0/16")));
  const auto to_dns = words::dport(53);
  struct Row {
    std::vector<Match> matches;
    Target target;
    bool ours;
  };
  const Row rows[] = {
      {{words::in("docker0"), words::udp, to_dns}, Redirect{15053}, true},
      {{words::in("docker0"), outside, words::tcp}, Redirect{15001}, true},
      {{words::in("docker1"), words::udp, to_dns}, Redirect{15053}, false},
      {{words::in("docker2"), words::udp, to_dns}, Redirect{15053}, false},
      {{words::in("docker2"), outside, words::tcp}, Redirect{15002}, false},
      {{words::except(words::in("docker0")), words::udp, to_dns}, Redirect{15053}, false},
      {{words::in("docker0"), words::udp, words::sport(53)}, Redirect{15053}, false},
      {{words::in("docker0"), words::udp, words::dport(54)}, Redirect{15053}, false},
      {{words::in("docker0"), words::udp, to_dns}, Verdict::accept, false},
      {{words::in("docker0"), words::tcp}, Redirect{15001}, false},
      {{words::in("docker0"), words::tcp, words::destination(*AddressRange::parse("172.17.0.0/16"))},
       Redirect{15001},
       false},
      {{words::ctstate(ConntrackStateMatch::invalid)}, Verdict::drop, false},
  };
  for (const bool with_istio : {false, true}) {
    std::vector<LiveChain> chains(4);
    chains[0].name = "KUMA_MESH_OUTBOUND_REDIRECT";
    chains[0].rules.push_back({rule("KUMA_MESH_OUTBOUND_REDIRECT", Redirect{15001}), {}});
    chains[1].name = "PREROUTING";
    chains[2].name = with_istio ? "ISTIO_OUTPUT" : "ANOTHER";
    chains[3].name = "OUTPUT";
    for (LiveChain& chain : chains) chain.families = Family::ipv4;
    for (const Row& row : rows) {
      for (LiveChain* chain : {&chains[1], &chains[3]}) {
        chain->rules.push_back({rule(chain->name.c_str(), row.target), {}});
        chain->rules.back().rule.matches = row.matches;
      }
    }
    const MeshRules mesh = rules_of_mesh("kuma");
    mesh.mark_ours(mesh, chains);
    for (std::size_t i = 0; i < std::size(rows); ++i)
      EXPECT_EQ(chains[1].rules[i].ours, rows[i].ours && !with_istio) << i;
    for (const LiveRule& each : chains[3].rules) EXPECT_FALSE(each.ours);
    Live live;
    live.chains = chains;
    const Live* const seen[] = {&live};
    EXPECT_EQ(left_by_mesh(mesh, seen).size(), with_istio ? 5U : 3U) << "what Kuma may have written";
  }
}

TEST(OtherMeshes, AreThereWhereAHookLeadsToThem) {
  LiveChain output{
      Family::ipv4, Table::nat, "OUTPUT", false, {}, Verdict::accept, builtin_hook(Table::nat, "OUTPUT"), {}};
  LiveChain unused{Family::ipv4, Table::nat, "KUMA_MESH_OUTBOUND", false, {}, Verdict::accept, {}, {}};
  unused.rules.push_back({rule("KUMA_MESH_OUTBOUND", Jump{"KUMA_MESH_OUTBOUND_REDIRECT"}), {}});
  Live live;
  live.chains = {output, unused};
  std::vector<std::string_view> found;
  add_other_meshes(live, found);
  EXPECT_TRUE(found.empty());
  for (int i = 0; i < 2; ++i) live.chains[0].rules.push_back({rule("OUTPUT", Jump{"PROXY_INIT_OUTPUT"}), {}});
  add_other_meshes(live, found);
  EXPECT_TRUE(found.empty()) << "another program may call its chain so";
  LiveChain linkerd{Family::ipv4, Table::nat, "PROXY_INIT_OUTPUT", false, {}, Verdict::accept, {}, {}};
  linkerd.rules.push_back({rule("PROXY_INIT_OUTPUT", Redirect{4140}), {}});
  live.chains.push_back(linkerd);
  add_other_meshes(live, found);
  add_other_meshes(live, found);
  EXPECT_EQ(found, std::vector<std::string_view>{"Linkerd"});
}

}  // namespace
}  // namespace sidetrack
