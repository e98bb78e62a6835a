// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/comment.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_comment.h>

#include <algorithm>
#include <stdexcept>

#include "rule/nft/comparison.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {

std::string CommentMatch::to_iptables() const {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
  });
  return fmt::format("-m comment --comment {}", plain ? text : in_quotes(text));
}

std::optional<Match> CommentMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--comment" || option.negated) return {};
  return CommentMatch{std::string(option.value)};
}

xt::Sources CommentMatch::sources() { return {}; }

void CommentMatch::to_xt(const Rule&, std::vector<xt::Extension>&) const {
  throw std::logic_error("a match that is only read cannot be sent: " + to_iptables());
}

std::optional<std::vector<Match>> CommentMatch::from_xt(const xt::ExtensionView& extension, Family) {
  static constexpr xt::Spec<xt_comment_info> comment{"comment", 0};
  const auto info = comment.decode(extension);
  if (!info) return {};
  return std::vector<Match>{CommentMatch{{info->comment, strnlen(info->comment, sizeof info->comment)}}};
}

void CommentMatch::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }
std::optional<nft::Alternatives> CommentMatch::from_nft(const nft::Comparison&) { return {}; }
Truth CommentMatch::truth(const PacketAtHook&) const { return Truth::yes; }
std::string CommentMatch::why_not(const PacketAtHook&) const { return ""; }  // holds
void CommentMatch::ask(Asked&) const {}
void CommentMatch::take_value(const CommentMatch&) {}

}  // namespace sidetrack
