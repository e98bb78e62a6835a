// SPDX-License-Identifier: GPL-2.0-or-later
// Whether explain is right: random packets under random options, sent for real by sockets, land where it says, by every
// backend, over the rules that the kernel holds as well as over the plan.
//
// `scripts/test --seed N`, or $SIDETRACK_SEED, varies the options and the packets; a failure prints it. What a socket
// cannot send, or what no host would answer, is left to the unit tests: packets of no connection, replies on their own,
// ICMP, what is dropped.
#include "evaluate/explain.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "kernel/backend.h"
#include "render/explain.h"
#include "space/regions.h"
#include "support/packets.h"
#include "support/traffic.h"
#include "unit/asking.h"

namespace sidetrack::netns {
namespace {

constexpr int option_sets = 48;
constexpr int packets_each = 15;  // for each option set and backend: 2160 in all

// ---- Options

std::string both(std::string_view Addresses::*which) {
  return fmt::format("{},{}", addresses(Family::ipv4).*which, addresses(Family::ipv6).*which);
}

// Options as on the command line, and variables of the environment; nothing that is not in the other tests, but in all
// combinations. The proxy is always uid 1337.
std::string random_options(Dice& dice) {
  const std::string ranges4 = std::string(addresses(Family::ipv4).service_range);
  const std::string ranges6 = std::string(addresses(Family::ipv6).service_range);
  std::vector<std::string> words;
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (!value.empty()) words.push_back(flag + " " + value);
  };
  if (dice.percent(30)) add("-m", "TPROXY");
  if (dice.percent(60)) {
    add("-b", "*");
    add("-d", dice.some_of({"8081", "15020", "15021", "15090"}));
  } else {
    add("-b", dice.some_of({"80", "8080", "8081", "15020", "9"}));
  }
  if (dice.percent(50)) {
    add("-i", "*");
  } else {
    add("-i", dice.some_of({ranges4, ranges6, "10.97.0.10/32", "fd00:97::10/128", "192.0.2.0/25", "10.1.0.0/16",
                            dice.percent(20) ? "127.1.2.0/24" : "10.2.0.0/16"}));
  }
  add("-x", dice.some_of({both(&Addresses::excluded_range), "10.97.0.0/16", "fd00:96::10/128", "10.96.0.53/32"}));
  if (dice.percent(40)) add("-q", dice.some_of({"443", "9443", "9"}));
  if (dice.percent(40)) add("-o", dice.some_of({"8080", "443", "53"}));
  if (dice.percent(12)) {
    add("-c", "net1");
  } else if (dice.percent(15)) {
    add("-k", "net1");
  }
  if (dice.percent(20)) add("-u", dice.one_of(std::vector<std::string>{"1337,3000", "2000,1337", "1337"}));
  if (dice.percent(20)) add("-g", dice.one_of(std::vector<std::string>{"3000", "888,1337"}));
  if (dice.percent(45)) {
    words.emplace_back("--redirect-dns");
    if (dice.percent(35)) {
      words.emplace_back("--capture-all-dns");
    } else {
      add("--dns-server", dice.percent(70) ? both(&Addresses::dns) : std::string(addresses(Family::ipv4).dns));
    }
  }
  if (dice.percent(25)) words.emplace_back("--drop-invalid");
  if (dice.percent(15)) add("-p", "16001");
  if (dice.percent(15)) add("-z", "16006");
  if (dice.percent(15)) add("-e", "8081");
  if (dice.percent(15)) words.emplace_back("ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/8");
  if (dice.percent(12)) {
    words.emplace_back("ISTIO_OUTBOUND_OWNER_GROUPS=1000,3000");
  } else if (dice.percent(15)) {
    words.emplace_back("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=888,3000");
  }
  add("--ip-families", dice.percent(85) ? "ipv4,ipv6" : "ipv4");
  std::string options;
  for (const std::string& word : words) options += (options.empty() ? "" : " ") + word;
  return options;
}

// ---- The pod

BackendKind kind_named(std::string_view text) {
  for (const BackendKind kind : {BackendKind::iptables_legacy, BackendKind::iptables_nft, BackendKind::nftables}) {
    if (sidetrack::name(kind) == text) return kind;
  }
  throw std::invalid_argument(std::string(text));
}

class Explained : public KernelTest, public ::testing::WithParamInterface<int> {
 protected:
  // The options of the rules, without the variables.
  static void apply(const Pod& pod, const char* backend, const std::string& options) {
    std::vector<std::string> words{program_under_test(), "apply", "--backend", backend};
    std::vector<std::string> environment;
    std::istringstream split(options);
    for (std::string word; split >> word;) {
      (word.starts_with("ISTIO_") ? environment : words).push_back(word);
    }
    const Output output = pod.ns().program(words, {}, environment);
    if (output.exit_code != 0) throw std::runtime_error("apply " + options + ":\n" + output.err);
  }

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
  Pod pod(Pod::Options{.transparent_proxy = options.find("TPROXY") != std::string::npos});
  Actor inbound = as_proxy;
  inbound.identity.keep_capabilities = true;
  pod.listen(inbound, Role::proxy_inbound, {.tcp = {16006}, .udp = {}, .transparent = true});
  pod.listen(as_proxy, Role::proxy_outbound, {.tcp = {16001}, .udp = {}});
  // Refusals of datagrams to port 53 are of no connection where only the datagrams have a zone, and then may be
  // dropped.
  pod.listen(as_app, Role::app, {.tcp = {53}, .udp = {53}});

