// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/nft/comparison.h"

#include <fmt/format.h>
#include <linux/netfilter.h>

#include <algorithm>
#include <bit>

#include "rule/first_kind.h"
#include "rule/match.h"
#include "rule/nft/fields.h"
#include "rule/words.h"

namespace sidetrack::nft {
namespace {

constexpr std::size_t most_alternatives = 32;

// ---- Keys.

struct Key {
  std::uint32_t number;
  const char* name;
  std::uint32_t size;
};
constexpr Key meta_keys[] = {
    {NFT_META_LEN, "length", 4},
    {NFT_META_PROTOCOL, "protocol", 2},
    {NFT_META_PRIORITY, "priority", 4},
    {NFT_META_MARK, "mark", 4},
    {NFT_META_IIF, "iif", 4},
    {NFT_META_OIF, "oif", 4},
    {NFT_META_IIFNAME, "iifname", 16},
    {NFT_META_OIFNAME, "oifname", 16},
    {NFT_META_IIFTYPE, "iiftype", 2},
    {NFT_META_OIFTYPE, "oiftype", 2},
    {NFT_META_SKUID, "skuid", 4},
    {NFT_META_SKGID, "skgid", 4},
    {NFT_META_NFTRACE, "nftrace", 1},
    {NFT_META_RTCLASSID, "rtclassid", 4},
    {NFT_META_SECMARK, "secmark", 4},
    {NFT_META_NFPROTO, "nfproto", 1},
    {NFT_META_L4PROTO, "l4proto", 1},
    {NFT_META_PKTTYPE, "pkttype", 1},
    {NFT_META_CPU, "cpu", 4},
    {NFT_META_IIFGROUP, "iifgroup", 4},
    {NFT_META_OIFGROUP, "oifgroup", 4},
    {NFT_META_CGROUP, "cgroup", 4},
    {NFT_META_PRANDOM, "random", 4},
    {NFT_META_SECPATH, "ipsec", 1},
    {NFT_META_IIFKIND, "iifkind", 16},
    {NFT_META_OIFKIND, "oifkind", 16},
    {NFT_META_TIME_NS, "time", 8},
    {NFT_META_TIME_DAY, "day", 1},
    {NFT_META_TIME_HOUR, "hour", 4},
    {NFT_META_SDIF, "sdif", 4},
    {NFT_META_SDIFNAME, "sdifname", 16},
};
constexpr Key ct_keys[] = {
    {NFT_CT_STATE, "state", 4},         {NFT_CT_DIRECTION, "direction", 1}, {NFT_CT_STATUS, "status", 4},
    {NFT_CT_MARK, "mark", 4},           {NFT_CT_SECMARK, "secmark", 4},     {NFT_CT_EXPIRATION, "expiration", 4},
    {NFT_CT_HELPER, "helper", 16},      {NFT_CT_L3PROTOCOL, "l3proto", 1},  {NFT_CT_PROTOCOL, "protocol", 1},
    {NFT_CT_LABELS, "label", 16},       {NFT_CT_ZONE, "zone", 2},           {NFT_CT_ID, "id", 4},
    {NFT_CT_PROTO_SRC, "proto-src", 2}, {NFT_CT_PROTO_DST, "proto-dst", 2}, {NFT_CT_EVENTMASK, "event", 0},
};
const Key* find(std::span<const Key> keys, std::uint32_t number) {
  const auto found = std::ranges::find(keys, number, &Key::number);
  return found == keys.end() ? nullptr : &*found;
}

// ---- Headers.

std::optional<Family> one(Families families) {
  if (families == Families(Family::ipv4)) return Family::ipv4;
  if (families == Families(Family::ipv6)) return Family::ipv6;
  return std::nullopt;
}

constexpr std::uint32_t ipv4_protocol = 9;
constexpr std::uint32_t ipv6_next_header = 6;  // of a packet without extension headers, its protocol

bool is_protocol(std::uint32_t base, std::uint32_t offset, std::optional<Family> family) {
  if (base != NFT_PAYLOAD_NETWORK_HEADER || !family) return false;
  return offset == (*family == Family::ipv4 ? ipv4_protocol : ipv6_next_header);
}

// The field that begins there.
const Field* field_at(std::uint32_t base, std::uint32_t offset, std::optional<Family> family) {
  const auto* found = std::ranges::find_if(fields, [&](const Field& field) {
    return field.base == base && field.offset == offset && (!field.family || field.family == family);
  });
  return found == std::end(fields) ? nullptr : found;
}

std::optional<Alternatives> compared(const Comparison& comparison) {
  return first_kind(std::type_identity<Match>{},
                    [&]<typename Kind>(std::type_identity<Kind>) { return Kind::from_nft(comparison); });
}

std::optional<Alternatives> compared_field(const Value& value, std::span<const Bounds> bounds, bool negated,
                                           std::optional<Family> family, const DecodeContext& context) {
  Comparison comparison{value, bounds, negated, context};
  comparison.is_protocol = value.size == 1 && is_protocol(value.key, value.offset, family);
  comparison.is_tcp_flags = PayloadLoad{value.key, value.offset, value.size} == tcp_flags;
  if (comparison.is_protocol || comparison.is_tcp_flags) return compared(comparison);
  comparison.field = field_at(value.key, value.offset, family);
  if (comparison.field == nullptr || value.size > comparison.field->size) return std::nullopt;
  return compared(comparison);
}

// nft loads neighbouring fields together: "ip saddr 10.0.0.1 ip daddr 10.0.0.2" is one load of 8 bytes.
std::optional<Alternatives> fields_condition(const Value& value, const std::string& bytes, std::optional<Family> family,
                                             const DecodeContext& context) {
  std::vector<Match> matches;
  bool any_known = false;
  for (std::uint32_t at = 0; at < value.size;) {
    const Field* field = field_at(value.key, value.offset + at, family);
    const bool protocol = is_protocol(value.key, value.offset + at, family);
    Value part = value;
    part.offset += at;
    part.size = field != nullptr ? std::min(field->size, value.size - at) : 1;
    if (value.changed()) {
      part.mask = value.mask.substr(at, part.size);
      part.xor_value = value.xor_value.substr(at, part.size);
    }
    const Bounds same{bytes.substr(at, part.size), bytes.substr(at, part.size)};
    at += part.size;
    any_known = any_known || field != nullptr || protocol;
    if (field != nullptr || protocol) {
      const auto condition = compared_field(part, std::span(&same, 1), false, family, context);
      if (!condition || condition->size() > 1) return std::nullopt;
      if (condition->empty()) return never();
      std::ranges::copy(condition->front(), std::back_inserter(matches));
    } else {
      matches.emplace_back(UnknownMatch{fmt::format("{} {}", words(part), hex(same.first))});
    }
  }
  if (!any_known) return std::nullopt;
  return Alternatives{std::move(matches)};
}

std::optional<Alternatives> payload_condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                              const DecodeContext& context) {
  const std::optional<Family> family = one(context.families);
  if (auto known = compared_field(value, bounds, negated, family, context)) return known;
  const bool equal = bounds.size() == 1 && bounds.front().first == bounds.front().second && !negated;
  if (!equal || value.swapped || (!family && value.key != NFT_PAYLOAD_TRANSPORT_HEADER)) return std::nullopt;
  return fields_condition(value, bounds.front().first, family, context);
}

// Of a name the first bytes alone may be compared.
bool is_whole(const Value& value) {
  if (value.of == Value::Of::ct) return value.size == ct_size(value.key);
  return value.of != Value::Of::meta || value.key == NFT_META_IIFNAME || value.key == NFT_META_OIFNAME ||
         value.size == meta_size(value.key);
}

}  // namespace

