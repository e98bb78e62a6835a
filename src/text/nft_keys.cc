// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_keys.h"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <bit>

#include "rule/nft/fields.h"
#include "rule/target/destination.h"
#include "rule/words.h"
#include "text/services.h"

namespace sidetrack {
namespace {

using namespace nft;

struct NamedValue {
  ValueType type;
  std::string_view name;
  std::uint32_t number;
};
constexpr NamedValue named_values[] = {
    {ValueType::protocol, "tcp", 6},
    {ValueType::protocol, "udp", 17},
    {ValueType::protocol, "icmp", 1},
    {ValueType::protocol, "ipv6-icmp", 58},
    {ValueType::protocol, "icmpv6", 58},
    {ValueType::protocol, "sctp", 132},
    {ValueType::protocol, "dccp", 33},
    {ValueType::protocol, "udplite", 136},
    {ValueType::protocol, "esp", 50},
    {ValueType::protocol, "ah", 51},
    {ValueType::protocol, "comp", 108},
    {ValueType::protocol, "gre", 47},
    {ValueType::protocol, "igmp", 2},
    {ValueType::protocol, "ip", 0},
    {ValueType::nfproto, "ipv4", 2},
    {ValueType::nfproto, "ipv6", 10},
    {ValueType::ethertype, "ip", 0x0800},
    {ValueType::ethertype, "ip6", 0x86dd},
    {ValueType::ethertype, "arp", 0x0806},
    {ValueType::state, "invalid", 1},
    {ValueType::state, "established", 2},
    {ValueType::state, "related", 4},
    {ValueType::state, "new", 8},
    {ValueType::state, "untracked", 64},
    {ValueType::status, "expected", 1},
    {ValueType::status, "seen-reply", 2},
    {ValueType::status, "assured", 4},
    {ValueType::status, "confirmed", 8},
    {ValueType::status, "snat", 16},
    {ValueType::status, "dnat", 32},
    {ValueType::direction, "original", 0},
    {ValueType::direction, "reply", 1},
    {ValueType::tcp_flags, "fin", 1},
    {ValueType::tcp_flags, "syn", 2},
    {ValueType::tcp_flags, "rst", 4},
    {ValueType::tcp_flags, "psh", 8},
    {ValueType::tcp_flags, "ack", 16},
    {ValueType::tcp_flags, "urg", 32},
    {ValueType::tcp_flags, "ecn", 64},
    {ValueType::tcp_flags, "cwr", 128},
    {ValueType::address_type, "unspec", 0},
    {ValueType::address_type, "unicast", 1},
    {ValueType::address_type, "local", 2},
    {ValueType::address_type, "broadcast", 3},
    {ValueType::address_type, "anycast", 4},
    {ValueType::address_type, "multicast", 5},
    {ValueType::address_type, "blackhole", 6},
    {ValueType::address_type, "unreachable", 7},
    {ValueType::address_type, "prohibit", 8},
};

LoadedKey payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size, ValueType type) {
  return {Value::Of::payload, base, offset, size, type};
}

std::optional<LoadedKey> payload_of(const std::string& header, const std::string& field) {
  if (header == "ip" && field == "protocol") return payload(NFT_PAYLOAD_NETWORK_HEADER, 9, 1, ValueType::protocol);
  if (header == "ip6" && field == "nexthdr") return payload(NFT_PAYLOAD_NETWORK_HEADER, 6, 1, ValueType::protocol);
  if (header == "tcp" && field == "flags")
    return payload(tcp_flags.base, tcp_flags.offset, tcp_flags.size, ValueType::tcp_flags);
  const bool has_no_ports = header.starts_with("icmp") || header == "esp" || header == "ah" || header == "comp";
  for (const Field& each : fields) {
    const bool is_it = each.family ? fmt::format("{} {}", header, field) == each.text
                                   : field == each.text && !has_no_ports && !header.starts_with("ip");
    if (is_it) return payload(each.base, each.offset, each.size, each.family ? ValueType::address : ValueType::port);
  }
  return {};
}

// fib daddr . iif type
std::optional<LoadedKey> fib_of(const NftNode& key) {
  if (key.text(0) != "type") return {};
  LoadedKey loaded{Value::Of::fib, 0, 0, 4, ValueType::address_type, true};
  for (std::size_t i = 1; i < key.parts.size(); ++i) {
    const auto* flag = std::ranges::find(fib_flags, key.text(i));
    if (flag == std::end(fib_flags)) return {};
    loaded.key |= 1U << (flag - fib_flags);
  }
  return loaded;
}

// Those of meta and ct that the model has. An interface is known by its name alone.
struct LoadedValue {
  bool of_packet;  // meta
  std::string_view name;
  std::uint32_t number;
  ValueType type;
  bool host_order;
};
constexpr LoadedValue loaded_values[] = {
    {true, "mark", NFT_META_MARK, ValueType::number, true},
    {true, "skuid", NFT_META_SKUID, ValueType::number, true},
    {true, "skgid", NFT_META_SKGID, ValueType::number, true},
    {true, "iifname", NFT_META_IIFNAME, ValueType::name, false},
    {true, "oifname", NFT_META_OIFNAME, ValueType::name, false},
    {true, "iif", NFT_META_IIFNAME, ValueType::device, false},
    {true, "oif", NFT_META_OIFNAME, ValueType::device, false},
    {true, "l4proto", NFT_META_L4PROTO, ValueType::protocol, false},
    {true, "nfproto", NFT_META_NFPROTO, ValueType::nfproto, false},
    {true, "protocol", NFT_META_PROTOCOL, ValueType::ethertype, false},
    {false, "state", NFT_CT_STATE, ValueType::state, true},
    {false, "mark", NFT_CT_MARK, ValueType::number, true},
    {false, "direction", NFT_CT_DIRECTION, ValueType::direction, false},
    {false, "zone", NFT_CT_ZONE, ValueType::number, true},
    {false, "status", NFT_CT_STATUS, ValueType::status, true},
    {false, "protocol", NFT_CT_PROTOCOL, ValueType::protocol, false},
};

// Those of one direction of a connection.
struct TupleValue {
  std::string_view name;
  std::uint32_t number, size;
  ValueType type;
};
constexpr TupleValue tuple_values[] = {
    {"ip saddr", NFT_CT_SRC_IP, 4, ValueType::address},    {"ip daddr", NFT_CT_DST_IP, 4, ValueType::address},
    {"ip6 saddr", NFT_CT_SRC_IP6, 16, ValueType::address}, {"ip6 daddr", NFT_CT_DST_IP6, 16, ValueType::address},
    {"proto-src", NFT_CT_PROTO_SRC, 2, ValueType::port},   {"proto-dst", NFT_CT_PROTO_DST, 2, ValueType::port}};

std::optional<LoadedKey> tuple_of(const NftNode& key) {
  const auto* found = std::ranges::find(tuple_values, key.text(0), &TupleValue::name);
  if (found == std::end(tuple_values)) return {};
  const std::uint32_t direction = key.text(1) == "reply" ? 1 : 0;
  return LoadedKey{Value::Of::tuple, found->number, direction, found->size, found->type};
}

// numgen random mod 2; of another one with an offset nothing is known
std::optional<LoadedKey> numgen_of(const NftNode& key) {
  const auto modulus = read_number<std::uint32_t>(key.text(1));
  if (!modulus || (!key.text(2).empty() && key.text(2) != "0")) return {};
  const std::uint32_t mode = key.text(0) == "random" ? NFT_NG_RANDOM : NFT_NG_INCREMENTAL;
  return LoadedKey{Value::Of::unknown, *modulus, mode, 4, ValueType::number, true};
}

// "lo", "et*"
Bounds name_bounds(std::string name) {
  const bool is_start = name.ends_with('*') && !name.ends_with("\\*");
  if (name.ends_with('*')) name.pop_back();
  if (name.ends_with('\\')) name.back() = '*';
  name.resize(std::min<std::size_t>(name.size(), IFNAMSIZ - 1));
  Bounds bounds{name, name};
  bounds.first.resize(IFNAMSIZ, '\0');
  bounds.second.resize(IFNAMSIZ, is_start ? '\xff' : '\0');
  return bounds;
}

}  // namespace

