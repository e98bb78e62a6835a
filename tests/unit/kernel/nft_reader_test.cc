// SPDX-License-Identifier: GPL-2.0-or-later
// Rules of nf_tables, as the kernel lists them, in the words of iptables: what is understood, where that ends, and what
// is said of the rest.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>

#include <algorithm>
#include <cstddef>

#include "kernel/nft/rule_reader.h"
#include "rule/iptables.h"

namespace sidetrack::nft {
namespace {

// ---- What the kernel sends. `nft --debug=netlink` shows it in these words.

std::string attribute(unsigned type, const std::string& value) {
  const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + value.size()), static_cast<std::uint16_t>(type)};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += value;
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}
std::string nested(unsigned type, const std::string& attributes) { return attribute(type | NLA_F_NESTED, attributes); }
template <typename Number>
std::string net(Number number) {
  std::string bytes;
  for (std::size_t i = sizeof number; i-- > 0;) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}
std::string port(std::uint16_t number) { return net(number); }
std::string host(std::uint32_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }
std::string number(unsigned type, std::uint32_t value) { return attribute(type, net(value)); }
std::string bytes(unsigned type, const std::string& value) { return nested(type, attribute(NFTA_DATA_VALUE, value)); }
std::string expression(const std::string& name, const std::string& attributes) {
  return nested(NFTA_LIST_ELEM, attribute(NFTA_EXPR_NAME, name + '\0') + nested(NFTA_EXPR_DATA, attributes));
}

std::string meta(std::uint32_t key, std::uint32_t reg = 1) {
  return expression("meta", number(NFTA_META_KEY, key) + number(NFTA_META_DREG, reg));
}
std::string meta_set(std::uint32_t key, std::uint32_t reg = 1) {
  return expression("meta", number(NFTA_META_KEY, key) + number(NFTA_META_SREG, reg));
}
std::string ct(std::uint32_t key) { return expression("ct", number(NFTA_CT_KEY, key) + number(NFTA_CT_DREG, 1)); }
std::string ct_set(std::uint32_t key, const std::string& more = "") {
  return expression("ct", number(NFTA_CT_KEY, key) + number(NFTA_CT_SREG, 1) + more);
}
std::string payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size, std::uint32_t reg = 1) {
  return expression("payload", number(NFTA_PAYLOAD_DREG, reg) + number(NFTA_PAYLOAD_BASE, base) +
                                   number(NFTA_PAYLOAD_OFFSET, offset) + number(NFTA_PAYLOAD_LEN, size));
}
std::string network(std::uint32_t offset, std::uint32_t size, std::uint32_t reg = 1) {
  return payload(NFT_PAYLOAD_NETWORK_HEADER, offset, size, reg);
}
std::string transport(std::uint32_t offset, std::uint32_t size, std::uint32_t reg = 1) {
  return payload(NFT_PAYLOAD_TRANSPORT_HEADER, offset, size, reg);
}
std::string cmp(std::uint32_t operation, const std::string& with, std::uint32_t reg = 1) {
  return expression("cmp", number(NFTA_CMP_SREG, reg) + number(NFTA_CMP_OP, operation) + bytes(NFTA_CMP_DATA, with));
}
std::string eq(const std::string& with, std::uint32_t reg = 1) { return cmp(NFT_CMP_EQ, with, reg); }
std::string neq(const std::string& with) { return cmp(NFT_CMP_NEQ, with); }
std::string range(std::uint32_t operation, const std::string& first, const std::string& last) {
  return expression("range", number(NFTA_RANGE_SREG, 1) + number(NFTA_RANGE_OP, operation) +
                                 bytes(NFTA_RANGE_FROM_DATA, first) + bytes(NFTA_RANGE_TO_DATA, last));
}
std::string bitwise(const std::string& mask, const std::string& flip, std::uint32_t operation = NFT_BITWISE_BOOL) {
  return expression("bitwise", number(NFTA_BITWISE_SREG, 1) + number(NFTA_BITWISE_DREG, 1) +
                                   number(NFTA_BITWISE_LEN, static_cast<std::uint32_t>(mask.size())) +
                                   number(NFTA_BITWISE_OP, operation) + bytes(NFTA_BITWISE_MASK, mask) +
                                   bytes(NFTA_BITWISE_XOR, flip));
}
std::string shift() { return bitwise(host(1), host(0), NFT_BITWISE_LSHIFT); }  // what has no words
std::string byteorder(std::uint32_t length = 4, std::uint32_t size = 4) {
  return expression("byteorder", number(NFTA_BYTEORDER_SREG, 1) + number(NFTA_BYTEORDER_DREG, 1) +
                                     number(NFTA_BYTEORDER_OP, NFT_BYTEORDER_HTON) +
                                     number(NFTA_BYTEORDER_LEN, length) + number(NFTA_BYTEORDER_SIZE, size));
}
std::string load(const std::string& value, std::uint32_t reg = 1) {
  return expression("immediate", number(NFTA_IMMEDIATE_DREG, reg) + bytes(NFTA_IMMEDIATE_DATA, value));
}
std::string verdict(std::int32_t code, const std::string& chain = "") {
  std::string inside = number(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
  if (!chain.empty()) inside += attribute(NFTA_VERDICT_CHAIN, chain + '\0');
  return expression("immediate", number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT) +
                                     nested(NFTA_IMMEDIATE_DATA, nested(NFTA_DATA_VERDICT, inside)));
}
const std::string accept = verdict(NF_ACCEPT);
const std::string tcp_expressions = meta(NFT_META_L4PROTO) + eq("\x06");
std::string cgroup(std::uint32_t level) {
  return expression("socket", number(NFTA_SOCKET_KEY, NFT_SOCKET_CGROUPV2) + number(NFTA_SOCKET_DREG, 1) +
                                  number(NFTA_SOCKET_LEVEL, level));
}
std::string dport(const std::string& test) { return transport(2, 2) + test; }
std::string lookup(const std::string& set, const std::string& more = "", std::uint32_t reg = 1) {
  return expression("lookup", attribute(NFTA_LOOKUP_SET, set + '\0') + number(NFTA_LOOKUP_SREG, reg) + more);
}
const std::string inverted = number(NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
const std::string to_verdict = number(NFTA_LOOKUP_DREG, NFT_REG_VERDICT);
const std::string to_register = number(NFTA_LOOKUP_DREG, NFT_REG_2);

std::string name16(std::string name) {
  name.resize(16);
  return name;
}

KernelElement element(const std::string& first, const std::string& last, std::int32_t code = 0,
                      const std::string& chain = "") {
  KernelElement made;
  made.first = first;
  made.last = last;
  made.verdict = code;
  made.chain = chain;
  return made;
}
KernelElement single(const std::string& value, std::int32_t code = 0, const std::string& chain = "") {
  return element(value, value, code, chain);
}

KernelSet set_of(std::uint32_t size, std::vector<KernelElement> elements) {
  KernelSet set;
  set.key_size = size;
  set.elements = std::move(elements);
  return set;
}
KernelSet map_of(std::uint32_t size, std::vector<KernelElement> elements) {
  KernelSet map = set_of(size, std::move(elements));
  map.verdicts = true;
  return map;
}
KernelSet with_rest(KernelSet set, std::int32_t code) {
  set.any_other = single("", code);
  return set;
}

const std::map<std::string, KernelSet>& sets() {
  static const std::map<std::string, KernelSet> all = [] {
    std::map<std::string, KernelSet> made;
    made["ports"] = set_of(2, {single(port(80)), element(port(90), port(99))});
    made["none"] = set_of(2, {});
    made["expiring"] = made["ports"];
    made["expiring"].opaque = "its elements expire";
    made["all"] = with_rest(made["ports"], 0);
    made["states"] = set_of(4, {single(host(2)), single(host(8))});
    for (const std::size_t size : {2U, 32U, 33U}) {
      KernelSet& names = made[fmt::format("{} names", size)] = set_of(16, {});
      for (std::size_t i = 0; i < size; ++i) names.elements.push_back(single(name16(fmt::format("eth{}", i))));
    }
    KernelSet& many = made["1024 ports"] = map_of(2, {});
    KernelSet& keys = made["1024 keys"] = map_of(20, {});
    for (std::uint16_t i = 0; i < 1024; ++i) {
      many.elements.push_back(single(port(i), NF_ACCEPT));
      keys.elements.push_back(element(std::string(4, '\0') + name16(fmt::format("eth{}", i)),
                                      std::string("\x1f\0\0\0", 4) + name16(fmt::format("eth{}", i)), NF_ACCEPT));
    }
    KernelSet& addresses = made["4096 addresses"] = set_of(4, {});
    for (std::uint32_t i = 0; i < 4096; ++i) addresses.elements.push_back(single(net(0x0a000000 + 2 * i)));
    made["protocol.port"] = set_of(8, {single(std::string("\6\0\0\0", 4) + port(22) + std::string(2, '\0')),
                                       single(std::string("\21\0\0\0", 4) + port(53) + std::string(2, '\0'))});
    made["decide"] = map_of(2, {single(port(22), NF_ACCEPT), element(port(80), port(81), NFT_GOTO, "p-web")});
    const std::vector<KernelElement> three{single(host(0), NF_ACCEPT), single(host(1), NF_DROP),
                                           single(host(2), NF_ACCEPT)};
    made["0, 1, 2"] = set_of(4, three);
    made["0, 1, 2, 3"] = set_of(4, three);
    made["0, 1, 2, 3"].elements.push_back(single(host(3)));
    made["0, 1, 2, 4"] = set_of(4, three);
    made["0, 1, 2, 4"].elements.push_back(single(host(4)));
    made["0-3 in network order"] = set_of(4, {single(net(3U)), element(net(0U), net(2U))});
    made["decide 3"] = map_of(4, three);
    made["decide 4"] = map_of(4, three);
    made["decide 4"].elements.push_back(single(host(3), NFT_GOTO, "p-web"));
    made["jump of 4"] = map_of(4, three);
    made["jump of 4"].elements.push_back(single(host(3), NFT_JUMP, "p-web"));
    made["decide all"] = with_rest(made["decide"], NF_DROP);
    made["jumps"] = map_of(2, {single(port(22), NFT_JUMP, "ssh")});
    made["jumps all"] = with_rest(made["jumps"], NF_DROP);
    made["no verdicts"] = map_of(2, {});
    made["never"] = map_of(2, {element(port(81), port(80), NF_DROP)});
    made["one of two"] = map_of(2, {element(port(81), port(80), NF_DROP), single(port(22), NF_ACCEPT)});
    made["go on"] = map_of(2, {single(port(22), NFT_CONTINUE)});
    made["families"] = with_rest(map_of(1, {single("\2", NF_ACCEPT), single("\12", NF_DROP)}), NFT_RETURN);
    made["protocol.cpu"] = map_of(8, {single(std::string("\6\0\0\0", 4) + host(1), NF_DROP)});
    made["mark.protocol"] = set_of(8, {single(host(5) + std::string("\6\0\0\0", 4))});
    made["marks"] = map_of(4, {single(host(1), NFT_JUMP, "one")});
    made["marks end"] = map_of(4, {single(host(1), NF_DROP)});
    return made;
  }();
  return all;
}

// ---- What is read of it: a line for each rule, with the family that it is for.

std::vector<LiveRule> rules_of(const std::string& expressions, Families families = Families::both(), bool native = true,
                               bool frames = false) {
  KernelRule rule;
  rule.handle = 7;
  rule.expressions.resize(expressions.size());
  std::ranges::transform(expressions, rule.expressions.begin(), [](char c) { return static_cast<std::byte>(c); });
  return read_rule(rule, {families, Table::nat, "C", "p-", sets(), native, frames});
}

std::string words(const std::vector<LiveRule>& rules) {
  std::string text;
  for (const LiveRule& live : rules) {
    EXPECT_EQ(live.handle, 7U);
    EXPECT_EQ(live.rule.table, Table::nat);
    if (!text.empty()) text += " | ";
    if (live.rule.families != Families::both()) text += names(live.rule.families) + " ";
    text += iptables_words(live.rule).substr(std::strlen("-A C"));
  }
  return text;
}
std::string read(const std::string& expressions) { return words(rules_of(expressions)); }
std::string read_ipv4(const std::string& expressions) { return words(rules_of(expressions, Family::ipv4)); }
std::string read_ipv6(const std::string& expressions) { return words(rules_of(expressions, Family::ipv6)); }
std::string read_frames(const std::string& expressions) {
  return words(rules_of(expressions, Families::both(), true, true));
}
std::string read_iptables(const std::string& expressions) { return words(rules_of(expressions, Family::ipv4, false)); }

TEST(NftReader, Protocols) {
  const std::string loaded = meta(NFT_META_L4PROTO);
  EXPECT_EQ(read(loaded + eq("\x06") + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(loaded + eq("\x84") + accept), " -p 132 -j ACCEPT");
  EXPECT_EQ(read(loaded + neq("\x06") + accept), " ! -p tcp -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_LT, "\x02") + accept), " -p 0 -j ACCEPT |  -p icmp -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_LTE, "\x02") + accept), " -p 0 -j ACCEPT |  -p icmp -j ACCEPT |  -p 2 -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_GT, "\x02") + accept), " ! -p 0 ! -p icmp ! -p 2 -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_GTE, "\xfe") + accept), " -p 254 -j ACCEPT |  -p 255 -j ACCEPT");
  // As many alternatives as there are rules for at most.
  EXPECT_TRUE(read(loaded + cmp(NFT_CMP_LT, "\x20") + accept).ends_with(" -p 31 -j ACCEPT"));
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_LT, "\x21") + accept), " meta l4proto 0-32 -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_LT, std::string(1, '\0')) + accept),
            " cmp [1:00000001 2:00000002 3:0500010000000000]");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_GT, "\xff") + accept), " cmp [1:00000001 2:00000004 3:05000100ff000000]");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_GTE, "\x05") + cmp(NFT_CMP_LTE, "\x06") + accept),
            " -p 5 -j ACCEPT |  -p tcp -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(NFT_CMP_GTE, "\xfe") + cmp(NFT_CMP_LTE, "\x06", 2) + accept),
            " -p 254 : cmp [1:00000002 2:00000003 3:0500010006000000] -j ACCEPT |  -p 255 : cmp [1:00000002 2:00000003 "
            "3:0500010006000000] -j ACCEPT");
  EXPECT_EQ(read(loaded + cmp(6, "\x06") + accept), " cmp [1:00000001 2:00000006 3:0500010006000000]");
  EXPECT_EQ(read(loaded + range(NFT_RANGE_EQ, "\x06", "\x07") + accept), " -p tcp -j ACCEPT |  -p 7 -j ACCEPT");
  EXPECT_EQ(read(loaded + range(NFT_RANGE_NEQ, "\x06", "\x07") + accept), " ! -p tcp ! -p 7 -j ACCEPT");
  EXPECT_EQ(read(loaded + range(2, "\x06", "\x07") + accept),
            " range [1:00000001 2:00000002 3:0500010006000000 4:0500010007000000]");
  EXPECT_EQ(read(loaded + bitwise("\x0f", std::string(1, '\0')) + eq("\x06") + accept),
            " meta l4proto & 0xf == 0x6 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(9, 1) + eq("\x06") + accept), "ipv4  -p tcp -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(6, 1) + eq("\x3a") + accept), "ipv6  -p ipv6-icmp -j ACCEPT");
  EXPECT_EQ(read(network(9, 1) + eq("\x06") + accept), " @nh,72,8 0x6 -j ACCEPT");
}

