// SPDX-License-Identifier: GPL-2.0-or-later
// What the three backends hold of the same options differs for no packet: a proof over all of them, of the rules as
// they are read back. $SIDETRACK_ALIKE_SETS is how many sets of options there are to be.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/routes.h"
#include "render/effect.h"
#include "support/amount.h"
#include "support/random_options.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

class BackendsAlike : public KernelTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  static void expect_alike(const std::string& options) {
    SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} {}", seed(), options));
    const PodOf applied(options);
    const Namespace& ns = applied.ns();
    std::vector<space::Side> sides;
    for (const char* backend : backends) {
      applied.apply(backend, options);
      sides.push_back({ns.run(read_pod), ns.run(read_all)});
      for (const Live& live : sides.back().live) {
        const bool holds_rules =
            std::ranges::any_of(live.chains, [](const LiveChain& chain) { return !chain.rules.empty(); });
        ASSERT_EQ(holds_rules, name(live.backend) == backend) << backend;
      }
    }
    for (std::size_t other : {1U, 2U}) {
      space::Regions regions({sides[0], sides[other]});
      const std::vector<EffectRegion> differing = effect(regions);
      if (!differing.empty()) ADD_FAILURE() << backends[other] << "\n" << effect_text(differing, false);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, BackendsAlike, ::testing::Range(0U, amount("SIDETRACK_ALIKE_SETS", 6)));

TEST_P(BackendsAlike, OfASidecar) {
  Dice dice(5000 + GetParam());
  expect_alike(random_options(dice));
}

TEST_P(BackendsAlike, OfAnAmbientPod) {
  Dice dice(6000 + GetParam());
  expect_alike(random_ambient_options(dice));
}

}  // namespace
}  // namespace sidetrack::netns