std::optional<LoadedKey> key_of(const NftNode& key) {
  if (key.word == "payload") return payload_of(key.text(0), key.text(1));
  if (key.word == "fib") return fib_of(key);
  if (key.word == "numgen") return numgen_of(key);
  const bool of_packet = key.word == "meta";
  if (key.word == "ct" && !key.text(1).empty()) return tuple_of(key);
  const auto* loaded = std::ranges::find_if(
      loaded_values, [&](const LoadedValue& each) { return each.of_packet == of_packet && each.name == key.text(0); });
  if ((!of_packet && key.word != "ct") || loaded == std::end(loaded_values)) return {};
  const std::uint32_t number = loaded->number;
  return LoadedKey{of_packet ? Value::Of::meta : Value::Of::ct,     number,       0,
                   of_packet ? meta_size(number) : ct_size(number), loaded->type, loaded->host_order};
}

bool is_key(const NftNode& key, std::string_view of, std::string_view name) {
  return key.word == of && key.text(0) == name;
}

bool has_bits(ValueType type) {
  return type == ValueType::state || type == ValueType::status || type == ValueType::tcp_flags;
}

std::optional<std::string> number_bytes(const LoadedKey& key, std::uint64_t number) {
  if (key.size > 4 || number >> 8 * key.size != 0) return {};
  const bool network = !key.host_order || key.swapped;
  std::string bytes;
  for (std::uint32_t i = 0; i < key.size; ++i) bytes += static_cast<char>(number >> 8 * (key.size - 1 - i));
  if (!network && std::endian::native == std::endian::little) std::ranges::reverse(bytes);
  return bytes;
}

