// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/rule_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mesh/describe.h"
#include "rule/iptables.h"
#include "walk/discovery_words.h"
#include "walk/observer.h"
#include "walk/route.h"
#include "walk/source_address.h"

namespace sidetrack {
namespace {

// iptables names its tables without the family.
std::string_view table_words(const LiveChain& chain) {
  return chain.table == Table::other ? std::string_view(chain.table_name) : name(chain.table);
}

Endpoint with_address(Endpoint endpoint, const Address& address) {
  endpoint.address = address;
  endpoint.address_origin = Origin::constant;
  return endpoint;
}

Endpoint with_port(Endpoint endpoint, std::optional<std::uint16_t> port) {
  endpoint.port = port;
  endpoint.port_origin = Origin::constant;
  return endpoint;
}

// Tells whether it translates to an address of the pod.
bool is_own(const Nat& nat) { return nat.to == Nat::To::own || (!nat.addresses && !nat.ports); }

class RuleWalk {
 public:
  RuleWalk(WalkState& packet, const PodView& pod, const BaseChain& base, ChainIndex& chains, Forks& forks)
      : packet_(packet),
        pod_(pod),
        live_(*base.live),
        base_(*base.chain),
        at_(base.chain->hook->hook),
        chains_(chains),
        forks_(forks) {}

  ChainResult run() {
    packet_.now.native = traits(live_.backend).in_own_table;
    if (packet_.now.observer != nullptr)
      path_ = packet_.now.observer->path(BaseChain{&live_, &base_}, chains_, packet_);
    if (path_ != nullptr) {
      packet_.meets_state = packet_.meets_state || path_->meets_state;
      accepts_ = path_->accepts;
    }
    if (path_ == nullptr || path_->unknown) most_rules_ = chains_.most_rules();
    const Ended ended = chain(base_, 0);
    chains_.add_asked(walked_);
    switch (ended) {
      case Ended::back:
        return path_ != nullptr && accepts_ ? ChainResult::on : policy();
      case Ended::accepted:
        return ChainResult::on;
      case Ended::translated:
        return ChainResult::translated;
      case Ended::gone:
        return ChainResult::gone;
    }
    return ChainResult::gone;
  }

 private:
  // How the walk of a chain ends.
  enum class Ended : std::uint8_t { back, accepted, translated, gone };

  Step step_of(const LiveChain& in, unsigned number, unsigned depth) const {
    Step step;
    step.backend = live_.backend;
    step.in = &in;
    if (packet_.now.observer == nullptr) name_chain(step);
    step.number = number;
    step.depth = depth;
    return step;
  }

  ChainResult policy() {
    if (base_.policy != Verdict::drop) return ChainResult::on;
    Step step = step_of(base_, 0, 0);
    step.kind = Step::Kind::decided;
    step.rule = "DROP";
    step.text = "dropped";
    packet_.capture = {packet_.trace.steps.size()};
    packet_.trace.steps.push_back(std::move(step));
    packet_.drop(fmt::format("policy drop of {} {}", table_words(base_), base_.name));
    return ChainResult::gone;
  }

