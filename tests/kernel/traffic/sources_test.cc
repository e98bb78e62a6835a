// SPDX-License-Identifier: GPL-2.0-or-later
// Inbound by who sends it: sources that reach the app past the proxy, and those that alone are captured.
#include <fmt/format.h>

#include "model/config.h"
#include "support/traffic.h"
#include "unit/temporary_file.h"

namespace sidetrack::netns {
namespace {

// In both modes: where the proxy takes a connection, its socket has the destination itself in mode TPROXY.
class InboundSources : public Traffic {
 protected:
  explicit InboundSources(Mode mode)
      : Traffic(Pod::Options{.transparent_proxy = mode == Mode::tproxy}), tproxy_(mode == Mode::tproxy) {}

  void apply(const std::string& options) const { Traffic::apply((tproxy_ ? "-m TPROXY " : "") + options); }

  // By an address of the outside, of which it has many.
  [[nodiscard]] Landing from(std::string_view source, std::uint16_t port) const {
    return pod_->connect(from_outside, {.to = pod(port), .protocol = Protocol::tcp, .from = Endpoint(source, 0)});
  }
  [[nodiscard]] Landing captured(std::uint16_t port) const {
    return tproxy_ ? landed(Role::proxy_inbound, local(pod(port))) : landed(Role::proxy_inbound, original(pod(port)));
  }
  [[nodiscard]] Landing to_app(std::uint16_t port) const { return landed(Role::app, local(pod(port))); }

