// SPDX-License-Identifier: GPL-2.0-or-later
// Random options make a plan. Each form that it is written in (the words of iptables, JSON, the bytes of legacy
// iptables, the expressions of iptables-nft and of nftables) reads back as the same rules.
#include "unit/kernel/round_trip.h"

#include <fmt/format.h>

#include "fuzz.h"
#include "mesh/plan.h"
#include "render/render.h"
#include "rule/iptables.h"
#include "text/read_rule.h"
#include "text/read_rules.h"

using namespace sidetrack;
using fuzz::Choices;
using fuzz::require;

namespace {

// ---- A plan.

std::uint16_t port(Choices& choices) {
  const auto number = static_cast<std::uint16_t>(choices.number());
  return number == 0 ? 1 : number;
}
PortRange ports(Choices& choices) {
  const std::uint16_t one = port(choices);
  if (choices.yes()) return one;
  const std::uint16_t other = port(choices);
  return {std::min(one, other), std::max(one, other)};
}
AddressRange range(Choices& choices) {
  Address address{choices.yes() ? Family::ipv6 : Family::ipv4, {}};
  for (std::size_t i = 0; i < address.size(); ++i) address.bytes[i] = i < 6 ? choices.byte() : 0;
  return AddressRange::prefix(address, static_cast<int>(choices.below(static_cast<std::size_t>(address.bits()) + 1)));
}
template <typename Make>
auto several(Choices& choices, Make make) {
  std::vector<std::invoke_result_t<Make, Choices&>> all;
  for (std::size_t count = choices.below(8); count > 0; --count) all.push_back(make(choices));
  return all;
}

Plan random_plan(Choices& choices, Config& config) {
  constexpr const char* interfaces[] = {"eth0", "net1", "veth+", "a", "lo"};
  const auto interface = [&](Choices& from) { return std::string(from.of(interfaces)); };
  const auto id = [](Choices& from) { return from.number() % 0xffffffffU; };
  config.proxy_port = port(choices);
  config.inbound_port = port(choices);
  config.tunnel_port = port(choices);
  config.proxy_uids = {id(choices)};
  config.proxy_gids = {id(choices)};
  for (std::size_t count = choices.below(3); count > 0; --count) config.proxy_uids.push_back(id(choices));
  config.mode = choices.yes() ? Mode::tproxy : Mode::redirect;
  config.inbound_ports.all = choices.yes();
  if (!config.inbound_ports.all) config.inbound_ports.list = several(choices, ports);
  config.inbound_exclude_ports = several(choices, ports);
  if (choices.yes()) config.inbound_ranges.list = several(choices, range);
  if (choices.yes()) config.inbound_exclude_ranges = several(choices, range);
  if (choices.yes()) config.exclude_interfaces = several(choices, interface);
  config.outbound_ranges.all = choices.yes();
  if (!config.outbound_ranges.all) config.outbound_ranges.list = several(choices, range);
  config.outbound_exclude_ranges = several(choices, range);
  config.outbound_ports = several(choices, ports);
  config.outbound_exclude_ports = several(choices, ports);
  if (choices.yes()) config.virtual_interfaces = several(choices, interface);
  if (choices.yes()) config.tproxy_mark = choices.number() | 1U;
  config.owner_groups.all = choices.yes();
  if (!config.owner_groups.all) config.owner_groups.list = several(choices, id);
  if (config.owner_groups.all) config.owner_groups_exclude = several(choices, id);
  config.redirect_dns = choices.yes();
  config.capture_all_dns = choices.yes();
  config.drop_invalid = choices.yes();
  config.dual_stack = choices.yes();
  HostFacts facts;
  facts.families = choices.yes() ? Families::both() : Families(Family::ipv4);
  if (choices.yes()) facts.dns_servers = {*Address::parse("10.96.0.10"), *Address::parse("fd00::a")};
  return plan(config, facts);
}

// ---- Words, JSON.

void words(const Plan& plan) {
  for (const Rule& rule : plan.ruleset.rules) {
    Rule read = read_rule(iptables_words(rule));
    read.families = rule.families;
    read.table = rule.table;
    require(same_effect(read, rule) && read.chain == rule.chain, iptables_words(rule) + "\n" + iptables_words(read));
  }
}

void document(const Plan& plan, const Config& config) {
  const std::string text = json(plan, config);
  const auto [one, other] = read_sides({"the plan", text}, {"the plan", text});
  const Live& read = one.live.front();
  const Live wanted = as_live(plan.ruleset, BackendKind::iptables_nft);
  require(read.chains.size() == wanted.chains.size(), text);
  for (std::size_t i = 0; i < wanted.chains.size(); ++i) {
    require(read.chains[i].rules.size() == wanted.chains[i].rules.size(), text);
    for (std::size_t k = 0; k < wanted.chains[i].rules.size(); ++k) {
      require(read.chains[i].rules[k].rule == wanted.chains[i].rules[k].rule,
              iptables_words(wanted.chains[i].rules[k].rule));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices({data, size});
  Config config;
  const Plan made = random_plan(choices, config);
  words(made);
  document(made, config);
  for (const BackendKind backend : all_backends) {
    const std::string lost = lost_in_bytes(backend, made.ruleset);
    require(lost.empty(), lost);
  }
  return 0;
}
