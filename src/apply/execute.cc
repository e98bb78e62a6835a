// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apply/apply.h"
#include "apply/diff.h"
#include "lint/lint.h"
#include "mesh/other_meshes.h"
#include "model/error.h"
#include "pod/routing.h"
#include "rule/iptables.h"
#include "rule/ours.h"

namespace sidetrack {
namespace {

constexpr int attempts = 10;  // each lost only if another program committed in the milliseconds between read and commit
constexpr std::chrono::milliseconds pause{10};  // before each one more, until Kernel::deadline is over

const Ruleset no_rules;

constexpr const char* routes_left = "policy rules, routes or addresses that were not requested are still there";

std::string names(const std::vector<BackendKind>& kinds) {
  std::vector<std::string_view> list;
  std::ranges::transform(kinds, std::back_inserter(list), [](BackendKind kind) { return name(kind); });
  return fmt::format("{}", fmt::join(list, ", "));
}

// The same error, with more said.
Error with(const Error& error, const std::string& more, std::string hint = {}) {
  return {error.code(), error.what() + ("; " + more), hint.empty() ? error.hint() : std::move(hint)};
}

// The backends whose rules of ours go with these commits.
std::vector<BackendKind> removals(const Attempt& attempt, std::size_t from, std::size_t to) {
  std::vector<BackendKind> kinds;
  for (std::size_t i = from; i < to; ++i) {
    for (const Write& write : attempt.commits[i]) {
      if (write.kind == Write::Kind::remove) kinds.push_back(write.backend);
    }
  }
  return kinds;
}

void require_as_committed(const Live& after, const Change& change) {
  const BackendKind kind = after.backend;
  const Ruleset& sent = *change.wanted;
  if (equal(after, sent)) return;
  // Each commit to nf_tables counts the generation up by one; a lock keeps others from the legacy tables.
  if (after.generation != change.seen->generation && after.generation != change.seen->generation + 1) {
    throw Error(ExitCode::busy,
                fmt::format("{}: the rules were committed, but another program changed them right after: {}",
                            name(kind), first_difference(diff(after, sent))),
                "make sure that only one program writes the sidecar's rules, then run it again");
  }
  throw Error(ExitCode::failed,
              fmt::format("{}: the kernel holds other rules than were committed: {}", name(kind),
                          first_difference(diff(after, sent))),
              "'sidetrack diff' shows what differs");
}

class Executor {
 public:
  Executor(const Request& request, const Survey& survey, Kernel& kernel, ApplyResult& result)
      : request_(request), survey_(survey), kernel_(kernel), result_(result) {}

  void execute(const Decision& decision) {
    if (!decision.attempts.empty()) require_promises(decision.attempts.front());
    const HeldSignals held(kernel_.held_signals());
    const Routing added = kernel_.add(decision.add);
    bool changed = added != Routing{};
    std::optional<BackendKind> backend;
    try {
      changed = first_that_takes(decision, backend) || changed;
    } catch (const Error& error) {
      if (rules_stand_ && decision.remove == Routing{}) throw;  // and with them the routes that they need
      if (rules_stand_) throw with(error, routes_left);
      throw undo(added, error);
    }
    try {
      kernel_.remove(decision.remove);
    } catch (const Error& error) {
      throw with(error, changed ? std::string("the rules are as requested, but ") + routes_left
                                : "the rules were as requested already");
    }
    changed = changed || decision.remove != Routing{};
    // What an agent made is ours now, and is still there.
    const Routing named =
        request_.plan == nullptr ? decision.remove : without(without_origin(decision.remove), request_.plan->routing);
    result_.routing_removed = ip_commands(named, "del");
    if (changed) result_.applied = Applied::changed;
    result_.backend = backend;
    if (backend) result_.canonical = std::move(form(*backend));
  }

  // Asks the kernel about the first commit that it takes. Returns what could not be asked.
  std::vector<std::string> check(const Decision& decision) {
    std::vector<std::string> unchecked;
    for_first_possible(decision, [&](const Attempt& attempt) {
      require_promises(attempt);
      require_no_obstacles(attempt);
      result_.backend = attempt.backend;
      if (puts(attempt)) unchecked = kernel_.check(changes(attempt.commits.front()));
    });
    return unchecked;
  }

