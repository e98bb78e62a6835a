// SPDX-License-Identifier: GPL-2.0-or-later
#include "analyse/rule_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "analyse/route.h"
#include "sidetrack/describe.h"
#include "sidetrack/render.h"

namespace sidetrack {
namespace {

class RuleWalk {
 public:
  RuleWalk(InFlight& packet, const PodView& pod) : packet_(packet), pod_(pod) {}

  bool run(std::span<const Live* const> all, Hook at, Table table) {
    most_steps_ = packet_.trace.steps.size() + least_budget;
    for (const Live* live : all) {
      for (const LiveChain& chain : live->chains) most_steps_ += 4 * chain.rules.size();
    }
    for (const Live* live : all) {
      packet_.now.native = live->backend == BackendKind::nftables;
      for (const LiveChain& base : live->chains) {
        if (base.table != table || !base.families.contains(packet_.family) || !called_at(base, at)) continue;
        jumps_.clear();
        const Ended ended = chain(*live, base, at, 0);
        if (ended == Ended::dropped) return false;
        if (ended == Ended::translated) return true;
      }
    }
    return true;
  }

 private:
  // How the walk of a chain ends.
  enum class Ended : std::uint8_t { back, accepted, translated, dropped };

  Ended chain(const Live& live, const LiveChain& in, Hook at, unsigned depth) {
    unsigned number = 0;
    for (const LiveRule& entry : in.rules) {
      const Rule& rule = entry.rule;
      if (packet_.trace.steps.size() >= most_steps_) {
        packet_.doubt(
            fmt::format("the chains of {} jump to each other in too many ways to follow them all: what the "
                        "rules beyond {} do is taken as nothing",
                        name(in.table), rule_of(packet_.trace.steps.back())));
        return Ended::back;
      }
      ++number;
      if (!rule.families.contains(packet_.family)) continue;
      Step step;
      step.backend = live.backend;
      step.table = in.table;
      step.chain = in.name;
      step.number = number;
      step.depth = depth;
      step.rule = fmt::format("-A {} {}", in.name, short_words(rule));
      step.reason = describe(rule);
      if (const auto failed = fails(rule)) {
        step.kind = Step::Kind::passed;
        step.text = *failed;
        packet_.trace.steps.push_back(std::move(step));
        continue;
      }
      if (const auto ended = take(live, rule, at, std::move(step))) return *ended;
    }
    return Ended::back;
  }

  // Why the rule does not match; nothing if it does.
  std::optional<std::string> fails(const Rule& rule) {
    const Match* unknown = nullptr;
    for (const Match& match : rule.matches) {
      if (is_unknown(match)) {
        unknown = &match;
      } else if (auto failed = why_not(match, packet_.now)) {
        return failed;
      }
    }
    if (unknown == nullptr) return {};
    packet_.doubt(fmt::format("whether `{}` of a rule in {} {} holds is not known: taken as not",
                              iptables_words(*unknown), name(rule.table), rule.chain));
    return why_not(*unknown, packet_.now);
  }

  // What the target of a rule that matches does. Nothing: the next rule of the chain is looked at.
  std::optional<Ended> take(const Live& live, const Rule& rule, Hook at, Step step) {
    const std::size_t place = packet_.trace.steps.size();
    packet_.trace.steps.push_back(std::move(step));
    const auto say = [&](Step::Kind kind, std::string what) {
      packet_.trace.steps[place].kind = kind;
      packet_.trace.steps[place].text = std::move(what);
    };
    return std::visit([&](const auto& target) { return apply(target, live, rule, at, place, say); }, rule.target);
  }

  template <typename Say>
  std::optional<Ended> apply(const Jump& jump, const Live& live, const Rule& rule, Hook at, std::size_t place,
                             const Say& say) {
    say(Step::Kind::matched, fmt::format("on to {}", jump.chain));
    const Ended ended = enter(jump.chain, live, rule, at, place);
    if (ended == Ended::back && !jump.goes) return {};
    return ended;
  }

