// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/probe_obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "evaluate/examples.h"
#include "evaluate/fill_in.h"
#include "evaluate/forks.h"
#include "evaluate/hook_calls.h"
#include "evaluate/not_followed.h"
#include "evaluate/packet_walk.h"
#include "evaluate/unobserved.h"
#include "mesh/catalogue.h"
#include "model/iptables.h"

namespace sidetrack {
namespace {

constexpr std::size_t most_probes = 512;  // fewer, if there are very many rules
constexpr std::size_t most_rules_met = 200'000;
constexpr std::size_t fewest_probes = 4;
constexpr std::size_t most_ways = 64;  // of one probe, where something cannot be known
constexpr std::size_t deepest_chain = 16;

// What the plan does for one family.
struct Probed {
  std::vector<AddressRange> pods;
  std::optional<Address> source;
};

std::map<Family, Probed> probed_by(const Plan& plan) {
  std::map<Family, Probed> all;
  for (const Rule& rule : plan.ruleset.rules) {
    const auto* nat = std::get_if<Nat>(&rule.target);
    if (nat == nullptr || !nat->addresses || !is_of(rule, MeshRule::host_probe_source)) continue;
    Probed& probed = all[nat->addresses->family()];
    probed.source = nat->addresses->first;
    for (const Match& match : rule.matches) {
      if (const auto* address = std::get_if<AddressMatch>(&match)) probed.pods = address->ranges;
      const auto* set = std::get_if<SetMatch>(&match);
      if (set != nullptr && set->members) probed.pods = *set->members;
    }
  }
  std::erase_if(all, [](const auto& each) { return each.second.pods.empty(); });
  return all;
}

bool is_in(const Address& address, const std::vector<AddressRange>& ranges) {
  return std::ranges::any_of(ranges, [&](const AddressRange& range) { return range.contains(address); });
}

// Whether these matches leave open that a packet goes there.
bool may_go_to(const Address& pod, const Conditions& matches) {
  return std::ranges::all_of(matches, [&](const Match* match) {
    if (const auto* address = std::get_if<AddressMatch>(match))
      return address->end == End::source || is_in(pod, address->ranges) != address->negated;
    const auto* set = std::get_if<SetMatch>(match);
    if (set == nullptr || set->end == End::source || !set->members) return true;
    return is_in(pod, *set->members) != set->negated;
  });
}

// A probe of which these matches speak, as far as it is a probe of the kubelet at all.
std::optional<Packet> probe_of(const Conditions& matches, const Probed& probed) {
  const auto pod =
      std::ranges::find_if(probed.pods, [&](const AddressRange& one) { return may_go_to(one.first, matches); });
  const auto ports = ports_of(matches, End::destination, 80);
  const auto uids = ids_of(matches, OwnerKind::uid, 0);
  const auto gids = ids_of(matches, OwnerKind::gid, 0);
  if (pod == probed.pods.end() || ports.empty() || uids.empty() || gids.empty()) return std::nullopt;
  Packet packet;
  packet.owner = Owner{uids.front(), gids.front()};
  packet.cgroup = cgroup_of(matches);
  packet.destination = pod->first;
  packet.destination_port = ports.front();
  return packet;
}

class ProbeSearch {
 public:
  ProbeSearch(const Plan& plan, const PodView& node, std::span<const Live> live)
      : probed_(probed_by(plan)), node_(node), live_(live) {
    std::size_t rules = 1;
    for (const Live& one : live) {
      for (const LiveChain& chain : one.chains) rules += chain.rules.size();
    }
    most_ = std::clamp<std::size_t>(most_rules_met / rules, fewest_probes, most_probes);
  }

  std::vector<Obstacle> run() {
    for (const auto& [family, probed] : probed_) {
      family_ = family;
      RulesOfFamily rules(live_, family);
      rules_ = &rules;
      for (const Live& one : live_) {
        for (const LiveChain& chain : one.chains) {
          const bool is_asked = called_at(chain, Hook::postrouting) && chain.hook->type == ChainType::nat;
          if (is_asked && chain.families.contains(family)) ask_of(one, chain, 0, Of::source);
        }
        // What is not tracked, no chain of nat is asked about.
        for (const LiveChain& chain : one.chains) {
          if (called_at(chain, Hook::output) && chain.families.contains(family)) ask_of(one, chain, 0, Of::tracking);
        }
      }
      rules_ = nullptr;
    }
    if (not_all_ && found_.empty())
      found_.push_back(
          {fmt::format("rules of other programs beyond the first {}", most_), {}, "decide about the probes first", {}});
    return std::move(found_);
  }

 private:
  // What the rules decide about that are asked about.
  enum class Of : std::uint8_t { source, tracking };