  for (const char* backend : backends) {
    SCOPED_TRACE(backend);
    apply(pod, backend, options);
    const PodView view = pod.ns().run(read_pod);
    const std::vector<Live> live = pod.ns().run(read_all);
    const std::vector<Live> as_planned{as_live(plan.ruleset, kind_named(backend))};
    for (int i = 0; i < packets_each; ++i) {
      const Probe probe = random_probe(dice, plan.families.contains(Family::ipv6));
      const Trace trace = explain(probe.packet, view, live);
      EXPECT_EQ(pod.connect(probe.actor, probe.request), predicted(trace.outcome, probe.packet.protocol, pod))
          << probe.text() << "\n"
          << text(trace, {});
      EXPECT_TRUE(trace.doubts.empty()) << trace.doubts.front();
      EXPECT_EQ(sentence(explain(probe.packet, view, as_planned).outcome), sentence(trace.outcome)) << probe.text();
      if (i == 0) {
        EXPECT_EQ(said(pod, probe), sentence(trace.outcome) + "\n") << probe.text();
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, Explained, ::testing::Range(0, option_sets));

// ---- The map: of each region of all packets, one at random and one at its edge.

std::size_t mapped_sets() {
  const char* given = std::getenv("SIDETRACK_MAP_SETS");
  return given == nullptr ? 6 : std::stoul(given);
}

// What a socket of the pod, of the outside or of the guest can send, and somebody answers or refuses.
class Sendable {
 public:
  explicit Sendable(space::Regions& regions) : regions_(regions), sets_(regions.sets()) {}

  std::vector<space::Box> boxes() {
    std::vector<space::Box> all;
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const Addresses& a = addresses(family);
      const auto from = [&](Direction way, std::string_view interface, std::string_view source,
                            std::vector<std::string_view> to) {
        space::Box box = regions_.everything(way, family);
        only(box, space::Field::state, 0);
        only(box, space::Field::protocol, 0);
        only(box, space::Field::mark, regions_.universe().mark_class(0));
        only(box, space::Field::source_port, 0);
        only(box, space::Field::source, source.empty() ? 0 : value(source));
        const auto& known = regions_.universe().interfaces;
        only(box, space::Field::interface,
             static_cast<space::Value>(std::ranges::find(known, interface) - known.begin()));
        space::Intervals destinations;
        for (const auto one : to) destinations.push_back({value(one), value(one)});
        box[space::index(space::Field::destination)] = sets_.of(space::normal(std::move(destinations)));
        limit(box, space::Field::destination_port, 1, 65535);
        limit(box, space::Field::uid, 0, 100'000);
        limit(box, space::Field::gid, 0, 100'000);
        all.push_back(box);
      };
      from(Direction::out, "", "", {a.service, a.other_service, a.excluded, a.dns, a.other_dns, a.client, a.guest});
      from(Direction::lo, "", "", {a.any_loopback, a.pod, a.pod_second});
      from(Direction::in, "eth0", a.client, {a.pod});
      from(Direction::in, "net1", a.guest, {a.pod_second});
    }
    return all;
  }

  static Probe probe(const Packet& packet) {
    Probe made;
    made.packet = packet;
    made.actor = packet.direction != Direction::in ? Actor{Place::pod, {}}
                 : packet.interface == "net1"      ? from_guest
                                                   : from_outside;
    if (packet.owner) made.actor.identity = {packet.owner->uid, packet.owner->gid};
    made.request.protocol = packet.protocol;
    made.request.to = Endpoint(packet.destination->text(), packet.destination_port);
    return made;
  }

 private:
  static space::Value value(std::string_view address) { return space::value_of(*Address::parse(address)); }
  void only(space::Box& box, space::Field field, space::Value value) { box[space::index(field)] = sets_.single(value); }
  void limit(space::Box& box, space::Field field, space::Value first, space::Value last) {
    box[space::index(field)] = sets_.both(box[space::index(field)], sets_.of({{first, last}}));
  }

  space::Regions& regions_;
  space::Sets& sets_;
};

// What explain would say of a packet of a region that ends so.
Outcome outcome_of(const space::Ending& ending, const Packet& packet) {
  Outcome made;
  made.kind = ending.kind;
  made.answers = ending.answers;
  made.at = {*packet.destination, packet.destination_port};
  if (ending.translated) {
    made.original = made.at;
    made.at = {*ending.to, ending.port.value_or(packet.destination_port)};
  }
  made.transparent = ending.transparent;
  made.transparent_port = ending.transparent_port;
  return made;
}

class Mapped : public Explained {};

TEST_P(Mapped, EachRegionLandsWhereTheMapSays) {
  Dice dice(static_cast<unsigned>(1000 + GetParam()));
  const std::string options = random_options(dice);
  SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} {}", seed(), options));
  Pod pod(Pod::Options{.transparent_proxy = options.find("TPROXY") != std::string::npos});
  Actor inbound = as_proxy;
  inbound.identity.keep_capabilities = true;
  pod.listen(inbound, Role::proxy_inbound, {.tcp = {16006}, .udp = {}, .transparent = true});
  pod.listen(as_proxy, Role::proxy_outbound, {.tcp = {16001}, .udp = {}});
  for (const char* backend : backends) {
    SCOPED_TRACE(backend);
    apply(pod, backend, options);
    space::Regions regions({{pod.ns().run(read_pod), pod.ns().run(read_all)}});
    Sendable sendable(regions);
    const std::vector<space::Box> boxes = sendable.boxes();
    const space::Regions::Node root = regions.of(0, boxes);
    std::set<std::tuple<space::Leaf, space::Sets::Id, space::Sets::Id>> tried;  // by ending, way and family
    regions.for_each(root, [&](const space::Box& box, const space::Box&, space::Leaf leaf) {
      if (leaf == space::no_such_packet) return;
      const auto region = std::tuple(regions.by_ending(leaf), box[space::index(space::Field::way)],
                                     box[space::index(space::Field::family)]);
      // Each ending twice, so that it is not the same part of it each time.
      if (!tried.insert(region).second && dice.percent(70)) return;
      for (const bool edge : {true, false}) {
        space::Point point{};
        for (std::size_t i = 0; i < space::field_count; ++i) {
          const space::Intervals& all = regions.sets().intervals(box[i]);
          const space::Interval& one = all[dice.below(all.size())];
          point[i] = edge ? (dice.percent(50) ? one.first : one.last)
                          : one.first + dice.below(static_cast<std::size_t>(one.last - one.first) + 1);
        }
        const Probe probe = Sendable::probe(regions.universe().packet(point));
        const Outcome outcome = outcome_of(regions.decision(leaf).ending, probe.packet);
        EXPECT_EQ(pod.connect(probe.actor, probe.request), predicted(outcome, probe.packet.protocol, pod))
            << probe.text() << ": " << text(regions.decision(leaf).ending);
      }
    });
    EXPECT_GT(tried.size(), 4U);
  }
}
INSTANTIATE_TEST_SUITE_P(, Mapped, ::testing::Range(0, static_cast<int>(mapped_sets())));

}  // namespace
}  // namespace sidetrack::netns
