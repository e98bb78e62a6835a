// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/dump.h"

#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <set>

#include "kernel/nft/codec.h"
#include "kernel/nft/names.h"
#include "kernel/nft/nfnetlink.h"
#include "kernel/nft/raw_expression.h"
#include "model/error.h"

namespace sidetrack::nft {
namespace {

using netlink::Socket;

using Filter = std::pair<int, std::string>;  // an attribute and its value

// Every object of a kind that the filters let through.
void ask(Socket& socket, int type, std::uint8_t family, std::initializer_list<Filter> filters,
         const std::function<void(std::uint8_t family, const Attributes&)>& take) {
  netlink::Request question = request(type, family, NLM_F_DUMP);
  for (const auto& [attribute, value] : filters) question.put(attribute, value);
  read(socket, question, [&](const netlink::Message& message) {
    take(message.header<nfgenmsg>().nfgen_family, message.attributes<nfgenmsg>());
  });
}

// What the kernel always says.
const nlattr* required(const Attributes& attributes, int type) {
  const nlattr* found = attributes.find(type);
  if (found == nullptr) throw Error(ExitCode::failed, fmt::format("nf_tables: a message without attribute {}", type));
  return found;
}

template <typename Number>
Number number_or(const Attributes& attributes, int type, Number otherwise) {
  const nlattr* found = attributes.find(type);
  return found != nullptr ? network_order<Number>(found) : otherwise;
}

void read_tables(Socket& socket, const std::function<bool(const TableKey&)>& wanted, Dump& into) {
  ask(socket, NFT_MSG_GETTABLE, NFPROTO_UNSPEC, {}, [&](std::uint8_t family, const Attributes& message) {
    TableKey key{family, string(required(message, NFTA_TABLE_NAME))};
    if (!wanted(key)) return;
    KernelTable& table = into.tables.emplace_back();
    table.key = std::move(key);
    table.uses = number_or<std::uint32_t>(message, NFTA_TABLE_USE, 0);
    table.flags = number_or<std::uint32_t>(message, NFTA_TABLE_FLAGS, 0);
    table.owner = number_or<std::uint32_t>(message, NFTA_TABLE_OWNER, 0);
  });
}

constexpr int device_prefix = 2;  // NFTA_DEVICE_PREFIX, kernel 6.16: all devices whose names begin so

void read_hook(const TableKey& table, const Attributes& message, KernelChain& chain) {
  const nlattr* nest = message.find(NFTA_CHAIN_HOOK);
  if (nest == nullptr) return;
  const Attributes point(nest);
  const auto hook = hook_of(table.family, network_order<std::uint32_t>(required(point, NFTA_HOOK_HOOKNUM)));
  const auto type = type_named(string(required(message, NFTA_CHAIN_TYPE)));
  if (!hook || !type) {
    throw Error(
        ExitCode::failed,
        fmt::format("the chain {} of the table {} is at a hook that sidetrack does not know", chain.name, text(table)),
        fmt::format("see 'nft list chain {} {}'", text(table), chain.name));
  }
  const auto priority = static_cast<std::int32_t>(network_order<std::uint32_t>(required(point, NFTA_HOOK_PRIORITY)));
  chain.hook = HookPoint{*hook, priority, *type, {}};
  if (number_or<std::uint32_t>(message, NFTA_CHAIN_POLICY, NF_ACCEPT) == NF_DROP) chain.policy = Verdict::drop;
  if (const nlattr* list = point.find(NFTA_HOOK_DEVS)) {
    for (const nlattr* device : Attributes(list)) {
      chain.devices.push_back(string(device) + (mnl_attr_get_type(device) == device_prefix ? "+" : ""));
    }
  } else if (const nlattr* device = point.find(NFTA_HOOK_DEV)) {
    chain.devices.push_back(string(device));
  }
}

// Chains of all tables: the kernel has no narrower request.
void read_chains(Socket& socket, Dump& into) {
  ask(socket, NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, {}, [&](std::uint8_t family, const Attributes& message) {
    const TableKey key{family, string(required(message, NFTA_CHAIN_TABLE))};
    const auto table = std::ranges::find(into.tables, key, &KernelTable::key);
    if (table == into.tables.end()) return;
    KernelChain& made = table->chains.emplace_back();
    made.name = string(required(message, NFTA_CHAIN_NAME));
    read_hook(key, message, made);
  });
}

KernelRule rule_of(const Attributes& message) {
  KernelRule rule;
  rule.handle = network_order<std::uint64_t>(required(message, NFTA_RULE_HANDLE));
  if (const nlattr* list = message.find(NFTA_RULE_EXPRESSIONS)) {
    const auto bytes = payload(list);
    rule.expressions.assign(bytes.begin(), bytes.end());
  }
  if (const nlattr* data = message.find(NFTA_RULE_USERDATA)) rule.comment = comment_of(payload(data));
  return rule;
}

// For each part of its answer the kernel counts the rules of the table from the first one on (nf_tables_dump_rules),
// which takes time with their square: a table of many chains is asked chain by chain.
constexpr std::size_t many_chains = 64;

// The rules of all chains, or of one.
void read_rules(Socket& socket, KernelTable& table, KernelChain* const only) {
  const TableKey& key = table.key;
  KernelChain* chain = only;  // of the rule before: the kernel sends them chain by chain
  const Filter of_table{NFTA_RULE_TABLE, key.name};
  const auto take = [&](std::uint8_t family, const Attributes& message) {
    // Kernels before 4.6 send the rules of all tables.
    if (family != key.family || string(required(message, NFTA_RULE_TABLE)) != key.name) return;
    const std::string in = string(required(message, NFTA_RULE_CHAIN));
    if (chain == nullptr || chain->name != in) {
      if (only != nullptr) return;
      const auto found = std::ranges::find(table.chains, in, &KernelChain::name);
      if (found == table.chains.end()) {
        throw Error(ExitCode::busy, "the nf_tables ruleset changed while it was read", "run it again");
      }
      chain = &*found;
    }
    chain->rules.push_back(rule_of(message));
  };
  if (only == nullptr) {
    ask(socket, NFT_MSG_GETRULE, key.family, {of_table}, take);
  } else {
    ask(socket, NFT_MSG_GETRULE, key.family, {of_table, {NFTA_RULE_CHAIN, only->name}}, take);
  }
}

void read_rules(Socket& socket, KernelTable& table) {
  if (table.chains.size() < many_chains) return read_rules(socket, table, nullptr);
  for (KernelChain& chain : table.chains) read_rules(socket, table, &chain);
}

// ---- Sets.

// The key before this one.
std::string before(std::string key) {
  for (std::size_t i = key.size(); i-- > 0;) {
    if (key[i]-- != 0) break;
  }
  return key;
}

// Only a counter leaves it to the key alone whether an element matches.
bool counts_only(const nlattr* expression) {
  const nlattr* name = Attributes(expression).find(NFTA_EXPR_NAME);
  return name != nullptr && string(name) == "counter";
}

void take_element(const nlattr* nest, KernelSet& set) {
  KernelElement element;
  std::uint32_t flags = 0;
  for (const nlattr* attribute : Attributes(nest)) {
    switch (mnl_attr_get_type(attribute)) {
      case NFTA_SET_ELEM_KEY:
        element.first = value_in(attribute);
        break;
      case NFTA_SET_ELEM_KEY_END:
        element.last = value_in(attribute);
        break;
      case NFTA_SET_ELEM_DATA:
        if (const nlattr* verdict = Attributes(attribute).find(NFTA_DATA_VERDICT)) {
          const Attributes parts(verdict);
          element.verdict = static_cast<std::int32_t>(network_order<std::uint32_t>(required(parts, NFTA_VERDICT_CODE)));
          if (const nlattr* chain = parts.find(NFTA_VERDICT_CHAIN)) element.chain = string(chain);
        }
        break;
      case NFTA_SET_ELEM_FLAGS:
        flags = network_order<std::uint32_t>(attribute);
        break;
      case NFTA_SET_ELEM_TIMEOUT:
      case NFTA_SET_ELEM_EXPIRATION:
        set.opaque = "its elements expire";
        break;
      case NFTA_SET_ELEM_USERDATA:
      case NFTA_SET_ELEM_PAD:
        break;
      case NFTA_SET_ELEM_EXPR:
        if (!counts_only(attribute)) set.opaque = "its elements have conditions";
        break;
      case NFTA_SET_ELEM_EXPRESSIONS:
        for (const nlattr* each : Attributes(attribute)) {
          if (!counts_only(each)) set.opaque = "its elements have conditions";
        }
        break;
      default:
        set.opaque = fmt::format("its elements have the attribute {}", mnl_attr_get_type(attribute));
    }
  }
  if ((flags & ~(std::uint32_t{NFT_SET_ELEM_INTERVAL_END} | std::uint32_t{NFT_SET_ELEM_CATCHALL})) != 0) {
    set.opaque = fmt::format("its elements have the flags {:#x}", flags);
  }
  element.starts = (flags & NFT_SET_ELEM_INTERVAL_END) == 0;
  if ((flags & NFT_SET_ELEM_CATCHALL) != 0) {
    set.any_other = std::move(element);
    return;
  }
  if (element.first.size() != set.key_size || (!element.last.empty() && element.last.size() != set.key_size)) {
    set.opaque = "its keys have an unexpected length";
  }
  set.elements.push_back(std::move(element));
}

// From starts and ends to first and last.
void join_intervals(KernelSet& set) {
  // An end comes before a start at the same place.
  const auto before_other = [](const KernelElement& a, const KernelElement& b) {
    const int order = std::memcmp(a.first.data(), b.first.data(), std::min(a.first.size(), b.first.size()));
    return order != 0 ? order < 0 : a.starts < b.starts;
  };
  // The kernel's tree of intervals lists the last one first.
  std::ranges::reverse(set.elements);
  if (!std::ranges::is_sorted(set.elements, before_other)) std::ranges::sort(set.elements, before_other);
  const bool interval = (set.flags & NFT_SET_INTERVAL) != 0;
  for (std::size_t i = 0; i < set.elements.size(); ++i) {
    KernelElement& element = set.elements[i];
    if (!element.starts || !element.last.empty()) continue;
    if (!interval || (set.flags & NFT_SET_CONCAT) != 0) {
      element.last = element.first;
    } else if (i + 1 < set.elements.size()) {
      element.last = before(set.elements[i + 1].first);
    } else {  // up to the highest value there is
      element.last.assign(element.first.size(), '\xff');
    }
  }
  std::erase_if(set.elements, [](const KernelElement& element) { return !element.starts; });
}

void read_set(Socket& socket, const TableKey& key, const std::string& name, KernelSet& set) {
  ask(socket, NFT_MSG_GETSETELEM, key.family, {{NFTA_SET_ELEM_LIST_TABLE, key.name}, {NFTA_SET_ELEM_LIST_SET, name}},
      [&](std::uint8_t, const Attributes& message) {
        const nlattr* list = message.find(NFTA_SET_ELEM_LIST_ELEMENTS);
        if (list == nullptr) return;
        for (const nlattr* element : Attributes(list)) take_element(element, set);
      });
  join_intervals(set);
}

constexpr std::uint32_t verdict_data = 0xffffff00;  // NFT_DATA_VERDICT

KernelSet set_of(const Attributes& message) {
  constexpr std::uint32_t known = NFT_SET_ANONYMOUS | NFT_SET_CONSTANT | NFT_SET_INTERVAL | NFT_SET_MAP |
                                  NFT_SET_TIMEOUT | NFT_SET_EVAL | NFT_SET_OBJECT | NFT_SET_CONCAT | NFT_SET_EXPR;
  KernelSet set;
  set.flags = number_or<std::uint32_t>(message, NFTA_SET_FLAGS, 0);
  set.key_size = network_order<std::uint32_t>(required(message, NFTA_SET_KEY_LEN));
  set.verdicts = number_or<std::uint32_t>(message, NFTA_SET_DATA_TYPE, 0) == verdict_data;
  if ((set.flags & (NFT_SET_EVAL | NFT_SET_TIMEOUT)) != 0) set.opaque = "packets and time change what it holds";
  if ((set.flags & ~known) != 0) set.opaque = fmt::format("it has the flags {:#x}", set.flags);
  return set;
}

// The sets that the expressions of a rule name, wherever they do.
void add_used(const KernelRule& rule, std::set<std::string>& used) {
  for (const nlattr* expression : Attributes(std::span<const std::byte>(rule.expressions))) {
    const nlattr* name = Attributes(expression).find(NFTA_EXPR_NAME);
    const nlattr* data = Attributes(expression).find(NFTA_EXPR_DATA);
    if (name == nullptr || data == nullptr || string(name) != "lookup") continue;
    if (const nlattr* set = Attributes(data).find(NFTA_LOOKUP_SET)) used.insert(string(set));
  }
}

void add_jumps(const std::string& map, const KernelSet& set, std::vector<MapJump>& jumps) {
  const std::size_t first = jumps.size();
  const auto add = [&](const KernelElement& element) {
    const auto known = std::ranges::find(jumps.begin() + static_cast<std::ptrdiff_t>(first), jumps.end(), element.chain,
                                         &MapJump::chain);
    if (!element.chain.empty() && known == jumps.end()) jumps.push_back({map, element.chain});
  };
  std::ranges::for_each(set.elements, add);
  if (set.any_other) add(*set.any_other);
}

// The sets that rules look into, and the maps that lead to chains whether a rule does or not.
void read_sets(Socket& socket, KernelTable& table) {
  const TableKey& key = table.key;
  std::set<std::string> used;
  for (const KernelChain& chain : table.chains) {
    for (const KernelRule& rule : chain.rules) add_used(rule, used);
  }
  if (used.empty() && table.uses <= table.chains.size()) return;
  std::map<std::string, KernelSet> sets;
  ask(socket, NFT_MSG_GETSET, key.family, {{NFTA_SET_TABLE, key.name}},
      [&](std::uint8_t family, const Attributes& message) {
        if (family != key.family || string(required(message, NFTA_SET_TABLE)) != key.name) return;
        std::string name = string(required(message, NFTA_SET_NAME));
        KernelSet set = set_of(message);
        if (used.contains(name) || set.verdicts) sets[std::move(name)] = std::move(set);
      });
  for (auto& [name, set] : sets) {
    read_set(socket, key, name, set);
    if (set.verdicts) add_jumps(name, set, table.jumps);
    if (used.contains(name)) table.sets[name] = std::move(set);
  }
}

Dump read_all(Socket& socket, const std::function<bool(const TableKey&)>& wanted) {
  Dump result;
  read_tables(socket, wanted, result);
  if (result.tables.empty()) return result;
  read_chains(socket, result);
  for (KernelTable& table : result.tables) {
    if (table.chains.empty()) continue;
    read_rules(socket, table);
    read_sets(socket, table);
  }
  return result;
}

}  // namespace

Dump dump(Socket& socket, const std::function<bool(const TableKey&)>& wanted) {
  std::optional<std::uint32_t> generation_seen;
  return netlink::read_consistent(socket, [&]() -> std::optional<Dump> {
    const std::uint32_t before = generation_seen ? *generation_seen : generation(socket);
    generation_seen.reset();
    Dump result = read_all(socket, wanted);
    result.generation = generation(socket);
    if (result.generation == before) return result;
    generation_seen = result.generation;
    return std::nullopt;
  });
}

bool of_pods(const TableKey& table) {
  constexpr std::uint8_t families[] = {NFPROTO_INET,   NFPROTO_IPV4, NFPROTO_IPV6,
                                       NFPROTO_NETDEV, NFPROTO_ARP,  NFPROTO_BRIDGE};
  return std::ranges::find(families, table.family) != std::end(families);
}

}  // namespace sidetrack::nft
