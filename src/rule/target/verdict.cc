// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/verdict.h"

#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "model/printable.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"

namespace sidetrack {
std::string_view Verdict::name() const {
  static constexpr std::string_view names[] = {"ACCEPT", "DROP", "RETURN"};
  return names[static_cast<std::size_t>(kind)];
}

std::string Verdict::to_iptables() const { return fmt::format("-j {}", name()); }

std::optional<Target> Verdict::from_iptables(TargetWords words) {
  if (words.size() != 2) return {};
  for (const Verdict each : {accept, drop, return_}) {
    if (words[1] == each.name()) return each;
  }
  return {};
}

xt::Sources Verdict::sources() { return {}; }
xt::Extension Verdict::to_xt(Family) const { xt::refuse(to_iptables()); }  // a standard target, xt/entry.cc
std::optional<Target> Verdict::from_xt(const xt::ExtensionView&, Family) { return {}; }

void Verdict::to_nft(nft::RuleWriter& writer) const {
  static constexpr std::pair<const char*, std::int32_t> verdicts[] = {
      {"accept", NF_ACCEPT}, {"drop", NF_DROP}, {"return", NFT_RETURN}};
  const auto& [word, number] = verdicts[static_cast<std::size_t>(kind)];
  writer.add(word, {nft::Decide{number, {}}});
}

std::string Jump::to_iptables() const { return (is_goto ? "-g " : "-j ") + printable(chain); }

// A chain has no options. Extensions have names of capitals, too: whoever holds the chains decides.
std::optional<Target> Jump::from_iptables(TargetWords words) {
  if (words.size() != 2) return {};
  return Jump{words[1], words[0] == "-g"};
}

xt::Sources Jump::sources() { return {}; }
xt::Extension Jump::to_xt(Family) const { xt::refuse(to_iptables()); }  // a standard target, xt/entry.cc
std::optional<Target> Jump::from_xt(const xt::ExtensionView&, Family) { return {}; }

void Jump::to_nft(nft::RuleWriter& writer) const {
  const std::string name = nft::chain_name(writer.rule().table, chain);
  writer.add((is_goto ? "goto " : "jump ") + name, {nft::Decide{is_goto ? NFT_GOTO : NFT_JUMP, name}});
}

}  // namespace sidetrack
