// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/chain_paths.h"

#include <algorithm>
#include <array>
#include <set>

#include "walk/chain_index.h"
#include "walk/in_flight.h"
#include "walk/rule_walk.h"
#include "walk/state_key.h"

namespace sidetrack::space {
namespace {

constexpr std::size_t most_views = 64;
constexpr std::size_t most_paths = 1U << 20;
constexpr std::size_t most_forks = 1000;  // of a path, one after the other: functions call themselves for each
constexpr std::size_t deepest = 2000;     // likewise
constexpr std::size_t most_joined_rules = 1U << 20;  // of paths that were forks, one longer than the other

// Tells whether both do the same to a packet. Rules that capture never do: which one it was is part of the state.
bool does_alike(const RuleInChain& a, const RuleInChain& b) {
  const Target& one = a.rule->rule.target;
  const Target& other = b.rule->rule.target;
  const auto unknown_of = [](const RuleInChain& each) {
    return each.unknown ? std::optional(each.rule->rule.matches[*each.unknown]) : std::nullopt;
  };
  if (!a.goes_on_as(b) || unknown_of(a) != unknown_of(b)) return false;
  const auto* jump = std::get_if<Jump>(&one);
  const auto* other_jump = std::get_if<Jump>(&other);
  if (jump != nullptr && other_jump != nullptr) return jump->is_goto == other_jump->is_goto;
  const bool captures = !goes_on(one) && !std::holds_alternative<Verdict>(one) && !std::holds_alternative<Reject>(one);
  return !captures && one == other;
}

}  // namespace

bool leads_alike(const ChainPath& a, const ChainPath& b) {
  return !a.unknown && !b.unknown && a.meets_state == b.meets_state && a.accepts == b.accepts &&
         std::ranges::equal(a.rules, b.rules, does_alike);
}

Leaf ChainPaths::number_of(Path path) {
  std::uint64_t hash = path.path.rules.size();
  const auto add = [&](std::uint64_t part) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  };
  for (const RuleInChain& each : path.path.rules) add(reinterpret_cast<std::uintptr_t>(each.rule));
  if (path.kind == Kind::fork) add(std::uint64_t{path.taken} << 32 | path.passed);
  const auto [first, last] = numbers_.equal_range(hash);
  const auto known = std::find_if(first, last, [&](const auto& one) { return paths_[one.second] == path; });
  if (known != last) return known->second;
  const auto number = static_cast<Leaf>(paths_.size());
  numbers_.emplace(hash, number);
  paths_.push_back(std::move(path));
  return number;
}

// Returns the path for packets of which the last rule may match, and that are asked rule by rule then.
Leaf ChainPaths::number_of_unknown(Path path) {
  path.kind = Kind::final;
  path.is_reason = true;
  path.path.unknown = true;
  path.path.rules.back().unknown.reset();
  path.taken = path.passed = 0;
  path.forks = 0;
  return number_of(std::move(path));
}

// Makes one path of two ways that come to the same end, or of which one ends by its last rule.
Leaf ChainPaths::number_of_fork(Path path) {
  const Path& taken = paths_[path.taken];
  const Path& passed = paths_[path.passed];
  const bool has_fork = taken.kind == Kind::fork || passed.kind == Kind::fork;
  const bool is_one_end =
      taken.kind == passed.kind && taken.view == passed.view && taken.path.accepts == passed.path.accepts;
  const bool is_one = !has_fork && !taken.path.unknown && !passed.path.unknown &&
                      (is_one_end || taken.decides() || passed.decides()) && joined_rules_ < most_joined_rules;
  path.path.meets_state = path.path.meets_state || taken.path.meets_state || passed.path.meets_state;
  path.views.clear();
  if (is_one) {
    const Path& end = taken.decides() ? passed : taken;
    path.kind = end.kind;
    path.view = end.view;
    path.path.accepts = end.path.accepts;
    RuleInChain& asked = path.path.rules.back();
    asked.then = taken.path.rules.size();
    asked.otherwise = passed.path.rules.size();
    for (const Path* each : {&taken, &passed})
      path.path.rules.insert(path.path.rules.end(), each->path.rules.begin(), each->path.rules.end());
    joined_rules_ += path.path.rules.size();
    path.taken = path.passed = 0;
    path.forks = 0;
    return number_of(std::move(path));
  }
  path.forks = 1 + std::max(taken.forks, passed.forks);
  if (path.forks > most_forks) return number_of_unknown(std::move(path));
  path.kind = Kind::fork;
  path.view = {};
  std::ranges::set_union(taken.nexts(), passed.nexts(), std::back_inserter(path.views));
  return number_of(std::move(path));
}

