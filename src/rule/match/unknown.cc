// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/unknown.h"

#include <stdexcept>

#include "model/printable.h"
#include "rule/nft/comparison.h"
#include "rule/nft/writer.h"

namespace sidetrack {

std::string UnknownMatch::to_iptables() const { return printable(words); }
std::optional<Match> UnknownMatch::from_iptables(const MatchOption&) { return {}; }  // where it ends is not known
xt::Sources UnknownMatch::sources() { return {}; }

void UnknownMatch::to_xt(const Rule&, std::vector<xt::Extension>&) const {
  throw std::logic_error("a match that is only read cannot be sent: " + to_iptables());
}

// Any that no other kind has understood.
std::optional<std::vector<Match>> UnknownMatch::from_xt(const xt::ExtensionView& extension, Family) {
  return std::vector<Match>{UnknownMatch{unknown_words(xt::ExtensionKind::match, extension)}};
}

void UnknownMatch::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }
std::optional<nft::Alternatives> UnknownMatch::from_nft(const nft::Comparison&) { return {}; }
Truth UnknownMatch::truth(const PacketAtHook&) const { return Truth::unknown; }
std::string UnknownMatch::why_not(const PacketAtHook&) const { return ""; }  // not known
void UnknownMatch::ask(Asked&) const {}
void UnknownMatch::take_value(const UnknownMatch&) {}

}  // namespace sidetrack
