// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "apply/without_others.h"
#include "mesh/describe.h"
#include "model/error.h"
#include "model/stable_sort.h"
#include "pod/local_ranges.h"
#include "space/forwarded.h"
#include "space/pairs.h"
#include "walk/explain.h"
#include "walk/hook_calls.h"
#include "walk/in_flight.h"
#include "walk/route.h"

namespace sidetrack {
namespace {

using space::Box;
using space::Field;
using space::Leaf;
using space::Regions;

// Limits that are said where they are reached. A packet that is followed takes less than 0.1 ms; explain() asks rule by
// rule, as many times as there are ways that rules leave open: a second.
constexpr std::size_t most_followed = 20'000;
constexpr std::size_t most_asked = 20'000'000;  // rules
constexpr std::size_t most_tried = 32;          // packets of one kind
constexpr std::size_t most_in_vain = 2;

bool is_captured(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::lands && (outcome.transparent || outcome.original);
}

// Tells inbound traffic of the mesh, which comes to the proxy as it is.
bool is_for_tunnel(Outcome::Kind kind, const Step* step) {
  return kind == Outcome::Kind::lands && step != nullptr && step->live != nullptr &&
         is_of(step->live->rule, MeshRule::tunnel_port);
}
bool is_for_tunnel(const Trace& trace) {
  return !trace.decisive.empty() && is_for_tunnel(trace.outcome.kind, &trace.steps[trace.decisive.back()]);
}

bool differ_by_replies(space::Ending a, const space::Ending& b) {
  a.answers = b.answers;
  return a == b;
}

// Tells whether the outcome is as good as planned, or better.
bool has_more_answers(const Outcome& there, const Outcome& planned) {
  using Answers = Outcome::Answers;
  return there.answers == Answers::arrive || (there.answers == Answers::unknown && planned.answers == Answers::lost);
}

// Whether packets meet there what they meet in `planned`, in the same order, and nothing else.
bool is_alone(const Live& planned, std::span<const Live> live) {
  std::ptrdiff_t met = 0;
  for (const Live& one : live) {
    for (const LiveChain& chain : one.chains) {
      if (!chain.has_effect()) continue;
      const auto same = std::ranges::find_if(planned.chains, [&](const LiveChain& asked) {
        return asked.families == chain.families && asked.table == chain.table && asked.name == chain.name;
      });
      if (one.backend != planned.backend || same == planned.chains.end() || !treat_alike(chain, *same)) return false;
      ++met;
    }
  }
  return met == std::ranges::count_if(planned.chains, &LiveChain::has_effect);
}

// Tells whether rules of other programs treat later packets of a connection otherwise than its first one.
bool tells_later_packets(std::span<const Live> all) {
  return any_rule(all, [](const LiveRule& rule) {
    return !rule.ours && std::ranges::any_of(rule.rule.matches, [](const Match& match) {
      return (reads(match) & (facts::connection | facts::flags | facts::socket)) != 0;
    });
  });
}

// How much a packet of the box needs said that people leave out.
std::size_t unusual(Regions& of, const Box& box) {
  return (of.sets().contains(box[space::index(Field::source)], space::by_kernel) ? 0U : 1U) +
         (of.sets().contains(box[space::index(Field::mark)], of.universe().mark_class(0)) ? 0U : 1U);
}

bool is_of_others(const Step& step) { return step.live == nullptr || !step.live->ours; }

std::string rule_words(const Step& step) { return fmt::format("{}: {}", rule_of(step), iptables_words(step)); }

// A reason that is no rule may name the packet's addresses, and is the same for another packet. Ranges stay.
std::string without_addresses(std::string words, const Packet& packet) {
  for (const auto& address : {packet.source, packet.destination}) {
    const std::string text = address->text();
    for (std::size_t at = words.find(text); at != std::string::npos; at = words.find(text, at)) {
      if (words.compare(at + text.size(), 1, "/") == 0) {
        at += text.size();
      } else {
        words.erase(at, text.size());
      }
    }
  }
  return words;
}

// One packet of the box, and others at its edges.
std::vector<space::Point> points_of(Regions& regions, const Box& box) {
  std::vector<space::Point> points{regions.example(box)};
  for (const Field field :
       {Field::destination, Field::source, Field::destination_port, Field::source_port, Field::uid, Field::gid}) {
    for (const space::Interval& interval : regions.sets().intervals(box[space::index(field)])) {
      for (const space::Value value : {interval.first, interval.last}) {
        if (points.size() == most_tried) return points;
        points.push_back(points.front());
        points.back()[space::index(field)] = value;
      }
    }
  }
  return points;
}

class Search {
 public:
  Search(const Plan& plan, BackendKind backend, const PodView& pod, std::span<const Live> live)
      : plan_(plan),
        pod_(pod),
        usual_(without_others(pod, plan)),
        live_(live),
        planned_{as_live(plan.ruleset, backend)},
        planned_rules_(planned_),
        rules_(live) {}

