// SPDX-License-Identifier: GPL-2.0-or-later
#include "analyse/ownership.h"

#include <algorithm>
#include <set>
#include <string>

namespace sidetrack {
namespace {

bool goes_to_istio_chain(const Rule& rule) {
  if (const auto* jump = std::get_if<Jump>(&rule.target)) return is_istio_chain(jump->chain);
  const auto* unknown = std::get_if<UnknownTarget>(&rule.target);
  return unknown != nullptr && unknown->words.starts_with("-g ") && is_istio_chain(unknown->words.substr(3));
}

template <typename M>
const M* find(const Rule& rule) {
  for (const Match& match : rule.matches) {
    if (const auto* found = std::get_if<M>(&match)) return found;
  }
  return nullptr;
}

// `rule` with other matches and another target: what it would have to be.
bool is_exactly(const Rule& rule, std::vector<Match> matches, Target target) {
  return same_effect(rule, {rule.families, rule.table, rule.chain, std::move(matches), std::move(target), {}, {}});
}

const ProtocolMatch tcp{Protocol::tcp, false};
const InterfaceMatch out_lo{Direction::out, "lo", false};

// -i IF -j RETURN, -o IF -j RETURN: the name of the interface
const std::string* returned_interface(const Rule& rule, Direction direction) {
  const auto* interface = find<InterfaceMatch>(rule);
  if (interface == nullptr || interface->direction != direction || interface->negated) return nullptr;
  return is_exactly(rule, {*interface}, Verdict::return_) ? &interface->name : nullptr;
}

bool is_tproxy_prerouting(const Rule& rule) {
  const auto* mark = find<MarkMatch>(rule);
  return mark != nullptr && is_exactly(rule, {tcp, MarkMatch{mark->value}}, Connmark::save);
}

bool is_tproxy_output(const Rule& rule) {
  if (const auto* mark = find<MarkMatch>(rule)) {
    return is_exactly(rule, {tcp, out_lo, MarkMatch{mark->value}}, Verdict::return_);
  }
  if (const auto* connmark = find<ConnmarkMatch>(rule)) {
    return is_exactly(rule, {tcp, ConnmarkMatch{connmark->value}}, Connmark::restore);
  }
  const auto* address = find<AddressMatch>(rule);
  const auto* owner = find<OwnerMatch>(rule);
  if (address == nullptr || owner == nullptr || owner->negated || !address->negated) return false;
  if (address->end != End::destination || !address->ranges.front().first.is_loopback()) return false;
  return is_exactly(rule, {*address, tcp, out_lo, *owner}, SetMark{1338});
}

// The built-in chains of one table and family that we write to ourselves.
struct Direct {
  LiveChain* prerouting = nullptr;
  LiveChain* output = nullptr;
};

// The interfaces whose traffic in that direction a chain leaves alone.
std::set<std::string> returned_interfaces(const LiveChain* chain, Direction direction) {
  std::set<std::string> names;
  if (chain == nullptr) return names;
  for (const LiveRule& live : chain->rules) {
    if (const std::string* name = returned_interface(live.rule, direction)) names.insert(*name);
  }
  return names;
}

void mark_direct(Table table, const Direct& direct) {
  if (direct.prerouting != nullptr) {
    const std::set<std::string> twins = returned_interfaces(direct.output, Direction::out);
    for (LiveRule& live : direct.prerouting->rules) {
      const std::string* interface = returned_interface(live.rule, Direction::in);
      if (interface != nullptr && (table == Table::nat || twins.contains(*interface))) live.ours = true;
      if (table == Table::mangle && is_tproxy_prerouting(live.rule)) live.ours = true;
    }
  }
  if (direct.output != nullptr) {
    const std::set<std::string> twins = returned_interfaces(direct.prerouting, Direction::in);
    for (LiveRule& live : direct.output->rules) {
      const std::string* interface = returned_interface(live.rule, Direction::out);
      if (interface != nullptr && twins.contains(*interface)) live.ours = true;
      if (table == Table::mangle && is_tproxy_output(live.rule)) live.ours = true;
    }
  }
}

}  // namespace

bool is_istio_chain(std::string_view chain) { return chain.starts_with("ISTIO_"); }

void mark_ours(std::vector<LiveChain>& chains) {
  Families with_istio;
  for (LiveChain& chain : chains) {
    chain.ours = is_istio_chain(chain.name);
    if (chain.ours) with_istio = with_istio | chain.families;
    for (LiveRule& live : chain.rules) live.ours = chain.ours || goes_to_istio_chain(live.rule);
  }
  for (Family family : with_istio.list()) {
    for (Table table : {Table::mangle, Table::nat}) {
      Direct direct;
      for (LiveChain& chain : chains) {
        if (chain.families != family || chain.table != table) continue;
        if (chain.name == "PREROUTING") direct.prerouting = &chain;
        if (chain.name == "OUTPUT") direct.output = &chain;
      }
      mark_direct(table, direct);
    }
  }
}

}  // namespace sidetrack
