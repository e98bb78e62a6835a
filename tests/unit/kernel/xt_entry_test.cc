// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "model/error.h"
#include "rule/iptables.h"
#include "rule/xt/entry.h"

namespace sidetrack::xt {
namespace {

const ProtocolMatch tcp{Protocol::tcp, false};

Rule rule(Family family, std::vector<Match> matches, Target target = Verdict::return_) {
  return {family, Table::nat, "ISTIO_OUTPUT", std::move(matches), std::move(target), {}, {}};
}

AddressMatch address(End end, const char* range, bool negated = false) {
  return {end, {*AddressRange::parse(range)}, negated};
}

// What comes back: the label is what libiptc says of a standard target.
Rule round_trip(const Rule& wanted, Family family) {
  std::string label;
  if (const auto* jump = std::get_if<Jump>(&wanted.target)) label = jump->chain;
  if (const auto* verdict = std::get_if<Verdict>(&wanted.target)) {
    label = *verdict == Verdict::accept ? "ACCEPT" : *verdict == Verdict::drop ? "DROP" : "RETURN";
  }
  auto bytes = encode_entry(wanted, family);
  if (!label.empty()) {  // the kernel has no name in a standard target
    const std::size_t target = bytes.size() - sizeof(xt_standard_target);
    std::memset(bytes.data() + target + offsetof(xt_entry_target, u.user.name), 0, XT_EXTENSION_MAXNAMELEN);
  }
  const DecodedEntry decoded = decode_entry(bytes, label, family);
  return rule(family, decoded.matches, decoded.target);
}

template <typename Entry>
Entry header(const std::vector<std::byte>& bytes) {
  Entry entry;
  std::memcpy(&entry, bytes.data(), sizeof entry);
  return entry;
}

TEST(XtEntry, HeaderOfIpv4) {
  const auto bytes = encode_entry(rule(Family::ipv4, {InterfaceMatch{InterfaceDirection::in, "eth0", true},
                                                      InterfaceMatch{InterfaceDirection::out, "veth+", false}, tcp,
                                                      address(End::source, "10.1.0.0/16", true)}),
                                  Family::ipv4);
  const auto entry = header<ipt_entry>(bytes);
  EXPECT_STREQ(entry.ip.iniface, "eth0");
  EXPECT_EQ(entry.ip.iniface_mask[4], 0xff) << "the terminating zero is compared";
  EXPECT_EQ(entry.ip.iniface_mask[5], 0);
  EXPECT_STREQ(entry.ip.outiface, "veth+");
  EXPECT_EQ(entry.ip.outiface_mask[3], 0xff);
  EXPECT_EQ(entry.ip.outiface_mask[4], 0);
  EXPECT_EQ(entry.ip.src.s_addr, htonl(0x0a010000));
  EXPECT_EQ(entry.ip.smsk.s_addr, htonl(0xffff0000));
  EXPECT_EQ(entry.ip.proto, 6);
  EXPECT_EQ(entry.ip.flags, 0);
  EXPECT_EQ(entry.ip.invflags, IPT_INV_VIA_IN | IPT_INV_SRCIP);
  EXPECT_EQ(entry.target_offset, sizeof(ipt_entry));
  EXPECT_EQ(entry.next_offset, sizeof(ipt_entry) + 40);
  EXPECT_EQ(bytes.size(), entry.next_offset);
}

TEST(XtEntry, HeaderOfIpv6SaysThatTheProtocolCounts) {
  const auto entry = header<ip6t_entry>(encode_entry(rule(Family::ipv6, {tcp}), Family::ipv6));
  EXPECT_EQ(entry.ipv6.proto, 6);
  EXPECT_EQ(entry.ipv6.flags, IP6T_F_PROTO);
  EXPECT_EQ(header<ip6t_entry>(encode_entry(rule(Family::ipv6, {}), Family::ipv6)).ipv6.flags, 0);
}

TEST(XtEntry, RoundTrip) {
  const Target targets[] = {Verdict::accept, Verdict::drop, Verdict::return_, Jump{"ISTIO_IN_REDIRECT"},
                            Redirect{15001}, CtZone{1},     SetMark{1338}};
  for (const Target& target : targets) {
    const Rule v4 = rule(
        Family::ipv4,
        {InterfaceMatch{InterfaceDirection::out, "lo", false}, address(End::destination, "127.0.0.1/32", true), tcp,
         PortMatch{End::destination, {{15008, 15008}}, true}, OwnerMatch{OwnerKind::uid, {{1337, 1337}}, false}},
        target);
    EXPECT_EQ(round_trip(v4, Family::ipv4), v4) << iptables_words(v4);
    const Rule v6 = rule(Family::ipv6,
                         {address(End::source, "::6/128"), address(End::destination, "fd00::/8"), tcp,
                          InterfaceMatch{InterfaceDirection::in, "exactly15chars+", false}},
                         target);
    EXPECT_EQ(round_trip(v6, Family::ipv6), v6) << iptables_words(v6);
  }
  const Rule every = rule(Family::ipv4, {address(End::destination, "0.0.0.0/0")});
  EXPECT_EQ(round_trip(every, Family::ipv4), every);
}

TEST(XtEntry, WordsOfOthers) {
  auto bytes = encode_entry(rule(Family::ipv4, {}, Jump{"X"}), Family::ipv4);
  auto entry = header<ipt_entry>(bytes);
  entry.ip.flags = IPT_F_FRAG | IPT_F_GOTO;
  entry.ip.invflags = IPT_INV_FRAG | XT_INV_PROTO;
  entry.ip.proto = 132;
  entry.ip.dst.s_addr = htonl(0x0a000001);
  entry.ip.dmsk.s_addr = 0xff0000ff;
  std::memcpy(bytes.data(), &entry, sizeof entry);
  std::memset(bytes.data() + sizeof entry + offsetof(xt_entry_target, u.user.name), 0, XT_EXTENSION_MAXNAMELEN);
  const DecodedEntry decoded = decode_entry(bytes, "OTHERS", Family::ipv4);
  EXPECT_EQ(iptables_words(rule(Family::ipv4, decoded.matches, decoded.target)),
            "-A ISTIO_OUTPUT -d 10.0.0.1/255.0.0.255 ! -p 132 ! -f -g OTHERS");
  EXPECT_EQ(decode_entry(bytes, "", Family::ipv4).target, Target(NonTerminating{}));
}

TEST(XtEntry, WordsOfOthersOfIpv6) {
  auto bytes = encode_entry(rule(Family::ipv6, {}, Jump{"X"}), Family::ipv6);
  auto entry = header<ip6t_entry>(bytes);
  entry.ipv6.flags = IP6T_F_TOS;
  entry.ipv6.tos = 0x10;
  entry.ipv6.outiface[0] = 'e';
  std::fill_n(entry.ipv6.outiface_mask, IFNAMSIZ, 0xff);  // iptables compares as far as the final zero
  entry.ipv6.invflags = IP6T_INV_VIA_IN;                  // of no interface: none is met
  std::memcpy(bytes.data(), &entry, sizeof entry);
  const DecodedEntry decoded = decode_entry(bytes, "RETURN", Family::ipv6);
  EXPECT_EQ(iptables_words(rule(Family::ipv6, decoded.matches)),
            "-A ISTIO_OUTPUT ! -i + -o [65/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff 00/ff "
            "00/ff 00/ff 00/ff] [flags 0x2 inverted 0x1 tos 0x10] -j RETURN");
}

// What others may ask for in the header.
TEST(XtEntry, WordsOfTheHeader) {
  const auto words = [](Family family, const auto& change) {
    auto bytes = encode_entry(rule(family, {}), family);
    change(bytes);
    const DecodedEntry decoded = decode_entry(bytes, "RETURN", family);
    const std::string text = iptables_words(rule(family, decoded.matches));
    return text.substr(std::string_view("-A ISTIO_OUTPUT ").size());
  };
  const auto ipv4 = [&](const auto& change) {
    return words(Family::ipv4, [&](std::vector<std::byte>& bytes) {
      auto entry = header<ipt_entry>(bytes);
      change(entry.ip);
      std::memcpy(bytes.data(), &entry, sizeof entry);
    });
  };
  const auto ipv6 = [&](const auto& change) {
    return words(Family::ipv6, [&](std::vector<std::byte>& bytes) {
      auto entry = header<ip6t_entry>(bytes);
      change(entry.ipv6);
      std::memcpy(bytes.data(), &entry, sizeof entry);
    });
  };
  EXPECT_EQ(ipv4([](auto&) {}), "-j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.flags = IPT_F_FRAG; }), "-f -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.invflags = IPT_INV_FRAG; }), "[flags 0x0 inverted 0x20] -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) {
              ip.flags = IPT_F_FRAG;
              ip.invflags = IPT_INV_TOS;
            }),
            "[flags 0x1 inverted 0x4] -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.flags = 4; }), "[flags 0x4 inverted 0x0] -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.invflags = XT_INV_PROTO; }), "[flags 0x0 inverted 0x40] -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.proto = 255; }), "-p 255 -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.proto = 256; }), "-p 256 -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) {
              ip.proto = 256;
              ip.invflags = XT_INV_PROTO;
            }),
            "! -p 256 -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) {
              ip.src.s_addr = htonl(0x0a000001);
              ip.smsk.s_addr = htonl(0xff00ff00);
              ip.invflags = IPT_INV_SRCIP;
            }),
            "! -s 10.0.0.1/255.0.255.0 -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) {
              ip.dst.s_addr = htonl(0x0a000001);
              ip.dmsk.s_addr = htonl(0xff000000);
            }),
            "-d 10.0.0.1/255.0.0.0 -j RETURN")
      << "no packet has bits after the mask";
  EXPECT_EQ(ipv4([](auto& ip) { ip.invflags = IPT_INV_DSTIP; }), "! -d 0.0.0.0/0 -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) { ip.invflags = IPT_INV_VIA_OUT; }), "! -o + -j RETURN");
  EXPECT_EQ(ipv4([](auto& ip) {
              ip.iniface_mask[15] = 1;
              ip.invflags = IPT_INV_VIA_IN;
            }),
            "! -i [00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/00 00/01] -j "
            "RETURN");
  EXPECT_EQ(ipv4([](auto& ip) {
              std::ranges::fill(ip.outiface, 'x');
              std::ranges::fill(ip.outiface_mask, 0xff);
            }),
            "-o [78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff 78/ff] -j "
            "RETURN");
  // Of IPv6 a flag says whether the protocol counts; 0 is any (`-p all`), with it, too.
  EXPECT_EQ(ipv6([](auto& ip) { ip.proto = 6; }), "-j RETURN");
  EXPECT_EQ(ipv6([](auto& ip) { ip.flags = IP6T_F_PROTO; }), "-j RETURN");
  EXPECT_EQ(ipv6([](auto& ip) {
              ip.flags = IP6T_F_PROTO;
              ip.proto = 17;
              ip.invflags = IP6T_INV_PROTO;
            }),
            "! -p udp -j RETURN");
  EXPECT_EQ(ipv6([](auto& ip) { ip.invflags = IP6T_INV_PROTO; }), "[flags 0x0 inverted 0x40 tos 0x0] -j RETURN");
}

