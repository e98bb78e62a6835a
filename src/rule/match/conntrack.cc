// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/conntrack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>

#include <algorithm>

#include "rule/match/connection.h"
#include "rule/match/conntrack_spec.h"
#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"

namespace sidetrack {
namespace {

constexpr xt::Source conntrack_sources[] = {{"conntrack", "xt_conntrack", "CONFIG_NETFILTER_XT_MATCH_CONNTRACK"}};

struct NamedState {
  std::uint8_t bit;
  std::string_view iptables;
  std::string_view nft;
  unsigned of_xt;
  std::uint32_t of_nft;
};
// In the order in which iptables lists them.
constexpr NamedState all_states[] = {
    {ConntrackStateMatch::invalid, "INVALID", "invalid", XT_CONNTRACK_STATE_INVALID, NF_CT_STATE_INVALID_BIT},
    {ConntrackStateMatch::new_, "NEW", "new", XT_CONNTRACK_STATE_BIT(IP_CT_NEW), NF_CT_STATE_BIT(IP_CT_NEW)},
    {ConntrackStateMatch::related, "RELATED", "related", XT_CONNTRACK_STATE_BIT(IP_CT_RELATED),
     NF_CT_STATE_BIT(IP_CT_RELATED)},
    {ConntrackStateMatch::established, "ESTABLISHED", "established", XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED),
     NF_CT_STATE_BIT(IP_CT_ESTABLISHED)},
    {ConntrackStateMatch::untracked, "UNTRACKED", "untracked", XT_CONNTRACK_STATE_UNTRACKED, NF_CT_STATE_UNTRACKED_BIT},
    {ConntrackStateMatch::snat, "SNAT", "", XT_CONNTRACK_STATE_SNAT, 0},
    {ConntrackStateMatch::dnat, "DNAT", "", XT_CONNTRACK_STATE_DNAT, 0},
};
constexpr std::uint8_t translated = ConntrackStateMatch::snat | ConntrackStateMatch::dnat;
// In the order in which nft prints them.
constexpr std::size_t nft_order[] = {0, 3, 2, 1, 4};

std::uint8_t state_bit(ConnectionState state) {
  switch (state) {
    case ConnectionState::new_:
      return ConntrackStateMatch::new_;
    case ConnectionState::established:
    case ConnectionState::reply:
      return ConntrackStateMatch::established;
    case ConnectionState::invalid:
      return ConntrackStateMatch::invalid;
  }
  return 0;
}

// Returns SNAT and DNAT as bits of a connection's status.
std::uint16_t status_of(std::uint8_t states) {
  unsigned bits = 0;
  if ((states & ConntrackStateMatch::snat) != 0) bits |= IPS_SRC_NAT;
  if ((states & ConntrackStateMatch::dnat) != 0) bits |= IPS_DST_NAT;
  return static_cast<std::uint16_t>(bits);
}

std::string state_names(std::uint8_t states) {
  std::string text;
  for (const NamedState& each : all_states) {
    if ((states & each.bit) != 0) text += (text.empty() ? "" : ",") + std::string(each.iptables);
  }
  return text;
}

// The states of xt_conntrack; nothing where it has one without a name.
std::optional<std::uint8_t> read_states(unsigned mask) {
  std::uint8_t states = 0;
  for (const NamedState& each : all_states) {
    if ((mask & each.of_xt) == 0) continue;
    states = static_cast<std::uint8_t>(states | each.bit);
    mask &= ~each.of_xt;
  }
  return mask == 0 ? std::optional(states) : std::nullopt;
}

// --ctdir REPLY is an inverted ORIGINAL.
xt::Extension encode_direction(bool reply) {
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_DIRECTION;
  if (reply) info.invert_flags = XT_CONNTRACK_DIRECTION;
  return conntrack_spec.encode(info);
}

// ct state & bits == 0, as it is written; "!= 0" is the same negated.
std::optional<nft::Alternatives> without_bits(const nft::Comparison& comparison) {
  std::uint32_t bits = nft::number_of(comparison.value, comparison.value.mask);
  ConntrackStateMatch match{0, !comparison.negated};
  for (const NamedState& each : all_states) {
    if ((bits & each.of_nft) == 0) continue;  // as SNAT and DNAT
    match.states = static_cast<std::uint8_t>(match.states | each.bit);
    bits &= ~each.of_nft;
  }
  if (bits != 0) return {};
  return nft::only(match);
}

// "the connection is new"
const char* state_words(ConnectionState state) {
  switch (state) {
    case ConnectionState::new_:
      return "the connection is new";
    case ConnectionState::established:
    case ConnectionState::reply:
      return "the connection is established";
    case ConnectionState::invalid:
      return "it belongs to no known connection";
  }
  return "";
}

}  // namespace

