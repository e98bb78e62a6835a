// SPDX-License-Identifier: GPL-2.0-or-later
// A plan seen as if it were programmed, and a pod to go with it.
#include <cctype>
#include <set>
#include <string>

#include "rule/fold.h"
#include "walk/explain.h"

namespace sidetrack {

namespace {

// One that nothing but the pattern names: net0 of net+, eth1 of eth+ and of et+.
std::string example_of(std::string pattern, const std::set<std::string>& taken) {
  if (std::string_view("eth").starts_with(std::string_view(pattern).substr(0, pattern.size() - 1))) pattern = "eth+";
  for (char last = '0'; last <= 'z'; ++last) {
    std::string name = pattern;
    name.back() = last;
    const bool is_usual = name == "lo" || name == "eth0";
    if (!is_usual && std::isalnum(static_cast<unsigned char>(last)) != 0 && !taken.contains(name)) return name;
  }
  return {};
}

}  // namespace

std::set<std::string> named_interfaces(const Plan& plan) {
  std::set<std::string> names;
  std::set<std::string> patterns;
  for (const Rule& rule : plan.ruleset.rules) {
    for (const Match& match : rule.matches) {
      const auto* interface = std::get_if<InterfaceMatch>(&match);
      if (interface == nullptr || interface->name == "lo" || interface->name == "eth0") continue;
      (interface->name.ends_with('+') ? patterns : names).insert(interface->name);
    }
  }
  for (const std::string& pattern : patterns) {
    if (std::string name = example_of(pattern, names); !name.empty()) names.insert(std::move(name));
  }
  return names;
}

// With a network of its own, and a route everywhere that what is bound to it takes. 198.18.0.0/15 is for tests of
// networks, 2001:db8::/32 for documentation.
void assume_interface(PodView& pod, const std::string& name) {
  if (pod.interface(name) != nullptr) return;
  const auto number = static_cast<std::uint8_t>(pod.interfaces.size());
  const InterfaceAddress ipv4{{Family::ipv4, {198, 18, number, 2}}, 24};
  const InterfaceAddress ipv6{{Family::ipv6, {0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, number, 0, 0, 0, 0, 0, 0, 0, 2}}, 64};
  for (const InterfaceAddress& own : {ipv4, ipv6}) {
    pod.routes.push_back({AddressRange::prefix(own.address, own.prefix_length), name});
    pod.routes.push_back({AddressRange::prefix(Address::any(own.address.family), 0), name});
  }
  pod.interfaces.push_back({name, {ipv4, ipv6}});
}

PodView assumed_pod(const Plan& plan, const std::set<std::string>& interfaces) {
  PodView pod;
  Interface lo{"lo", {{*Address::parse("127.0.0.1"), 8}, {*Address::parse("::1"), 128}}};
  pod.interfaces = {std::move(lo),
                    {"eth0", {{*Address::parse("192.0.2.2"), 24}, {*Address::parse("2001:db8::2"), 64}}}};
  pod.routes = {{*AddressRange::parse("0.0.0.0/0"), "eth0"}, {*AddressRange::parse("::/0"), "eth0"}};
  for (const std::string& name : interfaces) assume_interface(pod, name);
  add_routing(pod, plan.routing);
  return pod;
}

PodView assumed_pod(const Plan& plan) { return assumed_pod(plan, named_interfaces(plan)); }

Live as_live(const Ruleset& ruleset, BackendKind backend) {
  const Ruleset& held = traits(backend).in_own_table ? fold(ruleset) : ruleset;
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
