// SPDX-License-Identifier: GPL-2.0-or-later
// Which of its addresses a pod sends from. Random addresses are compared with the kernel's choice in tests/kernel.
#include "walk/source_address.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <string>
#include <vector>

#include "walk/route.h"

namespace sidetrack {
namespace {

InterfaceAddress own(const std::string& cidr, std::uint8_t scope = RT_SCOPE_UNIVERSE) {
  const std::size_t slash = cidr.find('/');
  InterfaceAddress made;
  made.address = *Address::parse(cidr.substr(0, slash));
  made.prefix_length = std::stoi(cidr.substr(slash + 1));
  made.scope = scope;
  return made;
}

Interface interface(const std::string& name, std::vector<InterfaceAddress> addresses) {
  Interface made;
  made.name = name;
  made.addresses = std::move(addresses);
  return made;
}

RouteLookup by(const std::string& device, RouteLookup::Kind kind = RouteLookup::Kind::unicast) {
  RouteLookup made;
  made.kind = kind;
  made.device = device;
  return made;
}

std::string text(const std::optional<Address>& address) { return address ? address->text() : "none"; }

// RFC 6724, whichever of the two addresses was added first.
struct Choice {
  const char* rule;
  std::string chosen;
  std::string other;
  std::string destination;
};

TEST(SourceAddress, OfIpv6FollowsTheRulesInTheirOrder) {
  const Choice all[] = {
      {"scope", "fe80::1/64", "2001:db8::1/64", "fe80::9"},
      {"scope", "2001:db8::1/64", "fe80::1/64", "2001:db8::9"},
      {"scope", "2001:db8::1/64", "fec0::1/64", "2400::9"},
      {"scope", "fec0::1/64", "2001:db8::1/64", "fec0::9"},
      {"scope", "fec0::1/64", "fe80::1/64", "2400::9"},
      {"scope", "2001:db8::1/64", "::1/128", "::9"},
      {"label of ::/96", "::5/96", "2400::1/64", "::7"},
      {"label of ::/96", "2400::1/64", "::5/96", "1::9"},
      {"label of ::ffff:0:0/96", "::fffe:5/96", "2400::1/64", "::9"},
      {"label of Teredo", "2001:0:1::1/64", "2001:4::1/64", "2001:0:8000::9"},
      {"label of Teredo", "2400::1/64", "2001:0:1::1/64", "2001:4::9"},
      {"label of ORCHID", "2001:10::1/64", "2001:20::1/64", "2001:1f::9"},
      {"label of ORCHID", "2001:1000::1/64", "2001:10::1/64", "2001:20::9"},
      {"label of 6bone", "3ffe::1/64", "3fff::1/64", "3ffe:8000::9"},
      {"label of 6bone", "2400::1/64", "3ffe::1/64", "3fff::9"},
      {"label of 6to4", "2002::1/64", "2003::1/64", "2002:8000::9"},
      {"label of 6to4", "2400::1/64", "2002::1/64", "2003::9"},
      {"label of unique local", "fc00::1/64", "2400::1/64", "fd00::9"},
      {"label of unique local", "2400::1/64", "fd00::1/64", "fe00::9"},
      {"bits in common", "2400:1::1/64", "2400:2::1/64", "2400:1:8000::9"},
      {"bits in common", "2400:2::1/64", "2400:1::1/64", "2400:3::9"},
      {"bits in common, within the network", "2400::8:1/112", "2400::1/64", "2400::8:9"},
  };
  for (const auto& [rule, chosen, other, destination] : all) {
    for (const bool last : {false, true}) {
      PodView pod;
      pod.interfaces = {interface("eth0", {own(chosen), own(other)})};
      if (last) std::ranges::reverse(pod.interfaces[0].addresses);
      const Address to = *Address::parse(destination);
      EXPECT_EQ(text(source_for(pod, by("eth0"), to)), own(chosen).address.text())
          << rule << ": to " << destination << ", not " << other;
      EXPECT_EQ(text(masquerading(pod, by("eth0"), to)), own(chosen).address.text()) << rule;
    }
  }
}

TEST(SourceAddress, OfIpv6IsItselfThenNoneThatIsDeprecatedThenOneOfTheInterface) {
  const Address to = *Address::parse("2400:1::9");
  PodView pod;
  pod.interfaces = {interface("eth0", {own("2400:2::1/64")}), interface("eth1", {own("2400:1::9/128")})};
  EXPECT_EQ(text(source_for(pod, by("eth0"), to)), "2400:1::9");
  pod.interfaces[1].addresses = {own("2400:1::1/64")};
  EXPECT_EQ(text(source_for(pod, by("eth0"), to)), "2400:2::1");
  EXPECT_EQ(text(source_for(pod, by("eth1"), to)), "2400:1::1");
  pod.interfaces[0].addresses[0].deprecated = true;
  EXPECT_EQ(text(source_for(pod, by("eth0"), to)), "2400:1::1");
  pod.interfaces[1].addresses[0].deprecated = true;
  EXPECT_EQ(text(source_for(pod, by("eth0"), to)), "2400:2::1");
  // To a neighbour or a group, of that interface alone.
  pod.interfaces[0].addresses[0].deprecated = false;
  EXPECT_EQ(text(source_for(pod, by("eth0"), *Address::parse("ff02::1"))), "2400:2::1");
  pod.interfaces[0].addresses.clear();
  EXPECT_EQ(text(source_for(pod, by("eth0"), *Address::parse("ff02::1"))), "none");
  EXPECT_EQ(text(source_for(pod, by("eth0"), *Address::parse("fe80::1"))), "none");
  EXPECT_EQ(text(source_for(pod, by("eth0"), to)), "2400:1::1");
}

TEST(SourceAddress, OfIpv4IsTheFirstOfTheNetworkOfTheNextHop) {
  PodView pod;
  pod.interfaces = {interface("lo", {own("127.0.0.1/8")}),
                    interface("eth0", {own("10.0.0.1/24"), own("10.0.1.1/24"), own("10.0.1.2/24"), own("fd00::1/64")}),
                    interface("eth1", {own("10.0.9.1/24")}), interface("bare", {})};
  const Address to = *Address::parse("192.0.2.9");
  EXPECT_EQ(text(source_for(pod, by("eth0"), to)), "10.0.0.1");
  EXPECT_EQ(text(source_for(pod, by("eth1"), to)), "10.0.9.1");
  EXPECT_EQ(text(source_for(pod, by("bare"), to)), "10.0.0.1");
  EXPECT_EQ(text(source_for(pod, by("gone"), to)), "none");
  EXPECT_EQ(text(masquerading(pod, by("gone"), to)), "none");
  EXPECT_EQ(text(masquerading(pod, by("eth0"), *Address::parse("10.0.1.7"))), "10.0.1.1");
  EXPECT_EQ(text(masquerading(pod, by("eth0"), to)), "10.0.0.1");

  Route way{*AddressRange::parse("0.0.0.0/0"), "eth0"};
  RouteLookup found = by("eth0");
  found.route = &way;
  EXPECT_EQ(text(source_for(pod, found, to)), "10.0.0.1");
  way.gateway = Address::parse("10.0.1.254");
  EXPECT_EQ(text(source_for(pod, found, to)), "10.0.1.1");
  EXPECT_EQ(text(masquerading(pod, found, to)), "10.0.1.1");
  way.source = Address::parse("10.0.9.1");
  EXPECT_EQ(text(source_for(pod, found, to)), "10.0.9.1");
  EXPECT_EQ(text(source_for(pod, by("lo", RouteLookup::Kind::by_rule), to)), "192.0.2.9");
}

TEST(SourceAddress, OfIpv4HasTheScopeOfTheWay) {
  PodView pod;
  pod.interfaces = {interface("eth0", {own("10.0.0.1/24", RT_SCOPE_LINK), own("10.0.0.2/24"), own("10.0.0.3/24")}),
                    interface("eth1", {own("10.0.1.1/24", RT_SCOPE_LINK), own("10.0.1.2/24", RT_SCOPE_HOST)}),
                    interface("lo", {own("127.0.0.1/8")})};
  Route way{*AddressRange::parse("0.0.0.0/0"), "eth0"};
  RouteLookup found = by("eth0");
  found.route = &way;
  EXPECT_EQ(text(source_for(pod, found, *Address::parse("192.0.2.9"))), "10.0.0.1");  // a neighbour
  way.gateway = Address::parse("10.0.0.254");
  EXPECT_EQ(text(source_for(pod, found, *Address::parse("192.0.2.9"))), "10.0.0.2");
  found.device = "eth1";  // has none of that scope
  EXPECT_EQ(text(source_for(pod, found, *Address::parse("192.0.2.9"))), "10.0.0.2");
  EXPECT_EQ(text(source_for(pod, by("lo"), *Address::parse("192.0.2.9"))), "10.0.0.2");
}

TEST(SourceAddress, ToThePodItselfIsTheAddress) {
  PodView pod;
  pod.interfaces = {interface("lo", {own("127.0.0.1/8"), own("127.1.0.1/16"), own("::1/128")}),
                    interface("eth0", {own("10.0.0.1/24"), own("10.0.0.2/24"), own("fd00::1/64"), own("fd00::2/64")})};
  const auto to = [&](const char* destination) {
    return text(source_for(pod, by("lo", RouteLookup::Kind::local), *Address::parse(destination)));
  };
  EXPECT_EQ(to("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(to("10.0.0.2"), "10.0.0.1");
  EXPECT_EQ(to("fd00::2"), "fd00::2");
  EXPECT_EQ(to("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(to("127.9.9.9"), "127.0.0.1");
  EXPECT_EQ(to("127.1.0.1"), "127.1.0.1");
  EXPECT_EQ(to("127.1.9.9"), "127.1.0.1");
  pod.interfaces.erase(pod.interfaces.begin());
  EXPECT_EQ(to("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace sidetrack
