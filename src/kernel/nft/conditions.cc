// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/conditions.h"

#include <fmt/format.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernel/nft/fields.h"
#include "system/descriptor.h"

namespace sidetrack::nft {
namespace {

constexpr std::size_t most_alternatives = 32;
constexpr std::uint32_t loopback_index = 1;  // LOOPBACK_IFINDEX, in every namespace

constexpr std::uint32_t ethertype_ipv4 = 0x0800;
constexpr std::uint32_t ethertype_ipv6 = 0x86dd;

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
    {NFT_CT_PROTO_SRC, "proto-src", 2}, {NFT_CT_PROTO_DST, "proto-dst", 2},
};
const Key* find(std::span<const Key> keys, std::uint32_t number) {
  const auto found = std::ranges::find(keys, number, &Key::number);
  return found == keys.end() ? nullptr : &*found;
}

// ---- Numbers.

// As a number of the value's own size, whatever its order in memory is.
std::uint32_t number_of(const Value& value, const std::string& bytes) {
  const bool network = (value.of == Value::Of::payload) != value.swapped ||
                       (value.of == Value::Of::meta && value.key == NFT_META_PROTOCOL);
  std::uint32_t number = 0;
  if (network || std::endian::native == std::endian::big) {
    for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  } else {
    for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

// The bounds as ranges of numbers; nothing if the kernel's order is not that of numbers.
template <typename Number>
std::optional<std::vector<Range<Number>>> ranges_of(const Value& value, std::span<const Bounds> bounds) {
  std::vector<Range<Number>> ranges;
  for (const auto& [first, last] : bounds) {
    if (first != last && !value.ordered()) return std::nullopt;
    const Range<Number> range{static_cast<Number>(number_of(value, first)),
                              static_cast<Number>(number_of(value, last))};
    if (range.first <= range.last) ranges.push_back(range);
  }
  std::ranges::sort(ranges);
  return ranges;
}

Alternatives always() { return {{}}; }
Alternatives never() { return {}; }
Alternatives only(Match match) { return {{std::move(match)}}; }

// One match for each value: any of them, or none.
template <typename M>
std::optional<Alternatives> each(std::vector<M> matches, bool negated) {
  if (matches.size() > most_alternatives) return std::nullopt;
  if (negated) return Alternatives{{matches.begin(), matches.end()}};
  Alternatives alternatives;
  for (M& match : matches) alternatives.push_back({std::move(match)});
  return alternatives;
}

// ---- One kind of value each.

std::optional<Alternatives> protocols(const Value& value, std::span<const Bounds> bounds, bool negated) {
  const auto ranges = ranges_of<std::uint8_t>(value, bounds);
  if (value.changed() || !ranges) return std::nullopt;
  if (ranges->size() == 1 && ranges->front().first == ranges->front().last)
    return each(std::vector{ProtocolMatch{static_cast<Protocol>(ranges->front().first), negated}}, negated);
  std::array<bool, 256> in{};
  for (const Range<std::uint8_t>& range : *ranges) {
    std::fill(in.begin() + range.first, in.begin() + range.last + 1, true);
  }
  // The shorter of the two lists: `> 6` is none of 0 to 6.
  const bool listed = std::ranges::count(in, true) <= 128;
  std::vector<ProtocolMatch> matches;
  for (std::size_t number = 0; number < in.size(); ++number) {
    if (in[number] == listed) matches.push_back({static_cast<Protocol>(number), negated == listed});
  }
  return each(std::move(matches), negated == listed);
}

// Asks as if_indextoname(3), by a socket that every sandbox that reads rules allows.
std::optional<std::string> name_of_interface(std::uint32_t number) {
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(number);
  if (!any.valid() || ioctl(any.get(), SIOCGIFNAME, &request) != 0) return std::nullopt;
  return request.ifr_name;
}

// "eth0" for the name with its final zero, "eth+" where a name is compared only so far.
std::optional<std::string> interface_name(const Bounds& bounds) {
  const auto& [first, last] = bounds;
  const std::size_t end = std::min(first.find('\0'), first.size());
  std::string name = first.substr(0, end);
  if (name.empty() || first.find_first_not_of('\0', end) != std::string::npos) return std::nullopt;
  if (end < first.size() && first == last) {
    if (name.ends_with('+')) return std::nullopt;  // would read as a wildcard
    return name;
  }
  const bool rest_is_any = last.starts_with(name) && last.find_first_not_of('\xff', end) == std::string::npos;
  if (first.size() >= IFNAMSIZ && first == last) return std::nullopt;  // longer than any name
  if (!rest_is_any) return std::nullopt;
  return name + '+';
}

std::optional<Alternatives> interfaces(InterfaceDirection direction, const Value& value, std::span<const Bounds> bounds,
                                       bool negated) {
  if (value.changed()) return std::nullopt;
  std::vector<InterfaceMatch> matches;
  for (const Bounds& each : bounds) {
    auto name = interface_name(each);
    if (!name) return std::nullopt;
    matches.push_back({direction, *std::move(name), negated});
  }
  return each(std::move(matches), negated);
}

std::optional<Alternatives> interface_indexes(InterfaceDirection direction, const Value& value,
                                              std::span<const Bounds> bounds, bool negated) {
  if (value.changed()) return std::nullopt;
  std::vector<InterfaceMatch> matches;
  for (const auto& [first, last] : bounds) {
    if (first != last) return std::nullopt;
    const std::uint32_t index = number_of(value, first);
    const auto name = index == loopback_index ? "lo" : name_of_interface(index);
    if (!name) return std::nullopt;
    matches.push_back({direction, *name, negated});
  }
  return each(std::move(matches), negated);
}

template <typename Mark>
std::optional<Alternatives> marks(const Value& value, std::span<const Bounds> bounds, bool negated) {
  // A rule for each of several marks would look again at what the one before may have set.
  if (bounds.size() != 1 || bounds.front().first != bounds.front().second) return std::nullopt;
  Mark match{number_of(value, bounds.front().first), 0xffffffff, negated};
  if (value.changed()) {
    match.mask = number_of(value, value.mask);
    match.value ^= number_of(value, value.xor_value);
  }
  return only(match);
}

std::optional<Alternatives> states(const Value& value, std::span<const Bounds> bounds, bool negated) {
  ConntrackStateMatch match;
  const bool masked = value.changed() && number_of(value, value.xor_value) == 0;
  // ct state & bits == 0, as it is written; "!= 0" is the same negated.
  if (masked && bounds.size() == 1 && bounds.front().first == bounds.front().second &&
      number_of(value, bounds.front().first) == 0) {
    std::uint32_t bits = number_of(value, value.mask);
    for (const ConntrackState& each : conntrack_states) {
      if ((bits & each.kernel) == 0) continue;
      match.states = static_cast<std::uint8_t>(match.states | each.model);
      bits &= ~each.kernel;
    }
    match.negated = !negated;
    if (bits != 0) return std::nullopt;
    return only(match);
  }
  // A packet is in one of five states: each is tried.
  for (const ConntrackState& each : conntrack_states) {
    std::uint32_t state = each.kernel;
    if (value.changed()) state = (state & number_of(value, value.mask)) ^ number_of(value, value.xor_value);
    bool within = false;
    for (const auto& [first, last] : bounds) {
      if (first != last && !value.ordered()) return std::nullopt;
      within = within || (number_of(value, first) <= state && state <= number_of(value, last));
    }
    if (within != negated) match.states = static_cast<std::uint8_t>(match.states | each.model);
  }
  if (match.states == 0) return never();
  return only(match);
}

std::optional<Alternatives> direction(const Value& value, std::span<const Bounds> bounds, bool negated) {
  if (value.changed()) return std::nullopt;
  std::optional<Alternatives> found = never();
  for (const bool reply : {false, true}) {
    const std::uint32_t number = reply ? IP_CT_DIR_REPLY : IP_CT_DIR_ORIGINAL;
    const bool within = std::ranges::any_of(bounds, [&](const Bounds& one) {
      return number_of(value, one.first) <= number && number <= number_of(value, one.second);
    });
    if (within == negated) continue;
    if (found != never()) return std::nullopt;  // that it has one, which what is not tracked has not
    found = only(ConntrackDirectionMatch{reply});
  }
  return found;
}

std::optional<Alternatives> owners(OwnerKind kind, const Value& value, std::span<const Bounds> bounds, bool negated,
                                   const DecodeContext& context) {
  auto ranges = ranges_of<std::uint32_t>(value, bounds);
  // Without a socket `meta skuid !=` does not hold, but `-m owner !` does: among rules of iptables it would be taken
  // for the latter.
  if (value.changed() || !ranges || ranges->empty() || (negated && !context.native)) return std::nullopt;
  if (!negated && *ranges == std::vector{every_id}) return only(SocketMatch{});
  return only(OwnerMatch{kind, *std::move(ranges), negated});
}

// socket cgroupv2 level 2 "kubepods/pod1": the kernel has the number of the cgroup alone.
std::optional<Alternatives> cgroup(const Value& value, std::span<const Bounds> bounds, bool negated,
                                   const DecodeContext& context) {
  CgroupMatch match{"", 0, negated};
  const std::string& id = bounds.front().first;
  if (value.changed() || bounds.size() != 1 || id != bounds.front().second || id.size() != sizeof match.id)
    return std::nullopt;  // several of them, or a part of the number
  std::memcpy(&match.id, id.data(), sizeof match.id);
  if (context.cgroups != nullptr) match.path = context.cgroups->path(match.id, value.offset);
  return only(std::move(match));
}

std::optional<Alternatives> ports(End end, const Value& value, std::span<const Bounds> bounds, bool negated) {
  auto ranges = ranges_of<std::uint16_t>(value, bounds);
  if (value.changed() || !ranges) return std::nullopt;
  if (ranges->empty()) return negated ? always() : never();
  return only(PortMatch{end, *std::move(ranges), negated});
}

Address address_of(Family family, std::string bytes, char rest) {
  Address address{family, {}};
  bytes.resize(address.size(), rest);
  std::ranges::transform(bytes, address.bytes.begin(), [](char byte) { return static_cast<std::uint8_t>(byte); });
  return address;
}

// ip daddr & 255.240.0.0 == 10.0.0.0
std::optional<Alternatives> masked_address(End end, Family family, const Value& value, std::span<const Bounds> bounds,
                                           bool negated) {
  if (bounds.size() != 1 || bounds.front().first != bounds.front().second) return std::nullopt;
  std::string compared = bounds.front().first;
  for (std::size_t i = 0; i < compared.size(); ++i) compared[i] = static_cast<char>(compared[i] ^ value.xor_value[i]);
  int length = 0;
  for (const char byte : value.mask) length += std::popcount(static_cast<unsigned char>(byte));
  const AddressRange range = AddressRange::prefix(address_of(family, compared, '\0'), length);
  if (range.mask() != address_of(family, value.mask, '\0')) return std::nullopt;  // has holes
  if (range.first != address_of(family, compared, '\0')) return negated ? always() : never();
  return only(AddressMatch{end, {range}, negated});
}

// The address, or its first bytes, which are compared as far as they go.
std::optional<Alternatives> addresses(End end, Family family, const Value& value, std::span<const Bounds> bounds,
                                      bool negated) {
  if (value.changed()) return masked_address(end, family, value, bounds, negated);
  AddressMatch match{end, {}, negated};
  for (const auto& [first, last] : bounds) {
    const AddressRange range{address_of(family, first, '\0'), address_of(family, last, '\xff')};
    if (range.first <= range.last) match.ranges.push_back(range);
  }
  if (match.ranges.empty()) return negated ? always() : never();
  return only(std::move(match));
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

std::optional<Alternatives> field_condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                            std::optional<Family> family) {
  if (value.size == 1 && is_protocol(value.key, value.offset, family)) return protocols(value, bounds, negated);
  const Field* field = field_at(value.key, value.offset, family);
  if (field == nullptr || value.size > field->size) return std::nullopt;
  if (field->family) {
    if (value.swapped) return std::nullopt;
    return addresses(field->end, *field->family, value, bounds, negated);
  }
  return value.size == field->size ? ports(field->end, value, bounds, negated) : std::nullopt;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// nft loads neighbouring fields together: "ip saddr 10.0.0.1 ip daddr 10.0.0.2" is one load of 8 bytes.
std::optional<Alternatives> fields_condition(const Value& value, const std::string& bytes,
                                             std::optional<Family> family) {
  std::vector<Match> matches;
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
    if (field != nullptr || protocol) {
      const auto condition = field_condition(part, std::span(&same, 1), false, family);
      if (!condition || condition->size() > 1) return std::nullopt;
      if (condition->empty()) return never();
      std::ranges::copy(condition->front(), std::back_inserter(matches));
    } else {
      matches.emplace_back(UnknownMatch{fmt::format("{} {}", words(part), hex(same.first))});
    }
  }
  return Alternatives{std::move(matches)};
}

std::optional<Alternatives> payload_condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                              const DecodeContext& context) {
  const std::optional<Family> family = one(context.families);
  if (auto known = field_condition(value, bounds, negated, family)) return known;
  const bool equal = bounds.size() == 1 && bounds.front().first == bounds.front().second && !negated;
  if (!equal || value.swapped || (!family && value.key != NFT_PAYLOAD_TRANSPORT_HEADER)) return std::nullopt;
  return fields_condition(value, bounds.front().first, family);
}

std::optional<Alternatives> meta_condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                           const DecodeContext& context) {
  const bool name = value.key == NFT_META_IIFNAME || value.key == NFT_META_OIFNAME;
  if (!name && value.size != meta_size(value.key)) return std::nullopt;  // a part of it is compared
  switch (value.key) {
    case NFT_META_L4PROTO:
      return protocols(value, bounds, negated);
    case NFT_META_IIFNAME:
      return interfaces(InterfaceDirection::in, value, bounds, negated);
    case NFT_META_OIFNAME:
      return interfaces(InterfaceDirection::out, value, bounds, negated);
    case NFT_META_IIF:
      return interface_indexes(InterfaceDirection::in, value, bounds, negated);
    case NFT_META_OIF:
      return interface_indexes(InterfaceDirection::out, value, bounds, negated);
    case NFT_META_MARK:
      return marks<MarkMatch>(value, bounds, negated);
    case NFT_META_SKUID:
      return owners(OwnerKind::uid, value, bounds, negated, context);
    case NFT_META_SKGID:
      return owners(OwnerKind::gid, value, bounds, negated, context);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Alternatives> condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                      const DecodeContext& context) {
  if (bounds.empty()) return negated ? always() : never();
  switch (value.of) {
    case Value::Of::meta:
      return meta_condition(value, bounds, negated, context);
    case Value::Of::payload:
      return payload_condition(value, bounds, negated, context);
    case Value::Of::ct:
      if (value.size != ct_size(value.key)) return std::nullopt;
      // Without a connection neither holds; -m connmark does the same.
      if (value.key == NFT_CT_MARK) return marks<ConnmarkMatch>(value, bounds, negated);
      if (value.key == NFT_CT_DIRECTION) return direction(value, bounds, negated);
      return value.key == NFT_CT_STATE ? states(value, bounds, negated) : std::nullopt;
    case Value::Of::socket:
      return cgroup(value, bounds, negated, context);
    case Value::Of::constant:
    case Value::Of::unknown:
      break;
  }
  return std::nullopt;
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
