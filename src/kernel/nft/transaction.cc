// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/transaction.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <libnftnl/common.h>
#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernel/nft/codec.h"
#include "kernel/nft/names.h"
#include "kernel/nft/nfnetlink.h"
#include "kernel/nft/refusal.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::nft {
namespace {

// No message is larger: the length of an attribute has 16 bits, and only one attribute of a message is large.
constexpr std::size_t longest_message = 96UL * 1024;

// An element takes up to 44 bytes, and its end as much: less than the 64 KiB that one list may have.
constexpr std::size_t values_per_message = 700;

std::string object_words(const char* what, const std::string& name, const TableKey& table) {
  return fmt::format("the {} {} of the table {}", what, printable(name), text(table));
}

// The value after the last one of a range, which ends it in an interval set; nothing after the highest of all.
std::optional<Data> successor(Data value) {
  return increment(std::span(value.bytes).first(value.size)) ? std::optional(value) : std::nullopt;
}

void add_element(nftnl_set* set, const Data& key, std::uint32_t flags) {
  NftnlElement element(allocated(nftnl_set_elem_alloc()));
  require_copied(nftnl_set_elem_set(element.get(), NFTNL_SET_ELEM_KEY, key.bytes.data(), key.size));
  if (flags != 0) nftnl_set_elem_set_u32(element.get(), NFTNL_SET_ELEM_FLAGS, flags);
  nftnl_set_elem_add(set, element.release());  // the set owns it now
}

// A table, a chain, rules as they are named.
NftnlTable table_named(const TableKey& table) {
  NftnlTable made(allocated(nftnl_table_alloc()));
  require_copied(nftnl_table_set_str(made.get(), NFTNL_TABLE_NAME, table.name.c_str()));
  return made;
}
NftnlChain chain_named(const TableKey& table, const std::string& chain) {
  NftnlChain made(allocated(nftnl_chain_alloc()));
  require_copied(nftnl_chain_set_str(made.get(), NFTNL_CHAIN_TABLE, table.name.c_str()));
  require_copied(nftnl_chain_set_str(made.get(), NFTNL_CHAIN_NAME, chain.c_str()));
  return made;
}
NftnlRule rule_in(const TableKey& table, const std::string& chain) {
  NftnlRule made(allocated(nftnl_rule_alloc()));
  require_copied(nftnl_rule_set_str(made.get(), NFTNL_RULE_TABLE, table.name.c_str()));
  require_copied(nftnl_rule_set_str(made.get(), NFTNL_RULE_CHAIN, chain.c_str()));
  return made;
}

NftnlSet set_header(const TableKey& table, const Set& set) {
  NftnlSet made(allocated(nftnl_set_alloc()));
  nftnl_set_set_u32(made.get(), NFTNL_SET_FAMILY, table.family);
  require_copied(nftnl_set_set_str(made.get(), NFTNL_SET_TABLE, table.name.c_str()));
  require_copied(nftnl_set_set_str(made.get(), NFTNL_SET_NAME, set.name.c_str()));
  nftnl_set_set_u32(made.get(), NFTNL_SET_ID, set.id);
  return made;
}

// nft's user data: without it, it prints ids in the wrong byte order. The oldest kind of all, which every nft reads.
void say_host_order(nftnl_set* set) {
  constexpr std::uint32_t host_endian = 1;  // nft's BYTEORDER_HOST_ENDIAN
  const std::unique_ptr<nftnl_udata_buf, Free<nftnl_udata_buf_free>> data(allocated(nftnl_udata_buf_alloc(16)));
  nftnl_udata_put_u32(data.get(), NFTNL_UDATA_SET_KEYBYTEORDER, host_endian);
  require_copied(
      nftnl_set_set_data(set, NFTNL_SET_USERDATA, nftnl_udata_buf_data(data.get()), nftnl_udata_buf_len(data.get())));
}

}  // namespace

Transaction::Transaction(std::uint32_t generation, const MeshRules& mesh)
    : generation_(generation), mesh_(mesh), draft_(allocated(static_cast<char*>(std::calloc(longest_message, 1)))) {
  // Sequence 0: errors of the commit itself are reported under it.
  nlmsghdr* begin = nftnl_batch_begin(draft_.get(), 0);
  // NFNL_BATCH_GENID (Linux 4.12): only if no other program has committed meanwhile
  mnl_attr_put_u32(begin, NFNL_BATCH_GENID, htonl(generation));
  append(*begin);
}