// First the one, then the other, which begins as the first one leaves the packet: where it leaves it in several ways,
// as the least of them.
Leaf ChainPaths::joined(Leaf first, Leaf then) {
  const Path& one = paths_[first];
  if (one.nexts().empty()) return first;
  const std::uint64_t key = std::uint64_t{first} << 32 | then;
  if (const auto* known = joined_.find(key)) return *known;
  Leaf number = 0;
  if (one.kind == Kind::fork) {
    Path made = one;
    const auto of_way = [&](Leaf way) {
      const auto nexts = paths_[way].nexts();
      return !nexts.empty() && nexts.front() == one.views.front() ? joined(way, then) : way;
    };
    made.taken = of_way(one.taken);
    made.passed = of_way(one.passed);
    number = number_of_fork(std::move(made));
  } else {
    Path made = paths_[then];
    // What leaves a packet alone is said by the last rule that does.
    const bool is_forgotten = !one.changes && made.is_reason;
    if (!is_forgotten) {
      made.path.rules.insert(made.path.rules.begin(), one.path.rules.begin(), one.path.rules.end());
      made.is_reason = made.is_reason || one.is_reason;
      made.changes = made.changes || one.changes;
    }
    made.path.meets_state = made.path.meets_state || one.path.meets_state;
    number = number_of(std::move(made));
  }
  joined_.add(key, number);
  return number;
}

// Adds the rules of the path, and of all that it forks into. Returns whether they are not more than `most`.
bool ChainPaths::list(Leaf leaf, std::size_t most, ChainPath& listed) const {
  for (;;) {
    const Path& path = paths_[leaf];
    listed.rules.insert(listed.rules.end(), path.path.rules.begin(), path.path.rules.end());
    listed.meets_state = listed.meets_state || path.path.meets_state;
    listed.unknown = path.path.unknown;
    listed.accepts = path.path.accepts;
    if (path.kind != Kind::fork || listed.unknown) return true;
    if (listed.rules.size() > most) return false;
    const std::size_t place = listed.rules.size() - 1;
    ChainPath taken;
    const bool is_listed = list(path.taken, most, taken) && !taken.unknown;
    RuleInChain& asked = listed.rules[place];
    if (!is_listed) {  // what follows is asked rule by rule
      asked.unknown.reset();
      listed.unknown = true;
      return true;
    }
    asked.then = taken.rules.size();
    asked.accepts = taken.accepts;
    listed.meets_state = listed.meets_state || taken.meets_state;
    listed.rules.insert(listed.rules.end(), taken.rules.begin(), taken.rules.end());
    leaf = path.passed;
  }
}

class ChainPaths::Build {
 public:
  using Node = Diagrams::Node;

  Build(ChainPaths& paths, const BaseChain& base, ChainIndex& chains, const WalkState& packet, const Looked& looked)
      : paths_(paths),
        universe_(paths.universe_),
        sets_(paths.sets_),
        diagrams_(paths.diagrams_),
        base_(base),
        chains_(chains),
        packet_(packet),
        now_(packet.now),
        looked_(looked) {
    now_.native = traits(base.live->backend).in_own_table;
    now_.observer = nullptr;
  }

  // `one_class`: for marks that packets set out with of this class alone.
  std::optional<Node> run(const MarkChange& mark, std::optional<Value> one_class) {
    const View view{mark, now_.connmark, now_.untracked};
    Node made = of_chain(*base_.chain, 0, view);
    if (!can_) return {};
    // What no rule decides about the policy does.
    const bool accepts = base_.chain->policy != Verdict::drop;
    made = diagrams_.mapped(made, [&](Leaf leaf) {
      Path path;
      if (!paths_.list(leaf, most_listed(), path.path)) can_ = false;
      if (accepts) {
        path.path.accepts = false;
        for (RuleInChain& each : path.path.rules) {
          if (each.accepts) each.accepts = false;
        }
      }
      return paths_.number_of(std::move(path));
    });
    if (!can_) return {};
    if (one_class && universe_.marks.size() > 1) {
      const Sets::Id own = sets_.single(*one_class);
      const Node in = diagrams_.of_edges(Field::mark,
                                         {{own, Diagrams::whole(Diagrams::yes)},
                                          {sets_.difference(domain(Field::mark), own), Diagrams::whole(Diagrams::no)}});
      made = diagrams_.within(in, made);
    }
    return made;
  }

 private:
  // ---- Rules

  // Bounds the rules of a path, in which each way of a fork is listed by itself.
  [[nodiscard]] std::size_t most_listed() const { return 64 + 4 * looked_.rules; }

