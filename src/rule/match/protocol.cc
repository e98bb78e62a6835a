// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"

namespace sidetrack {
namespace {

// Other words for protocols: those that iptables prints for the ones that have no name here.
constexpr std::pair<std::string_view, std::uint8_t> other_names[] = {
    {"icmpv6", 58},
    {"igmp", 2},
    {"dccp", 33},
    {"ipv6", 41},
    {"gre", 47},
    {"esp", 50},
    {"ah", 51},
    {"pim", 103},
    {"ipcomp", 108},
    {"sctp", 132},
    {"mobility-header", 135},
    {"ipv6-mh", 135},
    {"udplite", 136},
};

}  // namespace

std::string ProtocolMatch::to_iptables() const {
  const std::string_view known_name = name(protocol);
  return fmt::format("{}-p {}", exclamation(negated),
                     known_name.empty() ? std::to_string(static_cast<unsigned>(protocol)) : std::string(known_name));
}

std::optional<Match> ProtocolMatch::from_iptables(const MatchOption& option) {
  if (option.name != "-p") return {};
  std::string word(option.value);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Protocol each : {Protocol::icmp, Protocol::tcp, Protocol::udp, Protocol::icmpv6}) {
    if (name(each) == word) return ProtocolMatch{each, option.negated};
  }
  auto number = read_number<std::uint8_t>(option.value);
  for (const auto& [other, number_of] : other_names) {
    if (other == word) number = number_of;
  }
  if (!number) return {};
  return ProtocolMatch{static_cast<Protocol>(*number), option.negated};
}

xt::Sources ProtocolMatch::sources() { return {}; }
void ProtocolMatch::to_xt(const Rule&, std::vector<xt::Extension>&) const {}
std::optional<std::vector<Match>> ProtocolMatch::from_xt(const xt::ExtensionView&, Family) { return {}; }

// meta l4proto tcp; a match of ports says it by itself
void ProtocolMatch::to_nft(nft::RuleWriter& writer) const {
  if (writer.has_port() && !negated) return;
  writer.add(
      fmt::format("meta l4proto {}{}", nft::not_equal(negated), name(protocol)),
      {nft::MetaLoad{NFT_META_L4PROTO}, nft::equal(negated, nft::Data::host(static_cast<std::uint8_t>(protocol)))});
}

std::optional<nft::Alternatives> ProtocolMatch::from_nft(const nft::Comparison& comparison) {
  if (!comparison.value.is_meta(NFT_META_L4PROTO) && !comparison.is_protocol) return {};
  const auto ranges = nft::ranges_of<std::uint8_t>(comparison);
  if (comparison.value.changed() || !ranges) return {};
  const bool negated = comparison.negated;
  if (ranges->size() == 1 && ranges->front().first == ranges->front().last)
    return nft::only(ProtocolMatch{static_cast<Protocol>(ranges->front().first), negated});
  std::array<bool, 256> in{};
  for (const Range<std::uint8_t>& range : *ranges) {
    std::fill(in.begin() + range.first, in.begin() + range.last + 1, true);
  }
  // The shorter of the two lists: `> 6` is none of 0 to 6.
  const bool listed = std::ranges::count(in, true) <= 128;
  std::vector<Match> matches;
  for (std::size_t number = 0; number < in.size(); ++number) {
    if (in[number] == listed) matches.emplace_back(ProtocolMatch{static_cast<Protocol>(number), negated == listed});
  }
  return nft::each_of(std::move(matches), negated == listed);
}

Truth ProtocolMatch::truth(const PacketAtHook& packet) const { return known((protocol == packet.protocol) != negated); }

std::string ProtocolMatch::why_not(const PacketAtHook& packet) const {
  return fmt::format("it is {}", name(packet.protocol));
}

void ProtocolMatch::ask(Asked& asked) const { asked.protocol(protocol); }
void ProtocolMatch::take_value(const ProtocolMatch&) {}  // no option gives it

}  // namespace sidetrack
