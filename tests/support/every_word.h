// SPDX-License-Identifier: GPL-2.0-or-later
// Rules with every match and target that the model has, negated and not, for both families: what the backends must be
// able to write, list like the others' tools, and read back.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rule/ruleset.h"

namespace sidetrack::netns {

inline AddressRange range(const char* text) { return *AddressRange::parse(text); }

template <typename M>
M except(M match) {
  match.negated = true;
  return match;
}

// As the plan builds them: a rule with an address is for its family.
inline Rule rule(Table table, const char* chain, std::vector<Match> matches, Target target,
                 Families families = Families::both()) {
  for (const Match& match : matches) {
    if (const auto* address = std::get_if<AddressMatch>(&match)) families = address->ranges.front().family();
  }
  return {families, table, chain, std::move(matches), std::move(target), {}, {}};
}

inline Ruleset every_word() {
  constexpr auto tcp = ProtocolMatch{Protocol::tcp, false};
  constexpr auto udp = ProtocolMatch{Protocol::udp, false};
  const auto to = [](const char* text) { return AddressMatch{End::destination, {range(text)}, false}; };
  const auto from = [](const char* text) { return AddressMatch{End::source, {range(text)}, false}; };
  const auto in = [](const char* name) { return InterfaceMatch{InterfaceDirection::in, name, false}; };
  const auto out = [](const char* name) { return InterfaceMatch{InterfaceDirection::out, name, false}; };
  const auto dports = [](std::vector<PortRange> ports) { return PortMatch{End::destination, std::move(ports), false}; };
  const auto sports = [](std::vector<PortRange> ports) { return PortMatch{End::source, std::move(ports), false}; };
  const auto uid = [](std::uint32_t id) { return OwnerMatch{OwnerKind::uid, {{id, id}}, false}; };
  const auto gid = [](std::uint32_t id) { return OwnerMatch{OwnerKind::gid, {{id, id}}, false}; };
  const auto state = [](int states) { return ConntrackStateMatch{static_cast<std::uint8_t>(states), false}; };
  const Jump checks{"ISTIO_OUTPUT"};
  const Table nat = Table::nat;
  const Table mangle = Table::mangle;
  const Table raw = Table::raw;
  const Families both = Families::both();

  std::vector<Rule> rules{
      rule(raw, "OUTPUT", {}, Jump{"ISTIO_OUTPUT_DNS"}),
      rule(raw, "ISTIO_OUTPUT_DNS", {udp, dports({{53, 53}}), uid(1337)}, CtZone{1}),
      rule(raw, "ISTIO_OUTPUT_DNS", {udp, sports({{15053, 15053}}), gid(1337)}, CtZone{2}),
      rule(mangle, "PREROUTING", {state(ConntrackStateMatch::invalid)}, Jump{"ISTIO_DROP"}),
      rule(mangle, "PREROUTING", {except(state(ConntrackStateMatch::new_ | ConntrackStateMatch::untracked))},
           Jump{"ISTIO_DROP"}, Family::ipv4),
      rule(mangle, "ISTIO_DROP", {}, Verdict::drop),
      rule(mangle, "ISTIO_INBOUND", {udp, ConntrackDirectionMatch{true}}, Verdict::return_),
      rule(mangle, "ISTIO_INBOUND", {ConntrackDirectionMatch{false}, udp}, Verdict::return_),
      rule(mangle, "PREROUTING", {tcp, state(ConntrackStateMatch::related | ConntrackStateMatch::established)},
           Jump{"ISTIO_DIVERT"}),
      rule(mangle, "PREROUTING", {tcp}, Jump{"ISTIO_TPROXY"}),
      rule(mangle, "ISTIO_DIVERT", {}, SetMark{1337}),
      rule(mangle, "ISTIO_DIVERT", {}, Verdict::accept),
      rule(mangle, "ISTIO_TPROXY", {except(to("127.0.0.1")), tcp}, Tproxy{15006, 1337, 0xffffffff}),
      rule(mangle, "ISTIO_TPROXY", {except(to("::1")), tcp}, Tproxy{15006, 1337, 0xffffffff}),
      rule(mangle, "ISTIO_TPROXY", {tcp, dports({{80, 80}})}, Tproxy{15007, 0x500, 0xff00}),
      rule(mangle, "ISTIO_TPROXY", {tcp, dports({{81, 81}})}, Tproxy{15007, 7, 0xffffffff}),
      rule(mangle, "PREROUTING", {tcp, MarkMatch{1337, 0xffffffff, false}}, Connmark::save),
      rule(mangle, "ISTIO_TPROXY", {MarkMatch{0x30, 0xf0, false}}, Verdict::accept),
      rule(mangle, "ISTIO_TPROXY", {MarkMatch{0x40, 0xf0, true}}, Verdict::accept),
      rule(mangle, "OUTPUT", {tcp, ConnmarkMatch{1337, 0xffffffff, false}}, Connmark::restore),
      rule(mangle, "ISTIO_PRERT", {MarkMatch{0x539, 0xfff, false}}, SetConnmark{0x111, 0xfff}),
      rule(mangle, "ISTIO_PRERT", {MarkMatch{0x53a, 0xfff, true}}, SetConnmark{7, 0xffffffff}),
      rule(mangle, "PREROUTING", {}, Jump{"ISTIO_PRERT"}),
      rule(mangle, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"}),
      rule(mangle, "ISTIO_OUTPUT", {ConnmarkMatch{0x5, 0xf, true}}, Verdict::return_),
      rule(nat, "PREROUTING", {in("eth0")}, Verdict::return_),
      rule(nat, "PREROUTING", {tcp}, Jump{"ISTIO_INBOUND"}),
      rule(nat, "ISTIO_INBOUND", {except(in("veth+"))}, Verdict::return_),
      rule(nat, "ISTIO_INBOUND", {tcp, dports({{15008, 15008}})}, Verdict::return_),
      rule(nat, "ISTIO_INBOUND", {tcp, dports({{15020, 15021}})}, Verdict::return_),
      rule(nat, "ISTIO_INBOUND", {tcp, except(dports({{16000, 17000}}))}, Jump{"ISTIO_IN_REDIRECT"}),
      rule(nat, "ISTIO_IN_REDIRECT", {tcp}, Redirect{15006}),
      rule(nat, "ISTIO_REDIRECT", {tcp}, Redirect{15001}),
      rule(nat, "OUTPUT", {}, checks),
      rule(nat, "OUTPUT", {tcp, sports({{1, 2}})}, checks, Family::ipv6),
      rule(nat, "ISTIO_OUTPUT", {out("lo"), from("127.0.0.6")}, Verdict::return_),
      rule(nat, "ISTIO_OUTPUT", {out("lo"), from("::6")}, Verdict::return_),
      rule(nat, "ISTIO_OUTPUT", {out("lo"), except(to("127.0.0.1")), tcp, except(dports({{15008, 15008}})), uid(1337)},
           Jump{"ISTIO_IN_REDIRECT"}),
      rule(nat, "ISTIO_OUTPUT",
           {out("lo"), except(to("::1")), tcp, except(dports({{53, 53}, {15008, 15008}})), uid(1337)},
           Jump{"ISTIO_IN_REDIRECT"}),
      rule(nat, "ISTIO_OUTPUT", {out("lo"), except(uid(1337))}, Verdict::return_),
      rule(nat, "ISTIO_OUTPUT", {except(gid(1)), except(gid(2))}, Verdict::return_),
      rule(nat, "ISTIO_OUTPUT", {uid(7)}, Verdict::accept),
      rule(nat, "ISTIO_OUTPUT", {uid(9)}, Verdict::accept),
      rule(nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::uid, {{1000, 2000}}, false}}, Jump{"ISTIO_REDIRECT"}),
      rule(nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::uid, {{1000, 2000}}, true}}, Verdict::return_),
      rule(nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::gid, {{10, 20}}, false}}, Verdict::accept),
      rule(nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::gid, {{40, 50}}, false}}, Verdict::accept),
      rule(nat, "ISTIO_OUTPUT", {ProtocolMatch{Protocol::udp, true}, to("10.1.0.0/12")}, Jump{"ISTIO_REDIRECT"}),
      rule(nat, "ISTIO_OUTPUT", {except(from("10.1.2.0/25"))}, Jump{"ISTIO_REDIRECT"}),
      rule(nat, "ISTIO_OUTPUT", {except(from("172.16.0.0/16")), to("10.3.0.0/24")}, Verdict::accept),
      rule(nat, "ISTIO_OUTPUT", {from("fd00::/65"), except(to("fd01::/64"))}, Verdict::accept),
      rule(nat, "ISTIO_OUTPUT", {ProtocolMatch{Protocol::icmp, false}}, Verdict::return_, Family::ipv4),
      rule(nat, "ISTIO_OUTPUT", {ProtocolMatch{Protocol::icmpv6, false}}, Verdict::return_, Family::ipv6),
      rule(nat, "ISTIO_OUTPUT", {udp, sports({{1000, 2000}}), dports({{53, 53}})}, Verdict::return_, both),
      rule(nat, "ISTIO_OUTPUT", {}, Jump{"ISTIO_REDIRECT"}),
  };
  // Inserted: before all others.
  rules.push_back(rule(nat, "PREROUTING", {in("tap0")}, Verdict::return_));
  rules.back().insert_at = 1;
  return {rules};
}

}  // namespace sidetrack::netns
