// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/decide.h"

#include <fmt/format.h>

#include <algorithm>

#include "apply/after_apply.h"
#include "apply/choice.h"
#include "mesh/catalogue.h"
#include "model/printable.h"
#include "rule/iptables.h"
#include "rule/ours.h"

namespace sidetrack {
namespace {

using Kind = Write::Kind;

bool same_commit(BackendKind a, BackendKind b) { return traits(a).of_nf_tables == traits(b).of_nf_tables; }

std::vector<BackendKind> holders(const Survey& survey) {
  std::vector<BackendKind> found;
  std::ranges::copy_if(all_backends, std::back_inserter(found), [&](BackendKind kind) {
    const Live* live = survey.live(kind);
    return live != nullptr && holds_ours(*live);
  });
  return found;
}

// Of nothing the order of rules does not matter, and to compare costs time.
bool is_as_requested(const Survey& survey, BackendKind kind, const Ruleset& asked) {
  const Live* live = survey.live(kind);
  if (live == nullptr || !holds_ours(*live)) return asked.rules.empty();
  return equal(*live, canonical(kind, asked));
}

// The rules go in first, then the older ones elsewhere go away; what can be is done together.
Attempt attempt(std::optional<BackendKind> backend, bool put, const std::vector<BackendKind>& holding) {
  Attempt made{backend, {}};
  if (put) made.commits.push_back({{*backend, Kind::put}});
  for (BackendKind other : holding) {
    if (other == backend) continue;
    const auto together = std::ranges::find_if(
        made.commits, [&](const Commit& commit) { return same_commit(commit.front().backend, other); });
    Commit& commit = together != made.commits.end() ? *together : made.commits.emplace_back();
    commit.push_back({other, Kind::remove});
  }
  return made;
}

// The one that holds exactly the rules that are asked for, if one does: of the choice, or any if none is named.
std::optional<BackendKind> already_in(std::vector<BackendKind> order, const Request& request, const Survey& survey) {
  if (!named_backend(*request.options)) order.insert(order.end(), std::begin(all_backends), std::end(all_backends));
  const Ruleset& asked = request.plan->ruleset;
  const auto found =
      std::ranges::find_if(order, [&](BackendKind kind) { return is_as_requested(survey, kind, asked); });
  return found != order.end() ? std::optional(*found) : std::nullopt;
}

// Those of the choice that can hold rules at all; why the others cannot.
std::vector<BackendKind> candidates(const Choice& choice, const Survey& survey, std::vector<Skipped>& skipped) {
  std::vector<BackendKind> order;
  for (BackendKind kind : choice.order) {
    const auto* absent = std::get_if<Absent>(&survey.of(kind));
    const auto* unreadable = std::get_if<Unreadable>(&survey.of(kind));
    if (absent != nullptr && absent->lacking) {
      skipped.push_back({kind, *absent->lacking});
    } else if (unreadable != nullptr) {
      skipped.push_back({kind, unreadable->why});
    } else {
      order.push_back(kind);
    }
  }
  return order;
}

// What is not known because of it: "whether …".
Error not_known(const Unreadable& place, const std::string& unknown = "whether rules of the sidecar are there") {
  return {place.why.code(), fmt::format("{}: {} is not known", place.why.what(), unknown), place.why.hint()};
}

Choice choice_of(const Request& request, const Survey& survey) {
  return choose(*request.options, request.plan->ruleset, survey.legacy_in_use, holders(survey));
}

// What of others is in the way of what goes by this attempt: of all that is ours in a backend that is left.
std::optional<Error> cannot_leave(const Attempt& attempt, const Survey& survey) {
  for (const Commit& commit : attempt.commits) {
    for (const Write& write : commit) {
      const Live* live = write.kind == Kind::remove ? survey.live(write.backend) : nullptr;
      if (live == nullptr) continue;
      if (auto refused = leads_to_removed(*live, {})) return refused;
      if (auto refused = owned_by_another(*live)) return refused;
    }
  }
  return std::nullopt;
}

// The one that comes first has to be possible; of the others those count that are.
std::variant<Decision, Error> possible(Decision decision, const Survey& survey) {
  if (decision.attempts.empty()) return decision;
  if (auto refused = cannot_leave(decision.attempts.front(), survey)) return *std::move(refused);
  std::erase_if(decision.attempts, [&](const Attempt& each) { return cannot_leave(each, survey).has_value(); });
  return decision;
}

// What of it does not exist yet.
Routing missing_of(const Routing& asked, const Routing& ours, const Survey& survey) {
  return without(without(asked, ours), survey.others_routing);
}

// A sidecar's rules and an agent's for an ambient pod would stand in the same chains.
std::optional<Error> kept_by_agent(const Request& request, const Survey& survey) {
  if (survey.of_agents.empty() || request.plan == nullptr || request.plan->ruleset.rules.empty()) return std::nullopt;
  return Error(
      ExitCode::failed,
      fmt::format("{}: this is an ambient pod: an agent of the node, Istio's or Cilium's, made rules that lead "
                  "to its ztunnel; nothing was changed",
                  name(survey.of_agents.front())),
      "take the pod out of the ambient mesh; or remove them: 'sidetrack clean --dataplane ambient'; or program "
      "such rules here: --dataplane ambient");
}

// Returns the backend that clean is about; nothing: all of them.
std::optional<BackendKind> cleaned_alone(const Request& request) {
  return request.plan == nullptr && request.options != nullptr ? request.options->backend : std::nullopt;
}

// What of others is in the way of what has to go: their jumps to our chains, and what they keep in our tables.
std::optional<Error> cannot_go(const Request& request, const Survey& survey) {
  static const Ruleset nothing;
  const Ruleset& asked = request.plan != nullptr ? request.plan->ruleset : nothing;
  const auto alone = cleaned_alone(request);
  for (BackendKind kind : all_backends) {
    const Live* live = survey.live(kind);
    if (live == nullptr || kind != alone.value_or(kind)) continue;
    if (auto refused = leads_to_removed(*live, asked)) return refused;
    if (!traits(kind).in_own_table) continue;  // the others share their tables with other programs
    auto refused = others_in_own_tables(*live);
    // Which backend will hold the rules is not decided yet: a table that is as asked would stay.
    if (refused && !is_as_requested(survey, kind, asked)) return refused;
  }
  return std::nullopt;
}

}  // namespace

space::Side after_apply(const Plan& plan, BackendKind backend, const Survey& survey) {
  PodView pod = *survey.pod;
  if (survey.routing != Routing{}) drop_our_rules(pod);
  add_routing(pod, without(plan.routing, survey.others_routing));
  // Only a table of our own is written anew as a whole, with what others may have put into it, and not if it is as
  // asked.
  const Live* live = survey.live(backend);
  const bool there = live != nullptr && others_in_own_tables(*live) && is_as_requested(survey, backend, plan.ruleset);
  return {std::move(pod), after_apply(plan.ruleset, backend, there, effective_rulesets(survey))};
}

std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const Survey& survey) {
  if (!survey.pod) return {};
  const space::Side after = after_apply(plan, backend, survey);
  return obstacles(plan, backend, after.pod, after.live);
}