  Ended chain(const LiveChain& in, unsigned depth) {
    unsigned number = 0;
    Truths truths;
    Truths before;         // of the rule before
    bool matched = false;  // it did
    for (std::size_t i = 0; i < in.rules.size(); ++i) {
      if (path_ != nullptr) {
        const auto next = next_of_path(in, i);
        if (!next) return Ended::back;
        i = *next;
        if (path_ != nullptr) {
          if (const auto ended = take_of_path(in, in.rules[i], depth)) return *ended;
          continue;
        }
      }
      const LiveRule& entry = in.rules[i];
      const Rule& rule = entry.rule;
      if (walked_ >= most_rules_) {
        packet_.not_known(
            fmt::format("the chains of {} jump to each other along too many paths to follow them all: {} was the "
                        "last rule evaluated",
                        table_words(in), rule_of(packet_.trace.steps.back())),
            "chains that jump to each other along too many paths");
        return Ended::gone;
      }
      if (entry.number != 0) {
        number = entry.number;
      } else if (!is_more_of_one(in, entry)) {
        ++number;
      }
      if (!is_more_of_one(in, entry)) ended_ = 0;
      if (ended_ != 0 && ended_ == entry.handle) continue;
      // Who observes wants to know what makes a difference: whether such a rule matches makes none.
      if (packet_.now.observer != nullptr && std::holds_alternative<NonTerminating>(rule.target)) {
        if (!is_more_of_one(in, entry)) before.clear();
        continue;
      }
      const std::size_t asked_before = is_more_of_one(in, entry) ? asked_already(entry, (&entry)[-1], before) : 0;
      truths.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(asked_before));
      while (truths.size() < rule.matches.size()) truths.push_back(truth_of_match(entry, rule.matches[truths.size()]));
      before.clear();
      if (!rule.families.contains(packet_.family)) continue;
      ++walked_;
      packet_.meets_state = packet_.meets_state || tells_later_packets(rule.matches, packet_.now);
      if (packet_.now.observer != nullptr) observe(rule, truths, matched ? asked_before : 0);
      matched = false;
      const auto failed = std::ranges::find(truths, Truth::no);
      if (failed != truths.end() && packet_.is_brief) {
        before.swap(truths);
        continue;
      }
      Step step = step_of(in, number, depth);
      step.live = &entry;
      if (packet_.now.observer == nullptr) {
        step.rule = short_words(rule);
        step.reason = describe_live(entry);
      }
      if (failed != truths.end()) {
        step.kind = Step::Kind::passed;
        step.text = why_not(rule.matches[static_cast<std::size_t>(failed - truths.begin())], packet_.now);
        packet_.trace.steps.push_back(std::move(step));
        before.swap(truths);
        continue;
      }
      if (const auto unknown = std::ranges::find(truths, Truth::unknown); unknown != truths.end()) {
        const bool is_continue = std::holds_alternative<NonTerminating>(rule.target);
        const auto taken = is_taken(entry, rule.matches[static_cast<std::size_t>(unknown - truths.begin())], step);
        if (!taken) return Ended::gone;
        if (!is_continue && std::ranges::count(truths, Truth::unknown) == 1) *unknown = *taken ? Truth::yes : Truth::no;
        before = truths;
        if (!*taken) continue;
      }
      before.swap(truths);
      matched = true;
      if (const auto ended = take(in, entry, std::move(step))) return *ended;
    }
    return Ended::back;
  }

  [[nodiscard]] Truth truth_of_match(const LiveRule& entry, const Match& match) const {
    const auto* unknown = std::get_if<UnknownMatch>(&match);
    if (unknown != nullptr && packet_.discovery) return truth_of_discovery(unknown->words, *packet_.discovery);
    return truth_of(entry, match, packet_.now, live_);
  }

  // Which rule of the chain is the next one of the path, from there on; nothing: none.
  std::optional<std::size_t> next_of_path(const LiveChain& in, std::size_t from) {
    while (!leaps_.empty() && leaps_.back().from == met_) {
      met_ = leaps_.back().to;
      leaps_.pop_back();
    }
    if (met_ == path_->rules.size() || path_->rules[met_].in != &in) return {};
    const auto next = static_cast<std::size_t>(path_->rules[met_].rule - in.rules.data());
    if (next < from) return {};  // it is jumped to again
    ++met_;
    if (path_->unknown && met_ == path_->rules.size()) path_ = nullptr;
    return next;
  }

  std::optional<Ended> take_of_path(const LiveChain& in, const LiveRule& entry, unsigned depth) {
    Step step = step_of(in, entry.number, depth);
    step.live = &entry;
    const RuleInChain& met = path_->rules[met_ - 1];
    if (met.unknown) {
      const auto taken = is_taken(entry, entry.rule.matches[*met.unknown], step);
      if (!taken) return Ended::gone;
      if (!*taken) {
        met_ += met.then;
        return {};
      }
      const std::size_t end = met_ + met.then;
      leaps_.push_back({end, met.accepts ? path_->rules.size() : end + met.otherwise});
      accepts_ = met.accepts.value_or(accepts_);
    }
    const std::size_t place = packet_.trace.steps.size();
    packet_.trace.steps.push_back(std::move(step));
    return std::visit([&](const auto& target) { return apply(target, in, entry, place); }, entry.rule.target);
  }