TEST(XtEntry, WhereALabelLeads) {
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    auto bytes = encode_entry(rule(family, {}, Jump{"X"}), family);
    std::memset(&bytes[bytes.size() - sizeof(xt_standard_target) + offsetof(xt_entry_target, u.user.name)], 0,
                XT_EXTENSION_MAXNAMELEN);
    const auto words = [&](const char* label) {
      return iptables_words(rule(family, {}, decode_entry(bytes, label, family).target));
    };
    EXPECT_EQ(words("ACCEPT"), "-A ISTIO_OUTPUT -j ACCEPT");
    EXPECT_EQ(words("DROP"), "-A ISTIO_OUTPUT -j DROP");
    EXPECT_EQ(words("RETURN"), "-A ISTIO_OUTPUT -j RETURN");
    EXPECT_EQ(words("QUEUE"), "-A ISTIO_OUTPUT -j QUEUE");
    EXPECT_EQ(words("OTHERS"), "-A ISTIO_OUTPUT -j OTHERS");
    EXPECT_TRUE(std::holds_alternative<UnknownTarget>(decode_entry(bytes, "QUEUE", family).target));
  }
  EXPECT_NO_THROW((void)encode_entry(rule(Family::ipv4, {}, Jump{std::string(28, 'x')}), Family::ipv4));
  EXPECT_THROW((void)encode_entry(rule(Family::ipv4, {}, Jump{std::string(29, 'x')}), Family::ipv4), std::logic_error);
}

