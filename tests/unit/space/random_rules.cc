// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit/space/random_rules.h"

#include <linux/rtnetlink.h>

#include <algorithm>

#include "unit/live_rules.h"
#include "walk/explain.h"

namespace sidetrack::space {
namespace {

Target random_target(Random& random) {
  switch (random.below(13)) {
    case 0:
    case 1:
      return Verdict::drop;
    case 2:
    case 3:
      return Verdict::accept;
    case 4:
    case 5:
      return Verdict::return_;
    case 6:
      return SetMark{0x4000, 0x4000};
    case 7:
      return SetMark{7, 0xffffffff};
    case 8:
      if (random.one_in(3)) return Connmark{Connmark::Kind::save, 0x4001, 0xffff};
      if (random.one_in(3)) return Connmark{Connmark::Kind::restore, 0xffff, 0x539};
      return random.one_in(2) ? Connmark::save : Connmark::restore;
    case 9:
      return NonTerminating{};
    case 10:
      return random.one_in(2) ? Target(Notrack{}) : Target(SetConnmark{1, 1});
    default:
      return UnknownTarget{"-j CUSTOM --anything"};
  }
}

}  // namespace

Match random_match(Random& random) {
  const bool negated = random.one_in(3);
  const End end = random.one_in(3) ? End::source : End::destination;
  static const char* const ranges[] = {"10.0.0.0/8",  "192.0.2.2",          "127.0.0.0/8", "203.0.113.0/24",
                                       "2001:db8::2", "2001:db8:ffff::/48", "::1"};
  switch (random.below(18)) {
    case 0:
      return InterfaceMatch{random.one_in(2) ? InterfaceDirection::in : InterfaceDirection::out,
                            random.one_in(2) ? "lo" : "eth+", negated};
    case 1:
    case 2:
      return AddressMatch{end, {*AddressRange::parse(random.of(ranges))}, negated};
    case 3:
      return ProtocolMatch{random.one_in(3) ? Protocol::udp : Protocol::tcp, negated};
    case 4:
    case 5:
      return PortMatch{end, {{static_cast<std::uint16_t>(random.below(100)), 443}}, negated};
    case 6:
      return OwnerMatch{random.one_in(2) ? OwnerKind::uid : OwnerKind::gid, {{1000, 1337}}, negated};
    case 7:
      return ConntrackStateMatch{static_cast<std::uint8_t>(1 + random.below(31)), negated};
    case 8:
      return MarkMatch{random.one_in(2) ? 0x4000U : 1337U, random.one_in(2) ? 0x4000U : 0xffffffffU, negated};
    case 9:
      return ConnmarkMatch{0x1, 0x1, negated};
    case 10:
      return CgroupMatch{random.one_in(2) ? "a" : "a/b", 0, negated};
    case 11:
      return TcpFlagsMatch{static_cast<std::uint8_t>(random.one_in(2) ? 0x12 : 0x17),
                           static_cast<std::uint8_t>(random.one_in(2) ? 0x02 : 0x12), negated};
    case 12: {
      AddressTypeMatch match{end, random.one_in(2) ? std::uint16_t{1 << RTN_LOCAL} : std::uint16_t{1 << RTN_UNICAST},
                             negated};
      if (random.one_in(3)) match.types |= 1 << RTN_MULTICAST | 1 << RTN_BROADCAST;
      if (random.one_in(4)) match.limit = random.one_in(2) ? InterfaceDirection::in : InterfaceDirection::out;
      return match;
    }
    case 13:
      return EitherPortMatch{{{static_cast<std::uint16_t>(random.below(100)), 443}}, negated};
    case 14: {
      ConnectionMatch match{ConnectionMatch::Of::address, random.one_in(2), end, negated, {}, {}};
      match.addresses = {*AddressRange::parse(random.of(ranges))};
      return match;
    }
    case 15: {
      ConnectionMatch match{ConnectionMatch::Of::port, random.one_in(2), end, negated, {}, {}};
      match.ports = {
          {static_cast<std::uint16_t>(random.below(100)), static_cast<std::uint16_t>(random.one_in(2) ? 443 : 15001)}};
      return match;
    }
    case 16: {
      if (random.one_in(2)) return ConntrackStateMatch{ConntrackStateMatch::snat | ConntrackStateMatch::dnat, negated};
      ConnectionMatch match{ConnectionMatch::Of::status, false, end, negated, {}, {}};
      match.number = static_cast<std::uint16_t>(1U << random.below(6));
      return match;
    }
    default:
      return UnknownMatch{random.one_in(2) ? "-m statistic --mode random" : "-m bpf"};
  }
}

std::string random_options(Random& random) {
  static const char* const ports[] = {"15090", "22", "22,9001", "80,443,8080", "15001", "15006,15008", "1-1024"};
  static const char* const ranges[] = {"10.96.0.0/12", "10.96.0.10", "fd00:96::/32", "10.0.0.0/8,192.168.0.0/16",
                                       "127.0.0.0/8",  "0.0.0.0/0"};
  std::string options;
  const auto maybe = [&](std::uint64_t n, const std::string& words) {
    if (random.one_in(n)) options += " " + words;
  };
  maybe(3, "-m TPROXY");
  if (!random.one_in(4)) options += random.one_in(3) ? std::string(" -i ") + random.of(ranges) : " -i *";
  if (!random.one_in(4)) options += random.one_in(3) ? " -b 80,8080" : " -b *";
  maybe(2, std::string("-d ") + ports[random.below(5)]);
  maybe(2, std::string("-o ") + ports[random.below(5)]);
  maybe(4, std::string("-q ") + ports[random.below(5)]);
  maybe(3, std::string("-x ") + ranges[random.below(5)]);
  maybe(6, "-k net1");
  maybe(6, "-c net2");
  maybe(4, "-u 1000,1337");
  maybe(6, "-g 2000");
  maybe(4, "--redirect-dns --dns-server 10.96.0.53,fd00:96::53");
  maybe(8, "--redirect-dns --capture-all-dns");
  maybe(6, "--drop-invalid");
  maybe(6, "--exclude-uids 1000-2000");
  maybe(8, "--exclude-gids 3000,3002");
  maybe(8, "--exclude-uid-ports 1000:443,8000-8100");
  maybe(6, "--exclude-inbound-ranges 10.0.0.0/8,fd00::/8");
  maybe(8, "--include-inbound-ranges 203.0.113.0/24");
  maybe(6, "--bypass-cgroup a");
  if (options.find("-m TPROXY") != std::string::npos) maybe(3, "--capture-udp 443,8000-8100");
  maybe(8, "ISTIO_OUTBOUND_OWNER_GROUPS=3000");
  maybe(4, "--ip-families ipv4");
  return options;
}

LiveRule random_rule(Random& random, Families families, Table table, const std::string& chain) {
  LiveRule made;
  made.rule = {families, table, chain, {}, random_target(random), {}, {}};
  for (std::uint64_t i = random.below(4); i-- > 0;) made.rule.matches.push_back(random_match(random));
  return made;
}

void add_others(Random& random, Live& live) {
  struct Place {
    Table table;
    const char* chain;
  };
  static const Place places[] = {{Table::filter, "OUTPUT"},   {Table::filter, "INPUT"},   {Table::mangle, "OUTPUT"},
                                 {Table::raw, "OUTPUT"},      {Table::raw, "PREROUTING"}, {Table::security, "OUTPUT"},
                                 {Table::nat, "POSTROUTING"}, {Table::nat, "OUTPUT"}};
  for (const Place& place : places) {
    if (!random.one_in(3)) continue;
    const Family family = random.one_in(2) ? Family::ipv4 : Family::ipv6;
    const bool taken = std::ranges::any_of(live.chains, [&](const LiveChain& one) {
      return one.table == place.table && one.name == place.chain && one.families.contains(family);
    });
    if (taken) continue;
    std::vector<std::pair<std::vector<Match>, Target>> rules;
    for (std::uint64_t i = 1 + random.below(3); i-- > 0;) {
      std::vector<Match> matches;
      for (std::uint64_t j = random.below(4); j-- > 0;) matches.push_back(random_match(random));
      Target target = random_target(random);
      if (std::string_view(place.chain) == "OUTPUT" && place.table == Table::nat) {
        const PortRange ports{443, static_cast<std::uint16_t>(random.one_in(2) ? 443 : 15001)};
        target = Nat{End::destination, {}, ports, "-j REDIRECT", random.one_in(2) ? Nat::To::own : Nat::To::given};
      } else if (place.table == Table::nat && random.one_in(2)) {
        target = Nat{End::source,
                     AddressRange::single(*Address::parse(family == Family::ipv4 ? "192.0.2.2" : "::9")),
                     {},
                     "-j SNAT"};
      }
      rules.emplace_back(std::move(matches), std::move(target));
    }
    live.chains.push_back(chain(family, place.table, place.chain, false, rules));
    if (place.table != Table::nat && random.one_in(5)) live.chains.back().policy = Verdict::drop;
  }
}

void add_settings(Random& random, PodView& pod) {
  assume_interface(pod, "net1");
  const auto kind = random.one_in(3) ? Route::Kind::unreachable : Route::Kind::unicast;
  pod.routes.insert(pod.routes.begin(), {*AddressRange::parse("10.0.0.0/8"), "net1", kind});
  pod.interfaces.back().rp_filter = random.one_in(2) ? RpFilter::strict : RpFilter::loose;
  const bool strict = random.one_in(2);
  const bool by_mark = random.one_in(3);
  for (Interface& each : pod.interfaces) {
    if (strict) each.rp_filter = std::max(each.rp_filter, RpFilter::strict);
    each.src_valid_mark = by_mark;
    each.route_localnet = random.one_in(3);
    each.accept_local = random.one_in(3);
  }
  pod.tcp_fwmark_accept = random.one_in(3);
  if (random.one_in(3)) pod.fwmark_reflect = Families::both();
  if (random.one_in(4)) pod.ignored_echos = Family::ipv6;
}

}  // namespace sidetrack::space