  using Truths = std::vector<Truth>;

  // How many of the matches were asked with the rule before. A rule of nf_tables may be several here, of one handle:
  // what the first of them have in common was looked at before what the first one did.
  static std::size_t asked_already(const LiveRule& entry, const LiveRule& previous, const Truths& before) {
    const auto& matches = entry.rule.matches;
    const auto& others = previous.rule.matches;
    std::size_t count = 0;
    while (count < std::min(before.size(), matches.size()) && matches[count] == others[count]) ++count;
    return count;
  }

  // `from`: the matches before were observed already, with the packet as it was then.
  void observe(const Rule& rule, const Truths& truths, std::size_t from) {
    failing_.clear();
    for (std::size_t i = from; i < truths.size(); ++i) {
      if (truths[i] == Truth::no) failing_.push_back(&rule.matches[i]);
    }
    if (!failing_.empty()) return packet_.now.observer->no_match(failing_, packet_.now);
    for (std::size_t i = from; i < truths.size(); ++i) packet_.now.observer->match(rule.matches[i], packet_.now);
  }

  // -p udp --sport 15053 -m owner --uid-owner 1337 -j CT --zone 2: such a rule is there for the answers of whoever
  // listens on the port that queries were redirected to, and says as whom that runs.
  [[nodiscard]] bool names_listener(const Rule& rule, const Match& unknown) const {
    const auto* owner = std::get_if<OwnerMatch>(&unknown);
    const bool answers_redirected =
        packet_.now.state == ConnectionState::reply && !packet_.request.empty() && packet_.request.back().original;
    if (owner == nullptr || owner->negated || !answers_redirected || !std::holds_alternative<CtZone>(rule.target))
      return false;
    return std::ranges::any_of(rule.matches, [](const Match& match) {
      const auto* ports = std::get_if<PortMatch>(&match);  // one that matches
      return ports != nullptr && ports->end == End::source && !ports->negated;
    });
  }

  // Whether this walk takes the rule for one that matches; nothing: another walk has been here.
  std::optional<bool> is_taken(const LiveRule& entry, const Match& unknown, const Step& step) {
    if (names_listener(entry.rule, unknown)) return true;
    const std::string subject = fmt::format("`{}`", iptables_words(unknown));
    Step noted = step;
    noted.kind = Step::Kind::unknown;
    if (packet_.now.observer == nullptr) noted.text = fmt::format("whether {} holds is unknown", in_short(subject));
    packet_.trace.steps.push_back(std::move(noted));
    if (std::holds_alternative<NonTerminating>(entry.rule.target)) return false;  // makes no difference
    const auto taken = forks_.choose(
        {subject,
         packet_.now.observer == nullptr ? fmt::format("whether {} of {} holds", in_short(subject), rule_of(step)) : "",
         {"if it does not", "if it does"},
         packet_.trace.steps.size(),
         0},
        {place(entry), packet_});
    if (!taken) {
      packet_.seen = true;
      return {};
    }
    return *taken == 1;
  }

  std::vector<const void*> place(const LiveRule& entry) const {
    std::vector<const void*> result(entries_.begin(), entries_.end());
    result.push_back(&entry);
    return result;
  }

  // What the target of a rule that matches does. Nothing: the next rule of the chain is looked at.
  std::optional<Ended> take(const LiveChain& in, const LiveRule& entry, Step step) {
    const std::size_t place = packet_.trace.steps.size();
    packet_.trace.steps.push_back(std::move(step));
    const auto applied = [&] {
      return std::visit([&](const auto& target) { return apply(target, in, entry, place); }, entry.rule.target);
    };
    const Target& target = entry.rule.target;
    if (std::holds_alternative<Jump>(target) || std::holds_alternative<Verdict>(target)) return applied();
    const PacketState before = packet_;
    auto ended = applied();
    if (before != packet_) ++changes_;
    return ended;
  }

  template <typename What>
  void say(std::size_t place, Step::Kind kind, const What& what) {
    packet_.say(packet_.trace.steps[place], kind, what);
  }

