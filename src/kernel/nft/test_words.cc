// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/test_words.h"

#include <fmt/format.h>
#include <linux/if_packet.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>

#include "kernel/nft/loaded_value.h"
#include "rule/nft/expression.h"
#include "rule/words.h"

namespace sidetrack::nft {
namespace {

// Fields of headers that no match of the model asks for.
struct HeaderField {
  std::string_view words;
  std::uint32_t base, offset, size;
  std::optional<Family> family{};
  std::optional<Protocol> protocol{};
  std::uint32_t mask = 0;  // it is a part of these bytes; 0: all of them
  bool in_hex = false;
};
constexpr auto nh = std::uint32_t{NFT_PAYLOAD_NETWORK_HEADER}, th = std::uint32_t{NFT_PAYLOAD_TRANSPORT_HEADER},
               ll = std::uint32_t{NFT_PAYLOAD_LL_HEADER};
constexpr std::string_view flags_of_tcp = "tcp flags";
constexpr HeaderField header_fields[] = {
    {"ip version", nh, 0, 1, Family::ipv4, {}, 0xf0},
    {"ip hdrlength", nh, 0, 1, Family::ipv4, {}, 0x0f},
    {"ip dscp", nh, 1, 1, Family::ipv4, {}, 0xfc, true},
    {"ip ecn", nh, 1, 1, Family::ipv4, {}, 0x03, true},
    {"ip length", nh, 2, 2, Family::ipv4},
    {"ip id", nh, 4, 2, Family::ipv4},
    {"ip frag-off", nh, 6, 2, Family::ipv4},
    {"ip ttl", nh, 8, 1, Family::ipv4},
    {"ip6 dscp", nh, 0, 2, Family::ipv6, {}, 0x0fc0, true},
    {"ip6 length", nh, 4, 2, Family::ipv6},
    {"ip6 hoplimit", nh, 7, 1, Family::ipv6},
    {"ether daddr", ll, 0, 6},
    {"ether saddr", ll, 6, 6},
    {"icmp type", th, 0, 1, {}, Protocol::icmp},
    {"icmp code", th, 1, 1, {}, Protocol::icmp},
    {"icmpv6 type", th, 0, 1, {}, Protocol::icmpv6},
    {"icmpv6 code", th, 1, 1, {}, Protocol::icmpv6},
    {"udp length", th, 4, 2, {}, Protocol::udp},
    {"tcp sequence", th, 4, 4, {}, Protocol::tcp},
    {"tcp ackseq", th, 8, 4, {}, Protocol::tcp},
    {"tcp doff", th, 12, 1, {}, Protocol::tcp, 0xf0},
    {flags_of_tcp, th, 13, 1, {}, Protocol::tcp},
    {"tcp window", th, 14, 2, {}, Protocol::tcp},
    {"tcp urgptr", th, 18, 2, {}, Protocol::tcp},
};

struct NamedValue {
  Value::Of of;
  std::uint32_t key, number;
  const char* name;
};
constexpr NamedValue named_values[] = {{Value::Of::meta, NFT_META_PKTTYPE, PACKET_HOST, "host"},
                                       {Value::Of::meta, NFT_META_PKTTYPE, PACKET_BROADCAST, "broadcast"},
                                       {Value::Of::meta, NFT_META_PKTTYPE, PACKET_MULTICAST, "multicast"},
                                       {Value::Of::meta, NFT_META_PKTTYPE, PACKET_OTHERHOST, "other"},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 0, "\"Sunday\""},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 1, "\"Monday\""},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 2, "\"Tuesday\""},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 3, "\"Wednesday\""},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 4, "\"Thursday\""},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 5, "\"Friday\""},
                                       {Value::Of::meta, NFT_META_TIME_DAY, 6, "\"Saturday\""}};

// By IPS_…_BIT, TH_…, IPCT_….
constexpr std::string_view statuses[] = {"expected", "seen-reply", "assured", "confirmed", "snat",
                                         "dnat",     "",           "",        "",          "dying"};
