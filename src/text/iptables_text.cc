// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/iptables_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "mesh/ownership.h"
#include "model/error.h"
#include "model/printable.h"
#include "rule/iptables.h"
#include "rule/ours.h"
#include "text/iptables_script.h"

namespace sidetrack {
namespace {

using Kind = ChainOperation::Kind;

constexpr const char* what_to_ask = "ask for the output of: iptables-save; ip6tables-save";
constexpr const char* what_to_give =
    "give the output of iptables-save and that of ip6tables-save, each with its first line";
constexpr Table iptables_tables[] = {Table::raw, Table::mangle, Table::nat, Table::filter};  // that pods usually have

// ---- Which family and which table: said, or told by the rules.

Families families_of(const Rule& rule) {
  Families found;
  for (const Match& match : rule.matches) {
    if (const auto* address = std::get_if<AddressMatch>(&match)) found = found | address->ranges.front().family();
    const auto* protocol = std::get_if<ProtocolMatch>(&match);
    if (protocol != nullptr && protocol->protocol == Protocol::icmp) found = found | Family::ipv4;
    if (protocol != nullptr && protocol->protocol == Protocol::icmpv6) found = found | Family::ipv6;
  }
  if (const auto* nat = std::get_if<Nat>(&rule.target); nat != nullptr && nat->addresses)
    found = found | nat->addresses->family();
  if (const auto* reject = std::get_if<Reject>(&rule.target)) {
    if (reject->words.find("icmp6-") != std::string::npos) found = found | Family::ipv6;
    if (reject->words.find("icmp-") != std::string::npos) found = found | Family::ipv4;
  }
  return found;
}

std::optional<Family> family_of_rules(const Section& section) {
  Families found;
  for (const ChainOperation& each : section.operations) {
    found = found | families_of(each.rule);
    if (found == Families::both())
      throw Error(
          ExitCode::usage,
          fmt::format("{}: rules of IPv4 and of IPv6 in one table: expected those of one family", section.source),
          what_to_give);
  }
  if (found.empty()) return {};
  return found.list().front();
}

constexpr unsigned bit_of(Table table) { return 1U << static_cast<unsigned>(table); }

// Tells whether all may be of one family. Adds what they say of it.
bool is_of_one_family(std::span<const Section> sections, Families& families) {
  unsigned tables = 0;
  for (const Section& each : sections) {
    if ((std::exchange(tables, tables | bit_of(*each.table)) & bit_of(*each.table)) != 0) return false;
    if (const auto family = family_of_rules(each)) families = families | *family;
  }
  return families != Families::both();
}

bool has_effect(const Section& section) {
  return std::ranges::any_of(section.operations, [](const ChainOperation& each) {
    return each.kind != Kind::declare && (each.kind != Kind::policy || each.policy == Verdict::drop);
  });
}

void set_family(std::span<Section> sections, Family family) {
  for (Section& each : sections) each.family = family;
}

// Tells the families of tables of which some are IPv4's and the others, before or after those, IPv6's. Refuses them if
// one that has rules may be the last of the first family or the first of the other.
void tell_two_families(std::span<Section> sections) {
  Families all;
  if (is_of_one_family(sections, all)) return;
  std::optional<std::size_t> first;
  for (std::size_t second = 1; second < sections.size(); ++second) {
    Families before, after;
    if (!is_of_one_family(sections.first(second), before) || !is_of_one_family(sections.subspan(second), after) ||
        (!before.empty() && before == after))
      continue;
    if (!first) first = second;
    const auto either = sections.subspan(*first, second - *first);
    const auto open = std::ranges::find_if(either, has_effect);
    if (open != either.end())
      throw Error(
          ExitCode::usage,
          fmt::format("{}: the table {} is of IPv4 or of IPv6: expected a line that says which, as rules of both "
                      "families are here",
                      open->source, name(*open->table)),
          what_to_give);
    if (before.empty() && after.empty()) continue;
    const bool is_ipv4_first = before.contains(Family::ipv4) || after.contains(Family::ipv6);
    set_family(sections.first(second), is_ipv4_first ? Family::ipv4 : Family::ipv6);
    set_family(sections.subspan(second), is_ipv4_first ? Family::ipv6 : Family::ipv4);
  }
}

std::string target_name(const Rule& rule) {
  const std::string words = iptables_words(rule.target);  // -j REDIRECT --to-ports 1
  return words.substr(std::min<std::size_t>(3, words.size()), words.find(' ', 3) - 3);
}

// Names what one table alone has: a target, or a chain of Istio.
struct TableSign {
  char name[18];
  Table table;
};
constexpr TableSign targets_of_tables[] = {
    {"REDIRECT", Table::nat}, {"DNAT", Table::nat},      {"SNAT", Table::nat},   {"MASQUERADE", Table::nat},
    {"NETMAP", Table::nat},   {"TPROXY", Table::mangle}, {"TTL", Table::mangle}, {"HL", Table::mangle},
    {"TOS", Table::mangle},   {"DSCP", Table::mangle},   {"ECN", Table::mangle}, {"CHECKSUM", Table::mangle},
    {"CT", Table::raw},       {"NOTRACK", Table::raw},   {"TRACE", Table::raw},  {"REJECT", Table::filter},
};
constexpr TableSign chains_of_tables[] = {{"ISTIO_REDIRECT", Table::nat},
                                          {"ISTIO_IN_REDIRECT", Table::nat},
                                          {"ISTIO_TPROXY", Table::mangle},
                                          {"ISTIO_DIVERT", Table::mangle}};

unsigned tables_of(std::span<const TableSign> signs, std::string_view name) {
  const auto found = std::ranges::find_if(signs, [&](const TableSign& each) { return each.name == name; });
  return found != signs.end() ? bit_of(found->table) : 0;
}

// Tells whether the table can have what the operation is about.
bool can_have(Table table, const ChainOperation& operation) {
  if (table == Table::nat && target_name(operation.rule) == "DROP") return false;  // iptables refuses it
  return std::ranges::none_of(
      all_hooks, [&](Hook hook) { return name(hook) == operation.chain && !builtin_hook(table, operation.chain); });
}

// Tells whether a chain has rules at several places: a listing of one table has them together.
bool is_of_several(const Section& section) {
  std::set<std::string_view> before;
  std::string_view last;
  for (const ChainOperation& each : section.operations) {
    if (each.kind != Kind::append || each.chain == last) continue;
    if (!before.insert(last = each.chain).second) return true;
  }
  return false;
}

// By targets that one table alone takes, by chains of Istio that one table alone has, by the policies, as each table
// has its own built-in chains. Nothing if the rules say none, or cannot be of that one.
std::optional<Table> table_of_rules(const Section& section) {
  unsigned found = 0;  // a bit for each
  std::set<std::string_view> built_in;
  for (const ChainOperation& each : section.operations) {
    if (each.kind == Kind::policy) built_in.insert(each.chain);
    found |= tables_of(targets_of_tables, target_name(each.rule)) | tables_of(chains_of_tables, each.chain);
  }
  for (const Table table : iptables_tables) {
    const bool all = std::ranges::all_of(all_hooks, [&](Hook hook) {
      return built_in.contains(name(hook)) == builtin_hook(table, name(hook)).has_value();
    });
    if (all) found |= bit_of(table);
  }
  for (const Table table : iptables_tables) {
    if (found != bit_of(table) || is_of_several(section)) continue;
    const auto fits = [&](const ChainOperation& each) { return can_have(table, each); };
    if (std::ranges::all_of(section.operations, fits)) return table;
  }
  return {};
}

// ---- The tables, as they stand after all operations.

struct TableKey {
  BackendKind backend;
  Family family;
  Table table;
  friend auto operator<=>(const TableKey&, const TableKey&) = default;

