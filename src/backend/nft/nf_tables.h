// SPDX-License-Identifier: GPL-2.0-or-later
// Both backends of nf_tables: what they hold is read at once, and changed in one transaction.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/nft/dump.h"
#include "backend/nft/nfnetlink.h"
#include "backend/nft/transaction.h"
#include "sidetrack/kernel.h"

namespace sidetrack::nft {

// The backend iptables-nft: the tables raw, mangle and nat of ip and ip6, which are everybody's.
void change_iptables_nft(const Live& seen, const Ruleset& wanted, EqualRules equal, Transaction& transaction);

// The backend nftables: table inet sidetrack, which is ours alone, and Istio's. Written anew as a whole.
void change_nftables(const Live& seen, const Ruleset& wanted, Transaction& transaction);

// Throws as Kernel and Backend say.
class NfTables {
 public:
  [[nodiscard]] LiveNfTables read();
  [[nodiscard]] Live read(BackendKind kind);
  // Of one survey: all have seen the same generation.
  void commit(std::span<const Change> changes);
  void check(std::span<const Change> changes);

 private:
  netlink::Socket socket_ = open_socket();
};

}  // namespace sidetrack::nft