TEST(NftReader, Interfaces) {
  const std::string in = meta(NFT_META_IIFNAME);
  EXPECT_EQ(read(in + eq(name16("eth0")) + accept), " -i eth0 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_OIFNAME) + neq(name16("lo")) + accept), " ! -o lo -j ACCEPT");
  EXPECT_EQ(read(in + eq("eth") + accept), " -i eth+ -j ACCEPT");
  EXPECT_EQ(read(in + eq(name16("eth+")) + accept), " meta iifname \"eth+\" -j ACCEPT");
  EXPECT_EQ(read(in + eq("sixteen-letters!") + accept), " meta iifname \"sixteen-letters!\" -j ACCEPT");
  EXPECT_EQ(read(in + range(NFT_RANGE_EQ, name16("eth"), "eth" + std::string(13, '\xff')) + accept),
            " -i eth+ -j ACCEPT");
  EXPECT_EQ(read(in + range(NFT_RANGE_EQ, name16("eth"), "etx" + std::string(13, '\xff')) + accept),
            " meta iifname \"eth\"-0x657478ffffffffffffffffffffffffff -j ACCEPT");
  EXPECT_EQ(read(in + eq(std::string(16, '\0')) + accept),
            " meta iifname 0x00000000000000000000000000000000 -j ACCEPT");
  EXPECT_EQ(read(in + eq(name16(std::string("a\0b", 3))) + accept),
            " meta iifname 0x61006200000000000000000000000000 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_IIF) + eq(host(1)) + accept), " -i lo -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_OIF) + neq(host(1)) + accept), " ! -o lo -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_OIF) + eq(host(0x7fffffff)) + accept), " meta oif 2147483647 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_IIF) + range(NFT_RANGE_EQ, host(1), host(2)) + accept), " meta iif 1-2 -j ACCEPT");
}

TEST(NftReader, Marks) {
  const std::string mark = meta(NFT_META_MARK);
  EXPECT_EQ(read(mark + eq(host(0x539)) + accept), " -m mark --mark 1337 -j ACCEPT");
  EXPECT_EQ(read(mark + neq(host(0x539)) + accept), " -m mark ! --mark 1337 -j ACCEPT");
  EXPECT_EQ(read(mark + bitwise(host(0xff), host(0)) + eq(host(5)) + accept), " -m mark --mark 0x5/0xff -j ACCEPT");
  EXPECT_EQ(read(mark + bitwise(host(0xff), host(1)) + eq(host(5)) + accept), " -m mark --mark 0x4/0xff -j ACCEPT");
  EXPECT_EQ(read(mark + bitwise(host(0xff), host(1)) + bitwise(host(0x0f), host(8)) + eq(host(5)) + accept),
            " -m mark --mark 0xc/0xf -j ACCEPT");
  EXPECT_EQ(read(mark + bitwise(host(0xff), host(1), NFT_BITWISE_LSHIFT) + eq(host(5)) + accept),
            " bitwise [1:00000001 2:00000001 3:00000004 4:08000100ff000000 5:0800010001000000 6:00000001] 5 -j ACCEPT");
  EXPECT_EQ(read(mark + bitwise("\xff", "\x01") + eq(host(5)) + accept),
            " meta mark & ff ^ 01 == 0x05000000 -j ACCEPT");
  EXPECT_EQ(read(mark + range(NFT_RANGE_EQ, host(5), host(6)) + accept), " meta mark 5-6 -j ACCEPT");
  EXPECT_EQ(read(mark + byteorder() + eq(net(5U)) + accept), " -m mark --mark 5 -j ACCEPT");
  EXPECT_EQ(read(mark + byteorder() + byteorder() + eq(host(5)) + accept), " -m mark --mark 5 -j ACCEPT");
  EXPECT_EQ(read(mark + byteorder(4, 2) + eq(net(5U)) + accept),
            " byteorder [1:00000001 2:00000001 3:00000001 4:00000004 5:00000002] 83886080 -j ACCEPT");
  EXPECT_EQ(read(mark + byteorder(2, 2) + eq(net(5U)) + accept), " meta mark 0x00000005 -j ACCEPT");
  EXPECT_EQ(read(mark + eq(std::string("\5\0", 2)) + accept),
            " meta mark 0x0500* -j ACCEPT");  // not all of it
  EXPECT_EQ(read(ct(NFT_CT_MARK) + eq(std::string("\5\0", 2)) + accept), " ct mark 0x0500* -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + eq(std::string("\5\0", 2)) + accept), " meta skuid 0x0500* -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + bitwise(host(0xff), host(0)) + neq(host(5)) + accept),
            " -m connmark ! --mark 0x5/0xff -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + eq(host(5)) + accept), " -m connmark --mark 5 -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + byteorder() + eq(net(5U)) + accept), " -m connmark --mark 5 -j ACCEPT");
}

