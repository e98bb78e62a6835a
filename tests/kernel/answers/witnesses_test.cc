// SPDX-License-Identifier: GPL-2.0-or-later
// verify, apply and lint beside random rules of others that the kernel holds, with explain as the judge:
//
//   verify finds nothing in the way  =>  every packet that the plan captures lands as by the plan alone
//   each packet that verify, apply or lint print ends as they say
//
// Packets have values at the edges of what the rules name. $SIDETRACK_SEED varies rules and packets,
// $SIDETRACK_VERIFY_SETS is how many sets of rules each backend gets, $SIDETRACK_VERIFY_FIRST the number of the first
// one; a failure prints the rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "apply/apply.h"
#include "apply/without_others.h"
#include "kernel/kernel.h"
#include "kernel/survey.h"
#include "lint/lint.h"
#include "mesh/istio_rules.h"
#include "space/ending.h"
#include "support/amount.h"
#include "support/foreign_rules.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "support/packets.h"
#include "support/traffic.h"
#include "unit/asking.h"
#include "walk/addresses.h"
#include "walk/route.h"

namespace sidetrack::netns {
namespace {

constexpr int packets_of_a_set = 200;
constexpr unsigned enough_for_both = 40;  // sets of rules: some are in the way, others are not

// ---- Packets at the edges of what rules name

class Edges {
 public:
  explicit Edges(const std::vector<Live>& live) {
    for (const Live& one : live) {
      for (const LiveChain& chain : one.chains) {
        for (const LiveRule& rule : chain.rules) {
          for (const Match& match : rule.rule.matches) add(match);
        }
      }
    }
    for (const std::uint32_t number : {0U, 1U, 80U, 65535U}) ports_.push_back(number);
    for (const std::uint32_t number : {0U, 1000U, 1337U, 0xfffffffeU}) ids_.push_back(number);
    marks_.insert(marks_.end(), {0, 0, 0, 1, 0xffffffff});
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const Addresses& at = addresses(family);
      for (const std::string_view text :
           {at.any_loopback, at.pod, at.client, at.service, at.other_service, at.dns, at.pod_second, at.guest})
        add(*Address::parse(text));
    }
  }

  // Nothing: no program here sends such a packet, and none comes in.
  [[nodiscard]] std::optional<Packet> packet(Dice& dice, const PodView& pod) const {
    Packet made;
    made.direction = dice.one_of(std::vector{Direction::out, Direction::out, Direction::in, Direction::lo});
    made.protocol = dice.percent(75) ? Protocol::tcp : Protocol::udp;
    const Address to = dice.one_of(addresses_);
    made.destination = to;
    if (to == Address::any(to.family) || is_broadcast(pod, to, nullptr) || is_multicast(to, nullptr)) return {};
    if (to.family == Family::ipv6 && to.is_link_local()) return {};
    made.destination_port = port(dice);
    if (dice.percent(50)) made.source_port = port(dice);
    if (made.destination_port == 0 || made.source_port == 0) return {};  // no program names it
    if (made.direction == Direction::in) {
      const Address from = dice.one_of(addresses_);
      if (from.family != to.family || is_local(pod, from)) return {};
      made.source = from;
      if (!is_own(pod, to, nullptr) || to.is_loopback()) return {};
    } else {
      made.owner = Owner{dice.one_of(ids_), dice.one_of(ids_)};
      made.mark = dice.one_of(marks_);
      made.cgroup = "";
      if (is_local(pod, to) != (made.direction == Direction::lo)) return {};
    }
    if (dice.percent(10)) made.state = ConnectionState::established;
    return made;
  }

 private:
  [[nodiscard]] std::uint16_t port(Dice& dice) const { return static_cast<std::uint16_t>(dice.one_of(ports_)); }