void Transaction::append(const nlmsghdr& message) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&message);
  bytes_.insert(bytes_.end(), bytes, bytes + message.nlmsg_len);
  bytes_.resize(MNL_ALIGN(bytes_.size()));
  std::memset(draft_.get(), 0, message.nlmsg_len);
}

template <typename Write>
void Transaction::message(std::uint16_t type, std::uint8_t family, std::uint16_t flags, std::string words,
                          const Rule* rule, Write write) {
  steps_.push_back({std::move(words), rule, bytes_.size(), backend_});
  nlmsghdr* header =
      nftnl_nlmsg_build_hdr(draft_.get(), type, family, flags, static_cast<std::uint32_t>(steps_.size()));
  write(header);
  append(*header);
}

void Transaction::add_table(const TableKey& table) {
  // Without flags: those of a table that is there already stay as they are.
  message(NFT_MSG_NEWTABLE, table.family, NLM_F_CREATE, "the table " + text(table), nullptr,
          [&](nlmsghdr* header) { nftnl_table_nlmsg_build_payload(header, table_named(table).get()); });
}

void Transaction::delete_table(const TableKey& table) {
  message(NFT_MSG_DELTABLE, table.family, 0, "to delete the table " + text(table), nullptr,
          [&](nlmsghdr* header) { nftnl_table_nlmsg_build_payload(header, table_named(table).get()); });
}

void Transaction::add_chain(const TableKey& table, const std::string& chain, const std::optional<HookPoint>& hook) {
  std::string what = object_words("chain", chain, table);
  if (hook) what += fmt::format(" ({})", hook_text(*hook));
  message(NFT_MSG_NEWCHAIN, table.family, NLM_F_CREATE, std::move(what), nullptr, [&](nlmsghdr* header) {
    const NftnlChain made = chain_named(table, chain);
    if (hook) {
      require_copied(nftnl_chain_set_str(made.get(), NFTNL_CHAIN_TYPE, name(hook->type).data()));
      nftnl_chain_set_u32(made.get(), NFTNL_CHAIN_HOOKNUM, hook_number(hook->hook));
      nftnl_chain_set_s32(made.get(), NFTNL_CHAIN_PRIO, hook->priority);
      nftnl_chain_set_u32(made.get(), NFTNL_CHAIN_POLICY, NF_ACCEPT);
    }
    nftnl_chain_nlmsg_build_payload(header, made.get());
  });
}

void Transaction::delete_chain(const TableKey& table, const std::string& chain) {
  std::string what = "to delete " + object_words("chain", chain, table);
  message(NFT_MSG_DELCHAIN, table.family, 0, std::move(what), nullptr,
          [&](nlmsghdr* header) { nftnl_chain_nlmsg_build_payload(header, chain_named(table, chain).get()); });
}

void Transaction::add_set(const TableKey& table, const Set& set) {
  const std::string what = object_words("set", set.name, table);
  message(NFT_MSG_NEWSET, table.family, NLM_F_CREATE, what, nullptr, [&](nlmsghdr* header) {
    const NftnlSet made = set_header(table, set);
    std::uint32_t flags = set.interval ? NFT_SET_INTERVAL : 0;
    if (set.anonymous) flags |= NFT_SET_ANONYMOUS | NFT_SET_CONSTANT;
    if (flags != 0) nftnl_set_set_u32(made.get(), NFTNL_SET_FLAGS, flags);
    nftnl_set_set_u32(made.get(), NFTNL_SET_KEY_TYPE, set.type.number);
    nftnl_set_set_u32(made.get(), NFTNL_SET_KEY_LEN, set.type.size);
    if (set.type.host_order) say_host_order(made.get());
    nftnl_set_nlmsg_build_payload(header, made.get());
  });
  for (std::size_t from = 0; from < set.values.size(); from += values_per_message) {
    message(NFT_MSG_NEWSETELEM, table.family, NLM_F_CREATE, what, nullptr, [&](nlmsghdr* header) {
      const NftnlSet made = set_header(table, set);
      const std::size_t count = std::min(values_per_message, set.values.size() - from);
      for (const auto& [first, last] : std::span(set.values).subspan(from, count)) {
        add_element(made.get(), first, 0);
        const auto end = set.interval ? successor(last) : std::nullopt;
        if (end) add_element(made.get(), *end, NFT_SET_ELEM_INTERVAL_END);
      }
      nftnl_set_elems_nlmsg_build_payload(header, made.get());
    });
  }
}