std::vector<LostReplies> lost_forwarded_dns(const Plan& plan, BackendKind backend, const Survey& survey) {
  if (!survey.pod || !may_lose_forwarded_dns(plan, *survey.pod)) return {};
  const space::Side after = after_apply(plan, backend, survey);
  return lost_forwarded_dns(plan, after.pod, after.live);
}

std::string skipped_words(const Skipped& skipped) {
  const std::string backend = std::string(name(skipped.backend)) + ": ";
  const std::string why = skipped.why.what();
  return why.starts_with(backend) ? why : backend + why;
}

Error none_left(const std::vector<Skipped>& skipped) {
  if (skipped.size() == 1) return skipped.front().why;
  std::string lacking;
  for (const Skipped& each : skipped) {
    lacking += "\n  " + skipped_words(each) + (each.why.hint().empty() ? "" : "; " + each.why.hint());
  }
  return {ExitCode::kernel_lacks, "no usable backend:" + lacking};
}

bool kept_by_others(const Survey& survey) {
  return first_unreadable(survey) == nullptr && std::holds_alternative<Error>(decide({}, survey));
}

std::variant<Decision, Error> decide(const Request& request, const Survey& survey) {
  if (const Unreadable* place = first_unreadable(survey)) return not_known(*place);
  const std::vector<BackendKind> holding = holders(survey);
  if (const auto refused = cannot_go(request, survey)) return *refused;
  Decision decision;
  if (request.plan == nullptr) {
    std::vector<BackendKind> going = holding;
    if (const auto alone = cleaned_alone(request))
      std::erase_if(going, [&](BackendKind kind) { return kind != *alone; });
    Attempt clean = attempt({}, false, going);
    if (!clean.commits.empty()) decision.attempts.push_back(std::move(clean));
    if (going.size() == holding.size()) decision.remove = survey.routing;  // rules that stay may need it
    return possible(std::move(decision), survey);
  }

  const Plan& plan = *request.plan;
  decision.add = missing_of(plan.routing, survey.routing, survey);
  decision.remove = without(survey.routing, plan.routing);
  if (plan.ruleset.rules.empty()) {  // -m NONE: there is nothing that a backend would have to hold
    if (!holding.empty()) decision.attempts.push_back(attempt({}, false, holding));
    return possible(std::move(decision), survey);
  }
  const Choice choice = choice_of(request, survey);
  decision.because = choice.because;
  const std::vector<BackendKind> order = candidates(choice, survey, decision.skipped);
  const auto there = request.options->force_apply ? std::nullopt : already_in(order, request, survey);
  if (there) {
    decision.skipped.clear();
    if (*there != choice.order.front()) decision.because.clear();  // it stays where it is
    decision.attempts.push_back(attempt(there, false, holding));
    // An agent's rules that are as asked stay the agent's, with their routes. As soon as one thing is changed all is
    // ours, so that `clean` removes all.
    const Routing held = without_origin(survey.routing);
    const bool all_there = decision.attempts.front().commits.empty() &&
                           missing_of(plan.routing, held, survey) == Routing{} &&
                           without(held, plan.routing) == Routing{};
    if (all_there) decision.add = decision.remove = {};
    return possible(std::move(decision), survey);
  }
  if (const auto refused = kept_by_agent(request, survey)) return *refused;
  for (BackendKind kind : order) decision.attempts.push_back(attempt(kind, true, holding));
  if (decision.attempts.empty()) return none_left(decision.skipped);
  return possible(std::move(decision), survey);
}