TEST(XtEntry, CopyPutsTheLabelBack) {
  const auto wanted = encode_entry(rule(Family::ipv6, {}, Jump{"OTHERS"}), Family::ipv6);
  auto from_kernel = wanted;
  // After the zero of the empty name stands what was in memory.
  auto* name = from_kernel.data() + sizeof(ip6t_entry) + offsetof(xt_entry_target, u.user.name);
  std::memset(name, 'x', XT_EXTENSION_MAXNAMELEN);
  *name = std::byte{};
  EXPECT_NE(from_kernel, wanted);
  EXPECT_EQ(copy_entry(from_kernel, "OTHERS", Family::ipv6), wanted);
  const auto extension = encode_entry(rule(Family::ipv4, {tcp}, Redirect{1}), Family::ipv4);
  EXPECT_EQ(copy_entry(extension, "REDIRECT", Family::ipv4), extension);
}

TEST(XtEntry, RefusesWhatIptablesCannotHold) {
  const auto encode = [](Match match) { return encode_entry(rule(Family::ipv4, {std::move(match)}), Family::ipv4); };
  AddressMatch two = address(End::source, "10.0.0.0/8");
  two.ranges.push_back(*AddressRange::parse("11.0.0.0/8"));
  EXPECT_THROW(encode(two), std::logic_error);
  AddressMatch no_cidr = address(End::source, "10.0.0.0/8");
  no_cidr.ranges.front().last.bytes[3] = 3;
  EXPECT_THROW(encode(no_cidr), std::logic_error);
  EXPECT_THROW(encode(address(End::source, "::1/128")), std::logic_error);
  EXPECT_THROW(encode(InterfaceMatch{InterfaceDirection::in, "sixteen-letters!", false}), std::logic_error);
  EXPECT_THROW((void)encode_entry(rule(Family::ipv4, {}, Jump{std::string(30, 'x')}), Family::ipv4), std::logic_error);
}

