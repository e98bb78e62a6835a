// SPDX-License-Identifier: GPL-2.0-or-later
// What a backend reads back of rules that a test has committed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apply/diff.h"
#include "rule/iptables.h"
#include "rule/live.h"

namespace sidetrack::netns {

// Every rule of a chain with one of our names, and of the built-in chains of iptables, as if it were of ours: for tests
// of encoding, whose rules have other shapes than those that count as ours (mark_ours).
[[nodiscard]] inline Live whoever_wrote(Live live) {
  const bool of_iptables = live.backend != BackendKind::nftables;
  for (LiveChain& chain : live.chains) {
    if (!chain.ours && !(of_iptables && is_builtin(chain.name))) continue;
    for (LiveRule& each : chain.rules) each.ours = true;
  }
  return live;
}

// What is missing, or more than was wanted, as lines; empty if `live` holds just `canonical`.
[[nodiscard]] inline std::vector<std::string> differences(const Live& live, const Ruleset& canonical) {
  std::vector<std::string> lines;
  for (const ChainDiff& chain : diff(live, canonical).chains) {
    for (const DiffLine& line : chain.lines) {
      if (line.kind == DiffLine::Kind::same || line.kind == DiffLine::Kind::foreign) continue;
      lines.push_back((line.kind == DiffLine::Kind::missing ? "missing: -t " : "extra: -t ") +
                      std::string(name(chain.table)) + " " + iptables_words(line.rule));
    }
  }
  if (lines.empty() && !equal(live, canonical)) lines.emplace_back("another chain or policy");
  return lines;
}

}  // namespace sidetrack::netns