TEST(NftReader, ConntrackStates) {
  const std::string state = ct(NFT_CT_STATE);
  EXPECT_EQ(read(state + bitwise(host(2 | 4), host(0)) + neq(host(0)) + accept),
            " -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
  EXPECT_EQ(read(state + bitwise(host(1), host(0)) + eq(host(0)) + accept),
            " -m conntrack ! --ctstate INVALID -j ACCEPT");
  EXPECT_EQ(read(state + bitwise(host(1 | 2 | 4 | 8 | 64), host(0)) + neq(host(0)) + accept),
            " -m conntrack --ctstate INVALID,NEW,RELATED,ESTABLISHED,UNTRACKED -j ACCEPT");
  EXPECT_EQ(read(state + bitwise(host(2 | 128), host(0)) + neq(host(0)) + accept), " ct state & 0x82 != 0x0 -j ACCEPT");
  EXPECT_EQ(read(state + bitwise(host(2), host(2)) + eq(host(0)) + accept),
            " -m conntrack --ctstate ESTABLISHED -j ACCEPT");
  EXPECT_EQ(read(state + bitwise(host(6), host(0)) + eq(host(2)) + accept),
            " -m conntrack --ctstate ESTABLISHED -j ACCEPT");
  EXPECT_EQ(read(state + eq(host(8)) + accept), " -m conntrack --ctstate NEW -j ACCEPT");
  EXPECT_EQ(read(state + neq(host(8)) + accept),
            " -m conntrack --ctstate INVALID,RELATED,ESTABLISHED,UNTRACKED -j ACCEPT");
  EXPECT_EQ(read(state + eq(host(3)) + accept), " a condition that never holds");
  EXPECT_EQ(read(state + range(NFT_RANGE_EQ, host(2), host(4)) + accept), " ct state 2-4 -j ACCEPT");
  EXPECT_EQ(read(state + byteorder() + range(NFT_RANGE_EQ, net(2U), net(4U)) + accept),
            " -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
  EXPECT_EQ(read(state + lookup("states") + accept), " -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT");
  EXPECT_EQ(read(state + lookup("states", inverted) + accept),
            " -m conntrack --ctstate INVALID,RELATED,UNTRACKED -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_STATUS) + eq(host(8)) + accept), " ct status 8 -j ACCEPT");
  EXPECT_EQ(
      read(expression("ct", number(NFTA_CT_KEY, NFT_CT_MARK) + number(NFTA_CT_DREG, 1) + number(NFTA_CT_DIRECTION, 0)) +
           eq(host(8)) + accept),
      " ct [1:00000001 2:00000003 3:00000000] ct [1:00000001 2:00000003 3:00000000]: cmp [1:00000001 2:00000000 "
      "3:0800010008000000] -j ACCEPT");
}

TEST(NftReader, ConntrackDirections) {
  const std::string direction = ct(NFT_CT_DIRECTION);
  const std::string original(1, '\0');
  EXPECT_EQ(read(direction + eq(original) + accept), " -m conntrack --ctdir ORIGINAL -j ACCEPT");
  EXPECT_EQ(read(direction + eq("\1") + accept), " -m conntrack --ctdir REPLY -j ACCEPT");
  EXPECT_EQ(read(direction + neq(original) + accept), " -m conntrack --ctdir REPLY -j ACCEPT");
  EXPECT_EQ(read(direction + neq("\1") + accept), " -m conntrack --ctdir ORIGINAL -j ACCEPT");
  EXPECT_EQ(read(direction + eq("\2") + accept), " a condition that never holds");
  EXPECT_EQ(read(direction + range(NFT_RANGE_EQ, "\1", "\2") + accept), " -m conntrack --ctdir REPLY -j ACCEPT");
  EXPECT_EQ(read(direction + range(NFT_RANGE_NEQ, original, "\1") + accept), " a condition that never holds");
  EXPECT_EQ(read(direction + range(NFT_RANGE_EQ, original, "\1") + accept), " ct direction 0-1 -j ACCEPT")
      << "that there is a connection";
  EXPECT_EQ(read(direction + bitwise("\1", original) + eq("\1") + accept), " ct direction & 0x1 == 0x1 -j ACCEPT");
}

TEST(NftReader, Owners) {
  const std::string any = byteorder() + cmp(NFT_CMP_GTE, net(0U));
  EXPECT_EQ(read(meta(NFT_META_SKUID) + any + accept), " -m owner --socket-exists -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKGID) + byteorder() + range(NFT_RANGE_NEQ, net(0U), net(~0U)) + accept),
            " -m owner ! --gid-owner 0-4294967295 -j ACCEPT");

  EXPECT_EQ(read(meta(NFT_META_SKUID) + eq(host(1337)) + accept), " -m owner --uid-owner 1337 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKGID) + neq(host(1337)) + accept), " -m owner ! --gid-owner 1337 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + range(NFT_RANGE_EQ, host(1), host(9)) + accept), " meta skuid 1-9 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + byteorder() + range(NFT_RANGE_EQ, net(1U), net(9U)) + accept),
            " -m owner --uid-owner 1-9 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + byteorder() + range(NFT_RANGE_EQ, net(9U), net(1U)) + accept),
            " meta skuid 9-1 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + byteorder() + cmp(NFT_CMP_GT, net(0xffU)) + accept),
            " -m owner --uid-owner 256-4294967295 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + byteorder() + cmp(NFT_CMP_LT, net(0x100U)) + accept),
            " -m owner --uid-owner 0-255 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + bitwise(host(1), host(0)) + eq(host(1)) + accept),
            " meta skuid & 0x1 == 0x1 -j ACCEPT");
  EXPECT_EQ(read_iptables(meta(NFT_META_SKUID) + eq(host(1337)) + accept), "ipv4  -m owner --uid-owner 1337 -j ACCEPT");
  EXPECT_EQ(read_iptables(meta(NFT_META_SKUID) + neq(host(1337)) + accept), "ipv4  meta skuid != 1337 -j ACCEPT");
}

TEST(NftReader, Cgroups) {
  const std::string ninth = host(9) + host(0);  // of no cgroup
  EXPECT_EQ(read(cgroup(2) + cmp(NFT_CMP_GT, ninth) + accept).substr(0, 31), " socket cgroupv2 level 2 0x0900");
  EXPECT_EQ(read(cgroup(2) + bitwise(std::string(8, '\1'), std::string(8, '\0')) + eq(ninth) + accept).substr(0, 44),
            " socket cgroupv2 level 2 & 0x010101010101010");
  const auto matches = rules_of(cgroup(2) + neq(ninth) + accept).front().rule.matches;
  ASSERT_EQ(matches.size(), 1U);
  const auto& match = std::get<CgroupMatch>(matches.front());
  EXPECT_TRUE(match.negated);
  EXPECT_EQ(match.id, 9U);
  EXPECT_EQ(match.path, "");
  EXPECT_EQ(read(cgroup(2) + eq(ninth) + accept), " [cgroup 9, whose path is not known] -j ACCEPT");
  EXPECT_EQ(read(cgroup(3) + range(NFT_RANGE_EQ, ninth, ninth) + accept),
            " [cgroup 9, whose path is not known] -j ACCEPT");
  EXPECT_TRUE(read(cgroup(3) + range(NFT_RANGE_EQ, ninth, host(10) + host(0)) + accept)
                  .starts_with(" socket cgroupv2 level 3 0x09"));
  // A part of the number is of no cgroup: the kernel compares as many bytes as it is given.
  for (const std::size_t size : {1U, 4U, 7U, 9U, 12U, 16U}) {
    const std::string part = std::string(size, '\1');
    EXPECT_TRUE(read(cgroup(3) + eq(part) + accept).find("[cgroup") == std::string::npos) << size;
    EXPECT_TRUE(read(cgroup(3) + neq(part) + accept).find("[cgroup") == std::string::npos) << size;
    EXPECT_TRUE(read(cgroup(3) + range(NFT_RANGE_EQ, part, part) + accept).find("[cgroup") == std::string::npos)
        << size;
  }
  EXPECT_TRUE(read(cgroup(3) + range(NFT_RANGE_EQ, ninth, "\1") + accept).find("[cgroup") == std::string::npos);
  // Of a socket other things may be asked.
  const std::string transparent =
      expression("socket", number(NFTA_SOCKET_KEY, NFT_SOCKET_TRANSPARENT) + number(NFTA_SOCKET_DREG, 1));
  EXPECT_EQ(read(transparent + eq("\1") + accept), " socket transparent 1 -j ACCEPT");
}

TEST(NftReader, Ports) {
  EXPECT_EQ(read(tcp_expressions + dport(eq(port(80))) + accept), " -p tcp --dport 80 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + transport(0, 2) + neq(port(80)) + accept), " -p tcp ! --sport 80 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(range(NFT_RANGE_EQ, port(80), port(90))) + accept),
            " -p tcp --dport 80:90 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(range(NFT_RANGE_NEQ, port(80), port(90))) + accept),
            " -p tcp ! --dport 80:90 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(range(NFT_RANGE_EQ, port(90), port(80))) + accept),
            " a condition that never holds");
  EXPECT_EQ(read(tcp_expressions + dport(range(NFT_RANGE_NEQ, port(90), port(80))) + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(dport(eq(port(80))) + accept),
            " -p tcp --dport 80 -j ACCEPT |  -p udp --dport 80 -j ACCEPT |  ! -p tcp ! -p udp ports of any protocol -j "
            "ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + eq("\x01") + dport(eq(port(80))) + accept),
            " -p icmp ports of a protocol without ports -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + neq("\x06") + dport(eq(port(80))) + accept),
            " ! -p tcp -p tcp --dport 80 -j ACCEPT |  ! -p tcp -p udp --dport 80 -j ACCEPT |  ! -p tcp ! -p tcp ! -p "
            "udp ports of any protocol -j ACCEPT");
  for (const int with : {17, 33, 132, 136})
    EXPECT_EQ(read(meta(NFT_META_L4PROTO) + eq(std::string(1, static_cast<char>(with))) + dport(eq(port(80))) + accept),
              fmt::format(" -p {} --dport 80 -j ACCEPT", with == 17 ? "udp" : std::to_string(with)));
  EXPECT_EQ(read(tcp_expressions + transport(2, 1) + eq("\x50") + accept), " -p tcp @th,16,8 0x50 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + transport(0, 4) + eq(port(1) + port(80)) + accept),
            " -p tcp --sport 1 --dport 80 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + transport(0, 4) + neq(port(1) + port(80)) + accept),
            " -p tcp @th,0,32 != 0x10050 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + transport(13, 1) + eq("\x02") + accept),
            " -p tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG,ECE,CWR SYN -j ACCEPT");
  const std::string bases[] = {"@ll", "@nh", "@th", "@ih", "@?"};  // the last: one of later kernels
  for (std::uint32_t base = 0; base < std::size(bases); ++base) {
    const std::string words = read(tcp_expressions + payload(base, 33, 1) + eq("\x02") + accept);
    EXPECT_TRUE(words.starts_with(" -p tcp " + bases[base] + ",264,8")) << words;
  }
  EXPECT_EQ(read(tcp_expressions + dport(bitwise(port(0xff), port(0)) + eq(port(80))) + accept),
            " -p tcp @th,16,16 & 0xff == 0x50 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_LT, port(0x100))) + accept), " -p tcp --dport 0:255 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_GT, port(0xff))) + accept), " -p tcp --dport 256:65535 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_LTE, port(80))) + accept), " -p tcp --dport 0:80 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_GTE, port(80)) + cmp(NFT_CMP_LTE, port(90))) + accept),
            " -p tcp --dport 80:90 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_GTE, port(80)) + cmp(NFT_CMP_LT, port(90))) + accept),
            " -p tcp --dport 80:65535 --dport 0:89 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_GTE, port(80)) + cmp(NFT_CMP_LTE, "\1")) + accept),
            " -p tcp --dport 80:65535 @th,16,8 0x0-0x1 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(cmp(NFT_CMP_GTE, port(80)))), " -p tcp --dport 80:65535");
  EXPECT_EQ(read(tcp_expressions + dport(byteorder(2, 2) + eq(port(80))) + accept),
            " -p tcp byteorder [1:00000001 2:00000001 3:00000001 4:00000002 5:00000002] 20480 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("ports")) + accept),
            " -p tcp -m multiport --dports 80,90:99 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("ports", inverted)) + accept),
            " -p tcp -m multiport ! --dports 80,90:99 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("none")) + accept), " @none is empty");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("none", inverted)) + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("all")) + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("all", inverted)) + accept),
            " lookup [1:616c6c00 2:00000001 5:00000001]");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("expiring")) + accept),
            " -p tcp @expiring: its elements expire -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("missing")) + accept), " -p tcp @missing -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("ports", number(NFTA_LOOKUP_FLAGS, 2))) + accept),
            " -p tcp @ports:  -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("ports", to_register)) + accept),
            " -p tcp -m multiport --dports 80,90:99 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("ports", to_register)) + eq(port(1)) + accept),
            " -p tcp -m multiport --dports 80,90:99 lookup [1:706f72747300 2:00000001 3:00000002]: cmp [1:00000001 "
            "2:00000000 3:0600010000010000] -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("states")) + accept), " -p tcp @th,16,16 @states -j ACCEPT");
}

