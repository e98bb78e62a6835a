// SPDX-License-Identifier: GPL-2.0-or-later
// One backend alone on the real kernel, by the parts that the program's Kernel has.
#pragma once

#include <memory>

#include "kernel/legacy/legacy.h"
#include "kernel/nft/nf_tables.h"
#include "mesh/istio_rules.h"

namespace sidetrack {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Live read() = 0;
  virtual void replace(const Live& seen, const Ruleset& wanted, EqualRules equal) = 0;
  void replace(const Live& seen, const Ruleset& wanted) { replace(seen, wanted, EqualRules::keep); }
  virtual std::vector<std::string> check(const Live& seen, const Ruleset& wanted) = 0;
};

class NftBackend : public Backend {
 public:
  explicit NftBackend(BackendKind kind) : kind_(kind) {}
  using Backend::replace;
  Live read() override { return tables_.read(kind_); }
  void replace(const Live& seen, const Ruleset& wanted, EqualRules equal) override {
    const Change change{&seen, &wanted, equal};
    tables_.commit({&change, 1});
  }
  std::vector<std::string> check(const Live& seen, const Ruleset& wanted) override {
    const Change change{&seen, &wanted, EqualRules::keep};
    tables_.check({&change, 1});
    return {};
  }

 private:
  BackendKind kind_;
  nft::NfTables tables_{istio_rules};
};

class LegacyBackend : public Backend {
 public:
  explicit LegacyBackend(const legacy::Tables::Options& options) : tables_(istio_rules, options) {}
  using Backend::replace;
  Live read() override { return tables_.read(); }
  void replace(const Live& seen, const Ruleset& wanted, EqualRules equal) override {
    tables_.replace(seen, wanted, equal);
  }
  std::vector<std::string> check(const Live& seen, const Ruleset& wanted) override {
    return tables_.check(seen, wanted);
  }
  [[nodiscard]] std::string warning() const { return tables_.warning(); }

 private:
  legacy::Tables tables_;
};

inline std::unique_ptr<Backend> open_iptables_nft() { return std::make_unique<NftBackend>(BackendKind::iptables_nft); }
inline std::unique_ptr<Backend> open_nftables() { return std::make_unique<NftBackend>(BackendKind::nftables); }
inline std::unique_ptr<LegacyBackend> open_iptables_legacy(const legacy::Tables::Options& options) {
  return std::make_unique<LegacyBackend>(options);
}

}  // namespace sidetrack
