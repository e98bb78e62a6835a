// SPDX-License-Identifier: GPL-2.0-or-later
// What an option changes, of all usual packets: those that it names end as it says, and no others end otherwise than
// without it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "space/regions.h"
#include "unit/asking.h"
#include "walk/explain.h"

namespace sidetrack::space {
namespace {

// Packets that have these values in these fields.
struct Packets {
  std::vector<Direction> ways;
  std::vector<std::pair<Field, Intervals>> fields{};
  bool all = true;  // false: some of them
};

constexpr std::uint16_t untouched = 0;

struct Case {
  const char* usual;                                 // options
  const char* option;                                // and one more,
  std::vector<Packets> all;                          // by which these of the packets
  std::uint16_t ends;                                // go to that port of the proxy
  std::optional<Packets> of_replies = std::nullopt;  // whose replies it changes
};

Intervals range(const char* text) {
  const AddressRange range = *AddressRange::parse(text);
  return {{value_of(range.first), value_of(range.last)}};
}
Intervals range_but(const char* text) {
  const AddressRange range = *AddressRange::parse(text);
  const Value last = range.family() == Family::ipv4 ? 0xffffffffU : ~Value{0};
  return {{0, value_of(range.first) - 1}, {value_of(range.last) + 1, last}};
}

constexpr Direction out = Direction::out;
constexpr Direction in = Direction::in;
constexpr Direction lo = Direction::lo;
const std::pair<Field, Intervals> ipv4{Field::family, {{0, 0}}};
const std::pair<Field, Intervals> ipv6{Field::family, {{1, 1}}};

std::vector<Case> cases() {
  return {
      // Of the sidecar. With TPROXY, what the proxy's group sends to its own pod is inbound traffic, too.
      {"-i * -b *", "-o 8000-8100", {{{out, lo}, {{Field::destination_port, {{8000, 8100}}}}}}, untouched},
      {"-i * -b *", "-d 9000-9100", {{{in}, {{Field::destination_port, {{9000, 9100}}}}}}, untouched},
      {"-m TPROXY -i * -b *", "-d 9000-9100", {{{in, lo}, {{Field::destination_port, {{9000, 9100}}}}}}, untouched},
      {"-i 10.0.0.0/8,fd00::/8", "-q 9000-9100", {{{out}, {{Field::destination_port, {{9000, 9100}}}}}}, 15001},
      {"-i *", "-b 9000-9100", {{{in}, {{Field::destination_port, {{9000, 9100}}}}}}, 15006},
      {"-m TPROXY -i *",
       "-b 9000-9100",
       {{{in}, {{Field::destination_port, {{9000, 9100}}}}},
        {{lo}, {{Field::destination_port, {{9000, 9100}}}}, false}},
       15006},
      {"-i * -b *", "--exclude-uids 101,2000-2999", {{{out}, {{Field::uid, {{101, 101}, {2000, 2999}}}}}}, untouched},
      {"-i * -b *", "--exclude-gids 101,2000-2999", {{{out}, {{Field::gid, {{101, 101}, {2000, 2999}}}}}}, untouched},
      {"-i * -b *",
       "--exclude-uid-ports 101:443,8000-8100",
       {{{out}, {{Field::uid, {{101, 101}}}, {Field::destination_port, {{443, 443}, {8000, 8100}}}}}},
       untouched},
      {"-i * -b *", "--bypass-cgroup /pod/app", {{{out}, {{Field::cgroup, {{1, 1}}}}}}, untouched},
      {"-i * -b *",
       "--exclude-inbound-ranges 10.9.0.0/16,fd09::/16",
       {{{in}, {ipv4, {Field::source, range("10.9.0.0/16")}}}, {{in}, {ipv6, {Field::source, range("fd09::/16")}}}},
       untouched},
      {"-m TPROXY -i * -b *",
       "--exclude-inbound-ranges 10.9.0.0/16,fd09::/16",
       {{{in}, {ipv4, {Field::source, range("10.9.0.0/16")}}}, {{in}, {ipv6, {Field::source, range("fd09::/16")}}}},
       untouched},
      {"-i * -b *",
       "--include-inbound-ranges 10.9.0.0/16,fd09::/16",
       {{{in}, {ipv4, {Field::source, range_but("10.9.0.0/16")}}},
        {{in}, {ipv6, {Field::source, range_but("fd09::/16")}}}},
       untouched},
      {"-m TPROXY -i * -b *",
       "--include-inbound-ranges 10.9.0.0/16,fd09::/16",
       {{{in}, {ipv4, {Field::source, range_but("10.9.0.0/16")}}},
        {{in}, {ipv6, {Field::source, range_but("fd09::/16")}}},
        {{lo}, {}, false}},
       untouched},
      {"-m TPROXY -i * -b *",
       "--capture-udp 443,8000-8100",
       {{{in}, {{Field::protocol, {{udp, udp}}}, {Field::destination_port, {{443, 443}, {8000, 8100}}}}}},
       15006},
      // Of the ambient pod.
      {"--dataplane ambient", "--ingress", {{{in}}}, untouched},
      // What comes from port 53 is tracked in zone 1, and a reply to it, in zone 0, goes to the proxy as a query.
      {"--dataplane ambient",
       "--redirect-dns",
       {{{out, lo}, {{Field::destination_port, {{53, 53}}}}}},
       15053,
       Packets{{in}, {{Field::protocol, {{udp, udp}}}, {Field::source_port, {{53, 53}}}}}},
  };
}

class Option : public ::testing::TestWithParam<std::tuple<Case, BackendKind>> {};

// Whether it ends so, of all ways in which it may.
bool ends(const Ending& ending, std::uint16_t port) {
  if (!ending.either.empty())
    return std::ranges::all_of(ending.either, [&](const Ending& one) { return ends(one, port); });
  if (port == untouched) return !is_captured(ending);
  return (ending.translated && ending.port == port) || (ending.transparent && ending.transparent_port == port);
}

TEST_P(Option, ChangesWhatItNamesAndNothingElse) {
  const auto& [one, backend] = GetParam();
  const Plan without = planned(one.usual);
  const Plan with = planned(std::string(one.usual) + " " + one.option);
  const auto side = [&](const Plan& plan) {
    return Side{assumed_pod(plan, named_interfaces(with)), {as_live(plan.ruleset, backend)}};
  };
  Regions regions({side(without), side(with)});

  // What programs send that mark nothing, and what networks carry.
  std::vector<Box> usual;
  for (const Direction way : {out, in, lo}) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      Box& box = usual.emplace_back(regions.ordinary(regions.side(0).pod, way, family));
      box[index(Field::mark)] = regions.sets().single(regions.universe().mark_class(0));
    }
  }
  enum : Leaf { none = no_such_packet, alike, alike_and_captured, as_it_says, otherwise };
  const Regions::Node difference =
      regions.diagrams().combined(regions.of(0, usual), regions.of(1, usual), [&](Leaf a, Leaf b) -> Leaf {
        if (a == no_such_packet || b == no_such_packet) return a == b ? none : otherwise;
        if (regions.by_ending(a) == regions.by_ending(b))
          return is_captured(regions.decision(a).ending) ? alike_and_captured : alike;
        return ends(regions.decision(b).ending, one.ends) ? as_it_says : otherwise;
      });
  const auto is_among = [&](const Box& box, const Packets& packets) {
    const auto is_named = [&](const auto& field) {
      return regions.sets().is_within(box[index(field.first)], regions.sets().of(field.second));
    };
    const Value way = regions.sets().intervals(box[index(Field::way)]).front().first;
    return std::ranges::find(packets.ways, static_cast<Direction>(way)) != packets.ways.end() &&
           std::ranges::all_of(packets.fields, is_named);
  };
  const auto named = [&](const Box& box, bool surely) {
    return std::ranges::any_of(
        one.all, [&](const Packets& packets) { return (packets.all || !surely) && is_among(box, packets); });
  };
  const auto words = [&](const Box& box) { return explain_words(regions.universe().packet(regions.example(box))); };