  // All that is done from this rule of the chain on. No path ends by `next`.
  Node of_chain(const LiveChain& in, std::size_t from, const View& view) {
    const auto key = std::tuple(&in, from, view);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    if (known_.size() > 4096 + 16 * looked_.rules || depth_ == deepest) can_ = false;
    if (!can_) return Diagrams::whole(nothing(view, false, Kind::back));
    ++depth_;
    std::vector<Node> run;
    Node made = Diagrams::whole(nothing(view, false, Kind::back));
    std::size_t i = from;
    for (; can_ && i < in.rules.size(); ++i) {
      const std::optional<Node> rule = of_rule(in, in.rules[i], view);
      if (!rule) continue;
      if (!changes_view(*rule, view)) {
        run.push_back(*rule);
        continue;
      }
      made = with_rest(*rule, in, i + 1);
      break;
    }
    run.push_back(made);
    made = overlaid(run);
    --depth_;
    known_.emplace(key, made);
    return made;
  }

  bool changes_view(Node node, const View& view) {
    return std::ranges::any_of(diagrams_.leaves(node), [&](Leaf leaf) {
      return std::ranges::any_of(paths_.paths_[leaf].nexts(), [&](const View& each) { return each != view; });
    });
  }

  // The rules that follow a rule that changes some packets.
  Node with_rest(Node rule, const LiveChain& in, std::size_t next) {
    std::set<View> views;
    for (const Leaf leaf : diagrams_.leaves(rule)) {
      const auto nexts = paths_.paths_[leaf].nexts();
      views.insert(nexts.begin(), nexts.end());
    }
    if (views.size() > most_views) can_ = false;
    for (const View& one : views) {
      if (!can_) break;
      rule = diagrams_.combined(rule, of_chain(in, next, one), [&](Leaf first, Leaf then) {
        const auto nexts = paths_.paths_[first].nexts();
        return !nexts.empty() && nexts.front() == one ? paths_.joined(first, then) : first;
      });
    }
    return rule;
  }

  // One after the other; in halves, so that what is made stays small while it can.
  Node overlaid(std::span<const Node> rules) {
    if (rules.size() == 1) return rules.front();
    if (paths_.paths_.size() > most_paths) can_ = false;
    if (!can_) return rules.front();
    const auto half = rules.size() / 2;
    const Node first = overlaid(rules.first(half));
    const Node then = overlaid(rules.subspan(half));
    return diagrams_.combined(first, then, [&](Leaf a, Leaf b) { return paths_.joined(a, b); });
  }

  Leaf nothing(const View& view, bool meets_state, Kind kind = Kind::next) {
    Path path;
    path.kind = kind;
    path.view = view;
    path.path.meets_state = meets_state;
    return paths_.number_of(std::move(path));
  }

  // Nothing: it makes no difference.
  std::optional<Node> of_rule(const LiveChain& in, const LiveRule& entry, const View& view) {
    const Rule& rule = entry.rule;
    if (std::holds_alternative<NonTerminating>(rule.target) || !rule.families.contains(packet_.family)) return {};
    now_.mark = view.mark.others;
    mark_ = view.mark;
    now_.connmark = view.connmark;
    now_.untracked = view.untracked;
    const bool meets_state = tells_later_packets(rule.matches, now_);
    const Leaf none = nothing(view, meets_state);
    Node holds = Diagrams::whole(known_yes);
    for (std::size_t i = 0; i < rule.matches.size(); ++i) {
      const Node one = of_match(entry, i);
      const bool is_first = holds == Diagrams::whole(known_yes);
      holds = is_first ? one : diagrams_.combined(holds, one, [](Leaf a, Leaf b) {
        return a == known_no || b == known_no ? known_no : a == known_yes ? b : a;
      });
      if (holds == Diagrams::whole(known_no)) break;
    }
    if (holds == Diagrams::whole(known_no)) return meets_state ? std::optional(Diagrams::whole(none)) : std::nullopt;
    const auto* jump = std::get_if<Jump>(&rule.target);
    const Node taken = jump != nullptr ? of_jump(in, *jump, entry, view, meets_state)
                                       : Diagrams::whole(of_target(in, entry, view, meets_state));
    return diagrams_.combined(holds, taken, [&](Leaf is, Leaf leaf) {
      return is == known_yes ? leaf : is == known_no ? none : perhaps(leaf, is - first_unknown, in, entry, view);
    });
  }

