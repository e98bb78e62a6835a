// SPDX-License-Identifier: GPL-2.0-or-later
#include "library/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sidetrack {
namespace {

// "22 rules in nat (ipv4)", "57 rules in raw, mangle, nat (ipv4, ipv6)": rules counted as the backend stores them
std::string summary(const Ruleset& ruleset, BackendKind backend) {
  std::size_t count = 0;
  std::string tables;
  for (Table table : all_tables) {
    std::size_t in_table = 0;
    for (Families scope : scopes(backend)) {
      for (const Chain& chain : chains(ruleset, table, scope)) in_table += chain.rules.size();
    }
    if (in_table > 0) tables += (tables.empty() ? "" : ", ") + std::string(name(table));
    count += in_table;
  }
  Families families;
  for (const Rule& rule : ruleset.rules) families = families | rule.families;
  return count == 0 ? "no rules" : fmt::format("{} rules in {} ({})", count, tables, names(families));
}

// "22 rules in nat (ipv4) through iptables-nft"
std::string summary(const Outcome& outcome) {
  return fmt::format("{} through {}", summary(outcome.stored, *outcome.backend), name(*outcome.backend));
}

std::string removed(const Outcome& outcome, std::string_view verb) {
  std::string text;
  for (BackendKind left : outcome.left) text += fmt::format("; {} those in {}", verb, name(left));
  return text;
}

std::string unchanged(const Outcome& outcome) {
  return fmt::format("nothing to change: {} already as asked", summary(outcome));
}

void append(std::vector<std::string>& warnings, const std::vector<Obstacle>& obstacles) {
  std::ranges::transform(obstacles, std::back_inserter(warnings), [](const Obstacle& each) { return text(each); });
}

}  // namespace

std::string applied(const Outcome& outcome, std::optional<Milliseconds> took) {
  if (outcome.applied == Applied::unchanged) return unchanged(outcome);
  const std::string time = took ? fmt::format(" in {:.1f} ms", took->count()) : "";
  const std::string because = outcome.because.empty() ? "" : fmt::format(" ({})", outcome.because);
  return fmt::format("programmed {}{}{}{}", summary(outcome), time, because, removed(outcome, "removed"));
}

std::string checked(const Outcome& outcome) {
  if (outcome.applied == Applied::unchanged) return unchanged(outcome);
  return fmt::format("the kernel would accept {}{}; nothing was changed", summary(outcome),
                     removed(outcome, "apply would remove"));
}

std::string cleaned(const Outcome& outcome) {
  if (outcome.applied == Applied::unchanged) return "nothing to remove";
  std::string from;
  for (BackendKind backend : outcome.left) from += (from.empty() ? " from " : ", ") + std::string(name(backend));
  return "removed all rules and routes of the sidecar" + from;
}

std::string verified(const Comparison& comparison) {
  if (comparison.as_asked()) {
    return fmt::format("rules and routes are as asked, through {}", name(comparison.backends.front().backend));
  }
  if (comparison.equal()) {
    return "the rules and routes are as asked, but what is not Sidetrack's to change keeps traffic from where they "
           "bring it";
  }
  const std::string what = "the pod is not as asked; ";
  if (!comparison.refusal.empty()) return what + "'sidetrack apply' would refuse to make it so";
  return what + "'sidetrack apply' with these options would make it so";
}

std::vector<std::string> warnings(const Outcome& outcome) {
  std::vector<std::string> all = outcome.warnings;
  append(all, outcome.obstacles);
  return all;
}

std::vector<std::string> warnings(const Comparison& comparison) {
  std::vector<std::string> all;
  for (const Difference& difference : comparison.backends)
    std::ranges::copy(difference.warnings, std::back_inserter(all));
  append(all, comparison.obstacles);
  if (!comparison.refusal.empty()) all.push_back("apply would refuse: " + comparison.refusal);
  return all;
}

}  // namespace sidetrack