  const Leaf left_out = one.ends == untouched ? alike_and_captured : alike;
  bool changes = false;
  regions.for_each(difference, [&](const Box& box, const Box&, Leaf leaf) {
    changes |= leaf == as_it_says;
    const bool changes_replies = one.of_replies && is_among(box, *one.of_replies);
    EXPECT_TRUE(leaf != Leaf{otherwise} || changes_replies) << words(box);
    EXPECT_FALSE(leaf == as_it_says && !named(box, false)) << "changed, and not named: " << words(box);
    // What the proxy itself sends is not changed.
    const bool is_of_app =
        regions.sets().contains(box[index(Field::uid)], 1000) && regions.sets().contains(box[index(Field::gid)], 1000);
    EXPECT_FALSE(leaf == left_out && named(box, true) && is_of_app) << "named, and not changed: " << words(box);
  });
  EXPECT_TRUE(changes);
}

// "m_TPROXY_i_b_d_9000_9100_iptables_nft"
std::string name_of(const ::testing::TestParamInfo<Option::ParamType>& info) {
  const auto& [one, backend] = info.param;
  std::string text;
  for (const char c : fmt::format("{} {} {}", one.usual, one.option, name(backend))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      text += c;
    } else if (!text.empty() && text.back() != '_') {
      text += '_';
    }
  }
  return text;
}

INSTANTIATE_TEST_SUITE_P(, Option, ::testing::Combine(::testing::ValuesIn(cases()), ::testing::ValuesIn(all_backends)),
                         name_of);

}  // namespace
}  // namespace sidetrack::space
