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
  const OpenBackend open = opener(line);
  std::vector<Live> found;
  std::vector<std::pair<BackendKind, Error>> refused;
  for (const BackendKind kind : {BackendKind::nftables, BackendKind::iptables_nft, BackendKind::iptables_legacy}) {
    try {
      Live live = open(kind, Access::read)->read();
      if (holds_rules(live)) found.push_back(std::move(live));
    } catch (const Error& error) {
      if (error.code() == ExitCode::kernel_lacks) continue;  // then it holds nothing
      if (error.code() != ExitCode::not_permitted) throw;
      refused.emplace_back(kind, error);
    }
  }
  // "No rules" would be a guess.
  if (found.empty() && !refused.empty()) throw refused.front().second;
  for (const auto& [kind, error] : refused)
    warn(std::string(error.what()) + ": rules of " + std::string(name(kind)) + ", if there are any, are not seen");
  return found;
}

}  // namespace sidetrack::cli
