// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/netlink/ask.h"
#include "kernel/nft/codec.h"
#include "kernel/nft/native.h"
#include "rule/live.h"
#include "rule/mesh_rules.h"

namespace sidetrack::nft {

// Changes that happen together or not at all. Adding to it cannot fail; `commit` and `check` send it whole.
class Transaction {
 public:
  // What an iptables extension asks of the rule around it: protocol and whether it is negated.
  struct Compat {
    std::uint32_t protocol = 0;
    std::uint32_t flags = 0;
  };
  struct Position {
    TableKey table;
    std::string chain;
    std::uint64_t before = 0;  // the handle of the rule to stand before; 0: at the end of the chain
  };

  // `generation`: what the namespace is expected to hold. If it changed meanwhile, nothing happens but `busy`.
  // `mesh` outlives this.
  Transaction(std::uint32_t generation, const MeshRules& mesh);

  [[nodiscard]] const MeshRules& mesh() const { return mesh_; }

  // The backend that the following changes are part of, for errors.
  void begin(BackendKind backend) { backend_ = backend; }
  // Keeps rules alive for as long as this.
  const Ruleset& keep(Ruleset rules) { return kept_.emplace_back(std::move(rules)); }

  void add_table(const TableKey& table);
  void delete_table(const TableKey& table);
  void add_chain(const TableKey& table, const std::string& chain, const std::optional<HookPoint>& hook);
  void delete_chain(const TableKey& table, const std::string& chain);
  void add_set(const TableKey& table, const Set& set);  // with its elements
  // `source` is what errors call the rule by; it must live as long as this.
  void add_rule(const Position& position, std::span<const Expression> expressions, const std::string& comment,
                const Rule& source, const std::optional<Compat>& compat = {});
  void delete_rule(const TableKey& table, const std::string& chain, std::uint64_t handle);
  void delete_rules(const TableKey& table, const std::string& chain);  // all of the chain

  [[nodiscard]] bool empty() const { return steps_.empty(); }

  void commit(netlink::Socket& socket);
  // Sends it without its end: the kernel looks at everything and keeps nothing.
  void check(netlink::Socket& socket);

 private:
  // One message, in the words of an error about it.
  struct Step {
    std::string words;
    const Rule* rule = nullptr;
    std::size_t offset = 0;  // in bytes_
    BackendKind backend = BackendKind::nftables;
  };

  // Appends a message; `write` gets its header and may add up to 64 KiB of attributes.
  template <typename Write>
  void message(std::uint16_t type, std::uint8_t family, std::uint16_t flags, std::string words, const Rule* rule,
               Write write);
  void append(const nlmsghdr& message);
  void send(netlink::Socket& socket);
  [[noreturn]] void refused(const netlink::Reply& reply) const;

  BackendKind backend_ = BackendKind::nftables;
  std::uint32_t generation_;
  const MeshRules& mesh_;
  std::list<Ruleset> kept_;
  // The message that is being written, apart from the others, which a vector would have to clear room for in advance:
  // each page of that would cost a page fault. Zeros beyond it, since libmnl 1.0.4 leaves what pads an attribute as it
  // was: of calloc, which does not clear what the kernel has just given.
  std::unique_ptr<char[], Free<std::free>> draft_;
  std::vector<std::byte> bytes_;
  std::vector<Step> steps_;
};

}  // namespace sidetrack::nft
