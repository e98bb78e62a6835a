// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel lists of its sets, much like a real one: what is not understood is not taken for something else.
#include "kernel/ipset/ipset.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/netfilter.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nfnetlink.h>

#include <cstring>
#include <functional>

#include "kernel/netlink/request.h"

namespace sidetrack::ipset {
namespace {

using netlink::Request;

struct Message : Request {
  explicit Message(const char* name, int number = -1) : Request(NFNL_SUBSYS_IPSET << 8, 0, nfgenmsg{}) {
    if (name != nullptr) put(IPSET_ATTR_SETNAME, std::string(name));
    if (number >= 0) put_number(IPSET_ATTR_INDEX, htons(static_cast<std::uint16_t>(number)));
  }
  template <typename Number>
  void put_number(int type, Number number) {
    std::uint8_t bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    put(type, std::span<const std::uint8_t>(bytes));
  }
  Message& of_type(const char* type, std::uint8_t family) {
    put(IPSET_ATTR_TYPENAME, std::string(type));
    put(IPSET_ATTR_FAMILY, family);
    return *this;
  }
  Message& created(const std::function<void(Message&)>& how) {
    nest(IPSET_ATTR_DATA, [&] { how(*this); });
    return *this;
  }
  Message& elements(const std::function<void(Message&)>& of) {
    nest(IPSET_ATTR_ADT, [&] { of(*this); });
    return *this;
  }
  void element(
      int type, std::vector<std::uint8_t> address, const std::function<void(Message&)>& more = [](Message&) {}) {
    nest(IPSET_ATTR_DATA, [&] {
      nest(IPSET_ATTR_IP, [&] { put(type, std::span<const std::uint8_t>(address)); });
      more(*this);
    });
  }
  void ipv4(
      std::uint8_t last, const std::function<void(Message&)>& more = [](Message&) {}) {
    element(IPSET_ATTR_IPADDR_IPV4, {10, 0, 0, last}, more);
  }
  void add_to(Sets::Fetched& all) const { all.emplace_back(bytes().begin(), bytes().end()); }
};

// "5 NAME: 10.0.0.1/32", "?" where what it holds is not known.
std::string read(const Sets::Fetched& messages) {
  std::string text;
  for (const auto& [number, set] : Sets::decoded(messages)) {
    text += fmt::format("{} {}:", number, set.name);
    if (!set.members) text += " ?";
    if (set.members) {
      for (const AddressRange& each : *set.members) text += " " + each.text();
    }
    text += "\n";
  }
  return text;
}
std::string read(const Message& one) {
  Sets::Fetched all;
  one.add_to(all);
  return read(all);
}

const auto plainly = [](Message&) {};

TEST(Ipset, TheKindOfASet) {
  const auto of = [](const char* type, std::uint8_t family, const std::function<void(Message&)>& how = plainly) {
    return read(Message("s", 5).of_type(type, family).created(how));
  };
  EXPECT_EQ(of("hash:ip", NFPROTO_IPV4), "5 s:\n");
  EXPECT_EQ(of("hash:ip", NFPROTO_IPV6), "5 s:\n");
  EXPECT_EQ(of("hash:net", NFPROTO_IPV4), "5 s:\n");
  EXPECT_EQ(of("bitmap:ip", NFPROTO_IPV4), "5 s:\n");
  EXPECT_EQ(of("hash:ip,port", NFPROTO_IPV4), "5 s: ?\n");
  EXPECT_EQ(of("list:set", NFPROTO_UNSPEC), "5 s: ?\n");
  EXPECT_EQ(of("hash:ip", NFPROTO_IPV4, [](Message& data) { data.put(IPSET_ATTR_NETMASK, std::uint8_t{24}); }),
            "5 s: ?\n");
  EXPECT_EQ(of("hash:ip", NFPROTO_IPV4, [](Message& data) { data.put(IPSET_ATTR_TIMEOUT, std::uint32_t{9}); }),
            "5 s: ?\n");
  EXPECT_EQ(of("hash:ip", NFPROTO_IPV4,
               [](Message& data) {
                 data.put(IPSET_ATTR_TIMEOUT, std::uint32_t{9});
                 data.put(IPSET_ATTR_NETMASK, std::uint8_t{24});
               }),
            "5 s: ?\n");
  EXPECT_EQ(of("hash:ip", NFPROTO_IPV4, [](Message& data) { data.put_number(IPSET_ATTR_REFERENCES, htonl(2)); }),
            "5 s:\n");
  EXPECT_EQ(read(Message("s", 5).of_type("hash:ip", NFPROTO_IPV4)), "5 s: ?\n") << "nothing says how";
  EXPECT_EQ(read(Message("s", 5).created(plainly)), "5 s: ?\n");
  EXPECT_EQ(read(Message(nullptr, 5).of_type("hash:ip", NFPROTO_IPV4)), "");
  EXPECT_EQ(read(Message("s").of_type("hash:ip", NFPROTO_IPV4)), "") << "no rule could ask for it";
}

TEST(Ipset, TheElementsOfASet) {
  const auto with = [](const std::function<void(Message&)>& elements) {
    const std::string text =
        read(Message("s", 5).of_type("hash:net", NFPROTO_IPV4).created(plainly).elements(elements));
    return text.substr(std::string_view("5 s:").size());
  };
  const auto of_bits = [](std::uint8_t bits) {
    return [bits](Message& element) { element.put(IPSET_ATTR_CIDR, bits); };
  };
  EXPECT_EQ(with([](Message& all) {
              all.ipv4(9);
              all.ipv4(2);
            }),
            " 10.0.0.2/32 10.0.0.9/32\n");
  EXPECT_EQ(with([&](Message& all) { all.ipv4(0, of_bits(8)); }), " 10.0.0.0/8\n");
  EXPECT_EQ(with([&](Message& all) { all.ipv4(7, of_bits(32)); }), " 10.0.0.7/32\n");
  EXPECT_EQ(with([&](Message& all) { all.ipv4(7, of_bits(33)); }), " ?\n");
  EXPECT_EQ(with([](Message& all) {
              all.element(IPSET_ATTR_IPADDR_IPV6, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
            }),
            " fd00::1/128\n");
  EXPECT_EQ(with([](Message& all) { all.element(IPSET_ATTR_IPADDR_IPV4, {10, 0, 0}); }), " ?\n");
  EXPECT_EQ(with([](Message& all) { all.element(IPSET_ATTR_IPADDR_IPV6, {10, 0, 0, 1}); }), " ?\n");
  EXPECT_EQ(with([](Message& all) { all.element(9, {10, 0, 0, 1}); }), " ?\n");
  EXPECT_EQ(with([](Message& all) { all.nest(IPSET_ATTR_DATA, [&] { all.put(IPSET_ATTR_CIDR, std::uint8_t{8}); }); }),
            " ?\n");
  EXPECT_EQ(with([](Message& all) {
              all.ipv4(1, [](Message& element) { element.put_number(IPSET_ATTR_TIMEOUT, htonl(5)); });
            }),
            " ?\n");
  EXPECT_EQ(with([](Message& all) {
              all.ipv4(1, [](Message& element) {
                element.put_number(IPSET_ATTR_CADT_FLAGS, htonl(std::uint32_t{IPSET_FLAG_NOMATCH}));
              });
            }),
            " ?\n");
  EXPECT_EQ(with([](Message& all) {
              all.ipv4(1, [](Message& element) {
                element.put_number(IPSET_ATTR_CADT_FLAGS, htonl(std::uint32_t{IPSET_FLAG_WITH_COMMENT}));
              });
            }),
            " 10.0.0.1/32\n");
  EXPECT_EQ(with([](Message& all) {
              all.put(IPSET_ATTR_LINENO, std::uint32_t{1});
              all.ipv4(1);
            }),
            " 10.0.0.1/32\n");
  EXPECT_EQ(with([](Message& all) {
              all.ipv4(1);
              all.element(9, {});
              all.ipv4(2);
            }),
            " ?\n")
      << "what is known of it is not all";
}

// The first message of a set alone says what it is.
TEST(Ipset, ASetInParts) {
  Sets::Fetched all;
  Message("a", 1)
      .of_type("hash:ip", NFPROTO_IPV4)
      .created(plainly)
      .elements([](Message& of) { of.ipv4(3); })
      .add_to(all);
  Message("b", 0).of_type("hash:ip", NFPROTO_IPV4).created(plainly).add_to(all);
  Message("a").elements([](Message& of) { of.ipv4(1); }).add_to(all);
  Message("b").elements([](Message& of) { of.ipv4(2); }).add_to(all);
  Message("unknown").elements([](Message& of) { of.ipv4(2); }).add_to(all);
  EXPECT_EQ(read(all), "0 b: 10.0.0.2/32\n1 a: 10.0.0.1/32 10.0.0.3/32\n");
  EXPECT_EQ(read(Sets::Fetched{}), "");
}

}  // namespace
}  // namespace sidetrack::ipset