  std::optional<Ended> apply(const Jump& jump, const LiveChain& in, const LiveRule& entry, std::size_t place) {
    say(place, Step::Kind::matched, [&] { return fmt::format("on to {}", jump.chain); });
    const Ended ended = enter(jump.chain, in, entry, place);
    if (ended == Ended::back && !jump.is_goto) return {};
    return ended;
  }

  Ended enter(const std::string& name_of, const LiveChain& from, const LiveRule& entry, std::size_t place) {
    const LiveChain* target = chains_.find(from, name_of);
    if (target == nullptr) return Ended::back;
    if (const std::size_t deepest = traits(live_.backend).deepest_jump; jumps_.size() >= deepest) {
      const std::string why = fmt::format("jumps nested deeper than {} are not followed", deepest);
      packet_.not_known(why, why);
      return Ended::gone;
    }
    // A second walk of the same packet would meet the same rules: the ways through chains that jump to each other are
    // as many as powers of two.
    const std::size_t before = changes_;
    const bool asks_all = path_ == nullptr;
    if (const auto known = without_effect_.find(target);
        asks_all && known != without_effect_.end() && known->second == before) {
      packet_.trace.steps[place].text += ": it was asked before, and no rule there decides";
      return Ended::back;
    }
    jumps_.push_back(place);
    entries_.push_back(&entry);
    const Ended ended = chain(*target, static_cast<unsigned>(jumps_.size()));
    entries_.pop_back();
    jumps_.pop_back();
    if (asks_all && ended == Ended::back && before == changes_) without_effect_[target] = before;
    return ended;
  }

  std::optional<Ended> apply(Verdict verdict, const LiveChain& in, const LiveRule&, std::size_t place) {
    switch (verdict.kind) {
      case Verdict::Kind::accept:
        say(place, Step::Kind::decided, "accepted: no further rule of this table is evaluated");
        left_alone_by(in, place);
        return Ended::accepted;
      case Verdict::Kind::return_:
        say(place, Step::Kind::decided, [&] {
          return jumps_.empty() ? "no further rule of this chain is evaluated"
                                : fmt::format("back to {}", packet_.trace.steps[jumps_.back()].chain);
        });
        left_alone_by(in, place);
        return Ended::back;
      case Verdict::Kind::drop:
        return dropped(place, "dropped");
    }
    return {};
  }

  std::optional<Ended> apply(const Reject&, const LiveChain&, const LiveRule&, std::size_t place) {
    return dropped(place, "rejected", " (REJECT)");
  }

  Ended dropped(std::size_t place, const std::string& what, const char* how = "") {
    say(place, Step::Kind::decided, what);
    captured_by(place);
    packet_.drop("by " + rule_of(packet_.trace.steps[place]) + how);
    return Ended::gone;
  }

  std::optional<Ended> apply(const Redirect& redirect, const LiveChain&, const LiveRule&, std::size_t place) {
    return to_self(redirect.port, place);
  }

  // REDIRECT: nf_nat_redirect_ipv4, _ipv6. No port: as it is.
  std::optional<Ended> to_self(std::optional<std::uint16_t> port, std::size_t place) {
    captured_by(place);
    const Family of = packet_.family;
    std::optional<Address> to = Address::loopback(of);
    if (at_ == Hook::prerouting)
      to = redirect_address(pod_, packet_.now.in, packet_.now.destination.address, packet_.now.observer);
    if (!to) {
      say(place, Step::Kind::decided, "dropped");
      packet_.drop(fmt::format("REDIRECT needs an {} address of {}, and it has none", name(of), packet_.now.in));
      return Ended::gone;
    }
    return to_destination(*to, port, "redirected", place);
  }

  Ended to_destination(const std::optional<Address>& address, std::optional<std::uint16_t> port, const char* how,
                       std::size_t place) {
    Endpoint to = packet_.now.destination;
    if (address) to = with_address(to, *address);
    if (port) to = with_port(to, *port);
    packet_.now.connection.destination = Translation{packet_.now.destination, to};
    say(place, Step::Kind::decided, [&] { return fmt::format("{} to {}", how, to.text()); });
    if (!packet_.original) packet_.original = packet_.now.destination;
    packet_.now.destination = to;
    return Ended::translated;
  }