  // "table nat of IPv4"
  [[nodiscard]] std::string text() const { return fmt::format("table {} of {}", name(table), title(family)); }
};

struct OpenTable {
  TableKey key;
  std::vector<LiveChain> chains{};
  bool is_listing = true;     // all of it is of what -S or -L prints,
  bool of_chain = true;       // and of single chains
  bool names_chains = false;  // by -P, -N or the lines Chain
  bool is_ordered = false;    // the chains that were declared first have their rules first
  bool omits = false;         // rules, as its text says
  Edge start = Edge::shown;
  Edge end = Edge::shown;
  std::size_t last = 0;  // the chain that was there already when it was asked for, most recently
  std::unordered_map<std::string, std::size_t> places{};  // of the chains, by name

  [[nodiscard]] const LiveChain* find(const std::string& name) const {
    const auto found = places.find(name);
    return found != places.end() ? &chains[found->second] : nullptr;
  }
  // Needed once the chains have other places.
  void find_places() {
    places.clear();
    for (std::size_t i = 0; i < chains.size(); ++i) places.emplace(chains[i].name, i);
  }
  LiveChain& chain(const std::string& chain_name) {
    const auto [place, is_new] = places.try_emplace(chain_name, chains.size());
    if (!is_new) {
      last = place->second;
      return chains[last];
    }
    const auto [backend, family, table] = key;
    LiveChain& made = chains.emplace_back();
    made.families = family;
    made.table = table;
    made.name = chain_name;
    made.hook = builtin_hook(table, chain_name);
    constexpr std::int32_t security_of_iptables_nft = 150;  // its own number: the kernel's is 50
    if (made.hook && table == Table::security && backend == BackendKind::iptables_nft)
      made.hook->priority = security_of_iptables_nft;
    made.table_name = name(table);
    if (traits(backend).of_nf_tables) made.table_name = (family == Family::ipv4 ? "ip " : "ip6 ") + made.table_name;
    return made;
  }
};

// iptables-nft 1.8.9 has the kernel compare `! --sport 53 ! --dport 80` as one number: it holds if either is another.
void leave_open_two_ports(Rule& rule) {
  const auto is_one = [](const Match& match) {
    const auto* port = std::get_if<PortMatch>(&match);
    return port != nullptr && port->negated && port->ports.size() == 1 &&
           port->ports.front().first == port->ports.front().last;
  };
  if (std::ranges::count_if(rule.matches, is_one) != 2) return;
  for (Match& match : rule.matches) {
    if (is_one(match)) match = UnknownMatch{iptables_words(match)};
  }
}

void remove_rule(std::vector<LiveRule>& rules, const ChainOperation& operation, const Rule& rule) {
  auto found = rules.end();
  if (operation.number) {
    if (*operation.number > 0 && *operation.number <= rules.size())
      found = rules.begin() + static_cast<std::ptrdiff_t>(*operation.number - 1);
  } else {
    found = std::ranges::find(rules, rule, &LiveRule::rule);
  }
  if (found != rules.end()) rules.erase(found);
}

LiveRule unknown_rule(const OpenTable& table, const LiveChain& chain, const char* why) {
  return {{table.key.family, chain.table, chain.name, {}, UnknownTarget{why}, {}, {}}, {}};
}

constexpr const char* omitted = "[lines are omitted]";

// Leaves open what the text omits here: rules of the chain that it lists. Where the chain is not named, of the last one
// that has rules, and of those that have none yet.
void omit(const ChainOperation& operation, OpenTable& table) {
  table.omits = true;
  for (LiveChain& chain : table.chains) {
    const bool is_last = &chain == &table.chains[table.last];
    if (operation.chain.empty() ? is_last || chain.rules.empty() || !table.is_ordered : chain.name == operation.chain)
      chain.rules.push_back(unknown_rule(table, chain, omitted));
  }
}

void carry_out(const ChainOperation& operation, OpenTable& table) {
  if (operation.kind == Kind::omit) return omit(operation, table);
  if (operation.kind == Kind::flush || operation.kind == Kind::remove_chain) {
    const bool removes = operation.kind == Kind::remove_chain;
    const auto is_meant = [&](const LiveChain& chain) {
      return (operation.chain.empty() || chain.name == operation.chain) && !(removes && chain.hook);
    };
    if (removes && std::erase_if(table.chains, is_meant) > 0) table.find_places();
    for (LiveChain& chain : table.chains) {
      if (is_meant(chain)) chain.rules.clear();
    }
    return;
  }
  if (operation.kind == Kind::remove && table.find(operation.chain) == nullptr) return;
  const bool is_first = table.find(operation.chain) == nullptr;
  LiveChain& chain = table.chain(operation.chain);
  if (is_first && table.omits && operation.kind == Kind::append)
    chain.rules.push_back(unknown_rule(table, chain, omitted));
  LiveRule made{operation.rule, operation.counters};
  made.rule = in_iptables_order(std::move(made.rule));
  if (table.key.backend == BackendKind::iptables_nft) leave_open_two_ports(made.rule);
  made.rule.families = table.key.family;
  if (made.rule.target == Target(Reject{"-j REJECT"}))
    made.rule.target = Reject{fmt::format("-j REJECT --reject-with {}-port-unreachable",
                                          table.key.family == Family::ipv4 ? "icmp" : "icmp6")};
  made.rule.table = table.key.table;
  switch (operation.kind) {
    case Kind::policy:
      chain.policy = operation.policy;
      break;
    case Kind::append:
      chain.rules.push_back(std::move(made));
      break;
    case Kind::insert: {
      const std::size_t place = std::clamp<std::size_t>(operation.number.value_or(1), 1, chain.rules.size() + 1);
      chain.rules.insert(chain.rules.begin() + static_cast<std::ptrdiff_t>(place - 1), std::move(made));
      break;
    }
    case Kind::replace:
      if (operation.number && *operation.number > 0 && *operation.number <= chain.rules.size())
        chain.rules[*operation.number - 1] = std::move(made);
      break;
    case Kind::remove:
      remove_rule(chain.rules, operation, made.rule);
      break;
    case Kind::declare:
    case Kind::flush:
    case Kind::remove_chain:
    case Kind::omit:
      break;
  }
}

void add_built_in_chains(OpenTable& table) {
  for (const std::string& name : builtin_chains(table.key.table)) table.chain(name);
}

// How many rules lead to each chain; each of which the target is not understood may lead to any.
class References {
 public:
  explicit References(const OpenTable& table) {
    for (const LiveChain& chain : table.chains) {
      for (const LiveRule& live : chain.rules) {
        if (const auto* jump = std::get_if<Jump>(&live.rule.target)) ++counts_[jump->chain];
        unknown_ += std::holds_alternative<UnknownTarget>(live.rule.target) ? 1 : 0;
      }
    }
  }
  [[nodiscard]] std::size_t most(std::string_view chain) const {
    const auto found = counts_.find(chain);
    return unknown_ + (found != counts_.end() ? found->second : 0);
  }