 private:
  static bool puts(const Attempt& attempt) {
    return !attempt.commits.empty() && attempt.commits.front().front().kind == Write::Kind::put;
  }

  // Falling back: `act` is called with one attempt after the other until it throws no error of that backend alone.
  template <typename Act>
  void for_first_possible(const Decision& decision, Act act) {
    std::vector<Skipped> skipped = decision.skipped;
    for (const Attempt& attempt : decision.attempts) {
      try {
        act(attempt);
        result_.skipped.clear();
        for (const Skipped& each : skipped) result_.skipped.push_back("not used: " + skipped_words(each));
        return;
      } catch (const Error& error) {
        if (!error.of_one_backend() || rules_stand_) throw;
        skipped.push_back({*attempt.backend, error});
      }
    }
    if (!skipped.empty()) throw none_left(skipped);
  }

  // --prove: before anything is changed.
  void require_promises(const Attempt& attempt) {
    if (request_.to_prove == nullptr || !attempt.backend) return;
    Survey survey = survey_;
    if (!survey.pod) survey.pod = kernel_.pod();
    const lint::Findings broken =
        lint::violations_of(*request_.to_prove, *request_.plan, after_apply(*request_.plan, *attempt.backend, survey));
    if (broken.empty()) return;
    std::string all;
    for (const lint::Finding& one : broken) all += "\n  " + lint::one_line(one);
    throw Error(ExitCode::validation_failed, "traffic would not be captured as requested; nothing was changed:" + all,
                "'sidetrack lint' says what to do about each");
  }

  // They are warned of; --strict applies nothing.
  void require_no_obstacles(const Attempt& attempt) {
    if (request_.plan == nullptr || !attempt.backend) return;
    result_.obstacles = obstacles(*request_.plan, *attempt.backend, survey_);
    result_.lost_replies = lost_forwarded_dns(*request_.plan, *attempt.backend, survey_);
    if (!request_.options->strict || result_.obstacles.empty()) return;
    std::string all;
    for (const Obstacle& obstacle : result_.obstacles) all += "\n  " + text(obstacle);
    throw Error(ExitCode::differs, sentence(result_.obstacles) + "; nothing was changed:" + all,
                "remove it, or leave out --strict");
  }

  // Returns whether anything changed.
  bool first_that_takes(const Decision& decision, std::optional<BackendKind>& backend) {
    bool changed = false;
    for_first_possible(decision, [&](const Attempt& attempt) {
      if (&attempt != &decision.attempts.front()) require_promises(attempt);
      require_no_obstacles(attempt);
      carry_out(attempt);
      backend = attempt.backend;
      changed = !attempt.commits.empty();
    });
    return changed;
  }

  [[nodiscard]] std::vector<Change> changes(const Commit& commit) {
    const bool force = request_.options != nullptr && request_.options->force_apply;
    std::vector<Change> made;
    for (const Write& write : commit) {
      const bool put = write.kind == Write::Kind::put;
      made.push_back({&seen(write.backend), put ? &form(write.backend) : &no_rules,
                      put && force ? EqualRules::rewrite : EqualRules::keep});
    }
    return made;
  }

  // The rules as that backend holds them.
  Ruleset& form(BackendKind kind) {
    std::optional<Ruleset>& made = forms_[static_cast<std::size_t>(kind)];
    if (!made) made = canonical(kind, request_.plan->ruleset);
    return *made;
  }

  // What is absent is empty.
  const Live& seen(BackendKind kind) {
    if (const Live* live = survey_.live(kind)) return *live;
    Live& nothing = nothing_[static_cast<std::size_t>(kind)];
    nothing.backend = kind;
    return nothing;
  }

  void carry_out(const Attempt& attempt) {
    std::vector<BackendKind> done;  // whose older rules are gone
    for (std::size_t i = 0; i < attempt.commits.size(); ++i) {
      const Commit& commit = attempt.commits[i];
      const std::vector<Change> made = changes(commit);
      try {
        kernel_.commit(made);
      } catch (const Error& error) {
        const bool refused = error.of_one_backend() || error.code() == ExitCode::busy || !is_in_force(made, error);
        if (refused && i == 0) throw;
        if (refused) throw second_failed(attempt, i, error);
      }
      rules_stand_ = true;
      result_.applied = Applied::changed;
      read_back(made, attempt, i);
      std::ranges::copy(removals(attempt, i, i + 1), std::back_inserter(result_.left));
    }
  }