  std::optional<Ended> apply(const Nat& nat, const LiveChain&, const LiveRule&, std::size_t place) {
    if (nat.addresses && nat.addresses->family() != packet_.family) {  // nft_nat_inet_eval
      say(place, Step::Kind::matched, [&] { return fmt::format("no effect: it is {}", name(packet_.family)); });
      return {};
    }
    const bool one_address = nat.addresses && nat.addresses->first == nat.addresses->last;
    const bool one_port = !nat.ports || nat.ports->first == nat.ports->last;
    if (nat.to == Nat::To::network) return to_network(nat, place);
    if (nat.end == End::source) return to_source(nat, one_address, one_port, place);
    const auto chosen = [&](const char* what) {
      return not_known(fmt::format("which {} the kernel chooses for", what), nat.words, "", place);
    };
    if (nat.addresses && !one_address) return chosen(one_port ? "address" : "address and port");
    std::optional<std::uint16_t> port;
    if (!takes_port(nat, port)) return chosen("port");
    if (is_own(nat)) return to_self(port, place);
    captured_by(place);
    const std::optional<Address> address = nat.addresses ? std::optional(nat.addresses->first) : std::nullopt;
    return to_destination(address, port, "translated", place);
  }

  // Finds the port that a destination gets (nf_nat_l4proto_unique_tuple); nothing: its own. False: it is the kernel's
  // choice, or follows from its own one in a way that is not told of all packets at once.
  bool takes_port(const Nat& nat, std::optional<std::uint16_t>& port) {
    if (!nat.ports) return true;
    const std::uint16_t first = nat.ports->first;
    const std::optional<std::uint16_t>& own = packet_.now.destination.port;
    if (first == nat.ports->last) {
      port = first;
      return true;
    }
    if (nat.base) {
      if (!own || packet_.now.observer != nullptr) return false;
      const auto offset = static_cast<std::uint16_t>(*own - *nat.base);
      port = static_cast<std::uint16_t>(first + offset % (nat.ports->last - first + 1));
      return true;
    }
    return !nat.random && holds_observed(PortMatch{End::destination, {*nat.ports}, false}, packet_.now);
  }

  // NETMAP, which moves an address for each address: those of all packets at once are not followed.
  Ended to_network(const Nat& nat, std::size_t place) {
    const AddressRange& to = *nat.addresses;
    const bool of_destination = at_ == Hook::prerouting || at_ == Hook::output;
    if (packet_.now.observer != nullptr && to.first != to.last)
      return not_known("which address follows from", nat.words, "", place);
    Address moved = (of_destination ? packet_.now.destination : packet_.now.source).address;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const auto hosts = static_cast<std::uint8_t>(to.first.bytes[i] ^ to.last.bytes[i]);
      moved.bytes[i] = static_cast<std::uint8_t>((moved.bytes[i] & hosts) | to.first.bytes[i]);
    }
    if (!of_destination) return to_source({End::source, AddressRange::single(moved), {}, {}}, true, true, place);
    captured_by(place);
    return to_destination(moved, {}, "translated", place);
  }

  // SNAT, MASQUERADE. Which of several addresses and ports the kernel takes is not known.
  Ended to_source(const Nat& nat, bool one_address, bool one_port, std::size_t place) {
    const bool keeps_address = !nat.addresses && !is_own(nat);
    Translation made{packet_.now.source, packet_.now.source,
                     one_address || (keeps_address && packet_.now.source_known)};
    if (one_address) made.after = with_address(made.after, nat.addresses->first);
    if (is_own(nat)) {  // masquerade
      const PacketAtHook& now = packet_.now;
      const Address& to = now.destination.address;
      const std::string in = now.in.empty() ? "lo" : now.in;
      RouteLookup way = route(pod_, {to, now.source.address, now.mark, now.own_bits, in, "", now.observer});
      if (way.kind != RouteLookup::Kind::unicast || way.device != now.out) way = {RouteLookup::Kind::unicast, now.out};
      if (const auto own = masquerading(pod_, way, to, now.observer)) {
        made.after = with_address(made.after, *own);
        made.after_known = true;
      }
    }
    if (nat.ports) {
      made.after = with_port(made.after, one_port ? std::optional(nat.ports->first) : std::nullopt);
      packet_.now.ephemeral_ports = *nat.ports;
    }
    say(place, Step::Kind::decided, [&] {
      return made.after_known ? fmt::format("its source is now {}", made.after.text())
                              : "the kernel chooses its source";
    });
    packet_.now.source = made.after;
    packet_.now.source_known = made.after_known;
    packet_.now.connection.source = made;
    return Ended::translated;
  }

