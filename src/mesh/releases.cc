// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/releases.h"

#include <fmt/format.h>

#include <algorithm>

#include "mesh/catalogue.h"
#include "mesh/rule_words.h"
#include "model/ports.h"

namespace sidetrack {
namespace {

using namespace words;

constexpr unsigned of_today = 99;

// Minor releases: 1.`first` to 1.`last`.
struct Releases {
  unsigned first = 0;
  unsigned last = of_today;
};
constexpr unsigned last_older = 24;

bool jumps_to(const Rule& rule, const char* chain) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  return jump != nullptr && jump->chain == chain;
}

// DNS stood in OUTPUT, then in ISTIO_OUTPUT, and has a chain of its own since.
Releases releases_of_dns(const Rule& rule) {
  if (rule.chain == istio_output_dns) return {25};
  if (std::holds_alternative<Nat>(rule.target)) return {7, 8};
  if (rule.chain == istio_redirect) return {8, 8};
  const auto* protocol = find_match<ProtocolMatch>(rule);
  if (protocol != nullptr && *protocol == tcp) return {};  // has been in ISTIO_OUTPUT longer
  if (rule.chain == istio_output) return {23, 24};
  if (rule.table == Table::raw) return {9, 22};
  const auto* redirect = std::get_if<Redirect>(&rule.target);
  if (redirect == nullptr) return {6, 22};
  return redirect->port == proxy_dns_port ? Releases{9, 22} : Releases{6, 6};
}

// Read from what istio-iptables of each minor release programs, its first and its last one.
Releases releases_of(const Rule& rule) {
  using enum MeshRule;
  switch (kind_of(rule)) {
    case outbound_jump:
      return find_match<ProtocolMatch>(rule) != nullptr ? Releases{0, 24} : Releases{25};
    case own_address_redirect:
      return jumps_to(rule, istio_redirect) ? Releases{0, 2} : Releases{3, 4};
    case proxy_to_itself: {
      const auto* port = find_match<PortMatch>(rule);
      const bool is_of_tunnel = port != nullptr && std::ranges::any_of(port->ports, [](const PortRange& ports) {
                                  return ports.contains(15008);
                                });
      return is_of_tunnel ? Releases{18} : Releases{5, 17};
    }
    case outbound_passthrough:
      return {3};
    case tunnel_port:
      return {7};
    case inbound_established:
      return find_match<UnknownMatch>(rule) != nullptr ? Releases{0, 5} : Releases{5};
    case tproxy_save_mark:
    case tproxy_restore_mark:
      return {9};
    case invalid_jump:
      return {23};
    case invalid_drop:
      return rule.chain == prerouting ? Releases{10, 23} : Releases{23};
    case ipv6_refused:
      return {0, 4};
    case dns_zone_jump:
    case dns_jump:
      return {23, 24};
    case dns_redirect:
    case dns_proxy_return:
    case dns_other_groups:
    case dns_proxy_query:
    case dns_proxy_answer:
    case dns_query:
      return releases_of_dns(rule);
    default:
      return {};
  }
}

void add(std::span<const LiveChain> chains, Releases& all) {
  for (const LiveChain& chain : chains) {
    for (const LiveRule& each : chain.rules) {
      if (!each.ours) continue;
      const Releases of = releases_of(each.rule);
      all.first = std::max(all.first, of.first);
      all.last = std::min(all.last, of.last);
    }
  }
}

}  // namespace

unsigned earliest_release(std::span<const LiveChain> chains) {
  Releases all;
  add(chains, all);
  return all.first;
}

unsigned latest_release(std::span<const LiveChain> chains) {
  Releases all;
  add(chains, all);
  return all.first > all.last ? of_today : all.last;
}

unsigned first_release(const Rule& rule) { return releases_of(rule).first; }

std::string older_release(std::span<const Live> live) {
  Releases all;
  for (const Live& one : live) {
    const bool in_own_table = traits(one.backend).in_own_table;
    if (in_own_table && std::ranges::any_of(one.chains, &LiveChain::ours)) return "";
    add(one.chains, all);
  }
  if (all.last > last_older || all.first > all.last) return "";  // of two releases, none of which is left
  if (all.first == all.last) return fmt::format("Istio 1.{}", all.first);
  return fmt::format("Istio 1.{} to 1.{}", all.first, all.last);
}

}  // namespace sidetrack