  // Returns what becomes of packets of which it is unknown whether that match of the rule holds: they go on by `taken`
  // if it does, and else to the next rule.
  Leaf perhaps(Leaf taken, std::size_t match, const LiveChain& in, const LiveRule& entry, const View& view) {
    Path way = paths_.paths_[taken];
    if (way.kind == Kind::next && way.view == view && way.path.rules.empty()) return taken;
    Path path;
    path.path.rules = {{&entry, &in}};
    path.path.meets_state = way.path.meets_state;
    path.changes = true;
    // Other rules of nf_tables' rule ask the same.
    const bool has_more = &entry != &in.rules.back() && is_more_of_one(in, (&entry)[1]);
    if (has_more || way.path.unknown) return paths_.number_of_unknown(std::move(path));
    path.path.rules.front().unknown = match;
    if (!way.path.rules.empty()) way.path.rules.erase(way.path.rules.begin());  // the rule itself
    path.taken = paths_.number_of(std::move(way));
    path.passed = nothing(view, false);
    return paths_.number_of_fork(std::move(path));
  }

  Node of_jump(const LiveChain& in, const Jump& jump, const LiveRule& entry, const View& view, bool meets_state) {
    const LiveChain* target = chains_.find(in, jump.chain);
    Node to = Diagrams::whole(nothing(view, false, Kind::back));
    if (target != nullptr) to = of_chain(*target, 0, view);
    return diagrams_.mapped(to, [&](Leaf leaf) {
      Path path = paths_.paths_[jump.is_goto ? leaf : returned(leaf)];
      if (!path.path.rules.empty()) path.path.rules.insert(path.path.rules.begin(), {&entry, &in});
      path.path.meets_state = path.path.meets_state || meets_state;
      return paths_.number_of(std::move(path));
    });
  }

  // Returns how packets of the path go on in the chain that jumped there.
  Leaf returned(Leaf leaf) {
    Path path = paths_.paths_[leaf];
    if (path.kind == Kind::final) return leaf;
    const auto [known, is_new] = returned_.try_emplace(leaf, leaf);
    if (!is_new) return known->second;
    Leaf number = 0;
    if (path.kind == Kind::fork) {
      path.taken = returned(path.taken);
      path.passed = returned(path.passed);
      number = paths_.number_of_fork(std::move(path));
    } else {
      path.kind = Kind::next;
      number = paths_.number_of(std::move(path));
    }
    returned_[leaf] = number;
    return number;
  }

  // What a target that is no jump does with a packet that it gets.
  Leaf of_target(const LiveChain& in, const LiveRule& entry, const View& view, bool meets_state) {
    const Target& target = entry.rule.target;
    const bool leaves_alone_is_said = in.table <= Table::nat;
    Path path;
    path.view = view;
    path.path.meets_state = meets_state;
    path.path.rules = {{&entry, &in}};
    path.kind = Kind::final;
    path.is_reason = true;
    path.changes = true;
    const auto* nat = std::get_if<Nat>(&target);
    if (const auto* verdict = std::get_if<Verdict>(&target)) {
      const bool is_back = verdict->kind == Verdict::Kind::return_;
      if (is_back) path.kind = Kind::back;
      if (verdict->kind != Verdict::Kind::drop) {
        path.changes = false;
        if (!leaves_alone_is_said) {
          path.is_reason = false;
          path.path.rules.clear();
          path.path.accepts = !is_back;
        }
      }
    } else if (nat != nullptr && nat->addresses && nat->addresses->family() != packet_.family) {
      return nothing(view, meets_state);
    } else if (goes_on(target)) {
      path.kind = Kind::next;
      path.is_reason = std::holds_alternative<Notrack>(target) && can_exempt();
      change(path.view, target);
    }
    return paths_.number_of(std::move(path));
  }

  // As RuleWalk does it, where rules of the chain ask for it.
  void change(View& view, const Target& target) const {
    const bool has_connection = now_.tracked && view.connmark.has_value();
    if (looked_.changes_marks()) {
      if (const auto* set = std::get_if<SetMark>(&target)) view.mark.set(set->mark, set->mask);
      const auto* connmark = std::get_if<Connmark>(&target);
      if (connmark != nullptr && has_connection) {
        if (connmark->kind == Connmark::Kind::save) {
          view.connmark = (*view.connmark & ~connmark->ctmask) ^ (view.mark.others & connmark->nfmask);
        } else {
          view.mark.set(*view.connmark & connmark->ctmask, connmark->nfmask);
        }
      }
    }
    if ((looked_.asked & (facts::connmark | facts::mark)) != 0) {
      const auto* set = std::get_if<SetConnmark>(&target);
      if (set != nullptr && has_connection) view.connmark = (*view.connmark & ~set->mask) ^ set->mark;
    }
    const bool asks_connection = (looked_.asked & facts::connection) != 0;
    if (asks_connection && std::holds_alternative<Notrack>(target) && can_exempt()) view.untracked = true;
  }
  [[nodiscard]] bool can_exempt() const { return !now_.tracked && !packet_.zone; }

  // ---- Matches

  static constexpr Leaf known_no = 0;
  static constexpr Leaf known_yes = 1;
  static constexpr Leaf first_unknown = 2;  // the first match, and so on

