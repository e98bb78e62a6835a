// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mesh/describe.h"
#include "model/list_text.h"
#include "model/printable.h"
#include "render/show.h"
#include "rule/iptables.h"
#include "walk/chain_index.h"

namespace sidetrack {
namespace {

// The matches of the jumps that lead to a rule, and its own.
using Conditions = std::vector<const Match*>;

// ---- What an earlier rule has ended already

template <typename Ranges>
bool is_within(const auto& one, const Ranges& ranges) {
  return std::ranges::any_of(ranges,
                             [&](const auto& range) { return range.first <= one.first && one.last <= range.last; });
}

// The values of matches that differ in nothing else; nullptr: they differ, or are negated.
template <typename M>
const M* same_kind(const Match& a, const Match& b) {
  const auto* one = std::get_if<M>(&a);
  const auto* other = std::get_if<M>(&b);
  if (one == nullptr || other == nullptr || one->negated || other->negated) return nullptr;
  if constexpr (std::is_same_v<M, OwnerMatch>) return one->kind == other->kind ? other : nullptr;
  if constexpr (!std::is_same_v<M, OwnerMatch>) return one->end == other->end ? other : nullptr;
}

// Takes the values out of `match` that `earlier` has, too. Whether none is left.
bool take_out(Match& match, const Match& earlier) {
  if (match == earlier) return !std::holds_alternative<UnknownMatch>(match);
  if (const auto* ports = same_kind<PortMatch>(match, earlier)) {
    auto& own = std::get<PortMatch>(match).ports;
    std::erase_if(own, [&](const PortRange& one) { return is_within(one, ports->ports); });
    return own.empty();
  }
  if (const auto* addresses = same_kind<AddressMatch>(match, earlier)) {
    auto& own = std::get<AddressMatch>(match).ranges;
    std::erase_if(own, [&](const AddressRange& one) { return is_within(one, addresses->ranges); });
    return own.empty();
  }
  if (const auto* owners = same_kind<OwnerMatch>(match, earlier)) {
    auto& own = std::get<OwnerMatch>(match).ids;
    std::erase_if(own, [&](const IdRange& one) { return is_within(one, owners->ids); });
    return own.empty();
  }
  return false;
}

// Takes out what a rule with the conditions `earlier` has ended. Whether nothing is left.
bool take_out(std::vector<Match>& conditions, const Conditions& earlier) {
  Match* last = nullptr;  // the one that `earlier` does not hold for as a whole
  Match rest;
  for (const Match* ended : earlier) {
    bool holds = false;
    Match* narrowed = nullptr;
    Match with_less;
    for (Match& match : conditions) {
      if (match.index() != ended->index()) continue;  // else a copy is made of each, a million times
      Match copy = match;
      holds = holds || take_out(copy, *ended);
      if (!(copy == match)) {
        narrowed = &match;
        with_less = std::move(copy);
      }
    }
    if (holds) continue;
    if (narrowed == nullptr || last != nullptr) return false;
    last = narrowed;
    rest = std::move(with_less);
  }
  if (last == nullptr) return true;
  *last = std::move(rest);
  return false;
}

// Of one rule: its conditions, and what is left of them after what earlier rules have ended; nothing: it is not
// reached.
using Reached = std::function<std::optional<std::vector<Match>>()>;
using Visit = std::function<void(const Conditions&, const Rule&, const Reached&)>;

// Whether no packet has all of these: -p tcp and -p udp.
bool contradict(const Conditions& all) {
  const ProtocolMatch* protocol = nullptr;
  for (const Match* match : all) {
    const auto* one = std::get_if<ProtocolMatch>(match);
    if (one == nullptr || one->negated) continue;
    if (protocol != nullptr && protocol->protocol != one->protocol) return true;
    protocol = one;
  }
  return false;
}

bool ends(const Rule& rule) {
  return std::holds_alternative<Verdict>(rule.target) || std::holds_alternative<Redirect>(rule.target);
}
bool ends_chain(const Rule& rule) { return rule.matches.empty() && ends(rule); }

// Every rule of one backend that is reached from a hook, in the kernel's order, but for jumps. What stands after a
// RETURN, ACCEPT or DROP of everything is not reached.
//
// The ways through chains that jump to each other are as many as powers of two. A chain is walked once for each list of
// conditions under which it is reached, and only so many rules in all: what is a multiple of the rules there.
class Traversal {
 public:
  Traversal(const Live& live, Family family, const Visit& visit)
      : family_(family),
        visit_(visit),
        chains_(live, family),
        deepest_(traits(live.backend).deepest_jump),
        left_(most_rules_walked(live)) {}