 private:
  std::map<std::string_view, std::size_t> counts_;
  std::size_t unknown_ = 0;
};

const std::string* last_with_rules(const Section& section) {
  const auto last =
      std::ranges::find(section.operations.rbegin(), section.operations.rend(), Kind::append, &ChainOperation::kind);
  return last != section.operations.rend() ? &last->chain : nullptr;
}

// Leaves open what a text whose end is missing may lack: rules of its last chain, and of those that come after it. In a
// listing these have none yet.
void leave_open_end(const Section& section, OpenTable& table) {
  const std::string* last = last_with_rules(section);
  std::size_t first = 0;
  if (last != nullptr && section.is_ordered()) {
    first = static_cast<std::size_t>(table.find(*last) - table.chains.data());
  } else {
    add_built_in_chains(table);
  }
  const char* why = section.is_listing ? "[the text may end before]" : "[the text ends before COMMIT]";
  for (LiveChain& chain : std::span(table.chains).subspan(first)) {
    const bool may_go_on = !section.is_listing || chain.rules.empty() || (last != nullptr && chain.name == *last);
    if (may_go_on) chain.rules.push_back(unknown_rule(table, chain, why));
  }
}

// Leaves open what a text whose start is missing may lack: rules of built-in chains, which come first.
void leave_open_start(OpenTable& table) {
  add_built_in_chains(table);
  for (LiveChain& chain : table.chains) {
    if (chain.hook)
      chain.rules.insert(chain.rules.begin(), unknown_rule(table, chain, "[the text begins within the table]"));
  }
}

// Tells whether rows are missing of what -L prints, which counts the rules that lead to each chain.
bool lacks_rows(const Section& section, const OpenTable& table) {
  const References references(table);
  return std::ranges::any_of(section.operations, [&](const ChainOperation& each) {
    return each.kind == Kind::declare && each.number && references.most(each.chain) < *each.number;
  });
}

// Tells whether a listing lacks its end: -S declares all chains first.
bool is_cut_at_end(const Section& section, const OpenTable& table) {
  const std::string* last = last_with_rules(section);
  bool is_after = last == nullptr || table.find(*last)->hook;
  for (const ChainOperation& each : section.operations) {
    if (each.kind != Kind::declare) continue;
    if (!each.number && is_after && table.find(each.chain)->rules.empty()) return true;
    is_after = is_after || each.chain == *last;
  }
  return std::ranges::any_of(table.chains, [&](const LiveChain& chain) {
    return std::ranges::any_of(chain.rules, [&](const LiveRule& live) {
      const auto* jump = std::get_if<Jump>(&live.rule.target);
      return jump != nullptr && table.find(jump->chain) == nullptr;
    });
  });
}

// Returns a chain with rules to which nothing leads: a listing without policies has lost what came before, perhaps.
const LiveChain* find_unreached(const OpenTable& table) {
  const References references(table);
  const auto found = std::ranges::find_if(table.chains, [&](const LiveChain& chain) {
    return !chain.hook && !chain.rules.empty() && references.most(chain.name) == 0;
  });
  return found != table.chains.end() ? &*found : nullptr;
}

// Tells whether all built-in chains are there, with their policies.
bool has_policies(const Section& section) {
  return std::ranges::all_of(builtin_chains(*section.table), [&](const std::string& name) {
    return std::ranges::any_of(section.operations, [&](const ChainOperation& each) {
      return each.kind == Kind::policy && each.chain == name;
    });
  });
}

// Leaves open the built-in chains that a listing of other chains lacks: something leads to those. Returns whether there
// are any. Those of nat that change sources are taken as empty: they are omitted most often, and rarely have rules.
bool leave_open_unlisted(OpenTable& table) {
  if (table.chains.empty()) return false;
  bool any = false;
  for (const std::string& name : builtin_chains(table.key.table)) {
    if (table.find(name) != nullptr) continue;
    const bool of_sources = name == "INPUT" || name == "POSTROUTING";
    if (of_sources && table.key.table == Table::nat && !table.omits) continue;
    LiveChain& chain = table.chain(name);
    chain.rules.push_back(unknown_rule(table, chain, "[not listed]"));
    any = true;
  }
  return any;
}

// As legacy iptables lists them: all built-in ones, those first.
void complete(OpenTable& table) {
  std::vector<LiveChain> built_in;
  for (const std::string& name : builtin_chains(table.key.table)) {
    if (table.key.backend == BackendKind::iptables_legacy || table.find(name) != nullptr)
      built_in.push_back(table.chain(name));
  }
  std::erase_if(table.chains, [](const LiveChain& chain) { return chain.hook.has_value(); });
  table.chains.insert(table.chains.begin(), built_in.begin(), built_in.end());
  table.find_places();
}

class Tables {
 public:
  explicit Tables(BackendKind otherwise) : otherwise_(otherwise) {}

