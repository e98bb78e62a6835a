// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernel/legacy/iptc_table.h"
#include "kernel/lock.h"
#include "kernel/nft/nf_tables.h"
#include "mesh/ownership.h"
#include "model/error.h"

namespace sidetrack {
namespace {

// What `read` gives; that the kernel lacks it, or that it may not be read.
template <typename Read>
Sight<Live> sight(Read read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() == ExitCode::kernel_lacks) return Absent{error};
    if (error.code() == ExitCode::not_permitted) return Unreadable{error};
    throw;
  }
}

// The built-in chains of the tables of legacy iptables that exist, each with a rule that may do anything.
std::vector<LiveChain> unknown_chains(const Error& why) {
  std::vector<LiveChain> chains;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Table table : legacy::existing_tables(family)) {
      for (const Hook at : all_hooks) {
        const std::string chain_name(name(at));
        const auto hook = builtin_hook(table, chain_name);
        if (!hook) continue;
        LiveChain& chain = chains.emplace_back();
        chain.families = family;
        chain.table = table;
        chain.name = chain_name;
        chain.hook = hook;
        chain.table_name = name(table);
        LiveRule& unknown = chain.rules.emplace_back();
        unknown.rule.families = family;
        unknown.rule.table = table;
        unknown.rule.chain = chain_name;
        unknown.rule.target = UnknownTarget{fmt::format("[not readable: {}]", why.what())};
      }
    }
  }
  return chains;
}

class LinuxKernel final : public Kernel {
 public:
  explicit LinuxKernel(const KernelOptions& options) : options_(options) {
    if (options.write) lock_.emplace(options.wait);
    routes_ = open_routes();
  }

  Survey survey() override {
    Survey survey;
    survey_legacy(survey);
    survey_nf_tables(survey);
    Routes::State routing = routes_->read();
    survey.routing = std::move(routing.ours);
    survey.others_routing = std::move(routing.others);
    const auto others = [&](BackendKind kind) {
      const auto* unreadable = std::get_if<Unreadable>(&survey.of(kind));
      if (unreadable != nullptr) return !unreadable->chains.empty();
      const Live* live = survey.live(kind);
      return live != nullptr && holds_others(*live);
    };
    if (routing.unusual || std::ranges::any_of(all_backends, others)) {
      survey.pod = read_pod();
    }
    return survey;
  }

  std::vector<Live> read(std::span<const Change> committed) override {
    std::vector<Live> after;
    if (is_legacy(committed)) {
      open_legacy(false);
      after.push_back(legacy_->read());
    } else if (committed.size() == 1) {
      after.push_back(nf_tables_->read(committed.front().seen->backend));
    } else {
      LiveNfTables both = nf_tables_->read();
      for (const Change& change : committed) {
        after.push_back(change.seen->backend == BackendKind::nftables ? std::move(both.nftables)
                                                                      : std::move(both.iptables_nft));
      }
    }
    return after;
  }

  void commit(std::span<const Change> changes) override {
    if (is_legacy(changes)) {
      open_legacy(true);
      const auto& [seen, wanted, equal] = changes.front();
      legacy_->replace(*seen, *wanted, equal);
    } else {
      nf_tables_->commit(changes);
    }
  }

  std::vector<std::string> check(std::span<const Change> changes) override {
    if (!is_legacy(changes)) {
      nf_tables_->check(changes);
      return {};
    }
    open_legacy(false);
    return legacy_->check(*changes.front().seen, *changes.front().wanted);
  }

  Routing add(const Routing& wanted) override { return routes_->add(wanted); }
  void remove(const Routing& unwanted) override { routes_->remove(unwanted); }

  [[nodiscard]] std::vector<std::string> warnings() const override {
    std::vector<std::string> all;
    if (lock_ && !lock_->warning().empty()) all.push_back(lock_->warning());
    if (legacy_) std::ranges::copy(legacy_->warnings(), std::back_inserter(all));
    return all;
  }

 private:
  static bool is_legacy(std::span<const Change> changes) { return !traits(changes.front().seen->backend).of_nf_tables; }

  // With the lock, if it is to write.
  void open_legacy(bool write) {
    const bool lock = write && options_.xtables_lock;
    if (legacy_ && (legacy_locked_ || !lock)) return;
    legacy_ = open_iptables_legacy({.read_only = !lock, .lock_file = {}, .wait = options_.wait});
    legacy_locked_ = lock;
  }

  void survey_legacy(Survey& survey) {
    bool any = false;
    bool may_hold_ours = true;  // as long as the names are not known
    Sight<Live>& seen = survey.of(BackendKind::iptables_legacy);
    seen = sight([&]() -> Live {
      bool of_plans = false;
      for (Family family : {Family::ipv4, Family::ipv6}) {
        for (const std::string& table : legacy::table_names(family)) {
          any = true;
          of_plans = of_plans || std::ranges::find(all_tables, table, [](Table each) { return name(each); }) !=
                                     std::end(all_tables);
        }
      }
      may_hold_ours = of_plans;
      Live nothing;
      nothing.backend = BackendKind::iptables_legacy;
      if (!any) return nothing;
      open_legacy(options_.write);
      return legacy_->read();
    });
    if (auto* unreadable = std::get_if<Unreadable>(&seen)) {
      unreadable->may_hold_ours = may_hold_ours;
      if (!may_hold_ours) unreadable->chains = unknown_chains(unreadable->why);
    }
    const auto* live = std::get_if<Live>(&seen);
    const auto in_use = [](const LiveChain& chain) { return !chain.rules.empty() || !is_builtin(chain.name); };
    survey.legacy_in_use = live != nullptr && std::ranges::any_of(live->chains, in_use);
    if (!any && live != nullptr) seen = Absent{};
  }

  void survey_nf_tables(Survey& survey) {
    LiveNfTables both;
    Sight<Live>& iptables_nft = survey.of(BackendKind::iptables_nft);
    iptables_nft = sight([&] {
      if (!nf_tables_) nf_tables_.emplace();
      both = nf_tables_->read();
      return std::move(both.iptables_nft);
    });
    survey.of(BackendKind::nftables) = std::visit(
        [&](auto& seen) -> Sight<Live> {
          if constexpr (std::is_same_v<std::decay_t<decltype(seen)>, Live>) {
            return std::move(both.nftables);
          } else {
            return seen;
          }
        },
        iptables_nft);
  }

  KernelOptions options_;
  std::optional<NamespaceLock> lock_;  // released last
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<Backend> legacy_;
  bool legacy_locked_ = false;
  std::optional<nft::NfTables> nf_tables_;
};

}  // namespace

std::unique_ptr<Backend> open_backend(BackendKind kind) {
  switch (kind) {
    case BackendKind::iptables_nft:
      return open_iptables_nft();
    case BackendKind::nftables:
      return open_nftables();
    case BackendKind::iptables_legacy:
      break;
  }
  return open_iptables_legacy({.read_only = true});
}

std::unique_ptr<Kernel> open_kernel(const KernelOptions& options) { return std::make_unique<LinuxKernel>(options); }

}  // namespace sidetrack
