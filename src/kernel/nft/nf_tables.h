// SPDX-License-Identifier: GPL-2.0-or-later
// Both backends of nf_tables: what they hold is read at once, and changed in one transaction.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/known_sets.h"
#include "kernel/nft/dump.h"
#include "kernel/nft/nfnetlink.h"
#include "kernel/nft/transaction.h"
#include "rule/mesh_rules.h"

namespace sidetrack::nft {

// The backend iptables-nft: the tables raw, mangle and nat of ip and ip6, which all programs share.
void change_iptables_nft(const Live& seen, const Ruleset& wanted, EqualRules equal, Transaction& transaction);

// The backend nftables: table inet sidetrack, which is ours alone, and Istio's. Written anew as a whole.
void change_nftables(const Live& seen, const Ruleset& wanted, Transaction& transaction);

// The tables of iptables: ip and ip6 raw, mangle, nat, filter, security. All others that pods' packets pass are native.
[[nodiscard]] bool is_of_iptables(const TableKey& table);
[[nodiscard]] bool is_native(const TableKey& table);

// Rules that ask a set get its name from `sets`, where it is known.
[[nodiscard]] Live iptables_live(const Dump& seen, const KnownSets& sets, const MeshRules& mesh);
[[nodiscard]] Live native_live(const Dump& seen, const MeshRules& mesh);

// Holds the rules of both backends, read at the same time.
struct LiveNfTables {
  Live iptables_nft;
  Live nftables;
};

// Throws as Kernel says.
class NfTables {
 public:
  // Both outlive this; `sets` names those that rules ask.
  explicit NfTables(const MeshRules& mesh, const KnownSets& sets = no_sets) : mesh_(mesh), sets_(sets) {}
  [[nodiscard]] LiveNfTables read() { return decoded(fetch()); }
  // The two parts of it: what is there, with the rules' bytes as they are; what they mean, for which no right is
  // needed.
  [[nodiscard]] Dump fetch();
  [[nodiscard]] LiveNfTables decoded(const Dump& fetched) const;
  [[nodiscard]] Live read(BackendKind kind);
  // Of one survey: all have seen the same generation.
  void commit(std::span<const Change> changes);
  void check(std::span<const Change> changes);

 private:
  [[nodiscard]] Transaction transaction_of(std::span<const Change> changes) const;

  static const KnownSets no_sets;
  const MeshRules& mesh_;
  const KnownSets& sets_;
  netlink::Socket socket_ = open_socket();
};

}  // namespace sidetrack::nft