  void from(const LiveChain& base) { chain(base, {}, {}, 0); }
  [[nodiscard]] bool complete() const { return left_ > 0; }

 private:
  // A condition's number each: equal conditions have the same. Signed, because libstdc++ 12 orders vectors of unsigned
  // numbers wrongly on big-endian machines: https://gcc.gnu.org/PR113960
  using Names = std::vector<int>;

  void chain(const LiveChain& in, const Conditions& conditions, const Names& names, std::size_t depth) {
    if (!walked_.emplace(&in, names).second) return;
    const std::size_t before = ended_.size();
    through(in, conditions, names, depth);
    // What returned is back in the chain that jumped here.
    ended_.erase(std::remove_if(ended_.begin() + static_cast<std::ptrdiff_t>(before), ended_.end(),
                                std::mem_fn(&Ended::returned)),
                 ended_.end());
  }

  void through(const LiveChain& in, const Conditions& conditions, const Names& names, std::size_t depth) {
    for (const LiveRule& entry : in.rules) {
      const Rule& rule = entry.rule;
      if (!rule.families.contains(family_)) continue;
      if (left_ == 0) return;
      --left_;
      if (const auto* jump = std::get_if<Jump>(&rule.target)) {
        follow(in, rule, *jump, conditions, names, depth);
        continue;
      }
      Conditions all = conditions;
      for (const Match& match : rule.matches) all.push_back(&match);
      if (contradict(all)) continue;
      visit_(all, rule, [&] { return reached(all); });
      if (ends(rule)) ended_.push_back({std::move(all), rule.target == Target(Verdict::return_)});
      if (ends_chain(rule)) return;
    }
  }

  std::optional<std::vector<Match>> reached(const Conditions& all) {
    std::vector<Match> left;
    for (const Match* match : all) left.push_back(*match);
    for (const Ended& one : ended_) {
      if (comparisons_left_ == 0) {
        left_ = 0;
        return {};
      }
      --comparisons_left_;
      if (take_out(left, one.conditions)) return {};
    }
    return left;
  }

  void follow(const LiveChain& from, const Rule& rule, const Jump& jump, Conditions conditions, Names names,
              std::size_t depth) {
    const LiveChain* next = chains_.find(from, jump.chain);
    if (next == nullptr) return;
    if (depth == deepest_) {
      left_ = 0;
      return;
    }
    for (const Match& match : rule.matches) {
      const int name = numbers_.try_emplace(iptables_words(match), static_cast<int>(numbers_.size())).first->second;
      if (std::ranges::find(names, name) != names.end()) continue;  // it says nothing new
      names.push_back(name);
      conditions.push_back(&match);
    }
    chain(*next, conditions, names, depth + 1);
  }

  Family family_;
  const Visit& visit_;
  ChainIndex chains_;
  std::map<std::string, int> numbers_;
  std::set<std::pair<const LiveChain*, Names>> walked_;
  std::size_t deepest_;
  std::size_t left_;  // rules that may still be looked at
  struct Ended {
    Conditions conditions;
    bool returned;
  };
  std::vector<Ended> ended_;
  std::size_t comparisons_left_ = 1'000'000;  // with those
};

// False: there are more ways through the rules than were followed.
bool from_hook(std::span<const Live> live, Hook hook, Family family, const Visit& visit) {
  bool complete = true;
  for (const Live& one : live) {
    Traversal traversal(one, family, visit);
    for (const LiveChain& chain : one.chains) {
      if (called_at(chain, hook) && chain.families.contains(family)) traversal.from(chain);
    }
    complete = complete && traversal.complete();
  }
  return complete;
}

// The traffic that conditions select, as far as it is said in words.
struct Traffic {
  bool udp = false;
  std::string ports;
  bool one_port = false;
  bool dns = false;  // port 53 alone
  std::string ranges;
  std::string sources;
  std::string in;
  std::string out;
  std::string owners;      // that it is
  std::string not_groups;  // that it is not: -m owner ! --gid-owner
  bool special = false;    // marks, states, source ports: part of the machinery, not of what users ask for
  bool loopback = false;   // it is for loopback addresses alone