  static void add(std::vector<std::uint32_t>& all, std::uint32_t first, std::uint32_t last, std::uint32_t highest) {
    for (const std::uint32_t number : {first, last}) {
      if (number > 0) all.push_back(number - 1);
      all.push_back(number);
      if (number < highest) all.push_back(number + 1);
    }
  }
  void add(const Address& address) {
    addresses_.push_back(address);
    Address next = address;
    if (increment(std::span(next.bytes).first(next.size()))) addresses_.push_back(next);
    Address before = address;
    for (std::size_t i = before.size(); i-- > 0;) {
      if (before.bytes[i]-- != 0) break;
    }
    addresses_.push_back(before);
  }
  void add(const Match& match) {
    if (const auto* ports = std::get_if<PortMatch>(&match)) {
      for (const PortRange& range : ports->ports) add(ports_, range.first, range.last, 65535);
    } else if (const auto* owner = std::get_if<OwnerMatch>(&match)) {
      for (const IdRange& range : owner->ids) add(ids_, range.first, range.last, 0xfffffffe);
    } else if (const auto* address = std::get_if<AddressMatch>(&match)) {
      for (const AddressRange& range : address->ranges) {
        add(range.first);
        add(range.last);
      }
    } else if (const auto* mark = std::get_if<MarkMatch>(&match)) {
      add(marks_, mark->value, mark->value, 0xffffffff);
    }
  }

  std::vector<std::uint32_t> ports_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> marks_;
  std::vector<Address> addresses_;
};

// ---- A pod without anybody in it

class EmptyPod {
 public:
  // Some have no default route of a family.
  explicit EmptyPod(Dice& dice) {
    trust_addresses(pod_);
    std::string lines = "link set lo up\n";
    for (const char* name : {"eth0", "net1"})
      lines += fmt::format("link add {0} up type veth peer name {0} netns /proc/{1}/fd/{2}\n", name, getpid(),
                           outside_.fd());
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const Addresses& at = addresses(family);
      const int subnet = family == Family::ipv4 ? 24 : 64;
      lines += fmt::format("addr add {}/{} dev eth0\naddr add {}/{} dev net1\n", at.pod, subnet, at.pod_second, subnet);
      if (dice.percent(80)) lines += fmt::format("route add default via {} dev eth0 onlink\n", at.client);
    }
    ip(pod_, lines);
  }
  [[nodiscard]] const Namespace& ns() const { return pod_; }

 private:
  Namespace pod_;
  Namespace outside_;
};

// Rules of ours and of others as the kernel holds them, and what the program says of them.
struct Asked {
  Plan plan;
  BackendKind backend{};
  std::vector<Obstacle> by_apply;
  PodDiff verified;
  space::Side there;
  lint::Findings findings;
};

struct Counted {
  int sets = 0;    // of rules
  int silent = 0;  // of them with nothing in the way
  int packets = 0;
  int missed = 0;
  int witnesses = 0;
  int false_alarms = 0;
};

class Witnesses : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static BackendKind backend() {
    return *std::ranges::find(all_backends, GetParam(), [](BackendKind kind) { return name(kind); });
  }

  // In the namespace of the calling thread. Nothing: these rules cannot be applied beside those of others.
  static std::optional<Asked> asked(const std::string& options, bool others_first,
                                    const std::function<void()>& load_others, bool with_lint) {
    Asked made;
    made.plan = planned(options);
    made.backend = backend();
    ApplyOptions applying;
    applying.backend = backend();
    const sidetrack::Request request{.plan = &made.plan, .options = &applying};
    try {
      if (others_first) load_others();
      made.by_apply = converge(request, *open_kernel(istio_rules, {.write = true})).obstacles;
      if (!others_first) load_others();
      const auto kernel = open_kernel(istio_rules, {});
      Survey survey = kernel->survey();
      survey.pod = kernel->pod();
      made.verified = compare(request, survey);
      made.there = after_apply(made.plan, made.backend, survey);
      if (with_lint) made.findings = lint::lint_live(made.there.pod, made.there.live);
    } catch (const Error&) {
      return std::nullopt;
    }
    return made;
  }

  static space::Side alone(const Asked& asked) {
    return {without_others(asked.there.pod, asked.plan), {as_live(asked.plan.ruleset, asked.backend)}};
  }

  static std::string explained(const std::string& words, const space::Side& side) {
    return sentence(explain(packet_of(words), side.pod, side.live).outcome);
  }

  static void judge(const std::vector<Obstacle>& obstacles, const Asked& asked, Counted& counted) {
    const space::Side planned = alone(asked);
    for (const Obstacle& obstacle : obstacles) {
      if (obstacle.is_unknown()) continue;
      ++counted.witnesses;
      SCOPED_TRACE(text(obstacle));
      const bool right = explained(obstacle.packet, asked.there) == obstacle.instead &&
                         explained(obstacle.packet, planned) == obstacle.planned &&
                         obstacle.planned != obstacle.instead;
      counted.false_alarms += right ? 0 : 1;
      EXPECT_TRUE(right) << "explain: " << explained(obstacle.packet, asked.there)
                         << "\nby the plan alone: " << explained(obstacle.packet, planned);
    }
  }

  static void judge_findings(const Asked& asked, Counted& counted) {
    for (const lint::Finding& finding : asked.findings) {
      if (finding.witness.empty()) continue;
      ++counted.witnesses;
      const Trace trace = explain(packet_of(finding.witness), asked.there.pod, asked.there.live);
      Possibility alone;
      alone.trace = trace;
      const std::string said = space::ending_text(space::ending_of({alone}));
      const bool right =
          trace.outcome.kind == Outcome::Kind::unknown ? finding.ending.starts_with("unknown") : said == finding.ending;
      counted.false_alarms += right ? 0 : 1;
      EXPECT_TRUE(right) << lint::one_line(finding) << "\nexplain: " << said;
    }
  }

  static bool is_captured(const Outcome& outcome) {
    return outcome.kind == Outcome::Kind::lands && (outcome.transparent || outcome.original);
  }

  // Nothing that the plan captures goes elsewhere.
  static void find_missed(const Asked& asked, Dice& dice, Counted& counted) {
    const space::Side planned = alone(asked);
    const Edges edges(asked.there.live);
    for (int i = 0; i < packets_of_a_set; ++i) {
      const auto packet = edges.packet(dice, asked.there.pod);
      if (!packet) continue;
      const Trace as_planned = explain(*packet, planned.pod, planned.live);
      if (!is_captured(as_planned.outcome)) continue;
      ++counted.packets;
      const Trace there = explain(*packet, asked.there.pod, asked.there.live);
      const bool right = same_place(there.outcome, as_planned.outcome);
      counted.missed += right ? 0 : 1;
      EXPECT_TRUE(right) << "verify says nothing of: " << explain_words(*packet) << "\n"
                         << sentence(there.outcome) << "\nby the plan alone: " << sentence(as_planned.outcome);
      if (!right) return;
    }
  }
};

