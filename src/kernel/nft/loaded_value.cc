// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/loaded_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "rule/nft/fields.h"
#include "rule/words.h"

namespace sidetrack::nft {
namespace {

struct Key {
  std::uint32_t number;
  const char* words;
  std::uint32_t size;
  bool network_order = false;
};
constexpr Key socket_keys[] = {{NFT_SOCKET_TRANSPARENT, "socket transparent", 1},
                               {NFT_SOCKET_MARK, "socket mark", 4},
                               {NFT_SOCKET_WILDCARD, "socket wildcard", 1}};
constexpr Key rt_keys[] = {{NFT_RT_CLASSID, "rt classid", 4},
                           {NFT_RT_NEXTHOP4, "rt ip nexthop", 4, true},
                           {NFT_RT_NEXTHOP6, "rt ip6 nexthop", 16, true},
                           {NFT_RT_TCPMSS, "rt mtu", 2},
                           {NFT_RT_XFRM, "rt ipsec", 1}};
// Lists keys of one direction of a connection, or of both.
constexpr Key ct_keys_of_direction[] = {{NFT_CT_L3PROTOCOL, "l3proto", 1},
                                        {NFT_CT_PROTOCOL, "protocol", 1},
                                        {NFT_CT_PROTO_SRC, "proto-src", 2, true},
                                        {NFT_CT_PROTO_DST, "proto-dst", 2, true},
                                        {NFT_CT_ZONE, "zone", 2},
                                        {NFT_CT_PKTS, "packets", 8},
                                        {NFT_CT_BYTES, "bytes", 8},
                                        {NFT_CT_AVGPKT, "avgpkt", 8},
                                        {NFT_CT_SRC_IP, "ip saddr", 4, true},
                                        {NFT_CT_DST_IP, "ip daddr", 4, true},
                                        {NFT_CT_SRC_IP6, "ip6 saddr", 16, true},
                                        {NFT_CT_DST_IP6, "ip6 daddr", 16, true}};

std::optional<LoadedValue> made(std::string words, std::uint32_t size, std::uint32_t destination, bool may_break_off,
                                bool network_order = false) {
  LoadedValue loaded{{.size = size, .words = std::move(words)}, destination, may_break_off};
  loaded.value.swapped = network_order;
  return loaded;
}

std::optional<LoadedValue> is_there(std::string words, std::uint32_t destination) {
  auto loaded = made(std::move(words), 1, destination, true);
  loaded->value.key = presence;
  return loaded;
}

std::optional<LoadedValue> of_key(std::span<const Key> keys, std::uint32_t number, std::uint32_t destination,
                                  const std::string& before = "") {
  const auto key = std::ranges::find(keys, number, &Key::number);
  if (key == keys.end()) return {};
  return made(before + key->words, key->size, destination, true, key->network_order);
}

std::optional<LoadedValue> of_ct(const RawExpression& e, std::optional<Family> family) {
  const bool has_direction = e.has(NFTA_CT_DIRECTION);
  if (has_direction && payload(e.at(NFTA_CT_DIRECTION)).size() != 1) return {};
  const bool is_reply = has_direction && network_order<std::uint8_t>(e.at(NFTA_CT_DIRECTION)) != 0;
  std::uint32_t key = e.u32(NFTA_CT_KEY);
  if (family && (key == NFT_CT_SRC || key == NFT_CT_DST))  // of the table's family
    key += (family == Family::ipv4 ? NFT_CT_SRC_IP : NFT_CT_SRC_IP6) - std::uint32_t{NFT_CT_SRC};
  auto loaded = of_key(ct_keys_of_direction, key, e.u32(NFTA_CT_DREG),
                       !has_direction ? "ct "
                       : is_reply     ? "ct reply "
                                      : "ct original ");
  if (!loaded || !loaded->value.swapped || !has_direction) return loaded;
  loaded->value.of = Value::Of::tuple;
  loaded->value.key = key;
  loaded->value.offset = is_reply ? 1 : 0;
  loaded->value.swapped = false;
  return loaded;
}

// Each of a counter that all packets share, or of nothing but chance.
std::optional<LoadedValue> of_numgen(const RawExpression& e) {
  const std::uint32_t type = e.u32(NFTA_NG_TYPE);
  if (type > NFT_NG_RANDOM || !e.has(NFTA_NG_MODULUS)) return {};
  std::string words = fmt::format("numgen {} mod {}", type == NFT_NG_RANDOM ? "random" : "inc", e.u32(NFTA_NG_MODULUS));
  const std::uint32_t offset = e.u32(NFTA_NG_OFFSET);
  if (offset != 0) words += fmt::format(" offset {}", offset);
  auto loaded = made(std::move(words), 4, e.u32(NFTA_NG_DREG), false);
  if (offset == 0) loaded->value.modulus = e.u32(NFTA_NG_MODULUS);
  return loaded;
}

std::optional<LoadedValue> of_hash(const RawExpression& e) {
  if (e.u32(NFTA_HASH_TYPE) != std::uint32_t{NFT_HASH_SYM} || !e.has(NFTA_HASH_MODULUS)) return {};
  return made(fmt::format("symhash mod {}", e.u32(NFTA_HASH_MODULUS)), 4, e.u32(NFTA_HASH_DREG), true);
}

std::optional<LoadedValue> of_fib(const RawExpression& e) {
  const std::uint32_t result = e.u32(NFTA_FIB_RESULT);
  const std::uint32_t flags = e.u32(NFTA_FIB_FLAGS);
  const bool is_name = result == NFT_FIB_RESULT_OIFNAME;
  const auto words = fib_words(flags & ~std::uint32_t{NFTA_FIB_F_PRESENT});
  if (!words || (result != NFT_FIB_RESULT_OIF && !is_name)) return {};
  const std::string text = *words + (is_name ? " oifname" : " oif");
  if ((flags & NFTA_FIB_F_PRESENT) != 0) return is_there(text, e.u32(NFTA_FIB_DREG));
  return made(text, is_name ? 16 : 4, e.u32(NFTA_FIB_DREG), true);
}

std::optional<LoadedValue> of_exthdr(const RawExpression& e) {
  struct Header {
    std::uint32_t operation;
    std::uint32_t type;
    const char* words;
  };
  constexpr Header headers[] = {
      {NFT_EXTHDR_OP_IPV6, 0, "exthdr hbh"},          {NFT_EXTHDR_OP_IPV6, 43, "exthdr rt"},
      {NFT_EXTHDR_OP_IPV6, 44, "exthdr frag"},        {NFT_EXTHDR_OP_IPV6, 60, "exthdr dst"},
      {NFT_EXTHDR_OP_IPV6, 135, "exthdr mh"},         {NFT_EXTHDR_OP_TCPOPT, 2, "tcp option maxseg"},
      {NFT_EXTHDR_OP_TCPOPT, 3, "tcp option window"}, {NFT_EXTHDR_OP_TCPOPT, 4, "tcp option sack-perm"},
      {NFT_EXTHDR_OP_TCPOPT, 5, "tcp option sack"},   {NFT_EXTHDR_OP_TCPOPT, 8, "tcp option timestamp"}};
  constexpr std::uint32_t maxseg = 2;
  if (!e.has(NFTA_EXTHDR_TYPE) || payload(e.at(NFTA_EXTHDR_TYPE)).size() != 1) return {};
  const std::uint32_t type = network_order<std::uint8_t>(e.at(NFTA_EXTHDR_TYPE));
  const auto* header = std::ranges::find_if(
      headers, [&](const Header& each) { return each.operation == e.u32(NFTA_EXTHDR_OP) && each.type == type; });
  const bool asks_presence = (e.u32(NFTA_EXTHDR_FLAGS) & NFT_EXTHDR_F_PRESENT) != 0;
  if (asks_presence && e.u32(NFTA_EXTHDR_OP) == std::uint32_t{NFT_EXTHDR_OP_SCTP})
    return is_there(fmt::format("sctp chunk {}", type), e.u32(NFTA_EXTHDR_DREG));
  if (header == std::end(headers)) return {};
  if (asks_presence) return is_there(header->words, e.u32(NFTA_EXTHDR_DREG));
  const std::uint32_t offset = e.u32(NFTA_EXTHDR_OFFSET), length = e.u32(NFTA_EXTHDR_LEN);
  const bool is_size = header->operation == NFT_EXTHDR_OP_TCPOPT && type == maxseg && offset == 2 && length == 2;
  return made(
      is_size ? std::string(header->words) + " size" : fmt::format("{} @{},{}", header->words, offset * 8, length * 8),
      length, e.u32(NFTA_EXTHDR_DREG), true, true);
}

}  // namespace

std::optional<std::string> fib_words(std::uint32_t flags) {
  const auto names = bit_names(flags, fib_flags, " . ");
  if (!names || names->empty()) return {};
  return "fib " + *names;
}

std::optional<LoadedValue> loaded_value(const RawExpression& e, std::optional<Family> family) {
  if (e.name() == "numgen") return of_numgen(e);
  if (e.name() == "hash") return of_hash(e);
  if (e.name() == "fib") return of_fib(e);
  if (e.name() == "exthdr") return of_exthdr(e);
  if (e.name() == "ct") return of_ct(e, family);
  if (e.name() == "rt") return of_key(rt_keys, e.u32(NFTA_RT_KEY), e.u32(NFTA_RT_DREG));
  if (e.name() == "socket") return of_key(socket_keys, e.u32(NFTA_SOCKET_KEY), e.u32(NFTA_SOCKET_DREG));
  return {};
}

}  // namespace sidetrack::nft
