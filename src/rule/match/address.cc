// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/address.h"

#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/xt_iprange.h>

#include <algorithm>

#include "rule/match/within.h"
#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_iprange_mtinfo> iprange{"iprange", 1, 3};  // only read
constexpr nft::KeyType ipv4_addr{"ipv4_addr", 7, 4, false};
constexpr nft::KeyType ipv6_addr{"ipv6_addr", 8, 16, false};

// 10.0.0.0/255.0.0.0, as iptables before 1.4 writes it
std::optional<AddressRange> read_masked_range(std::string_view text, std::size_t slash) {
  const auto address = Address::parse(text.substr(0, slash));
  const auto mask = Address::parse(text.substr(slash + 1));
  if (!address || !mask || address->family != mask->family) return {};
  return network_with_mask(*address, *mask);
}

// 10.1.0.0/16 of 10.1/16
std::string with_four_parts(std::string_view text) {
  const std::string_view address = text.substr(0, text.find('/'));
  std::string made(address);
  if (address.empty() || address.find_first_not_of("0123456789.") != std::string_view::npos) return std::string(text);
  for (auto dots = std::ranges::count(address, '.'); dots < 3; ++dots) made += ".0";
  return made.append(text.substr(address.size()));
}

std::optional<AddressRange> read_range(std::string_view given) {
  const std::string text = with_four_parts(given);
  const auto slash = text.find('/');
  if (slash != std::string::npos && text.find_first_of(".:", slash) != std::string::npos)
    return read_masked_range(text, slash);
  const auto dash = text.find('-');
  if (dash == std::string::npos) return AddressRange::parse(text);
  const auto first = Address::parse(text.substr(0, dash));
  const auto last = Address::parse(text.substr(dash + 1));
  if (!first || !last || first->family != last->family || *last < *first) return {};
  return AddressRange{*first, *last};
}

nft::EncodedRange encoded(const AddressRange& range) {
  return {nft::Data(range.first.view()), nft::Data(range.last.view())};
}

// 10.0.0.0/8, 10.0.0.1
std::string nft_text(const AddressRange& range) {
  return range.first == range.last ? range.first.text() : range.text();
}

Address address_of(Family family, std::string bytes, char rest) {
  Address address{family, {}};
  bytes.resize(address.size(), rest);
  std::ranges::transform(bytes, address.bytes.begin(), [](char byte) { return static_cast<std::uint8_t>(byte); });
  return address;
}

// ip daddr & 255.240.0.0 == 10.0.0.0
std::optional<nft::Alternatives> masked_address(const nft::Comparison& comparison) {
  if (!comparison.is_one_value()) return {};
  const Family family = *comparison.field->family;
  const nft::Value& value = comparison.value;
  std::string compared = comparison.bounds.front().first;
  for (std::size_t i = 0; i < compared.size(); ++i) compared[i] = static_cast<char>(compared[i] ^ value.xor_value[i]);
  const Address address = address_of(family, compared, '\0');
  const auto range = network_with_mask(address, address_of(family, value.mask, '\0'));
  if (!range) return {};
  if (range->first != address) return comparison.negated ? nft::always() : nft::never();
  return nft::only(AddressMatch{comparison.field->end, {*range}, comparison.negated});
}

}  // namespace

std::string AddressMatch::to_iptables() const {
  std::string list;
  for (const AddressRange& range : ranges) list += (list.empty() ? "" : ",") + range.text();
  return fmt::format("{}-{} {}", exclamation(negated), letter(end), list);
}

std::optional<Match> AddressMatch::from_iptables(const MatchOption& option) {
  const bool source = option.name == "-s" || option.name == "--src-range";
  if (!source && option.name != "-d" && option.name != "--dst-range") return {};
  auto all = read_each<AddressRange>(option.value, read_range);
  if (!all || std::ranges::any_of(*all, [&](const auto& one) { return one.family() != all->front().family(); }))
    return {};
  return AddressMatch{source ? End::source : End::destination, *std::move(all), option.negated};
}

xt::Sources AddressMatch::sources() { return {}; }
void AddressMatch::to_xt(const Rule&, std::vector<xt::Extension>&) const {}

