// SPDX-License-Identifier: GPL-2.0-or-later
// The bytes of each extension, and the way back to the model.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/xt_CT.h>
#include <linux/netfilter/xt_TPROXY.h>
#include <linux/netfilter/xt_cgroup.h>
#include <linux/netfilter/xt_connmark.h>
#include <linux/netfilter/xt_conntrack.h>
#include <linux/netfilter/xt_iprange.h>
#include <linux/netfilter/xt_mark.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_owner.h>
#include <linux/netfilter/xt_set.h>
#include <linux/netfilter/xt_tcpudp.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "rule/iptables.h"
#include "rule/xt/rule_extensions.h"
#include "rule/xt/spec.h"

namespace sidetrack::xt {
namespace {

// The bytes below are a little-endian kernel's: numbers are in host byte order there, unless they are a packet's.
constexpr bool as_written = std::endian::native == std::endian::little;

// As the kinds of match and target send them.
constexpr Spec<xt_tcp> tcp{"tcp", 0};
constexpr Spec<xt_udp> udp{"udp", 0, 1};
constexpr Spec<xt_multiport_v1> multiport{"multiport", 1};
constexpr Spec<xt_owner_match_info> owner{"owner", 1, 2};
constexpr Spec<xt_conntrack_mtinfo3> conntrack{"conntrack", 3, 2};
constexpr Spec<xt_cgroup_info_v2> cgroup{"cgroup", 2, 12};
constexpr Spec<nf_nat_ipv4_multi_range_compat> redirect_ipv4{"REDIRECT", 0};
constexpr Spec<xt_tproxy_target_info_v1> tproxy{"TPROXY", 1, 2};
constexpr Spec<xt_mark_tginfo2> set_mark{"MARK", 2};
constexpr Spec<xt_connmark_tginfo2> set_connmark{"CONNMARK", 2, 1};
constexpr Spec<xt_ct_target_info_v1> ct{"CT", 2};

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

// Whatever stands between them in the header.
TEST(XtMatch, SourceThenDestinationPortAreOneExtension) {
  const PortMatch source{End::source, {{1, 1}}, false};
  const PortMatch destination{End::destination, {{2, 2}}, false};
  const InterfaceMatch lo{InterfaceDirection::out, "lo", false};
  EXPECT_EQ(matches_of(rule({tcp_only, source, lo, destination})).size(), 1U);
  EXPECT_EQ(matches_of(rule({tcp_only, source, MarkMatch{1, 1, false}, destination})).size(), 3U);
  EXPECT_EQ(matches_of(rule({tcp_only, source, source})).size(), 2U);
  EXPECT_EQ(matches_of(rule({tcp_only, source, destination, destination})).size(), 2U);
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
  EXPECT_EQ(decoded(encode({tcp_only, PortMatch{End::destination, ports, false}})),
            (std::vector<Match>{PortMatch{End::destination, ports, false}}));
  ports.back().last = 20;  // a range takes two slots
  EXPECT_THROW(encode({tcp_only, PortMatch{End::destination, ports, false}}), std::logic_error);
  ports.erase(ports.begin());
  EXPECT_EQ(decoded(encode({tcp_only, PortMatch{End::source, ports, true}})),
            (std::vector<Match>{PortMatch{End::source, ports, true}}));
  EXPECT_THROW(encode({ProtocolMatch{Protocol::tcp, true}, PortMatch{End::source, {{53, 53}}, false}}),
               std::logic_error);
  EXPECT_THROW(encode({ProtocolMatch{static_cast<Protocol>(132), false}, PortMatch{End::source, {{53, 53}}, false}}),
               std::logic_error);
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
      {tcp.encode(syn), "--tcp-flags FIN,SYN,RST,ACK SYN"},
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

// The words; "?" of one that is not understood.
std::string understood(const Extension& extension) {
  const std::string words = words_of_match(extension);
  return words.starts_with("-m " + extension.name + " [rev ") ? "?" : words;
}

TEST(XtMatch, WhatAnOwnerIsAskedFor) {
  constexpr int uid = XT_OWNER_UID, gid = XT_OWNER_GID, socket = XT_OWNER_SOCKET, groups = XT_OWNER_SUPPL_GROUPS;
  const struct {
    std::uint32_t ids[4];
    int match, inverted;
    const char* words;
  } cases[] = {
      {{1000, 1000, 0, 0}, uid, uid, "-m owner ! --uid-owner 1000"},
      {{0, 5, 0, 0}, uid, 0, "-m owner --uid-owner 0-5"},
      {{0, 0, 0, 5}, gid, 0, "-m owner --gid-owner 0-5"},
      {{0, 0, 5, 9}, gid, gid, "-m owner ! --gid-owner 5-9"},
      {{1, 1, 2, 2}, uid | gid, uid, "-m owner ! --uid-owner 1 -m owner --gid-owner 2"},
      {{}, socket, socket, "-m owner ! --socket-exists"},
      {{1, 1, 0, 0}, socket | uid, uid, "-m owner --socket-exists -m owner ! --uid-owner 1"},
      {{1, 1, 0, 0}, socket | uid, socket, "-m owner ! --socket-exists -m owner --uid-owner 1"},
      {{0, 0, 5, 9}, gid | groups, 0, "-m owner --gid-owner 5-9 --suppl-groups"},
      {{0, 0, 5, 9}, gid | groups, gid, "-m owner ! --gid-owner 5-9 --suppl-groups"},
      {{1, 1, 5, 9}, uid | gid | groups, uid, "-m owner ! --uid-owner 1 -m owner --gid-owner 5-9 --suppl-groups"},
      // What iptables does not send: groups of none, ids that are not asked for, bits that have no meaning.
      {{}, groups, 0, "?"},
      {{1, 1, 0, 0}, uid | groups, 0, "?"},
      {{}, 0, 0, "?"},
      {{}, 0, uid, "?"},
      {{1, 1, 0, 0}, uid, gid, "?"},
      {{1, 1, 0, 0}, uid | 16, 0, "?"},
      {{1, 0, 0, 0}, gid, 0, "?"},
      {{0, 1, 0, 0}, gid, 0, "?"},
      {{0, 0, 1, 0}, uid, 0, "?"},
      {{0, 0, 0, 1}, uid, 0, "?"},
  };
  for (const auto& each : cases) {
    const auto& ids = each.ids;
    EXPECT_EQ(understood(owner.encode({ids[0], ids[1], ids[2], ids[3], static_cast<std::uint8_t>(each.match),
                                       static_cast<std::uint8_t>(each.inverted)})),
              each.words)
        << each.match << ' ' << each.inverted;
  }
}

TEST(XtMatch, WhatTcpIsAskedFor) {
  constexpr int flags = XT_TCP_INV_FLAGS, option = XT_TCP_INV_OPTION;
  const auto words = [](std::uint8_t number, std::uint8_t mask, std::uint8_t set, int inverted) {
    return understood(tcp.encode({{0, 65535}, {0, 65535}, number, mask, set, static_cast<std::uint8_t>(inverted)}));
  };
  EXPECT_EQ(words(0, 0, 0, 0), "");
  EXPECT_EQ(words(0, 0x17, 0, 0), "--tcp-flags FIN,SYN,RST,ACK NONE");
  EXPECT_EQ(words(0, 0, 0x2, 0), "--tcp-flags NONE SYN");
  EXPECT_EQ(words(0, 0x17, 0x2, flags), "! --tcp-flags FIN,SYN,RST,ACK SYN");
  EXPECT_EQ(words(0, 0, 0, flags), "! --tcp-flags NONE NONE");
  EXPECT_EQ(words(2, 0, 0, 0), "-m tcp --tcp-option 2");
  EXPECT_EQ(words(2, 0, 0, option), "-m tcp ! --tcp-option 2");
  EXPECT_EQ(words(0, 0, 0, option), "-m tcp ! --tcp-option 0");
  EXPECT_EQ(words(2, 1, 1, flags), "! --tcp-flags FIN FIN -m tcp --tcp-option 2");
  EXPECT_EQ(words(0, 0, 0, XT_TCP_INV_SRCPT), "! --sport 0:65535") << "no packet";
  EXPECT_EQ(words(0, 0, 0, 0x10), "?");
  EXPECT_EQ(understood(udp.encode({{0, 65535}, {0, 65535}, 0})), "");
  EXPECT_EQ(understood(udp.encode({{0, 65535}, {0, 65535}, 4})), "?");
}

TEST(XtMatch, WhatMultiportIsAskedFor) {
  const auto words = [](std::vector<std::uint16_t> ports, std::vector<std::uint8_t> starts, unsigned flags = 1) {
    xt_multiport_v1 info{};
    info.flags = static_cast<std::uint8_t>(flags);
    info.count = static_cast<std::uint8_t>(ports.size());
    std::ranges::copy(ports, info.ports);
    std::ranges::copy(starts, info.pflags);
    return understood(multiport.encode(info));
  };
  EXPECT_EQ(words({1, 2}, {}), "-m multiport --dports 1,2");
  EXPECT_EQ(words({1, 2, 3}, {0, 1}), "-m multiport --dports 1,2:3");
  EXPECT_EQ(words({1, 2}, {}, 2), "-m multiport --ports 1,2");
  EXPECT_EQ(words({1, 2}, {}, 3), "?");
  EXPECT_EQ(words({}, {}), "?");
  EXPECT_EQ(words({2, 2}, {1}), "?") << "iptables makes one port of it";
  EXPECT_EQ(words({3, 2}, {1}), "?");
  EXPECT_EQ(words({1, 2}, {0, 1}), "?") << "a range without its end";
  EXPECT_EQ(words({1, 2, 3}, {1, 1}), "?");
  EXPECT_EQ(words({1, 2}, {2}), "?");
  EXPECT_EQ(words({1}, {0, 1}), "?") << "beside what counts";
}

TEST(XtMatch, WhatConntrackIsAskedFor) {
  const auto words = [](int match, int inverted, int states) {
    xt_conntrack_mtinfo3 info{};
    info.match_flags = static_cast<std::uint16_t>(match);
    info.invert_flags = static_cast<std::uint16_t>(inverted);
    info.state_mask = static_cast<std::uint16_t>(states);
    return understood(conntrack.encode(info));
  };
  constexpr int state = XT_CONNTRACK_STATE, direction = XT_CONNTRACK_DIRECTION;
  EXPECT_EQ(words(state, 0, XT_CONNTRACK_STATE_UNTRACKED | 8 | 2), "-m conntrack --ctstate NEW,ESTABLISHED,UNTRACKED");
  EXPECT_EQ(words(state, state, 1), "-m conntrack ! --ctstate INVALID");
  EXPECT_EQ(words(direction, 0, 0), "-m conntrack --ctdir ORIGINAL");
  EXPECT_EQ(words(direction, direction, 0), "-m conntrack --ctdir REPLY");
  EXPECT_EQ(words(state, direction, 1), "?");
  EXPECT_EQ(words(state, 0, XT_CONNTRACK_STATE_SNAT), "-m conntrack --ctstate SNAT");
  EXPECT_EQ(words(state, 0, XT_CONNTRACK_STATE_DNAT | 1), "-m conntrack --ctstate INVALID,DNAT");
  EXPECT_EQ(words(state, 0, 1 << 14), "?");
  EXPECT_EQ(words(state | direction, 0, 1), "-m conntrack --ctstate INVALID --ctdir ORIGINAL");
  EXPECT_EQ(words(state | XT_CONNTRACK_STATUS, 0, 1), "-m conntrack --ctstate INVALID --ctstatus NONE");
  EXPECT_EQ(words(XT_CONNTRACK_STATE_ALIAS * 2, 0, 0), "?");
  EXPECT_EQ(words(0, 0, 1), "?");
}

TEST(XtMatch, WhatIprangeIsAskedFor) {
  const auto words = [](Family family, int flags, std::vector<const char*> addresses) {
    xt_iprange_mtinfo info{};
    info.flags = static_cast<std::uint8_t>(flags);
    nf_inet_addr* const fields[] = {&info.src_min, &info.src_max, &info.dst_min, &info.dst_max};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const Address address = *Address::parse(addresses[i]);
      std::memcpy(fields[i], address.bytes.data(), address.size());
    }
    std::string text;
    for (const Match& match : decode_match(Spec<xt_iprange_mtinfo>{"iprange", 1, 3}.encode(info), family)) {
      text += (text.empty() ? "" : " ") + iptables_words(match);
    }
    return text.starts_with("-m iprange [rev 1") ? "?" : text;
  };
  constexpr int src = IPRANGE_SRC, dst = IPRANGE_DST, not_src = IPRANGE_SRC_INV, not_dst = IPRANGE_DST_INV;
  EXPECT_EQ(words(Family::ipv4, src, {"10.0.0.1", "10.0.0.9"}), "-s 10.0.0.1-10.0.0.9");
  EXPECT_EQ(words(Family::ipv4, src | not_src, {"10.0.0.1", "10.0.0.1"}), "! -s 10.0.0.1/32");
  EXPECT_EQ(words(Family::ipv4, dst | not_dst, {"::", "::", "10.0.0.1", "10.0.0.9"}), "! -d 10.0.0.1-10.0.0.9");
  EXPECT_EQ(words(Family::ipv4, src | dst | not_src, {"10.0.0.1", "10.0.0.2", "11.0.0.1", "11.0.0.2"}),
            "! -s 10.0.0.1-10.0.0.2 -d 11.0.0.1-11.0.0.2");
  EXPECT_EQ(words(Family::ipv6, dst, {"::", "::", "fd00::1", "fd00::5"}), "-d fd00::1-fd00::5");
  EXPECT_EQ(words(Family::ipv4, src, {"10.0.0.9", "10.0.0.1"}), "?") << "no packet";
  EXPECT_EQ(words(Family::ipv4, src | 0x40, {"10.0.0.1", "10.0.0.9"}), "?");
  EXPECT_EQ(words(Family::ipv4, 0, {}), "?");
  EXPECT_EQ(words(Family::ipv4, src | not_dst, {"10.0.0.1", "10.0.0.9"}), "?");
  EXPECT_EQ(words(Family::ipv4, src, {"10.0.0.1", "10.0.0.9", "10.0.0.1"}), "?");
  EXPECT_EQ(words(Family::ipv4, src, {"10.0.0.1", "10.0.0.9", "::", "10.0.0.1"}), "?");
}

// The kernel takes it with slashes around it.
TEST(XtMatch, WhatCgroupIsAskedFor) {
  const auto words = [](std::string_view path, auto change) {
    xt_cgroup_info_v2 info{};
    info.has_path = 1;
    std::ranges::copy(path, info.path);
    change(info);
    return understood(cgroup.encode(info));
  };
  const auto nothing = [](xt_cgroup_info_v2& /*info*/) {};
  EXPECT_EQ(words("a/b", nothing), "-m cgroup --path a/b");
  EXPECT_EQ(words("//a/b//", nothing), "-m cgroup --path a/b");
  EXPECT_EQ(words("a", [](auto& info) { info.invert_path = 1; }), "-m cgroup ! --path a");
  EXPECT_EQ(words("a", [](auto& info) { info.invert_path = 2; }), "?");
  EXPECT_EQ(words("a", [](auto& info) { info.has_path = 0; }), "?");
  EXPECT_EQ(words("a", [](auto& info) { info.has_path = 2; }), "?");
  EXPECT_EQ(words("a", [](auto& info) { info.has_classid = 1; }), "?");
  EXPECT_EQ(words("a", [](auto& info) { info.invert_classid = 1; }), "?");
  EXPECT_EQ(words("a", [](auto& info) { info.path[511] = 'x'; }), "?");
}

// Which of them the kernel knows depends on its age.
TEST(XtMatch, EveryRevisionOfSetIsRead) {
  const xt_set_info asked{5, IPSET_DIM_ONE, IPSET_DIM_ONE_SRC | IPSET_INV_MATCH};
  const char* const words = "-m set ! --match-set [number 5] src";
  EXPECT_EQ(understood(Spec<xt_set_info_match_v1>{"set", 1}.encode({asked})), words);
  EXPECT_EQ(understood(Spec<xt_set_info_match_v1>{"set", 2}.encode({asked})), words);
  xt_set_info_match_v3 third{};
  third.match_set = asked;
  EXPECT_EQ(understood(Spec<xt_set_info_match_v3>{"set", 3}.encode(third)), words);
  third.flags = 1;  // the element's counters
  EXPECT_EQ(understood(Spec<xt_set_info_match_v3>{"set", 3}.encode(third)), "?");
  EXPECT_EQ(understood(Spec<xt_set_info_match_v1>{"set", 0}.encode({asked})), "?");
  EXPECT_EQ(understood(Spec<xt_set_info_match_v1>{"set", 1}.encode({{5, 2, IPSET_DIM_ONE_SRC}})), "?");
  EXPECT_EQ(understood(Spec<xt_set_info_match_v1>{"set", 1}.encode({{5, 1, IPSET_DIM_TWO_SRC}})), "?");
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
    {"-j CONNMARK --set-xmark 0x5/0xff", SetConnmark{5, 0xff}, Family::ipv4,
     "CONNMARK 2 05000000ff000000 ffffffff00000000"},
    {"-j CT --zone 2", CtZone{2}, Family::ipv4, "CT 2 0000020000000000"},
    {"-j CT --notrack", Notrack{}, Family::ipv6, "CT 2 0100000000000000"},
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
  EXPECT_THROW((void)target_of(NonTerminating{"-j LOG"}, Family::ipv4), std::logic_error);
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
            "-j REJECT --reject-with icmp-port-unreachable");
}

// What a translation of others says; "?" if it is not understood.
TEST(XtTarget, EveryTranslationIsRead) {
  const auto words = [](const Extension& extension, Family family) {
    const Target target = decode_target(extension, family);
    if (const auto* nat = std::get_if<Nat>(&target)) {
      const std::string to = nat->addresses ? nat->addresses->text() : "-";
      return fmt::format("{} to {} {} {}", nat->words, nat->end == End::source ? "source" : "destination", to,
                         nat->ports ? fmt::format("{}-{}", nat->ports->first, nat->ports->last) : "-");
    }
    return std::holds_alternative<UnknownTarget>(target) ? std::string("?") : iptables_words(target);
  };
  constexpr unsigned ips = NF_NAT_RANGE_MAP_IPS, ports = NF_NAT_RANGE_PROTO_SPECIFIED;
  // IPv4 has a struct of its own.
  const struct {
    const char* name;
    unsigned flags;
    std::uint32_t first, last;
    std::uint16_t first_port, last_port;
    const char* words;
  } of_ipv4[] = {
      {"MASQUERADE", 0, 0, 0, 0, 0, "-j MASQUERADE to source - -"},
      {"MASQUERADE", ports, 0, 0, 5, 9, "-j MASQUERADE --to-ports 5-9 to source - 5-9"},
      {"MASQUERADE", NF_NAT_RANGE_PROTO_RANDOM, 0, 0, 0, 0, "-j MASQUERADE --random to source - -"},
      {"MASQUERADE", NF_NAT_RANGE_PROTO_RANDOM_FULLY, 0, 0, 0, 0, "-j MASQUERADE --random-fully to source - -"},
      {"REDIRECT", ports, 0, 0, 80, 80, "-j REDIRECT --to-ports 80"},
      {"REDIRECT", ports, 0, 0, 80, 81, "-j REDIRECT --to-ports 80-81 to destination - 80-81"},
      {"REDIRECT", ports | NF_NAT_RANGE_PROTO_RANDOM, 0, 0, 80, 80,
       "-j REDIRECT --to-ports 80 --random to destination - 80-80"},
      {"REDIRECT", 0, 0, 0, 0, 0, "-j REDIRECT to destination - -"},
      {"SNAT", ips, 1, 1, 0, 0, "-j SNAT --to-source 0.0.0.1 to source 0.0.0.1/32 -"},
      {"SNAT", ips | NF_NAT_RANGE_PERSISTENT, 1, 2, 0, 0,
       "-j SNAT --to-source 0.0.0.1-0.0.0.2 --persistent to source 0.0.0.1-0.0.0.2 -"},
      {"DNAT", ips | ports, 1, 1, 80, 80, "-j DNAT --to-destination 0.0.0.1:80 to destination 0.0.0.1/32 80-80"},
      {"DNAT", ports, 0, 0, 80, 81, "-j DNAT --to-destination :80-81 to destination - 80-81"},
      {"REDIRECT", ips, 1, 1, 0, 0, "?"},
      {"DNAT", ips, 2, 1, 0, 0, "?"},
      {"DNAT", ips | ports, 1, 1, 81, 80, "?"},
      {"DNAT", ips, 1, 1, 0, 80, "?"},
      {"DNAT", ips, 1, 1, 80, 80, "?"},
      {"DNAT", ports, 0, 1, 80, 80, "?"},
      {"DNAT", ports, 1, 1, 80, 80, "?"},
      {"DNAT", 0x80, 0, 0, 0, 0, "?"},
  };
  for (const auto& each : of_ipv4) {
    nf_nat_ipv4_multi_range_compat info{};
    info.rangesize = 1;
    info.range[0].flags = each.flags;
    info.range[0].min_ip = htonl(each.first);
    info.range[0].max_ip = htonl(each.last);
    info.range[0].min.all = htons(each.first_port);
    info.range[0].max.all = htons(each.last_port);
    const Spec<nf_nat_ipv4_multi_range_compat> spec{each.name, 0};
    EXPECT_EQ(words(spec.encode(info), Family::ipv4), each.words);
    info.rangesize = 2;
    EXPECT_EQ(words(spec.encode(info), Family::ipv4), "?");
  }
  nf_nat_range one{};
  one.flags = ips | ports;
  one.min_addr.all[3] = one.max_addr.all[3] = htonl(1);
  one.min_proto.all = one.max_proto.all = htons(80);
  for (const std::uint8_t revision : {std::uint8_t{0}, std::uint8_t{1}}) {
    EXPECT_EQ(words(Spec<nf_nat_range>{"DNAT", revision}.encode(one), Family::ipv6),
              "-j DNAT --to-destination [::1]:80 to destination ::1/128 80-80");
  }
  EXPECT_EQ(words(Spec<nf_nat_range>{"DNAT", 2}.encode(one), Family::ipv6), "?");
  one.flags = ips;
  one.min_proto.all = one.max_proto.all = 0;
  EXPECT_EQ(words(Spec<nf_nat_range>{"SNAT", 1}.encode(one), Family::ipv6),
            "-j SNAT --to-source ::1 to source ::1/128 -");
  nf_nat_range2 shifted{};
  shifted.flags = ports;
  shifted.min_proto.all = htons(80);
  shifted.max_proto.all = htons(90);
  EXPECT_EQ(words(Spec<nf_nat_range2>{"DNAT", 2}.encode(shifted), Family::ipv4),
            "-j DNAT --to-destination :80-90 to destination - 80-90");
  shifted.base_proto.all = htons(70);
  EXPECT_EQ(words(Spec<nf_nat_range2>{"DNAT", 2}.encode(shifted), Family::ipv4), "?");
  EXPECT_EQ(words(Spec<nf_nat_range2>{"DNAT", 3}.encode({}), Family::ipv4), "?");
}

TEST(XtTarget, EveryMarkOfAConnectionIsRead) {
  const auto words = [](std::uint32_t mark, std::uint32_t of_connection, std::uint32_t of_packet, int mode) {
    const auto number = static_cast<std::uint8_t>(mode);
    const Target target = decode_target(set_connmark.encode({mark, of_connection, of_packet, 0, 0, number}), {});
    const Target before =
        decode_target(Spec<xt_connmark_tginfo1>{"CONNMARK", 1, 3}.encode({mark, of_connection, of_packet, number}), {});
    const std::string text = iptables_words(target);
    const bool known = !text.starts_with("-j CONNMARK [rev 2");
    EXPECT_EQ(known, target == before) << text;
    return known ? text : "?";
  };
  constexpr std::uint32_t all = 0xffffffff;
  EXPECT_EQ(words(0, all, all, XT_CONNMARK_SAVE), "-j CONNMARK --save-mark");
  EXPECT_EQ(words(0, all, all, XT_CONNMARK_RESTORE), "-j CONNMARK --restore-mark");
  EXPECT_EQ(words(0, 1, all, XT_CONNMARK_SAVE), "-j CONNMARK --save-mark --nfmask 0xffffffff --ctmask 0x1");
  EXPECT_EQ(words(0, all, 2, XT_CONNMARK_RESTORE), "-j CONNMARK --restore-mark --nfmask 0x2 --ctmask 0xffffffff");
  EXPECT_EQ(words(1, all, all, XT_CONNMARK_SAVE), "?");
  EXPECT_EQ(words(1, 0xff, all, XT_CONNMARK_SET), "-j CONNMARK --set-xmark 0x1/0xff");
  EXPECT_EQ(words(1, 0xff, 0, XT_CONNMARK_SET), "-j CONNMARK --set-xmark 0x1/0xff");
  EXPECT_EQ(words(1, 0xff, 1, XT_CONNMARK_SET), "?");
  EXPECT_EQ(words(0, all, all, 3), "?");
}

TEST(XtTarget, WordsOfTproxyToAnAddress) {
  xt_tproxy_target_info_v1 info{};
  info.mark_mask = 0xff;
  info.mark_value = 1;
  info.laddr.ip = htonl(0x0a000001);
  info.lport = htons(80);
  EXPECT_EQ(iptables_words(decode_target(tproxy.encode(info), Family::ipv4)),
            "-j TPROXY --on-port 80 --on-ip 10.0.0.1 --tproxy-mark 0x1/0xff");
}

TEST(XtTarget, NotrackHasTwoNames) {
  for (const int flags : {int{XT_CT_NOTRACK}, XT_CT_NOTRACK | XT_CT_NOTRACK_ALIAS}) {
    const auto bits = static_cast<std::uint16_t>(flags);
    EXPECT_EQ(decode_target(ct.encode({bits, 0, 0, 0, {}, {}, nullptr}), Family::ipv4), Target(Notrack{}));
  }
  const auto opaque = [](const Extension& extension) {
    return std::holds_alternative<UnknownTarget>(decode_target(extension, Family::ipv4));
  };
  EXPECT_TRUE(opaque(ct.encode({XT_CT_NOTRACK, 1, 0, 0, {}, {}, nullptr})));
  EXPECT_TRUE(opaque(Spec<xt_ct_target_info_v1>{"CT", 0}.encode({XT_CT_NOTRACK, 0, 0, 0, {}, {}, nullptr})));
  EXPECT_TRUE(opaque(Spec<xt_ct_target_info_v1>{"CT", 3}.encode({XT_CT_NOTRACK, 0, 0, 0, {}, {}, nullptr})));
  EXPECT_TRUE(opaque({"CT", 2, std::vector<std::byte>(64)}));
}

// Of those whose words are not ours it is known whether the packet goes on.
TEST(XtTarget, WhatBecomesOfThePacket) {
  const auto decoded = [](const char* name) {
    return decode_target({name, 0, std::vector<std::byte>(4)}, Family::ipv4);
  };
  EXPECT_TRUE(std::holds_alternative<Reject>(decoded("REJECT")));
  for (const char* name : {"LOG", "NFLOG", "TRACE", "TEE"})
    EXPECT_TRUE(std::holds_alternative<NonTerminating>(decoded(name))) << name;
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
      const bool alias = bit == 1 && example.target == Target(Notrack{});  // -j NOTRACK
      EXPECT_EQ(decode_target(extension, example.family) == example.target, alias) << "bit " << bit;
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
