// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit/live_rules.h"

#include <algorithm>

#include "mesh/rule_words.h"
#include "text/read_rule.h"

namespace sidetrack {

using namespace words;

Live rules_of_others(BackendKind backend, Family family, std::initializer_list<std::string_view> rules) {
  constexpr Table tables[] = {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security};
  Live live;
  live.backend = backend;
  for (const std::string_view words : rules) {
    const std::size_t blank = words.find(' ');
    Rule rule = read_rule(words.substr(blank + 1));
    rule.families = family;
    rule.table = *std::ranges::find(tables, words.substr(0, blank), [](Table table) { return name(table); });
    auto found = std::ranges::find_if(
        live.chains, [&](const LiveChain& one) { return one.table == rule.table && one.name == rule.chain; });
    if (found == live.chains.end())
      found = live.chains.insert(found, chain(family, rule.table, rule.chain.c_str(), false, {}));
    found->rules.push_back({rule, {}, false, 0});
  }
  return live;
}

void add_first(std::vector<Live>& all, Family family, Table table, const std::string& words) {
  Rule rule = read_rule(words);
  rule.families = family;
  rule.table = table;
  const LiveRule others{rule, {}, false, 0};
  for (LiveChain& each : all.front().chains) {
    if (each.families.contains(family) && each.table == table && each.name == rule.chain) {
      each.rules.insert(each.rules.begin(), others);
      return;
    }
  }
  LiveChain made = chain(family, table, rule.chain.c_str(), false, {});
  made.rules = {others};
  all.front().chains.push_back(made);
}

Live istio_1_1() {
  const AddressRange loopback = *AddressRange::parse("127.0.0.1/32");
  const Family family = Family::ipv4;
  const Table nat = Table::nat;
  Live live;
  live.backend = BackendKind::iptables_legacy;
  live.chains = {
      chain(family, nat, "PREROUTING", false, {{{tcp}, Jump{"ISTIO_INBOUND"}}}),
      chain(family, nat, "INPUT", false, {}),
      chain(family, nat, "OUTPUT", false, {{{tcp}, Jump{"ISTIO_OUTPUT"}}}),
      chain(family, nat, "POSTROUTING", false, {}),
      chain(family, nat, "ISTIO_INBOUND", true, {{{tcp, dport(80)}, Jump{"ISTIO_IN_REDIRECT"}}}),
      chain(family, nat, "ISTIO_IN_REDIRECT", true, {{{tcp}, Redirect{15001}}}),
      chain(family, nat, "ISTIO_OUTPUT", true,
            {{{except(destination(loopback)), out("lo")}, Jump{"ISTIO_REDIRECT"}},
             {{owner(OwnerKind::uid, 1337)}, Verdict::return_},
             {{owner(OwnerKind::gid, 1337)}, Verdict::return_},
             {{destination(loopback)}, Verdict::return_},
             {{}, Jump{"ISTIO_REDIRECT"}}}),
      chain(family, nat, "ISTIO_REDIRECT", true, {{{tcp}, Redirect{15001}}}),
  };
  return live;
}

Live layered(const std::vector<std::vector<Match>>& conditions, const Target& last) {
  const auto name_of = [](int layer, std::size_t number) {
    return "L" + std::to_string(layer) + "-" + std::to_string(number);
  };
  constexpr int layers = 14;
  Live live;
  live.chains.push_back(chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{}, Jump{name_of(0, 0)}}}));
  for (int layer = 0; layer < layers; ++layer) {
    for (std::size_t number = 0; number < 4; ++number) {
      std::vector<std::pair<std::vector<Match>, Target>> rules;
      for (std::size_t next = 0; next < 4; ++next)
        rules.push_back({conditions[next], layer + 1 < layers ? Target(Jump{name_of(layer + 1, next)}) : last});
      live.chains.push_back(chain(Family::ipv4, Table::nat, name_of(layer, number).c_str(), false, rules));
    }
  }
  return live;
}

}  // namespace sidetrack