  // The rules of others in it and in the chains that it leads to, ours among them.
  void ask_of(const Live& live, const LiveChain& chain, std::size_t depth, Of of) {
    if (of == Of::source) chains_.insert(&chain);
    for (const LiveRule& one : chain.rules) {
      not_all_ = not_all_ || ++looked_at_ > most_rules_met;
      if (not_all_) return;
      const auto* jump = std::get_if<Jump>(&one.rule.target);
      if ((one.ours && jump == nullptr) || !one.rule.families.contains(family_) ||
          std::holds_alternative<Continue>(one.rule.target))
        continue;
      if (of == Of::tracking && jump == nullptr && !std::holds_alternative<Notrack>(one.rule.target)) continue;
      const std::size_t before = matches_.size();
      for (const Match& match : one.rule.matches) matches_.push_back(&match);
      const LiveChain* to = jump != nullptr ? rules_->chains(live).find(chain, jump->chain) : nullptr;
      if (to == nullptr) {
        ask();
      } else if (depth == deepest_chain) {
        not_all_ = true;
      } else {
        ask_of(live, *to, depth + 1, of);
      }
      matches_.resize(before);
    }
  }

  // About what all of `matches_` speak of.
  void ask() {
    const Probed& probed = probed_.at(family_);
    const auto packet = probe_of(matches_, probed);
    if (!packet || !asked_.insert(explain_words(*packet)).second) return;
    if (asked_.size() > most_) {
      not_all_ = true;
      return;
    }
    Unobserved unobserved;  // of most probes no words are needed
    const std::vector<Trace> in_short = all_ways(*packet, &unobserved);
    if (std::ranges::none_of(in_short, [&](const Trace& way) { return !is_as_planned(way) && decides_first(way); }))
      return;
    const std::vector<Trace> ways = all_ways(*packet, nullptr);
    const bool always = std::ranges::none_of(ways, is_as_planned);
    for (const Trace& way : ways) {
      const Step* first = is_as_planned(way) ? nullptr : decides_first(way);
      if (first == nullptr) continue;
      const std::string rule = fmt::format("{}: {}", rule_of(*first), iptables_words(*first));
      if (!rules_found_.insert(rule).second) continue;
      found_.push_back({rule, explain_words(witness_of(*packet, *first)),
                        fmt::format("comes from {}", probed.source->text()),
                        fmt::format("{} decided about there ({})", always ? "is" : "may be", first->text)});
    }
  }

  // Without its cgroup, unless that makes a difference.
  [[nodiscard]] Packet witness_of(const Packet& packet, const Step& decides) const {
    Packet bare = packet;
    if (bare.cgroup == "") bare.cgroup.reset();
    const std::vector<Trace> ways = all_ways(bare, nullptr);
    const bool is_enough = std::ranges::any_of(ways, [&](const Trace& way) {
      const Step* first = is_as_planned(way) ? nullptr : decides_first(way);
      return first != nullptr && first->live == decides.live && first->kind == decides.kind;
    });
    return is_enough ? bare : packet;
  }

  [[nodiscard]] std::vector<Trace> all_ways(const Packet& packet, Observer* observer) const {
    const Packet asked = filled_in(packet, node_, observer);
    if (without_walk(packet, asked, node_, observer)) return {};  // it is never sent
    Question question(node_, *rules_, observer);
    question.source_chosen = false;
    std::vector<Trace> ways;
    do {
      PacketWalk walk(asked, question);
      walk.run();
      if (!walk.seen()) ways.push_back(walk.trace());
    } while (ways.size() < most_ways && question.forks.next());
    return ways;
  }

  static bool is_as_planned(const Trace& way) {
    return std::ranges::any_of(way.steps, [](const Step& step) {
      return step.kind == Step::Kind::decided && step.live != nullptr && step.live->ours &&
             is_of(step.live->rule, MeshRule::host_probe_source);
    });
  }

  // The rule that translated its source, or ended the walk before ours, or exempted it from tracking. nullptr: it did
  // not come so far.
  [[nodiscard]] const Step* decides_first(const Trace& way) const {
    const Step* last = nullptr;
    for (const Step& step : way.steps) {
      if (step.live == nullptr) continue;
      const bool exempts = step.kind == Step::Kind::matched && std::holds_alternative<Notrack>(step.live->rule.target);
      if (exempts && way.outcome.kind == Outcome::Kind::leaves) last = &step;
      if (!chains_.contains(step.in)) continue;
      if (step.kind == Step::Kind::decided || step.kind == Step::Kind::unknown) last = &step;
      const auto* nat = std::get_if<Nat>(&step.live->rule.target);
      if (last == &step && nat != nullptr && nat->end == End::source && step.kind == Step::Kind::decided) break;
    }
    return last;
  }

  std::map<Family, Probed> probed_;
  const PodView& node_;
  std::span<const Live> live_;
  std::size_t most_ = 0;
  Family family_ = Family::ipv4;
  RulesOfFamily* rules_ = nullptr;
  Conditions matches_;
  std::set<const LiveChain*> chains_;  // that packets may pass where their source is decided about
  std::size_t looked_at_ = 0;
  bool not_all_ = false;
  std::set<std::string> asked_;
  std::set<std::string> rules_found_;
  std::vector<Obstacle> found_;
};

}  // namespace

std::vector<Obstacle> probe_obstacles(const Plan& plan, const PodView& node, std::span<const Live> live) {
  return ProbeSearch(plan, node, live).run();
}

}  // namespace sidetrack