TEST(NftReader, Addresses) {
  const std::string address = "\x0a\x01\x02\x03";
  EXPECT_EQ(read_ipv4(network(16, 4) + eq(address) + accept), "ipv4  -d 10.1.2.3/32 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(12, 4) + neq(address) + accept), "ipv4  ! -s 10.1.2.3/32 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(12, 3) + eq("\x0a\x01\x02") + accept), "ipv4  -s 10.1.2.0/24 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(16, 4) + range(NFT_RANGE_EQ, address, "\x0a\x01\x02\x05") + accept),
            "ipv4  -d 10.1.2.3-10.1.2.5 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(16, 4) + range(NFT_RANGE_EQ, "\x0a\x01\x02\x05", address) + accept),
            "ipv4  a condition that never holds");
  EXPECT_EQ(read_ipv4(network(16, 4) + range(NFT_RANGE_NEQ, "\x0a\x01\x02\x05", address) + accept), "ipv4  -j ACCEPT");
  const auto masked = [&](const std::string& mask, const std::string& with, const std::string& flip = host(0)) {
    return network(16, 4) + bitwise(mask, flip) + with + accept;
  };
  const std::string twelve("\xff\xf0\0\0", 4);
  EXPECT_EQ(read_ipv4(masked(twelve, eq(std::string("\x0a\x10\0\0", 4)))), "ipv4  -d 10.16.0.0/12 -j ACCEPT");
  EXPECT_EQ(read_ipv4(masked(twelve, neq(std::string("\x0a\x10\0\0", 4)))), "ipv4  ! -d 10.16.0.0/12 -j ACCEPT");
  EXPECT_EQ(read_ipv4(masked(twelve, eq(std::string("\x0a\x11\0\0", 4)))), "ipv4  a condition that never holds");
  EXPECT_EQ(read_ipv4(masked(twelve, neq(std::string("\x0a\x11\0\0", 4)))), "ipv4  -j ACCEPT");
  EXPECT_EQ(read_ipv4(masked(twelve, eq(std::string("\x0a\x10\0\0", 4)), std::string("\x01\0\0\0", 4))),
            "ipv4  -d 11.16.0.0/12 -j ACCEPT");
  EXPECT_EQ(read_ipv4(masked(std::string("\xff\0\0\xff", 4), eq(std::string("\x0a\0\0\1", 4)))),
            "ipv4  @nh,128,32 & 0xff0000ff == 0xa000001 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(16, 4) + bitwise(twelve, host(0)) + lookup("states") + accept),
            "ipv4  @nh,128,32 & fff00000 ^ 00000000 @states -j ACCEPT");
  EXPECT_EQ(read(network(16, 4) + eq(address) + accept), " @nh,128,32 0xa010203 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + eq("\x02") + network(16, 4) + eq(address) + accept),
            "ipv4  -d 10.1.2.3/32 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + eq("\x0a") + network(8, 2) + eq("\xfd\xfe") + accept),
            "ipv6  -s fdfe::/16 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + neq("\x0a") + accept), "ipv4  -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + eq("\x03") + accept), " a condition that never holds");
  EXPECT_EQ(read(meta(NFT_META_PROTOCOL) + eq(std::string("\x08\0", 2)) + accept), "ipv4  -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_PROTOCOL) + eq("\x86\xdd") + accept), "ipv6  -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + eq("\x02") + meta(NFT_META_NFPROTO) + eq("\x0a") + accept),
            " a condition that never holds");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + range(NFT_RANGE_EQ, "\x02", "\x0a") + accept),
            " meta nfproto 2-10 -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(24, 16) + eq("\xfd" + std::string(14, '\0') + "\1") + accept),
            "ipv6  -d fd00::1/128 -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(6, 18) + eq("\x06\x40\xfd" + std::string(14, '\0') + "\1") + accept),
            "ipv6  -p tcp @nh,56,8 40 -s fd00::1/128 -j ACCEPT");
  // Neighbouring fields together, and what has no words between them.
  EXPECT_EQ(read_ipv4(network(12, 8) + eq("\x0a\x01\x02\x03\x0a\x01\x02\x04") + accept),
            "ipv4  -s 10.1.2.3/32 -d 10.1.2.4/32 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(8, 2) + eq("\x40\x06") + accept), "ipv4  @nh,64,8 40 -p tcp -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(12, 6) + eq("\x0a\x01\x02\x03\x0a\x01") + accept),
            "ipv4  -s 10.1.2.3/32 -d 10.1.0.0/16 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(12, 8) + bitwise(std::string("\xff\xff\0\0\xff\0\0\0", 8), std::string(8, '\0')) +
                      eq(std::string("\x0a\x01\0\0\x0a\0\0\0", 8)) + accept),
            "ipv4  -s 10.1.0.0/16 -d 10.0.0.0/8 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(12, 8) + bitwise(std::string("\xff\xff\0\0\xff\0\0\0", 8), std::string(8, '\0')) +
                      eq(std::string("\x0a\x01\1\0\x0a\0\0\0", 8)) + accept),
            "ipv4  a condition that never holds");
}

TEST(NftReader, RegistersAndKeysOfSeveralValues) {
  EXPECT_EQ(read(eq("\x06") + accept), " : cmp [1:00000001 2:00000000 3:0500010006000000] -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO, NFT_REG32_00) + eq("\x06") + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO, NFT_REG32_15) + eq("\x06", NFT_REG32_15) + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO, 4) + eq("\x06", NFT_REG32_12) + accept), " -p tcp -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO, 24) + eq("\x06", 24) + accept),
            " meta [1:00000018 2:00000010] meta [1:00000018 2:00000010]: cmp [1:00000018 2:00000000 "
            "3:0500010006000000] -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO, 5) + eq("\x06", 5) + accept),
            " meta [1:00000005 2:00000010] meta [1:00000005 2:00000010]: cmp [1:00000005 2:00000000 "
            "3:0500010006000000] -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(24, 16, NFT_REG32_13) + accept),
            "ipv6  payload [1:00000015 2:00000001 3:00000018 4:00000010] -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(24, 16, NFT_REG32_12) + eq("\xfd", NFT_REG32_12) + accept),
            "ipv6  -d fd00::/8 -j ACCEPT");
  // Of what was changed in the register, too, its first bytes alone may be compared.
  const std::string upper("\xff\xff\xff\0", 4);
  EXPECT_EQ(read_ipv4(network(16, 4) + bitwise(upper, host(0)) + eq("\x0a\x10") + accept),
            "ipv4  -d 10.16.0.0/16 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(16, 4) + bitwise(upper, std::string("\1\0\0\0", 4)) + eq("\x0a\x10") + accept),
            "ipv4  -d 11.16.0.0/16 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + bitwise(host(0xff), host(1)) + eq(std::string("\5\0", 2)) + accept),
            " meta mark & ff00 ^ 0100 == 0x0500* -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(24, 16) + eq("\xfd", NFT_REG32_01) + accept),
            "ipv6  : cmp [1:00000009 2:00000000 3:05000100fd000000] -j ACCEPT");
  EXPECT_EQ(
      read_ipv6(network(24, 16) + meta(NFT_META_MARK, NFT_REG32_01) + eq("\xfd" + std::string(15, '\1')) + accept),
      "ipv6  : cmp [1:00000001 2:00000000 3:14000100fd010101010101010101010101010101] -j ACCEPT");
  const std::string both = meta(NFT_META_L4PROTO) + transport(2, 2, NFT_REG32_01);
  EXPECT_EQ(read(both + lookup("protocol.port") + accept),
            " -p tcp --dport 22 -j ACCEPT |  -p udp --dport 53 -j ACCEPT");
  EXPECT_EQ(read(both + lookup("protocol.port", inverted) + accept),
            " meta l4proto . @th,16,16 != @protocol.port -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + lookup("protocol.port") + accept), "  @protocol.port -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + meta(NFT_META_CPU, NFT_REG32_01) + lookup("protocol.port") + accept),
            " meta l4proto . meta cpu @protocol.port -j ACCEPT");
  // Of what was calculated nothing is known but how.
  EXPECT_EQ(read(load(host(6)) + bitwise(host(6), host(0)) + eq(host(6)) + accept),
            " bitwise [1:00000001 2:00000001 3:00000004 4:0800010006000000 5:0800010000000000 6:00000000] 6 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + shift() + bitwise(host(6), host(0)) + eq(host(6)) + accept),
            " bitwise [1:00000001 2:00000001 3:00000004 4:0800010001000000 5:0800010000000000 6:00000001] & 0x6 == 0x6 "
            "-j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + bitwise(host(6), "\1") + eq(host(6)) + accept),
            " bitwise [1:00000001 2:00000001 3:00000004 4:0800010006000000 5:0500010001000000 6:00000000] 6 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + bitwise(host(6), host(0)) + byteorder() + eq(host(6)) + accept),
            " byteorder [1:00000001 2:00000001 3:00000001 4:00000004 5:00000004] 6 -j ACCEPT");
  EXPECT_EQ(read(load("\x06") + eq("\x06") + accept), " 06 6 -j ACCEPT");
}

TEST(NftReader, Verdicts) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read(accept), " -j ACCEPT");
  EXPECT_EQ(read(verdict(NF_DROP)), " -j DROP");
  EXPECT_EQ(read(verdict(NFT_RETURN)), " -j RETURN");
  EXPECT_EQ(read(verdict(NFT_CONTINUE)), "");
  EXPECT_EQ(read(verdict(NFT_JUMP, "p-X")), " -j X");
  EXPECT_EQ(read(verdict(NFT_GOTO, "X")), " -g X");
  EXPECT_EQ(read(verdict(3)), " verdict 3");
  EXPECT_EQ(read(accept + verdict(NF_DROP)), " -j ACCEPT");
  EXPECT_EQ(read(expression("immediate", number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT))), " immediate [1:00000000]");
}