  // Whose socket TPROXY finds for a later packet of a TCP connection: one that the packet's addresses, as they are at
  // this rule, belong to, or else the listener's (tproxy_tg4).
  enum class SocketFound : std::uint8_t { its_own, ordinary, listener };
  [[nodiscard]] SocketFound socket_of_later_packet(std::uint16_t port) const {
    const auto ordinary_if = [](bool is) { return is ? SocketFound::ordinary : SocketFound::its_own; };
    const bool of_source = packet_.now.connection.source && !packet_.source_decided;
    if (packet_.now.state == ConnectionState::reply) {
      // A socket that opened a connection with an address of the pod is an ordinary one.
      if (of_source && !packet_.by_lo) return SocketFound::listener;
      return ordinary_if(is_local(pod_, packet_.now.destination.address, packet_.now.observer));
    }
    const Outcome& first = *packet_.first;
    const bool of_destination = packet_.now.connection.destination && !packet_.destination_decided;
    if (of_source || of_destination || first.kind != Outcome::Kind::lands) return SocketFound::listener;
    if (first.transparent) return SocketFound::its_own;
    // TPROXY's own listener is transparent, however a connection came to it.
    return ordinary_if(!holds_observed(PortMatch{End::destination, {{port, port}}, false}, packet_.now));
  }

  // nf_tables' tproxy sets no verdict, but is written with the mark and accept after it.
  std::optional<Ended> apply(const Tproxy& tproxy, const LiveChain&, const LiveRule& entry, std::size_t place) {
    const bool is_later = packet_.now.state == ConnectionState::reply || packet_.first.has_value();
    if (is_later && is_of(Protocol::tcp, packet_.now)) {
      switch (socket_of_later_packet(tproxy.port)) {
        case SocketFound::its_own:
          break;
        case SocketFound::ordinary:
          if (traits(live_.backend).in_own_table && !entry.ours) {  // breaks off, as if it did not match
            say(place, Step::Kind::matched, "no effect: the socket of the connection is not transparent");
            return {};
          }
          return dropped(place, "dropped: the socket of the connection is not transparent");
        case SocketFound::listener:
          return dropped(place, fmt::format("dropped: the connection's socket has other addresses, and the listener on "
                                            "port {} resets it",
                                            tproxy.port));
      }
    }
    if (packet_.now.state == ConnectionState::reply && traits(live_.backend).in_own_table && !entry.ours &&
        is_of(Protocol::udp, packet_.now)) {  // for a connected socket that is not transparent it breaks off
      say(place, Step::Kind::unknown, "whether the socket that it answers is connected is unknown");
      captured_by(place);
      packet_.not_known(fmt::format("whether the socket that it answers is connected, which `{}` of {} leaves alone",
                                    iptables_words(entry.rule.target), rule_of(packet_.trace.steps[place])),
                        "whether a socket of udp is connected");
      return Ended::gone;
    }
    packet_.meets_state = true;
    captured_by(place);
    const bool has_socket = packet_.first.has_value() && is_of(Protocol::tcp, packet_.now);  // its connection's own
    if (!has_socket || packet_.first->transparent) {
      packet_.transparent = has_socket ? packet_.first->transparent_port : tproxy.port;
    }
    packet_.now.set_mark(tproxy.mark, tproxy.mask);
    packet_.now.owner_known = false;  // it has that socket now
    say(place, Step::Kind::decided, [&] {
      return has_socket ? fmt::format("given to the socket of its connection, marked {}", packet_.now.mark)
                        : fmt::format("given to the transparent listener on port {}, marked {}", tproxy.port,
                                      packet_.now.mark);
    });
    return Ended::accepted;
  }

