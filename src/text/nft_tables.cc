// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_tables.h"

#include <algorithm>
#include <utility>

namespace sidetrack {

NftNode::NftNode() = default;
NftNode::NftNode(std::string_view word_of, std::vector<NftNode> parts_of) : word(word_of), parts(std::move(parts_of)) {}
NftNode::NftNode(const NftNode& other) = default;
NftNode::NftNode(NftNode&& other) noexcept = default;
NftNode& NftNode::operator=(const NftNode& other) = default;
NftNode& NftNode::operator=(NftNode&& other) noexcept = default;
NftNode::~NftNode() = default;

NftRule opaque_nft_rule(std::string words) {
  NftStatement statement;
  statement.words = std::move(words);
  NftRule rule;
  rule.statements.push_back(std::move(statement));
  return rule;
}

void mark_changing_sets(NftTable& table) {
  const auto mark = [&](std::string_view words) {
    for (auto at = words.find('@'); at != std::string_view::npos; at = words.find('@', at + 1)) {
      const std::string_view before = words.substr(0, at);
      if (!before.ends_with("add ") && !before.ends_with("update ") && !before.ends_with("delete ")) continue;
      const auto set = std::ranges::find(table.sets, words.substr(at + 1, words.find(' ', at) - at - 1), &NftSet::name);
      if (set != table.sets.end()) set->changes = true;
    }
  };
  for (const NftChain& chain : table.chains) {
    for (const NftRule& rule : chain.rules) {
      for (const NftStatement& each : rule.statements) mark(each.words);
    }
  }
}

}  // namespace sidetrack
