// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/text_pod.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "mesh/plan.h"
#include "mesh/rule_words.h"
#include "pod/ztunnel.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

// The policy rules and routes without which the rules have not the effect that they are there for.
Routing needed_routing(std::span<const Live> live, const GivenPod& given) {
  Routing routing;
  const auto add = [&](Family family, std::uint32_t mark, std::uint32_t mask, std::uint32_t table) {
    PolicyRule rule = fwmark_rule(family, mark, table, mask);
    if (std::ranges::find(routing.policy_rules, rule) != routing.policy_rules.end()) return;
    routing.policy_rules.push_back(std::move(rule));
    Route route = local_default(family, table);
    if (std::ranges::find(routing.local_routes, route) == routing.local_routes.end())
      routing.local_routes.push_back(std::move(route));
  };
  if (!given.policy_rules.empty()) return routing;
  for (const Live& one : live) {
    for (const LiveChain& chain : one.chains) {
      for (const Family family : chain.families.list()) {
        if (chain.name == words::istio_prert && chain.table == Table::mangle && !chain.rules.empty())
          add(family, ztunnel_connection_mark, ztunnel_mask, ztunnel_route_table);
        for (const LiveRule& rule : chain.rules) {
          if (const auto* tproxy = std::get_if<Tproxy>(&rule.rule.target))
            add(family, tproxy->mark, tproxy->mask, Config().tproxy_route_table);
        }
      }
    }
  }
  return routing;
}

bool set_marks(std::span<const Live> live) {
  return any_rule(live, [](const LiveRule& rule) {
    const Target& target = rule.rule.target;
    return !std::holds_alternative<UnknownTarget>(target) && (changes(target) & facts::mark) != 0;
  });
}

PodView assumed_pod_of(std::span<const Live> live) {
  Plan plan;
  for_each_rule(live, [&](const LiveRule& rule) { plan.ruleset.rules.push_back(rule.rule); });
  return assumed_pod(plan);
}

// Those whose routes are given, and so all of them.
Families families_of_main(const std::vector<Route>& routes) {
  Families found;
  for (const Route& route : routes) {
    if (route.table == main_table) found = found | route.family();
  }
  return found;
}

PodView pod_with(const std::vector<GivenPod::Own>& addresses, const std::vector<Route>& routes) {
  PodView pod;
  pod.interfaces = {{"lo", {{*Address::parse("127.0.0.1"), 8}, {*Address::parse("::1"), 128}}}};
  Families with_default = families_of_main(routes);
  for (const auto& [interface, own] : addresses) {
    if (pod.interface(interface) == nullptr) pod.interfaces.push_back({interface, {}});
    pod.interface(interface)->addresses.push_back(own);
    const Family family = own.address.family;
    if (own.prefix_length < own.address.bits())
      pod.routes.push_back({AddressRange::prefix(own.address, own.prefix_length), interface});
    if (with_default.contains(family) || interface == "lo") continue;
    with_default = with_default | family;
    pod.routes.push_back({AddressRange::prefix(Address::any(family), 0), interface});
  }
  return pod;
}

}  // namespace

TextPod pod_of_text(std::span<const Live> live, const GivenPod& given) {
  TextPod pod;
  if (given.addresses.empty()) {
    pod.view = assumed_pod_of(live);
    const Families replaced = families_of_main(given.routes);
    std::erase_if(pod.view.routes, [&](const Route& each) { return replaced.contains(each.family()); });
    std::vector<std::string> names;
    for (const Interface& each : pod.view.interfaces) names.push_back(each.name);
    pod.notes.push_back(fmt::format(
        "assumed of the pod: the addresses 192.0.2.2/24 and 2001:db8::2/64, the interfaces {}; --address gives its own",
        fmt::join(names, ", ")));
  } else {
    pod.view = pod_with(given.addresses, given.routes);
  }
  for (const Route& route : given.routes) {
    if (pod.view.interface(route.device) == nullptr && !route.device.empty())
      pod.view.interfaces.push_back({route.device, {}});
  }
  pod.view.routes.insert(pod.view.routes.begin(), given.routes.begin(), given.routes.end());
  pod.routing = needed_routing(live, given);
  if (pod.routing != Routing{})
    pod.notes.push_back(
        fmt::format("taken to be there, as the rules need it: {}", fmt::join(ip_commands(pod.routing, "add"), "; ")));
  if (pod.routing == Routing{} && given.policy_rules.empty() && set_marks(live))
    pod.notes.emplace_back("assumed of the pod: no policy rule asks for the marks that rules set; --route gives one");
  add_routing(pod.view, pod.routing);
  Routing of_user;
  for (const PolicyRule& rule : given.policy_rules) {
    if (!rule.priority) {
      of_user.policy_rules.push_back(rule);
    } else if (std::ranges::find(pod.view.rules, rule) == pod.view.rules.end()) {
      pod.view.insert(rule);
    }
  }
  add_routing(pod.view, of_user);
  return pod;
}

}  // namespace sidetrack
