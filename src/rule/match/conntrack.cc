// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/conntrack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/xt_conntrack.h>

#include <algorithm>
#include <bit>

#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_conntrack_mtinfo3> conntrack{"conntrack", 3, 2};
static_assert(xt::aligned(sizeof(xt_conntrack_mtinfo3)) == 168);

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

std::string status_names(unsigned status) {
  constexpr std::string_view names[] = {"EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED"};  // by IPS_…_BIT
  std::string text;
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if ((status >> i & 1) != 0) text += (text.empty() ? "" : ",") + std::string(names[i]);
  }
  return text.empty() ? "NONE" : text;
}

struct ConntrackAddress {
  unsigned bit;
  const char* option;
  nf_inet_addr xt_conntrack_mtinfo3::*address;
  nf_inet_addr xt_conntrack_mtinfo3::*mask;
};
struct ConntrackPorts {
  unsigned bit;
  const char* option;
  __u16 xt_conntrack_mtinfo3::*first;
  __u16 xt_conntrack_mtinfo3::*last;
};
using ConntrackInfo = xt_conntrack_mtinfo3;
constexpr ConntrackAddress conntrack_addresses[] = {
    {XT_CONNTRACK_ORIGSRC, "ctorigsrc", &ConntrackInfo::origsrc_addr, &ConntrackInfo::origsrc_mask},
    {XT_CONNTRACK_ORIGDST, "ctorigdst", &ConntrackInfo::origdst_addr, &ConntrackInfo::origdst_mask},
    {XT_CONNTRACK_REPLSRC, "ctreplsrc", &ConntrackInfo::replsrc_addr, &ConntrackInfo::replsrc_mask},
    {XT_CONNTRACK_REPLDST, "ctrepldst", &ConntrackInfo::repldst_addr, &ConntrackInfo::repldst_mask}};
constexpr ConntrackPorts conntrack_ports[] = {
    {XT_CONNTRACK_ORIGSRC_PORT, "ctorigsrcport", &ConntrackInfo::origsrc_port, &ConntrackInfo::origsrc_port_high},
    {XT_CONNTRACK_ORIGDST_PORT, "ctorigdstport", &ConntrackInfo::origdst_port, &ConntrackInfo::origdst_port_high},
    {XT_CONNTRACK_REPLSRC_PORT, "ctreplsrcport", &ConntrackInfo::replsrc_port, &ConntrackInfo::replsrc_port_high},
    {XT_CONNTRACK_REPLDST_PORT, "ctrepldstport", &ConntrackInfo::repldst_port, &ConntrackInfo::repldst_port_high}};

// In the words of iptables, for what asks for more of a connection than its state or its direction; nothing if they
// would leave out something.
std::optional<std::string> words_of(const xt_conntrack_mtinfo3& info, Family family) {
  constexpr unsigned all_flags = XT_CONNTRACK_STATE_ALIAS * 2 - 1, all_statuses = IPS_CONFIRMED * 2 - 1;
  const auto states = read_states(info.state_mask);
  if (!states || (info.match_flags & ~all_flags) != 0 || (info.status_mask & ~all_statuses) != 0) return {};
  const bool is_odd =
      (info.invert_flags & ~info.match_flags) != 0 || (*states != 0 && (info.match_flags & XT_CONNTRACK_STATE) == 0);
  if (is_odd) return {};
  std::string words = "-m conntrack";
  const auto add = [&](unsigned bit, const char* option, const std::string& value) {
    if ((info.match_flags & bit) == 0) return;
    words += fmt::format(" {}--{} {}", exclamation((info.invert_flags & bit) != 0), option, value);
  };
  add(XT_CONNTRACK_STATE, "ctstate", state_names(*states));
  add(XT_CONNTRACK_PROTO, "ctproto", fmt::format("{}", info.l4proto));
  for (const ConntrackAddress& each : conntrack_addresses) {
    const Address address = xt::address_in(family, &(info.*each.address));
    const Address mask = xt::address_in(family, &(info.*each.mask));
    int length = 0;
    for (const std::uint8_t byte : mask.view()) length += std::popcount(byte);
    const AddressRange range = AddressRange::prefix(address, length);
    std::string text = length == mask.bits() ? address.text() : range.text();
    if (range.mask() != mask) text = address.text() + "/" + mask.text();
    add(each.bit, each.option, text);
  }
  for (const ConntrackPorts& each : conntrack_ports) {
    const PortRange ports{info.*each.first, info.*each.last};
    add(each.bit, each.option, listed(std::span(&ports, 1), ':'));
  }
  add(XT_CONNTRACK_STATUS, "ctstatus", status_names(info.status_mask));
  const IdRange expires{info.expires_min, info.expires_max};
  add(XT_CONNTRACK_EXPIRES, "ctexpire", listed(std::span(&expires, 1), ':'));
  if ((info.match_flags & XT_CONNTRACK_DIRECTION) != 0)
    words += (info.invert_flags & XT_CONNTRACK_DIRECTION) != 0 ? " --ctdir REPLY" : " --ctdir ORIGINAL";
  return words;
}

// --ctdir REPLY is an inverted ORIGINAL.
xt::Extension encode_direction(bool reply) {
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_DIRECTION;
  if (reply) info.invert_flags = XT_CONNTRACK_DIRECTION;
  return conntrack.encode(info);
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

}  // namespace

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
  extensions.push_back(conntrack.encode(info));
}

// `-m state` is conntrack's other name, and the same.
std::optional<std::vector<Match>> ConntrackStateMatch::from_xt(const xt::ExtensionView& extension, Family) {
  const auto info = conntrack.decode(extension);
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
  const bool may_be_translated = (states & translated) != 0 && without_connection(packet) == nullptr;
  return may_be_translated ? Truth::unknown : known(negated);
}

std::string ConntrackStateMatch::why_not(const PacketAtHook& packet) const {
  const char* without = without_connection(packet);
  return without != nullptr ? without : state_words(packet.state);
}

void ConntrackStateMatch::ask(Asked& asked) const { asked.connection(); }
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

std::optional<std::vector<Match>> ConntrackDirectionMatch::from_xt(const xt::ExtensionView& extension, Family family) {
  const auto info = conntrack.decode(extension);
  if (!info) return {};
  for (const bool reply : {true, false}) {
    if (std::ranges::equal(extension.data, encode_direction(reply).data))
      return std::vector<Match>{ConntrackDirectionMatch{reply}};
  }
  const auto words = words_of(*info, family);
  return words ? std::optional(std::vector<Match>{UnknownMatch{*words}}) : std::nullopt;
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
