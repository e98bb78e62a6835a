// SPDX-License-Identifier: GPL-2.0-or-later
// How an answer of `explain` is laid out, of steps that are written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "render/render.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Step event(Step::Kind kind, const char* text) {
  Step step;
  step.kind = kind;
  step.text = text;
  return step;
}

Step rule(Step::Kind kind, const char* chain, unsigned number, const char* words, const char* text) {
  Step step = event(kind, text);
  step.backend = BackendKind::nftables;
  step.table = "inet t";
  step.chain = chain;
  step.number = number;
  step.rule = words;
  return step;
}

Step deeper(Step step) {
  step.depth = 1;
  return step;
}

Trace trace(std::vector<Step> steps) {
  Trace made;
  made.packet.source = Address::parse("192.0.2.2");
  made.packet.destination = Address::parse("10.0.0.1");
  made.packet.destination_port = 80;
  made.packet.owner = Owner{1, 2};
  made.steps = std::move(steps);
  made.outcome.kind = Outcome::Kind::dropped;
  return made;
}

constexpr auto hook = Step::Kind::hook;
constexpr auto kernel = Step::Kind::kernel;
constexpr auto passed = Step::Kind::passed;
constexpr auto unknown = Step::Kind::unknown;
constexpr auto matched = Step::Kind::matched;
constexpr auto decided = Step::Kind::decided;

// The steps alone, without the packet and the end.
std::string steps_of(const Trace& trace, const TextOptions& options = {}) {
  const std::string all = trace_text(trace, options);
  const std::size_t begin = all.find("\n\n") + 2;
  return all.substr(begin, all.rfind("\n\n") + 1 - begin);
}

// Six rules that are passed for one reason are lines of their own; seven are one line, unless all are asked for.
TEST(ExplainText, ShortensLongRunsOfRulesThatDoNotMatch) {
  const auto with = [](unsigned count) {
    std::vector<Step> steps{event(hook, "OUTPUT")};
    for (unsigned i = 1; i <= count; ++i) steps.push_back(rule(passed, "C", i, "-p udp", "is tcp"));
    steps.push_back(rule(passed, "C", count + 1, "-d ::1", "is IPv4"));
    steps.push_back(rule(decided, "C", count + 2, "-j DROP", "dropped"));
    return trace(steps);
  };
  EXPECT_EQ(steps_of(with(7)), R"(OUTPUT
  inet t C
    1-7  7 rules             no: is tcp
      8  -d ::1              no: is IPv4
      9  -j DROP             yes: dropped
)");
  EXPECT_EQ(steps_of(with(6)), steps_of(with(6), {.color = false, .all = true}));
  EXPECT_THAT(steps_of(with(7), {.color = false, .all = true}), HasSubstr("      7  -p udp              no: is tcp\n"));
  EXPECT_THAT(steps_of(with(1234)), HasSubstr(" 1-1234  1,234 rules         no: is tcp\n"));
}

// A run that is the end of all, too.
TEST(ExplainText, ShortensARunAtTheEnd) {
  std::vector<Step> steps;
  for (unsigned i = 1; i <= 8; ++i) steps.push_back(rule(passed, "C", i, "-p udp", "is tcp"));
  EXPECT_EQ(steps_of(trace(steps)), "  inet t C\n    1-8  8 rules             no: is tcp\n");
}

// Rules that match for one reason are no such run, and neither are those of two chains.
TEST(ExplainText, ARunIsOfOneChainAndOfRulesThatDoNotMatch) {
  std::vector<Step> matching;
  for (unsigned i = 1; i <= 8; ++i) matching.push_back(rule(matched, "C", i, "-j MARK", "marked"));
  EXPECT_THAT(steps_of(trace(matching)), HasSubstr("      8  -j MARK             yes: marked\n"));
  std::vector<Step> two;
  for (unsigned i = 1; i <= 8; ++i) two.push_back(rule(passed, i <= 4 ? "C" : "D", i, "-p udp", "is tcp"));
  EXPECT_THAT(steps_of(trace(two)), HasSubstr("      4  -p udp              no: is tcp\n  inet t D\n      5  -p udp"));
  std::vector<Step> mixed;
  for (unsigned i = 1; i <= 6; ++i) mixed.push_back(rule(passed, "C", i, "-p udp", "same"));
  mixed.push_back(rule(unknown, "C", 7, "-m x", "same"));
  EXPECT_THAT(steps_of(trace(mixed)), HasSubstr("      7  -m x                ?:  same\n"));
}