  void excluded_ones_reach_the_app() const {
    apply("-b * -d 15020 --exclude-inbound-ranges " + both(&Addresses::service_range));
    EXPECT_EQ(from(at().service, 8080), to_app(8080));
    EXPECT_EQ(from(at().dns, 80), to_app(80));
    EXPECT_EQ(from(at().other_service, 8080), captured(8080));
    EXPECT_EQ(connect(from_outside, pod(8080)), captured(8080));
    EXPECT_EQ(connect(from_outside, pod(15020)), to_app(15020));
  }
  void excluded_ones_of_listed_ports_reach_the_app() const {
    apply("-b 80,8080 --exclude-inbound-ranges " + both(&Addresses::service));
    EXPECT_EQ(from(at().service, 8080), to_app(8080));
    EXPECT_EQ(from(at().dns, 8080), captured(8080));
    EXPECT_EQ(from(at().dns, 8081), to_app(8081));
  }
  void included_ones_alone_are_captured() const {
    apply("-b * -d 15020 --include-inbound-ranges " + both(&Addresses::service_range));
    EXPECT_EQ(from(at().service, 8080), captured(8080));
    EXPECT_EQ(from(at().dns, 9), captured(9));
    EXPECT_EQ(from(at().service, 15020), to_app(15020));
    EXPECT_EQ(from(at().other_service, 8080), to_app(8080));
    EXPECT_EQ(connect(from_outside, pod(8080)), to_app(8080));
  }
  void included_ones_of_listed_ports_alone_are_captured() const {
    apply("-b 80,8080 --include-inbound-ranges " + both(&Addresses::service_range));
    EXPECT_EQ(from(at().service, 8080), captured(8080));
    EXPECT_EQ(from(at().service, 8081), to_app(8081));
    EXPECT_EQ(from(at().other_service, 8080), to_app(8080));
  }
  void an_excluded_range_wins_over_an_included_one() const {
    apply("-b * --include-inbound-ranges " + both(&Addresses::service_range) + " --exclude-inbound-ranges " +
          both(&Addresses::service));
    EXPECT_EQ(from(at().service, 8080), to_app(8080));
    EXPECT_EQ(from(at().dns, 8080), captured(8080));
    EXPECT_EQ(from(at().other_service, 8080), to_app(8080));
  }
  // Of a family without an included range nothing is captured; all of one may be excluded.
  void families_are_apart() const {
    const bool ipv4 = family() == Family::ipv4;
    apply("-b * --include-inbound-ranges 10.0.0.0/8");
    EXPECT_EQ(from(at().service, 8080), ipv4 ? captured(8080) : to_app(8080));
    apply("-b * --exclude-inbound-ranges ::/0");
    EXPECT_EQ(from(at().service, 8080), ipv4 ? captured(8080) : to_app(8080));
  }
  // A conversation, not only its beginning.
  void connections_stay() const {
    apply("-b * --exclude-inbound-ranges " + both(&Addresses::service));
    const auto open = [&](std::string_view source) {
      return netns::Connection(pod_->at(Place::outside), {},
                               {.to = pod(8080), .protocol = Protocol::tcp, .from = Endpoint(source, 0)});
    };
    netns::Connection excluded = open(at().service);
    netns::Connection other = open(at().dns);
    for (int round = 0; round < 5; ++round) {
      EXPECT_EQ(excluded.ask(), to_app(8080));
      EXPECT_EQ(other.ask(), captured(8080));
    }
  }
  // The app's own connections go out as before, whoever they lead to, and so do the answers to them.
  void outbound_is_as_it_was() const {
    apply("-b * -i * --exclude-inbound-ranges " + both(&Addresses::service) + " --include-inbound-ranges " +
          both(&Addresses::service_range));
    EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
    EXPECT_EQ(connect(as_proxy, service(80)), landed(Role::outside, local(service(80))));
    EXPECT_EQ(connect(as_proxy, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
    EXPECT_EQ(connect(as_app, pod(8080)), to_app(8080));
  }
  void long_lists_are_taken_from_files() const {
    std::string ranges = "# many\n";
    for (int i = 0; i < 2000; ++i) ranges += fmt::format("172.{}.{}.0/24\nfd77:{:x}::/32\n", 16 + i / 250, i % 250, i);
    const testing::TemporaryFile file(ranges + both(&Addresses::service_range) + "\n");
    apply("-b * --exclude-inbound-ranges @" + file.path());
    EXPECT_EQ(from(at().service, 8080), to_app(8080));
    EXPECT_EQ(from(at().other_service, 8080), captured(8080));
    apply("-b * --include-inbound-ranges @" + file.path());
    EXPECT_EQ(from(at().service, 8080), captured(8080));
    EXPECT_EQ(from(at().other_service, 8080), to_app(8080));
  }

 private:
  bool tproxy_;
};

class Sources : public InboundSources {
 protected:
  Sources() : InboundSources(Mode::redirect) {}
};
INSTANTIATE_TEST_SUITE_P(, Sources, settings(), setting_name);

class SourcesTproxy : public InboundSources {
 protected:
  SourcesTproxy() : InboundSources(Mode::tproxy) {}
};
INSTANTIATE_TEST_SUITE_P(, SourcesTproxy, settings(), setting_name);

TEST_P(Sources, ExcludedOnesReachTheApp) { excluded_ones_reach_the_app(); }
TEST_P(SourcesTproxy, ExcludedOnesReachTheApp) { excluded_ones_reach_the_app(); }
TEST_P(Sources, ExcludedOnesOfListedPortsReachTheApp) { excluded_ones_of_listed_ports_reach_the_app(); }
TEST_P(SourcesTproxy, ExcludedOnesOfListedPortsReachTheApp) { excluded_ones_of_listed_ports_reach_the_app(); }
TEST_P(Sources, IncludedOnesAloneAreCaptured) { included_ones_alone_are_captured(); }
TEST_P(SourcesTproxy, IncludedOnesAloneAreCaptured) { included_ones_alone_are_captured(); }
TEST_P(Sources, IncludedOnesOfListedPortsAloneAreCaptured) { included_ones_of_listed_ports_alone_are_captured(); }
TEST_P(SourcesTproxy, IncludedOnesOfListedPortsAloneAreCaptured) { included_ones_of_listed_ports_alone_are_captured(); }
TEST_P(Sources, AnExcludedRangeWinsOverAnIncludedOne) { an_excluded_range_wins_over_an_included_one(); }
TEST_P(SourcesTproxy, AnExcludedRangeWinsOverAnIncludedOne) { an_excluded_range_wins_over_an_included_one(); }
TEST_P(Sources, FamiliesAreApart) { families_are_apart(); }
TEST_P(SourcesTproxy, FamiliesAreApart) { families_are_apart(); }
TEST_P(Sources, ConnectionsStay) { connections_stay(); }
TEST_P(SourcesTproxy, ConnectionsStay) { connections_stay(); }
TEST_P(Sources, OutboundIsAsItWas) { outbound_is_as_it_was(); }
TEST_P(SourcesTproxy, OutboundIsAsItWas) { outbound_is_as_it_was(); }
TEST_P(Sources, LongListsAreTakenFromFiles) { long_lists_are_taken_from_files(); }
TEST_P(SourcesTproxy, LongListsAreTakenFromFiles) { long_lists_are_taken_from_files(); }

}  // namespace
}  // namespace sidetrack::netns
