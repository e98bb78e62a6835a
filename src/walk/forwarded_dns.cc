// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/forwarded_dns.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "mesh/catalogue.h"
#include "model/ports.h"
#include "walk/explain.h"
#include "walk/route.h"

namespace sidetrack {
namespace {

// -s SERVER -p udp --sport 53 -j CT --zone 1
bool gives_zone_to_replies(const Rule& rule) {
  return is_of(rule, MeshRule::dns_answer) || is_of(rule, MeshRule::ambient_dns_answer);
}

// Without an address of its own, the rule is for every server.
std::vector<Address> servers_of(const Rule& rule, Family family) {
  std::vector<Address> servers;
  for (const Match& match : rule.matches) {
    const auto* address = std::get_if<AddressMatch>(&match);
    if (address == nullptr) continue;
    for (const AddressRange& range : address->ranges) {
      if (range.family() == family) servers.push_back(range.first);
    }
    return servers;
  }
  return {*Address::parse(family == Family::ipv4 ? "198.51.100.1" : "2001:db8:ffff::1")};
}

// Another host of the interface's network: the one after its own address, or the one before the last.
std::optional<Address> neighbour(const Interface& interface, Family family) {
  for (const InterfaceAddress& own : interface.addresses) {
    if (own.address.family != family || own.address.is_link_local()) continue;
    const AddressRange network = AddressRange::prefix(own.address, own.prefix_length);
    for (const int step : {1, -1}) {
      Address host = own.address;
      std::uint8_t& last = host.bytes[host.size() - 1];
      last = static_cast<std::uint8_t>(last + step);
      if (network.contains(host) && host != network.first && host != network.last) return host;
    }
  }
  return std::nullopt;
}

std::vector<Live> without_ours(std::span<const Live> live) {
  std::vector<Live> others(live.begin(), live.end());
  for (Live& one : others) {
    for (LiveChain& chain : one.chains) {
      std::erase_if(chain.rules, [](const LiveRule& rule) { return rule.ours || rule.of_agent; });
    }
  }
  return others;
}

bool loses_replies(const Outcome& outcome, const std::string& interface) {
  return outcome.kind == Outcome::Kind::forwarded && outcome.interface != interface &&
         outcome.answers == Outcome::Answers::lost;
}

}  // namespace

std::string text(const LostReplies& lost) {
  return fmt::format(
      "replies to DNS queries that come in by {} are lost: `{}`: {}; add --track-forwarded-dns with -k {} if hosts "
      "behind it are to get them",
      lost.interface, lost.packet, lost.why, lost.interface);
}

bool leads_behind(const PodView& pod, Family family, const std::string& interface) {
  const Route* out = default_route(pod, family);
  return interface != "lo" && (out == nullptr || !out->has_hop_by(interface));
}

bool may_lose_forwarded_dns(const Plan& plan, const PodView& pod) {
  const auto leads_out = std::ranges::count_if(pod.interfaces, [](const Interface& one) { return one.name != "lo"; });
  return leads_out > 1 && std::ranges::any_of(plan.ruleset.rules, gives_zone_to_replies);
}

std::vector<LostReplies> lost_forwarded_dns(const Plan& plan, const PodView& pod, std::span<const Live> live) {
  std::vector<LostReplies> all;
  if (!may_lose_forwarded_dns(plan, pod)) return all;
  const std::vector<Live> others = without_ours(live);
  const auto add_of = [&](const Interface& interface) {
    for (const Rule& rule : plan.ruleset.rules) {
      if (!gives_zone_to_replies(rule)) continue;
      for (const Family family : rule.families.list()) {
        const auto host = neighbour(interface, family);
        if (!host || !leads_behind(pod, family, interface.name)) continue;
        for (const Address& server : servers_of(rule, family)) {
          Packet query;
          query.direction = Direction::in;
          query.protocol = Protocol::udp;
          query.source = host;
          query.destination = server;
          query.destination_port = dns_port;
          query.interface = interface.name;
          const Outcome outcome = explain(query, pod, live).outcome;
          if (!loses_replies(outcome, interface.name)) continue;
          if (loses_replies(explain(query, pod, others).outcome, interface.name)) continue;
          return all.push_back({explain_words(query), interface.name, outcome.answers_why});
        }
      }
    }
  };
  for (const Interface& interface : pod.interfaces) {
    if (interface.name != "lo") add_of(interface);
  }
  return all;
}

}  // namespace sidetrack