const char* without_connection(const PacketAtHook& packet) {
  if (packet.untracked) return "it is not tracked";
  if (packet.state == ConnectionState::invalid) return state_words(packet.state);
  return packet.tracked ? nullptr : "it is not tracked yet";
}

std::string ConntrackStateMatch::to_iptables() const {
  return fmt::format("-m conntrack {}--ctstate {}", exclamation(negated), state_names(states));
}

std::optional<Match> ConntrackStateMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--ctstate" && option.name != "--state") return {};  // --state of -m state
  ConntrackStateMatch match{0, option.negated};
  for (const std::string_view item : split_at_each(option.value, ',')) {
    const auto* found = std::ranges::find(all_states, item, &NamedState::iptables);
    if (found == std::end(all_states)) return {};
    match.states |= found->bit;
  }
  return match;
}

xt::Sources ConntrackStateMatch::sources() { return conntrack_sources; }

void ConntrackStateMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_STATE;
  if (negated) info.invert_flags = XT_CONNTRACK_STATE;
  for (const NamedState& each : all_states) {
    if ((states & each.bit) != 0) info.state_mask = static_cast<std::uint16_t>(info.state_mask | each.of_xt);
  }
  extensions.push_back(conntrack_spec.encode(info));
}

// `-m state` is conntrack's other name, and the same.
std::optional<std::vector<Match>> ConntrackStateMatch::from_xt(const xt::ExtensionView& extension, Family) {
  const auto info = conntrack_spec.decode(extension);
  if (!info) return {};
  const bool states_only = (info->match_flags & ~XT_CONNTRACK_STATE_ALIAS) == XT_CONNTRACK_STATE &&
                           (info->invert_flags & ~XT_CONNTRACK_STATE) == 0;
  xt_conntrack_mtinfo3 rest = *info;
  rest.match_flags = rest.invert_flags = rest.state_mask = 0;
  const auto states = read_states(info->state_mask);
  if (!states_only || !xt::is_zero(rest) || !states) return {};
  return std::vector<Match>{ConntrackStateMatch{*states, info->invert_flags != 0}};
}

// ct state established,related; ct state ! invalid
void ConntrackStateMatch::to_nft(nft::RuleWriter& writer) const {
  if ((states & translated) != 0) writer.refuse();
  std::uint32_t bits = 0;
  std::vector<std::string_view> names;
  for (const std::size_t i : nft_order) {
    if ((states & all_states[i].bit) == 0) continue;
    bits |= all_states[i].of_nft;
    names.push_back(all_states[i].nft);
  }
  const nft::Data zero = nft::Data::host(std::uint32_t{0});
  writer.add(fmt::format("ct state {}{}", negated ? "! " : "", fmt::join(names, ",")),
             {nft::CtLoad{NFT_CT_STATE}, nft::Bitwise{nft::Data::host(bits), zero}, nft::equal(!negated, zero)});
}

std::optional<nft::Alternatives> ConntrackStateMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  if (!value.is_ct(NFT_CT_STATE)) return {};
  const bool is_masked = value.changed() && nft::number_of(value, value.xor_value) == 0;
  if (is_masked && comparison.is_one_value() && nft::number_of(value, comparison.bounds.front().first) == 0)
    return without_bits(comparison);
  // A packet is in one of five states: each is tried.
  ConntrackStateMatch match;
  for (const NamedState& each : all_states) {
    std::uint32_t state = each.of_nft;
    if (state == 0) continue;
    if (value.changed()) state = (state & nft::number_of(value, value.mask)) ^ nft::number_of(value, value.xor_value);
    bool within = false;
    for (const auto& [first, last] : comparison.bounds) {
      if (first != last && !value.ordered()) return {};
      within = within || (nft::number_of(value, first) <= state && state <= nft::number_of(value, last));
    }
    if (within != comparison.negated) match.states = static_cast<std::uint8_t>(match.states | each.bit);
  }
  if (match.states == 0) return nft::never();
  return nft::only(match);
}