  // A chain that is jumped to. One without rules, in a plan, is not there.
  Ended enter(const std::string& name_of, const Live& live, const Rule& rule, Hook at, std::size_t place) {
    const LiveChain* target = live.find(packet_.family, rule.table, name_of);
    if (target == nullptr) return Ended::back;
    if (jumps_.size() >= deepest_jump) {
      packet_.doubt("jumps nested deeper than the kernel allows are not followed");
      return Ended::back;
    }
    // A second walk with the same marks would meet the same rules: the ways through chains that jump to each other are
    // as many as powers of two.
    const auto state = [&] { return std::tuple(target, packet_.now.mark, packet_.now.connmark, packet_.zone); };
    const auto before = state();
    if (without_effect_.contains(before)) {
      packet_.trace.steps[place].text += ": as before, nothing there decides about it";
      return Ended::back;
    }
    jumps_.push_back(place);
    const Ended ended = chain(live, *target, at, static_cast<unsigned>(jumps_.size()));
    jumps_.pop_back();
    if (ended == Ended::back && state() == before) without_effect_.insert(before);
    return ended;
  }

  template <typename Say>
  std::optional<Ended> apply(Verdict verdict, const Live&, const Rule&, Hook, std::size_t place, const Say& say) {
    switch (verdict) {
      case Verdict::accept:
        say(Step::Kind::decided, "accepted: no further rule of this table is looked at");
        packet_.left_alone.push_back(place);
        return Ended::accepted;
      case Verdict::return_:
        say(Step::Kind::decided, jumps_.empty() ? "no further rule of this chain is looked at"
                                                : fmt::format("back to {}", packet_.trace.steps[jumps_.back()].chain));
        packet_.left_alone.push_back(place);
        return Ended::back;
      case Verdict::drop:
        say(Step::Kind::decided, "dropped");
        captured_by(place);
        packet_.drop("by " + rule_of(packet_.trace.steps[place]));
        return Ended::dropped;
    }
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const Redirect& redirect, const Live&, const Rule&, Hook at, std::size_t place,
                             const Say& say) {
    captured_by(place);
    const Family of = packet_.family;
    std::optional<Address> to = Address::loopback(of);
    if (at == Hook::prerouting) to = redirect_address(pod_, packet_.now.in, packet_.now.destination.address);
    if (!to) {
      say(Step::Kind::decided, "dropped");
      packet_.drop(fmt::format("REDIRECT needs an {} address of {}, and it has none", name(of), packet_.now.in));
      return Ended::dropped;
    }
    packet_.translation = Endpoint{*to, redirect.port};
    say(Step::Kind::decided, fmt::format("redirected to {}", packet_.translation->text()));
    if (!packet_.original) packet_.original = packet_.now.destination;
    packet_.now.destination = *packet_.translation;
    return Ended::translated;
  }

  // nf_tables' tproxy sets no verdict, but is written with the mark and accept behind it.
  template <typename Say>
  std::optional<Ended> apply(const Tproxy& tproxy, const Live&, const Rule&, Hook, std::size_t place, const Say& say) {
    captured_by(place);
    packet_.transparent = tproxy.port;
    packet_.now.mark = (packet_.now.mark & ~tproxy.mask) ^ tproxy.mark;
    say(Step::Kind::decided,
        fmt::format("given to the transparent listener on port {}, marked {}", tproxy.port, packet_.now.mark));
    return Ended::accepted;
  }

