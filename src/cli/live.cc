// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <utility>

#include "cli/commands.h"
#include "cli/log.h"

namespace sidetrack::cli {
namespace {

bool holds_rules(const Live& live) {
  return std::ranges::any_of(live.chains, [](const LiveChain& chain) {
    return chain.ours || !chain.rules.empty() || chain.policy != Verdict::accept;
  });
}

}  // namespace

std::vector<Live> read_live(const CommandLine& line) {
  Survey survey = open_kernel(line, false)->survey();
  // "No rules" would be a guess.
  if (const Unreadable* place = unseen(survey)) throw place->why;
  for (const BackendKind kind : all_backends) {
    const auto* unreadable = std::get_if<Unreadable>(&survey.of(kind));
    if (unreadable != nullptr) {
      warn(std::string(unreadable->why.what()) + ": its tables, none of which can be the sidecar's, are not seen");
    }
  }
  std::vector<Live> found = deciding(std::move(survey));
  std::erase_if(found, [](const Live& live) { return !holds_rules(live); });
  std::ranges::reverse(found);  // the backends as people think of them: what comes first is the newest
  return found;
}

}  // namespace sidetrack::cli
