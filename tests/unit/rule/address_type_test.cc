// SPDX-License-Identifier: GPL-2.0-or-later
// What the types of addresses are in a pod, as addrtype of iptables and fib of nft ask for them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "pod/pod_view.h"
#include "rule/iptables.h"
#include "rule/xt/rule_extensions.h"
#include "text/read_rule.h"

namespace sidetrack {
namespace {

InterfaceAddress own(const char* address, int prefix_length) { return {*Address::parse(address), prefix_length}; }

PodView pod() {
  PodView made;
  made.interfaces = {{"lo", {own("127.0.0.1", 8), own("::1", 128)}},
                     {"eth0", {own("192.0.2.2", 24), own("2001:db8::2", 64)}},
                     {"net1", {own("10.0.0.7", 8)}}};
  const auto route = [](const char* to, Route::Kind kind, std::uint32_t table = local_table) {
    return Route{*AddressRange::parse(to), "lo", kind, table};
  };
  made.routes = {route("203.0.113.0/24", Route::Kind::local),      route("203.0.113.9", Route::Kind::blackhole),
                 route("198.51.100.1", Route::Kind::unknown),      route("2001:db8:1::/64", Route::Kind::local),
                 route("198.18.0.0/15", Route::Kind::local, 133),  route("2001:db8:2::/64", Route::Kind::local, 133),
                 route("2001:db8:3::/64", Route::Kind::local, 134)};
  made.insert(fwmark_rule(Family::ipv6, 1337, 133));
  PolicyRule of_all;
  of_all.family = Family::ipv6;
  of_all.table = 134;
  made.insert(of_all);
  return made;
}

char truth_of(const Match& match, const char* address, bool native, const char* in) {
  static const PodView view = pod();
  PacketAtHook packet;
  packet.destination.address = *Address::parse(address);
  packet.source.address = packet.destination.address;
  packet.native = native;
  packet.in = in;
  packet.pod = &view;
  return "ny?"[static_cast<std::size_t>(truth(match, packet))];
}

Match match_of(const std::string& words) { return read_rule("-A C -m addrtype " + words + " -j DROP").matches.at(0); }

// n, y or ? of each address.
std::string answers(const std::string& words, std::initializer_list<const char*> addresses, bool native = false,
                    const char* in = "") {
  std::string all;
  for (const char* address : addresses) all += truth_of(match_of(words), address, native, in);
  return all;
}

constexpr std::initializer_list<const char*> ipv4 = {
    "127.0.0.1", "127.1.2.3",       "127.255.255.255", "192.0.2.2",   "192.0.2.255", "192.0.2.3",    "10.0.0.7",
    "0.0.0.0",   "255.255.255.255", "224.0.0.1",       "203.0.113.1", "203.0.113.9", "198.51.100.1", "198.18.0.1"};

TEST(AddressType, IsWhatTableLocalSaysOfIpv4) {
  EXPECT_EQ(answers("--dst-type LOCAL", ipv4), "yynynnynnnyn?n");
  EXPECT_EQ(answers("! --dst-type LOCAL", ipv4), "nnynyynyyyny?y");
  EXPECT_EQ(answers("--src-type LOCAL", ipv4), "yynynnynnnyn?n");
  EXPECT_EQ(answers("--dst-type BROADCAST", ipv4), "nnynynnyynnn?n");
  EXPECT_EQ(answers("--dst-type MULTICAST", ipv4), "nnnnnnnnnynn?n");
  EXPECT_EQ(answers("--dst-type UNICAST", ipv4), "nnnnnynnnnny?y");
  EXPECT_EQ(answers("--dst-type LOCAL,UNICAST", ipv4), "yynynyynnnyy?y");
  EXPECT_EQ(answers("--dst-type BLACKHOLE,ANYCAST,PROHIBIT", ipv4), "nnnnnnnnnnnn?n");
}

TEST(AddressType, OfAnInterfaceIsUnicastElsewhere) {
  EXPECT_EQ(answers("--dst-type LOCAL --limit-iface-in", ipv4, false, "eth0"), "nnnynnnnnnnn?n");
  EXPECT_EQ(answers("--dst-type UNICAST --limit-iface-in", ipv4, false, "eth0"), "yyynnyynnnyy?y");
  EXPECT_EQ(answers("--dst-type BROADCAST --limit-iface-in", ipv4, false, "lo"), "nnynnnnyynnn?n");
  EXPECT_EQ(answers("--dst-type LOCAL --limit-iface-in", {"2001:db8::2", "::1"}, false, "eth0"), "yn");
}

constexpr std::initializer_list<const char*> ipv6 = {"::1",     "2001:db8::2",   "2001:db8::3",   "2001:db8:1::1",
                                                     "ff02::1", "2001:db8:2::1", "2001:db8:3::1", "::"};

TEST(AddressType, IsWhatTheAddressAndItsRouteSayOfIpv6) {
  EXPECT_EQ(answers("--dst-type LOCAL", ipv6), "yynynn?n");
  EXPECT_EQ(answers("! --dst-type LOCAL", ipv6), "nnynyy?y");
  EXPECT_EQ(answers("--dst-type UNICAST", ipv6), "yyyynyyn");
  EXPECT_EQ(answers("--dst-type MULTICAST", ipv6), "nnnnynnn");
  EXPECT_EQ(answers("--dst-type UNSPEC", ipv6), "nnnnnnny");
  EXPECT_EQ(answers("--dst-type UNICAST,MULTICAST", ipv6), "nnnnnnnn") << "both must hold";
  EXPECT_EQ(answers("--dst-type LOCAL,UNICAST", ipv6), "yynynn?n");
  EXPECT_EQ(answers("--dst-type LOCAL,UNREACHABLE", ipv6), "yy?y????");
}

// Whether there is a route decides between unicast and unreachable.
TEST(AddressType, OfFibIsKnownOfIpv6WhereItIsNotTheRoutes) {
  EXPECT_EQ(answers("--dst-type LOCAL", ipv6, true), "yynynn?n");
  EXPECT_EQ(answers("--dst-type LOCAL,BROADCAST,MULTICAST", ipv6, true), "yynyyn?n");
  EXPECT_EQ(answers("--dst-type UNICAST", ipv6, true), "nn?nn???");
  EXPECT_EQ(answers("--dst-type LOCAL", ipv4, true), "yynynnynnnyn?n");
}

TEST(AddressType, IsNotKnownWithoutAPodOrASource) {
  PacketAtHook packet;
  EXPECT_EQ(truth(match_of("--dst-type LOCAL"), packet), Truth::unknown);
  const PodView view = pod();
  packet.pod = &view;
  packet.source_known = false;
  EXPECT_EQ(truth(match_of("--src-type LOCAL"), packet), Truth::unknown);
  EXPECT_NE(truth(match_of("--dst-type LOCAL"), packet), Truth::unknown);
}

TEST(AddressType, IsReadFromWords) {
  for (const std::string words :
       {"-m addrtype --dst-type LOCAL", "-m addrtype ! --src-type UNICAST,LOCAL --limit-iface-in",
        "-m addrtype --dst-type BROADCAST --limit-iface-out"}) {
    EXPECT_EQ(iptables_words(read_rule("-A C " + words + " -j DROP")), "-A C " + words + " -j DROP");
    EXPECT_TRUE(is_understood(read_rule("-A C " + words + " -j DROP"))) << words;
  }
  const Rule both = read_rule("-A C -m addrtype --src-type LOCAL --dst-type UNICAST --limit-iface-in -j DROP");
  EXPECT_EQ(
      iptables_words(both),
      "-A C -m addrtype --src-type LOCAL --limit-iface-in -m addrtype --dst-type UNICAST --limit-iface-in -j DROP");
  for (const std::string words : {"--dst-type NEAR", "--limit-iface-in"})
    EXPECT_FALSE(is_understood(read_rule("-A C -m addrtype " + words + " -j DROP"))) << words;
}

std::string words(const xt::Extension& extension) {
  std::string text;
  for (const Match& match : xt::decode_match(extension, Family::ipv4))
    text += (text.empty() ? "" : " ") + iptables_words(match);
  return text;
}

// As `iptables -m addrtype` sends it: source, destination, then the flags; of revision 0 a number for each end.
xt::Extension extension(std::uint8_t revision, std::uint16_t source, std::uint16_t destination,
                        std::initializer_list<std::uint32_t> numbers) {
  xt::Extension made{"addrtype", revision, {}};
  const auto add = [&](auto number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    made.data.insert(made.data.end(), bytes.begin(), bytes.end());
  };
  add(source);
  add(destination);
  for (const std::uint32_t number : numbers) add(number);
  made.data.resize((made.data.size() + 7) / 8 * 8);
  return made;
}

TEST(AddressType, IsReadFromBothRevisions) {
  EXPECT_EQ(words(extension(1, 0, 4, {0})), "-m addrtype --dst-type LOCAL");
  EXPECT_EQ(words(extension(1, 6, 0, {1 | 4})), "-m addrtype ! --src-type UNICAST,LOCAL --limit-iface-in");
  EXPECT_EQ(words(extension(1, 2, 4, {2 | 8})),
            "-m addrtype --src-type UNICAST --limit-iface-out -m addrtype ! --dst-type LOCAL --limit-iface-out");
  EXPECT_EQ(words(extension(0, 0, 4, {0, 1})), "-m addrtype ! --dst-type LOCAL");
  EXPECT_EQ(words(extension(0, 4, 0, {0, 0})), "-m addrtype --src-type LOCAL");
  for (const xt::Extension& odd : {extension(1, 0, 4, {16}), extension(1, 0, 4, {12}), extension(1, 0, 0, {0}),
                                   extension(1, 0, 1 << 12, {0}), extension(2, 0, 4, {0})})
    EXPECT_TRUE(words(odd).starts_with("-m addrtype [rev ")) << words(odd);
}

}  // namespace
}  // namespace sidetrack
