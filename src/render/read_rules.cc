// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/read_rules.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <ranges>

#include "mesh/describe.h"
#include "mesh/ownership.h"
#include "mesh/plan.h"
#include "model/error.h"
#include "model/printable.h"
#include "render/read_rule.h"
#include "system/descriptor.h"
#include "system/read_all.h"

namespace sidetrack {
namespace {

using nlohmann::json;

constexpr std::size_t largest = 64U << 20;

std::string content_of(const std::string& path) {
  std::string text;
  Descriptor opened;
  if (path != "-") opened = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (path != "-" && !opened.valid())
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(path), errno_words(errno)));
  const int error = read_all(path == "-" ? STDIN_FILENO : opened.get(), largest, text);
  if (error != 0) throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(path), errno_words(error)));
  return text;
}

// As `show --json` writes it.
using Policy = std::pair<std::string_view, Verdict>;
std::string_view name(const Policy& policy) { return policy.first; }

template <typename Value, std::size_t N>
Value one_of(const std::string& word, const Value (&all)[N]) {
  const auto* found = std::ranges::find(all, word, [](const Value& value) { return name(value); });
  if (found == std::end(all))
    throw Error(
        ExitCode::usage,
        fmt::format("'{}': expected {}", excerpt(word),
                    fmt::join(all | std::views::transform([](const Value& value) { return name(value); }), ", ")));
  return *found;
}

constexpr Family all_families[] = {Family::ipv4, Family::ipv6};

Families families_of(const json& list) {
  Families families;
  for (const auto& one : list) families = families | one_of(one.get<std::string>(), all_families);
  return families;
}

Table table_of(const std::string& word) {
  for (const Table table : {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security}) {
    if (name(table) == word) return table;
  }
  return Table::other;
}

Rule rule_of(const json& object, Table table) {
  Rule rule = read_rule(object.at("rule").get<std::string>());
  rule.families = families_of(object.at("families"));
  rule.table = table;
  return rule;
}

// `show` has words of its own for what it does not understand; nothing is known of such a rule, then.
Rule rule_as_shown(const json& object, const LiveChain& chain) {
  try {
    return rule_of(object, chain.table);
  } catch (const Error&) {
    const auto text = object.at("rule").get<std::string>();
    const std::string start = fmt::format("-A {} ", printable(chain.name));
    if (!text.starts_with(start)) throw;
    Rule rule;
    rule.families = families_of(object.at("families"));
    rule.table = chain.table;
    rule.chain = chain.name;
    rule.matches = {UnknownMatch{text.substr(start.size())}};
    rule.target = UnknownTarget{"its target"};
    return rule;
  }
}

Routing routing_of(const json& object) {
  Routing routing;
  const auto family = [](const json& one) { return one_of(one.at("family").get<std::string>(), all_families); };
  for (const auto& one : object.at("rules")) {
    PolicyRule rule;
    rule.family = family(one);
    rule.mark = one.at("fwmark").get<std::uint32_t>();
    rule.mask = one.value("fwmask", rule.mask);
    rule.table = one.at("lookup").get<std::uint32_t>();
    routing.policy_rules.push_back(rule);
  }
  for (const auto& one : object.at("routes")) {
    LocalRoute route;
    route.family = family(one);
    route.table = one.at("table").get<std::uint32_t>();
    routing.local_routes.push_back(route);
  }
  if (!object.contains("addresses")) return routing;
  for (const auto& one : object.at("addresses")) {
    const auto word = one.at("address").get<std::string>();
    const auto range = AddressRange::parse(word);
    if (!range || range->first != range->last)
      throw Error(ExitCode::usage, fmt::format("'{}': expected a single address", excerpt(word)));
    routing.loopback_addresses.push_back(range->first);
  }
  return routing;
}

LiveChain chain_of(const json& object) {
  LiveChain chain;
  chain.families = families_of(object.at("families"));
  chain.table_name = object.at("table").get<std::string>();
  chain.table = table_of(chain.table_name);
  chain.name = object.at("chain").get<std::string>();
  if (object.contains("hook")) {
    constexpr Hook hooks[] = {Hook::prerouting,  Hook::input,   Hook::forward, Hook::output,
                              Hook::postrouting, Hook::ingress, Hook::egress};
    HookPoint point;
    point.hook = one_of(object.at("hook").get<std::string>(), hooks);
    point.priority = object.at("priority").get<std::int32_t>();
    point.type = one_of(object.at("type").get<std::string>(), all_chain_types);
    point.device = object.value("device", "");
    chain.hook = point;
    constexpr Policy policies[] = {{"accept", Verdict::accept}, {"drop", Verdict::drop}};
    chain.policy = one_of(object.at("policy").get<std::string>(), policies).second;
    chain.dormant = object.at("dormant").get<bool>();
  }
  for (const auto& one : object.at("rules")) {
    LiveRule& rule = chain.rules.emplace_back();
    rule.rule = rule_as_shown(one, chain);
    rule.rule.insert_at.reset();
    rule.ours = one_of(one.at("whose").get<std::string>(), all_makers) != Maker::other;
  }
  return chain;
}

