// SPDX-License-Identifier: GPL-2.0-or-later
// Whether explain is right: random packets under random options, sent for real by sockets, land where it says, by every
// backend, over the rules that the kernel holds as well as over the plan.
//
// `scripts/test --seed N`, or $SIDETRACK_SEED, varies the options and the packets; a failure prints it. What a socket
// cannot send, or what no host would answer, is left to the unit tests: packets of no connection, replies on their own,
// ICMP, what is dropped.
#include "walk/explain.h"

#include <fmt/format.h>

#include "kernel/routes.h"
#include "render/render.h"
#include "support/packets.h"
#include "support/random_options.h"
#include "support/traffic.h"
#include "unit/asking.h"

namespace sidetrack::netns {
namespace {

constexpr int option_sets = 48;
constexpr int packets_of_options = 15;  // for each option set and backend: 2160 in all

BackendKind kind_named(std::string_view text) {
  for (const BackendKind kind : {BackendKind::iptables_legacy, BackendKind::iptables_nft, BackendKind::nftables}) {
    if (sidetrack::name(kind) == text) return kind;
  }
  throw std::invalid_argument(std::string(text));
}

class Explained : public KernelTest, public ::testing::WithParamInterface<int> {
 protected:
  // What the program itself says.
  static std::string said(const Pod& pod, const Probe& probe) {
    static constexpr const char* ways[] = {"out", "in", "lo"};
    std::vector<std::string> words{program_under_test(),
                                   "explain",
                                   ways[static_cast<std::size_t>(probe.packet.direction)],
                                   std::string(sidetrack::name(probe.packet.protocol)),
                                   probe.request.to.text(),
                                   "--brief"};
    const auto add = [&](const char* flag, const std::string& value) { words.insert(words.end(), {flag, value}); };
    if (probe.packet.owner) add("--uid", std::to_string(probe.packet.owner->uid));
    if (probe.packet.owner) add("--gid", std::to_string(probe.packet.owner->gid));
    if (!probe.packet.interface.empty()) add("--in-interface", probe.packet.interface);
    if (probe.packet.source) add("--from", probe.packet.source->text());
    return pod.ns().must(words);
  }
};

TEST_P(Explained, PacketsLandWhereItIsSaid) {
  Dice dice(static_cast<unsigned>(GetParam()));
  const std::string options = random_options(dice);
  SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} {}", seed(), options));
  const Plan plan = planned(options);
  PodOf applied(options);
  Pod& pod = applied.pod();
  // Refusals of datagrams to port 53 are of no connection where only the datagrams have a zone, and then may be
  // dropped.
  pod.listen(as_app, Role::app, {.tcp = {53}, .udp = {53}});

  for (const char* backend : backends) {
    SCOPED_TRACE(backend);
    applied.apply(backend, options);
    const PodView view = pod.ns().run(read_pod);
    const std::vector<Live> live = pod.ns().run(read_all);
    const std::vector<Live> as_planned{as_live(plan.ruleset, kind_named(backend))};
    for (int i = 0; i < packets_of_options; ++i) {
      const Probe probe = random_probe(dice, plan.families.contains(Family::ipv6));
      const Trace trace = explain(probe.packet, view, live);
      EXPECT_EQ(pod.connect(probe.actor, probe.request), predicted(trace.outcome, probe.packet.protocol, pod))
          << probe.text() << "\n"
          << trace_text(trace, {});
      EXPECT_TRUE(trace.doubts.empty()) << trace.doubts.front();
      EXPECT_EQ(sentence(explain(probe.packet, view, as_planned).outcome), sentence(trace.outcome)) << probe.text();
      if (i == 0) {
        EXPECT_EQ(said(pod, probe), sentence(trace.outcome) + "\n") << probe.text();
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, Explained, ::testing::Range(0, option_sets));

}  // namespace
}  // namespace sidetrack::netns