TEST(NftReader, Translation) {
  const std::string specified = number(NFTA_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
  const std::string first = number(NFTA_REDIR_REG_PROTO_MIN, 1);
  const std::string last = number(NFTA_REDIR_REG_PROTO_MAX, 2);
  const auto redir = [](const std::string& attributes) { return expression("redir", attributes); };
  EXPECT_EQ(read(load(port(15001)) + redir(first + specified)), " -j REDIRECT --to-ports 15001");
  EXPECT_EQ(read(load(port(15001)) + load(port(15001), 2) + redir(first + last + specified)),
            " -j REDIRECT --to-ports 15001");
  EXPECT_EQ(read(load(port(15001)) + load(port(15009), 2) + redir(first + last + specified)),
            " -j REDIRECT --to-ports 15001-15009");
  EXPECT_EQ(read(load(port(15001)) +
                 redir(first + number(NFTA_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_PROTO_RANDOM))),
            " -j REDIRECT --to-ports 15001 --random");
  EXPECT_EQ(read(load(port(15001)) +
                 redir(first + number(NFTA_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_PERSISTENT))),
            " -j REDIRECT --to-ports 15001 --persistent");
  EXPECT_EQ(read(load(port(15001)) + redir(first + number(NFTA_REDIR_FLAGS, 1U << 12))),
            " redir [1:00000001 3:00001000]");
  EXPECT_EQ(read(redir("")), " -j REDIRECT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + redir(first + specified)), " redirect to a port that it looks up");
  EXPECT_EQ(read(load(port(15001)) + redir(first + last + specified)), " redirect to a port that it looks up");
  EXPECT_EQ(read(expression("masq", "")), " -j MASQUERADE");
  EXPECT_EQ(read(load(port(5)) + expression("masq", number(NFTA_MASQ_REG_PROTO_MIN, 1))),
            " -j MASQUERADE --to-ports 5");
  const auto nat = [](std::uint32_t type, std::uint32_t family, const std::string& more) {
    return expression("nat", number(NFTA_NAT_TYPE, type) + number(NFTA_NAT_FAMILY, family) + more);
  };
  const std::string to = number(NFTA_NAT_REG_ADDR_MIN, 1);
  EXPECT_EQ(read_ipv4(load("\x0a\1\2\3") + nat(NFT_NAT_DNAT, NFPROTO_IPV4, to)),
            "ipv4  -j DNAT --to-destination 10.1.2.3");
  EXPECT_EQ(read_ipv4(load("\x0a\1\2\3") + load("\x0a\1\2\7", 2) + load(port(80), 3) +
                      nat(NFT_NAT_SNAT, NFPROTO_IPV4,
                          to + number(NFTA_NAT_REG_ADDR_MAX, 2) + number(NFTA_NAT_REG_PROTO_MIN, 3))),
            "ipv4  -j SNAT --to-source 10.1.2.3-10.1.2.7:80");
  EXPECT_EQ(read_ipv6(load("\xfd" + std::string(14, '\0') + "\1") + nat(NFT_NAT_DNAT, NFPROTO_IPV6, to)),
            "ipv6  -j DNAT --to-destination fd00::1");
  EXPECT_EQ(read_ipv6(load("\x0a\1\2\3") + nat(NFT_NAT_DNAT, NFPROTO_IPV6, to)), "ipv6  dnat to what it looks up");
  EXPECT_EQ(read_ipv4(meta(NFT_META_MARK) + nat(NFT_NAT_DNAT, NFPROTO_IPV4, to)), "ipv4  dnat to what it looks up");
  const std::string mapped = number(NFTA_NAT_FLAGS, NF_NAT_RANGE_MAP_IPS);
  const std::string one = load("\x0a\1\2\3");
  const std::string another = load("\x0a\1\2\7", 2);
  const std::string last_address = number(NFTA_NAT_REG_ADDR_MAX, 2);
  EXPECT_EQ(read_ipv4(one + nat(NFT_NAT_SNAT, NFPROTO_IPV4, to + mapped)), "ipv4  -j SNAT --to-source 10.1.2.3");
  EXPECT_EQ(read_ipv4(one + nat(NFT_NAT_DNAT, NFPROTO_IPV4, to + mapped)), "ipv4  -j DNAT --to-destination 10.1.2.3");
  EXPECT_EQ(read_ipv4(one + another + nat(NFT_NAT_SNAT, NFPROTO_IPV4, to + last_address + mapped)),
            "ipv4  -j SNAT --to-source 10.1.2.3-10.1.2.7");
  EXPECT_EQ(read_ipv4(one + load(port(80), 3) +
                      nat(NFT_NAT_SNAT, NFPROTO_IPV4, to + mapped + number(NFTA_NAT_REG_PROTO_MIN, 3))),
            "ipv4  -j SNAT --to-source 10.1.2.3:80");
  EXPECT_EQ(read_ipv4(one + nat(NFT_NAT_SNAT, NFPROTO_IPV4, to + last_address)), "ipv4  snat to what it looks up");
  EXPECT_EQ(read_ipv4(one + nat(NFT_NAT_SNAT, NFPROTO_IPV4,
                                to + number(NFTA_NAT_FLAGS, NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PERSISTENT))),
            "ipv4  -j SNAT --to-source 10.1.2.3 --persistent");
  EXPECT_EQ(read_ipv4(one + nat(NFT_NAT_SNAT, NFPROTO_IPV4, to + number(NFTA_NAT_FLAGS, 1U << 12))),
            "ipv4  nat [1:00000000 2:00000002 3:00000001 7:00001000]");
  EXPECT_EQ(read(load(host(5)) + redir(first + specified)), " redirect to a port that it looks up");
  EXPECT_EQ(read(load(port(5)) + load(port(9), 2) +
                 expression("masq", number(NFTA_MASQ_REG_PROTO_MIN, 1) + number(NFTA_MASQ_REG_PROTO_MAX, 2) +
                                        number(NFTA_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY))),
            " -j MASQUERADE --to-ports 5-9 --random-fully");
  for (const auto& [words, expected] : {std::pair{redir(""), End::destination}, {expression("masq", ""), End::source}})
    EXPECT_EQ(std::get<Nat>(rules_of(words).front().rule.target).end, expected);
  EXPECT_EQ(read_ipv4(load("\x0a\1\2\3") + nat(2, NFPROTO_IPV4, to)), "ipv4  nat [1:00000002 2:00000002 3:00000001]");
}

TEST(NftReader, TypesOfAddresses) {
  const auto fib = [](std::uint32_t flags, std::uint32_t result = NFT_FIB_RESULT_ADDRTYPE) {
    return expression("fib",
                      number(NFTA_FIB_DREG, 1) + number(NFTA_FIB_RESULT, result) + number(NFTA_FIB_FLAGS, flags));
  };
  constexpr std::uint32_t saddr = NFTA_FIB_F_SADDR, daddr = NFTA_FIB_F_DADDR, iif = NFTA_FIB_F_IIF;
  const std::string local = host(2);
  EXPECT_EQ(read(fib(daddr) + eq(local) + accept), " -m addrtype --dst-type LOCAL -j ACCEPT");
  EXPECT_EQ(read(fib(saddr) + neq(local) + accept), " -m addrtype ! --src-type LOCAL -j ACCEPT");
  EXPECT_EQ(read(fib(daddr | iif) + eq(local) + accept), " -m addrtype --dst-type LOCAL --limit-iface-in -j ACCEPT");
  EXPECT_EQ(read(fib(daddr) + lookup("states", inverted) + accept),
            " -m addrtype ! --dst-type LOCAL,PROHIBIT -j ACCEPT");
  EXPECT_EQ(read(fib(daddr) + range(NFT_RANGE_EQ, host(1), local) + accept), " fib daddr type 1-2 -j ACCEPT");
  EXPECT_EQ(read(fib(daddr | NFTA_FIB_F_MARK) + eq(local) + accept), " fib daddr . mark type 2 -j ACCEPT");
  EXPECT_EQ(read(fib(daddr) + bitwise(host(2), host(0)) + eq(local) + accept),
            " fib daddr type & 0x2 == 0x2 -j ACCEPT");
  EXPECT_EQ(read(fib(saddr | iif, NFT_FIB_RESULT_OIF) + eq(host(0)) + accept), " fib saddr . iif oif 0 -j ACCEPT");
  EXPECT_EQ(read(fib(saddr | NFTA_FIB_F_PRESENT, NFT_FIB_RESULT_OIF) + eq("\1") + accept),
            " fib saddr oif exists -j ACCEPT");
}

// As nft writes what no match is for.
TEST(NftReader, WordsOfConditions) {
  const auto numgen = [](std::uint32_t type) {
    return expression("numgen", number(NFTA_NG_DREG, 1) + number(NFTA_NG_MODULUS, 4) + number(NFTA_NG_TYPE, type));
  };
  EXPECT_EQ(read(numgen(NFT_NG_RANDOM) + eq(host(0)) + accept), " numgen random mod 4 0 -j ACCEPT");
  EXPECT_EQ(read(numgen(NFT_NG_INCREMENTAL) + byteorder() + cmp(NFT_CMP_LT, net(2U)) + accept),
            " numgen inc mod 4 0-1 -j ACCEPT");
  // A map that has all values decides nothing.
  const std::string four = numgen(NFT_NG_RANDOM);
  EXPECT_EQ(read(four + lookup("0, 1, 2, 3", to_register) + accept), " -j ACCEPT");
  EXPECT_EQ(read(four + byteorder() + lookup("0-3 in network order", to_register) + accept), " -j ACCEPT");
  EXPECT_EQ(read(four + lookup("0, 1, 2, 4", to_register) + accept), " numgen random mod 4 @0, 1, 2, 4 -j ACCEPT");
  EXPECT_EQ(read(four + lookup("0, 1, 2", to_register) + accept), " numgen random mod 4 @0, 1, 2 -j ACCEPT");
  EXPECT_EQ(read(four + lookup("0, 1, 2, 3") + accept), " numgen random mod 4 @0, 1, 2, 3 -j ACCEPT");
  const auto last_of = [&](const std::string& map) {
    const std::string rules = read(four + lookup(map, to_verdict));
    return rules.substr(rules.rfind('|') + 2);
  };
  EXPECT_EQ(last_of("decide 4"), " -g web");
  EXPECT_EQ(last_of("decide 3"), " numgen random mod 4 in @decide 3 -j ACCEPT");
  EXPECT_EQ(last_of("jump of 4"), " numgen random mod 4 in @jump of 4 -j web") << "as the chain may return";
  EXPECT_EQ(read(meta(NFT_META_LEN) + byteorder() + range(NFT_RANGE_EQ, net(100U), net(200U)) + accept),
            " meta length 100-200 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_PKTTYPE) + neq("\1") + accept), " meta pkttype != broadcast -j ACCEPT");
  const std::string status = ct(NFT_CT_STATUS);
  EXPECT_EQ(read(status + bitwise(host(32), host(0)) + neq(host(0)) + accept),
            " -m conntrack --ctstatus DNAT -j ACCEPT");
  EXPECT_EQ(read(status + bitwise(host(48), host(0)) + eq(host(0)) + accept),
            " -m conntrack ! --ctstatus SNAT,DNAT -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(8, 1) + eq("\x40") + accept), "ipv4  ip ttl 64 -j ACCEPT");
  EXPECT_EQ(read_ipv4(network(1, 1) + bitwise("\xfc", std::string(1, '\0')) + neq("\x28") + accept),
            "ipv4  ip dscp != 0xa -j ACCEPT");
  EXPECT_EQ(read_ipv6(network(7, 1) + eq("\x40") + accept), "ipv6  ip6 hoplimit 64 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + eq("\1") + transport(0, 1) + eq("\x08") + accept),
            " -p icmp icmp type 8 -j ACCEPT");
  EXPECT_EQ(read(transport(0, 1) + eq("\x08") + accept), " @th,0,8 0x8 -j ACCEPT");
  const auto reply = [](std::uint32_t key) {
    return expression("ct", number(NFTA_CT_KEY, key) + number(NFTA_CT_DREG, 1) + attribute(NFTA_CT_DIRECTION, "\1"));
  };
  EXPECT_EQ(read(reply(NFT_CT_SRC_IP) + eq("\x0a\x01\x02\x03") + accept),
            " -m conntrack --ctreplsrc 10.1.2.3 -j ACCEPT");
  EXPECT_EQ(read(expression("socket", number(NFTA_SOCKET_KEY, NFT_SOCKET_TRANSPARENT) + number(NFTA_SOCKET_DREG, 1)) +
                 eq("\1") + accept),
            " socket transparent 1 -j ACCEPT");
  EXPECT_EQ(read(expression("rt", number(NFTA_RT_KEY, NFT_RT_CLASSID) + number(NFTA_RT_DREG, 1)) + accept),
            " rt classid -j ACCEPT")
      << "it may break off the rule";
  EXPECT_EQ(read(expression("quota", attribute(NFTA_QUOTA_BYTES, net(std::uint64_t{1000})) +
                                         number(NFTA_QUOTA_FLAGS, NFT_QUOTA_F_INV)) +
                 accept),
            " quota over 1000 bytes -j ACCEPT");
  EXPECT_EQ(read(expression("quota", attribute(NFTA_QUOTA_BYTES, net(std::uint64_t{100 << 20}))) + accept),
            " quota 100 mbytes -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_ID) + eq(net(std::uint32_t{5})) + accept), " ct id 5 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_PRANDOM) + eq(net(std::uint32_t{7})) + accept), " meta random 7 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_TIME_HOUR) + eq(host(8 * 3600 + 30)) + accept), " meta hour \"08:00:30\" -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_TIME_DAY, 1) + eq("\1") + accept), " meta day \"Monday\" -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + transport(12, 1) + bitwise("\xf0", std::string(1, '\0')) + eq("\xa0") + accept),
            " -p tcp tcp doff 10 -j ACCEPT");
  EXPECT_EQ(read(tcp_expressions + transport(8, 4) + eq(net(std::uint32_t{9})) + accept),
            " -p tcp tcp ackseq 9 -j ACCEPT");
  EXPECT_EQ(read(load(host(5)) + ct_set(NFT_CT_EVENTMASK) + accept), " ct event set new,destroy |  -j ACCEPT");
  EXPECT_EQ(read(expression("connlimit", number(NFTA_CONNLIMIT_COUNT, 10)) + accept), " ct count 10 -j ACCEPT");
  EXPECT_EQ(read(expression("queue", attribute(NFTA_QUEUE_NUM, net(std::uint16_t{3})) +
                                         attribute(NFTA_QUEUE_TOTAL, net(std::uint16_t{2})) +
                                         attribute(NFTA_QUEUE_FLAGS, net(std::uint16_t{1})))),
            " queue flags bypass to 3-4");
}

// ip dscp set, tcp option maxseg size set: no match is about what they change. Of another version, length or checksum
// the kernel would discard the packet.
TEST(NftReader, WhatChangesNothingThatRulesAskFor) {
  const auto store = [](std::uint32_t base, std::uint32_t offset, std::uint32_t size) {
    return expression("payload", number(NFTA_PAYLOAD_SREG, 1) + number(NFTA_PAYLOAD_BASE, base) +
                                     number(NFTA_PAYLOAD_OFFSET, offset) + number(NFTA_PAYLOAD_LEN, size) +
                                     number(NFTA_PAYLOAD_CSUM_TYPE, NFT_PAYLOAD_CSUM_INET));
  };
  const auto is_understood_in = [&](Families families, const std::string& before, std::uint32_t base,
                                    std::uint32_t offset, std::uint32_t size) {
    const auto rules = rules_of(before + store(base, offset, size) + accept, families);
    return std::ranges::all_of(rules, [](const LiveRule& each) { return is_understood(each.rule); });
  };
  constexpr auto nh = std::uint32_t{NFT_PAYLOAD_NETWORK_HEADER}, th = std::uint32_t{NFT_PAYLOAD_TRANSPORT_HEADER};
  constexpr auto ll = std::uint32_t{NFT_PAYLOAD_LL_HEADER};
  EXPECT_EQ(read_ipv4(load("\x28") + store(nh, 1, 1) + accept).substr(0, 18), "ipv4  @nh,8,8 set ");
  const auto changed = [&](const std::string& mask, const std::string& bits) {
    return network(0, 2) + bitwise(mask, bits);
  };
  const std::string zero(1, '\0');
  EXPECT_TRUE(is_understood_in(Family::ipv4, changed("\xff\x03", zero + "\x20"), nh, 0, 2)) << "ip dscp set cs1";
  EXPECT_FALSE(is_understood_in(Family::ipv4, changed("\xf0\xff", "\x06" + zero), nh, 0, 2)) << "hdrlength";
  EXPECT_FALSE(is_understood_in(Family::ipv4, changed("\xff\xff", "\x10" + zero), nh, 0, 2)) << "version";
  EXPECT_FALSE(is_understood_in(Family::ipv4, changed("\xff\x03", zero + "\x20"), nh, 2, 2)) << "of other bytes";
  EXPECT_FALSE(is_understood_in(Families::both(), changed("\xff\x03", zero + "\x20"), nh, 0, 2));
  EXPECT_TRUE(is_understood_in(Family::ipv6, changed("\xf0\x3f", "\x08" + zero), nh, 0, 2)) << "ip6 dscp set";
  EXPECT_FALSE(is_understood_in(Family::ipv6, changed("\x0f\xff", "\x50" + zero), nh, 0, 2)) << "ip6 version";
  for (const auto& [offset, size, is_free] : std::vector<std::tuple<std::uint32_t, std::uint32_t, bool>>{
           {0, 2, false}, {1, 1, true}, {2, 2, false}, {4, 2, true}, {6, 2, false}, {8, 1, false}, {10, 2, false}})
    EXPECT_EQ(is_understood_in(Family::ipv4, load(std::string(size, '\0')), nh, offset, size), is_free) << offset;
  for (const auto& [offset, size, is_free] : std::vector<std::tuple<std::uint32_t, std::uint32_t, bool>>{
           {1, 3, true}, {4, 2, false}, {7, 1, false}, {8, 16, false}})
    EXPECT_EQ(is_understood_in(Family::ipv6, load(std::string(size, '\0')), nh, offset, size), is_free) << offset;
  EXPECT_FALSE(is_understood_in(Family::ipv4, load("22"), th, 14, 2)) << "window";
  EXPECT_FALSE(is_understood_in(Family::ipv4, load("222222"), ll, 0, 6)) << "ether daddr";
  EXPECT_EQ(read(load("\3") + meta_set(NFT_META_PKTTYPE) + accept).find("-j ACCEPT"), std::string::npos);
  const std::string maxseg = attribute(NFTA_EXTHDR_TYPE, "\2") + number(NFTA_EXTHDR_OP, NFT_EXTHDR_OP_TCPOPT) +
                             number(NFTA_EXTHDR_OFFSET, 2) + number(NFTA_EXTHDR_LEN, 2);
  const std::string set_maxseg = expression("exthdr", maxseg + number(NFTA_EXTHDR_SREG, 1));
  EXPECT_EQ(read(load(port(1400)) + set_maxseg), " tcp option maxseg size set 0578");
  EXPECT_EQ(read(load(port(1400)) + set_maxseg + accept),
            " tcp option maxseg size set 0578 |  tcp option maxseg size set 0578 -j ACCEPT")
      << "it may break off the rule";
  EXPECT_EQ(read(expression("exthdr", maxseg + number(NFTA_EXTHDR_DREG, 1)) + eq(port(1400)) + accept),
            " tcp option maxseg size 1400 -j ACCEPT");
}

TEST(NftReader, Tproxy) {
  const std::string tproxy = load(port(15006)) + expression("tproxy", number(NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC) +
                                                                          number(NFTA_TPROXY_REG_PORT, 1));
  const std::string mark = load(host(0x539)) + meta_set(NFT_META_MARK);
  EXPECT_EQ(read(tcp_expressions + tproxy + mark + accept),
            " -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006");
  EXPECT_EQ(read(tcp_expressions + tproxy + accept), " -p tcp -j TPROXY --tproxy-mark 0/0x0 --on-port 15006");
  EXPECT_EQ(read(tcp_expressions + tproxy + meta(NFT_META_MARK) + bitwise(host(0xffffff00), host(5)) +
                 meta_set(NFT_META_MARK) + accept),
            " -p tcp -j TPROXY --tproxy-mark 5/0xff --on-port 15006");
  EXPECT_EQ(read(tcp_expressions + tproxy), " -p tcp tproxy to :15006 without accept");
  EXPECT_EQ(read(tcp_expressions + tproxy + mark + mark + accept), " -p tcp a statement after tproxy");
  EXPECT_EQ(read(tcp_expressions + tproxy + verdict(NF_DROP)), " -p tcp tproxy and another verdict");
  EXPECT_EQ(read(tproxy + tcp_expressions + accept), " a match after tproxy");
  EXPECT_EQ(read(tproxy + meta(NFT_META_CPU) + eq(host(1)) + accept), " a match after tproxy");
  EXPECT_EQ(read(tproxy + expression("notrack", "") + accept), " a statement after tproxy");
  EXPECT_EQ(read(tproxy + tproxy + accept), " tproxy to an unknown port");
  EXPECT_EQ(read(expression("tproxy", number(NFTA_TPROXY_REG_PORT, 1)) + accept), " tproxy to an unknown port");
  EXPECT_EQ(
      read(load(port(1)) + expression("tproxy", number(NFTA_TPROXY_REG_PORT, 1) + number(NFTA_TPROXY_REG_ADDR, 1))),
      " tproxy to an unknown port");
  const std::string to_address =
      expression("tproxy", number(NFTA_TPROXY_FAMILY, NFPROTO_IPV4) + number(NFTA_TPROXY_REG_PORT, 1) +
                               number(NFTA_TPROXY_REG_ADDR, 2));
  EXPECT_EQ(read(load(port(15006)) + load(std::string("\x7f\0\0\1", 4), 2) + to_address), " tproxy to 127.0.0.1:15006");
  EXPECT_EQ(read(tproxy + dport(lookup("decide", to_verdict))), " vmap @decide");
}

TEST(NftReader, WhatARuleChangesBeforeItGoesOn) {
  const std::string mark = load(host(0x539)) + meta_set(NFT_META_MARK);
  EXPECT_EQ(read(mark), " -j MARK --set-mark 1337");
  EXPECT_EQ(read(mark + accept), " -j MARK --set-mark 1337 |  -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + eq(host(1)) + mark + accept),
            " -m mark --mark 1 -j MARK --set-mark 1337 |  -m mark --mark 1 -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + eq(host(1)) + mark + accept),
            " -m connmark --mark 1 -j MARK --set-mark 1337 |  -m connmark --mark 1 -j ACCEPT");
  // Of the ways in which a rule can hold, all have the same in front.
  const auto ways = [](std::string text) {
    return fmt::format(fmt::runtime(text), " -p tcp --dport 80", " -p udp --dport 80",
                       " ! -p tcp ! -p udp ports of any protocol");
  };
  EXPECT_EQ(read(meta(NFT_META_MARK) + eq(host(1)) + dport(eq(port(80))) + mark + accept),
            ways(" -m mark --mark 1{0} -j MARK --set-mark 1337 |  -m mark --mark 1{1} -j MARK --set-mark 1337 | "
                 " -m mark --mark 1{2} -j MARK --set-mark 1337 |  -m mark --mark 1{0} -j ACCEPT | "
                 " -m mark --mark 1{1} -j ACCEPT |  -m mark --mark 1{2} -j ACCEPT"));
  EXPECT_THAT(read(dport(eq(port(80))) + meta(NFT_META_MARK) + eq(host(1)) + mark + accept),
              ::testing::HasSubstr("-p tcp --dport 80 a match of what this rule changes -j ACCEPT"));
  EXPECT_EQ(read(mark + meta(NFT_META_MARK) + eq(host(1)) + accept),
            " -j MARK --set-mark 1337 |  -m mark --mark 1 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK, 2) + mark + eq(host(1), 2) + accept),
            " -j MARK --set-mark 1337 |  meta mark 1 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + bitwise(host(0xf0), host(3)) + meta_set(NFT_META_MARK)),
            " -j MARK --set-xmark 0x3/0xffffff0f");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + meta_set(NFT_META_MARK)), " -j CONNMARK --restore-mark");
  EXPECT_EQ(read(meta(NFT_META_MARK) + ct_set(NFT_CT_MARK)), " -j CONNMARK --save-mark");
  EXPECT_EQ(read(meta(NFT_META_MARK) + meta_set(NFT_META_MARK)), " meta mark set meta mark");
  EXPECT_EQ(read(meta(NFT_META_CPU) + meta_set(NFT_META_MARK)), " meta mark set meta cpu");
  EXPECT_EQ(read(load(host(5)) + ct_set(NFT_CT_MARK)), " -j CONNMARK --set-xmark 0x5/0xffffffff");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + bitwise(host(0xf0), host(3)) + ct_set(NFT_CT_MARK)),
            " -j CONNMARK --set-xmark 0x3/0xffffff0f");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + ct_set(NFT_CT_MARK)), " ct [2:00000003 4:00000001]");
  // What is no mark, or a changed one, of the other.
  EXPECT_EQ(read(ct(NFT_CT_ID) + meta_set(NFT_META_MARK)), " meta mark set ct id");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + byteorder() + meta_set(NFT_META_MARK)), " meta mark set ct mark");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + bitwise(host(1), host(0)) + meta_set(NFT_META_MARK)),
            " -j CONNMARK --restore-mark --nfmask 0xffffffff --ctmask 0x1");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + bitwise(host(1), host(2)) + meta_set(NFT_META_MARK)),
            " meta mark set ct mark & 01000000 ^ 02000000");
  EXPECT_EQ(read(meta(NFT_META_CPU) + bitwise(host(1), host(0)) + meta_set(NFT_META_MARK)),
            " meta mark set meta cpu & 01000000 ^ 00000000");
  EXPECT_EQ(read(meta(NFT_META_MARK) + bitwise(host(1), host(0)) + ct_set(NFT_CT_MARK)),
            " -j CONNMARK --save-mark --nfmask 0x1 --ctmask 0xffffffff");
  EXPECT_EQ(read(meta(NFT_META_MARK) + bitwise(host(1), host(2)) + ct_set(NFT_CT_MARK)), " ct [2:00000003 4:00000001]");
  EXPECT_EQ(read(meta(NFT_META_MARK) + byteorder() + ct_set(NFT_CT_MARK)), " ct [2:00000003 4:00000001]");
  EXPECT_EQ(read(meta(NFT_META_CPU) + ct_set(NFT_CT_MARK)), " ct [2:00000003 4:00000001]");
  EXPECT_EQ(read(ct(NFT_CT_ID) + bitwise(host(1), host(0)) + ct_set(NFT_CT_MARK)), " ct [2:00000003 4:00000001]");
  // Loaded before the rule has changed it.
  const std::string other_mark = load(host(0x539), 2) + meta_set(NFT_META_MARK, 2);
  const std::string set_mark = " -j MARK --set-mark 1337 | ";
  EXPECT_EQ(read(meta(NFT_META_MARK) + other_mark + bitwise(host(0xff), host(0)) + eq(host(5)) + accept),
            " -j MARK --set-mark 1337 |  meta mark & 0xff == 0x5 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + other_mark + byteorder() + eq(net(5U)) + accept),
            " -j MARK --set-mark 1337 |  meta mark 5 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + other_mark + bitwise(host(0xff), host(0)) + meta_set(NFT_META_MARK)),
            set_mark + " meta mark set meta mark & ff000000 ^ 00000000");
  EXPECT_EQ(read(meta(NFT_META_MARK) + other_mark + ct_set(NFT_CT_MARK)), set_mark + " ct [2:00000003 4:00000001]");
  EXPECT_EQ(
      read(meta(NFT_META_MARK) + other_mark + meta(NFT_META_L4PROTO, NFT_REG32_01) + lookup("mark.protocol") + accept),
      set_mark + " meta mark . meta l4proto @mark.protocol -j ACCEPT");
  EXPECT_EQ(
      read(other_mark + meta(NFT_META_MARK) + meta(NFT_META_L4PROTO, NFT_REG32_01) + lookup("mark.protocol") + accept),
      set_mark + " -m mark --mark 5 -p tcp -j ACCEPT");
  EXPECT_EQ(
      read(ct(NFT_CT_MARK) + load(host(1), 2) +
           expression("ct", number(NFTA_CT_KEY, NFT_CT_MARK) + number(NFTA_CT_SREG, 2)) + meta_set(NFT_META_MARK)),
      " -j CONNMARK --set-xmark 0x1/0xffffffff |  meta mark set ct mark");
  EXPECT_EQ(read(load(std::string("\1\0", 2)) + ct_set(NFT_CT_ZONE)), " -j CT --zone 1");
  EXPECT_EQ(read(load(std::string("\1\0", 2)) + ct_set(NFT_CT_ZONE, number(NFTA_CT_DIRECTION, 0))),
            " ct [2:00000011 3:00000000 4:00000001]");
  EXPECT_EQ(read(meta(NFT_META_CPU) + ct_set(NFT_CT_ZONE)), " ct [2:00000011 4:00000001]");
  EXPECT_EQ(read(load(host(5)) + ct_set(NFT_CT_MARK, number(NFTA_CT_DIRECTION, 0))),
            " ct [2:00000003 3:00000000 4:00000001]");
  EXPECT_EQ(read(load(host(5)) + ct_set(NFT_CT_LABELS)), " ct label set 05000000");
  for (const auto& [key, name] : std::initializer_list<std::pair<std::uint32_t, const char*>>{
           {NFT_META_PRIORITY, "priority"}, {NFT_META_NFTRACE, "nftrace"}, {NFT_META_SECMARK, "secmark"}})
    EXPECT_EQ(read(load(host(1)) + meta_set(key) + accept), fmt::format(" meta {} set 01000000 |  -j ACCEPT", name));
  EXPECT_EQ(read(load(host(1)) + meta_set(NFT_META_RTCLASSID) + accept), " meta rtclassid set 01000000");
  const std::string notrack = expression("notrack", "");
  EXPECT_EQ(read(notrack + accept), " -j CT --notrack |  -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_STATE) + eq(host(8)) + notrack + accept),
            " -m conntrack --ctstate NEW -j CT --notrack |  -m conntrack --ctstate NEW -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + eq(host(8)) + notrack + accept),
            " -m connmark --mark 8 -j CT --notrack |  -m connmark --mark 8 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + eq(host(8)) + notrack + accept),
            " -m mark --mark 8 -j CT --notrack |  -m mark --mark 8 -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + eq(host(8)) + meta(NFT_META_MARK) + ct_set(NFT_CT_MARK) + accept),
            " -m connmark --mark 8 -j CONNMARK --save-mark |  -m connmark --mark 8 -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_MARK) + eq(host(8)) + ct(NFT_CT_MARK) + meta_set(NFT_META_MARK) + accept),
            " -m mark --mark 8 -j CONNMARK --restore-mark |  -m mark --mark 8 -j ACCEPT");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + eq(host(8)) + load(host(1)) + ct_set(NFT_CT_MARK) + accept),
            " -m connmark --mark 8 -j CONNMARK --set-xmark 0x1/0xffffffff |  -m connmark --mark 8 -j ACCEPT");
}