  // One field that the match asks for: sets of values that answer alike.
  struct Asks {
    Field field;
    std::vector<Sets::Id> sets;
  };

  // Tries one value of each set: the match itself says what holds.
  Node of_match(const LiveRule& entry, std::size_t number) {
    const Match& match = entry.rule.matches[number];
    std::vector<Asks> asked = fields(match);
    std::ranges::sort(asked, {}, &Asks::field);
    const auto holds = [&]() -> Leaf {
      switch (truth_of(entry, match, now_, *base_.live)) {
        case Truth::no:
          return known_no;
        case Truth::unknown:
          return first_unknown + static_cast<Leaf>(number);
        case Truth::yes:
          break;
      }
      return known_yes;
    };
    const auto of_field = [&](const auto& self, std::size_t next) -> Node {
      if (next == asked.size()) return Diagrams::whole(holds());
      const Asks& one = asked[next];
      std::vector<Diagrams::Edge> edges;
      Sets::Id rest = domain(one.field);
      const auto add = [&](Sets::Id values) {
        if (values == Sets::empty) return;
        set(one.field, sets_.intervals(values).front().first);
        edges.push_back({values, self(self, next + 1)});
        rest = sets_.difference(rest, values);
      };
      for (const Sets::Id values : one.sets) add(sets_.intersection(rest, values));
      add(rest);
      return diagrams_.of_edges(one.field, edges);
    };
    const PacketAtHook before = now_;
    const Node made = of_field(of_field, 0);
    if (!asked.empty()) now_ = before;
    return made;
  }

  Sets::Id domain(Field field) {
    Sets::Id& known = domains_[index(field)];
    if (known == Sets::empty) known = sets_.of({universe_.domain(field, packet_.family)});
    return known;
  }

  // Which of the packet's own fields the match asks for.
  class Fields;
  std::vector<Asks> fields(const Match& match);

  void set(Field field, Value value);

  ChainPaths& paths_;
  const Universe& universe_;
  Sets& sets_;
  Diagrams& diagrams_;
  const BaseChain& base_;
  ChainIndex& chains_;
  const WalkState& packet_;
  PacketAtHook now_;
  MarkChange mark_;  // of the packet now
  bool can_ = true;
  std::size_t depth_ = 0;  // of rules that change packets, and of jumps, one after the other
  const Looked& looked_;
  Sets::Id domains_[field_count]{};  // that were asked for
  std::map<std::tuple<const LiveChain*, std::size_t, View>, Node> known_;
  std::unordered_map<Leaf, Leaf> returned_;
};

class ChainPaths::Build::Fields : public Asked {
 public:
  Fields(Build& build, const Match& match) : build_(build), sets_(build.sets_), match_(match) {}
  std::vector<Asks> take() { return std::move(result_); }

  void interface(InterfaceDirection, const std::string&) override {}  // of the state
  void addresses(End end, const std::vector<AddressRange>& ranges) override {
    const Endpoint& endpoint = build_.now_.at(end);
    if (ranges.empty() || ranges.front().family() != endpoint.address.family) return;
    if (end == End::source && !build_.now_.source_known) return;
    if (endpoint.address_origin != Origin::constant)
      add(endpoint.address_origin == Origin::source ? Field::source : Field::destination, {listed(ranges)});
  }
  void address_type(const AddressTypeMatch& match) override {
    const Endpoint& endpoint = build_.now_.at(match.end);
    if (endpoint.address_origin == Origin::constant) return;
    if (match.end == End::source && !build_.now_.source_known) return;
    std::vector<Sets::Id> sets;
    for (const auto& answer : match.answers(build_.now_)) sets.push_back(sets_.of(intervals_of(answer.ranges)));
    add(endpoint.address_origin == Origin::source ? Field::source : Field::destination, sets);
  }
  void ends(const ConnectionMatch& match) override {
    for (const auto& [endpoint, ranges, ports] : match.questions(build_.now_)) {
      if (!ranges.empty() && endpoint.address_origin != Origin::constant) {
        const bool is_source = endpoint.address_origin == Origin::source;
        add(is_source ? Field::source : Field::destination, {sets_.of(intervals_of(ranges))});
      }
      if (!ports.empty()) of_port(endpoint, sets_.of(intervals_of(ports)));
    }
  }
  void protocol(Protocol protocol) override {
    const Protocol icmp_of_family = build_.packet_.family == Family::ipv4 ? Protocol::icmp : Protocol::icmpv6;
    if (!sidetrack::has_ports(protocol) && protocol != icmp_of_family) return;
    add(Field::protocol, {sets_.single(protocol == Protocol::tcp ? tcp : protocol == Protocol::udp ? udp : icmp)});
  }
  void ports(End end, const std::vector<PortRange>& ports) override { of_port(build_.now_.at(end), listed(ports)); }
  void ids(OwnerKind kind, const std::vector<IdRange>& ids) override {
    if (build_.now_.owner_known && build_.now_.owner)
      add(kind == OwnerKind::uid ? Field::uid : Field::gid, {listed(ids)});
  }
  void socket() override {}  // of the state
  void cgroup(const std::string& path) override {
    if (!build_.now_.owner_known || !build_.now_.owner || path.empty()) return;
    add(Field::cgroup, {sets_.of(build_.universe_.cgroups_within(path))});
  }
  void mark(std::uint32_t value, std::uint32_t mask) override {
    if ((build_.mark_.own & mask) != 0)
      add(Field::mark, {sets_.of(build_.universe_.marks_with(build_.mark_, value, mask))});
  }
  void connmark(std::uint32_t, std::uint32_t) override {}  // of the state
  void connection() override {}