  RulesOfTexts read(std::span<const RulesText> texts, bool leaves_agents) && {
    unsigned listings = 0;
    std::size_t texts_read = 0;
    for (const RulesText& text : texts) {
      IptablesScript script = read_iptables_script(text);
      if (script.sections.empty())
        throw Error(
            ExitCode::usage,
            fmt::format(
                "{}: no rules: expected what iptables-save, ip6tables-save, iptables -S or nft list ruleset prints",
                excerpt(text.name)),
            what_to_ask);
      std::ranges::move(script.notes, std::back_inserter(read_.notes));
      unsigned last = 0;
      for (Section& section : script.sections) {
        last = std::max(last, section.listing);
        section.listing += listings;
        section.text = texts_read;
        sections_.push_back(std::move(section));
      }
      listings += last + 1;
      ++texts_read;
    }
    tell_tables();
    tell_two_families_of_texts();
    tell_families();
    for (const Section& section : sections_) carry_out_all(section);
    for (OpenTable& table : tables_) {
      const bool is_built_in =
          std::ranges::any_of(table.chains, [](const LiveChain& chain) { return chain.hook.has_value(); });
      const bool may_lack = table.is_listing && (table.names_chains || table.of_chain || !is_built_in);
      if (is_built_in && table.start == Edge::assumed) note_unreached(table);
      if (table.start == Edge::missing) leave_open_start(table);
      if ((may_lack || table.omits) && leave_open_unlisted(table) && !table.omits) note_unlisted(table);
      complete(table);
      require_chains(table);
    }
    note_missing();
    note_assumed();
    make_live(leaves_agents);
    return std::move(read_);
  }