  std::vector<Obstacle> run() {
    if (usual_ == pod_ && is_alone(planned_.front(), live_)) return {};  // both sides are the same
    bool is_known = true;
    try {
      compare();
    } catch (const space::TooManyRegions&) {
      is_known = false;
    }
    if (!is_known || is_open_ || !may_explain()) {
      found_.push_back(
          {found_.empty() ? "rules and routes of other programs" : "more rules and routes of other programs",
           {},
           {},
           {},
           false});
    }
    return std::move(found_);
  }

 private:
  // Packets that end alike by the plan alone, and alike by the same rule as it is.
  struct Kind {
    Leaf planned;
    Leaf there;
    std::vector<Box> boxes{};
  };

  void compare() {
    Regions regions(list_of(space::Side{usual_, planned_}, space::Side{pod_, {live_.begin(), live_.end()}}),
                    most_followed);
    compare(regions, regions.of(0, space::Scope::ordinary));  // first: there may be too many of the others
    compare(regions, regions.of(0, space::forwarded(regions, pod_)));
    if (tells_later_packets(live_)) compare(regions, regions.of(0, space::Scope::connections));
  }

  void compare(Regions& regions, Regions::Node planned) {
    const auto is_asked = [&](Leaf leaf) {
      if (leaf == space::no_such_packet) return false;
      const space::Decision& decision = regions.decision(leaf);
      return is_captured(decision.ending) || is_for_tunnel(decision.ending.kind, decision.step);
    };
    std::vector<Box> captured;
    regions.for_each(planned, [&](const Box& box, const Box&, Leaf leaf) {
      if (is_asked(leaf)) captured.push_back(box);
    });
    const Regions::Node there = regions.of(1, captured);
    const space::Pairs pairs(regions, planned, there, [&](Leaf a, Leaf b) -> std::optional<space::Pairs::Pair> {
      if (!is_asked(a)) return {};
      a = regions.by_ending(a);
      // Not to be sent so there: its destination is the pod's own, by a route of another program.
      if (b != space::no_such_packet && a == regions.by_ending(b)) return {};
      return {{a, b}};
    });
    std::vector<Kind> kinds;
    for (const auto& [a, b] : pairs.all()) kinds.push_back({a, b});
    const auto words = [&](const Box& box) { return unusual(regions, box); };
    std::vector<Kind*> in_order;
    regions.for_each(pairs.root(), [&](const Box& box, const Box&, Leaf leaf) {
      if (!space::Pairs::is_told(leaf)) return;
      Kind& kind = kinds[space::Pairs::number(leaf)];
      if (kind.boxes.empty()) in_order.push_back(&kind);
      if (kind.boxes.size() < most_tried) kind.boxes.push_back(box);
    });
    for (Kind* kind : in_order) sort_stably(kind->boxes, {}, words);
    sort_stably(in_order, {}, [&](const Kind* kind) { return words(kind->boxes.front()); });
    for (const Kind* kind : in_order) look_for_reasons(regions, *kind);
  }