TEST_P(Witnesses, OfVerifyApplyAndLintAreWhatExplainSays) {
  static const std::vector<std::string> options{"-i * -b * -d 15090,15021,15020",
                                                "-m TPROXY -i * -b * -d 15021",
                                                "-i * -b 8080 -o 443",
                                                "-i * -b * --redirect-dns --dns-server 10.96.0.53,fd00:96::53",
                                                "-i 10.96.0.0/16,fd00:96::/32 -b *",
                                                "-i * -b * --redirect-dns --capture-all-dns"};
  Counted counted;
  const unsigned first = amount("SIDETRACK_VERIFY_FIRST", 0);
  const unsigned sets = amount("SIDETRACK_VERIFY_SETS", 4);
  for (unsigned index = first; index < first + sets; ++index) {
    Dice dice(500'000 + index);
    const std::string& ours = dice.one_of(options);
    const EmptyPod pod(dice);
    std::vector<Foreign> others = foreign_rules(dice);
    if (dice.percent(60)) others = {dice.one_of(others)};  // many at once are nearly always in the way
    const bool others_first = dice.percent(50);
    std::string rules;
    const auto made = pod.ns().run([&] {
      return asked(
          ours, others_first, [&] { rules = load(pod.ns(), others); }, index % 4 == 0);
    });
    if (!made) continue;
    ++counted.sets;
    SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} SIDETRACK_VERIFY_FIRST={} {}, {}\n{}", seed(), index, ours,
                             others_first ? "others first" : "ours first", rules));
    judge(made->by_apply, *made, counted);
    judge(made->verified.obstacles, *made, counted);
    judge_findings(*made, counted);
    if (!made->verified.as_requested()) continue;
    ++counted.silent;
    find_missed(*made, dice, counted);
  }
  fmt::print(
      "{}: {} sets of rules, {} of them with nothing in the way, {} packets that are captured, "
      "{} of them lost; "
      "{} witnesses, {} of them false alarms\n",
      GetParam(), counted.sets, counted.silent, counted.packets, counted.missed, counted.witnesses,
      counted.false_alarms);
  if (sets >= enough_for_both) {
    EXPECT_GT(counted.silent, 0);
    EXPECT_GT(counted.witnesses, 0);
  }
  EXPECT_EQ(counted.missed, 0);
  EXPECT_EQ(counted.false_alarms, 0);
}

INSTANTIATE_TEST_SUITE_P(, Witnesses, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