 private:
  void of_port(const Endpoint& endpoint, Sets::Id ports) {
    add(Field::protocol, {sets_.of({{tcp, udp}})});
    if (endpoint.port_origin == Origin::constant) return;
    const bool is_source = endpoint.port_origin == Origin::source;
    std::vector<Sets::Id> all{ports};
    if (is_source) all.insert(all.begin(), sets_.single(by_kernel));
    add(is_source ? Field::source_port : Field::destination_port, all);
  }
  void add(Field field, const std::vector<Sets::Id>& sets) {
    const auto found = std::ranges::find(result_, field, &Asks::field);
    Asks& asks = found != result_.end() ? *found : result_.emplace_back(Asks{field, {}});
    asks.sets.insert(asks.sets.end(), sets.begin(), sets.end());
  }
  template <typename List>
  Sets::Id listed(const List& list) {
    const auto [found, added] = build_.paths_.listed_.try_emplace(&match_, Sets::empty);
    if (added) found->second = sets_.of(intervals_of(list));
    return found->second;
  }

  Build& build_;
  Sets& sets_;
  const Match& match_;
  std::vector<Asks> result_;
};

std::vector<ChainPaths::Build::Asks> ChainPaths::Build::fields(const Match& match) {
  Fields asked(*this, match);
  ask(match, asked);
  return asked.take();
}

// The packet with another value of its own, wherever it has that now.
void ChainPaths::Build::set(Field field, Value value) {
  const auto each_end = [&](const auto& use) {
    use(now_.source);
    use(now_.destination);
    for (auto* made : {&now_.connection.source, &now_.connection.destination}) {
      if (!*made) continue;
      use((*made)->before);
      use((*made)->after);
    }
  };
  const bool is_source = field == Field::source || field == Field::source_port;
  const Origin origin = is_source ? Origin::source : Origin::destination;
  switch (field) {
    case Field::source:
    case Field::destination:
      return each_end([&](Endpoint& end) {
        if (end.address_origin == origin) end.address = address_of(packet_.family, value);
      });
    case Field::source_port:
    case Field::destination_port:
      return each_end([&](Endpoint& end) {
        if (end.port_origin != origin) return;
        end.port = static_cast<std::uint16_t>(value);
        if (is_source && value == by_kernel) end.port.reset();
      });
    case Field::protocol:
      now_.protocol = value == tcp                     ? Protocol::tcp
                      : value == udp                   ? Protocol::udp
                      : packet_.family == Family::ipv4 ? Protocol::icmp
                                                       : Protocol::icmpv6;
      return;
    case Field::uid:
      now_.owner->uid = static_cast<std::uint32_t>(value);
      return;
    case Field::gid:
      now_.owner->gid = static_cast<std::uint32_t>(value);
      return;
    case Field::mark:
      now_.mark = mark_.of(universe_.marks[static_cast<std::size_t>(value)]);
      return;
    case Field::cgroup:
      now_.cgroup = universe_.cgroups[static_cast<std::size_t>(value)];
      return;
    case Field::way:
    case Field::family:
    case Field::state:
    case Field::interface:
      return;  // no match asks for them by itself
  }
}

// What there is in a chain and all that it jumps to.
class ChainPaths::Look : public Asked {
 public:
  Look(const BaseChain& base, ChainIndex& chains, bool is_later)
      : live_(*base.live), chains_(chains), is_later_(is_later), most_rules_(chains_.most_rules()) {
    look_at(*base.chain);
  }
  [[nodiscard]] const Looked& result() const { return result_; }

