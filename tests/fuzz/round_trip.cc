// SPDX-License-Identifier: GPL-2.0-or-later
// Random options make a plan. Each form that it is written in (the words of iptables, JSON, the bytes of legacy
// iptables, the expressions of iptables-nft and of nftables) reads back as the same rules.
#include <fmt/format.h>
#include <libnftnl/expr.h>

#include <array>

#include "fuzz.h"
#include "kernel/nft/codec.h"
#include "kernel/nft/fields.h"
#include "kernel/nft/iptables_rule.h"
#include "kernel/nft/kernel_table.h"
#include "kernel/nft/rule_reader.h"
#include "kernel/survey.h"
#include "kernel/xt/entry.h"
#include "mesh/fold.h"
#include "mesh/plan.h"
#include "model/iptables.h"
#include "render/read_rule.h"
#include "render/read_rules.h"
#include "render/render.h"
#include "state/diff.h"

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

// ---- Bytes.

void legacy(const Ruleset& ruleset) {
  for (const Rule& rule : canonical(BackendKind::iptables_legacy, ruleset).rules) {
    for (const Family family : rule.families.list()) {
      std::string label;
      if (const auto* jump = std::get_if<Jump>(&rule.target)) label = jump->chain;
      if (const auto* verdict = std::get_if<Verdict>(&rule.target))
        label = *verdict == Verdict::accept ? "ACCEPT" : *verdict == Verdict::drop ? "DROP" : "RETURN";
      auto bytes = xt::encode_entry(rule, family);
      // The kernel has no name in a standard target.
      if (!label.empty()) std::fill(bytes.end() - 40 + 2, bytes.end() - 40 + 2 + 29, std::byte{});
      const xt::DecodedEntry decoded = xt::decode_entry(bytes, label, family);
      const Rule read{rule.families, rule.table, rule.chain, decoded.matches, decoded.target, {}, {}};
      require(same_effect(read, rule), iptables_words(rule) + "\n" + iptables_words(read));
    }
  }
}

// What the kernel lists of a rule.
std::vector<std::byte> bytes_of(std::span<const nft::Expression> expressions) {
  alignas(nlmsghdr) static std::array<char, 64UL * 1024> buffer;
  nlmsghdr* message = mnl_nlmsg_put_header(buffer.data());
  for (const nft::Expression& each : expressions) {
    const std::unique_ptr<nftnl_expr, nft::Free<nftnl_expr_free>> made(nft::encode(each));
    nlattr* element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
    nftnl_expr_build_payload(message, made.get());
    mnl_attr_nest_end(message, element);
  }
  const auto* begin = static_cast<const std::byte*>(mnl_nlmsg_get_payload(message));
  return {begin, begin + mnl_nlmsg_get_payload_len(message)};
}

void iptables_nft(const Ruleset& ruleset) {
  const std::map<std::string, nft::KernelSet> none;
  for (const Rule& rule : canonical(BackendKind::iptables_nft, ruleset).rules) {
    for (const Family family : rule.families.list()) {
      nft::KernelRule stored;
      stored.expressions = bytes_of(nft::iptables_rule(rule, family).expressions);
      const nft::RuleContext context{family, rule.table, rule.chain, {}, none, false};
      const auto read = nft::read_rule(stored, context);
      require(read.size() == 1, iptables_words(rule));
      require(same_effect(read.front().rule, rule), iptables_words(rule) + "\n" + iptables_words(read.front().rule));
    }
  }
}

std::string name_of(const nft::Set& set) { return set.anonymous ? fmt::format("__set{}", set.id) : set.name; }

// The table as the kernel holds it.
nft::KernelTable stored(const nft::NativeTable& table) {
  nft::KernelTable made;
  made.key = {NFPROTO_INET, nft::own_table};
  for (const nft::Set& set : table.sets) {
    nft::KernelSet& held = made.sets[name_of(set)];
    held.key_size = set.type.size;
    for (const auto& [first, last] : set.values) {
      nft::KernelElement& element = held.elements.emplace_back();
      element.first.assign(first.view().begin(), first.view().end());
      element.last.assign(last.view().begin(), last.view().end());
    }
  }
  for (const nft::NativeChain& chain : table.chains) {
    nft::KernelChain& held = made.chains.emplace_back();
    held.name = chain.name;
    held.hook = chain.hook;
    for (const nft::NativeRule& rule : chain.rules) {
      std::vector<nft::Expression> expressions;
      for (const nft::Statement& statement : rule.statements) {
        for (nft::Expression expression : statement.expressions) {
          if (auto* lookup = std::get_if<nft::Lookup>(&expression)) {
            for (const nft::Set& set : table.sets) {
              if (set.id == lookup->id) lookup->set = name_of(set);
            }
          }
          expressions.push_back(std::move(expression));
        }
      }
      held.rules.push_back({0, bytes_of(expressions), rule.comment});
    }
  }
  return made;
}

void nftables(const Ruleset& ruleset) {
  const Ruleset wanted = canonical(BackendKind::nftables, ruleset);
  Live live;
  live.backend = BackendKind::nftables;
  live.chains = nft::rules_of(stored(nft::native(wanted)));
  for (LiveChain& chain : live.chains) {
    for (LiveRule& rule : chain.rules) rule.ours = true;
  }
  std::string lines;
  for (const ChainDiff& chain : diff(live, wanted).chains) {
    for (const DiffLine& line : chain.lines) {
      if (line.kind != DiffLine::Kind::same) lines += iptables_words(line.rule) + "\n";
    }
  }
  require(lines.empty(), lines);
  require(fold(wanted).rules == wanted.rules, "folding again changes something");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices({data, size});
  Config config;
  const Plan made = random_plan(choices, config);
  words(made);
  document(made, config);
  legacy(made.ruleset);
  iptables_nft(made.ruleset);
  nftables(made.ruleset);
  return 0;
}