TEST(NftReader, MapsOfVerdicts) {
  const auto decide = [](const std::string& set) { return tcp_expressions + dport(lookup(set, to_verdict)); };
  EXPECT_EQ(read(decide("decide")), " -p tcp --dport 22 -j ACCEPT |  -p tcp --dport 80:81 -g web");
  EXPECT_EQ(read(decide("decide all")),
            " -p tcp --dport 22 -j ACCEPT |  -p tcp --dport 80:81 -g web |  -p tcp -j DROP");
  EXPECT_EQ(read(decide("jumps")), " -p tcp --dport 22 -j ssh");
  EXPECT_EQ(read(decide("jumps") + accept), " -p tcp vmap @jumps");
  EXPECT_EQ(read(decide("jumps all")), " -p tcp vmap @jumps all");
  EXPECT_EQ(read(decide("no verdicts")), " @no verdicts is empty");
  EXPECT_EQ(read(decide("never")), " @never is empty");
  EXPECT_EQ(read(decide("one of two")), " -p tcp --dport 22 -j ACCEPT");
  EXPECT_EQ(read(decide("go on")), " -p tcp --dport 22");
  EXPECT_EQ(read(decide("go on") + accept), " -p tcp vmap @go on");
  EXPECT_EQ(read(meta(NFT_META_NFPROTO) + lookup("families", to_verdict)),
            "ipv4  -j ACCEPT | ipv6  -j DROP |  -j RETURN");
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + meta(NFT_META_CPU, NFT_REG32_01) + lookup("protocol.cpu", to_verdict)),
            " meta l4proto . meta cpu in @protocol.cpu -j DROP");
  EXPECT_EQ(read(ct(NFT_CT_MARK) + lookup("marks", to_verdict)), " vmap @marks");
  EXPECT_EQ(read(decide("ports")), " -p tcp vmap @ports: ");
  EXPECT_EQ(read(decide("missing")), " -p tcp vmap @missing");
  EXPECT_EQ(read(tcp_expressions + dport(lookup("decide", to_verdict + inverted))), " -p tcp vmap @decide: ");
  EXPECT_EQ(read(meta(NFT_META_MARK) + lookup("marks", to_verdict)), " vmap @marks");
  EXPECT_EQ(read(meta(NFT_META_MARK) + lookup("marks end", to_verdict)), " -m mark --mark 1 -j DROP");
  EXPECT_EQ(read(meta(NFT_META_CPU) + lookup("marks end", to_verdict)), " meta cpu in @marks end -j DROP");
  EXPECT_EQ(read(meta(NFT_META_SKUID) + lookup("marks", to_verdict)), " -m owner --uid-owner 1 -j one");
}

