// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/restore.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <optional>
#include <vector>

#include "apply/diff.h"
#include "mesh/catalogue.h"
#include "mesh/ownership.h"
#include "model/duration.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/signals.h"

namespace sidetrack {
namespace {

Ruleset ours_of(const Live& live) {
  const bool among_others = !traits(live.backend).in_own_table;
  Ruleset ours;
  ours.folded = !among_others;  // of their origins the comments alone have been read: rules of two could be joined
  for (const LiveChain& chain : live.chains) {
    if (chain.ours && is_ambient_table(chain.table_name)) {
      throw Error(ExitCode::failed,
                  fmt::format("the table {} of an agent could not be put back as it is; nothing was changed",
                              printable(chain.table_name)),
                  "leave out --confirm");
    }
    std::size_t others = 0;
    for (const LiveRule& one : chain.rules) {
      if (!one.ours) {
        ++others;
        continue;
      }
      Rule& rule = ours.rules.emplace_back(one.rule);
      if (among_others) {
        rule.insert_at.reset();
        rule.after_others = others;
      }
      // In nftables it is two rules, of which the comment of one has been read.
      const Row* row = std::holds_alternative<Tproxy>(rule.target) ? row_of(rule) : nullptr;
      if (row != nullptr) rule.origin.rule = row->id;
    }
  }
  return ours;
}

// What differs from the snapshot in one place that is changed at once: the backends of nf_tables, or iptables-legacy.
struct Back {
  std::vector<Change> changes;
  std::vector<Live> nothing;  // for what is absent
};

Back changes_of(const Snapshot& before, const Survey& survey, bool of_nf_tables) {
  Back back;
  back.nothing.reserve(std::size(all_backends));
  for (const BackendKind kind : all_backends) {
    if (traits(kind).of_nf_tables != of_nf_tables) continue;
    const Ruleset& wanted = before.rules[static_cast<std::size_t>(kind)];
    const Live* live = survey.live(kind);
    if (live == nullptr) {
      if (wanted.rules.empty()) continue;
      live = &back.nothing.emplace_back();
      back.nothing.back().backend = kind;
    }
    if (!equal(*live, wanted)) back.changes.push_back({live, &wanted, EqualRules::keep});
  }
  return back;
}

bool any_in(const Snapshot& before, bool of_nf_tables) {
  return std::ranges::any_of(all_backends, [&](BackendKind kind) {
    return traits(kind).of_nf_tables == of_nf_tables && !before.rules[static_cast<std::size_t>(kind)].rules.empty();
  });
}

void put_back(const Snapshot& before, Kernel& kernel) {
  const Survey survey = kernel.survey();
  if (const Unreadable* place = first_unreadable(survey)) throw place->why;
  const HeldSignals held(kernel.held_signals());
  static_cast<void>(kernel.add(without(without(before.routing, survey.routing), survey.others_routing)));
  // First what holds rules again, then what loses them.
  const bool nf_tables_first = any_in(before, true);
  for (const bool of_nf_tables : {nf_tables_first, !nf_tables_first}) {
    const Back back = changes_of(before, survey, of_nf_tables);
    if (!back.changes.empty()) kernel.commit(back.changes);
  }
  kernel.remove(without(survey.routing, before.routing));
}

// Nothing: all is as it was.
std::optional<std::string> difference(const Snapshot& before, Kernel& kernel) {
  const Survey survey = kernel.survey();
  for (const bool of_nf_tables : {true, false}) {
    const Back back = changes_of(before, survey, of_nf_tables);
    if (back.changes.empty()) continue;
    const Change& one = back.changes.front();
    return fmt::format("{}: {}", name(one.seen->backend), first_difference(diff(*one.seen, *one.wanted)));
  }
  if (without(survey.routing, before.routing) != Routing{}) return "routes or policy rules were left";
  return std::nullopt;
}

void take_locks(Kernel& kernel, const std::function<void(const std::string&)>& say) {
  for (;;) {
    try {
      return kernel.take_locks();
    } catch (const Error& error) {
      if (error.code() != ExitCode::busy) throw;
      say(fmt::format("cannot roll back yet: {}", error.what()));
      poll(nullptr, 0, 1000);
    }
  }
}

}  // namespace

Snapshot snapshot(const Survey& survey) {
  Snapshot taken;
  for (const BackendKind kind : all_backends) {
    if (const Live* live = survey.live(kind)) taken.rules[static_cast<std::size_t>(kind)] = ours_of(*live);
  }
  taken.routing = survey.routing;
  return taken;
}

void restore(const Snapshot& before, Kernel& kernel, const std::function<void(const std::string&)>& say) {
  constexpr int attempts = 10;
  take_locks(kernel, say);
  for (int attempt = 1;; ++attempt) {
    try {
      put_back(before, kernel);
      break;
    } catch (const Error& error) {
      if (error.code() == ExitCode::busy && attempt < attempts) continue;
      const auto left = difference(before, kernel);
      throw Error(error.code(),
                  fmt::format("cannot roll back: {}; {}", error.what(),
                              left ? "what was not confirmed is still there: " + *left : "everything is as it was"),
                  "'sidetrack clean' removes all rules and routes of the mesh");
    }
  }
  if (const auto left = difference(before, kernel))
    throw Error(ExitCode::failed, "rolled back, but not everything is as it was: " + *left,
                "'sidetrack show' lists what is there, 'sidetrack clean' removes all rules and routes of the mesh");
}

std::string await_confirmation(AwaitedSignals& signals, std::chrono::nanoseconds timeout, int input) {
  constexpr std::size_t longest_answer = 64;
  const auto end = AwaitedSignals::Clock::now() + timeout;
  std::string line;
  for (;;) {
    const auto woken = signals.wait(end, input);
    if (woken.signal == SIGUSR1) return {};
    if (woken.signal != 0) return fmt::format("ended by {}", signal_name(woken.signal));
    if (!woken.readable) return "not confirmed within " + duration_words(timeout);
    char letter = 0;
    const ssize_t size = read(input, &letter, 1);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) {
      input = -1;  // its end, or the terminal is gone
    } else if (letter != '\n') {
      if (letter != '\r') line += letter;
      if (line.size() > longest_answer) return "not confirmed";
    } else {
      std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::tolower(c); });
      if (line.empty() || line == "y" || line == "yes") return {};
      return "not confirmed";
    }
  }
}

}  // namespace sidetrack