  void interface(InterfaceDirection direction, const std::string&) override {
    result_.interfaces[static_cast<std::size_t>(direction)] = true;
  }
  void addresses(End end, const std::vector<AddressRange>&) override {
    result_.addresses[static_cast<std::size_t>(end)] = true;
  }
  void address_type(const AddressTypeMatch& match) override { addresses(match.end, {}); }
  void ends(const ConnectionMatch&) override {
    result_.ends = true;
    std::ranges::fill(result_.addresses, true);
    std::ranges::fill(result_.ports, true);
  }
  void protocol(Protocol) override {}
  void ports(End end, const std::vector<PortRange>&) override { result_.ports[static_cast<std::size_t>(end)] = true; }
  void ids(OwnerKind, const std::vector<IdRange>&) override { result_.owners = true; }
  void socket() override { result_.owners = true; }
  void cgroup(const std::string&) override { result_.owners = true; }
  void mark(std::uint32_t, std::uint32_t) override {}
  void connmark(std::uint32_t, std::uint32_t) override {}
  void connection() override {}

 private:
  void look_at(const LiveChain& in) {
    if (outer_.size() > traits(live_.backend).deepest_jump || std::ranges::find(outer_, &in) != outer_.end())
      result_.can = false;
    if (!result_.can) return;
    outer_.push_back(&in);
    Facts changed = facts::none;  // by what the same rule of nf_tables did before
    for (const LiveRule& entry : in.rules) {
      if (++result_.rules > most_rules_) result_.can = false;
      if (!result_.can) break;
      if (!is_more_of_one(in, entry)) {
        changed = facts::none;
      } else if (traits(live_.backend).in_own_table && reads_connmark((&entry)[-1].rule.target)) {
        result_.can = false;  // whether it has ended
      }
      for (const Match& match : entry.rule.matches) {
        result_.asked |= reads(match);
        // By its place in the connection a packet has other flags.
        if ((reads(match) & facts::flags) != 0) result_.asked |= facts::connection;
        ask(match, *this);
        if ((reads(match) & changed) != 0) result_.can = false;
      }
      look_at(entry, in, changed);
    }
    outer_.pop_back();
  }

  void look_at(const LiveRule& entry, const LiveChain& in, Facts& changed) {
    const Target& target = entry.rule.target;
    if (goes_on(target)) {
      changed |= changes(target);
      result_.changed |= changes(target);
    }
    if (const auto* connmark = std::get_if<Connmark>(&target)) {
      result_.asked |= facts::mark;
      if (connmark->kind == Connmark::Kind::save) result_.saves_marks = true;
    }
    if (std::holds_alternative<Notrack>(target)) result_.exempts = true;
    // Breaks off for some packets, as if it did not match: by more than what rules ask for.
    const bool may_break_off = is_later_ && traits(live_.backend).in_own_table && !entry.ours;
    if (std::holds_alternative<Tproxy>(target) && may_break_off) result_.can = false;
    const auto* jump = std::get_if<Jump>(&target);
    if (jump == nullptr) return;
    if (const LiveChain* to = chains_.find(in, jump->chain); to != nullptr) look_at(*to);
  }

  const Live& live_;
  ChainIndex& chains_;
  const bool is_later_;
  const std::size_t most_rules_;
  std::vector<const LiveChain*> outer_;
  Looked result_;
};

const ChainPaths::Looked& ChainPaths::look_at(const BaseChain& base, ChainIndex& chains, Family family, bool is_later) {
  const auto [looked, is_new] = looked_.try_emplace({base.chain, family, is_later});
  if (!is_new) return looked->second;
  Looked& made = looked->second;
  made = Look(base, chains, is_later).result();
  // Packets of which a chain that is paired with it asks for more are told apart.
  if (const auto pairs = pairs_.find({base.chain, family}); pairs != pairs_.end()) {
    for (const Pair& pair : pairs->second) {
      if (pair.other.chain != nullptr) made.add(look_at(pair.other, *pair.chains, family, is_later));
    }
  }
  return made;
}

void ChainPaths::Looked::add(const Looked& other) {
  rules += other.rules;
  asked |= other.asked;
  changed |= other.changed;
  for (std::size_t i = 0; i < 2; ++i) {
    interfaces[i] = interfaces[i] || other.interfaces[i];
    addresses[i] = addresses[i] || other.addresses[i];
    ports[i] = ports[i] || other.ports[i];
  }
  ends = ends || other.ends;
  owners = owners || other.owners;
  saves_marks = saves_marks || other.saves_marks;
  exempts = exempts || other.exempts;
}

