// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/native.h"

#include <linux/netfilter.h>

#include "kernel/nft/names.h"
#include "rule/fold.h"
#include "rule/reach.h"

namespace sidetrack::nft {
namespace {

std::vector<NativeRule> translate(const Rule& rule, const RuleNotes& notes, Families arriving, Sets& sets) {
  RuleWriter writer(rule, arriving, sets, notes.set);
  for (const Match& match : rule.matches) std::visit([&](const auto& one) { one.to_nft(writer); }, match);
  std::vector<Statement> matched;
  const bool is_tproxy = std::holds_alternative<Tproxy>(rule.target);
  if (is_tproxy) matched = writer.statements();
  writer.add("counter", {Count{0, 0}});
  std::visit([&](const auto& one) { one.to_nft(writer); }, rule.target);

  std::vector<NativeRule> rules;
  rules.push_back({writer.take(), comment(notes.flag, notes.sentence), &rule});
  if (is_tproxy) {
    // The xtables target drops what no transparent socket takes; the native statement ends the rule and lets it pass.
    NativeRule drop{std::move(matched), comment(notes.flag, "dropped if no transparent socket takes it"), &rule};
    drop.statements.push_back({"counter", {Count{0, 0}}});
    drop.statements.push_back({"drop", {Decide{NF_DROP, {}}}});
    rules.push_back(std::move(drop));
  }
  return rules;
}

}  // namespace

NativeTable native(const Ruleset& ruleset, const MeshRules& mesh) {
  NativeTable table;
  Sets sets;
  const Reach reach(ruleset);
  for (const Table each : all_tables) {
    for (const Chain& chain : chains(ruleset, each, Families::both())) {
      table.chains.push_back({chain_name(each, chain.name), builtin_hook(each, chain.name), {}});
      NativeChain& made = table.chains.back();
      for (const Rule* rule : chain.rules) {
        for (NativeRule& part : translate(*rule, mesh.notes(*rule), reach(each, chain.name), sets)) {
          made.rules.push_back(std::move(part));
        }
      }
    }
  }
  table.sets = sets.take();
  return table;
}

}  // namespace sidetrack::nft