  // One rule is one reason, and where it is unknown whether one matches, another may be: that one is found soon. Of
  // routes and settings, and of rules that are joined, each may be another one.
  void look_for_reasons(Regions& regions, const Kind& kind) {
    const space::Decision& decision = regions.decision(kind.there);
    std::string rule;
    if (decision.step != nullptr && is_of_others(*decision.step)) {
      Step step = *decision.step;
      if (step.live != nullptr) step.rule = short_words(step.live->rule);
      rule = rule_words(step);
      if (reasons_.contains(rule)) return;
    }
    const bool by_replies = differ_by_replies(regions.decision(kind.planned).ending, decision.ending);
    std::size_t tried = 0;
    as_planned_ = false;
    bool is_confirmed = false;
    std::size_t in_vain = 0;  // that many packets in a row showed no other reason
    for (Box box : kind.boxes) {
      space::Sets::Id& ports = box[space::index(Field::source_port)];
      if (by_replies) ports = regions.sets().intersection(ports, regions.client_ports(pod_));
      if (ports == space::Sets::empty) continue;
      for (const space::Point& point : points_of(regions, box)) {
        if (tried++ >= most_tried || !may_explain()) break;
        const std::size_t reasons = reasons_.size();
        const bool differs = try_packet(regions.universe().packet(point));
        is_confirmed = is_confirmed || differs;
        in_vain = differs && reasons_.size() == reasons ? in_vain + 1 : 0;
        if (!rule.empty() && (reasons_.contains(rule) || in_vain == most_in_vain)) return;
      }
    }
    // Marks that are not told apart: explain() knows of each packet what becomes of it, and it may be another one.
    if (as_planned_ && !is_confirmed && decision.ending.kind == Outcome::Kind::unknown) is_open_ = true;
  }

  struct Explained {
    Packet packet;
    Trace planned;
    Trace there;
  };

  [[nodiscard]] bool may_explain() const { return !gave_up_ && planned_rules_.asked() + rules_.asked() <= most_asked; }