Diagrams::Node ChainPaths::differing(const Chain& one, const Pair& other, const WalkState& packet,
                                     std::uint32_t own_mark) {
  const auto root = of(one.base, one.chains, packet, own_mark);
  const auto other_root = other.other.chain == nullptr ? std::optional(Diagrams::whole(number_of({})))
                                                       : of(other.other, *other.chains, packet, own_mark);
  if (!root || !other_root) return Diagrams::whole(Diagrams::yes);
  return diagrams_.combined(*root, *other_root, [&](Leaf a, Leaf b) {
    return a == uncovered || go_alike(a, b, one.base.chain->policy) ? Diagrams::no : Diagrams::yes;
  });
}

std::vector<ChainPaths::Difference> ChainPaths::differences(const Chain& one, const std::vector<Pair>& pairs,
                                                            WalkState packet, std::uint32_t own_mark) {
  std::vector<Difference> made;
  const auto add = [&] {
    for (const Pair& pair : pairs) made.push_back({pair.side, differing(one, pair, packet, own_mark)});
  };
  if (packet.now.owner_known || !look_at(one.base, one.chains, packet.family, true).owners) {
    add();
  } else {
    // Tries both where the owner of the socket is not known: it has one, or none.
    packet.now.owner_known = true;
    packet.now.owner.reset();
    add();
    packet.now.owner = Owner{};
    packet.now.cgroup = "";
    add();
    for (Difference& each : made)
      each.packets = diagrams_.with_any_of(each.packets, std::array{Field::uid, Field::gid, Field::cgroup});
  }
  std::erase_if(made, [](const Difference& each) { return each.packets == Diagrams::whole(Diagrams::no); });
  return made;
}

std::optional<Diagrams::Node> ChainPaths::of(const BaseChain& base, ChainIndex& chains, const WalkState& packet,
                                             std::uint32_t own_mark) {
  return known(base, chains, packet, own_mark).root;
}

const ChainPaths::Known& ChainPaths::known(const BaseChain& base, ChainIndex& chains, const WalkState& packet,
                                           std::uint32_t own_mark) {
  const PacketAtHook& now = packet.now;
  const bool is_later = now.state == ConnectionState::reply || packet.first.has_value();
  const Looked& asked = look_at(base, chains, packet.family, is_later);
  const bool asks_connection = (asked.asked & (facts::connection | facts::connmark | facts::mark)) != 0;
  static const Known nothing;
  const auto pairs = pairs_.find({base.chain, packet.family});
  if (!asked.can && pairs == pairs_.end()) return nothing;
  StateKey key;
  key.add(base.chain);
  key.add(packet.family);
  for (const End end : {End::source, End::destination}) {
    Endpoint endpoint = now.at(end);
    if (!asked.addresses[static_cast<std::size_t>(end)]) endpoint.address_origin = Origin::source;
    if (!asked.ports[static_cast<std::size_t>(end)]) endpoint.port_origin = Origin::source;
    key.add(endpoint);
  }
  if (asked.ends) {
    key.add(now.connection.source);
    key.add(now.connection.destination);
  }
  if (asked.ports[0] || asked.ports[1]) {
    key.add(now.ephemeral_ports.first);
    key.add(now.ephemeral_ports.last);
  }
  key.add(asked.interfaces[0] ? now.in : "");
  key.add(asked.interfaces[1] ? now.out : "");
  key.add(asked.owners && now.owner.has_value());
  key.add(asked.owners && now.owner_known);
  key.add(asked.owners && now.cgroup.has_value());
  if (asks_connection) {
    key.add(now.state);
    key.add(now.answer);
    key.add(now.connmark);
    key.add(now.tracked);
    key.add(now.untracked);
    key.add(packet.zone.has_value());
  }
  if (asked.exempts) key.add(!now.tracked && !packet.zone);
  key.add(now.source_known);
  MarkChange mark = now.mark_change(own_mark);
  std::optional<Value> one_class;
  if (!asked.asks_marks()) {
    mark = {};
  } else if (asked.saves_marks && mark.own != 0) {
    one_class = universe_.mark_class(own_mark);
    mark = {0, now.mark};
  }
  key.add(mark.own);
  key.add(mark.others);
  key.add(one_class);
  const auto [found, added] = known_.try_emplace(std::string(key.bytes()));
  Known& made = found->second;
  if (!added) return made;
  if (asked.can) made.root = Build(*this, base, chains, packet, asked).run(mark, one_class);
  if (made.root) made.leaves = diagrams_.leaves(*made.root).size();
  if (pairs != pairs_.end()) made.differences = differences({base, chains}, pairs->second, packet, own_mark);
  return made;
}

ChainPaths::Place ChainPaths::place_of(const BaseChain& base, ChainIndex& chains, const WalkState& packet,
                                       const Packet& asked, const Point& point) {
  const Known& found = known(base, chains, packet, asked.mark);
  return {found.root, found.root ? diagrams_.at(*found.root, point) : uncovered, found.differences, found.leaves};
}

}  // namespace sidetrack::space
