// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/nf_tables.h"

#include <set>

#include "kernel/inspect.h"
#include "model/error.h"

namespace sidetrack::nft {

const KnownSets NfTables::no_sets;

Transaction NfTables::transaction_of(std::span<const Change> changes) const {
  Transaction transaction(changes.front().seen->generation, mesh_);
  for (const auto& [seen, wanted, equal] : changes) {
    if (seen->backend == BackendKind::nftables) {
      change_nftables(*seen, *wanted, transaction);
    } else {
      change_iptables_nft(*seen, *wanted, equal, transaction);
    }
  }
  return transaction;
}

Dump NfTables::fetch() { return dump(socket_, of_pods); }

LiveNfTables NfTables::decoded(const Dump& fetched) const {
  return {iptables_live(fetched, sets_, mesh_), native_live(fetched, mesh_)};
}

Live NfTables::read(BackendKind kind) {
  return kind == BackendKind::nftables ? native_live(dump(socket_, is_native), mesh_)
                                       : iptables_live(dump(socket_, is_of_iptables), sets_, mesh_);
}

void NfTables::commit(std::span<const Change> changes) { transaction_of(changes).commit(socket_); }

void NfTables::check(std::span<const Change> changes) { transaction_of(changes).check(socket_); }

}  // namespace sidetrack::nft

namespace sidetrack {

TableNames nf_tables() {
  try {
    netlink::Socket socket = nft::open_socket();
    std::set<std::string> names;  // a set: a disturbed dump is begun anew
    static_cast<void>(nft::dump(socket, [&](const nft::TableKey& key) {
      names.insert(text(key));
      return false;
    }));
    return TableNames(std::in_place, names.begin(), names.end());
  } catch (const Error& error) {
    if (error.code() == ExitCode::kernel_lacks) return TableNames(std::in_place);
    return std::nullopt;
  }
}

}  // namespace sidetrack
