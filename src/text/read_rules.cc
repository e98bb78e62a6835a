// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/read_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "mesh/describe.h"
#include "mesh/ownership.h"
#include "mesh/plan.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/read_write.h"
#include "text/read_rule.h"
#include "text/utf16.h"

namespace sidetrack {
namespace {

using nlohmann::json;

constexpr std::size_t largest = 64U << 20;

constexpr Family all_families[] = {Family::ipv4, Family::ipv6};

// As `show --json` writes it.
using Policy = std::pair<std::string_view, Verdict>;
std::string_view name(const Policy& policy) { return policy.first; }

[[noreturn]] void refuse(const std::string& place, const json* value, std::string_view expected) {
  const std::string what =
      value == nullptr ? "missing" : excerpt(value->dump(-1, ' ', false, json::error_handler_t::replace));
  throw Error(ExitCode::usage, fmt::format("{}: {}: expected {}", place, what, expected));
}

// An object of the document that knows where it stands: "routing.rules[0]". Errors name the place, the value and what
// was expected.
class Object {
 public:
  Object(const json& value, std::string place) : value_(value), place_(std::move(place)) {
    if (!value.is_object()) refuse(place_.empty() ? "document" : place_, &value, "an object");
  }

  [[nodiscard]] bool has(const char* key) const { return value_.contains(key); }
  [[nodiscard]] std::string text(const char* key) const { return get(key, "a string", &json::is_string); }
  [[nodiscard]] bool truth(const char* key) const { return get(key, "true or false", &json::is_boolean); }

  template <typename Number>
  [[nodiscard]] Number number(const char* key) const {
    using Limits = std::numeric_limits<Number>;
    const std::string expected = fmt::format("a whole number from {} to {}", Limits::min(), Limits::max());
    const json& found = get(key, expected, &json::is_number_integer);
    const auto number = found.get<std::int64_t>();
    const bool is_huge = found.is_number_unsigned() && found.get<std::uint64_t>() > INT64_MAX;
    if (is_huge || !std::in_range<Number>(number)) refuse(inside(key), &found, expected);
    return static_cast<Number>(number);
  }

  [[nodiscard]] Object object(const char* key) const { return {get(key, "an object", &json::is_object), inside(key)}; }
  [[nodiscard]] std::vector<Object> objects(const char* key) const {
    std::vector<Object> all;
    for (const json& one : get(key, "a list of objects", &json::is_array))
      all.emplace_back(one, fmt::format("{}[{}]", inside(key), all.size()));
    return all;
  }

  [[nodiscard]] std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> all;
    for (const json& one : get(key, "a list of strings", &json::is_array)) {
      if (!one.is_string()) refuse(fmt::format("{}[{}]", inside(key), all.size()), &one, "a string");
      all.push_back(one.get<std::string>());
    }
    return all;
  }

  // The value of that name; `all` have names.
  template <typename Value, std::size_t N>
  [[nodiscard]] Value one_of(const char* key, const Value (&all)[N]) const {
    return one_of(get(key, "a string", &json::is_string), inside(key), all);
  }
  [[nodiscard]] Families families() const {
    Families families;
    std::size_t i = 0;
    for (const json& one : get("families", "a list of ipv4, ipv6", &json::is_array))
      families = families | one_of(one, fmt::format("{}[{}]", inside("families"), i++), all_families);
    return families;
  }

  [[noreturn]] void refuse_value(const char* key, std::string_view expected) const {
    refuse(inside(key), &value_.at(key), expected);
  }

 private:
  [[nodiscard]] std::string inside(const char* key) const { return place_.empty() ? key : place_ + "." + key; }

  [[nodiscard]] const json& get(const char* key, std::string_view expected,
                                bool (json::*is_right)() const noexcept) const {
    const auto found = value_.find(key);
    if (found == value_.end()) refuse(inside(key), nullptr, expected);
    if (!((*found).*is_right)()) refuse(inside(key), &*found, expected);
    return *found;
  }