TEST(NftReader, WhatHasNoWords) {
  std::string all = "\n";
  for (const char* name :
       {"limit",  "quota", "connlimit", "dynset", "flow_offload", "log",   "last",  "fib", "socket",   "rt",      "osf",
        "exthdr", "hash",  "numgen",    "xfrm",   "tunnel",       "inner", "queue", "fwd", "synproxy", "tomorrow"})
    all += fmt::format("{}:{}\n", name, read(expression(name, "") + accept));
  for (std::uint32_t type = 0; type <= 11; ++type)
    all += fmt::format("{}:{}\n", type, read(expression("objref", number(NFTA_OBJREF_IMM_TYPE, type)) + accept));
  EXPECT_EQ(all, R"(
limit: limit -j ACCEPT
quota: quota -j ACCEPT
connlimit: connlimit -j ACCEPT
dynset: dynset -j ACCEPT
flow_offload: flow_offload -j ACCEPT
log: log |  -j ACCEPT
last: last |  -j ACCEPT
fib: fib -j ACCEPT
socket: socket -j ACCEPT
rt: rt -j ACCEPT
osf: osf -j ACCEPT
exthdr: exthdr -j ACCEPT
hash: hash -j ACCEPT
numgen: numgen -j ACCEPT
xfrm: xfrm -j ACCEPT
tunnel: tunnel -j ACCEPT
inner: inner -j ACCEPT
queue: queue
fwd: fwd
synproxy: synproxy
tomorrow: tomorrow
0: objref [1:00000000]
1: objref [1:00000001] |  -j ACCEPT
2: objref [1:00000002] -j ACCEPT
3: objref [1:00000003] |  -j ACCEPT
4: objref [1:00000004] -j ACCEPT
5: objref [1:00000005] -j ACCEPT
6: objref [1:00000006] |  -j ACCEPT
7: objref [1:00000007] |  -j ACCEPT
8: objref [1:00000008] |  -j ACCEPT
9: objref [1:00000009] |  -j ACCEPT
10: objref [1:0000000a]
11: objref [1:0000000b]
)");
  EXPECT_EQ(read(tcp_expressions + expression("reject", number(NFTA_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH) +
                                                            attribute(NFTA_REJECT_ICMP_CODE, "\x03"))),
            " -p tcp reject with icmp port-unreachable");
  EXPECT_EQ(read(expression("reject", number(NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST))), " reject with tcp reset");
  // An attribute that is not known.
  EXPECT_EQ(read(expression("notrack", number(1, 5))), " notrack [1:00000005]");
  EXPECT_EQ(read(tcp_expressions + expression("redir", number(9, 5)) + accept), " -p tcp redir [9:00000005]");
  EXPECT_EQ(read(expression("notrack", number(40, 5))), " notrack");  // and one of a later kernel's numbers
  EXPECT_EQ(read(expression("notrack", number(0x3fff, 5))), " notrack");
  EXPECT_EQ(read(expression("notrack", number(31, 5))), " notrack [31:00000005]");
  EXPECT_EQ(read(nested(NFTA_LIST_ELEM, attribute(NFTA_EXPR_NAME, std::string("notrack", 8)) + number(3, 5)) + accept),
            " notrack");
  EXPECT_EQ(read(tcp_expressions +
                 dport(expression("cmp", number(NFTA_CMP_SREG, 1) + number(NFTA_CMP_OP, NFT_CMP_EQ) +
                                             nested(NFTA_CMP_DATA, attribute(NFTA_DATA_VERDICT, "")))) +
                 accept),
            " -p tcp : cmp [1:00000001 2:00000000 3:04000200] -j ACCEPT");
  // What fib loads is in no register that is known.
  EXPECT_EQ(read(meta(NFT_META_L4PROTO) + expression("fib", number(1, 1)) + eq("\x06") + accept),
            " fib [1:00000001] fib [1:00000001]: cmp [1:00000001 2:00000000 3:0500010006000000] -j ACCEPT");
}

