// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/discovery_words.h"

#include <gtest/gtest.h>

namespace sidetrack {
namespace {

TEST(DiscoveryWords, AreUnderstood) {
  const struct {
    const char* words;
    Truth solicitation;
    Truth advertisement;
  } rows[] = {
      {"-m icmp6 --icmpv6-type 135", Truth::yes, Truth::no},
      {"-m icmp6 ! --icmpv6-type 135", Truth::no, Truth::yes},
      {"-m icmp6 --icmpv6-type 136/0", Truth::no, Truth::yes},
      {"-m icmp6 ! --icmpv6-type 135/1", Truth::yes, Truth::yes},
      {"--icmpv6-type neighbour-solicitation", Truth::yes, Truth::no},
      {"-m icmpv6 --icmpv6-type neighbor-advertisement", Truth::no, Truth::yes},
      {"-m icmp6 --icmpv6-type echo-request", Truth::no, Truth::no},
      {"-m icmp6 --icmpv6-type one-unknown", Truth::unknown, Truth::unknown},
      {"-m icmp6 --icmpv6-type 135 --more", Truth::unknown, Truth::unknown},
      {"-m icmp6 --icmpv6-type ! 135", Truth::unknown, Truth::unknown},
      {"-m icmp6 --icmpv6-type 135/", Truth::unknown, Truth::unknown},
      {"-m icmp6 --icmpv6-type", Truth::unknown, Truth::unknown},
      {"-m limit --icmpv6-type 135", Truth::unknown, Truth::unknown},
      {"-m hl --hl-eq 255", Truth::yes, Truth::yes},
      {"-m hl ! --hl-eq 255", Truth::no, Truth::no},
      {"-m hl --hl-eq 64", Truth::no, Truth::no},
      {"-m hl --hl-lt 255", Truth::no, Truth::no},
      {"-m hl --hl-gt 254", Truth::yes, Truth::yes},
      {"-m hl --hl-set 255", Truth::unknown, Truth::unknown},
      {"-m ttl --ttl-eq 255", Truth::unknown, Truth::unknown},
      {"-m limit --limit 5/sec", Truth::unknown, Truth::unknown},
      {"-m", Truth::unknown, Truth::unknown},
      {"", Truth::unknown, Truth::unknown},
      {"icmpv6 type nd-neighbor-solicit", Truth::yes, Truth::no},
      {"icmpv6 type != nd-neighbor-solicit", Truth::no, Truth::yes},
      {"icmpv6 type == 136", Truth::no, Truth::yes},
      {"icmpv6 type 0x87", Truth::yes, Truth::no},
      {"icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }", Truth::yes, Truth::yes},
      {"icmpv6 type { echo-request, 135 }", Truth::yes, Truth::no},
      {"icmpv6 type != { echo-request, 136 }", Truth::yes, Truth::no},
      {"icmpv6 type { 1-4, 136-137 }", Truth::no, Truth::yes},
      {"icmpv6 type { 135, one-unknown }", Truth::unknown, Truth::unknown},
      {"icmpv6 type { 135 : accept }", Truth::unknown, Truth::unknown},
      {"icmpv6 type . icmpv6 code { 135 . 0 }", Truth::unknown, Truth::unknown},
      {"icmpv6 type 133-137", Truth::yes, Truth::yes},
      {"icmpv6 type != 133-135", Truth::no, Truth::yes},
      {"icmpv6 type nd-neighbor-advert-nd-redirect", Truth::no, Truth::yes},
      {"icmpv6 type < nd-neighbor-advert", Truth::yes, Truth::no},
      {"icmpv6 type > 135", Truth::no, Truth::yes},
      {"icmpv6 type <= 135", Truth::yes, Truth::no},
      {"icmpv6 type >= 136", Truth::no, Truth::yes},
      {"icmpv6 type != < 136", Truth::unknown, Truth::unknown},
      {"icmpv6 type @types", Truth::unknown, Truth::unknown},
      {"icmpv6 type & 0x1 == 1", Truth::unknown, Truth::unknown},
      {"icmpv6 type", Truth::unknown, Truth::unknown},
      {"icmpv6 type !=", Truth::unknown, Truth::unknown},
      {"icmpv6 code 0", Truth::yes, Truth::yes},
      {"icmpv6 code no-route", Truth::yes, Truth::yes},
      {"icmpv6 code 1", Truth::no, Truth::no},
      {"ip6 hoplimit 255", Truth::yes, Truth::yes},
      {"ip6 hoplimit < 255", Truth::no, Truth::no},
      {"ip6 length 255", Truth::unknown, Truth::unknown},
      {"icmp type 135", Truth::unknown, Truth::unknown},
  };
  for (const auto& [words, solicitation, advertisement] : rows) {
    EXPECT_EQ(truth_of_discovery(words, 135), solicitation) << words;
    EXPECT_EQ(truth_of_discovery(words, 136), advertisement) << words;
  }
}

}  // namespace
}  // namespace sidetrack