  template <typename Value, std::size_t N>
  static Value one_of(const json& word, const std::string& place, const Value (&all)[N]) {
    const auto* found = std::ranges::find(all, word, [](const Value& value) { return json(name(value)); });
    if (found != std::end(all)) return *found;
    refuse(place, &word,
           fmt::format("{}",
                       fmt::join(all | std::views::transform([](const Value& value) { return name(value); }), ", ")));
  }

  const json& value_;
  std::string place_;
};

Rule rule_of(const Object& object, Table table) {
  Rule rule = read_rule(object.text("rule"));
  rule.families = object.families();
  rule.table = table;
  return rule;
}

// Makes a target of what `show` says in the words of nft, as iptables has none for it: "-A out -p tcp reject with tcp
// reset", "-A out log". Nothing is known of what it has words of its own for.
void take_words_of_nft(Rule& rule) {
  const auto* last = rule.matches.empty() ? nullptr : std::get_if<UnknownMatch>(&rule.matches.back());
  if (rule.target != Target(NonTerminating{}) || last == nullptr || last->words.starts_with('-')) return;
  const std::string words = last->words;
  const auto begins_with = [&](std::string_view name) {
    return words.starts_with(name) && (words.size() == name.size() || words[name.size()] == ' ');
  };
  constexpr std::string_view without_effect[] = {"log", "dup", "last", "counter"};
  if (begins_with("reject")) {
    rule.target = Reject{words};
  } else if (std::ranges::any_of(without_effect, begins_with)) {
    rule.target = NonTerminating{words};
  } else {
    rule.target = UnknownTarget{words};
  }
  rule.matches.pop_back();
}

Rule rule_as_shown(const Object& object, const LiveChain& chain) {
  std::string text = object.text("rule");
  std::vector<Match> unknown;  // which may stand before matches that are understood
  for (const std::string& words : object.has("unknown") ? object.texts("unknown") : std::vector<std::string>{}) {
    const auto at = text.find(" " + words);
    if (words.empty() || at == std::string::npos) object.refuse_value("unknown", "words of the rule");
    text.erase(at, words.size() + 1);
    unknown.emplace_back(UnknownMatch{words});
  }
  Rule rule;
  try {
    rule = read_rule(text);
  } catch (const Error&) {
    const std::string start = fmt::format("-A {} ", printable(chain.name));
    if (!text.starts_with(start)) throw;
    rule.chain = chain.name;
    rule.matches = {UnknownMatch{text.substr(start.size())}};
    rule.target = NonTerminating{};
  }
  rule.families = object.families();
  rule.table = chain.table;
  take_words_of_nft(rule);
  std::ranges::move(unknown, std::back_inserter(rule.matches));
  return rule;
}

Routing routing_of(const Object& object) {
  Routing routing;
  for (const Object& one : object.objects("rules")) {
    const auto family = one.one_of("family", all_families);
    const auto mark = one.number<std::uint32_t>("fwmark");
    const auto mask = one.has("fwmask") ? one.number<std::uint32_t>("fwmask") : 0xffffffff;
    routing.policy_rules.push_back(fwmark_rule(family, mark, one.number<std::uint32_t>("lookup"), mask));
  }
  for (const Object& one : object.objects("routes")) {
    const auto family = one.one_of("family", all_families);
    routing.local_routes.push_back(local_default(family, one.number<std::uint32_t>("table")));
  }
  if (!object.has("addresses")) return routing;
  for (const Object& one : object.objects("addresses")) {
    const auto range = AddressRange::parse(one.text("address"));
    if (!range || range->first != range->last) one.refuse_value("address", "a single address");
    routing.loopback_addresses.push_back(range->first);
  }
  return routing;
}

LiveChain chain_of(const Object& object) {
  LiveChain chain;
  chain.families = object.families();
  chain.table_name = object.text("table");
  chain.table = table_named(chain.table_name).value_or(Table::other);
  chain.name = object.text("chain");
  if (object.has("hook")) {
    constexpr Hook hooks[] = {Hook::prerouting,  Hook::input,   Hook::forward, Hook::output,
                              Hook::postrouting, Hook::ingress, Hook::egress};
    HookPoint point;
    point.hook = object.one_of("hook", hooks);
    point.priority = object.number<std::int32_t>("priority");
    point.type = object.one_of("type", all_chain_types);
    if (object.has("device")) point.device = object.text("device");
    chain.hook = point;
    constexpr Policy policies[] = {{"accept", Verdict::accept}, {"drop", Verdict::drop}};
    chain.policy = object.one_of("policy", policies).second;
    chain.dormant = object.truth("dormant");
  }
  for (const Object& one : object.objects("rules")) {
    LiveRule& rule = chain.rules.emplace_back();
    if (one.has("number")) rule.handle = one.number<unsigned>("number");  // the same of all parts of a rule
    rule.rule = rule_as_shown(one, chain);
    rule.rule.insert_at.reset();
    rule.ours = one.one_of("whose", all_makers) != Maker::other;
  }
  return chain;
}

struct Read {
  Plan plan;  // of rules that are there: all of them, for the interfaces that they name
  std::vector<Live> live;
};

Read read_document(const Object& document) {
  Read read;
  read.plan.routing = routing_of(document.object("routing"));
  read.plan.families = Families::both();
  // A plan is of none; but who writes one means something by it.
  const BackendKind usual =
      document.has("backend") ? document.one_of("backend", all_backends) : BackendKind::iptables_nft;
  if (document.has("chains")) {
    for (const Object& one : document.objects("chains")) {
      const BackendKind backend = one.one_of("backend", all_backends);
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
  for (const Object& one : document.objects("rules")) {
    const auto table = table_named(one.text("table"));
    if (!table) one.refuse_value("table", "raw, mangle, nat, filter or security");
    if (one.has("backend")) static_cast<void>(one.one_of("backend", all_backends));
    read.plan.ruleset.rules.push_back(rule_of(one, *table));
  }
  // Those that a backend would hold if these were asked for.
  read.live.push_back(as_live(read.plan.ruleset, usual));
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

// Names the document where the words leave out the values of a map or a set: in another one they may be others, and no
// two of them are known to do the same.
void tell_apart(std::string& words, const std::string& document) {
  static constexpr std::string_view without_values[] = {"looks up", "lookup [", "@__", "vmap @", "what it holds"};
  const auto is_in_words = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (std::ranges::any_of(without_values, is_in_words)) words += fmt::format(" (in {})", document);
}
void tell_apart(LiveRule& rule, const std::string& document) {
  for (Match& match : rule.rule.matches) {
    if (auto* unknown = std::get_if<UnknownMatch>(&match)) tell_apart(unknown->words, document);
  }
  if (auto* unknown = std::get_if<UnknownTarget>(&rule.rule.target)) tell_apart(unknown->words, document);
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
    Read read = read_document(Object(document, ""));
    for (Live& live : read.live) {
      forget_missing_chains(live, !document.contains("chains"));
      for (LiveChain& chain : live.chains) {
        for (LiveRule& rule : chain.rules) tell_apart(rule, rules.name);
      }
    }
    return read;
  } catch (const json::exception& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(rules.name), printable(without_name(error.what()))),
                hint);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(rules.name), error.what()), hint);
  }
}

}  // namespace

RulesText rules_of_file(const std::string& path) {
  RulesText rules{path, ""};
  if (const int error = read_named(path, largest, rules.text); error != 0)
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(path), errno_words(error)));
  rules.text = without_utf16(std::move(rules.text));
  return rules;
}

std::pair<space::Side, space::Side> read_sides(const RulesText& one, const RulesText& other) {
  Read a = read_rules(one);
  Read b = read_rules(other);
  std::set<std::string> interfaces = named_interfaces(a.plan);
  interfaces.merge(named_interfaces(b.plan));
  return {{assumed_pod(a.plan, interfaces), std::move(a.live)}, {assumed_pod(b.plan, interfaces), std::move(b.live)}};
}

}  // namespace sidetrack
