// SPDX-License-Identifier: GPL-2.0-or-later
// The bytes of each extension, and the way back to the model.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "kernel/xt/catalogue.h"
#include "kernel/xt/extension.h"
#include "model/iptables.h"

namespace sidetrack::xt {
namespace {

// The bytes below are a little-endian kernel's: numbers are in host byte order there, unless they are a packet's.
constexpr bool as_written = std::endian::native == std::endian::little;

// "NAME REVISION BYTES", bytes in hex, in words of eight, without the padding words that are all zero at the end.
std::string text(const Extension& extension) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (std::size_t i = 0; i < extension.data.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(extension.data[i]);
    if (i % 8 == 0) hex += ' ';
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  static const std::string zero = " 0000000000000000";
  while (hex.ends_with(zero)) hex.resize(hex.size() - zero.size());
  return extension.name + " " + std::to_string(extension.revision) + hex;
}

Rule rule(std::vector<Match> matches) {
  Rule result;
  result.families = Family::ipv4;
  result.chain = "ISTIO_OUTPUT";
  result.matches = std::move(matches);
  return result;
}

std::vector<Match> decoded(const std::vector<Extension>& extensions) {
  std::vector<Match> matches;
  for (const Extension& extension : extensions) {
    for (Match& match : decode_match(extension, Family::ipv4)) matches.push_back(std::move(match));
  }
  return matches;
}

constexpr ProtocolMatch tcp_only{Protocol::tcp, false};
constexpr ProtocolMatch udp_only{Protocol::udp, false};

struct MatchCase {
  const char* iptables;
  std::vector<Match> matches;  // after the first, which is the protocol if there is one
  const char* bytes;           // as on a little-endian machine
};

const MatchCase match_cases[] = {
    {"-p tcp --dport 15008",
     {tcp_only, PortMatch{End::destination, {{15008, 15008}}, false}},
     "tcp 0 0000ffffa03aa03a"},
    {"-p tcp ! --dport 15008",
     {tcp_only, PortMatch{End::destination, {{15008, 15008}}, true}},
     "tcp 0 0000ffffa03aa03a 0000000200000000"},
    {"-p udp --sport 15053", {udp_only, PortMatch{End::source, {{15053, 15053}}, false}}, "udp 0 cd3acd3a0000ffff"},
    {"-p udp ! --sport 1000:2000",
     {udp_only, PortMatch{End::source, {{1000, 2000}}, true}},
     "udp 0 e803d0070000ffff 0100000000000000"},
    {"-p udp --sport 53 ! --dport 53",
     {udp_only, PortMatch{End::source, {{53, 53}}, false}, PortMatch{End::destination, {{53, 53}}, true}},
     "udp 0 3500350035003500 0200000000000000"},
    {"-m owner --socket-exists", {SocketMatch{}}, "owner 1 0000000000000000 0000000000000000 0400000000000000"},
    {"-m owner ! --socket-exists", {SocketMatch{true}}, "owner 1 0000000000000000 0000000000000000 0404000000000000"},
    {"-m set --match-set NAME dst", {SetMatch{End::destination, {}, 5, {}, false}}, "set 4 0500010000000000"},
    {"-m set ! --match-set NAME src", {SetMatch{End::source, {}, 5, {}, true}}, "set 4 0500010300000000"},
    {"-p tcp -m multiport ! --dports 53,15008",
     {tcp_only, PortMatch{End::destination, {{53, 53}, {15008, 15008}}, true}},
     "multiport 1 01023500a03a0000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
     "0000000000000001"},
    {"-p udp -m multiport --sports 53,1000:2000",
     {udp_only, PortMatch{End::source, {{53, 53}, {1000, 2000}}, false}},
     "multiport 1 00033500e803d007 0000000000000000 0000000000000000 0000000000000000 0001000000000000"},
    {"-m owner --uid-owner 1337",
     {OwnerMatch{OwnerKind::uid, {{1337, 1337}}, false}},
     "owner 1 3905000039050000 0000000000000000 0100000000000000"},
    {"-m owner ! --gid-owner 5-1337",
     {OwnerMatch{OwnerKind::gid, {{5, 1337}}, true}},
     "owner 1 0000000000000000 0500000039050000 0202000000000000"},
    {"-m mark --mark 1337", {MarkMatch{1337, 0xffffffff, false}}, "mark 1 39050000ffffffff"},
    {"-m mark ! --mark 0x1/0xff", {MarkMatch{1, 0xff, true}}, "mark 1 01000000ff000000 0100000000000000"},
    {"-m connmark ! --mark 1337",
     {ConnmarkMatch{1337, 0xffffffff, true}},
     "connmark 1 39050000ffffffff 0100000000000000"},
    {"-m cgroup --path a/b", {CgroupMatch{"a/b", 0, false}}, "cgroup 2 01000000612f6200"},
    {"-m cgroup ! --path a", {CgroupMatch{"a", 0, true}}, "cgroup 2 0100010061000000"},
};

TEST(XtMatch, BytesAndBack) {
  for (const MatchCase& example : match_cases) {
    SCOPED_TRACE(example.iptables);
    const auto extensions = matches_of(rule(example.matches));
    ASSERT_EQ(extensions.size(), 1u);
    if (as_written) {
      EXPECT_EQ(text(extensions[0]), example.bytes);
    }
    std::vector<Match> behind_header = example.matches;
    if (std::holds_alternative<ProtocolMatch>(behind_header.front())) behind_header.erase(behind_header.begin());
    EXPECT_EQ(decoded(extensions), behind_header);
  }
}

TEST(XtMatch, ConntrackStates) {
  const ConntrackStateMatch match{ConntrackStateMatch::related | ConntrackStateMatch::established, true};
  const auto extensions = matches_of(rule({match}));
  const auto info = conntrack.decode(extensions.at(0));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->match_flags, XT_CONNTRACK_STATE);
  EXPECT_EQ(info->invert_flags, XT_CONNTRACK_STATE);
  EXPECT_EQ(info->state_mask, 2u | 4u);
  EXPECT_EQ(decoded(extensions), std::vector<Match>{match});
  for (auto state : {ConntrackStateMatch::invalid, ConntrackStateMatch::new_, ConntrackStateMatch::untracked}) {
    const std::vector<Match> one = {ConntrackStateMatch{state, false}};
    EXPECT_EQ(decoded(matches_of(rule(one))), one);
  }
}

TEST(XtMatch, SeveralExtensionsKeepTheirOrder) {
  const std::vector<Match> matches = {OwnerMatch{OwnerKind::gid, {{1, 1}}, true},
                                      OwnerMatch{OwnerKind::gid, {{2, 2}}, true}, MarkMatch{1, 1, false}};
  EXPECT_EQ(matches_of(rule(matches)).size(), 3u);
  EXPECT_EQ(decoded(matches_of(rule(matches))), matches);
}

TEST(XtMatch, DestinationBeforeSourceStaysInOrder) {
  const std::vector<Match> ports = {PortMatch{End::destination, {{1, 1}}, false},
                                    PortMatch{End::source, {{2, 2}}, false}};
  const auto extensions = matches_of(rule({tcp_only, ports[0], ports[1]}));
  EXPECT_EQ(extensions.size(), 2u);
  EXPECT_EQ(decoded(extensions), ports);
}

TEST(XtMatch, HeaderMatchesAreNoExtensions) {
  EXPECT_TRUE(matches_of(rule({InterfaceMatch{InterfaceDirection::out, "lo", false}, tcp_only,
                               AddressMatch{End::source, {*AddressRange::parse("10.0.0.0/8")}, false}}))
                  .empty());
}

TEST(XtMatch, RefusesWhatXtablesCannotHold) {
  const auto encode = [](std::vector<Match> matches) { return matches_of(rule(std::move(matches))); };
  EXPECT_THROW(encode({PortMatch{End::destination, {{53, 53}}, false}}), std::logic_error) << "no protocol";
  EXPECT_THROW(encode({tcp_only, PortMatch{End::destination, {}, false}}), std::logic_error);
  std::vector<PortRange> ports;
  for (std::uint16_t port = 1; port <= 15; ++port) ports.push_back({port, port});
  EXPECT_NO_THROW(encode({tcp_only, PortMatch{End::destination, ports, false}}));
  ports.back().last = 20;  // a range takes two slots
  EXPECT_THROW(encode({tcp_only, PortMatch{End::destination, ports, false}}), std::logic_error);
  EXPECT_THROW(encode({OwnerMatch{OwnerKind::uid, {{1, 1}, {2, 2}}, false}}), std::logic_error);
  EXPECT_THROW(encode({UnknownMatch{"-m string"}}), std::logic_error);
  EXPECT_NO_THROW(encode({CgroupMatch{std::string(511, 'x'), 0, false}}));
  EXPECT_THROW(encode({CgroupMatch{std::string(512, 'x'), 0, false}}), std::logic_error);
}

struct WordsCase {
  Extension extension;
  const char* words;
};

std::string words_of_match(const Extension& extension) {
  std::string words;
  for (const Match& match : decode_match(extension, Family::ipv4)) {
    words += (words.empty() ? "" : " ") + iptables_words(match);
  }
  return words;
}

TEST(XtMatch, WordsOfOthers) {
  xt_multiport_v1 one_port{};
  one_port.flags = XT_MULTIPORT_DESTINATION;
  one_port.count = 1;
  one_port.ports[0] = 53;
  xt_multiport_v1 either = one_port;
  either.flags = XT_MULTIPORT_EITHER;
  either.count = 3;
  either.ports[1] = 80;
  either.ports[2] = 90;
  either.pflags[1] = 1;
  either.invert = 1;
  xt_owner_match_info both{1000, 2000, 5, 5, XT_OWNER_UID | XT_OWNER_GID | XT_OWNER_SOCKET, XT_OWNER_GID};
  xt_conntrack_mtinfo3 alias{};
  alias.match_flags = XT_CONNTRACK_STATE | XT_CONNTRACK_STATE_ALIAS;
  alias.state_mask = XT_CONNTRACK_STATE_INVALID | 2;
  xt_tcp syn{{0, 65535}, {0, 65535}, 0, 0x17, 0x02, 0};
  const auto comment = [](std::string_view words) {
    Extension extension{"comment", 0, std::vector<std::byte>(256)};
    std::memcpy(extension.data.data(), words.data(), words.size());
    return extension;
  };
  const WordsCase cases[] = {
      {multiport.encode(one_port), "--dport 53"},
      {multiport.encode(either), "-m multiport ! --ports 53,80:90"},
      {owner.encode(both), "-m owner --socket-exists -m owner --uid-owner 1000-2000 -m owner ! --gid-owner 5"},
      {conntrack.encode(alias), "-m conntrack --ctstate INVALID,ESTABLISHED"},
      {comment("plain-one"), "-m comment --comment plain-one"},
      {comment("it's \"here\""), "-m comment --comment \"it\\'s \\\"here\\\"\""},
      {tcp.encode(syn), "-m tcp --tcp-flags 0x17 0x2"},
      {{"string", 1, {std::byte{0x61}, std::byte{0x62}, std::byte{0}, std::byte{0}}},
       "-m string [rev 1, 4 bytes: 6162]"},
      {{"owner", 7, std::vector<std::byte>(8)}, "-m owner [rev 7, 8 bytes: all zero]"},
      {{"owner", 1, std::vector<std::byte>(8)}, "-m owner [rev 1, 8 bytes: all zero]"},
      {{"conntrack", 1, std::vector<std::byte>(8)}, "-m conntrack [rev 1, 8 bytes: all zero]"},
      {{"set", 4, std::vector<std::byte>(8)}, "-m set [rev 4, 8 bytes: all zero]"},
      {{"set", 9, std::vector<std::byte>(16)}, "-m set [rev 9, 16 bytes: all zero]"},
  };
  for (const WordsCase& example : cases) EXPECT_EQ(words_of_match(example.extension), example.words);
}

struct TargetCase {
  const char* iptables;
  Target target;
  Family family;
  const char* bytes;
};

const TargetCase target_cases[] = {
    {"-j REDIRECT --to-ports 15001", Redirect{15001}, Family::ipv4,
     "REDIRECT 0 0100000002000000 0000000000000000 3a993a9900000000"},
    {"-j REDIRECT --to-ports 15001", Redirect{15001}, Family::ipv6,
     "REDIRECT 0 0200000000000000 0000000000000000 0000000000000000 0000000000000000 000000003a993a99"},
    {"-j TPROXY --on-port 15006 --tproxy-mark 1337", Tproxy{15006, 1337, 0xffffffff}, Family::ipv4,
     "TPROXY 1 ffffffff39050000 0000000000000000 0000000000000000 3a9e000000000000"},
    {"-j TPROXY --on-port 15006 --tproxy-mark 1/0xff", Tproxy{15006, 1, 0xff}, Family::ipv6,
     "TPROXY 1 ff00000001000000 0000000000000000 0000000000000000 3a9e000000000000"},
    {"-j MARK --set-mark 1338", SetMark{1338}, Family::ipv4, "MARK 2 3a050000ffffffff"},
    {"-j CONNMARK --save-mark", Connmark::save, Family::ipv4, "CONNMARK 2 00000000ffffffff ffffffff00000100"},
    {"-j CONNMARK --restore-mark", Connmark::restore, Family::ipv6, "CONNMARK 2 00000000ffffffff ffffffff00000200"},
    {"-j SNAT --to-source 169.254.7.127", source_nat(*Address::parse("169.254.7.127")), Family::ipv4,
     "SNAT 0 0100000001000000 a9fe077fa9fe077f"},
    {"-j SNAT --to-source fd16::1", source_nat(*Address::parse("fd16::1")), Family::ipv6,
     "SNAT 1 01000000fd160000 0000000000000000 00000001fd160000 0000000000000000 0000000100000000"},
    {"-j CT --zone 2", CtZone{2}, Family::ipv4, "CT 2 0000020000000000"},
};

TEST(XtTarget, BytesAndBack) {
  for (const TargetCase& example : target_cases) {
    SCOPED_TRACE(example.iptables);
    const Extension extension = target_of(example.target, example.family);
    if (as_written) {
      EXPECT_EQ(text(extension), example.bytes);
    }
    EXPECT_EQ(decode_target(extension, example.family), example.target);
  }
}

TEST(XtTarget, RefusesWhatIsNoExtension) {
  EXPECT_THROW((void)target_of(Verdict::accept, Family::ipv4), std::logic_error);
  EXPECT_THROW((void)target_of(Jump{"ISTIO_OUTPUT"}, Family::ipv4), std::logic_error);
  EXPECT_THROW((void)target_of(Continue{"-j LOG"}, Family::ipv4), std::logic_error);
  EXPECT_THROW((void)target_of(Nat{End::source, {}, {}, "-j MASQUERADE"}, Family::ipv4), std::logic_error);
  const Nat to_one = source_nat(*Address::parse("10.0.0.1"));
  EXPECT_NO_THROW((void)target_of(to_one, Family::ipv4));
  EXPECT_THROW((void)target_of(to_one, Family::ipv6), std::logic_error);
  Nat more = to_one;
  more.ports = PortRange{80, 80};
  EXPECT_THROW((void)target_of(more, Family::ipv4), std::logic_error);
}

TEST(XtTarget, KernelsPointerInCtDoesNotCount) {
  Extension extension = target_of(CtZone{2}, Family::ipv4);
  extension.data[64] = std::byte{0x80};
  EXPECT_EQ(decode_target(extension, Family::ipv4), Target(CtZone{2}));
}

TEST(XtTarget, OtherRevisionsOfTheSame) {
  const xt_connmark_tginfo1 save{0, 0xffffffff, 0xffffffff, XT_CONNMARK_SAVE};
  EXPECT_EQ(decode_target(Spec<xt_connmark_tginfo1>{"CONNMARK", 1, 3}.encode(save), Family::ipv4),
            Target(Connmark::save));
  EXPECT_EQ(decode_target(Spec<xt_ct_target_info_v1>{"CT", 1}.encode({0, 2, 0, 0, {}, {}, nullptr}), Family::ipv4),
            Target(CtZone{2}));
}

TEST(XtTarget, WordsOfOthers) {
  const auto words = [](const Extension& extension, Family family) {
    return iptables_words(decode_target(extension, family));
  };
  const auto network = [](std::uint16_t port) { return htons(port); };
  nf_nat_ipv4_multi_range_compat nat4{};
  nat4.rangesize = 1;
  EXPECT_EQ(words(Spec<nf_nat_ipv4_multi_range_compat>{"MASQUERADE", 0}.encode(nat4), Family::ipv4), "-j MASQUERADE");
  nat4.range[0].flags = NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_PROTO_RANDOM;
  nat4.range[0].min.all = network(1000);
  nat4.range[0].max.all = network(2000);
  EXPECT_EQ(words(redirect_ipv4.encode(nat4), Family::ipv4), "-j REDIRECT --to-ports 1000-2000 --random");
  nat4.range[0].flags = NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_MAP_IPS;
  nat4.range[0].min_ip = nat4.range[0].max_ip = htonl(0x0a000001);
  nat4.range[0].max.all = network(1000);
  EXPECT_EQ(words(Spec<nf_nat_ipv4_multi_range_compat>{"DNAT", 0}.encode(nat4), Family::ipv4),
            "-j DNAT --to-destination 10.0.0.1:1000");
  nf_nat_range2 nat6{};
  nat6.flags = NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_MAP_IPS;
  nat6.min_addr.all[3] = htonl(1);
  nat6.max_addr.all[3] = htonl(2);
  nat6.min_proto.all = nat6.max_proto.all = network(80);
  EXPECT_EQ(words(Spec<nf_nat_range2>{"DNAT", 2}.encode(nat6), Family::ipv6), "-j DNAT --to-destination [::1-::2]:80");
  EXPECT_EQ(words(set_mark.encode({1, 0xff}), Family::ipv4), "-j MARK --set-xmark 0x1/0xff");
  EXPECT_EQ(words(set_connmark.encode({1, 0xff, 0, 0, 0, XT_CONNMARK_SET}), Family::ipv4),
            "-j CONNMARK --set-xmark 0x1/0xff");
  EXPECT_EQ(words(set_connmark.encode({0, 1, 2, 0, 0, XT_CONNMARK_SAVE}), Family::ipv4),
            "-j CONNMARK --save-mark --nfmask 0x2 --ctmask 0x1");
  EXPECT_EQ(words(ct.encode({XT_CT_NOTRACK, 0, 0, 0, {}, {}, nullptr}), Family::ipv4), "-j CT --notrack");
  // A revision that is not sent, and one of a later kernel.
  EXPECT_EQ(words({"TPROXY", 0, std::vector<std::byte>(16)}, Family::ipv4), "-j TPROXY [rev 0, 16 bytes: all zero]");
  EXPECT_EQ(words({"DNAT", 3, std::vector<std::byte>(16)}, Family::ipv4), "-j DNAT [rev 3, 16 bytes: all zero]");
  EXPECT_EQ(words({"MARK", 1, std::vector<std::byte>(16)}, Family::ipv4), "-j MARK [rev 1, 16 bytes: all zero]");
  EXPECT_EQ(words({"REJECT", 0, {std::byte{3}, std::byte{0}, std::byte{0}, std::byte{0}}}, Family::ipv4),
            "-j REJECT [rev 0, 4 bytes: 03]");
}

// Of those whose words are not ours it is known whether the packet goes on.
TEST(XtTarget, WhatBecomesOfThePacket) {
  const auto decoded = [](const char* name) {
    return decode_target({name, 0, std::vector<std::byte>(4)}, Family::ipv4);
  };
  EXPECT_TRUE(std::holds_alternative<Reject>(decoded("REJECT")));
  for (const char* name : {"LOG", "NFLOG", "TRACE"})
    EXPECT_TRUE(std::holds_alternative<Continue>(decoded(name))) << name;
  for (const char* name : {"SYNPROXY", "NFQUEUE", "REJECTED"})
    EXPECT_TRUE(std::holds_alternative<UnknownTarget>(decoded(name))) << name;
}

// No bit of an extension counts for nothing: with another one it is opaque, or it is what has exactly these bytes.
TEST(XtMatch, EveryBitCounts) {
  const auto unknown = [](const Match& match) { return std::holds_alternative<UnknownMatch>(match); };
  for (const MatchCase& example : match_cases) {
    SCOPED_TRACE(example.iptables);
    Extension extension = matches_of(rule(example.matches)).at(0);
    for (std::size_t bit = 0; bit < extension.data.size() * 8; ++bit) {
      const std::byte flip{static_cast<std::uint8_t>(1U << bit % 8)};
      extension.data[bit / 8] ^= flip;
      std::vector<Match> matches = decode_match(extension, Family::ipv4);
      EXPECT_NE(matches, decoded(matches_of(rule(example.matches)))) << "bit " << bit;
      // One port of a multiport is a match of tcp.
      const bool one_port = extension.name == "multiport" && std::holds_alternative<PortMatch>(matches.front()) &&
                            std::get<PortMatch>(matches.front()).ports.size() == 1;
      if (std::ranges::none_of(matches, unknown) && !matches.empty() && !one_port && extension.name != "owner") {
        matches.insert(matches.begin(), extension.name == "udp" ? udp_only : tcp_only);
        EXPECT_EQ(matches_of(rule(matches)).at(0), extension) << "bit " << bit;
      }
      extension.data[bit / 8] ^= flip;
    }
  }
}

TEST(XtTarget, EveryBitCounts) {
  for (const TargetCase& example : target_cases) {
    SCOPED_TRACE(example.iptables);
    Extension extension = target_of(example.target, example.family);
    const std::size_t user_part = extension.name == "CT" ? 64 : extension.data.size();  // the rest is the kernel's
    for (std::size_t bit = 0; bit < user_part * 8; ++bit) {
      const std::byte flip{static_cast<std::uint8_t>(1U << bit % 8)};
      extension.data[bit / 8] ^= flip;
      EXPECT_NE(decode_target(extension, example.family), example.target) << "bit " << bit;
      extension.data[bit / 8] ^= flip;
    }
  }
}

TEST(XtSource, EveryExtensionThatIsSentSaysWhatBringsIt) {
  for (const MatchCase& example : match_cases) {
    for (const Extension& extension : matches_of(rule(example.matches))) {
      EXPECT_FALSE(source_of(ExtensionKind::match, extension.name).module.empty()) << extension.name;
    }
  }
  for (const TargetCase& example : target_cases) {
    const Extension extension = target_of(example.target, example.family);
    EXPECT_FALSE(source_of(ExtensionKind::target, extension.name).module.empty()) << extension.name;
  }
  EXPECT_EQ(source_of(ExtensionKind::match, "owner").module, "xt_owner");
  EXPECT_TRUE(source_of(ExtensionKind::match, "REDIRECT").module.empty());
}

}  // namespace
}  // namespace sidetrack::xt