  void add(const ProtocolMatch& m) { udp = m.protocol == Protocol::udp; }
  void add(const PortMatch& m) {
    if (m.end == End::destination && !m.negated) {
      ports = port_list(m.ports);
      one_port = m.ports.size() == 1 && m.ports.front().first == m.ports.front().last;
      dns = m.ports == std::vector<PortRange>{{53, 53}};
    }
    special |= m.end == End::source;
  }
  void add(const AddressMatch& m) {
    if (m.end == End::source) {
      const AddressRange& range = m.ranges.front();
      const bool by_proxy = range == AddressRange::single(Address::passthrough(range.family()));
      special |= by_proxy || m.negated;
      if (!by_proxy && !m.negated) sources = range_list(m.ranges);
      return;
    }
    if (m.negated) return;
    std::vector<AddressRange> others = m.ranges;
    std::erase_if(others, [](const AddressRange& range) { return range.first.is_loopback(); });
    loopback |= others.empty();
    ranges = range_list(others.empty() ? m.ranges : others);
  }
  void add(const InterfaceMatch& m) {
    if (!m.negated) (m.direction == InterfaceDirection::in ? in : out) = printable(m.name);
  }
  void add(const OwnerMatch& m) {
    std::string& to = m.negated ? not_groups : owners;
    const char* kind = m.negated ? "" : m.kind == OwnerKind::uid ? "uid " : "gid ";
    to += fmt::format("{}{}{}", to.empty() ? "" : ", ", kind, id_list(m.ids));
  }
  void add(const CgroupMatch& m) {
    special |= m.negated;
    owners += fmt::format("{}cgroup {}", owners.empty() ? "" : ", ",
                          m.path.empty() ? std::to_string(m.id) : printable(m.path));
  }
  template <typename Other>
  void add(const Other&) {
    special = true;
  }
};

Traffic traffic(const std::vector<Match>& conditions) {
  Traffic selected;
  for (const Match& match : conditions) std::visit([&](const auto& m) { selected.add(m); }, match);
  return selected;
}
Traffic traffic(const Conditions& conditions) {
  Traffic selected;
  for (const Match* match : conditions) std::visit([&](const auto& m) { selected.add(m); }, *match);
  return selected;
}

std::string port_words(std::uint16_t port, const Rule& rule) {
  const auto known = port_name(port, rule);
  return known.empty() ? fmt::format("port {}", port) : fmt::format("port {} ({})", port, known);
}

// Values that have a sentence in common: "TCP" and "DNS" of "goes to port 15001". Each once, in the order in which they
// come.
struct Gathered {
  std::string in_common;
  std::vector<std::string> values;
};
class Groups {
 public:
  void add(const std::string& in_common, const std::string& value) {
    const auto place = places_.try_emplace(in_common, all_.size()).first->second;
    if (place == all_.size()) all_.push_back({in_common, {}});
    if (known_[place].insert(value).second) all_[place].values.push_back(value);
  }
  [[nodiscard]] const std::vector<Gathered>& all() const { return all_; }

