// SPDX-License-Identifier: GPL-2.0-or-later
#include "library/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "model/list_text.h"

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
  return count == 0 ? "no rules"
                    : fmt::format("{} rule{} in {} ({})", count, count == 1 ? "" : "s", tables, names(families));
}

// "22 rules in nat (ipv4) through iptables-nft"
std::string summary(const ApplyResult& result) {
  return fmt::format("{} through {}", summary(result.canonical, *result.backend), name(*result.backend));
}

std::string removed(const ApplyResult& result, std::string_view verb) {
  std::string text;
  for (BackendKind left : result.left) text += fmt::format("; {} those in {}", verb, name(left));
  for (const std::string& command : result.routing_removed) text += "; " + command;
  return text;
}

std::string unchanged(const ApplyResult& result) {
  if (!result.backend) return "nothing to change: no rules are requested, and none are there";
  return fmt::format("nothing to change: {} already as requested", summary(result));
}

constexpr std::size_t most_losses = 8;  // that apply names, of traffic that other programs take

template <typename Each>
void append(std::vector<std::string>& warnings, const std::vector<Each>& all) {
  std::ranges::transform(all, std::back_inserter(warnings), [](const Each& each) { return text(each); });
}

}  // namespace

std::string applied(const ApplyResult& result, std::optional<Milliseconds> took) {
  if (result.applied == Applied::unchanged) return unchanged(result);
  const std::string time = took ? fmt::format(" in {:.1f} ms", took->count()) : "";
  if (!result.backend) return fmt::format("{}{}: none are requested", cleaned(result), time);
  const std::string because = result.because.empty() ? "" : fmt::format(" ({})", result.because);
  return fmt::format("installed {}{}{}{}", summary(result), time, because, removed(result, "removed"));
}

std::string checked(const ApplyResult& result) {
  if (result.applied == Applied::unchanged) return unchanged(result);
  if (!result.backend)
    return "no rules are requested" + removed(result, "apply would remove") + "; nothing was changed";
  return fmt::format("the kernel would accept {}{}; nothing was changed", summary(result),
                     removed(result, "apply would remove"));
}

std::string cleaned(const ApplyResult& result, std::string_view mesh) {
  if (result.applied == Applied::unchanged)
    return mesh.empty() ? "nothing to remove" : fmt::format("nothing to remove: no rules of {} are here", mesh);
  std::string from;
  for (BackendKind backend : result.left) from += (from.empty() ? " from " : ", ") + std::string(name(backend));
  return mesh.empty() ? "removed all rules and routes of the mesh" + from
                      : fmt::format("removed all rules of {}{}, and its chains with whatever was in them", mesh, from);
}

std::string verified(const PodDiff& pod_diff, std::string_view options) {
  if (pod_diff.as_requested()) {
    const std::string through = pod_diff.backend ? fmt::format(", through {}", name(*pod_diff.backend)) : "";
    return "rules and routes are as requested" + through;
  }
  if (pod_diff.equal()) return "the rules and routes are as requested, but " + sentence(pod_diff.obstacles);
  const std::string what = "the pod differs from the requested rules; ";
  if (!pod_diff.refusal.empty()) return what + "'sidetrack apply' would refuse to change that";
  return what + fmt::format("'sidetrack apply' with {} would install them", options);
}

std::vector<std::string> warnings(const ApplyResult& result) {
  std::vector<std::string> all = result.warnings;
  std::vector<std::string> losses;
  append(losses, result.obstacles);
  append(losses, result.lost_replies);
  const std::size_t shown = std::min(losses.size(), most_losses);
  std::move(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(shown), std::back_inserter(all));
  if (shown < losses.size()) {
    all.push_back(
        fmt::format("{} of {} such warnings are shown; 'sidetrack verify' shows all of them", shown, losses.size()));
  }
  return all;
}

std::vector<std::string> warnings(const PodDiff& pod_diff, std::string_view command) {
  std::vector<std::string> all;
  for (const Difference& difference : pod_diff.backends)
    std::ranges::copy(difference.warnings, std::back_inserter(all));
  append(all, pod_diff.obstacles);
  append(all, pod_diff.lost_replies);
  if (!pod_diff.refusal.empty()) all.push_back(fmt::format("{} would refuse: {}", command, pod_diff.refusal));
  return all;
}

}  // namespace sidetrack