  std::optional<Ended> apply(const SetMark& set, const LiveChain&, const LiveRule&, std::size_t place) {
    packet_.now.set_mark(set.mark, set.mask);
    packet_.marked.push_back(set);
    say(place, Step::Kind::matched, [&] { return fmt::format("marked {}", packet_.now.mark); });
    return {};
  }

  [[nodiscard]] bool has_connection() const { return packet_.now.tracked && packet_.now.connmark.has_value(); }
  // No match of a connection's mark would hold either, for the same reason.
  void say_without_connection(std::size_t place) {
    const LiveRule& rule = *packet_.trace.steps[place].live;
    const bool ends = packet_.now.native && reads_connmark(rule.rule.target);
    if (ends) ended_ = rule.handle;
    say(place, Step::Kind::matched,
        [&] { return (ends ? "the rule ends: " : "no effect: ") + why_not(ConnmarkMatch{}, packet_.now); });
  }

  std::optional<Ended> apply(Connmark connmark, const LiveChain&, const LiveRule&, std::size_t place) {
    if (!has_connection()) {
      say_without_connection(place);
    } else if (connmark.kind == Connmark::Kind::save) {
      if (packet_.now.observer != nullptr) packet_.now.observer->mark();
      packet_.meets_state = true;
      packet_.now.connmark = (*packet_.now.connmark & ~connmark.ctmask) ^ (packet_.now.mark & connmark.nfmask);
      say(place, Step::Kind::matched,
          [&] { return fmt::format("its connection is marked {}", *packet_.now.connmark); });
    } else {
      packet_.now.set_mark(*packet_.now.connmark & connmark.ctmask, connmark.nfmask);
      packet_.mark_restored = true;
      say(place, Step::Kind::matched, [&] { return fmt::format("marked {}, as its connection is", packet_.now.mark); });
    }
    return {};
  }

  std::optional<Ended> apply(const SetConnmark& set, const LiveChain&, const LiveRule&, std::size_t place) {
    if (!has_connection()) {
      say_without_connection(place);
    } else {
      packet_.meets_state = true;
      packet_.now.connmark = (*packet_.now.connmark & ~set.mask) ^ set.mark;
      say(place, Step::Kind::matched,
          [&] { return fmt::format("its connection is marked {}", *packet_.now.connmark); });
    }
    return {};
  }

  std::optional<Ended> apply(const Notrack&, const LiveChain&, const LiveRule&, std::size_t place) {
    if (packet_.now.tracked || packet_.zone) {  // a zone is that of a template, which decides as well
      say(place, Step::Kind::matched, "no effect: it is tracked already");
    } else {
      packet_.now.untracked = true;
      packet_.left_alone.push_back(place);  // by all that needs its connection, as address translation does
      say(place, Step::Kind::matched, "exempt from connection tracking");
    }
    return {};
  }

  // The first one decides (xt_ct_target, nft_ct_set_zone_eval), and none does once the packet is tracked.
  std::optional<Ended> apply(const CtZone& zone, const LiveChain&, const LiveRule&, std::size_t place) {
    if (packet_.now.tracked) {
      say(place, Step::Kind::matched, "no effect: it is tracked already");
    } else if (packet_.now.untracked) {
      say(place, Step::Kind::matched, "no effect: it is exempt from connection tracking");
    } else if (packet_.zone) {
      say(place, Step::Kind::matched, [&] { return fmt::format("no effect: its zone is {} already", *packet_.zone); });
    } else {
      packet_.zone = zone.zone;
      packet_.zoned = {place};
      say(place, Step::Kind::matched, [&] { return fmt::format("tracked in zone {}", zone.zone); });
    }
    return {};
  }

  std::optional<Ended> apply(const NonTerminating&, const LiveChain&, const LiveRule&, std::size_t place) {
    say(place, Step::Kind::matched, "goes on");
    return {};
  }

  std::optional<Ended> apply(const UnknownTarget& target, const LiveChain&, const LiveRule&, std::size_t place) {
    return not_known("what", target.words, " does", place);
  }