 private:
  void tell_tables() {
    for (Section& section : sections_) {
      if (!section.table) section.table = table_of_rules(section);
      if (!section.table)
        throw Error(ExitCode::usage,
                    fmt::format("{}: no table is given for these rules: expected a line such as "
                                "'iptables -t nat -S' before them",
                                section.source),
                    what_to_ask);
      if (section.end == Edge::missing)
        note(section, fmt::format("the table {} has no COMMIT: its end may be missing", name(*section.table)));
      if (section.start == Edge::missing)
        note(section, fmt::format("the table {} has no line *{}: what came before may be missing", name(*section.table),
                                  name(*section.table)));
    }
  }

  // In each text, where no command or first line of iptables-save says it.
  void tell_two_families_of_texts() {
    for (auto start = sections_.begin(); start != sections_.end();) {
      const auto end = std::find_if(start, sections_.end(), [&](const Section& each) {
        return each.family || each.of_commands || each.text != start->text;
      });
      tell_two_families({start, end});
      start = end == start ? end + 1 : end;
    }
  }

  // What the rules say, else the command, else what is printed together with them; else the family of which there is
  // no such table yet.
  void tell_families() {
    std::map<unsigned, Family> of_listing;
    for (Section& section : sections_) {
      if (const auto found = family_of_rules(section)) section.family = found;
      if (section.family && !section.of_commands) of_listing.emplace(section.listing, *section.family);
    }
    std::set<Table> taken;
    for (Section& section : sections_) {
      if (!section.family) {
        const auto together = of_listing.find(section.listing);
        const bool is_second = together == of_listing.end() && taken.contains(*section.table);
        section.family = together != of_listing.end() ? together->second : is_second ? Family::ipv6 : Family::ipv4;
        of_listing.emplace(section.listing, *section.family);
        if (is_second)
          note(section, fmt::format("assumed to be of IPv6, as a table {} came before: no line says the family",
                                    name(*section.table)));
      }
      if (section.family == Family::ipv4) taken.insert(*section.table);
    }
  }