void Transaction::add_rule(const Position& position, std::span<const Expression> expressions,
                           const std::string& comment, const Rule& source, const std::optional<Compat>& compat) {
  const auto flags = static_cast<std::uint16_t>(NLM_F_CREATE | (position.before == 0 ? NLM_F_APPEND : 0));
  message(NFT_MSG_NEWRULE, position.table.family, flags, {}, &source, [&](nlmsghdr* header) {
    const NftnlRule made = rule_in(position.table, position.chain);
    if (position.before != 0) nftnl_rule_set_u64(made.get(), NFTNL_RULE_POSITION, position.before);
    if (compat) {
      nftnl_rule_set_u32(made.get(), NFTNL_RULE_COMPAT_PROTO, compat->protocol);
      nftnl_rule_set_u32(made.get(), NFTNL_RULE_COMPAT_FLAGS, compat->flags);
    }
    for (const Expression& expression : expressions) nftnl_rule_add_expr(made.get(), encode(expression).release());
    set_comment(made.get(), comment);
    nftnl_rule_nlmsg_build_payload(header, made.get());
  });
}

void Transaction::delete_rule(const TableKey& table, const std::string& chain, std::uint64_t handle) {
  std::string what = fmt::format("to delete a rule of {}", object_words("chain", chain, table));
  message(NFT_MSG_DELRULE, table.family, 0, std::move(what), nullptr, [&](nlmsghdr* header) {
    const NftnlRule made = rule_in(table, chain);
    nftnl_rule_set_u64(made.get(), NFTNL_RULE_HANDLE, handle);
    nftnl_rule_nlmsg_build_payload(header, made.get());
  });
}

void Transaction::delete_rules(const TableKey& table, const std::string& chain) {
  std::string what = "to delete the rules of " + object_words("chain", chain, table);
  message(NFT_MSG_DELRULE, table.family, 0, std::move(what), nullptr,
          [&](nlmsghdr* header) { nftnl_rule_nlmsg_build_payload(header, rule_in(table, chain).get()); });
}

namespace {

// Not busy if it cannot be asked for: that would say that nothing was committed.
std::uint32_t generation_after(netlink::Socket& socket) {
  try {
    return generation(socket);
  } catch (const Error& error) {
    if (error.code() != ExitCode::busy) throw;
    throw Error(ExitCode::failed, error.what(), error.hint());
  }
}

}  // namespace

void Transaction::commit(netlink::Socket& socket) {
  if (empty()) return;
  const std::size_t end = bytes_.size();
  append(*nftnl_batch_end(draft_.get(), static_cast<std::uint32_t>(steps_.size() + 1)));
  send(socket);
  bytes_.resize(end);
  // The kernel acknowledges the last message before it commits. What proves the commit is that the generation moved.
  if (generation_after(socket) == generation_) {
    throw Error(ExitCode::failed, "nf_tables: the kernel acknowledged the rules and did not commit them");
  }
}

void Transaction::check(netlink::Socket& socket) {
  if (!empty()) send(socket);
}

void Transaction::send(netlink::Socket& socket) {
  const auto last = static_cast<std::uint32_t>(steps_.size());
  reinterpret_cast<nlmsghdr*>(bytes_.data() + steps_.back().offset)->nlmsg_flags |= NLM_F_ACK;
  std::vector<netlink::Reply> replies = transact(socket, bytes_);
  std::erase_if(replies, [&](const netlink::Reply& reply) { return reply.sequence > last; });  // to another question
  // The first error is the cause; later ones may follow from it.
  for (const netlink::Reply& reply : replies) {
    if (reply.error != 0) refused(reply);
  }
  if (std::ranges::none_of(replies, [&](const netlink::Reply& reply) { return reply.sequence == last; })) {
    throw Error(ExitCode::failed, "nf_tables: the kernel did not answer");
  }
}

void Transaction::refused(const netlink::Reply& reply) const {
  if (reply.error == ERESTART) {
    throw Error(ExitCode::busy, "nf_tables: another program changed the rules meanwhile", "run it again");
  }
  // 0: the commit itself, or the whole batch for want of a right.
  if (reply.sequence == 0) throw unavailable(reply.error, "nf_tables refuses the rules");
  const Step& step = steps_.at(reply.sequence - 1);
  throw nft_refusal({.backend = step.backend,
                     .error = reply.error,
                     .step = step.words,
                     .rule = step.rule,
                     .message = reinterpret_cast<const nlmsghdr*>(bytes_.data() + step.offset),
                     .offset = reply.offset,
                     .flag = step.rule != nullptr ? mesh_.notes(*step.rule).flag : ""});
}

}  // namespace sidetrack::nft