  // `before` and `after` the words of the rule: "which port the kernel chooses for"
  Ended not_known(const std::string& before, const std::string& words, const char* after, std::size_t place) {
    say(place, Step::Kind::unknown, "what becomes of the packet then is unknown");
    captured_by(place);
    packet_.not_known(
        fmt::format("{} `{}` of {}{}", before, in_short(words), rule_of(packet_.trace.steps[place]), after),
        fmt::format("`{}`", words));
    return Ended::gone;
  }

  // Others' filters accept nearly everything: that is no reason.
  void left_alone_by(const LiveChain& in, std::size_t place) {
    if (in.table <= Table::nat) packet_.left_alone.push_back(place);
  }

  // The rule at `place`, and the jump that led to its chain.
  void captured_by(std::size_t place) {
    packet_.capture.clear();
    if (!jumps_.empty()) packet_.capture.push_back(jumps_.back());
    packet_.capture.push_back(place);
  }

  WalkState& packet_;
  const PodView& pod_;
  const Live& live_;
  const LiveChain& base_;
  const Hook at_;
  ChainIndex& chains_;
  Forks& forks_;
  const ChainPath* path_ = nullptr;  // known to the observer, up to an unknown rule
  std::size_t met_ = 0;              // rules of it
  bool accepts_ = false;             // the packet, after the last one
  struct Leap {
    std::size_t from, to;
  };
  std::vector<Leap> leaps_;  // over rules of the path that are not met
  std::size_t most_rules_ = 0;
  std::vector<const Match*> failing_;                       // of the rule that is looked at
  std::size_t walked_ = 0;                                  // rules, of all chains
  std::size_t changes_ = 0;                                 // of the packet, by rules
  std::uint64_t ended_ = 0;                                 // the handle of a rule that ends before its other parts
  std::map<const LiveChain*, std::size_t> without_effect_;  // chains that came back, and `changes_` then
  std::vector<std::size_t> jumps_;                          // the steps that led to the chain being walked
  std::vector<const LiveRule*> entries_;                    // and their rules
};

}  // namespace

void name_chain(Step& step) {
  step.table = table_words(*step.in);
  step.chain = step.in->name;
}

bool holds_observed(const Match& match, const PacketAtHook& packet) {
  const bool is = holds(match, packet);
  const Match* const asked = &match;
  if (packet.observer != nullptr && is) packet.observer->match(match, packet);
  if (packet.observer != nullptr && !is) packet.observer->no_match({&asked, 1}, packet);
  return is;
}

bool is_of(Protocol protocol, const PacketAtHook& packet) {
  return holds_observed(ProtocolMatch{protocol, false}, packet);
}

Truth truth_of(const LiveRule& entry, const Match& match, const PacketAtHook& packet, const Live& live) {
  const auto* owner = std::get_if<OwnerMatch>(&match);
  const bool may_be_native = !entry.ours && live.backend == BackendKind::iptables_nft;
  if (owner != nullptr && owner->negated && !packet.owner && may_be_native) return Truth::unknown;
  return truth(match, packet);
}

namespace {

bool tells_later_packets(const Match& match, const PacketAtHook& packet) {
  if ((reads(match) & facts::flags) != 0) return true;
  if ((reads(match) & facts::socket) != 0) return !packet.owner && packet.out.empty();
  const auto* connection = std::get_if<ConnectionMatch>(&match);
  if (connection != nullptr) return connection->reply || connection->of == ConnectionMatch::Of::status;
  const auto* state = std::get_if<ConntrackStateMatch>(&match);
  if (state == nullptr) return false;
  const auto has = [&](ConntrackStateMatch::State one) { return (state->states & one) != 0; };
  return has(ConntrackStateMatch::new_) != has(ConntrackStateMatch::established) || has(ConntrackStateMatch::snat) ||
         has(ConntrackStateMatch::dnat);
}

}  // namespace

bool tells_later_packets(std::span<const Match> matches, const PacketAtHook& packet) {
  return std::ranges::any_of(matches, [&](const Match& match) { return tells_later_packets(match, packet); });
}

std::string BaseChain::name() const { return fmt::format("{} {}", table_words(*chain), chain->name); }

ChainResult walk_chain(WalkState& packet, const PodView& pod, const BaseChain& base, ChainIndex& chains, Forks& forks) {
  return RuleWalk(packet, pod, base, chains, forks).run();
}

}  // namespace sidetrack