  // Whether the change was made all the same: the answer may have been lost, not the question.
  bool is_in_force(const std::vector<Change>& made, const Error& error) {
    try {
      const std::vector<Live> now = kernel_.read(made);
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (!equal(now[i], *made[i].wanted)) return false;
      }
      return true;
    } catch (const Error& second) {
      rules_stand_ = true;  // perhaps: the routes that they need stay
      throw with(error, std::string("it is not known whether the old or the new rules are in place: ") + second.what());
    }
  }

  void read_back(const std::vector<Change>& made, const Attempt& attempt, std::size_t at) {
    try {
      const std::vector<Live> after = kernel_.read(made);
      for (std::size_t i = 0; i < made.size(); ++i) require_as_committed(after[i], made[i]);
    } catch (const Error& error) {
      throw with(error, standing(attempt, at));
    }
  }

  // What the commits up to that one made of the rules.
  static std::string standing(const Attempt& attempt, std::size_t at) {
    const std::string gone = names(removals(attempt, 0, at + 1));
    const std::string rest = names(removals(attempt, at + 1, attempt.commits.size()));
    std::string text;
    if (puts(attempt)) {
      text = fmt::format("the committed rules are in {}", name(*attempt.backend));
      if (!rest.empty()) text += ", and older rules in " + rest;
    } else if (!rest.empty()) {
      text = "rules of the sidecar are still in " + rest;
    }
    if (gone.empty()) return text;
    const char* whose = puts(attempt) ? "the older rules" : "the rules of the sidecar";
    text += fmt::format("{}{} in {} were removed", text.empty() ? "" : "; ", whose, gone);
    return text;
  }

  static std::vector<BackendKind> backends_of(const Commit& commit) {
    std::vector<BackendKind> kinds;
    std::ranges::transform(commit, std::back_inserter(kinds), &Write::backend);
    return kinds;
  }

  // The new rules are in, the older ones of another backend did not go: the new ones go again, if there was nothing of
  // ours in their place before. Returns the error to be thrown.
  Error second_failed(const Attempt& attempt, std::size_t failed, const Error& error) {
    const std::string rest = names(removals(attempt, failed, attempt.commits.size()));
    const std::string again = "run it again when that is fixed";
    if (!puts(attempt)) {
      return with(error,
                  fmt::format("rules of the sidecar are still in {}; those in {} are removed", rest,
                              names(backends_of(attempt.commits.front()))),
                  again);
    }
    const std::string both =
        fmt::format("the requested rules are in {}, older ones still in {}", name(*attempt.backend), rest);
    if (attempt.commits.front().size() > 1 || holds_ours(seen(*attempt.backend))) return with(error, both, again);
    try {
      const Change put = changes(attempt.commits.front()).front();
      const std::vector<Live> now = kernel_.read(std::span(&put, 1));
      const Change back{&now.front(), &no_rules, EqualRules::keep};
      kernel_.commit(std::span(&back, 1));
    } catch (const Error& second) {
      return with(error, fmt::format("{}, and could not be removed again: {}", both, second.what()), again);
    }
    rules_stand_ = false;
    result_.applied = before_;  // nothing is lost by beginning anew
    return error;
  }

  // The first error is the one to report.
  Error undo(const Routing& added, const Error& error) {
    try {
      kernel_.remove(added);
    } catch (const Error& second) {
      return with(error, std::string("routes that were added could not be removed again: ") + second.what());
    }
    return error;
  }