  void carry_out_all(const Section& section) {
    const TableKey key{section.backend.value_or(otherwise_), *section.family, *section.table};
    auto table = std::ranges::find(tables_, key, &OpenTable::key);
    if (table == tables_.end()) {
      table = tables_.insert(tables_.end(), {key});
    } else if (section.is_whole && !section.of_chain) {
      note(section, fmt::format("the {} appears again: these rules replace the earlier ones", key.text()));
      *table = {key};
    }
    table->of_chain = table->of_chain && section.of_chain;
    table->is_listing = table->is_listing && section.is_listing;
    table->names_chains =
        table->names_chains || std::ranges::any_of(section.operations, [](const ChainOperation& each) {
          return each.kind == Kind::policy || each.kind == Kind::declare;
        });
    table->is_ordered = section.is_ordered();
    for (const ChainOperation& operation : section.operations) carry_out(operation, *table);
    if (section.of_chain) return;
    Edge end = section.end;
    const bool lacks = lacks_rows(section, *table);
    if (lacks && end == Edge::shown) {
      note(section, fmt::format("rules of the table {} are missing, as its counts of references say; {}",
                                name(*section.table), what_to_ask));
      leave_open_start(*table);
    }
    if (end == Edge::assumed && (lacks || is_cut_at_end(section, *table))) {
      end = Edge::missing;
      note(section, fmt::format("the end of the table {} may be missing; {}", name(*section.table), what_to_ask));
    }
    if (end == Edge::missing) leave_open_end(section, *table);
    table->end = std::max(table->end, end);
    const bool is_start_shown = section.start == Edge::assumed && has_policies(section);
    table->start = std::max(table->start, is_start_shown ? Edge::shown : section.start);
  }

