// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lint/effects.h"
#include "lint/invariants.h"
#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "model/ports.h"
#include "space/forwarded.h"
#include "space/pairs.h"
#include "space/witness.h"
#include "walk/explain.h"

namespace sidetrack::lint {
namespace {

using namespace space;

void append(Findings& all, Findings more) { std::ranges::move(more, std::back_inserter(all)); }

// Lists the first ones about one subject, and counts the others: where there are thousands, each is of another service.
class Listed {
 public:
  explicit Listed(Regions& regions) : regions_(regions) {}

  void add(const Violation& one) {
    std::vector<std::size_t>& alike = listed_[{one.invariant->about, one.is_known}];
    if (alike.size() == most_alike) {
      ++all_[alike.back()].more;
    } else if (auto finding = finding_of(regions_, one)) {
      alike.push_back(all_.size());
      all_.push_back(*std::move(finding));
    }
  }
  Findings take() { return std::move(all_); }

 private:
  static constexpr std::size_t most_alike = 8;

  Regions& regions_;
  Findings all_;
  std::map<std::pair<std::string, bool>, std::vector<std::size_t>> listed_;  // by subject and whether it is known
};

Findings findings_of(Regions& regions, Regions::Node root, const std::vector<Invariant>& invariants) {
  Listed listed(regions);
  for (const Violation& one : violations(regions, root, invariants)) listed.add(one);
  return listed.take();
}

// Of all packets that they are about, usual ones or not.
Findings violations_of(Regions& regions, const std::vector<Invariant>& invariants) {
  std::vector<Box> boxes;
  for (const Invariant& one : invariants) boxes.push_back(one.box);
  return findings_of(regions, regions.of(0, boxes), invariants);
}

// Of two families that end alike the first is enough.
void add_first(Findings& all, Regions& regions, Regions::Node root, const std::vector<Invariant>& invariants) {
  Findings found = findings_of(regions, root, invariants);
  if (!found.empty()) all.push_back(std::move(found.front()));
}

// A port of the pod that answers without the proxy's inbound listener. `wanted`: all but its packets.
void add_if_captured(Findings& all, Regions& regions, Regions::Node root, const PodView& pod, const Proxy& proxy,
                     std::uint16_t port, Invariant wanted) {
  wanted.kept = [&](const Ending& ending, const Box& box) {
    return !is_taken(ending, box, proxy.inbound_ports, regions.sets());
  };
  std::vector<Invariant> invariants;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    wanted.box = regions.ordinary(pod, Direction::in, family);
    wanted.box[index(Field::protocol)] = regions.sets().single(tcp);
    wanted.box[index(Field::destination_port)] = regions.sets().single(port);
    invariants.push_back(wanted);
  }
  add_first(all, regions, root, invariants);
}

Findings captured_ports_of_proxy(Regions& regions, Regions::Node root, const PodView& pod, const Proxy& proxy) {
  Findings all;
  if (proxy.is_ztunnel) return all;  // it answers there on the node, not in the pod
  for (const std::uint16_t port : ports_of_proxy) {
    add_if_captured(all, regions, root, pod, proxy, port,
                    {Code::proxy_port_captured,
                     fmt::format("inbound tcp to port {} ({})", port, port_name(port)),
                     "the proxy answers there itself, without its inbound listener",
                     fmt::format("add {0} to -d; where -b is a list, leave {0} out of that", port),
                     {},
                     {}});
  }
  return all;
}

// ---- Of a manifest.

Findings captured_probes(Regions& regions, Regions::Node root, const PodView& pod, const Proxy& proxy,
                         const PodFacts& manifest) {
  Findings all;
  for (const Probe& probe : manifest.probes) {
    add_if_captured(
        all, regions, root, pod, proxy, probe.port,
        {Code::probe_port_captured,
         fmt::format("container {}: {} on port {}", probe.container, probe.kind, probe.port),
         "the kubelet asks without the mutual TLS that the proxy may want",
         fmt::format(
             "let the injector rewrite it (annotation sidecar.istio.io/rewriteAppHTTPProbers: \"true\"), or add {} "
             "to traffic.sidecar.istio.io/excludeInboundPorts",
             probe.port),
         {},
         {}});
  }
  return all;
}

Findings running_as_proxy(Regions& regions, Regions::Node root, const PodView& pod, const Config& config,
                          const PodFacts& manifest) {
  Findings all;
  const auto has = [](const std::vector<std::uint32_t>& ids, const std::optional<std::uint32_t>& id) {
    return id && std::ranges::find(ids, *id) != ids.end();
  };
  for (const Container& container : manifest.containers) {
    const bool by_uid = has(config.proxy_uids, container.uid);
    const bool by_gid = has(config.proxy_gids, container.gid);
    if ((!by_uid && !by_gid) || (config.outbound_ranges.empty() && config.outbound_ports.empty())) continue;
    Box box = regions.ordinary(pod, Direction::out, Family::ipv4);
    const auto only = [&](Field field, const std::optional<std::uint32_t>& id) {
      if (id) box[index(field)] = regions.sets().single(*id);
    };
    only(Field::uid, container.uid);
    only(Field::gid, container.gid);
    box[index(Field::protocol)] = regions.sets().single(tcp);
    const Ending& ending = regions.decision(regions.diagrams().at(root, regions.example(box))).ending;
    const auto packet = witness(regions, 0, box, ending);
    if (!packet) continue;
    Finding made;
    made.code = Code::runs_as_proxy;
    made.subject = fmt::format("container {}", container.name);
    made.message = fmt::format("runs with {} {}, which is the proxy's: nothing that it sends is captured",
                               by_uid ? "uid" : "gid", by_uid ? *container.uid : *container.gid);
    made.witness = explain_words(*packet);
    made.ending = ending_text(ending);
    made.remedy = fmt::format("give it another {} in its securityContext", by_uid ? "runAsUser" : "runAsGroup");
    all.push_back(std::move(made));
  }
  return all;
}

// ---- Of live rules.

// Made by Sidetrack or Istio, or by an agent of the node.
bool is_of_mesh(const LiveRule& rule) { return rule.ours || rule.of_agent; }

// As its rules have it: whose traffic they return, and which ports they redirect to.
Proxy proxy_in(const std::vector<Live>& live) {
  Proxy made;
  const auto owners = [&](const Rule& rule) {
    for (const Match& match : rule.matches) {
      const auto* owner = std::get_if<OwnerMatch>(&match);
      if (owner == nullptr) continue;
      std::vector<IdRange>& ids = owner->kind == OwnerKind::uid ? made.uids : made.gids;
      for (const IdRange& id : owner->ids) {
        if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
      }
    }
  };
  const auto port = [](const Rule& rule, std::vector<std::uint16_t>& ports) {
    if (const auto one = listening_port(rule.target)) ports.push_back(*one);
  };
  for_each_rule(live, [&](const LiveRule& each) {
    if (!is_of_mesh(each)) return;
    const Rule& rule = each.rule;
    const MeshRule kind = describe(rule).rule;
    if (is_of_ambient(kind)) {
      made.rules_in = made.is_ztunnel ? made.rules_in | rule.families : rule.families;
      made.is_ztunnel = true;
    }
    switch (kind) {
      case MeshRule::proxy_return:
      case MeshRule::proxy_or_group_return:
      case MeshRule::proxy_to_itself:
      case MeshRule::app_to_itself:
      case MeshRule::tproxy_mark_proxy:
      case MeshRule::dns_proxy_query:
        return owners(rule);
      case MeshRule::outbound_listener:
      case MeshRule::dns_redirect:
      case MeshRule::ambient_outbound:
      case MeshRule::ambient_dns_redirect:
        return port(rule, made.outbound_ports);
      case MeshRule::tproxy_listener:
      case MeshRule::inbound_listener:
      case MeshRule::ambient_inbound:
        return port(rule, made.inbound_ports);
      default:
        return;
    }
  });
  return made;
}

// Returns how many those were.
std::size_t remove_rules(std::vector<Live>& live, bool (*is_one)(const LiveRule&)) {
  std::size_t count = 0;
  for (Live& one : live) {
    for (LiveChain& chain : one.chains) count += std::erase_if(chain.rules, is_one);
  }
  return count;
}

// What our rules alone would do.
std::vector<Live> ours_alone(std::vector<Live> live) {
  remove_rules(live, [](const LiveRule& rule) { return !is_of_mesh(rule); });
  for (Live& one : live) {
    for (LiveChain& chain : one.chains) {
      chain.policy = Verdict::accept;
      chain.dormant = false;
    }
  }
  return live;
}

// Calls `use` with the packets that end by `a` on the first side and by `b` on the second one.
template <typename Use>
void for_each_pair(Regions& regions, Regions::Node first, Regions::Node second, const Use& use) {
  const Pairs pairs(regions, first, second, [](Leaf a, Leaf b) {
    return a == no_such_packet ? std::nullopt : std::optional(Pairs::Pair(a, b));
  });
  regions.for_each(pairs.root(), [&](const Box& box, const Box& whole, Leaf leaf) {
    if (!Pairs::is_told(leaf)) return;
    const auto& [a, b] = pairs.all()[Pairs::number(leaf)];
    use(box, whole, a, b);
  });
}

// Finds what our rules alone capture, and all do not; and what those alone leave unknown.
Findings taken_by_others(Regions& regions, const Proxy& proxy) {
  std::vector<std::uint16_t> ports = proxy.outbound_ports;
  ports.insert(ports.end(), proxy.inbound_ports.begin(), proxy.inbound_ports.end());
  const Regions::Node all = regions.of(0, Scope::ordinary);
  const Regions::Node ours = regions.of(1, Scope::ordinary);
  Invariant invariant;
  invariant.code = Code::taken_by_others;
  std::map<std::pair<Value, Leaf>, Violation> found;  // by way and how it ends
  std::set<Leaf> unknown;                             // by our rules alone
  for_each_pair(regions, all, ours, [&](const Box& box, const Box& whole, Leaf a, Leaf b) {
    const auto is_known = [&](Leaf one) { return regions.decision(one).ending.kind != Outcome::Kind::unknown; };
    const auto ends_there = [&](const Ending& one) { return is_taken(one, box, ports, regions.sets()); };
    const auto taken = [&](Leaf one) { return ends_there(regions.decision(one).ending); };
    const std::vector<Ending>& either = regions.decision(b).ending.either;
    const bool is_open = !is_known(a) && !is_known(b) && (either.empty() || std::ranges::any_of(either, ends_there));
    if (is_open) unknown.insert(a);
    if (!is_open && (regions.by_ending(a) == regions.by_ending(b) || !taken(b) || taken(a))) return;
    const double share = share_of(regions.sets(), box, whole);
    const Value way = regions.sets().intervals(box[index(Field::way)]).front().first;
    Violation& known = found[{way, a}];
    if (known.invariant != nullptr && known.share >= share) return;
    known = {&invariant, box, a, share, is_known(a)};
  });
  Listed listed(regions);
  for (const auto& [key, one] : found) {
    const auto value = [&](Field field) { return regions.sets().intervals(one.box[index(field)]).front().first; };
    const Value way = value(Field::way);
    const char* colon = way == static_cast<Value>(Direction::lo) ? ":" : "";
    invariant.about = fmt::format("{}{} {}", way_words(way), colon, protocol_words(value(Field::protocol)));
    const bool is_open = unknown.contains(key.second);
    invariant.asked = is_open ? "the sidecar's rules alone may capture it" : "the sidecar's rules alone capture it";
    invariant.remedy = is_open ? "'sidetrack show' prints the rule"
                               : "make an exception in the rule of the other program, or leave this traffic out";
    listed.add(one);
  }
  return listed.take();
}

bool sets_zone(const LiveRule& rule) { return std::holds_alternative<CtZone>(rule.rule.target); }

// DNS of hosts behind the pod, as containers in it are. One of each interface and family.
Findings lost_forwarded_replies(const PodView& pod, const std::vector<Live>& live) {
  std::vector<Live> without = live;
  if (remove_rules(without, sets_zone) == 0) return {};
  Regions regions(list_of(Side{pod, live}, Side{pod, std::move(without)}));
  const std::vector<Box> queries = forwarded_dns(regions, pod);
  Invariant invariant;
  invariant.code = Code::forwarded_replies_lost;
  invariant.asked = "the replies are tracked in another conntrack zone than the queries";
  invariant.remedy = "give --track-forwarded-dns, and the interface in -k";
  std::map<std::pair<std::string, Family>, Violation> found;
  for_each_pair(regions, regions.of(0, queries), regions.of(1, queries),
                [&](const Box& box, const Box& whole, Leaf a, Leaf b) {
                  if (!loses_forwarded_replies(regions, box, regions.decision(a).ending) ||
                      regions.decision(b).ending.answers != Outcome::Answers::arrive)
                    return;
                  const double share = share_of(regions.sets(), box, whole);
                  Violation& known = found[{interface_of(regions, box), family_of(regions.sets(), box)}];
                  if (known.invariant == nullptr || known.share < share) known = {&invariant, box, a, share, true};
                });
  Findings findings;
  for (const auto& [key, one] : found) {
    invariant.about = fmt::format("DNS by udp from {}, {}", key.first, title(key.second));
    if (auto finding = finding_of(regions, one)) findings.push_back(*std::move(finding));
  }
  return findings;
}

// Finds what hosts behind the pod, such as containers in it, send to others, where the proxy takes it for inbound.
Findings captured_forwarded(Regions& regions, const PodView& pod, const Proxy& proxy) {
  Findings all;
  for (Box& box : forwarded(regions, pod)) {
    box[index(Field::protocol)] = regions.sets().single(tcp);
    const std::string& interface = interface_of(regions, box);
    const Invariant invariant{
        Code::forwarded_captured,
        fmt::format("forwarded tcp from {}, {}", interface, title(family_of(regions.sets(), box))),
        "the proxy takes for inbound what hosts behind the interface send to others",
        fmt::format("give -k {0} to capture it as outbound, or -c {0} to leave it alone", interface),
        box,
        [&](const Ending& ending, const Box& part) {
          return !is_taken(ending, part, proxy.inbound_ports, regions.sets());
        }};
    add_first(all, regions, regions.of(0, {&box, 1}), {invariant});
  }
  return all;
}

// Finds what may be captured beside no rules of a sidecar, of which nothing else is asked.
Findings unknown_outcomes(Regions& regions, Regions::Node root, const PodView& pod) {
  Findings all;
  for (const Direction way : {Direction::out, Direction::in}) {
    for (const Value protocol : {tcp, udp}) {
      std::vector<Invariant> invariants;
      for (const Family family : {Family::ipv4, Family::ipv6}) {
        Box box = regions.ordinary(pod, way, family);
        box[index(Field::protocol)] = regions.sets().single(protocol);
        invariants.push_back(
            {Code::not_known,
             fmt::format("{} {}, {}", way_words(static_cast<Value>(way)), protocol_words(protocol), title(family)),
             "a rule decides whether it is captured", "'sidetrack show' prints the rule", box,
             [](const Ending& ending, const Box&) {
               return ending.kind != Outcome::Kind::unknown && !is_captured(ending);
             }});
      }
      Listed listed(regions);
      for (const Violation& one : violations(regions, root, invariants)) {
        if (!one.is_known) listed.add(one);
      }
      append(all, listed.take());
    }
  }
  return all;
}

// IPv4 is captured, and IPv6 of a pod that has it is not.
Findings missing_family(Regions& regions, Regions::Node root, const PodView& pod, const Proxy& proxy) {
  if (!pod.has_address(Family::ipv6)) return {};
  Findings all;
  for (const Direction way : {Direction::out, Direction::in}) {
    const auto& ports = way == Direction::out ? proxy.outbound_ports : proxy.inbound_ports;
    const auto box_of = [&](Family family) {
      Box box = regions.ordinary(pod, way, family);
      box[index(Field::protocol)] = regions.sets().single(tcp);
      return box;
    };
    const auto is_captured = [&](Family family) {
      return !regions.diagrams().is_within(root, box_of(family), [&](Leaf leaf) {
        return leaf == no_such_packet ||
               !is_taken(regions.decision(leaf).ending, box_of(family), ports, regions.sets());
      });
    };
    if (!is_captured(Family::ipv4) || is_captured(Family::ipv6)) continue;
    const Invariant invariant{
        Code::family_not_captured,
        fmt::format("{} tcp, IPv6", way == Direction::out ? "outbound" : "inbound"),
        "IPv4 is captured, IPv6 is not",
        "apply with --dual-stack, or remove the pod's IPv6 address",
        box_of(Family::ipv6),
        [](const Ending& ending, const Box&) { return ending.kind == Outcome::Kind::unroutable; }};
    add_first(all, regions, root, {invariant});
  }
  return all;
}

// -x with all addresses of a family is more than an option without effect, if it is one at all.
void say_that_nothing_is_captured(Findings& all, const Config& config) {
  if (config.outbound_ranges.empty()) return;
  for (const AddressRange& range : config.outbound_exclude_ranges) {
    if (range.prefix_length() != 0) continue;
    auto found = std::ranges::find_if(all, [](const Finding& finding) {
      return finding.code == Code::option_without_effect && finding.subject.starts_with("-i");
    });
    if (found == all.end()) {
      found = all.insert(all.begin(), Finding{});
      found->code = Code::option_without_effect;
      found->subject = fmt::format("-i, {}", title(range.family()));
    }
    found->message =
        fmt::format("-x {0} excludes all of {1}: no outbound {1} is captured", range.text(), title(range.family()));
    found->remedy = fmt::format("leave {} out of -x, or say -i ''", range.text());
  }
}

}  // namespace