struct Read {
  Plan plan;  // of rules that are there: all of them, for the interfaces that they name
  std::vector<Live> live;
};

// Those that a backend would hold if these were asked for.
void hold(Read& read) { read.live.push_back(as_live(read.plan.ruleset, BackendKind::iptables_nft)); }

Read read_document(const json& document) {
  Read read;
  read.plan.routing = routing_of(document.at("routing"));
  read.plan.families = Families::both();
  if (document.contains("chains")) {
    for (const auto& one : document.at("chains")) {
      const BackendKind backend = one_of(one.at("backend").get<std::string>(), all_backends);
      auto live = std::ranges::find(read.live, backend, &Live::backend);
      if (live == read.live.end()) {
        live = read.live.emplace(live);
        live->backend = backend;
      }
      live->chains.push_back(chain_of(one));
      for (const LiveRule& rule : live->chains.back().rules) read.plan.ruleset.rules.push_back(rule.rule);
    }
    return read;
  }
  for (const auto& one : document.at("rules")) {
    const auto word = one.at("table").get<std::string>();
    const Table table = table_of(word);
    if (table == Table::other)
      throw Error(ExitCode::usage, fmt::format("'{}': expected raw, mangle, nat, filter or security", excerpt(word)));
    read.plan.ruleset.rules.push_back(rule_of(one, table));
  }
  hold(read);
  return read;
}

// What is no chain among these is a target of iptables' extensions, or missing. A plan has no chain without rules, and
// jumps to those of Istio's names all the same.
void forget_missing_chains(Live& live, bool of_plan) {
  const std::vector<LiveChain>& chains = live.chains;
  for (LiveChain& chain : live.chains) {
    for (LiveRule& rule : chain.rules) {
      const auto* jump = std::get_if<Jump>(&rule.rule.target);
      if (jump == nullptr || is_istio_chain(jump->chain)) continue;
      const bool is_there = std::ranges::any_of(chains, [&](const LiveChain& one) {
        return one.name == jump->chain && !(of_plan && one.rules.empty()) && one.table == chain.table &&
               one.table_name == chain.table_name;
      });
      if (!is_there) rule.rule.target = UnknownTarget{fmt::format("-j {}", jump->chain)};
    }
  }
}

// "[json.exception.parse_error.101] parse error at …" without what names the library.
std::string_view without_name(std::string_view what) {
  const auto end = what.find("] ");
  return end == std::string_view::npos ? what : what.substr(end + 2);
}

Read read_rules(const RulesText& rules) {
  constexpr const char* hint = "expected what `sidetrack render --format json` or `sidetrack show --json` writes";
  try {
    if (rules.text.find('\0') != std::string::npos)  // to the parser the text ends there
      throw Error(ExitCode::usage, "is not JSON: it has a zero byte");
    const json document = json::parse(rules.text);
    if (!document.is_object()) throw Error(ExitCode::usage, fmt::format("is {}, no object", document.type_name()));
    Read read = read_document(document);
    for (Live& live : read.live) forget_missing_chains(live, !document.contains("chains"));
    return read;
  } catch (const json::exception& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(rules.name), printable(without_name(error.what()))),
                hint);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(rules.name), error.what()), hint);
  }
}

}  // namespace

RulesText rules_of_file(const std::string& path) { return {path, content_of(path)}; }

std::pair<space::Side, space::Side> read_sides(const RulesText& one, const RulesText& other) {
  Read a = read_rules(one);
  Read b = read_rules(other);
  std::set<std::string> interfaces = named_interfaces(a.plan);
  interfaces.merge(named_interfaces(b.plan));
  return {{assumed_pod(a.plan, interfaces), std::move(a.live)}, {assumed_pod(b.plan, interfaces), std::move(b.live)}};
}

}  // namespace sidetrack
