// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/unknown.h"

#include <algorithm>

#include "model/printable.h"
#include "rule/nft/writer.h"

namespace sidetrack {
namespace {

// What lets the packet go on, to the next rule. What some of these change (TOS, TTL, MSS) no match of the model sees.
// TEE is none of them: the host that gets the copy may answer it, with a reset for one.
constexpr std::string_view non_terminating[] = {
    "LOG", "NFLOG",  "ULOG",        "TRACE",    "AUDIT",   "CLASSIFY",    "TOS", "DSCP",    "ECN",       "TTL",
    "HL",  "TCPMSS", "TCPOPTSTRIP", "CHECKSUM", "SECMARK", "CONNSECMARK", "LED", "RATEEST", "IDLETIMER",
};

}  // namespace

std::string NonTerminating::to_iptables() const { return printable(words); }

std::optional<Target> NonTerminating::from_iptables(TargetWords words) {
  const std::string& name = words[1];
  const bool without_options = name == "LOG" || name == "NFLOG" || name == "TRACE";  // others may be chains
  const bool is_known = std::ranges::find(non_terminating, name) != std::end(non_terminating);
  if (words[0] != "-j" || !(words.size() == 2 ? without_options : is_known)) return {};
  return NonTerminating{joined_words(words)};
}

xt::Sources NonTerminating::sources() { return {}; }
xt::Extension NonTerminating::to_xt(Family) const { xt::refuse(to_iptables()); }

std::optional<Target> NonTerminating::from_xt(const xt::ExtensionView& extension, Family) {
  if (std::ranges::find(non_terminating, extension.name) == std::end(non_terminating)) return {};
  return NonTerminating{unknown_words(xt::ExtensionKind::target, extension)};
}

void NonTerminating::to_nft(nft::RuleWriter& writer) const {
  if (!words.empty()) writer.refuse();
}

std::string Reject::to_iptables() const { return printable(words); }

std::optional<Target> Reject::from_iptables(TargetWords words) {
  if (words[1] != "REJECT") return {};
  return Reject{joined_words(words)};
}

xt::Sources Reject::sources() { return {}; }
xt::Extension Reject::to_xt(Family) const { xt::refuse(to_iptables()); }

std::optional<Target> Reject::from_xt(const xt::ExtensionView& extension, Family) {
  if (extension.name != "REJECT") return {};
  return Reject{unknown_words(xt::ExtensionKind::target, extension)};
}

void Reject::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }

std::string UnknownTarget::to_iptables() const { return printable(words); }
std::optional<Target> UnknownTarget::from_iptables(TargetWords words) { return UnknownTarget{joined_words(words)}; }
xt::Sources UnknownTarget::sources() { return {}; }
xt::Extension UnknownTarget::to_xt(Family) const { xt::refuse(to_iptables()); }

// Any that no other kind has understood.
std::optional<Target> UnknownTarget::from_xt(const xt::ExtensionView& extension, Family) {
  return UnknownTarget{unknown_words(xt::ExtensionKind::target, extension)};
}

void UnknownTarget::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }

}  // namespace sidetrack
