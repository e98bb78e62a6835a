// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <type_traits>

#include "kernel/ipset/ipset.h"
#include "kernel/legacy/legacy.h"
#include "kernel/legacy/refusal.h"
#include "kernel/lock.h"
#include "kernel/nft/nf_tables.h"
#include "model/error.h"
#include "rule/ours.h"
#include "system/known_file.h"
#include "system/sandbox.h"

namespace sidetrack {
namespace {

// What `read` gives; that the kernel lacks it, or that it may not be read.
template <typename Read>
ReadResult<std::invoke_result_t<Read>> read_result(Read read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() == ExitCode::kernel_lacks) return Absent{error};
    if (error.code() == ExitCode::not_permitted) return Unreadable{error};
    throw;
  }
}

// The same, of what has been seen already.
template <typename Seen, typename Next>
ReadResult<std::invoke_result_t<Next, const Seen&>> then(const ReadResult<Seen>& seen, Next next) {
  if (const auto* absent = std::get_if<Absent>(&seen)) return *absent;
  if (const auto* unreadable = std::get_if<Unreadable>(&seen)) return *unreadable;
  return read_result([&] { return next(std::get<Seen>(seen)); });
}

// The built-in chains of the tables of legacy iptables that exist, each with a rule that may do anything.
std::vector<LiveChain> unknown_chains(const Error& why) {
  std::vector<LiveChain> chains;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Table table : legacy::existing_tables(family)) {
      for (const std::string& chain_name : builtin_chains(table)) {
        LiveChain& chain = chains.emplace_back();
        chain.families = family;
        chain.table = table;
        chain.name = chain_name;
        chain.hook = builtin_hook(table, chain_name);
        chain.table_name = name(table);
        const UnknownTarget unknown{fmt::format("[not readable: {}]", why.what())};
        chain.rules.push_back({{family, table, chain_name, {}, unknown, {}, {}}, {}});
      }
    }
  }
  return chains;
}

class LinuxKernel final : public Kernel {
 public:
  LinuxKernel(const MeshRules& mesh, const KernelOptions& options)
      : mesh_(mesh), options_(options), deadline_(options.wait) {
    if (options.write) {
      lock_.emplace(deadline_);
      if (options.xtables_lock && writes_legacy()) lock_file_ = open_lock_file();
      routes_ = open_routes(options.agent_rules);
    } else {
      routes_ = open_routes_to_read(options.agent_rules);
    }
  }

  Survey survey() override {
    Survey survey;
    const ReadResult<LegacyFetched> legacy = fetch_legacy();
    const ReadResult<nft::Dump> nf_tables = fetch_nf_tables();
    found_tables_ = has_tables(legacy, nf_tables);
    const auto sets = fetch_sets();
    if (options_.reads_once) give_up_capabilities();
    if (sets) sets_ = ipset::Sets::decoded(*sets);
    survey_legacy(legacy, survey);
    survey_nf_tables(nf_tables, survey);
    const auto others = [&](BackendKind kind) {
      const auto* unreadable = std::get_if<Unreadable>(&survey.of(kind));
      if (unreadable != nullptr) return !unreadable->chains.empty();
      const Live* live = survey.live(kind);
      return live != nullptr && holds_others(*live);
    };
    if (mesh_.name.empty()) claim_marks(survey);
    Routes::State routing = routes_->read();
    survey.routing = mesh_.name.empty() ? std::move(routing.ours) : routing_of_mark(pod(), mesh_.mark);
    survey.others_routing = std::move(routing.others);
    made_by_us_ = is_of_ambient(survey.routing);
    for (const BackendKind kind : all_backends) {
      auto* live = std::get_if<Live>(&survey.of(kind));
      if (live != nullptr && left_to_agents(*live)) survey.of_agents.push_back(kind);
    }
    of_agents_ = survey.of_agents;
    if (routing.unusual || std::ranges::any_of(all_backends, others)) {
      survey.pod = pod();
    }
    return survey;
  }

  PodView pod() override {
    has_looked_at_pod_ = true;
    return routes_->pod();
  }

