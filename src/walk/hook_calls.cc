// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/hook_calls.h"

#include <algorithm>

#include "model/stable_sort.h"

namespace sidetrack {
namespace {

// linux/netfilter_ipv4.h: NF_IP_PRI_CONNTRACK, NF_IP_PRI_NAT_DST, NF_IP_PRI_NAT_SRC.
constexpr std::int32_t conntrack_priority = -200;
constexpr std::int32_t nat_destination_priority = -100;
constexpr std::int32_t nat_source_priority = 100;

using Tracking = FamilyRules::Tracking;

bool marks_connections(const LiveChain& chain) {
  return std::ranges::any_of(chain.rules, [](const LiveRule& one) {
    return !std::holds_alternative<UnknownTarget>(one.rule.target) && (changes(one.rule.target) & facts::connmark) != 0;
  });
}

// Tells whether the kernel tracks connections for what is not understood, by the words of iptables or nft.
bool names_tracking(std::string_view words) {
  static constexpr std::string_view beginnings[] = {
      "-m conntrack", "-m connbytes", "-m connlabel", "-m helper",   "-m state", "ct ",
      "-j DNAT",      "-j SNAT",      "-j NETMAP",    "-j REDIRECT", "-j MASQ",  "-j CT",
      "-j CONN",      "dnat",         "snat",         "nat",         "redir",    "masq"};
  return std::ranges::any_of(beginnings, [&](std::string_view each) { return words.starts_with(each); });
}

// Whether it needs connection tracking. Unknown: it is not understood, or has a statement that is only not followed.
Tracking needed_by(const Rule& rule) {
  const Target& target = rule.target;
  const auto* more = std::get_if<NonTerminating>(&target);
  const auto* other = std::get_if<UnknownTarget>(&target);
  const bool is_unknown = other != nullptr || (more != nullptr && !more->words.empty());
  const auto asks = [](const Match& match) {
    const auto* unknown = std::get_if<UnknownMatch>(&match);
    return (reads(match) & facts::connection) != 0 || (unknown != nullptr && names_tracking(unknown->words));
  };
  const bool is_named = other != nullptr && names_tracking(other->words);
  if (std::ranges::any_of(rule.matches, asks) || needs_tracking(target) || is_named) return Tracking::yes;
  const auto not_understood = [](const Match& match) { return std::holds_alternative<UnknownMatch>(match); };
  return is_unknown || std::ranges::any_of(rule.matches, not_understood) ? Tracking::unknown : Tracking::no;
}

template <typename Wanted>
std::vector<Call> chains_where(std::span<const Live> live, Family family, Wanted wanted) {
  std::vector<Call> calls;
  for (const Live& one : live) {
    for (const LiveChain& chain : one.chains) {
      if (!chain.hook || chain.dormant || !chain.families.contains(family) || !wanted(chain)) continue;
      calls.push_back({Call::Kind::rules, chain.hook->priority, {&one, &chain}});
    }
  }
  sort_stably(calls, {}, &Call::priority);
  return calls;
}

std::vector<Call> calls_at(std::span<const Live> live, Family family, Hook hook, std::string_view device) {
  std::vector<Call> calls = chains_where(live, family, [&](const LiveChain& chain) {
    return called_at(chain, hook) && is_of_device(*chain.hook, device) && chain.hook->type != ChainType::nat &&
           may_do_something(chain, family);
  });
  if (hook == Hook::prerouting || hook == Hook::output) {
    calls.push_back({Call::Kind::conntrack, conntrack_priority, {}});
  }
  const bool translates = hook != Hook::forward && hook != Hook::ingress && hook != Hook::egress;
  const bool nat = !chains_where(live, family, [](const LiveChain& chain) {
                      return chain.hook->type == ChainType::nat;
                    }).empty();  // the core is at all of its hooks as soon as there is one chain of type nat
  if (translates && nat) {
    const bool of_source = hook == Hook::input || hook == Hook::postrouting;
    calls.push_back({Call::Kind::nat, of_source ? nat_source_priority : nat_destination_priority, {}});
  }
  sort_stably(calls, {}, &Call::priority);
  return calls;
}

std::vector<Call> nat_chains_at(std::span<const Live> live, Family family, Hook hook) {
  return chains_where(live, family, [&](const LiveChain& chain) {
    return called_at(chain, hook) && chain.hook->type == ChainType::nat && may_do_something(chain, family);
  });
}

std::uint32_t marks_asked_by(const Match& match) {
  if (const auto* mark = std::get_if<MarkMatch>(&match)) return mark->mask;
  if (const auto* mark = std::get_if<ConnmarkMatch>(&match)) return mark->mask;
  return (reads(match) & (facts::mark | facts::connmark)) == facts::none ? 0 : ~0U;
}

}  // namespace

bool may_do_something(const LiveChain& chain, Family family) {
  return chain.policy != Verdict::accept ||
         std::ranges::any_of(chain.rules, [&](const LiveRule& one) { return one.rule.families.contains(family); });
}

FamilyRules::FamilyRules(std::span<const Live> live, Family family) : live_(live), family_(family) {
  for (const Live& one : live) {
    chains_.emplace_back(one, family);
    of_devices_ = of_devices_ || std::ranges::any_of(one.chains, [](const LiveChain& chain) {
                    return chain.hook && !chain.hook->device.empty();
                  });
    mark_connections_ = mark_connections_ || std::ranges::any_of(one.chains, marks_connections);
    for (const LiveChain& chain : one.chains) {
      for (const LiveRule& live_rule : chain.rules) {
        if (!live_rule.rule.families.contains(family)) continue;
        tracking_ = std::max(tracking_, needed_by(live_rule.rule));
        for (const Match& match : live_rule.rule.matches) {
          ask_flags_ = ask_flags_ || (reads(match) & facts::flags) != 0;
          asked_marks_ |= marks_asked_by(match);
        }
      }
    }
  }
}

const std::vector<Call>& FamilyRules::at(Hook hook, const std::string& device) {
  const auto [found, added] = at_.try_emplace({hook, of_devices_ ? device : std::string()});
  if (added) found->second = calls_at(live_, family_, hook, device);
  return found->second;
}

const std::vector<Call>& FamilyRules::of_nat(Hook hook) {
  const auto [found, added] = of_nat_.try_emplace(hook);
  if (added) found->second = nat_chains_at(live_, family_, hook);
  return found->second;
}

}  // namespace sidetrack