Truth ConntrackStateMatch::truth(const PacketAtHook& packet) const {
  const std::uint8_t bit =
      packet.untracked ? std::uint8_t{untracked} : state_bit(packet.tracked ? packet.state : ConnectionState::invalid);
  if ((states & bit) != 0) return known(!negated);
  if (without_connection(packet) != nullptr) return known(negated);
  return negated_if(negated, has_status(packet, status_of(states)));
}

std::string ConntrackStateMatch::why_not(const PacketAtHook& packet) const {
  const char* without = without_connection(packet);
  return without != nullptr ? without : state_words(packet.state);
}

void ConntrackStateMatch::ask(Asked& asked) const {
  asked.connection();
  ConnectionMatch status;
  status.of = ConnectionMatch::Of::status;
  status.number = status_of(states);
  if (status.number != 0) asked.ends(status);
}
void ConntrackStateMatch::take_value(const ConntrackStateMatch&) {}  // no option gives it

std::string ConntrackDirectionMatch::to_iptables() const {
  return fmt::format("-m conntrack --ctdir {}", reply ? "REPLY" : "ORIGINAL");
}

std::optional<Match> ConntrackDirectionMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--ctdir" || option.negated || (option.value != "REPLY" && option.value != "ORIGINAL")) return {};
  return ConntrackDirectionMatch{option.value == "REPLY"};
}

xt::Sources ConntrackDirectionMatch::sources() { return conntrack_sources; }

void ConntrackDirectionMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  extensions.push_back(encode_direction(reply));
}

std::optional<std::vector<Match>> ConntrackDirectionMatch::from_xt(const xt::ExtensionView& extension, Family) {
  for (const bool reply : {true, false}) {
    if (xt::is_exactly(encode_direction(reply), extension)) return std::vector<Match>{ConntrackDirectionMatch{reply}};
  }
  return {};
}

// ct direction reply
void ConntrackDirectionMatch::to_nft(nft::RuleWriter& writer) const {
  const auto direction = static_cast<std::uint8_t>(reply ? IP_CT_DIR_REPLY : IP_CT_DIR_ORIGINAL);
  writer.add(fmt::format("ct direction {}", reply ? "reply" : "original"),
             {nft::CtLoad{NFT_CT_DIRECTION}, nft::equal(false, nft::Data::host(direction))});
}

std::optional<nft::Alternatives> ConntrackDirectionMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  if (!value.is_ct(NFT_CT_DIRECTION) || value.changed()) return {};
  nft::Alternatives found = nft::never();
  for (const bool reply : {false, true}) {
    const std::uint32_t number = reply ? IP_CT_DIR_REPLY : IP_CT_DIR_ORIGINAL;
    const bool within = std::ranges::any_of(comparison.bounds, [&](const nft::Bounds& one) {
      return nft::number_of(value, one.first) <= number && number <= nft::number_of(value, one.second);
    });
    if (within == comparison.negated) continue;
    if (!found.empty()) return {};  // that it has one, which what is not tracked has not
    found = nft::only(ConntrackDirectionMatch{reply});
  }
  return found;
}

// Without a connection neither --ctdir holds (net/netfilter/xt_conntrack.c; nft_ct breaks off too).
Truth ConntrackDirectionMatch::truth(const PacketAtHook& packet) const {
  const bool has = packet.tracked && !packet.untracked && packet.state != ConnectionState::invalid;
  return known(has && (packet.state == ConnectionState::reply) == reply);
}

std::string ConntrackDirectionMatch::why_not(const PacketAtHook& packet) const {
  if (const char* without = without_connection(packet)) return without;
  return reply ? "it is no answer" : "it is an answer";
}

void ConntrackDirectionMatch::ask(Asked& asked) const { asked.connection(); }
void ConntrackDirectionMatch::take_value(const ConntrackDirectionMatch&) {}  // no option gives it

}  // namespace sidetrack