  const Request& request_;
  const Survey& survey_;
  Kernel& kernel_;
  ApplyResult& result_;
  Live nothing_[std::size(all_backends)];
  std::optional<Ruleset> forms_[std::size(all_backends)];
  const Applied before_ = result_.applied;  // of attempts before this one
  bool rules_stand_ = false;                // a commit was made and not rolled back
};

Decision decided(const Request& request, const Survey& survey) {
  auto verdict = decide(request, survey);
  if (const auto* refusal = std::get_if<Error>(&verdict)) throw *refusal;
  return std::get<Decision>(std::move(verdict));
}

// Calls `act` with a survey and the decision about it; again if another program changes the rules in between. What was
// said of an attempt that was begun anew, for instance what it committed, is part of the error if the next one fails.
// With a program that takes away what was committed nobody wins by waiting.
void until_undisturbed(const Request& request, Kernel& kernel, const ApplyResult& result,
                       const std::function<void(const Survey&, const Decision&)>& act) {
  std::vector<std::string> before;
  for (int attempt = 1;; ++attempt) {
    try {
      const Survey survey = kernel.survey();
      const Decision decision = decided(request, survey);
      try {
        return act(survey, decision);
      } catch (const Error& error) {
        if (error.code() != ExitCode::busy) throw;
        if (attempt >= attempts) {
          if (result.applied == Applied::changed || kernel.deadline().over()) throw;
          std::this_thread::sleep_for(pause);
        }
        const std::string what = error.what();
        if (std::ranges::find(before, what) == before.end()) before.push_back(what);
      }
    } catch (const Error& error) {
      if (before.empty() || (before.size() == 1 && before.front() == error.what())) throw;
      throw with(error, fmt::format("restarted after: {}", fmt::join(before, "; ")));
    }
  }
}

// Names the chains of ours that clean leaves, as other programs have rules in them.
std::vector<std::string> kept_chains(const Survey& survey) {
  std::vector<std::string> kept;
  for (const Live* live : survey.all()) std::ranges::move(kept_chains(*live), std::back_inserter(kept));
  return kept;
}

std::vector<std::string> beside_other_meshes(const Survey& survey) {
  std::vector<std::string_view> found;
  for (const Live* live : survey.all()) add_other_meshes(*live, found);
  if (found.empty()) return {};
  std::string warning = fmt::format(
      "rules of {} are here, too, and redirect the same connections; 'sidetrack explain' says whose rule decides",
      fmt::join(found, ", "));
  for (const std::string_view mesh : found) {
    if (const std::string_view option = option_of_mesh(mesh); !option.empty())
      warning += fmt::format(
          "; 'sidetrack clean --mesh {}' would remove the chains of {} and the rules that lead there", option, mesh);
  }
  return {std::move(warning)};
}

}  // namespace

ApplyResult converge(const Request& request, Kernel& kernel) {
  ApplyResult result;
  std::vector<std::string> more;
  const auto execute = [&](const Survey& survey, const Decision& decision) {
    more = request.plan == nullptr ? kept_chains(survey) : beside_other_meshes(survey);
    Executor(request, survey, kernel, result).execute(decision);
    result.because = decision.because;
  };
  until_undisturbed(request, kernel, result, execute);
  result.warnings = kernel.warnings();
  std::ranges::move(more, std::back_inserter(result.warnings));
  return result;
}

ApplyResult check(const Request& request, Kernel& kernel) {
  ApplyResult result;
  until_undisturbed(request, kernel, result, [&](const Survey& survey, const Decision& decision) {
    ApplyResult checked;
    std::vector<std::string> unchecked = Executor(request, survey, kernel, checked).check(decision);
    for (const std::string& command : ip_commands(decision.add)) {
      unchecked.push_back("routing: whether the kernel accepts '" + command + "': only adding it shows that");
    }
    for (const std::string& sentence : unchecked) checked.warnings.push_back("not checked: " + sentence);
    bool changes = decision.add != Routing{} || decision.remove != Routing{};
    for (const Attempt& attempt : decision.attempts) {
      if (attempt.backend != checked.backend) continue;
      changes = changes || !attempt.commits.empty();
      std::ranges::copy(removals(attempt, 0, attempt.commits.size()), std::back_inserter(checked.left));
    }
    if (changes) checked.applied = Applied::changed;
    if (checked.backend) checked.canonical = canonical(*checked.backend, request.plan->ruleset);
    checked.because = decision.because;
    result = std::move(checked);
  });
  std::ranges::copy(kernel.warnings(), std::back_inserter(result.warnings));
  return result;
}

}  // namespace sidetrack
