// SPDX-License-Identifier: GPL-2.0-or-later
// A backend in memory, as atomic as the kernel: a replacement is made on a copy, which takes its place only if nothing
// failed. Faults are injected by the test.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "kernel/kernel.h"
#include "model/error.h"

namespace sidetrack {

class FakeBackend {
 public:
  Live live;
  int replaced = 0;
  std::function<void()> before_replace = [] {};             // may throw
  std::function<void(Live&)> after_replace = [](Live&) {};  // may change what was committed

  [[nodiscard]] BackendKind kind() const { return live.backend; }
  [[nodiscard]] Live read() const { return live; }
  std::vector<std::string> check(const Live& seen, const Ruleset&) {
    before_replace();
    if (seen.generation != live.generation) throw Error(ExitCode::busy, "changed meanwhile");
    return {"whether it rains"};
  }

  void replace(const Live& seen, const Ruleset& wanted) {
    check(seen, wanted);
    Live copy = live;
    std::erase_if(copy.chains, [](const LiveChain& chain) { return chain.ours; });
    for (LiveChain& chain : copy.chains) std::erase_if(chain.rules, [](const LiveRule& rule) { return rule.ours; });
    for (Families scope : scopes(kind())) {
      for (Table table : all_tables) {
        for (const Chain& chain : chains(wanted, table, scope)) add(copy, scope, chain);
      }
    }
    after_replace(copy);
    ++copy.generation;
    ++replaced;
    live = std::move(copy);
  }

 private:
  static void add(Live& to, Families scope, const Chain& chain) {
    LiveChain made{scope, chain.table, chain.name, !is_builtin(chain.name), {}};
    made.hook = builtin_hook(chain.table, chain.name);
    made.table_name = name(chain.table);
    for (const Rule* rule : chain.rules) {
      made.rules.push_back({*rule, {}, true, 0});
      made.rules.back().rule.families = rule->families & scope;
    }
    for (LiveChain& there : to.chains) {
      if (there.families == scope && there.table == chain.table && there.name == chain.name) {
        there.rules.insert(there.rules.end(), made.rules.begin(), made.rules.end());
        return;
      }
    }
    to.chains.push_back(std::move(made));
  }
};

class FakeRoutes : public Routes {
 public:
  void claim(std::uint32_t) override {}
  Routing routing;
  [[nodiscard]] State read() override { return {routing, {}, false}; }
  PodView view;
  PodView pod() override { return view; }
  Routing add(const Routing& wanted) override {
    append(routing.policy_rules, wanted.policy_rules);
    append(routing.local_routes, wanted.local_routes);
    append(routing.loopback_addresses, wanted.loopback_addresses);
    return wanted;
  }
  void remove(const Routing& unwanted) override {
    erase(routing.policy_rules, unwanted.policy_rules);
    erase(routing.local_routes, unwanted.local_routes);
    erase(routing.loopback_addresses, unwanted.loopback_addresses);
  }

 private:
  template <typename T>
  static void append(std::vector<T>& to, const std::vector<T>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  template <typename T>
  static void erase(std::vector<T>& from, const std::vector<T>& gone) {
    for (const T& x : gone) from.erase(std::ranges::find(from, x));  // one of them
  }
};

}  // namespace sidetrack