Findings violations_of(const Config& config, const Plan& plan, Side after) {
  Regions regions(list_of(std::move(after)));
  return violations_of(regions, invariants(regions, regions.side(0).pod, config, plan));
}

Findings lint_options(const Subject& subject) {
  Findings all = without_effect(subject);
  say_that_nothing_is_captured(all, subject.config);
  const Plan asked = plan(subject.config, subject.facts);
  PodView pod = with_routing(subject.pod ? *subject.pod : assumed_pod(asked), asked.routing);
  if (!subject.pod && !asked.families.contains(Family::ipv6)) {  // nothing says that there is any
    for (Interface& interface : pod.interfaces)
      std::erase_if(interface.addresses,
                    [](const InterfaceAddress& one) { return one.address.family == Family::ipv6; });
  }
  Regions regions(list_of(Side{pod, {as_live(asked.ruleset, BackendKind::iptables_nft)}}));
  const Regions::Node root = regions.of(0, Scope::ordinary);
  append(all, findings_of(regions, root, invariants(regions, pod, subject.config, asked)));
  const Proxy proxy = proxy_of(subject.config);
  append(all, captured_ports_of_proxy(regions, root, pod, proxy));
  if (subject.pod) append(all, captured_forwarded(regions, pod, proxy));
  // What the kubelet asks an ambient pod comes from an address that is left alone.
  if (subject.manifest != nullptr && !proxy.is_ztunnel) {
    append(all, captured_probes(regions, root, pod, proxy, *subject.manifest));
    append(all, running_as_proxy(regions, root, pod, subject.config, *subject.manifest));
  }
  return all;
}

Findings lint_live(const PodView& pod, const std::vector<Live>& live) {
  const Proxy proxy = proxy_in(live);
  std::vector<Option> options = options_of(pod, live);
  std::vector<Side> sides = list_of(Side{pod, live}, Side{pod, ours_alone(live)});
  add_without(sides, options);
  Regions regions(std::move(sides));
  Findings all = without_effect(regions, Families::both(), options);
  const Regions::Node root = regions.of(0, Scope::ordinary);
  append(all, violations_of(regions, invariants_of_proxy(regions, pod, proxy, Families::both())));
  append(all, taken_by_others(regions, proxy));
  append(all, missing_family(regions, root, pod, proxy));
  append(all, captured_ports_of_proxy(regions, root, pod, proxy));
  append(all, captured_forwarded(regions, pod, proxy));
  append(all, lost_forwarded_replies(pod, live));
  if (!any_rule(live, is_of_mesh)) append(all, unknown_outcomes(regions, root, pod));
  return all;
}

}  // namespace sidetrack::lint