constexpr std::string_view tcp_flag_names[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"};
constexpr std::string_view event_names[] = {"new",    "related", "destroy", "reply",   "assured", "protoinfo",
                                            "helper", "mark",    "seqadj",  "secmark", "label"};

const HeaderField* header_field(const Value& value, std::uint32_t mask, Families families,
                                std::optional<Protocol> protocol) {
  if (value.of != Value::Of::payload) return nullptr;
  const auto* found = std::ranges::find_if(header_fields, [&](const HeaderField& each) {
    return each.base == value.key && each.offset == value.offset && each.size == value.size && each.mask == mask &&
           (!each.family || families == Families(*each.family)) && (!each.protocol || protocol == each.protocol);
  });
  return found != std::end(header_fields) ? found : nullptr;
}

// "dnat", of a status of which one of these bits is set.
std::optional<std::string> status_names(const Value& value, std::span<const Bounds> bounds) {
  const bool asks_bits = value.is_ct(NFT_CT_STATUS) && value.changed() && !value.swapped && bounds.size() == 1 &&
                         number_of(value, value.xor_value) == 0 && number_of(value, bounds.front().first) == 0 &&
                         bounds.front().first == bounds.front().second;
  if (!asks_bits) return {};
  return bit_names(number_of(value, value.mask), statuses);
}

bool is_text(const Value& value) {
  constexpr std::uint32_t texts[] = {NFT_META_IIFNAME, NFT_META_OIFNAME, NFT_META_IIFKIND, NFT_META_OIFKIND,
                                     NFT_META_SDIFNAME};
  return value.is_ct(NFT_CT_HELPER) ||
         (value.of == Value::Of::meta && std::ranges::find(texts, value.key) != std::end(texts));
}

std::string one(const Value& value, const std::string& bytes, const HeaderField* field) {
  if (is_text(value)) {
    const std::string text = bytes.substr(0, bytes.find('\0'));
    const bool is_padded = bytes.find_first_not_of('\0', text.size()) == std::string::npos;
    const bool printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    const char* rest = text.size() == bytes.size() && bytes.size() < value.size ? "*" : "";
    if (is_padded && printable && !text.empty()) return in_quotes(text + rest);
  }
  const bool is_address = value.words.ends_with("addr") || value.words.ends_with("nexthop");
  if (is_address && bytes.size() == value.size && (bytes.size() == 4 || bytes.size() == 16)) {
    Address address{bytes.size() == 4 ? Family::ipv4 : Family::ipv6, {}};
    std::ranges::copy(std::as_bytes(std::span(bytes)), std::as_writable_bytes(std::span(address.bytes)).begin());
    return address.text();
  }
  const bool is_part = (value.of == Value::Of::meta && bytes.size() < meta_size(value.key)) ||
                       (value.of == Value::Of::ct && bytes.size() < ct_size(value.key));
  if (is_part) return "0x" + hex(bytes) + "*";
  if (value.of == Value::Of::unknown && value.key == presence && bytes.size() == 1)
    return bytes.front() != '\0' ? "exists" : "missing";
  constexpr std::size_t ethernet_address = 6;
  if (field != nullptr && bytes.size() == ethernet_address) {
    std::string text = hex(bytes);
    for (std::size_t at = text.size() - 2; at > 0; at -= 2) text.insert(at, ":");
    return text;
  }
  if (bytes.size() == 8 && value.size == 8 && value.swapped)
    return fmt::format("{}", Data::text(bytes).from_network<std::uint64_t>());
  if (bytes.size() != value.size || bytes.size() > 4) return "0x" + hex(bytes);
  std::uint32_t number = number_of(value, bytes);
  if (value.is_meta(NFT_META_TIME_HOUR)) {  // since midnight UTC
    const std::uint32_t seconds = number % 60;
    return fmt::format("\"{:02}:{:02}{}\"", number / 3600, number / 60 % 60,
                       seconds != 0 ? fmt::format(":{:02}", seconds) : "");
  }
  const auto* named = std::ranges::find_if(named_values, [&](const NamedValue& each) {
    return each.of == value.of && each.key == value.key && each.number == number;
  });
  if (named != std::end(named_values)) return named->name;
  if (field != nullptr && field->words == flags_of_tcp && number != 0) return *bit_names(number, tcp_flag_names, " | ");
  if (field != nullptr && field->mask != 0) number /= field->mask & -field->mask;
  const bool in_hex = field != nullptr ? field->in_hex : value.of == Value::Of::payload || value.changed();
  return in_hex ? fmt::format("{:#x}", number) : fmt::format("{}", number);
}

}  // namespace

std::string event_words(std::uint32_t events) {
  return bit_names(events, event_names).value_or(fmt::format("{:#x}", events));
}

std::string test_words(const Value& value, std::span<const Bounds> bounds, bool negated, Families families,
                       std::optional<Protocol> protocol) {
  if (const auto names = status_names(value, bounds)) return fmt::format("ct status {}{}", negated ? "" : "! ", *names);
  const std::uint32_t mask = value.changed() && value.size <= 4 ? number_of(value, value.mask) : 0;
  const HeaderField* field = header_field(value, mask, families, protocol);
  // ip frag-off & 0x1fff: the mask is of no field
  const HeaderField* whole = field == nullptr ? header_field(value, 0, families, protocol) : nullptr;
  Value plain = value;
  plain.mask.clear();
  const bool is_masked = value.changed() && field == nullptr;
  const bool is_plain_mask = is_masked && value.xor_value.find_first_not_of('\0') == std::string::npos;
  std::string text = field != nullptr                    ? std::string(field->words)
                     : whole != nullptr && is_plain_mask ? std::string(whole->words)
                                                         : words(is_plain_mask ? plain : value);
  if (is_plain_mask) text += " & " + one(value, value.mask, nullptr);
  text += negated ? " != " : is_masked ? " == " : " ";
  std::string list;
  for (const auto& [first, last] : bounds) {
    list += (list.empty() ? "" : ", ") + one(value, first, field);
    if (first != last) list += '-' + one(value, last, field);
  }
  return text + (bounds.size() > 1 ? "{ " + list + " }" : list);
}

}  // namespace sidetrack::nft
