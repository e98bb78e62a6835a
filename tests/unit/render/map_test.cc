// SPDX-License-Identifier: GPL-2.0-or-later
// How the map and a comparison by effect are put into words, for each field of a packet.
#include "render/map.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mesh/rule_words.h"
#include "render/effect.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "unit/space/map_pieces.h"

namespace sidetrack {
namespace {

using namespace words;
using space::Regions;
using space::Side;
using ::testing::HasSubstr;

Side without_rules(const char* options = "-m NONE --ip-families ipv4") {
  return {assumed_pod(planned(options)), {Live{}}};
}

// A pod that drops what has all of these.
Side dropping(std::vector<Match> matches, const char* hook = "OUTPUT", Families families = Family::ipv4) {
  Side side = without_rules();
  if (families != Families(Family::ipv4)) side = without_rules("-m NONE");
  side.live.front().chains = {chain(families, Table::filter, hook, false, {{std::move(matches), Verdict::drop}})};
  return side;
}

std::string map_of(Side side, const MapOptions& options) {
  Regions regions({std::move(side)});
  return map_text(regions, 0, options);
}

// The words of the line that says what is dropped; of outbound TCP.
std::string dropped(std::vector<Match> matches) {
  matches.emplace_back(tcp);
  const std::string text = map_of(dropping(std::move(matches)), {.families = Family::ipv4, .ways = {Direction::out}});
  const std::size_t end = text.find("-> dropped");
  if (end == std::string::npos) return text;
  const std::size_t begin = text.rfind('\n', end) + 3;
  return text.substr(begin, text.find_last_not_of(' ', end - 1) + 1 - begin);
}

TEST(MapWords, NameWhatIsInABoxOrWhatIsNot) {
  const AddressRange ten = *AddressRange::parse("10.0.0.0/8");
  for (const auto& [matches, expected] : std::vector<std::pair<std::vector<Match>, std::string>>{
           {{destination(ten)}, "to 10.0.0.0/8"},
           {{dport(80)}, "to port 80"},
           {{PortMatch{End::destination, {{80, 90}, {100, 100}}, false}}, "to port 80-90, 100"},
           {{owner(OwnerKind::uid, 7)}, "sent by uid 7"},
           {{owner(OwnerKind::gid, {7, 9})}, "sent by gid 7-9"},
           {{cgroup({"a/b", 0, "a/b"})}, "sent from cgroup a/b"},
           {{destination(ten), except(dport(80))}, "to 10.0.0.0/8; to any port but 80"},
           {{destination(ten), PortMatch{End::destination, {{101, 65535}}, false}},
            "to 10.0.0.0/8; to any port but 1-100"},
           {{destination(ten), except(owner(OwnerKind::uid, 7))}, "to 10.0.0.0/8; sent by any uid but 7"},
           {{destination(ten), except(owner(OwnerKind::gid, 7))}, "to 10.0.0.0/8; sent by any gid but 7"},
           {{destination(ten), except(cgroup({"a/b", 0, "a/b"}))}, "to 10.0.0.0/8; sent from any cgroup but a/b"},
           {{destination(ten), except(mark(5))}, "to 10.0.0.0/8; with mark any but 0x5"},
           {{dport(80), except(destination(ten))}, "to any address but 10.0.0.0/8; to port 80"},
           {{dport(80), sport(53)}, "to port 80; from port 53"},
           {{mark(5)}, "with mark 0x5"},
           {{dport(80), owner(OwnerKind::uid, 7)}, "to port 80; sent by uid 7"},
           {{PortMatch{End::destination, {1, 3, 5, 7, 9, 11, 13, 15}, false}}, "to port 1, 3, 5, 7, 9, 11, 13, 15"},
           {{PortMatch{End::destination, {1, 3, 5, 7, 9, 11, 13, 15, 17, 19}, false}},
            "to port 1, 3, 5, 7, 9, 11, 13, 15 and 2 more"},
       })
    EXPECT_EQ(dropped(matches), expected);
}

TEST(MapWords, JoinWhatReadsAlike) {
  const MapOptions outbound{.families = Family::ipv4, .ways = {Direction::out}};
  EXPECT_EQ(map_of(without_rules(), outbound), "outbound tcp, udp, icmp\n  everything  -> leaves untouched, by eth0\n");
  EXPECT_EQ(map_of(without_rules("-m NONE"), {}),
            "outbound tcp, udp, icmp\n"
            "  everything  -> leaves untouched, by eth0\n"
            "\n"
            "inbound tcp, udp, icmp\n"
            "  everything  -> reaches the pod untouched\n"
            "\n"
            "to itself tcp, udp, icmp\n"
            "  everything  -> reaches the pod untouched\n");
  EXPECT_EQ(map_of(dropping({tcp, dport(80)}, "OUTPUT", Families::both()), {}),
            "outbound tcp\n"
            "  everything but what follows  -> leaves untouched, by eth0\n"
            "  to port 80                   -> dropped\n"
            "\n"
            "outbound udp, icmp\n"
            "  everything  -> leaves untouched, by eth0\n"
            "\n"
            "inbound tcp\n"
            "  everything but what follows  -> reaches the pod untouched\n"
            "  from port 80                 -> reaches the pod untouched; replies are lost\n"
            "\n"
            "inbound udp, icmp\n"
            "  everything  -> reaches the pod untouched\n"
            "\n"
            "to itself tcp\n"
            "  everything but what follows       -> reaches the pod untouched\n"
            "  to port 80                        -> dropped\n"
            "  to any port but 80; from port 80  -> reaches the pod untouched; replies are lost\n"
            "\n"
            "to itself udp, icmp\n"
            "  everything  -> reaches the pod untouched\n");
  // What one family alone has is of that one.
  Side one = without_rules("-m NONE");
  one.live.front().chains = {chain(Family::ipv6, Table::filter, "OUTPUT", false, {{{dport(80)}, Verdict::drop}})};
  EXPECT_EQ(map_of(one, {.families = Families::both(), .ways = {Direction::out}}),
            "outbound tcp, udp, icmp, IPv4\n"
            "  everything  -> leaves untouched, by eth0\n"
            "\n"
            "outbound tcp, udp, IPv6\n"
            "  everything but what follows  -> leaves untouched, by eth0\n"
            "  to port 80                   -> dropped\n"
            "\n"
            "outbound icmp, IPv6\n"
            "  everything  -> leaves untouched, by eth0\n");
  EXPECT_EQ(map_of(dropping({in("eth0"), dport(80), source(*AddressRange::parse("10.0.0.0/8"))}, "INPUT"),
                   {.families = Family::ipv4, .ways = {Direction::in}}),
            "inbound tcp, udp\n"
            "  everything but what follows  -> reaches the pod untouched\n"
            "  to port 80; from 10.0.0.0/8  -> dropped\n"
            "\n"
            "inbound icmp\n"
            "  everything  -> reaches the pod untouched\n");
}

// A long line is not waited for.
TEST(MapWords, AlignWhatIsNotTooLong) {
  std::vector<PortRange> ports;
  for (std::uint16_t port = 10001; port < 10017; port = static_cast<std::uint16_t>(port + 2)) ports.emplace_back(port);
  const MapOptions outbound{.families = Family::ipv4, .ways = {Direction::out}};
  const Match many = PortMatch{End::destination, ports, false};
  EXPECT_THAT(map_of(dropping({tcp, many}), outbound),
              HasSubstr("  everything but what follows" + std::string(62 - 27, ' ') + "  -> leaves"));
  EXPECT_THAT(map_of(dropping({tcp, many, owner(OwnerKind::uid, 7)}), outbound),
              HasSubstr("  everything but what follows" + std::string(72 - 27, ' ') + "  -> leaves"));
  EXPECT_THAT(map_of(dropping({tcp, dport(80)}), {.families = Family::ipv4, .ways = {Direction::out}, .color = true}),
              HasSubstr("\033[1moutbound tcp\033[0m\n"));
}

// A colour for each kind of end: of what the proxy gets, of what goes on as it is, is changed, or is lost.
TEST(MapPicture, ColoursTheEnds) {
  const auto with = [](Table table, const char* hook, Target target) {
    Side side = without_rules();
    side.live.front().chains = {chain(Family::ipv4, table, hook, false, {{{tcp, dport(80)}, std::move(target)}})};
    return side;
  };
  const Nat from_elsewhere{End::source, AddressRange::parse("192.0.2.77"), {}, "-j SNAT --to-source 192.0.2.77"};
  const Nat to_elsewhere{
      End::destination, AddressRange::parse("192.0.2.77"), {}, "-j DNAT --to-destination 192.0.2.77"};
  const std::string lost = "class=\"drop\"";
  const std::string as_it_is = "class=\"onward\"";
  const std::string proxy = "class=\"proxy\"";
  const std::string changed = "class=\"change\"";
  for (const auto& [side, end, color] : std::vector<std::tuple<Side, std::string, std::string>>{
           {with(Table::filter, "OUTPUT", Verdict::drop), "dropped", lost},
           {with(Table::filter, "OUTPUT", Verdict::drop), "leaves untouched, by eth0", as_it_is},
           {with(Table::filter, "OUTPUT", Verdict::accept), "reaches the pod untouched", as_it_is},
           {with(Table::nat, "OUTPUT", Redirect{15001}), "127.0.0.1:15001 (Envoy outbound)", proxy},
           {with(Table::nat, "POSTROUTING", from_elsewhere), "leaves from 192.0.2.77, by eth0; whether replies arrive",
            changed},
           {with(Table::nat, "OUTPUT", to_elsewhere), "leaves by eth0 to 192.0.2.77", changed},
           {with(Table::filter, "OUTPUT", UnknownTarget{"-j X"}), "unknown", changed},
       }) {
    Regions regions({side});
    // A rectangle, and in the line after it the words.
    const std::string svg = map_svg(regions, 0, {.families = Family::ipv4});
    const std::size_t words = svg.find(">" + end);
    ASSERT_NE(words, std::string::npos) << end << "\n" << svg;
    const std::size_t line = svg.rfind("<rect", words);
    EXPECT_THAT(svg.substr(line, svg.find('\n', line) - line), HasSubstr(color)) << end;
  }
}

TEST(MapJson, HasTheRegions) {
  Regions regions({dropping({tcp, owner(OwnerKind::uid, 7), dport({80, 90})})});
  const auto of = [&](const MapOptions& options) {
    return nlohmann::json::parse(test::map_json(regions, 0, options))["regions"];
  };
  std::vector<std::string> found;
  for (const auto& region : of({.families = Family::ipv4, .ways = {Direction::out}})) {
    EXPECT_EQ(region["packets"]["way"], "out");
    EXPECT_EQ(region["packets"]["family"], "ipv4");
    if (region["kind"] != "dropped" || region["by"].is_null()) continue;
    EXPECT_EQ(region["packets"]["protocol"], nlohmann::json::parse(R"(["tcp"])"));
    EXPECT_EQ(region["packets"]["uid"], nlohmann::json::parse(R"(["7"])"));
    EXPECT_EQ(region["packets"]["destination_port"], nlohmann::json::parse(R"(["80-90"])"));
    EXPECT_FALSE(region["packets"].contains("gid"));
    EXPECT_EQ(region["ending"], "dropped");
    EXPECT_EQ(region["by"]["backend"], "iptables-legacy");
    EXPECT_EQ(region["by"]["table"], "filter");
    EXPECT_EQ(region["by"]["chain"], "OUTPUT");
    EXPECT_EQ(region["by"]["number"], 1);
    EXPECT_EQ(region["by"]["rule"], "-A OUTPUT -p tcp -m owner --uid-owner 7 --dport 80:90 -j DROP");
    EXPECT_FALSE(region["by"].contains("policy"));
    found.push_back(region["witness"]);
  }
  EXPECT_THAT(found, ::testing::Not(::testing::IsEmpty()));
  for (const std::string& witness : found) EXPECT_THAT(witness, ::testing::MatchesRegex("out tcp .*--uid 7 .*"));
  for (const auto& region : of({.families = Family::ipv6})) EXPECT_EQ(region["packets"]["family"], "ipv6");
  for (const auto& region : of({.families = Families::both(), .ways = {Direction::in}}))
    EXPECT_EQ(region["packets"]["way"], "in");
}

TEST(EffectWords, SayWhatDiffersBeforeAndAfter) {
  Regions regions({without_rules(), dropping({tcp, dport(80), owner(OwnerKind::uid, 7)})});
  const std::vector<EffectRegion> found = effect(regions);
  EXPECT_EQ(effect_text(found, false),
            "inbound tcp, IPv4: from port 80\n"
            "  before   reaches the pod untouched\n"
            "  after    reaches the pod untouched; whether replies arrive is unknown\n"
            "  witness  sidetrack explain in tcp 192.0.2.2:80 --from-port 80 --in-interface eth0\n"
            "to itself tcp, IPv4: to any port but 80; from port 80\n"
            "  before   reaches the pod untouched\n"
            "  after    reaches the pod untouched; whether replies arrive is unknown\n"
            "  witness  sidetrack explain lo tcp 127.0.0.1:8080 --from-port 80 --uid 1000 --gid 1000\n"
            "to itself tcp, IPv4: from port 80; sent by any uid but 7\n"
            "  before   reaches the pod untouched\n"
            "  after    reaches the pod untouched; whether replies arrive is unknown\n"
            "  witness  sidetrack explain lo tcp 127.0.0.1:80 --from-port 80 --uid 1000 --gid 1000\n"
            "outbound tcp, IPv4: to port 80; sent by uid 7\n"
            "  before   leaves untouched, by eth0\n"
            "  after    dropped\n"
            "  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 7 --gid 1000\n"
            "to itself tcp, IPv4: to port 80; sent by uid 7\n"
            "  before   reaches the pod untouched\n"
            "  after    dropped\n"
            "  witness  sidetrack explain lo tcp 127.0.0.1:80 --uid 7 --gid 1000\n"
            "and 47 more regions, of later packets of connections and of packets that are not usual (--json has "
            "them)\n");
  const nlohmann::json said = nlohmann::json::parse(effect_json(regions, found));
  EXPECT_EQ(said["same"], false);
  EXPECT_EQ(said["regions"].size(), found.size());
  EXPECT_EQ(found.size(), 52U);
  EXPECT_EQ(said["regions"][3]["words"], "outbound tcp, IPv4: to port 80; sent by uid 7");
  EXPECT_EQ(said["regions"][3]["before"], "leaves untouched, by eth0");
  EXPECT_EQ(said["regions"][3]["after"], "dropped");
  EXPECT_EQ(said["regions"][3]["packets"]["uid"], nlohmann::json::parse(R"(["7"])"));
  EXPECT_THAT(effect_text(found, true), HasSubstr("\033[31m  before   \033[0mleaves untouched, by eth0\n"
                                                  "\033[32m  after    \033[0mdropped\n"));
  Regions same({without_rules(), without_rules()});
  EXPECT_EQ(effect_text(effect(same), false), "every packet of tcp, udp and icmp is treated the same\n");
  EXPECT_EQ(nlohmann::json::parse(effect_json(same, effect(same))),
            nlohmann::json::parse(R"({"same": true, "regions": []})"));
}

}  // namespace
}  // namespace sidetrack