  template <typename Say>
  std::optional<Ended> apply(const SetMark& set, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    packet_.now.mark = (packet_.now.mark & ~set.mask) ^ set.mark;
    say(Step::Kind::matched, fmt::format("marked {}", packet_.now.mark));
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(Connmark connmark, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    if (!packet_.now.connmark) {
      say(Step::Kind::matched, "no effect: it belongs to no known connection");
    } else if (connmark == Connmark::save) {
      packet_.now.connmark = packet_.now.mark;
      say(Step::Kind::matched, fmt::format("its connection is marked {}", packet_.now.mark));
    } else {
      packet_.now.mark = *packet_.now.connmark;
      say(Step::Kind::matched, fmt::format("marked {}, as its connection is", packet_.now.mark));
    }
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const SetConnmark& set, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    if (!packet_.now.connmark) {
      say(Step::Kind::matched, "no effect: it belongs to no known connection");
    } else {
      packet_.now.connmark = (*packet_.now.connmark & ~set.mask) ^ set.mark;
      say(Step::Kind::matched, fmt::format("its connection is marked {}", *packet_.now.connmark));
    }
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const Notrack& target, const Live&, const Rule& rule, Hook, std::size_t, const Say& say) {
    if (!packet_.tracked) return not_known(iptables_words(target), rule, say);
    say(Step::Kind::matched, "no effect: it is tracked already");
    return {};
  }

  // The first one decides (xt_ct_target, nft_ct_set_zone_eval), and none does once the packet is tracked.
  template <typename Say>
  std::optional<Ended> apply(const CtZone& zone, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    if (packet_.tracked) {
      say(Step::Kind::matched, "no effect: it is tracked already");
    } else if (packet_.zone) {
      say(Step::Kind::matched, fmt::format("no effect: its zone is {} already", *packet_.zone));
    } else {
      packet_.zone = zone.zone;
      say(Step::Kind::matched, fmt::format("to be tracked in zone {}", zone.zone));
    }
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const Continue&, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    say(Step::Kind::matched, "goes on");
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const Reject&, const Live&, const Rule&, Hook, std::size_t place, const Say& say) {
    say(Step::Kind::decided, "rejected");
    captured_by(place);
    packet_.drop("by " + rule_of(packet_.trace.steps[place]));
    return Ended::dropped;
  }

  template <typename Say>
  std::optional<Ended> apply(const Nat& nat, const Live&, const Rule& rule, Hook, std::size_t, const Say& say) {
    if (nat.end == End::source) {
      say(Step::Kind::decided, "its source is translated");
      return Ended::translated;
    }
    return not_known(nat.words, rule, say);
  }

  template <typename Say>
  std::optional<Ended> apply(const UnknownTarget& target, const Live&, const Rule& rule, Hook, std::size_t,
                             const Say& say) {
    return not_known(target.words, rule, say);
  }

  template <typename Say>
  std::optional<Ended> not_known(const std::string& words, const Rule& rule, const Say& say) {
    say(Step::Kind::matched, "what this does is not known");
    packet_.doubt(fmt::format("what `{}` of a rule in {} {} does is not known: taken as nothing", words,
                              name(rule.table), rule.chain));
    return {};
  }

  // The rule at `place`, and the jump that led to its chain.
  void captured_by(std::size_t place) {
    packet_.capture.clear();
    if (!jumps_.empty()) packet_.capture.push_back(jumps_.back());
    packet_.capture.push_back(place);
  }

  InFlight& packet_;
  const PodView& pod_;
  static constexpr std::size_t least_budget = 10'000;
  std::size_t most_steps_ = 0;
  // Chains that were left for the rule behind the jump, with the marks of the packet: its mark, its connection's, zone.
  std::set<std::tuple<const LiveChain*, std::uint32_t, std::optional<std::uint32_t>, std::optional<std::uint16_t>>>
      without_effect_;
  std::vector<std::size_t> jumps_;  // the steps that led to the chain being walked
};

}  // namespace

bool has_rules(std::span<const Live* const> live, Family family, Hook at, std::optional<Table> table) {
  return std::ranges::any_of(live, [&](const Live* one) {
    return std::ranges::any_of(one->chains, [&](const LiveChain& chain) {
      return called_at(chain, at) && (!table || chain.table == *table) && chain.families.contains(family) &&
             !chain.rules.empty();
    });
  });
}

bool walk_rules(InFlight& packet, const PodView& pod, std::span<const Live* const> live, Hook at, Table table) {
  return RuleWalk(packet, pod).run(live, at, table);
}

}  // namespace sidetrack
