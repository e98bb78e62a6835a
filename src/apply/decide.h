// SPDX-License-Identifier: GPL-2.0-or-later
// What is to be done: a pure function of what is asked and of what the namespace holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apply/diff.h"
#include "apply/obstacles.h"
#include "kernel/survey.h"
#include "mesh/plan.h"
#include "model/config.h"
#include "model/error.h"
#include "space/regions.h"
#include "walk/forwarded_dns.h"

namespace sidetrack {

// What the namespace is to hold. Without a plan: nothing of ours, in no backend (clean). It refers to what the caller
// holds while it decides and executes.
struct Request {
  const Plan* plan = nullptr;
  const ApplyOptions* options = nullptr;  // of clean, the backend alone
  const Config* to_prove = nullptr;       // what the plan was made of; nothing: its promises are not proven
};

// The rules of one backend: put in the place of all that is ours there, or removed.
struct Write {
  enum class Kind : std::uint8_t { put, remove };
  BackendKind backend = BackendKind::iptables_nft;
  Kind kind = Kind::put;
  friend bool operator==(const Write&, const Write&) = default;
};
using Commit = std::vector<Write>;  // what happens together: both backends of nf_tables, or iptables-legacy

// A backend that may hold the rules, and what leads there, in this order: no commits, if all is as asked already.
struct Attempt {
  std::optional<BackendKind> backend;  // nothing: clean
  std::vector<Commit> commits;
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// A backend of the choice that is out of the question, and why.
struct Skipped {
  BackendKind backend = BackendKind::iptables_nft;
  Error why;
};

// In this order: routes and addresses first, since rules without them would lose traffic; then the first attempt that
// the kernel takes; last, routes and addresses that are not asked for.
struct Decision {
  Routing add;
  std::vector<Attempt> attempts;
  Routing remove;
  std::vector<Skipped> skipped;
  std::string because;  // why these backends in this order, if it is not the usual one; for the log
};

// Whether others, not what cannot be seen, keep what is ours from being removed: their jumps to our chains, what they
// have in our tables, and tables that their processes own.
[[nodiscard]] bool kept_by_others(const Survey& survey);

// Error: a refusal, nothing may be done.
[[nodiscard]] std::variant<Decision, Error> decide(const Request& request, const Survey& survey);

// "iptables-nft: the kernel lacks …"
[[nodiscard]] std::string skipped_words(const Skipped& skipped);

// What of others will keep traffic from the proxy, once this backend holds its rules.
[[nodiscard]] std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const Survey& survey);
// Of queries that the pod forwards, those whose replies the plan loses once it is applied so. The plan may ask for
// that, so it differs from nothing that is requested, and no other program is in the way.
[[nodiscard]] std::vector<LostReplies> lost_forwarded_dns(const Plan& plan, BackendKind backend, const Survey& survey);
// The pod and its rules as they would stand once the plan is applied; the survey knows the pod.
[[nodiscard]] space::Side after_apply(const Plan& plan, BackendKind backend, const Survey& survey);

// No backend can hold the rules.
[[nodiscard]] Error none_left(const std::vector<Skipped>& skipped);

// The backend that holds the rules as the plan has them, or else the first that they are to be put into.
[[nodiscard]] BackendKind holding_backend(const Request& request, const Survey& survey);

// What differs between the survey and what is asked, which is a plan. Throws what `decide` would refuse with.
[[nodiscard]] PodDiff compare(const Request& request, const Survey& survey);

}  // namespace sidetrack
