// SPDX-License-Identifier: GPL-2.0-or-later
// Whether explain is right beside rules of others: random ones by iptables-legacy, iptables-nft and nft, in tables
// before and after ours, and real connections through them. It is right, or says that it cannot know (of at most one
// packet in five), and is never wrong.
//
// $SIDETRACK_SEED varies them, $SIDETRACK_CASES is how many packets each backend gets; a failure prints the rules.
#include "support/foreign_rules.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "kernel/routes.h"
#include "render/render.h"
#include "support/amount.h"
#include "support/packets.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using Strings = std::vector<std::string>;

constexpr int packets_of_a_pod = 6;  // in one pod

class ForeignRules : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static void apply(const Pod& pod, const std::string& options) {
    Strings words{program_under_test(), "apply", "--backend", GetParam(), "--dual-stack"};
    std::istringstream split(options);
    for (std::string word; split >> word;) words.push_back(word);
    pod.ns().must(words);
  }

  // Neighbour discovery of IPv6 passes the rules, too, as packets of its own: all is known before there are any.
  static void resolve_neighbours(const Pod& pod) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const Endpoint service(addresses(family).service, 80);
      ASSERT_EQ(pod.connect(from_guest, {.to = service, .from = {}}), landed(Role::outside, local(service)));
    }
  }

  // What a socket would see if explain is right; nothing if explain does not know.
  struct Expected {
    Landing landing;
    bool may_be_refused = false;  // by REJECT, or by an ICMP error that meets the rules on its own
    bool may_be_dropped = false;
    std::string text;
  };
  static std::optional<Expected> expected(const Probe& probe, const Pod& pod, const PodView& view,
                                          const std::vector<Live>& live) {
    const Trace trace = explain(probe.packet, view, live);
    const Outcome& outcome = trace.outcome;
    if (outcome.kind == Outcome::Kind::unknown || outcome.answers == Outcome::Answers::unknown) return {};
    Expected result{predicted(outcome, probe.packet.protocol, pod), false, false, trace_text(trace, {})};
    const Role role = result.landing.role;
    result.may_be_refused = role == Role::no_answer;
    if (outcome.kind == Outcome::Kind::dropped && !trace.decisive.empty()) {
      result.may_be_refused = trace.steps[trace.decisive.back()].text == "rejected";
    }
    // The refusal of a datagram is of another protocol than the datagram.
    result.may_be_dropped = role == Role::refused && probe.packet.protocol == Protocol::udp;
    if (role == Role::refused || role == Role::no_answer) return result;
    Packet later = probe.packet;
    later.state = ConnectionState::established;
    const Trace then = explain(later, view, live);
    if (then.outcome.kind == Outcome::Kind::unknown) return {};
    result.text += trace_text(then, {});
    if (predicted(then.outcome, probe.packet.protocol, pod) !=
        result.landing) {  // lost, or to a process that knows of none
      result.landing = landed(Role::no_answer);
      result.may_be_refused = true;
    }
    return result;
  }

  static bool agree(const Expected& expected, const Landing& seen) {
    if (seen.role == Role::refused && expected.may_be_refused) return true;
    if (seen.role == Role::no_answer && expected.may_be_dropped) return true;
    return seen == expected.landing;
  }
};

TEST_P(ForeignRules, ExplainIsRightOrDoesNotKnow) {
  static const Strings options{"-i * -b * -d 15090,15021,15020", "-m TPROXY -i * -b * -d 15021", "-i * -b 8080 -o 443",
                               "-i * -b * --redirect-dns --capture-all-dns", "-i 10.96.0.0/16,fd00:96::/32 -b *"};
  int not_known = 0;
  int asked = 0;
  const int cases = static_cast<int>(amount("SIDETRACK_CASES", 60));
  for (unsigned index = 0; asked < cases; ++index) {
    Dice dice(1000 + index);
    const std::string& ours = dice.one_of(options);
    Pod pod(Pod::Options{.transparent_proxy = ours.find("TPROXY") != std::string::npos});
    resolve_neighbours(pod);
    const std::vector<Foreign> others = foreign_rules(dice);
    const bool first = dice.percent(50);
    std::string rules = first ? load(pod.ns(), others) : "";
    apply(pod, ours);
    if (!first) rules = load(pod.ns(), others);
    const PodView view = pod.ns().run(read_pod);
    const std::vector<Live> live = pod.ns().run(read_all);
    for (int i = 0; i < packets_of_a_pod; ++i, ++asked) {
      Probe probe = random_probe(dice, true);
      const auto right = expected(probe, pod, view, live);
      if (!right) {
        ++not_known;
        continue;
      }
      // An answer that is expected is waited for; that none comes is seen soon, all is one machine.
      if (right->landing.role == Role::no_answer) probe.request.patience = std::chrono::milliseconds(40);
      Landing seen = pod.connect(probe.actor, probe.request);
      seen.oddity.clear();  // addresses are translated here
      EXPECT_TRUE(agree(*right, seen)) << "SIDETRACK_SEED=" << seed() << " rules " << index << ", " << ours << ", "
                                       << (first ? "others first" : "ours first") << "\n"
                                       << rules << probe.text() << "\nseen: " << seen
                                       << "\nexpected: " << right->landing << "\n"
                                       << right->text;
    }
  }
  EXPECT_LE(not_known * 5, asked);
  RecordProperty("not_known", not_known);
  RecordProperty("asked", asked);
}
INSTANTIATE_TEST_SUITE_P(, ForeignRules, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