  // What the plan captures and ends otherwise. Nothing: it is no such packet, or explain() contradicts.
  [[nodiscard]] std::optional<Explained> explained(const Packet& packet) {
    const auto asked = as_asked(packet);
    if (!asked) return std::nullopt;
    try {
      const Family family = asked->destination->family;
      const Packet sent = as_sent(*asked, pod_);
      Explained both{sent, explain_briefly(as_sent(*asked, usual_), usual_, planned_rules_.of(family)),
                     explain_briefly(sent, pod_, rules_.of(family))};
      const Outcome& planned = both.planned.outcome;
      const Outcome& there = both.there.outcome;
      // explain() gave up after its longest search, a second: other packets would take as long.
      if (there.subject.find("possible paths") != std::string::npos) gave_up_ = true;
      if (!is_captured(planned) && !is_for_tunnel(both.planned)) return std::nullopt;
      if (there == planned || land_as_sent(there, planned)) {
        as_planned_ = true;
        return std::nullopt;
      }
      if (same_place(there, planned) && (!has_usual_source_port(*asked) || has_more_answers(there, planned)))
        return std::nullopt;
      return both;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // Tells whether both land where the packet was sent: a translation to that address and port changes nothing.
  static bool land_as_sent(const Outcome& a, const Outcome& b) {
    const auto lands = [](const Outcome& one) {
      return one.kind == Outcome::Kind::lands && !one.transparent &&
             (!one.original || one.original->text() == one.at.text());
    };
    return lands(a) && lands(b) && a.at.text() == b.at.text() && a.source == b.source && a.answers == b.answers;
  }

  // Returns the packet as that pod sends it: `out` if the destination is not its own address and something leads there.
  static Packet as_sent(Packet packet, const PodView& pod) {
    if (packet.direction == Direction::in || !packet.interface.empty()) return packet;
    RouteKey key;
    key.destination = *packet.destination;
    const RouteLookup way = route(pod, key);
    // Where nothing leads there, as in a pod without any network, nothing takes it away.
    if (is_local(pod, key.destination))
      packet.direction = Direction::lo;
    else if (way.exists() || way.rule != nullptr)
      packet.direction = Direction::out;
    return packet;
  }

  // Whether its replies go to a port that kernels choose: what others say of well-known ones is about servers.
  [[nodiscard]] bool has_usual_source_port(const Packet& packet) const {
    return !packet.source_port || pod_.ephemeral_ports.contains(*packet.source_port);
  }

  // Returns whether explain() says, too, that the packet ends otherwise.
  bool try_packet(const Packet& packet) {
    const auto both = explained(packet);
    if (!both) return false;
    std::string rule = reason(*both);
    const Outcome& there = both->there.outcome;
    const bool is_of_subject = rule == there.why && !there.subject.empty();
    std::string key = is_of_subject ? there.subject : without_addresses(rule, both->there.packet);
    if (reasons_.contains(rule) || !reasons_.insert(std::move(key)).second) return true;
    const Explained bare = with_fewest_words(*both);
    reasons_.insert(rule);
    const bool is_elsewhere = !same_place(there, both->planned.outcome);
    const bool is_certain =
        there.kind != Outcome::Kind::unknown && (is_elsewhere || there.answers != Outcome::Answers::unknown);
    found_.push_back({std::move(rule), explain_words(bare.packet), sentence(bare.planned.outcome),
                      sentence(bare.there.outcome), is_certain});
    return true;
  }

  // The packet with no more of its values than the answers need.
  [[nodiscard]] Explained with_fewest_words(const Explained& both) {
    Packet whole = both.packet;
    if (whole.direction == Direction::in) whole.source = both.there.packet.source;
    Packet bare = whole;
    bare.source_port.reset();
    bare.interface.clear();
    if (bare.direction != Direction::in) bare.source.reset();
    if (bare.cgroup == "") bare.cgroup.reset();
    std::vector<Packet> candidates(5, bare);
    candidates[1].source_port = whole.source_port;
    candidates[2].source = whole.source;
    candidates[3].interface = whole.interface;
    candidates[4].cgroup = whole.cgroup;
    for (const Packet& candidate : candidates) {
      auto same = explained(candidate);
      if (same && ends_alike(same->planned, both.planned) && ends_alike(same->there, both.there))
        return *std::move(same);
    }
    return both;
  }

  static bool ends_alike(const Trace& a, const Trace& b) {
    return same_place(a.outcome, b.outcome) && a.outcome.answers == b.outcome.answers;
  }

  // The last rule of another program among those that are the reason; a route or setting; else what the answer says.
  [[nodiscard]] std::string reason(const Explained& both) const {
    const Trace& trace = both.there;
    const Outcome& planned = both.planned.outcome;
    Outcome but_for_replies = trace.outcome;
    but_for_replies.answers = planned.answers;
    but_for_replies.answers_why = planned.answers_why;
    if (but_for_replies == planned) return "return path: " + trace.outcome.answers_why;
    std::string ours;  // met what others did before
    for (auto step = trace.decisive.rbegin(); step != trace.decisive.rend(); ++step) {
      const Step& decisive = trace.steps[*step];
      if (is_of_others(decisive)) return rule_words(decisive);
      if (ours.empty()) ours = rule_words(decisive);
    }
    for (const std::string& why :
         {fault_of_loopback(planned), fault_of_routing(both), trace.outcome.why, trace.outcome.answers_why, ours}) {
      if (!why.empty()) return why;
    }
    return "rules of other programs";
  }

  [[nodiscard]] std::string fault_of_loopback(const Outcome& planned) const {
    const Address& to = planned.at.address;
    if (!to.is_loopback() || is_local(pod_, to)) return "";
    RouteKey key;
    key.destination = to;
    const RouteLookup way = route(pod_, key);
    const bool has_own_route = way.route != nullptr && way.route->table == local_table;
    return has_own_route ? ip_words(*way.route) : fmt::format("lo has no address {}", to.text());
  }

  // The policy rule or route by which marked packets do not stay, or by which this one is not sent.
  [[nodiscard]] std::string fault_of_routing(const Explained& both) const {
    const Packet& packet = both.there.packet;
    const Outcome& outcome = both.there.outcome;
    const bool comes_in = packet.direction == Direction::in;
    RouteKey key{*packet.destination, packet.source, packet.mark, 0, "lo", comes_in ? "" : packet.interface};
    for (const PolicyRule& marked : plan_.routing.policy_rules) {
      if (marked.family != packet.destination->family) continue;
      if (!both.planned.outcome.transparent && ((packet.mark ^ marked.mark) & marked.mask) != 0) continue;
      RouteKey of_marked = key;
      of_marked.mark = marked.mark;
      if (comes_in) of_marked.in = packet.interface;
      const RouteLookup way = route(pod_, of_marked);
      if (way.stays() || way.rule == nullptr) continue;
      return way.rule->is_ours() && way.route != nullptr ? ip_words(*way.route) : ip_words(*way.rule);
    }
    if (comes_in) return "";
    const RouteLookup way = route(pod_, key);
    const bool is_refused = outcome.kind == Outcome::Kind::unroutable && way.kind != RouteLookup::Kind::unicast;
    const bool stays = way.stays() && !route(usual_, key).stays();
    const bool is_within_local =
        way.route != nullptr && std::ranges::count(main_routes_within_local(pod_), way.route) > 0;
    const bool is_reason = way.kind == RouteLookup::Kind::unknown || is_refused || stays || is_within_local;
    return is_reason ? ip_words(way) : "";
  }

  const Plan& plan_;
  const PodView& pod_;
  const PodView usual_;
  std::span<const Live> live_;
  const std::vector<Live> planned_;
  RulesByFamily planned_rules_;
  RulesByFamily rules_;
  bool as_planned_ = false;  // a packet of this kind, by explain()
  bool gave_up_ = false;     // explain() did
  bool is_open_ = false;     // what becomes of some packets is not known
  std::set<std::string> reasons_;
  std::vector<Obstacle> found_;
};

}  // namespace

std::string text(const Obstacle& obstacle) {
  if (obstacle.is_unknown()) {
    return fmt::format(
        "{}: too many to follow every packet that is captured: unknown whether they keep traffic from the proxy",
        obstacle.rule);
  }
  return fmt::format("{}: `{}` {}; as requested it {}", obstacle.rule, obstacle.packet, obstacle.instead,
                     obstacle.planned);
}

std::string sentence(std::span<const Obstacle> obstacles) {
  const bool is_certain = std::ranges::any_of(obstacles, &Obstacle::is_certain);
  return fmt::format("something that Sidetrack must not change {} traffic from the proxy",
                     is_certain ? "keeps" : "may keep");
}

std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const PodView& pod, std::span<const Live> live) {
  return Search(plan, backend, pod, live).run();
}

std::vector<Obstacle> obstacles(std::span<const Live> live, const Routing& ours, const PodView& pod) {
  std::vector<Obstacle> found;
  for (const Live& one : live) {
    Plan there;
    there.families = Families::both();
    there.routing = ours;
    for_each_rule(std::span(&one, 1), [&](const LiveRule& rule) {
      if (rule.ours) there.ruleset.rules.push_back(rule.rule);
    });
    if (there.ruleset.rules.empty()) continue;
    std::ranges::move(obstacles(there, one.backend, pod, live), std::back_inserter(found));
  }
  return found;
}

}  // namespace sidetrack
