// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/address.h"

#include <gtest/gtest.h>

namespace sidetrack {
namespace {

std::string canonical(std::string_view text) {
  const auto range = AddressRange::parse(text);
  return range ? range->text() : "refused";
}

TEST(AddressRange, KeepsThePrefixAndClearsTheHostBits) {
  EXPECT_EQ(canonical("10.1.2.3/8"), "10.0.0.0/8");
  EXPECT_EQ(canonical("10.1.2.3"), "10.1.2.3/32");
  EXPECT_EQ(canonical("0.0.0.0/0"), "0.0.0.0/0");
  EXPECT_EQ(canonical("fd00::1/64"), "fd00::/64");
  EXPECT_EQ(canonical("::6"), "::6/128");
}

TEST(AddressRange, RefusesWhatIsNotOne) {
  for (const char* text : {"", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0/8", "::/129",
                           "10.0.0.256/8", "fd00::g/64", "host/8", " 10.0.0.0/8", "10.0.0.0/ 8"}) {
    EXPECT_EQ(canonical(text), "refused") << text;
  }
}

TEST(AddressRange, ThatIsNoCidrIsPrintedByItsEnds) {
  const AddressRange range{*Address::parse("10.0.0.1"), *Address::parse("10.0.0.9")};
  EXPECT_EQ(range.text(), "10.0.0.1-10.0.0.9");
  EXPECT_EQ(range.prefix_length(), std::nullopt);
}

TEST(AddressRange, MaskOfACidr) {
  EXPECT_EQ(AddressRange::parse("10.0.0.0/9")->mask().text(), "255.128.0.0");
  EXPECT_EQ(AddressRange::parse("fd00::/64")->mask().text(), "ffff:ffff:ffff:ffff::");
}

TEST(Merged, JoinsOverlappingAndAdjacentRanges) {
  std::vector<AddressRange> ranges;
  for (const char* text :
       {"10.128.0.0/9", "192.168.0.0/16", "10.0.0.0/9", "10.1.0.0/16", "255.255.255.255", "fd00::/8", "0.0.0.0"}) {
    ranges.push_back(*AddressRange::parse(text));
  }
  std::vector<std::string> texts;
  for (const AddressRange& range : merged(ranges)) texts.push_back(range.text());
  EXPECT_EQ(texts,
            (std::vector<std::string>{"0.0.0.0/32", "10.0.0.0/8", "192.168.0.0/16", "255.255.255.255/32", "fd00::/8"}));
}

TEST(Address, KnowsLoopbackAndLinkLocal) {
  EXPECT_TRUE(Address::parse("127.8.0.1")->is_loopback());
  EXPECT_TRUE(Address::parse("::1")->is_loopback());
  EXPECT_FALSE(Address::parse("::6")->is_loopback());
  EXPECT_TRUE(Address::parse("fe80::1")->is_link_local());
  EXPECT_TRUE(Address::parse("169.254.1.1")->is_link_local());
  EXPECT_FALSE(Address::parse("10.0.0.1")->is_link_local());
}

TEST(Address, DoesNotEndAtAZeroByte) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"10.0.0.1\0"sv, "10.0.0.1\0junk"sv, "\0"sv, "::1\0/8"sv, "10.0.0.0/8\0"sv}) {
    EXPECT_FALSE(Address::parse(text));
    EXPECT_FALSE(AddressRange::parse(text));
  }
}

}  // namespace
}  // namespace sidetrack
