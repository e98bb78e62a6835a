// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "walk/chain_index.h"

namespace sidetrack {
namespace {

bool is_of_family(const LiveChain& chain, std::string_view family) {
  return chain.families.empty() && chain.hook && !chain.dormant && chain.table_name.starts_with(family);
}

std::string policy_words(const LiveChain& chain) {
  return fmt::format("the policy of {} {}", chain.table_name, chain.name);
}

std::string rule_words(const LiveChain& chain, std::size_t place) {
  return fmt::format("rule {} of {} {}", place + 1, chain.table_name, chain.name);
}

// Returns the first rule of a device's chain that may stop frames of ARP, if none before it lets all of them pass.
std::string may_stop_arp(const LiveChain& chain) {
  for (std::size_t i = 0; i < chain.rules.size(); ++i) {
    const Rule& rule = chain.rules[i].rule;
    if (!chain.rules[i].may_be_arp || std::holds_alternative<NonTerminating>(rule.target)) continue;
    const bool is_of_all = rule.matches.empty() || (rule.families.empty() && rule.matches.size() == 1);
    if (rule.target == Target(Verdict::accept) && is_of_all) return {};
    if (rule.target != Target(Verdict::accept)) return rule_words(chain, i);
  }
  return chain.policy == Verdict::accept ? "" : policy_words(chain);
}

// The device and all below it, each once.
std::vector<const Interface*> down_from(const PodView& pod, const std::string& device) {
  std::vector<const Interface*> all;
  const auto add = [&](const std::string& name) {
    const Interface* found = pod.interface(name);
    if (found != nullptr && std::ranges::find(all, found) == all.end()) all.push_back(found);
  };
  add(device);
  for (std::size_t i = 0; i < all.size(); ++i) std::ranges::for_each(all[i]->lower, add);
  return all;
}

template <typename Concerns>
std::string first_that_may_stop(std::span<const Live> live, const Concerns& concerns) {
  for (const Live& one : live) {
    for (const LiveChain& chain : one.chains) {
      if (!concerns(chain)) continue;
      if (std::string reason = may_stop(chain); !reason.empty()) return reason;
    }
  }
  return {};
}

}  // namespace

std::string may_stop(const LiveChain& chain) {
  const auto passes = [](const LiveRule& live) {
    return live.rule.target == Target(Verdict::accept) || std::holds_alternative<NonTerminating>(live.rule.target);
  };
  if (chain.policy != Verdict::accept) return policy_words(chain);
  const auto found = std::ranges::find_if_not(chain.rules, passes);
  if (found == chain.rules.end()) return {};
  return rule_words(chain, static_cast<std::size_t>(found - chain.rules.begin()));
}

std::string rules_of_arp(std::span<const Live> live, const std::string& device) {
  std::string reason = first_that_may_stop(live, [](const LiveChain& chain) { return is_of_family(chain, "arp "); });
  for (const Live& one : live) {
    for (const LiveChain& chain : one.chains) {
      const bool is_called = called_at(chain, Hook::ingress) || called_at(chain, Hook::egress);
      if (reason.empty() && is_called && chain.table_name.starts_with("netdev ") && is_of_device(*chain.hook, device))
        reason = may_stop_arp(chain);
    }
  }
  return reason;
}

bool lies_upon(const Interface& interface) { return interface.is_bridge || !interface.lower.empty(); }

std::string rules_of_frames(const PodView& pod, std::span<const Live> live, Hook hook, const std::string& device) {
  const Interface* found = pod.interface(device);
  if (found == nullptr || !lies_upon(*found)) return {};
  const std::vector<const Interface*> all = down_from(pod, device);
  const bool over_a_bridge = std::ranges::any_of(all, &Interface::is_bridge);
  return first_that_may_stop(live, [&](const LiveChain& chain) {
    if (is_of_family(chain, "bridge ")) return over_a_bridge;
    return called_at(chain, hook) && std::ranges::any_of(all, [&](const Interface* one) {
             return one != found && is_of_device(*chain.hook, one->name);
           });
  });
}

}  // namespace sidetrack