// What differs, the backend, the table, the chain or how deep it is, begins a heading of its own.
TEST(ExplainText, HasAHeadingForEachChain) {
  Step other_table = rule(passed, "C", 4, "d", "no");
  other_table.table = "inet u";
  Step legacy = other_table;
  legacy.backend = BackendKind::iptables_legacy;
  Step policy = rule(decided, "C", 0, "DROP", "dropped");
  EXPECT_EQ(
      steps_of(trace({event(hook, "OUTPUT"), rule(matched, "C", 1, "a", "to D"),
                      deeper(rule(passed, "D", 2, "b", "no")), deeper(rule(passed, "D", 3, "c", "no")),
                      deeper(rule(passed, "C", 3, "c", "no")), rule(passed, "C", 3, "c", "no"), other_table, policy})),
      R"(OUTPUT
  inet t C
      1  a                   yes: to D
    inet t D
        2  b                 no: no
        3  c                 no: no
    inet t C
        3  c                 no: no
  inet t C
      3  c                   no: no
  inet u C
      4  d                   no: no
  inet t C
  policy  DROP                yes: dropped
)");
  EXPECT_EQ(steps_of(trace({event(kernel, "conntrack"), other_table, legacy, event(kernel, "routing"), legacy})),
            R"(  conntrack
  inet u C (nftables)
      4  d                   no: no
  inet u C (iptables-legacy)
      4  d                   no: no
  routing
  inet u C (iptables-legacy)
      4  d                   no: no
)");
}

// What is longer than 72 characters does not push the others about.
TEST(ExplainText, AlignsWhatIsNotTooLong) {
  const std::string fits(70, 'x');
  const std::string too_long(71, 'y');
  const auto of = [](const std::string& words) {
    return steps_of(trace({rule(passed, "C", 1, words.c_str(), "no"), rule(passed, "C", 2, "z", "not that either")}));
  };
  EXPECT_THAT(of(fits), HasSubstr("      2  z" + std::string(71, ' ') + "no: not that either\n"));
  EXPECT_THAT(of(too_long), HasSubstr("      1  " + too_long + "  no: no\n      2  z                   no: not"));
}

TEST(ExplainText, SaysWhyARuleIsThere) {
  Step with_flag = rule(decided, "C", 1, "a", "dropped");
  with_flag.reason = {"-x", "1", "-x 1", "not wanted"};
  Step without_flag = rule(matched, "C", 2, "b", "marked");
  without_flag.reason.sentence = "for later";
  Step neither = rule(decided, "LONGER", 0, "DROP", "dropped");
  neither.reason.flag = "-y 2";
  Trace made = trace({with_flag, without_flag, neither});
  EXPECT_THAT(steps_of(made), ::testing::AllOf(HasSubstr("yes: dropped: not wanted (-x 1)\n"),
                                               HasSubstr("yes: marked: for later\n"), HasSubstr("yes: dropped\n")));
  made.decisive = {0, 1, 2};
  made.doubts = {"who listens", "which \033 route"};
  const std::string all = trace_text(made, {});
  EXPECT_EQ(all.substr(all.find("  by")),
            "  by inet t C 1            not wanted (-x 1)\n"
            "  by inet t C 2            for later\n"
            "  by inet t LONGER policy  DROP\n"
            "not certain: who listens\n"
            "not certain: which \\x1b route\n");
}

TEST(ExplainText, SaysWhatPacketItIs) {
  const auto first_line = [](const Trace& trace) {
    const std::string all = trace_text(trace, {});
    return all.substr(0, all.find('\n'));
  };
  Trace made = trace({});
  EXPECT_EQ(first_line(made),
            "tcp from 192.0.2.2 to 10.0.0.1:80, sent by uid 1 gid 2, the first packet of a connection");
  made.packet.cgroup = "a/b";
  made.packet.mark = 7;
  made.packet.source_port = 99;
  made.packet.state = ConnectionState::established;
  EXPECT_EQ(first_line(made),
            "tcp from 192.0.2.2:99 to 10.0.0.1:80, sent by uid 1 gid 2, cgroup /a/b, mark 7, a later packet of a "
            "connection");
  made.packet.owner.reset();
  made.packet.cgroup.reset();
  made.packet.mark = 0;
  made.packet.protocol = Protocol::udp;
  made.packet.state = ConnectionState::reply;
  EXPECT_EQ(first_line(made), "udp from 192.0.2.2:99 to 10.0.0.1:80, sent by the kernel, an answer");
  made.packet.direction = Direction::in;
  made.packet.state = ConnectionState::invalid;
  EXPECT_EQ(first_line(made), "udp from 192.0.2.2:99 to 10.0.0.1:80, a packet of an unknown connection");
}