 private:
  std::vector<Gathered> all_;
  std::map<std::string, std::size_t> places_;
  std::map<std::size_t, std::unordered_set<std::string>> known_;
};

constexpr const char* not_followed = "and perhaps more: the rules have too many paths to follow them all";

std::string values_of(const Gathered& group) {
  return some(group.values, [](const std::string& value) { return value; });
}

std::string to_ports(const Traffic& s) {
  return s.ports.empty() ? "" : fmt::format(" to {} {}", s.one_port ? "port" : "ports", s.ports);
}

std::string captured_words(const Traffic& s) {
  std::string words = s.udp ? "UDP" : "TCP";
  if (!s.in.empty()) words += fmt::format(" from {}", s.in);
  if (!s.sources.empty()) words += fmt::format(" from {}", s.sources);
  if (s.dns) return s.ranges.empty() ? "DNS" : fmt::format("DNS to {}", s.ranges);
  words += to_ports(s);
  if (!s.ranges.empty()) words += fmt::format(" to {}", s.ranges);
  return words;
}

std::vector<std::string> captures_of(std::span<const Live> live, Hook hook, Family family) {
  Groups captures;
  const bool complete = from_hook(live, hook, family, [&](const Conditions&, const Rule& rule, const Reached& reached) {
    const auto port = listening_port(rule.target);
    if (!port) return;
    const auto left = reached();
    if (!left) return;
    const Traffic s = traffic(*left);
    if (!s.owners.empty()) return;  // the proxy calling its own pod
    const char* how = std::holds_alternative<Tproxy>(rule.target) ? " by TPROXY" : "";
    captures.add(port_words(*port, rule) + how, captured_words(s));
  });
  std::vector<std::string> sentences;
  for (const Gathered& to : captures.all())
    sentences.push_back(fmt::format("{} goes to {}", values_of(to), to.in_common));
  if (!complete) sentences.emplace_back(not_followed);
  return sentences;
}

void left_by(const Traffic& s, Hook hook, Groups& left) {
  if (s.special || s.loopback || s.out == "lo" || s.in == "lo") return;
  const std::string way = hook == Hook::prerouting ? "inbound" : "outbound";
  if (!s.not_groups.empty()) return left.add("groups other than", s.not_groups);
  if (!s.owners.empty()) return left.add("sent by", s.owners + to_ports(s));
  if (!s.ports.empty()) return left.add(way + " to port", s.ports);
  if (!s.ranges.empty()) return left.add(way + " to", s.ranges);
  if (!s.sources.empty()) return left.add(way + " from", s.sources);
  if (!s.in.empty() || !s.out.empty()) return left.add("interface", s.in.empty() ? s.out : s.in);
}

std::vector<std::string> left_out_of(std::span<const Live> live, Family family) {
  Groups left;
  bool complete = true;
  for (const Hook hook : {Hook::prerouting, Hook::output}) {
    complete &= from_hook(live, hook, family, [&](const Conditions& conditions, const Rule& rule, const Reached&) {
      const auto* verdict = std::get_if<Verdict>(&rule.target);
      if (verdict == nullptr || *verdict == Verdict::drop || rule.table == Table::raw) return;
      left_by(traffic(conditions), hook, left);
    });
  }
  std::vector<std::string> words;
  for (const Gathered& group : left.all()) words.push_back(fmt::format("{} {}", group.in_common, values_of(group)));
  if (!complete) words.emplace_back(not_followed);
  return words;
}

// What holds for both families, then what holds for one of them alone.
template <typename Of>
std::string of_both(const Of& of, const char* nothing) {
  const std::vector<std::string> ipv4 = of(Family::ipv4);
  const std::vector<std::string> ipv6 = of(Family::ipv6);
  const auto those = [](const std::vector<std::string>& a, const std::vector<std::string>& b, bool in_both) {
    const std::unordered_set<std::string> others(b.begin(), b.end());
    std::vector<std::string> result;
    std::ranges::copy_if(a, std::back_inserter(result),
                         [&](const std::string& item) { return others.contains(item) == in_both; });
    return fmt::format("{}", fmt::join(result, "; "));
  };
  std::vector<std::string> parts;
  if (const std::string both = those(ipv4, ipv6, true); !both.empty()) parts.push_back(both);
  if (const std::string only = those(ipv4, ipv6, false); !only.empty()) parts.push_back("IPv4 only: " + only);
  if (const std::string only = those(ipv6, ipv4, false); !only.empty()) parts.push_back("IPv6 only: " + only);
  return parts.empty() ? nothing : fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Summary summary(std::span<const Live> live) {
  constexpr const char* nothing = "nothing is captured";
  return {of_both([&](Family family) { return captures_of(live, Hook::prerouting, family); }, nothing),
          of_both([&](Family family) { return captures_of(live, Hook::output, family); }, nothing),
          of_both([&](Family family) { return left_out_of(live, family); }, "nothing")};
}

}  // namespace sidetrack
