// SPDX-License-Identifier: GPL-2.0-or-later
// The content of a register of nf_tables is in the order of the network or of the machine: the former is the same bytes
// on every machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "rule/nft/expression.h"

namespace sidetrack::nft {
namespace {

using ::testing::ElementsAre;

constexpr Data some_port = Data::network(std::uint16_t{0x1234});
constexpr Data id = Data::network(std::uint32_t{0x01020304});

// Known when compiled, so for every machine that this is compiled for.
static_assert(some_port.size == 2 && some_port.bytes[0] == 0x12 && some_port.bytes[1] == 0x34);
static_assert(id.size == 4 && id.bytes[0] == 1 && id.bytes[1] == 2 && id.bytes[2] == 3 && id.bytes[3] == 4);
static_assert(some_port.from_network<std::uint16_t>() == 0x1234 && id.from_network<std::uint32_t>() == 0x01020304);

TEST(NftData, NetworkOrderIsTheSameBytesEverywhere) {
  EXPECT_THAT(Data::network(std::uint16_t{15001}).view(), ElementsAre(0x3a, 0x99));
  EXPECT_THAT(Data::network(std::uint32_t{1337}).view(), ElementsAre(0, 0, 0x05, 0x39));
  EXPECT_THAT(Data::network(std::uint8_t{6}).view(), ElementsAre(6));
  // Ranges are compared byte by byte.
  EXPECT_LT(Data::network(std::uint32_t{255}), Data::network(std::uint32_t{256}));
  EXPECT_LT(Data::network(std::uint16_t{255}), Data::network(std::uint16_t{65535}));
}

TEST(NftData, HostOrderIsThatOfTheMachine) {
  const Data mark = Data::host(std::uint32_t{0x01020304});
  if constexpr (std::endian::native == std::endian::big) {
    EXPECT_THAT(mark.view(), ElementsAre(1, 2, 3, 4));
  } else {
    EXPECT_THAT(mark.view(), ElementsAre(4, 3, 2, 1));
  }
}

TEST(NftData, ReadsBackWhatItHolds) {
  for (const std::uint32_t number : {0U, 1U, 255U, 256U, 0x01020304U, 0xfffffffeU, 0xffffffffU}) {
    EXPECT_EQ(Data::host(number).to_host<std::uint32_t>(), number);
    EXPECT_EQ(Data::network(number).from_network<std::uint32_t>(), number);
    const auto half = static_cast<std::uint16_t>(number);
    EXPECT_EQ(Data::network(half).from_network<std::uint16_t>(), half);
  }
}

}  // namespace
}  // namespace sidetrack::nft