std::uint32_t number_of(const Value& value, const std::string& bytes) {
  const bool network = value.in_network_order() || value.is_meta(NFT_META_PROTOCOL) ||
                       value.is_meta(NFT_META_PRANDOM) || value.is_ct(NFT_CT_ID);
  std::uint32_t number = 0;
  if (network || std::endian::native == std::endian::big) {
    for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  } else {
    for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

Alternatives always() { return {{}}; }
Alternatives never() { return {}; }
Alternatives only(Match match) { return {{std::move(match)}}; }

std::optional<Alternatives> each_of(std::vector<Match> matches, bool negated) {
  if (matches.size() > most_alternatives) return std::nullopt;
  if (negated) return Alternatives{std::move(matches)};
  Alternatives alternatives;
  for (Match& match : matches) alternatives.push_back({std::move(match)});
  return alternatives;
}

std::optional<Alternatives> condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                      const DecodeContext& context) {
  if (bounds.empty()) return negated ? always() : never();
  if (value.of == Value::Of::payload) return payload_condition(value, bounds, negated, context);
  return is_whole(value) ? compared({value, bounds, negated, context}) : std::nullopt;
}

std::optional<Families> family_condition(const Value& value, std::span<const Bounds> bounds, bool negated) {
  if (value.of != Value::Of::meta || value.changed() || value.swapped) return std::nullopt;
  const bool nfproto = value.key == NFT_META_NFPROTO;
  if (!nfproto && value.key != NFT_META_PROTOCOL) return std::nullopt;
  Families named;
  for (const auto& [first, last] : bounds) {
    if (first != last) return std::nullopt;
    const std::uint32_t number = number_of(value, first);
    if (number == (nfproto ? std::uint32_t{NFPROTO_IPV4} : ethertype_ipv4)) named = named | Family::ipv4;
    if (number == (nfproto ? std::uint32_t{NFPROTO_IPV6} : ethertype_ipv6)) named = named | Family::ipv6;
  }
  if (!negated) return named;
  Families others;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    if (!named.contains(family)) others = others | family;
  }
  return others;
}

bool has_ethertype(const Value& value, std::span<const Bounds> bounds, std::uint32_t type) {
  return value.key == NFT_META_PROTOCOL && std::ranges::any_of(bounds, [&](const Bounds& each) {
           return each.first == each.second && number_of(value, each.first) == type;
         });
}

std::uint32_t meta_size(std::uint32_t key) {
  const Key* found = find(meta_keys, key);
  return found != nullptr ? found->size : 0;
}

std::uint32_t ct_size(std::uint32_t key) {
  const Key* found = find(ct_keys, key);
  return found != nullptr ? found->size : 0;
}

std::string words(const Value& value) {
  std::string text = value.words;
  if (value.of == Value::Of::meta || value.of == Value::Of::ct) {
    const bool meta = value.of == Value::Of::meta;
    const Key* key = meta ? find(meta_keys, value.key) : find(ct_keys, value.key);
    text = fmt::format("{} {}", meta ? "meta" : "ct", key != nullptr ? key->name : std::to_string(value.key));
  } else if (value.of == Value::Of::payload) {
    static constexpr const char* bases[] = {"@ll", "@nh", "@th", "@ih"};
    text = fmt::format("{},{},{}", value.key < std::size(bases) ? bases[value.key] : "@?", value.offset * 8,
                       value.size * 8);
  } else if (value.of == Value::Of::socket) {
    text = fmt::format("socket cgroupv2 level {}", value.offset);
  } else if (value.of == Value::Of::constant) {
    text = hex(value.constant);
  }
  if (value.changed()) text += fmt::format(" & {} ^ {}", hex(value.mask), hex(value.xor_value));
  return text;
}

}  // namespace sidetrack::nft
