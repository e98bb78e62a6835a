// SPDX-License-Identifier: GPL-2.0-or-later
// Packets for which conditions hold, at the edges of what they name, and such as the pod can have.
#include "walk/examples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "render/read_rule.h"
#include "unit/asking.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Conditions of(const Rule& rule) {
  Conditions all;
  for (const Match& match : rule.matches) all.push_back(&match);
  return all;
}

// The values that packets for which a rule holds have of one field, in their order.
template <typename Field>
auto values(const std::string& words, const Field& field) {
  const Rule rule = read_rule(words);
  const PodView pod = assumed_pod(planned("-i *"));
  std::vector<decltype(field(Packet{}))> all;
  for (const Packet& packet : Examples(pod, {}).of(of(rule), Direction::out, Family::ipv4)) {
    if (std::ranges::find(all, field(packet)) == all.end()) all.push_back(field(packet));
  }
  return all;
}

std::vector<std::uint16_t> ports(const std::string& words) {
  return values("-A OUTPUT -p tcp " + words + " -j DROP",
                [](const Packet& packet) { return packet.destination_port.value_or(0); });
}

TEST(Examples, HavePortsAtTheEdges) {
  EXPECT_THAT(ports(""), ElementsAre(80, 1, 65535));
  EXPECT_THAT(ports("--dport 0:79"), ElementsAre(79, 1));
  EXPECT_THAT(ports("--dport 1:79"), ElementsAre(1, 79));
  EXPECT_THAT(ports("--dport 65535"), ElementsAre(65535));
  EXPECT_THAT(ports("! --dport 0:79"), ElementsAre(80, 65535));
  EXPECT_THAT(ports("! --dport 80:65535"), ElementsAre(79, 1));
  EXPECT_THAT(ports("! --dport 0:65535"), IsEmpty());
  EXPECT_THAT(ports("-m multiport --dports 0,443"), ElementsAre(443));
}

TEST(Examples, HaveIdsAtTheEdges) {
  const auto uids = [](const std::string& words) {
    return values("-A OUTPUT -p tcp -m owner " + words + " -j DROP",
                  [](const Packet& packet) { return packet.owner.value_or(Owner{}).uid; });
  };
  EXPECT_THAT(uids("--uid-owner 7"), ElementsAre(7));
  EXPECT_THAT(uids("! --uid-owner 0-4294967293"), ElementsAre(4294967294U));
  EXPECT_THAT(uids("! --uid-owner 1-4294967294"), ElementsAre(0));
  EXPECT_THAT(uids("! --uid-owner 0-4294967294"), IsEmpty());
}

std::vector<std::string> examples(const PodView& pod, const std::string& words, Direction direction, Family family) {
  const Rule rule = read_rule(words);
  std::vector<std::string> all;
  for (const Packet& packet : Examples(pod, {}).of(of(rule), direction, family)) all.push_back(explain_words(packet));
  return all;
}

std::string first(const PodView& pod, const std::string& words, Direction direction, Family family = Family::ipv4) {
  const auto all = examples(pod, words, direction, family);
  return all.empty() ? "none" : all.front().substr(0, all.front().find(" --from-port"));
}

TEST(Examples, GoToHostsThatThePodHasARouteTo) {
  PodView pod = assumed_pod(planned("-i *"));
  EXPECT_EQ(first(pod, "-A OUTPUT -p tcp -j DROP", Direction::out), "out tcp 198.51.100.1:80");
  EXPECT_EQ(first(pod, "-A OUTPUT -p tcp -j DROP", Direction::out, Family::ipv6), "out tcp [2001:db8:ffff::1]:80");
  std::erase_if(pod.routes, [](const Route& route) { return route.to.prefix_length() == 0; });
  EXPECT_EQ(first(pod, "-A OUTPUT -p tcp -j DROP", Direction::out), "none");
  pod.routes.push_back({*AddressRange::parse("192.0.2.0/24"), "eth0"});
  pod.routes.push_back({*AddressRange::parse("2001:db8::/64"), "eth0"});
  EXPECT_EQ(first(pod, "-A OUTPUT -p tcp -j DROP", Direction::out), "out tcp 192.0.2.1:80");
  EXPECT_EQ(first(pod, "-A OUTPUT ! -d 192.0.2.1/32 -j DROP", Direction::out), "out tcp 192.0.2.3:80");
  EXPECT_EQ(first(pod, "-A OUTPUT -d 192.0.2.128/25 -j DROP", Direction::out), "out tcp 192.0.2.128:80");
  EXPECT_EQ(first(pod, "-A OUTPUT -d 10.0.0.0/8 -j DROP", Direction::out), "none");
  EXPECT_EQ(first(pod, "-A OUTPUT -p tcp -j DROP", Direction::out, Family::ipv6), "out tcp [2001:db8::1]:80");
  EXPECT_EQ(first(pod, "-A INPUT -p tcp -j DROP", Direction::in), "in tcp 192.0.2.2:80 --from 192.0.2.1");
}

TEST(Examples, ComeFromAddressesThatTheSenderHas) {
  const PodView pod = assumed_pod(planned("-i *"));
  EXPECT_EQ(first(pod, "-A OUTPUT -s 10.96.0.10/32 -p udp -j DROP", Direction::out), "none");
  EXPECT_EQ(first(pod, "-A OUTPUT -s 192.0.2.0/24 -p udp -j DROP", Direction::out),
            "out udp 198.51.100.1:80 --from 192.0.2.2");
  EXPECT_EQ(first(pod, "-A OUTPUT -s 127.0.0.6/32 -p tcp -j DROP", Direction::lo),
            "lo tcp 192.0.2.2:80 --from 127.0.0.6");
  EXPECT_EQ(first(pod, "-A INPUT -s 192.0.2.2/32 -j DROP", Direction::in), "none");
  EXPECT_EQ(first(pod, "-A INPUT -s 10.9.9.9/32 -j DROP", Direction::in), "in tcp 192.0.2.2:80 --from 10.9.9.9");
}

TEST(Examples, HaveOtherValuesOneAtATime) {
  const PodView pod = assumed_pod(planned("-i *"));
  const Rule rule = read_rule("-A OUTPUT -p tcp --dport 0:79 -m owner ! --uid-owner 7 -j DROP");
  std::vector<std::string> all;
  for (const Packet& packet : Examples(pod, planned("-i *").ruleset).of(of(rule), Direction::out, Family::ipv4))
    all.push_back(explain_words(packet));
  EXPECT_EQ(all.front(), "out tcp 198.51.100.1:79 --from-port 40000 --uid 1000 --gid 1000 --cgroup /");
  EXPECT_THAT(all, Contains("out tcp 198.51.100.1:1 --from-port 40000 --uid 1000 --gid 1000 --cgroup /"));
  EXPECT_THAT(all, Contains("out tcp 198.51.100.1:79 --from-port 40000 --uid 1337 --gid 1000 --cgroup /"));
  EXPECT_THAT(all, Not(Contains("out tcp 198.51.100.1:80 --from-port 40000 --uid 1000 --gid 1000 --cgroup /")));
}

}  // namespace
}  // namespace sidetrack