std::optional<std::uint64_t> number_in(ValueType type, const NftNode& value) {
  if (value.parts.empty()) {
    const auto* named = std::ranges::find_if(
        named_values, [&](const NamedValue& each) { return each.type == type && each.name == value.word; });
    if (named != std::end(named_values)) return named->number;
    const auto port = type == ValueType::port ? port_of_service(value.word) : std::nullopt;
    return port ? *port : read_number<std::uint64_t>(value.word);
  }
  if (value.word != "|" && !(value.word == "list" && has_bits(type))) return {};
  std::uint64_t bits = 0;
  for (const NftNode& each : value.parts) {
    const auto bit = number_in(type, each);
    if (!bit) return {};
    bits |= *bit;
  }
  return bits;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> numbers_in(ValueType type, const NftNode& value) {
  if (const auto number = number_in(type, value)) return std::pair(*number, *number);
  const auto dash = value.word.find('-');
  if (dash == std::string::npos || !value.parts.empty()) return {};
  const auto first = number_in(type, NftNode(value.word.substr(0, dash)));
  const auto last = number_in(type, NftNode(value.word.substr(dash + 1)));
  if (!first || !last) return {};
  return std::pair(*first, *last);
}

std::optional<Bounds> bounds_of(const LoadedKey& key, const NftNode& value) {
  if (key.type == ValueType::name || key.type == ValueType::device) {
    const bool is_index = key.type == ValueType::device && read_number<std::uint32_t>(value.word);
    if (is_index || !value.parts.empty() || value.word.empty()) return {};
    return name_bounds(value.word);
  }
  if (key.type != ValueType::address) {
    const auto numbers = numbers_in(key.type, value);
    const auto first = numbers ? number_bytes(key, numbers->first) : std::nullopt;
    const auto last = numbers ? number_bytes(key, numbers->second) : std::nullopt;
    if (!first || !last) return {};
    return Bounds{*first, *last};
  }
  std::optional<PortRange> ports;
  auto addresses = AddressRange::parse(value.word);
  if (!addresses && (!read_destination(value.word, addresses, ports) || ports)) return {};
  if (!addresses || addresses->first.size() != key.size || !value.parts.empty()) return {};
  const auto bytes = [](const Address& address) {
    return std::string(reinterpret_cast<const char*>(address.bytes.data()), address.size());
  };
  return Bounds{bytes(addresses->first), bytes(addresses->last)};
}

bool needs_swap(const LoadedKey& key, const NftNode& value) {
  if (!key.host_order || key.size == 1) return false;
  const auto numbers = numbers_in(key.type, value);
  return numbers && numbers->first != numbers->second;
}

}  // namespace sidetrack