  void note_unlisted(const OpenTable& table) {
    read_.notes.push_back(
        fmt::format("the text has single chains of the {}: what the built-in ones do that it lacks is not known; {}",
                    table.key.text(), what_to_ask));
  }

  void note_unreached(OpenTable& table) {
    const LiveChain* chain = find_unreached(table);
    if (chain == nullptr) return;
    table.start = Edge::missing;
    read_.notes.push_back(fmt::format("nothing leads to {} in the {}: what came before may be missing; {}",
                                      printable(chain->name), table.key.text(), what_to_ask));
  }

  void require_chains(OpenTable& table) {
    const std::set<std::string> missing = forget_missing_chains(table.chains);
    if (!missing.empty())
      read_.notes.push_back(fmt::format("the {} has no chain {}: what its rules do is not known; {}", table.key.text(),
                                        fmt::join(missing, ", "), what_to_ask));
  }

  void note_missing() {
    std::vector<std::string> missing;
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      std::vector<std::string_view> tables;
      for (const Table table : iptables_tables) {
        const bool is_there = std::ranges::any_of(
            tables_, [&](const OpenTable& each) { return each.key.family == family && each.key.table == table; });
        if (!is_there) tables.push_back(name(table));
      }
      if (tables.size() == std::size(iptables_tables)) {
        missing.push_back(std::string(title(family)));
      } else if (!tables.empty()) {
        missing.push_back(fmt::format("{} of {}", fmt::join(tables, ", "), title(family)));
      }
    }
    if (!missing.empty())
      read_.notes.push_back(fmt::format("not in the text, and assumed to be empty: {}", fmt::join(missing, "; ")));
  }

  void note_assumed() {
    std::vector<std::string> whole;
    for (const OpenTable& table : tables_) {
      if (std::max(table.start, table.end) == Edge::assumed && !table.omits)
        whole.push_back(fmt::format("{} of {}", name(table.key.table), title(table.key.family)));
    }
    if (!whole.empty())
      read_.notes.push_back(
          fmt::format("assumed to be whole, as nothing shows where they begin and end: {}", fmt::join(whole, ", ")));
  }

  // The newest backend first, the tables in the order in which they are read from the kernel.
  void make_live(bool leaves_agents) {
    std::ranges::sort(tables_, {}, &OpenTable::key);
    for (const BackendKind backend : {BackendKind::iptables_nft, BackendKind::iptables_legacy}) {
      Live live;
      live.backend = backend;
      std::vector<LiveChain> others;
      for (OpenTable& table : tables_) {
        if (table.key.backend != backend) continue;
        std::ranges::move(table.chains, std::back_inserter(is_written(table.key.table) ? live.chains : others));
      }
      std::ranges::move(others, std::back_inserter(live.chains));
      mark_ours(live.chains);
      if (leaves_agents) leave_to_agents(live, false);
      if (holds_rules(live)) read_.live.push_back(std::move(live));
    }
  }

  void note(const Section& section, const std::string& words) {
    read_.notes.push_back(fmt::format("{}: {}", section.source, words));
  }

  BackendKind otherwise_;  // of rules that do not say theirs
  std::vector<Section> sections_;
  std::vector<OpenTable> tables_;
  RulesOfTexts read_;
};

}  // namespace

std::set<std::string> forget_missing_chains(std::span<LiveChain> chains) {
  const auto place = [](const LiveChain& in, const std::string& chain) {
    return in.table_name + ' ' + std::string(name(in.table)) + ' ' + chain;
  };
  std::set<std::string> present;
  for (const LiveChain& chain : chains) present.insert(place(chain, chain.name));
  std::set<std::string> missing;
  for (LiveChain& chain : chains) {
    for (LiveRule& live : chain.rules) {
      const auto* jump = std::get_if<Jump>(&live.rule.target);
      if (jump == nullptr || present.contains(place(chain, jump->chain))) continue;
      missing.insert(printable(jump->chain));
      live.rule.target = UnknownTarget{iptables_words(live.rule.target)};
    }
  }
  return missing;
}

RulesOfTexts read_iptables_texts(std::span<const RulesText> texts, bool leaves_agents, BackendKind otherwise) {
  return Tables(otherwise).read(texts, leaves_agents);
}

}  // namespace sidetrack
