// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/nft/dump.h"

#include <libnftnl/common.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <array>
#include <set>

#include "backend/nft/codec.h"
#include "backend/nft/fields.h"
#include "sidetrack/error.h"

namespace sidetrack::nft {
namespace {

constexpr int attempts = 10;

using Filter = std::pair<std::uint16_t, std::string>;  // an attribute and its value

// Every object of a kind that the filters let through.
void ask(Socket& socket, std::uint16_t type, std::uint8_t family, std::initializer_list<Filter> filters,
         const std::function<void(const nlmsghdr*)>& take) {
  alignas(nlmsghdr) std::array<std::byte, 1024> buffer{};
  nlmsghdr* header =
      nftnl_nlmsg_build_hdr(reinterpret_cast<char*>(buffer.data()), type, family, NLM_F_DUMP, socket.next_sequence());
  for (const auto& [attribute, value] : filters) mnl_attr_put_strz(header, attribute, value.c_str());
  socket.request(std::span(buffer).first(header->nlmsg_len), take);
}

std::string text(const char* from) { return from == nullptr ? "" : from; }

std::uint8_t family_of(const nlmsghdr* message) {
  return static_cast<const nfgenmsg*>(mnl_nlmsg_get_payload(message))->nfgen_family;
}

void read_tables(Socket& socket, const std::function<bool(const TableKey&)>& wanted, Dump& into) {
  ask(socket, NFT_MSG_GETTABLE, NFPROTO_UNSPEC, {}, [&](const nlmsghdr* message) {
    const NftnlTable table(allocated(nftnl_table_alloc()));
    if (nftnl_table_nlmsg_parse(message, table.get()) != 0) return;
    TableKey key{family_of(message), text(nftnl_table_get_str(table.get(), NFTNL_TABLE_NAME))};
    if (!wanted(key)) return;
    into.tables.push_back({std::move(key), nftnl_table_get_u32(table.get(), NFTNL_TABLE_USE), {}, {}});
  });
}

// Chains of all tables: the kernel has no narrower request.
void read_chains(Socket& socket, Dump& into) {
  ask(socket, NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, {}, [&](const nlmsghdr* message) {
    const NftnlChain chain(allocated(nftnl_chain_alloc()));
    if (nftnl_chain_nlmsg_parse(message, chain.get()) != 0) return;
    const TableKey key{family_of(message), text(nftnl_chain_get_str(chain.get(), NFTNL_CHAIN_TABLE))};
    const auto table = std::ranges::find(into.tables, key, &KernelTable::key);
    if (table == into.tables.end()) return;
    KernelChain& made = table->chains.emplace_back();
    made.name = text(nftnl_chain_get_str(chain.get(), NFTNL_CHAIN_NAME));
    if (nftnl_chain_is_set(chain.get(), NFTNL_CHAIN_HOOKNUM)) {
      const auto hook = hook_of(key.family, nftnl_chain_get_u32(chain.get(), NFTNL_CHAIN_HOOKNUM));
      const auto type = type_named(text(nftnl_chain_get_str(chain.get(), NFTNL_CHAIN_TYPE)));
      if (hook && type) made.hook = HookPoint{*hook, nftnl_chain_get_s32(chain.get(), NFTNL_CHAIN_PRIO), *type, {}};
      if (nftnl_chain_get_u32(chain.get(), NFTNL_CHAIN_POLICY) == NF_DROP) made.policy = Verdict::drop;
    }
  });
}

// For each part of its answer the kernel counts the rules of the table from the first one on (nf_tables_dump_rules),
// which takes time with their square: a table of many chains is asked chain by chain.
constexpr std::size_t many_chains = 64;

// The rules of all chains, or of one.
void read_rules(Socket& socket, KernelTable& table, KernelChain* const only) {
  const TableKey& key = table.key;
  KernelChain* chain = only;  // of the rule before: the kernel sends them chain by chain
  const Filter of_table{NFTA_RULE_TABLE, key.name};
  const auto take = [&](const nlmsghdr* message) {
    const NftnlRule rule(allocated(nftnl_rule_alloc()));
    if (nftnl_rule_nlmsg_parse(message, rule.get()) != 0) return;
    // Kernels before 4.6 send the rules of all tables.
    if (text(nftnl_rule_get_str(rule.get(), NFTNL_RULE_TABLE)) != key.name) return;
    const std::string in = text(nftnl_rule_get_str(rule.get(), NFTNL_RULE_CHAIN));
    if (chain == nullptr || chain->name != in) {
      if (only != nullptr) return;
      const auto found = std::ranges::find(table.chains, in, &KernelChain::name);
      if (found == table.chains.end()) return;
      chain = &*found;
    }
    chain->rules.push_back(
        {in, nftnl_rule_get_u64(rule.get(), NFTNL_RULE_HANDLE), expressions_of(rule.get()), comment_of(rule.get())});
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

// The value before this one.
Data before(Data value) {
  for (std::size_t i = value.size; i-- > 0;) {
    if (value.bytes[i]-- != 0) break;
  }
  return value;
}

struct Element {
  Data key;
  bool starts = true;  // false: ends the interval before it, and is not part of it
  // An end comes before a start at the same place.
  friend auto operator<=>(const Element&, const Element&) = default;
};

std::vector<std::pair<Data, Data>> values_of(std::vector<Element> elements, bool interval) {
  std::ranges::sort(elements);
  std::vector<std::pair<Data, Data>> values;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Data& key = elements[i].key;
    if (!elements[i].starts) continue;
    if (!interval) {
      values.emplace_back(key, key);
    } else if (i + 1 < elements.size()) {
      values.emplace_back(key, before(elements[i + 1].key));
    } else {  // up to the highest value there is
      Data highest = key;
      std::fill_n(highest.bytes.begin(), highest.size, std::uint8_t{0xff});
      values.emplace_back(key, highest);
    }
  }
  return values;
}

void read_set(Socket& socket, const std::string& name, bool interval, KernelTable& table) {
  const TableKey& key = table.key;
  std::vector<Element> elements;
  const auto take = [](nftnl_set_elem* element, void* to) {
    std::uint32_t size = 0;
    const auto* bytes = static_cast<const std::uint8_t*>(nftnl_set_elem_get(element, NFTNL_SET_ELEM_KEY, &size));
    if (bytes == nullptr) return 0;
    const std::uint32_t flags = nftnl_set_elem_is_set(element, NFTNL_SET_ELEM_FLAGS)
                                    ? nftnl_set_elem_get_u32(element, NFTNL_SET_ELEM_FLAGS)
                                    : 0;
    static_cast<std::vector<Element>*>(to)->push_back(
        {Data(std::span(bytes, size)), (flags & NFT_SET_ELEM_INTERVAL_END) == 0});
    return 0;
  };
  ask(socket, NFT_MSG_GETSETELEM, key.family, {{NFTA_SET_ELEM_LIST_TABLE, key.name}, {NFTA_SET_ELEM_LIST_SET, name}},
      [&](const nlmsghdr* message) {
        const NftnlSet part(allocated(nftnl_set_alloc()));
        if (nftnl_set_elems_nlmsg_parse(message, part.get()) == 0) nftnl_set_elem_foreach(part.get(), take, &elements);
      });
  table.sets[name] = values_of(std::move(elements), interval);
}

// Only the sets that rules look into.
void read_sets(Socket& socket, KernelTable& table) {
  const TableKey& key = table.key;
  std::set<std::string> used;
  for (const KernelChain& chain : table.chains) {
    for (const KernelRule& rule : chain.rules) {
      for (const Expression& expression : rule.expressions) {
        if (const auto* lookup = std::get_if<Lookup>(&expression)) used.insert(lookup->set);
      }
    }
  }
  if (used.empty()) return;
  std::vector<std::pair<std::string, bool>> sets;  // name, interval
  ask(socket, NFT_MSG_GETSET, key.family, {{NFTA_SET_TABLE, key.name}}, [&](const nlmsghdr* message) {
    const NftnlSet set(allocated(nftnl_set_alloc()));
    if (nftnl_set_nlmsg_parse(message, set.get()) != 0) return;
    std::string name = text(nftnl_set_get_str(set.get(), NFTNL_SET_NAME));
    const std::uint32_t flags = nftnl_set_get_u32(set.get(), NFTNL_SET_FLAGS);
    if (used.contains(name)) sets.emplace_back(std::move(name), (flags & NFT_SET_INTERVAL) != 0);
  });
  for (const auto& [name, interval] : sets) read_set(socket, name, interval, table);
}

Dump read_all(Socket& socket, const std::function<bool(const TableKey&)>& wanted) {
  Dump result;
  read_tables(socket, wanted, result);
  if (result.tables.empty()) return result;
  read_chains(socket, result);
  for (KernelTable& table : result.tables) {
    read_rules(socket, table);
    read_sets(socket, table);
  }
  return result;
}

}  // namespace

Dump dump(Socket& socket, const std::function<bool(const TableKey&)>& wanted) {
  std::uint32_t generation = socket.generation();
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    std::optional<Dump> result;
    try {
      result = read_all(socket, wanted);
    } catch (const Error& error) {
      if (error.code() != ExitCode::busy) throw;
    }
    const std::uint32_t after = socket.generation();
    if (result && after == generation) {
      result->generation = generation;
      return *std::move(result);
    }
    generation = after;
  }
  throw Error(ExitCode::busy, "somebody keeps changing the rules of nf_tables while they are read", "run it again");
}

}  // namespace sidetrack::nft
