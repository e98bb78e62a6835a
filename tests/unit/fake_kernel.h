// SPDX-License-Identifier: GPL-2.0-or-later
// A kernel in memory: three backends, of which those of nf_tables change together, and routes. Faults are injected by
// the test.
#pragma once

#include <map>
#include <optional>

#include "kernel/kernel.h"
#include "unit/fake_backend.h"

namespace sidetrack {

class FakeKernel : public Kernel {
 public:
  FakeKernel() {
    for (BackendKind kind : all_backends) backends[kind].live.backend = kind;
  }

  std::map<BackendKind, FakeBackend> backends;
  std::map<BackendKind, ReadResult<Live>> instead;  // what the survey finds in the place of the backend
  FakeRoutes routes;
  bool legacy_in_use = false;
  std::vector<std::string> warned;  // of warnings()
  int surveys = 0;
  std::function<void()> before_remove = [] {};  // of routes; may throw
  std::function<void()> before_read = [] {};    // may throw
  std::function<void()> after_commit = [] {};   // may throw: then the answer is lost

  Survey survey() override {
    ++surveys;
    const auto result = [&](BackendKind kind) -> ReadResult<Live> {
      const auto found = instead.find(kind);
      return found != instead.end() ? found->second : backends[kind].live;
    };
    return {{result(BackendKind::iptables_legacy), result(BackendKind::iptables_nft), result(BackendKind::nftables)},
            legacy_in_use,
            routes.read().ours,
            {}};
  }

  PodView pod() override { return routes.pod(); }

  std::vector<Live> read(std::span<const Change> committed) override {
    before_read();
    std::vector<Live> after;
    for (const Change& change : committed) after.push_back(backends[change.seen->backend].live);
    return after;
  }

  void commit(std::span<const Change> changes) override {
    std::vector<Live> before;
    for (const Change& change : changes) before.push_back(backends[change.seen->backend].live);
    try {
      for (const auto& [seen, wanted, equal] : changes) {
        backends[seen->backend].replace(*seen, canonical(seen->backend, *wanted));
      }
    } catch (...) {
      for (Live& live : before) backends[live.backend].live = std::move(live);
      throw;
    }
    after_commit();
  }

  std::vector<std::string> check(std::span<const Change> changes) override {
    return backends[changes.front().seen->backend].check(*changes.front().seen, *changes.front().wanted);
  }

  Routing add(const Routing& wanted) override { return routes.add(wanted); }
  void remove(const Routing& unwanted) override {
    if (unwanted != Routing{}) before_remove();
    routes.remove(unwanted);
  }
  Deadline lasts{std::chrono::milliseconds(0)};
  [[nodiscard]] const Deadline& deadline() const override { return lasts; }
  HeldSignals::Which held = HeldSignals::Which::all;
  [[nodiscard]] HeldSignals::Which held_signals() const override { return held; }
  [[nodiscard]] std::vector<std::string> warnings() const override { return warned; }
};

}  // namespace sidetrack
