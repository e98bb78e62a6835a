// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/nf_tables.h"

#include "kernel/nft/backends_of_dump.h"

namespace sidetrack {
namespace nft {
namespace {

Transaction transaction_of(std::span<const Change> changes) {
  Transaction transaction(changes.front().seen->generation);
  for (const auto& [seen, wanted, equal] : changes) {
    if (seen->backend == BackendKind::nftables) {
      change_nftables(*seen, *wanted, transaction);
    } else {
      change_iptables_nft(*seen, *wanted, equal, transaction);
    }
  }
  return transaction;
}

// One of the two backends alone.
class NftBackend final : public Backend {
 public:
  explicit NftBackend(BackendKind kind) : kind_(kind) {}

  [[nodiscard]] BackendKind kind() const override { return kind_; }

  Live read() override { return tables_.read(kind_); }

  using Backend::replace;
  void replace(const Live& seen, const Ruleset& wanted, EqualRules equal) override {
    const Change change{&seen, &wanted, equal};
    tables_.commit(std::span(&change, 1));
  }

  std::vector<std::string> check(const Live& seen, const Ruleset& wanted) override {
    const Change change{&seen, &wanted, EqualRules::keep};
    tables_.check(std::span(&change, 1));
    return {};
  }

 private:
  BackendKind kind_;
  NfTables tables_;
};

}  // namespace

const KnownSets NfTables::no_sets;

Dump NfTables::fetch() { return dump(socket_, of_pods); }

LiveNfTables NfTables::decoded(const Dump& fetched) const {
  return {iptables_live(fetched, sets_), native_live(fetched)};
}

Live NfTables::read(BackendKind kind) {
  return kind == BackendKind::nftables ? native_live(dump(socket_, is_native))
                                       : iptables_live(dump(socket_, is_of_iptables), sets_);
}

void NfTables::commit(std::span<const Change> changes) { transaction_of(changes).commit(socket_); }

void NfTables::check(std::span<const Change> changes) { transaction_of(changes).check(socket_); }

}  // namespace nft

std::unique_ptr<Backend> open_iptables_nft() { return std::make_unique<nft::NftBackend>(BackendKind::iptables_nft); }
LiveNfTables read_nf_tables() { return nft::NfTables().read(); }

std::unique_ptr<Backend> open_nftables() { return std::make_unique<nft::NftBackend>(BackendKind::nftables); }

}  // namespace sidetrack