BackendKind holding_backend(const Request& request, const Survey& survey) {
  const Choice choice = choice_of(request, survey);
  const auto there = request.plan->ruleset.rules.empty() ? std::nullopt : already_in(choice.order, request, survey);
  return there.value_or(choice.order.front());
}

PodDiff compare(const Request& request, const Survey& survey) {
  if (const Unreadable* place = first_unreadable(survey)) throw not_known(*place);
  for (const BackendKind kind : all_backends) {
    const auto* place = std::get_if<Unreadable>(&survey.of(kind));
    if (place == nullptr || place->chains.empty() || request.plan->ruleset.rules.empty()) continue;
    throw not_known(*place, "whether its tables keep traffic from the proxy");
  }
  const std::vector<BackendKind> holding = holders(survey);
  PodDiff pod_diff;
  const Routing held = without_origin(survey.routing);  // what an agent made is as good as ours
  pod_diff.missing = missing_of(request.plan->routing, held, survey);
  pod_diff.extra = without(held, request.plan->routing);
  const BackendKind compared = holding_backend(request, survey);
  Live nothing;
  nothing.backend = compared;
  const Live* live = survey.live(compared);
  pod_diff.backends.push_back(diff(live != nullptr ? *live : nothing, canonical(compared, request.plan->ruleset)));
  if (!request.plan->ruleset.rules.empty()) {
    pod_diff.backend = compared;
    pod_diff.obstacles = obstacles(*request.plan, compared, survey);
    pod_diff.lost_replies = lost_forwarded_dns(*request.plan, compared, survey);
  }
  for (BackendKind kind : holding) {
    if (kind != compared) pod_diff.backends.push_back(diff(*survey.live(kind), {}));
  }
  if (!pod_diff.equal()) {
    const auto decision = decide(request, survey);
    if (const auto* refused = std::get_if<Error>(&decision)) pod_diff.refusal = refused->what();
  }
  return pod_diff;
}

}  // namespace sidetrack
