// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_tables.h"

#include <linux/netfilter.h>

#include <algorithm>
#include <utility>

#include "model/scan.h"

namespace sidetrack {

NftNode::NftNode() = default;
NftNode::NftNode(std::string_view word_of, std::vector<NftNode> parts_of) : word(word_of), parts(std::move(parts_of)) {}
NftNode::NftNode(const NftNode& other) = default;
NftNode::NftNode(NftNode&& other) noexcept = default;
NftNode& NftNode::operator=(const NftNode& other) = default;
NftNode& NftNode::operator=(NftNode&& other) noexcept = default;
NftNode::~NftNode() = default;

void mark_changing_sets(NftTable& table) {
  const auto mark = [&](std::string_view words) {
    std::string_view before;
    for (const std::string_view word : split(words, " ")) {
      const bool is_changed = word.starts_with('@') && (before == "add" || before == "update" || before == "delete");
      const auto set = is_changed ? std::ranges::find(table.sets, word.substr(1), &NftSet::name) : table.sets.end();
      if (set != table.sets.end()) set->changes = true;
      before = word;
    }
  };
  for (const NftChain& chain : table.chains) {
    for (const NftRule& rule : chain.rules) {
      for (const NftStatement& each : rule.statements) mark(each.words);
    }
  }
}

std::optional<std::uint8_t> nft_family(std::string_view name) {
  static constexpr std::pair<std::string_view, std::uint8_t> families[] = {
      {"ip", NFPROTO_IPV4}, {"ip6", NFPROTO_IPV6},      {"inet", NFPROTO_INET},
      {"arp", NFPROTO_ARP}, {"bridge", NFPROTO_BRIDGE}, {"netdev", NFPROTO_NETDEV}};
  const auto* found = std::ranges::find(families, name, &std::pair<std::string_view, std::uint8_t>::first);
  if (found == std::end(families)) return {};
  return found->second;
}

}  // namespace sidetrack
