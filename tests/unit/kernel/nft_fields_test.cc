// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's numbers for hooks, families and types, and comments within what nft reads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/netfilter.h>

#include "kernel/nft/names.h"
#include "kernel/nft/native.h"
#include "rule/nft/fields.h"

namespace sidetrack::nft {
namespace {

TEST(NftFields, HooksOfEachFamily) {
  const auto hooks = [](std::uint8_t family) {
    std::string names;
    for (std::uint32_t number = 0; number < 8; ++number) {
      const auto hook = hook_of(family, number);
      names += fmt::format("{} ", hook ? hook_text({*hook, -100, ChainType::nat, ""}).substr(14) : "-");
    }
    return names;
  };
  constexpr const char* of_ip =
      "prerouting priority -100 input priority -100 forward priority -100 output priority -100 postrouting priority "
      "-100 ingress priority -100 - - ";
  EXPECT_EQ(hooks(NFPROTO_INET), of_ip);
  EXPECT_EQ(hooks(NFPROTO_IPV4), of_ip);
  EXPECT_EQ(hooks(NFPROTO_IPV6), of_ip);
  EXPECT_EQ(hooks(NFPROTO_NETDEV), "ingress priority -100 egress priority -100 - - - - - - ");
  EXPECT_EQ(hooks(NFPROTO_ARP), "input priority -100 output priority -100 - - - - - - ");
  for (const Hook hook : all_hooks) EXPECT_EQ(hook_of(NFPROTO_INET, hook_number(hook)), hook);
}

TEST(NftFields, Types) {
  for (const ChainType type : all_chain_types) EXPECT_EQ(type_named(name(type)), type);
  EXPECT_EQ(hook_text({Hook::output, 0, ChainType::route, ""}), "type route hook output priority 0");
  EXPECT_FALSE(type_named("bridge"));
  EXPECT_FALSE(type_named(""));
}

TEST(NftFields, TablesAsNftNamesThem) {
  EXPECT_EQ(text(TableKey{NFPROTO_INET, "sidetrack"}), "inet sidetrack");
  EXPECT_EQ(text(TableKey{NFPROTO_IPV4, "nat"}), "ip nat");
  EXPECT_EQ(text(TableKey{NFPROTO_IPV6, "nat"}), "ip6 nat");
  EXPECT_EQ(text(TableKey{NFPROTO_ARP, "filter"}), "arp filter");
  EXPECT_EQ(text(TableKey{NFPROTO_NETDEV, "t"}), "netdev t");
  EXPECT_EQ(text(TableKey{NFPROTO_BRIDGE, "t"}), "bridge t");
  EXPECT_EQ(text(TableKey{99, "t"}), "family 99 t");
}

TEST(NftFields, CommentsAreWithinWhatNftReads) {
  EXPECT_EQ(comment("", "a sentence"), "a sentence");
  EXPECT_EQ(comment("-d 15090", "left to the app"), "-d 15090: left to the app");
  EXPECT_EQ(comment("", "a \"word\"\tand\n\x1f"), "a 'word' and  ");
  EXPECT_EQ(comment("", " !~é"), " !~é");
  EXPECT_EQ(comment("", std::string(127, 'a')), std::string(127, 'a'));
  EXPECT_EQ(comment("", std::string(128, 'a')), " …");  // no word of it is within
  EXPECT_EQ(comment("", std::string(123, 'a') + " bbbb"), std::string(123, 'a') + " …");
  EXPECT_EQ(comment("", std::string(124, 'a') + " bbb"), " …");
  EXPECT_EQ(comment("", std::string(100, 'a') + " b " + std::string(60, 'c')), std::string(100, 'a') + " b …");
}

TEST(NftFields, APrefixIsComparedByWholeBytesOrWithItsMask) {
  const auto said = [](const char* range, bool negated) {
    std::vector<Expression> expressions;
    const AddressRange parsed = *AddressRange::parse(range);
    compare_prefix(parsed, address_field(parsed.family(), End::destination), negated, expressions);
    std::string text;
    for (const Expression& each : expressions) {
      if (const auto* load = std::get_if<PayloadLoad>(&each))
        text += fmt::format("payload {}@{} ", load->size, load->offset);
      if (const auto* compare = std::get_if<Compare>(&each))
        text += fmt::format("cmp {}:{:02x} ", compare->operation == NFT_CMP_EQ ? "eq" : "neq",
                            fmt::join(compare->with.view(), ""));
      if (const auto* bits = std::get_if<Bitwise>(&each))
        text += fmt::format("bitwise {:02x}^{:02x} ", fmt::join(bits->mask.view(), ""),
                            fmt::join(bits->xor_value.view(), ""));
    }
    return text;
  };
  EXPECT_EQ(said("10.1.2.3/32", false), "payload 4@16 cmp eq:0a010203 ");
  EXPECT_EQ(said("10.1.2.0/24", true), "payload 3@16 cmp neq:0a0102 ");
  EXPECT_EQ(said("10.0.0.0/8", false), "payload 1@16 cmp eq:0a ");
  EXPECT_EQ(said("10.16.0.0/12", false), "payload 4@16 bitwise fff00000^00000000 cmp eq:0a100000 ");
  EXPECT_EQ(said("0.0.0.0/0", false), "payload 4@16 bitwise 00000000^00000000 cmp eq:00000000 ");
  EXPECT_EQ(said("fd00::/16", false), "payload 2@24 cmp eq:fd00 ");
  EXPECT_EQ(said("fd00::/9", true),
            "payload 16@24 bitwise ff800000000000000000000000000000^00000000000000000000000000000000 cmp "
            "neq:fd000000000000000000000000000000 ");
}

}  // namespace
}  // namespace sidetrack::nft
