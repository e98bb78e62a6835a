// SPDX-License-Identifier: GPL-2.0-or-later
// What the namespace holds, as far as it can be known. Absent, unreadable and empty are three different things: only
// what is absent or has been read is known.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/error.h"
#include "pod/pod_view.h"
#include "rule/live.h"

namespace sidetrack {

// Nothing can be there: the kernel does not support it, or no table of it exists in this namespace.
struct Absent {
  std::optional<Error> lacking;  // why rules cannot be put there, if that is known already
};

// Something may be there, and we are not allowed or not able to see it.
struct Unreadable {
  Error why;                  // not_permitted: names the capability, or what else is missing
  bool may_hold_ours = true;  // false: only tables that Sidetrack never writes to are not seen
  // The base chains of those, each with one rule of which nothing is known: it may do anything.
  std::vector<LiveChain> chains{};
};

template <typename T>
using ReadResult = std::variant<Absent, Unreadable, T>;

struct Survey {
  std::array<ReadResult<Live>, std::size(all_backends)> results;  // by kind
  bool legacy_in_use = false;  // a table of legacy iptables holds rules, whichever program wrote them
  Routing routing;             // what is ours of what rules need beside them, each as often as it is there
  Routing others_routing;      // of others and just as a plan asks for it: it need not be added, and is not removed

  // Where agents of the node hold rules of an ambient pod, which are not ours (see leave_to_agents()).
  std::vector<BackendKind> of_agents{};

  // Its interfaces and routes, if there are rules, policies, dormant tables or policy routing of others: only they ask
  // for it.
  std::optional<PodView> pod{};

  [[nodiscard]] const ReadResult<Live>& of(BackendKind kind) const { return results[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] ReadResult<Live>& of(BackendKind kind) { return results[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Live* live(BackendKind kind) const { return std::get_if<Live>(&of(kind)); }
  // Returns what could be read, of each backend.
  [[nodiscard]] std::vector<const Live*> all() const {
    std::vector<const Live*> found;
    for (const BackendKind kind : all_backends) {
      if (live(kind) != nullptr) found.push_back(live(kind));
    }
    return found;
  }
};

// What may decide about packets, as far as it can be seen: what is there, and the unknown rules of unreadable tables.
[[nodiscard]] std::vector<Live> effective_rulesets(Survey survey);

// The first place that is not seen and may hold something of ours: nothing can be said or changed without it.
[[nodiscard]] const Unreadable* first_unreadable(const Survey& survey);

// Whether any of it is ours.
[[nodiscard]] bool holds_ours(const Live& live);

// The rules as that backend stores them, which is what reading gives back: folded into sets by nftables, else with
// their matches in the order in which iptables lists them.
[[nodiscard]] Ruleset canonical(BackendKind kind, const Ruleset& asked);

}  // namespace sidetrack