// The kernel takes any name and mask, whoever sends them: an interface without a name is none that a rule of ours has.
TEST(XtEntry, AnInterfaceWithoutANameIsNotUnderstood) {
  auto bytes = encode_entry(rule(Family::ipv4, {InterfaceMatch{InterfaceDirection::in, "a", false}}), Family::ipv4);
  auto entry = header<ipt_entry>(bytes);
  entry.ip.iniface[0] = '\0';
  entry.ip.iniface_mask[1] = 0;
  std::memcpy(bytes.data(), &entry, sizeof entry);
  const DecodedEntry decoded = decode_entry(bytes, "RETURN", Family::ipv4);
  ASSERT_EQ(decoded.matches.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<UnknownMatch>(decoded.matches.front()));
}

// The kernel has checked the rules that it holds: what does not fit is no rule, and is not followed out of the bytes.
TEST(XtEntry, WhatDoesNotFitIsRefused) {
  const auto whole =
      encode_entry(rule(Family::ipv4, {tcp, PortMatch{End::destination, {{80, 80}}, false}}), Family::ipv4);
  const auto with = [&](std::size_t offset, std::uint16_t value) {
    auto bytes = whole;
    std::memcpy(bytes.data() + offset, &value, sizeof value);
    return bytes;
  };
  EXPECT_NO_THROW(static_cast<void>(decode_entry(whole, "RETURN", Family::ipv4)));
  constexpr std::size_t target = offsetof(ipt_entry, target_offset);
  constexpr std::size_t first_match = sizeof(ipt_entry);  // its size stands first
  for (const auto& bytes :
       {with(target, 0), with(target, 0xffff), with(target, static_cast<std::uint16_t>(whole.size() - 8)),
        with(first_match, 0), with(first_match, 31), with(first_match, 0x1000)}) {
    EXPECT_THROW(static_cast<void>(decode_entry(bytes, "RETURN", Family::ipv4)), Error);
  }
  EXPECT_THROW(static_cast<void>(copy_entry(with(target, 0xffff), "RETURN", Family::ipv4)), Error);
  for (std::size_t size = 0; size < sizeof(ipt_entry) + sizeof(xt_entry_target); ++size) {
    EXPECT_THROW(static_cast<void>(decode_entry(std::span(whole).first(size), "RETURN", Family::ipv4)), Error) << size;
  }
}

}  // namespace
}  // namespace sidetrack::xt