// In a table of family arp or bridge: what packets of IP have is asked of no frame.
TEST(NftReader, Frames) {
  EXPECT_EQ(read_frames(accept), " -j ACCEPT");
  EXPECT_EQ(read_frames(verdict(NFT_JUMP, "X")), " -j X");
  EXPECT_EQ(read_frames(expression("counter", "") + verdict(NF_DROP)), " -j DROP");
  EXPECT_EQ(read_frames(expression("log", "") + accept), " log |  -j ACCEPT");
  EXPECT_EQ(read_frames(expression("limit", "") + accept), " limit -j ACCEPT");
  EXPECT_EQ(read_frames(expression("reject", number(NFTA_REJECT_TYPE, NFT_REJECT_TCP_RST))), " reject with tcp reset");
  EXPECT_EQ(read_frames(tcp_expressions + accept),
            " meta [1:00000001 2:00000010] cmp [1:00000001 2:00000000 3:0500010006000000] -j ACCEPT");
  for (const char* name : {"meta", "payload", "cmp", "bitwise", "byteorder", "ct", "range", "match"})
    EXPECT_EQ(read_frames(expression(name, "") + accept), fmt::format(" {} -j ACCEPT", name));
  EXPECT_EQ(read_frames(load("\x06") + accept), " immediate [1:00000001 2:0500010006000000] -j ACCEPT");
  EXPECT_EQ(read_frames(lookup("ports") + accept), " lookup [1:706f72747300 2:00000001] -j ACCEPT");
  EXPECT_EQ(read_frames(lookup("decide", to_verdict)), " lookup [1:64656369646500 2:00000001 3:00000000]");
  for (const char* name : {"target", "nat", "redir", "notrack", "fib", "dup", "tomorrow"})
    EXPECT_EQ(read_frames(expression(name, "") + accept), fmt::format(" {}", name));
}

// As iptables-nft has them, where nf_tables has no words of its own.
TEST(NftReader, ExtensionsOfXtables) {
  const auto extension = [](const char* kind, const std::string& name, std::uint32_t revision,
                            const std::string& info) {
    return expression(kind, attribute(NFTA_MATCH_NAME, name + '\0') + number(NFTA_MATCH_REV, revision) +
                                attribute(NFTA_MATCH_INFO, info));
  };
  const std::string mark = extension("match", "mark", 1, host(5) + host(~0U) + std::string(8, '\0'));
  EXPECT_EQ(read(mark + accept), " -m mark --mark 5 -j ACCEPT");
  EXPECT_EQ(read(extension("match", "mark", 2, host(5)) + accept), " -m mark [rev 2, 4 bytes: 05] -j ACCEPT");
  EXPECT_EQ(read(mark + extension("target", "MARK", 2, host(7) + host(~0U))), " -m mark --mark 5 -j MARK --set-mark 7");
  EXPECT_EQ(read(mark + extension("target", "MARK", 2, host(7) + host(~0U)) + accept),
            " -m mark --mark 5 -j MARK --set-mark 7 |  -m mark --mark 5 -j ACCEPT");
  EXPECT_EQ(read(extension("target", "LOG", 0, "") + accept), " -j LOG [rev 0, 0 bytes: all zero] |  -j ACCEPT");
  EXPECT_EQ(read(extension("target", "NFQUEUE", 0, "")), " -j NFQUEUE [rev 0, 0 bytes: all zero]");
}

// One rule of the kernel becomes 1024 of iptables at most by conditions, of one of them 32.
TEST(NftReader, AsManyAlternativesAsThereMayBe) {
  const std::string protocols = meta(NFT_META_L4PROTO) + cmp(NFT_CMP_LT, "\x20");
  const std::string in = meta(NFT_META_IIFNAME) + lookup("32 names");
  const std::string out = meta(NFT_META_OIFNAME) + lookup("2 names");
  EXPECT_EQ(rules_of(protocols + in + accept).size(), 1024U);
  EXPECT_TRUE(read(protocols + in + accept).ends_with(" -p 31 -i eth31 -j ACCEPT"));
  const auto too_many = rules_of(protocols + in + out + accept);
  ASSERT_EQ(too_many.size(), 1024U);
  EXPECT_EQ(words({too_many.front()}), " -p 0 -i eth0 a condition of too many parts -j ACCEPT");
  EXPECT_EQ(read(meta(NFT_META_IIFNAME) + lookup("33 names") + accept), " meta iifname @33 names -j ACCEPT");
}

// However the parts are put together.
TEST(NftReader, NoRuleBecomesMoreThanThereMayBe) {
  const std::string protocols = meta(NFT_META_L4PROTO) + cmp(NFT_CMP_LT, "\x20");
  const std::string in = meta(NFT_META_IIFNAME) + lookup("32 names");
  const std::string out = meta(NFT_META_OIFNAME) + lookup("32 names");
  const std::string decide = transport(2, 2) + lookup("1024 ports", to_verdict);
  const auto of_map = rules_of(protocols + in + decide);
  EXPECT_EQ(of_map.size(), 1024U);
  EXPECT_EQ(words({of_map.front()}), " -p 0 -i eth0 vmap @1024 ports: too many elements");
  // A map alone is as many rules as it has elements.
  EXPECT_EQ(rules_of(tcp_expressions + decide).size(), 1024U);
  EXPECT_EQ(read(tcp_expressions + decide).substr(0, 34), " -p tcp --dport 0 -j ACCEPT |  -p ");
  // Alternatives of each element.
  const std::string two =
      meta(NFT_META_L4PROTO) + meta(NFT_META_IIFNAME, NFT_REG32_01) + lookup("1024 keys", to_verdict);
  EXPECT_LE(rules_of(protocols + two).size(), 1024U);
  const std::string member = meta(NFT_META_L4PROTO) + meta(NFT_META_IIFNAME, NFT_REG32_01) + lookup("1024 keys");
  EXPECT_LE(rules_of(protocols + out + member + accept).size(), 1024U);
  // What the rule does on the way is a rule each time.
  std::string marks = protocols + in;
  for (int i = 0; i < 20; ++i) marks += load(host(7)) + meta_set(NFT_META_MARK);
  const auto marked = rules_of(marks + accept);
  EXPECT_EQ(marked.size(), 16385U);
  EXPECT_EQ(words({marked.back()}), " a rule of too many parts a rule of too many parts");
}

// Each alternative has all values of the rule's lists: some are too long to be there a thousand times.
TEST(NftReader, LongListsAreNotCopiedOften) {
  const std::string protocols = meta(NFT_META_L4PROTO) + cmp(NFT_CMP_LT, "\x20");
  const std::string in = meta(NFT_META_IIFNAME) + lookup("32 names");
  const std::string big = network(12, 4) + lookup("4096 addresses");
  const auto values = [](const std::vector<LiveRule>& rules) {
    std::size_t count = 0;
    for (const LiveRule& live : rules) {
      for (const Match& match : live.rule.matches) {
        if (const auto* address = std::get_if<AddressMatch>(&match)) count += address->ranges.size();
      }
    }
    return count;
  };
  EXPECT_EQ(values(rules_of(big + accept, Family::ipv4)), 4096U);
  EXPECT_EQ(values(rules_of(in + big + accept, Family::ipv4)), 32U * 4096);
  for (const std::string& rule :
       {protocols + in + big + accept, big + protocols + in + accept, protocols + big + in + accept,
        big + transport(2, 2) + lookup("1024 ports", to_verdict)})
    EXPECT_LE(values(rules_of(rule, Family::ipv4)), 1U << 20);
}

TEST(NftReader, CountersAreOfTheFirstRuleThatItStandsFor) {
  const std::string counter = expression("counter", attribute(NFTA_COUNTER_BYTES, net(std::uint64_t{0x1122334455})) +
                                                        attribute(NFTA_COUNTER_PACKETS, net(std::uint64_t{9})));
  const auto rules = rules_of(counter + dport(eq(port(80))) + accept);
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].counters, (Counters{9, 0x1122334455}));
  EXPECT_EQ(rules[1].counters, Counters{});
  EXPECT_EQ(rules[2].counters, Counters{});
}

}  // namespace
}  // namespace sidetrack::nft
