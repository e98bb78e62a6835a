// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/describe.h"
#include "mesh/other_meshes.h"
#include "mesh/releases.h"
#include "render/json_parts.h"
#include "render/show.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

Json chain(const Live& live, const LiveChain& chain) {
  unsigned number = 0;
  Json rules = array_of(chain.rules, [&](const LiveRule& entry) {
    const Reason reason = describe_live(entry);
    if (!is_more_of_one(chain, entry)) ++number;
    Json made = object({{"number", number},
                        {"families", families_json(entry.rule.families)},
                        {"rule", iptables_words(entry.rule)},
                        {"packets", entry.counters.packets},
                        {"bytes", entry.counters.bytes},
                        {"whose", name(maker_of(live, chain, entry))},
                        {"flag", reason.flag},
                        {"reason", reason.sentence}});
    const std::string_view mesh = mesh_of_rule(entry.rule);
    if (mesh != mesh_of_chain(chain.name)) made["mesh"] = mesh;
    Json unknown = Json::array();
    for (const Match& match : entry.rule.matches) {
      if (std::holds_alternative<UnknownMatch>(match)) unknown.push_back(iptables_words(match));
    }
    if (!unknown.empty()) made["unknown"] = std::move(unknown);
    return made;
  });
  Json made = object({{"backend", name(live.backend)},
                      {"families", families_json(chain.families)},
                      {"table", chain.table == Table::other ? chain.table_name : std::string(name(chain.table))},
                      {"chain", chain.name},
                      {"whose", name(maker_of(live, chain))}});
  if (const std::string_view mesh = mesh_of_chain(chain.name); !mesh.empty()) made["mesh"] = mesh;
  if (chain.hook) {
    made["hook"] = name(chain.hook->hook);
    made["priority"] = chain.hook->priority;
    made["type"] = name(chain.hook->type);
    if (!chain.hook->device.empty()) made["device"] = chain.hook->device;
    made["policy"] = chain.policy == Verdict::drop ? "drop" : "accept";
    made["dormant"] = chain.dormant;
  }
  made["rules"] = std::move(rules);
  return made;
}

Json document(std::span<const Live> live, const Routing& routing) {
  Json chains = Json::array();
  for (const Live& one : live) {
    for (const LiveChain& c : one.chains) chains.push_back(chain(one, c));
  }
  return object({{"chains", std::move(chains)}, {"routing", routing_json(routing)}});
}

}  // namespace

std::string rules_json(std::span<const Live> live, const Routing& routing) { return dumped(document(live, routing)); }

std::string show_json(std::span<const Live> live, const Routing& routing, const ShowOptions& options) {
  Json made = document(live, routing);
  const Summary all = summary(options, live);
  made["summary"] = object({{"inbound", all.inbound}, {"outbound", all.outbound}, {"left_out", all.left_out}});
  if (std::string release = older_release(live); !release.empty()) made["release"] = std::move(release);
  made["obstacles"] = obstacles_json(options.obstacles);
  return dumped(std::move(made));
}

}  // namespace sidetrack