  std::vector<Live> read(std::span<const Change> committed) override {
    std::vector<Live> after;
    if (const auto sets = fetch_sets()) sets_ = ipset::Sets::decoded(*sets);
    if (is_legacy(committed)) {
      open_legacy(false);
      after.push_back(legacy_->read());
    } else if (committed.size() == 1) {
      after.push_back(nf_tables_->read(committed.front().seen->backend));
    } else {
      nft::LiveNfTables both = nf_tables_->read();
      for (const Change& change : committed) {
        after.push_back(change.seen->backend == BackendKind::nftables ? std::move(both.nftables)
                                                                      : std::move(both.iptables_nft));
      }
    }
    for (Live& live : after) static_cast<void>(left_to_agents(live));
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

  void release_locks() override {
    legacy_.reset();
    legacy_locked_ = false;
    if (lock_) lock_->release();
  }

  void begin_confirmation() override {
    if (lock_) lock_->begin_confirmation();
  }

  void take_locks() override {
    deadline_ = Deadline(options_.wait);
    if (lock_) lock_->take(deadline_);
  }

  [[nodiscard]] const Deadline& deadline() const override { return deadline_; }

  [[nodiscard]] HeldSignals::Which held_signals() const override { return options_.held_signals; }

  [[nodiscard]] std::vector<std::string> warnings() const override {
    std::vector<std::string> all;
    if (lock_ && !lock_->warning().empty()) all.push_back(lock_->warning());
    if (legacy_ && !legacy_->warning().empty()) all.push_back(legacy_->warning());
    if (std::string problem = has_looked_at_pod_ ? settings_problem() : ""; !problem.empty())
      all.push_back(std::move(problem));
    if (!of_agents_.empty()) {
      std::vector<std::string_view> places;
      for (const BackendKind kind : of_agents_) places.push_back(name(kind));
      all.push_back(
          fmt::format("{}: the rules of an ambient pod, which an agent of the node made, are left as they are; "
                      "'sidetrack clean --dataplane ambient' removes them",
                      fmt::join(places, ", ")));
    }
    return all;
  }

 private:
  // Whether there are any rules that an agent made, which are none of ours then.
  [[nodiscard]] bool left_to_agents(Live& live) const {
    return options_.agent_rules == AgentRules::foreign && mesh_.leave_to_agents(live, made_by_us_);
  }

  static bool is_legacy(std::span<const Change> changes) { return !traits(changes.front().seen->backend).of_nf_tables; }

  // ---- Sets of ip_set.

  // Only where a rule of iptables may ask one: the question would load the module. Without an answer no rule's set has
  // a name.
  std::optional<ipset::Sets::Fetched> fetch_sets() {
    sets_.clear();
    if (!may_ask_sets()) return {};
    try {
      if (!ip_set_) ip_set_.emplace();
      return ip_set_->fetch();
    } catch (const Error& error) {
      if (error.code() == ExitCode::busy) throw;
      return {};
    }
  }

  [[nodiscard]] bool may_ask_sets() const {
    if (!found_tables_) return false;
    const KnownText matches = read_known_file(KnownFile::ip_tables_matches);
    return matches.error == 0 && ("\n" + matches.text).find("\nset\n") != std::string::npos;
  }

  // -A ISTIO_TPROXY … -j TPROXY --tproxy-mark MARK, of istio-iptables with another mark and another table
  void claim_marks(const Survey& survey) {
    for (const Live* live : survey.all()) {
      for (const LiveChain& chain : live->chains) {
        for (const LiveRule& each : chain.rules) {
          const auto* tproxy = std::get_if<Tproxy>(&each.rule.target);
          if (chain.ours && tproxy != nullptr) routes_->claim(tproxy->mark);
        }
      }
    }
  }

  // With the lock, if it is to write.
  void open_legacy(bool write) {
    const bool lock = write && options_.xtables_lock;
    if (legacy_ && (legacy_locked_ || !lock)) return;
    if (lock && !lock_file_) {
      // No module of legacy iptables is loaded by what asks for its tables.
      if (!legacy::kernel_has_tables(Family::ipv4)) throw legacy::cannot_open(ENOPROTOOPT, Family::ipv4, Table::nat);
      throw Error(ExitCode::busy, "another program started using legacy iptables", "run it again");
    }
    legacy_.reset();
    legacy_.emplace(mesh_, legacy::Tables::Options{lock ? lock_file_ : nullptr, deadline_, &sets_});
    legacy_locked_ = lock;
  }

  struct LegacyFetched {
    bool any = false;            // a table exists
    bool may_hold_ours = false;  // one that plans are about
  };

  static bool has_tables(const ReadResult<LegacyFetched>& legacy, const ReadResult<nft::Dump>& nf_tables) {
    const auto* of_legacy = std::get_if<LegacyFetched>(&legacy);
    const auto* of_nf_tables = std::get_if<nft::Dump>(&nf_tables);
    return (of_legacy != nullptr && of_legacy->any) || (of_nf_tables != nullptr && !of_nf_tables->tables.empty());
  }

  // What is there, undecoded.
  ReadResult<LegacyFetched> fetch_legacy() {
    LegacyFetched fetched{false, true};  // as long as the names are not known
    ReadResult<LegacyFetched> seen = read_result([&] {
      bool of_plans = false;
      for (Family family : {Family::ipv4, Family::ipv6}) {
        for (const std::string& table : legacy::table_names(family)) {
          fetched.any = true;
          of_plans = of_plans || is_written(table);
        }
      }
      fetched.may_hold_ours = of_plans;
      if (fetched.any) {
        open_legacy(options_.write);
        legacy_->fetch();
      }
      return fetched;
    });
    if (auto* unreadable = std::get_if<Unreadable>(&seen)) {
      unreadable->may_hold_ours = fetched.may_hold_ours;
      if (!fetched.may_hold_ours) unreadable->chains = unknown_chains(unreadable->why);
    }
    return seen;
  }

  ReadResult<nft::Dump> fetch_nf_tables() {
    return read_result([&] {
      if (!nf_tables_) nf_tables_.emplace(mesh_, sets_);
      return nf_tables_->fetch();
    });
  }

  void survey_legacy(const ReadResult<LegacyFetched>& fetched, Survey& survey) {
    ReadResult<Live>& seen = survey.of(BackendKind::iptables_legacy);
    seen = then(fetched, [&](const LegacyFetched& there) {
      if (there.any) return legacy_->read();
      Live nothing;
      nothing.backend = BackendKind::iptables_legacy;
      return nothing;
    });
    const auto* live = std::get_if<Live>(&seen);
    const auto in_use = [](const LiveChain& chain) { return !chain.rules.empty() || !is_builtin(chain.name); };
    survey.legacy_in_use = live != nullptr && std::ranges::any_of(live->chains, in_use);
    const auto* names = std::get_if<LegacyFetched>(&fetched);
    if (names != nullptr && !names->any) seen = Absent{};
  }

  void survey_nf_tables(const ReadResult<nft::Dump>& fetched, Survey& survey) {
    nft::LiveNfTables both;
    survey.of(BackendKind::iptables_nft) = then(fetched, [&](const nft::Dump& dump) {
      both = nf_tables_->decoded(dump);
      return std::move(both.iptables_nft);
    });
    survey.of(BackendKind::nftables) = then(fetched, [&](const nft::Dump&) { return std::move(both.nftables); });
  }

  // Where that is known not to be, the file of the lock is not made.
  [[nodiscard]] bool writes_legacy() const {
    return std::ranges::any_of(std::array{KnownFile::ip_tables_names, KnownFile::ip6_tables_names},
                               [&](KnownFile file) {
                                 const KnownText names = read_known_file(file);
                                 return names.error == 0 && (options_.makes_legacy_tables || !names.text.empty());
                               });
  }

  const MeshRules mesh_;
  KernelOptions options_;
  Deadline deadline_;
  std::optional<NamespaceLock> lock_;                // released last
  std::shared_ptr<const OpenedLockFile> lock_file_;  // nullptr: none is taken
  bool found_tables_ = false;                        // at the last survey: without any, no rule asks a set
  KnownSets sets_;
  std::optional<ipset::Sets> ip_set_;
  std::unique_ptr<Routes> routes_;
  std::optional<legacy::Tables> legacy_;
  bool legacy_locked_ = false;
  std::optional<nft::NfTables> nf_tables_;
  bool made_by_us_ = false;  // the rules of an ambient pod, as the survey saw it
  std::vector<BackendKind> of_agents_;
  bool has_looked_at_pod_ = false;
};

}  // namespace

std::unique_ptr<Kernel> open_kernel(const MeshRules& mesh, const KernelOptions& options) {
  return std::make_unique<LinuxKernel>(mesh, options);
}

}  // namespace sidetrack
