// SPDX-License-Identifier: GPL-2.0-or-later
// A plan seen as if it were programmed, and a pod to go with it.
#include <set>
#include <string>

#include "evaluate/explain.h"
#include "mesh/fold.h"

namespace sidetrack {

namespace {

// Those besides lo and eth0 that the rules speak of.
std::set<std::string> named_interfaces(const Ruleset& ruleset) {
  std::set<std::string> names;
  for (const Rule& rule : ruleset.rules) {
    for (const Match& match : rule.matches) {
      const auto* interface = std::get_if<InterfaceMatch>(&match);
      if (interface == nullptr || interface->name.ends_with('+')) continue;
      if (interface->name != "lo" && interface->name != "eth0") names.insert(interface->name);
    }
  }
  return names;
}

}  // namespace

// 198.51.100.0/24 and 2001:db8:1::/48 are for documentation, too.
void assume_interface(PodView& pod, const std::string& name) {
  if (pod.interface(name) != nullptr) return;
  const auto number = static_cast<std::uint8_t>(pod.interfaces.size());
  const Address ipv4{Family::ipv4, {198, 51, 100, number}};
  const Address ipv6{Family::ipv6, {0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, number, 0, 0, 0, 0, 0, 0, 0, 2}};
  pod.interfaces.push_back({name, {{ipv4, 32}, {ipv6, 64}}});
}

PodView assumed_pod(const Plan& plan) {
  PodView pod;
  Interface lo{"lo", {{*Address::parse("127.0.0.1"), 8}, {*Address::parse("::1"), 128}}};
  pod.interfaces = {std::move(lo),
                    {"eth0", {{*Address::parse("192.0.2.2"), 24}, {*Address::parse("2001:db8::2"), 64}}}};
  for (const std::string& name : named_interfaces(plan.ruleset)) assume_interface(pod, name);
  pod.routes = {{*AddressRange::parse("0.0.0.0/0"), "eth0"}, {*AddressRange::parse("::/0"), "eth0"}};
  add(pod, plan.routing);
  return pod;
}

Live as_live(const Ruleset& ruleset, BackendKind backend) {
  const Ruleset& held = backend == BackendKind::nftables ? fold(ruleset) : ruleset;
  Live live;
  live.backend = backend;
  for (const Families scope : scopes(backend)) {
    for (const Table table : all_tables) {
      for (const Chain& chain : chains(held, table, scope)) {
        LiveChain made{scope,
                       table,
                       chain.name,
                       !is_builtin(chain.name),
                       {},
                       Verdict::accept,
                       builtin_hook(table, chain.name),
                       std::string(name(table))};
        for (const Rule* rule : chain.rules) {
          LiveRule& added = made.rules.emplace_back(LiveRule{*rule, {}, true, 0});
          added.rule.families = rule->families & scope;
          added.rule.insert_at.reset();
        }
        live.chains.push_back(std::move(made));
      }
    }
  }
  return live;
}

}  // namespace sidetrack