// Colours say how it ends. Where no rule is the reason, that is said, unless nothing is known.
TEST(ExplainText, ColoursTheEnd) {
  for (const auto& [kind, color, nobody] :
       std::vector<std::tuple<Outcome::Kind, const char*, bool>>{{Outcome::Kind::lands, "\033[1m", true},
                                                                 {Outcome::Kind::leaves, "\033[1m", true},
                                                                 {Outcome::Kind::forwarded, "\033[1m", true},
                                                                 {Outcome::Kind::dropped, "\033[31m", true},
                                                                 {Outcome::Kind::unroutable, "\033[31m", true},
                                                                 {Outcome::Kind::unknown, "\033[33m", false}}) {
    Trace made = trace({});
    made.outcome.kind = kind;
    made.outcome.at = {*Address::parse("10.0.0.1"), 80};
    made.outcome.why = "the rules";
    const std::string colored = trace_text(made, {.color = true, .all = false});
    const std::string end = color + sentence(made.outcome) + "\033[0m\n";
    EXPECT_THAT(colored, HasSubstr("\n\n" + end));
    EXPECT_EQ(colored.ends_with(end + "  no rule says anything else\n"), nobody) << colored;
    EXPECT_EQ(colored.ends_with(end), !nobody) << colored;
  }
  const Step passed_rule = rule(passed, "C", 1, "a", "no");
  const Step unknown_rule = rule(unknown, "C", 2, "b", "maybe");
  const Step last = rule(decided, "C", 3, "c", "dropped");
  const Step mark = rule(matched, "C", 4, "c", "marked");
  EXPECT_EQ(steps_of(trace({event(hook, "OUTPUT"), event(kernel, "routing"), passed_rule, unknown_rule, mark, last}),
                     {.color = true, .all = false}),
            "\033[1mOUTPUT\033[0m\n"
            "  \033[2mrouting\033[0m\n"
            "  inet t C\n"
            "\033[2m      1  a                 \033[0m  \033[2mno: no\033[0m\n"
            "      2  b                   \033[33m?:  maybe\033[0m\n"
            "      4  c                   yes: marked\n"
            "      3  c                   \033[32myes: dropped\033[0m\n");
}

TEST(ExplainJson, HasEveryField) {
  Step step = rule(decided, "C", 3, "-j DROP", "dropped");
  step.reason = {"-x", "1", "-x 1", "not wanted"};
  Trace made = trace({event(hook, "OUTPUT"), event(kernel, "routing"), rule(passed, "C", 1, "a", "no"),
                      rule(unknown, "C", 2, "b", "maybe"), rule(matched, "C", 2, "b", "marked"), step});
  made.packet.cgroup = "a";
  made.packet.interface = "eth0";
  made.packet.mark = 5;
  made.packet.state = ConnectionState::established;
  made.decisive = {5};
  made.doubts = {"much"};
  made.outcome.kind = Outcome::Kind::leaves;
  made.outcome.at = {*Address::parse("10.0.0.1"), 80};
  made.outcome.interface = "eth0";
  made.outcome.listener = "the app";
  made.outcome.original = Endpoint{*Address::parse("10.0.0.9"), 90};
  made.outcome.source = NewSource{Address::parse("192.0.2.9")};
  made.outcome.transparent = true;
  made.outcome.transparent_port = 15006;
  made.outcome.why = "why";
  made.outcome.answers = Outcome::Answers::lost;
  made.outcome.answers_why = "no way back";
  nlohmann::json said = nlohmann::json::parse(json(made));
  EXPECT_EQ(said["packet"], nlohmann::json::parse(R"({
    "direction": "out", "protocol": "tcp", "source": {"address": "192.0.2.2", "port": 0},
    "destination": {"address": "10.0.0.1", "port": 80}, "state": "established", "mark": 5,
    "owner": {"uid": 1, "gid": 2}, "cgroup": "a", "interface": "eth0"})"));
  said["outcome"].erase("sentence");
  EXPECT_EQ(said["outcome"], nlohmann::json::parse(R"({
    "kind": "leaves", "at": {"address": "10.0.0.1", "port": 80}, "interface": "eth0", "listener": "the app",
    "original_destination": {"address": "10.0.0.9", "port": 90}, "translated_source": "192.0.2.9",
    "tproxy_port": 15006, "why": "why", "answers": "lost", "answers_why": "no way back"})"));
  EXPECT_EQ(said["decided_by"], nlohmann::json::parse("[5]"));
  EXPECT_EQ(said["uncertain"], nlohmann::json::parse(R"(["much"])"));
  ASSERT_EQ(said["steps"].size(), 6U);
  EXPECT_EQ(said["steps"][1], nlohmann::json::parse(R"({"kind": "kernel", "text": "routing"})"));
  EXPECT_EQ(said["steps"][2]["kind"], "passed");
  EXPECT_EQ(said["steps"][3]["kind"], "unknown");
  EXPECT_EQ(said["steps"][4]["kind"], "matched");
  said["steps"][5].erase("rule");
  EXPECT_EQ(said["steps"][5], nlohmann::json::parse(R"({
    "kind": "decided", "text": "dropped", "backend": "nftables", "table": "inet t", "chain": "C", "number": 3,
    "flag": "-x 1", "reason": "not wanted"})"));
  // What is not so is not there.
  made.packet.owner.reset();
  made.packet.cgroup.reset();
  made.packet.interface.clear();
  made.outcome = {};
  made.outcome.at = {*Address::parse("10.0.0.1"), 80};
  said = nlohmann::json::parse(json(made));
  for (const char* key : {"owner", "cgroup", "interface"}) EXPECT_FALSE(said["packet"].contains(key)) << key;
  EXPECT_EQ(said["outcome"].size(), 3U) << said["outcome"];
}

}  // namespace
}  // namespace sidetrack