// -m iprange ! --dst-range 10.0.0.1-10.0.0.9; of IPv4, the first 4 bytes of each address are used.
std::optional<std::vector<Match>> AddressMatch::from_xt(const xt::ExtensionView& extension, Family family) {
  const auto info = iprange.decode(extension);
  constexpr int known_flags = IPRANGE_SRC | IPRANGE_DST | IPRANGE_SRC_INV | IPRANGE_DST_INV;
  if (!info || (info->flags & ~known_flags) != 0) return {};
  std::vector<Match> matches;
  bool odd = false;
  const auto add = [&](End end, int bit, int inverted, const nf_inet_addr& min, const nf_inet_addr& max) {
    if ((info->flags & bit) == 0) {
      odd = odd || (info->flags & inverted) != 0 || !xt::is_zero(min) || !xt::is_zero(max);
      return;
    }
    const AddressRange range{xt::address_in(family, &min), xt::address_in(family, &max)};
    odd = odd || range.last < range.first;
    matches.emplace_back(AddressMatch{end, {range}, (info->flags & inverted) != 0});
  };
  add(End::source, IPRANGE_SRC, IPRANGE_SRC_INV, info->src_min, info->src_max);
  add(End::destination, IPRANGE_DST, IPRANGE_DST_INV, info->dst_min, info->dst_max);
  if (odd || matches.empty()) return {};
  return matches;
}

// ip daddr 10.0.0.0/8, ip6 saddr != fd00::1, ip daddr { 10.0.0.0/8, 192.168.0.0/16 }
void AddressMatch::to_nft(nft::RuleWriter& writer) const {
  const Family family = ranges.front().family();
  const nft::Field& field = nft::address_field(family, end);
  std::vector<nft::Expression> expressions;
  writer.require_family(family, expressions);
  std::string text;
  if (ranges.size() == 1 && ranges.front().prefix_length()) {
    text = nft_text(ranges.front());
    compare_prefix(ranges.front(), field, negated, expressions);
  } else {
    const bool ipv4 = family == Family::ipv4;
    expressions.emplace_back(field.load());
    text = writer.compare_list(ranges, ipv4 ? ipv4_addr : ipv6_addr, negated, ipv4 ? "-ipv4" : "-ipv6", expressions,
                               encoded, nft_text);
  }
  writer.add(fmt::format("{} {}{}", field.text, nft::not_equal(negated), text), std::move(expressions));
}

// The address, or its first bytes, which are compared as far as they go.
std::optional<nft::Alternatives> AddressMatch::from_nft(const nft::Comparison& comparison) {
  if (comparison.field == nullptr || !comparison.field->family || comparison.value.swapped) return {};
  if (comparison.value.changed()) return masked_address(comparison);
  AddressMatch match{comparison.field->end, {}, comparison.negated};
  for (const auto& [first, last] : comparison.bounds) {
    const AddressRange range{address_of(*comparison.field->family, first, '\0'),
                             address_of(*comparison.field->family, last, '\xff')};
    if (range.first <= range.last) match.ranges.push_back(range);
  }
  if (match.ranges.empty()) return comparison.negated ? nft::always() : nft::never();
  return nft::only(std::move(match));
}

Truth is_within(const PacketAtHook& packet, End end, const std::vector<AddressRange>& ranges, bool negated) {
  const Address& address = packet.at(end).address;
  const bool same_family = ranges.empty() || ranges.front().family() == address.family;
  if (same_family && end == End::source && !packet.source_known) return Truth::unknown;
  const auto has = [&](const AddressRange& range) { return range.contains(address); };
  return known(same_family && std::ranges::any_of(ranges, has) != negated);
}

std::string address_words(const PacketAtHook& packet, End end) {
  return fmt::format("its {} is {}", end == End::source ? "source" : "destination", packet.at(end).address.text());
}

Truth AddressMatch::truth(const PacketAtHook& packet) const { return is_within(packet, end, ranges, negated); }
std::string AddressMatch::why_not(const PacketAtHook& packet) const { return address_words(packet, end); }
void AddressMatch::ask(Asked& asked) const { asked.addresses(end, ranges); }
void AddressMatch::take_value(const AddressMatch& from) { ranges = from.ranges; }

bool AddressMatch::is_like(const AddressMatch& other) const {
  return end == other.end && negated == other.negated && !ranges.empty() && !other.ranges.empty() &&
         ranges.front().family() == other.ranges.front().family();
}

}  // namespace sidetrack
