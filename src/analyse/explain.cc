// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyse/hook.h"
#include "analyse/match.h"
#include "analyse/route.h"
#include "sidetrack/describe.h"
#include "sidetrack/error.h"
#include "sidetrack/ports.h"
#include "sidetrack/render.h"

namespace sidetrack {
namespace {

// The interface by which a packet from outside comes in: that of its destination, else the one of the default route.
std::string entrance(const PodView& pod, const Address& destination) {
  if (const auto name = interface_of(pod, destination)) return *name;
  const bool ipv4 = destination.family == Family::ipv4;
  const auto anywhere = AddressRange::parse(ipv4 ? "0.0.0.0/0" : "::/0");
  const auto found = std::ranges::find(pod.routes, anywhere, [](const NetworkRoute& r) { return std::optional(r.to); });
  return found != pod.routes.end() ? found->device : pod.interfaces.back().name;
}

// The packet with everything filled in that the kernel, or the network, would have chosen.
Packet filled_in(Packet packet, const PodView& pod) {
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ExitCode::usage, what, hint);
  };
  if (!packet.destination) {
    const Families families = packet.source ? Families(packet.source->family) : Families::both();
    if (packet.way == Way::lo) {
      packet.destination = Address::parse(families.contains(Family::ipv4) ? "127.0.0.1" : "::1");
    } else if (const auto own = own_address(pod, families)) {
      packet.destination = own->address;
    } else {
      refuse(fmt::format("this pod has no {}address that the packet could be for",
                         packet.source ? fmt::format("{} ", name(packet.source->family)) : ""),
             "give the destination's address");
    }
  }
  const Address& destination = *packet.destination;
  if (packet.protocol == Protocol::icmp && destination.family == Family::ipv6) packet.protocol = Protocol::icmpv6;
  if (packet.way == Way::lo && !is_local(pod, destination)) {
    refuse(fmt::format("{} is not an address of this pod: expected one of its own for 'lo'", destination.text()),
           "what goes to another host is 'out'");
  }
  if (packet.way == Way::in) {
    if (packet.interface.empty()) packet.interface = entrance(pod, destination);
    if (packet.interface == "lo") refuse("--in-interface 'lo': nothing comes in by lo from outside", "use 'lo'");
  }
  if (!packet.interface.empty()) {
    std::string names;
    for (const Interface& interface : pod.interfaces) names += (names.empty() ? "" : ", ") + interface.name;
    if (std::ranges::find(pod.interfaces, packet.interface, &Interface::name) == pod.interfaces.end()) {
      refuse(fmt::format("--{}-interface '{}': this pod has no such interface, it has {}",
                         packet.way == Way::in ? "in" : "out", packet.interface, names),
             "give one of them, or leave it out");
    }
  }
  if (!packet.source && packet.way == Way::in) {  // addresses for documentation stand for anybody outside
    packet.source = Address::parse(destination.family == Family::ipv4 ? "203.0.113.1" : "2001:db8:ffff::1");
  }
  if (!packet.source) {
    if (const auto found = route(pod, destination, packet.mark, packet.interface)) {
      packet.source = source_for(pod, *found, destination);
    }
  }
  if (!packet.source) packet.source = Address{destination.family, {}};
  return packet;
}

// Targets of xt that look at a packet or change what no rule of a mesh asks for, and go on.
bool goes_on(const std::string& target) {
  static constexpr std::string_view names[] = {"LOG",  "NFLOG", "TRACE",   "AUDIT",     "CLASSIFY",   "TOS",
                                               "DSCP", "TTL",   "HL",      "TCPMSS",    "CHECKSUM",   "SECMARK",
                                               "LED",  "ECN",   "RATEEST", "IDLETIMER", "CONNSECMARK"};
  if (target.empty()) return true;
  return std::ranges::any_of(names, [&](std::string_view known) {
    return target == fmt::format("-j {}", known) || target.starts_with(fmt::format("-j {} ", known));
  });
}

bool changes_source(const std::string& target) {
  return target.starts_with("-j MASQUERADE") || target.starts_with("-j SNAT");
}

constexpr unsigned deepest = 16;  // NFT_JUMP_STACK_SIZE; xt counts its jumps when rules are loaded

class Walk {
 public:
  Walk(const Packet& packet, const PodView& pod, std::span<const Live* const> live)
      : pod_(pod), live_(live), packet_(filled_in(packet, pod)) {}

  Trace run() {
    trace_.packet = packet_;
    now_.protocol = packet_.protocol;
    now_.source = {*packet_.source, packet_.source_port};
    now_.destination = {*packet_.destination, packet_.destination_port};
    now_.mark = packet_.mark;
    now_.owner = packet_.owner;
    now_.state = packet_.state;
    if (packet_.state != ConnectionState::invalid) now_.connmark = packet_.connmark.value_or(0);
    if (packet_.state == ConnectionState::established) first_packet();
    if (packet_.way == Way::in) {
      now_.in = packet_.interface;
      prerouting();
    } else {
      output();
    }
    trace_.decisive = capture_.empty() ? left_alone_ : capture_;
    return std::move(trace_);
  }

  // Nothing if the answers to what has left by `ending` come back to where the packet came from; else what becomes of
  // them. They meet the rules as packets of a connection that is known: TPROXY's take them for the proxy's own.
  [[nodiscard]] std::string lost_answers(const Ending& ending) const {
    const bool forwarded = ending.kind == Ending::Kind::forwarded;
    if ((!forwarded && ending.kind != Ending::Kind::leaves) || packet_.state != ConnectionState::new_) return "";
    Packet answer;
    answer.way = Way::in;
    answer.protocol = packet_.protocol;
    answer.source = ending.at.address;
    answer.source_port = ending.at.port;
    answer.destination = packet_.source;
    answer.destination_port = packet_.source_port;
    answer.interface = ending.interface;
    answer.state = ConnectionState::reply;
    answer.connmark = now_.connmark;
    const Trace back = Walk(answer, pod_, live_).run();
    if (back.ending.kind == (forwarded ? Ending::Kind::forwarded : Ending::Kind::lands)) return "";
    std::string by;
    if (!back.decisive.empty()) {
      const Step& step = back.steps[back.decisive.back()];
      by = fmt::format(", by rule {} of {} {}", step.number, name(step.table), step.chain);
    }
    return back.ending.kind == Ending::Kind::lands ? "they are kept in the pod" + by : sentence(back.ending);
  }

 private:
  // How the walk of a chain ends.
  enum class Ended : std::uint8_t { back, accepted, translated, dropped };

  // ---- The way of the packet

  // What its first packet made of the connection: an established one is not decided about again.
  void first_packet() {
    Packet first = packet_;
    first.state = ConnectionState::new_;
    Walk walk(first, pod_, live_);
    const Trace trace = walk.run();
    first_ = trace.ending;
    translation_ = walk.translation_;
    if (!trace.decisive.empty()) {
      const Step& step = trace.steps[trace.decisive.back()];
      translated_by_ = fmt::format(", by rule {} of {} {}", step.number, name(step.table), step.chain);
    }
    if (!packet_.connmark) now_.connmark = walk.now_.connmark;
    if (first_->kind == Ending::Kind::dropped) {
      doubt("the first packet of such a connection is dropped: there is none, if the rules were the same then");
    }
  }

  void output() {
    auto way = route(pod_, now_.destination.address, now_.mark, packet_.interface);
    if (!way) {
      trace_.ending.kind = Ending::Kind::unroutable;
      trace_.ending.at = now_.destination;
      trace_.ending.why = fmt::format("no route to {}", now_.destination.address.text());
      return;
    }
    now_.out = way->device;  // for the whole of OUTPUT: a new route changes it only behind the hook (nf_hook_state)
    hook(fmt::format("OUTPUT, out by {}{}", way->device, why(*way)));
    if (!tables(Hook::output, Table::raw)) return;
    conntrack();
    const std::uint32_t mark = now_.mark;
    if (!tables(Hook::output, Table::mangle)) return;
    if (now_.mark != mark) reroute(way, fmt::format("the mark is now {}", now_.mark));
    const Address before = now_.destination.address;
    if (!nat(Hook::output)) return;
    if (now_.destination.address != before) reroute(way, "the destination is another");
    if (!way) return;
    if (!postrouting(way->device)) return;
    if (way->device == "lo") {
      by_lo_ = true;
      now_.in = "lo";
      now_.out.clear();
      now_.owner.reset();
      prerouting();
    } else {
      trace_.ending.kind = Ending::Kind::leaves;
      trace_.ending.at = now_.destination;
      trace_.ending.interface = way->device;
    }
  }

  // ip_route_me_harder
  void reroute(std::optional<Route>& way, const std::string& because) {
    way = route(pod_, now_.destination.address, now_.mark, packet_.interface);
    if (!way) {
      drop(fmt::format("{}, and there is no route to {}", because, now_.destination.address.text()));
      return;
    }
    kernel(fmt::format("routing again, as {}: out by {}{}", because, way->device, why(*way)));
  }

  static std::string why(const Route& way) {
    switch (way.kind) {
      case Route::Kind::local:
        return ": the destination is the pod itself";
      case Route::Kind::by_mark:
        return fmt::format(": fwmark {} looks up table {}, local default dev lo", way.rule->mark, way.rule->table);
      case Route::Kind::onward:
        return "";
    }
    return "";
  }

  void prerouting() {
    hook(fmt::format("PREROUTING, in by {}", now_.in));
    const bool loopback = now_.destination.address.is_loopback() || now_.source.address.is_loopback();
    if (!by_lo_ && loopback && now_.destination.address.family == Family::ipv6) {  // ip6_rcv_core, before any hook
      return drop("loopback addresses do not come in by " + now_.in);
    }
    if (!tables(Hook::prerouting, Table::raw)) return;
    conntrack();
    if (!tables(Hook::prerouting, Table::mangle)) return;
    if (!nat(Hook::prerouting)) return;
    routing();
  }

  void routing() {
    // What went out by lo brings its route along (ip_rcv_finish_core finds a valid dst): it stays here.
    if (by_lo_) return input();
    const Address& destination = now_.destination.address;
    if (destination.family == Family::ipv4 &&
        (destination.is_loopback() || now_.source.address.is_loopback() || is_local(pod_, now_.source.address))) {
      const Address& martian = destination.is_loopback() ? destination : now_.source.address;
      return drop(fmt::format("{} cannot come in by {} (martian)", martian.text(), now_.in));
    }
    const auto way = route(pod_, destination, now_.mark, "");
    if (way && way->stays()) {
      kernel(fmt::format("routing: stays here{}", why(*way)));
      return input();
    }
    kernel(fmt::format("routing: {} is not the pod's", destination.text()));
    if (transparent_)
      return drop("a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here");
    if (!way) return drop(fmt::format("there is no route to {}", destination.text()));
    hook(fmt::format("FORWARD, in by {}, out by {}", now_.in, way->device));
    now_.out = way->device;
    if (!tables(Hook::forward, Table::mangle) || !postrouting(way->device)) return;
    trace_.ending.kind = Ending::Kind::forwarded;
    trace_.ending.at = now_.destination;
    trace_.ending.interface = way->device;
  }

  bool postrouting(const std::string& device) {
    now_.out = device;
    if (!has_rules(Hook::postrouting)) {
      source_decided_ = true;
      return true;
    }
    hook(fmt::format("POSTROUTING, out by {}", device));
    return tables(Hook::postrouting, Table::mangle) && nat(Hook::postrouting);
  }

  void input() {
    if (has_rules(Hook::input)) {
      hook(fmt::format("INPUT, in by {}", now_.in));
      if (!tables(Hook::input, Table::mangle) || !nat(Hook::input)) return;
    }
    land();
  }

  void land() {
    Ending& ending = trace_.ending;
    ending.kind = Ending::Kind::lands;
    ending.at = now_.destination;
    ending.original = original_;
    if (transparent_) {
      ending.transparent = true;
      ending.transparent_port = *transparent_;
      ending.listener = listener_of(*transparent_);
    } else if (first_ && first_->transparent) {
      ending = *first_;  // its socket is found by the connection's addresses, which TPROXY did not change
    } else if (now_.protocol == Protocol::icmp || now_.protocol == Protocol::icmpv6) {
      ending.listener = "the kernel";
    } else if (now_.state == ConnectionState::reply) {
      ending.listener = "the socket that opened the connection";
    } else {
      ending.listener = listener_of(now_.destination.port);
    }
  }

  // By its number, or else by the chain that sent the packet there.
  [[nodiscard]] std::string listener_of(std::uint16_t port) const {
    if (!port_name(port).empty()) return std::string(port_name(port));
    if (capture_.empty()) return original_ ? "" : "the app";
    const std::string& chain = trace_.steps[capture_.back()].chain;
    if (chain == "ISTIO_REDIRECT" || chain == "istio-redirect") return "the proxy's outbound listener";
    if (chain.starts_with("ISTIO_") || chain.starts_with("istio-")) return "the proxy's inbound listener";
    return "";
  }

  // ---- What the kernel does beside the rules

  void conntrack() {
    if (by_lo_ && tracked_) {
      kernel("conntrack: knows the packet already, from OUTPUT");
      return;
    }
    switch (now_.state) {
      case ConnectionState::new_:
        kernel(fmt::format("conntrack: a new connection{}", zone_ ? fmt::format(", in zone {}", *zone_) : ""));
        break;
      case ConnectionState::established:
        kernel("conntrack: a connection that it knows");
        break;
      case ConnectionState::reply:
        kernel("conntrack: the answer of a connection that it knows");
        break;
      case ConnectionState::invalid:
        kernel("conntrack: of no connection that it knows");
        return;
    }
    tracked_ = true;
  }

  // The nat tables. They are asked once in a connection's life: for the destination in PREROUTING or OUTPUT, for the
  // source in INPUT or POSTROUTING (nf_nat_inet_fn). The first one that translates ends the search; ACCEPT does not.
  bool nat(Hook at) {
    const bool of_destination = at == Hook::output || at == Hook::prerouting;
    bool& decided = of_destination ? destination_decided_ : source_decided_;
    const bool silent = !has_rules(at, Table::nat);
    const auto not_asked = [&](const char* because) {
      if (!silent) kernel(fmt::format("nat {} is not asked: {}", name(at), because));
      return true;
    };
    switch (now_.state) {
      case ConnectionState::invalid:
        return not_asked("without a connection there is nothing to translate");
      case ConnectionState::reply:
        return not_asked("only the first packet of a connection is decided about");
      case ConnectionState::established:
        not_asked("only the first packet of a connection is decided about");
        if (of_destination && !decided && translation_) translate(*translation_);
        decided = true;
        return true;
      case ConnectionState::new_:
        break;
    }
    if (decided) return not_asked("the connection was decided about on the way out");
    decided = true;
    return tables(at, Table::nat);
  }

  // An established connection's destination.
  void translate(const Endpoint& to) {
    original_ = now_.destination;
    now_.destination = to;
    kernel(fmt::format("redirected to {}, as the first packet was{}", to.text(), translated_by_));
  }

  // ---- The rules

  // All base chains of one table at a hook. False: the packet is gone.
  bool tables(Hook at, Table table) {
    for (const Live* live : live_) {
      now_.native = live->backend == BackendKind::nftables;
      for (const LiveChain& base : live->chains) {
        if (base.table != table || !base.families.contains(family()) || hook_of(base.name) != at) continue;
        jumps_.clear();
        const Ended ended = chain(*live, base, at, 0);
        if (ended == Ended::dropped) return false;
        if (ended == Ended::translated) return true;
      }
    }
    return true;
  }

  Ended chain(const Live& live, const LiveChain& in, Hook at, unsigned depth) {
    unsigned number = 0;
    for (const LiveRule& entry : in.rules) {
      const Rule& rule = entry.rule;
      ++number;
      if (!rule.families.contains(family())) continue;
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
        trace_.steps.push_back(std::move(step));
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
      } else if (auto failed = why_not(match, now_)) {
        return failed;
      }
    }
    if (unknown == nullptr) return {};
    doubt(fmt::format("whether `{}` of a rule in {} {} holds is not known: taken as not", iptables_words(*unknown),
                      name(rule.table), rule.chain));
    return why_not(*unknown, now_);
  }

  // What the target of a rule that matches does. Nothing: the next rule of the chain is looked at.
  std::optional<Ended> take(const Live& live, const Rule& rule, Hook at, Step step) {
    const std::size_t place = trace_.steps.size();
    trace_.steps.push_back(std::move(step));
    const auto say = [&](Step::Kind kind, std::string what) {
      trace_.steps[place].kind = kind;
      trace_.steps[place].text = std::move(what);
    };
    return std::visit([&](const auto& target) { return apply(target, live, rule, at, place, say); }, rule.target);
  }

  template <typename Say>
  std::optional<Ended> apply(const Jump& jump, const Live& live, const Rule& rule, Hook at, std::size_t place,
                             const Say& say) {
    say(Step::Kind::matched, fmt::format("on to {}", jump.chain));
    const Ended ended = enter(jump.chain, live, rule, at, place);
    if (ended == Ended::back) return {};
    return ended;
  }

  // A chain that is jumped to. One without rules, in a plan, is not there.
  Ended enter(const std::string& name_of, const Live& live, const Rule& rule, Hook at, std::size_t place) {
    const auto target = std::ranges::find_if(live.chains, [&](const LiveChain& other) {
      return other.name == name_of && other.table == rule.table && other.families.contains(family());
    });
    if (target == live.chains.end()) return Ended::back;
    if (jumps_.size() >= deepest) {
      doubt("jumps nested deeper than the kernel allows are not followed");
      return Ended::back;
    }
    jumps_.push_back(place);
    const Ended ended = chain(live, *target, at, static_cast<unsigned>(jumps_.size()));
    jumps_.pop_back();
    return ended;
  }

  template <typename Say>
  std::optional<Ended> apply(Verdict verdict, const Live&, const Rule&, Hook, std::size_t place, const Say& say) {
    switch (verdict) {
      case Verdict::accept:
        say(Step::Kind::decided, "accepted: no further rule of this table is looked at");
        left_alone_.push_back(place);
        return Ended::accepted;
      case Verdict::return_:
        say(Step::Kind::decided, jumps_.empty() ? "no further rule of this chain is looked at"
                                                : fmt::format("back to {}", trace_.steps[jumps_.back()].chain));
        left_alone_.push_back(place);
        return Ended::back;
      case Verdict::drop:
        say(Step::Kind::decided, "dropped");
        captured_by(place);
        drop(fmt::format("by rule {} of {} {}", trace_.steps[place].number, name(trace_.steps[place].table),
                         trace_.steps[place].chain));
        return Ended::dropped;
    }
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const Redirect& redirect, const Live&, const Rule&, Hook at, std::size_t place,
                             const Say& say) {
    captured_by(place);
    const Family of = family();
    std::optional<Address> to = Address::parse(of == Family::ipv4 ? "127.0.0.1" : "::1");
    if (at == Hook::prerouting) to = redirect_address(pod_, now_.in, now_.destination.address);
    if (!to) {
      say(Step::Kind::decided, "dropped");
      drop(fmt::format("REDIRECT needs an {} address of {}, and it has none", name(of), now_.in));
      return Ended::dropped;
    }
    translation_ = Endpoint{*to, redirect.port};
    say(Step::Kind::decided, fmt::format("redirected to {}", translation_->text()));
    if (!original_) original_ = now_.destination;
    now_.destination = *translation_;
    return Ended::translated;
  }

  // nf_tables' tproxy sets no verdict, but is written with the mark and accept behind it.
  template <typename Say>
  std::optional<Ended> apply(const Tproxy& tproxy, const Live&, const Rule&, Hook, std::size_t place, const Say& say) {
    captured_by(place);
    transparent_ = tproxy.port;
    now_.mark = (now_.mark & ~tproxy.mask) ^ tproxy.mark;
    say(Step::Kind::decided,
        fmt::format("given to the transparent listener on port {}, marked {}", tproxy.port, now_.mark));
    return Ended::accepted;
  }

  template <typename Say>
  std::optional<Ended> apply(const SetMark& set, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    now_.mark = set.mark;
    say(Step::Kind::matched, fmt::format("marked {}", set.mark));
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(Connmark connmark, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    if (!now_.connmark) {
      say(Step::Kind::matched, "no effect: it belongs to no known connection");
    } else if (connmark == Connmark::save) {
      now_.connmark = now_.mark;
      say(Step::Kind::matched, fmt::format("its connection is marked {}", now_.mark));
    } else {
      now_.mark = *now_.connmark;
      say(Step::Kind::matched, fmt::format("marked {}, as its connection is", now_.mark));
    }
    return {};
  }

  // The first one decides (xt_ct_target, nft_ct_set_zone_eval), and none does once the packet is tracked.
  template <typename Say>
  std::optional<Ended> apply(const CtZone& zone, const Live&, const Rule&, Hook, std::size_t, const Say& say) {
    if (tracked_) {
      say(Step::Kind::matched, "no effect: it is tracked already");
    } else if (zone_) {
      say(Step::Kind::matched, fmt::format("no effect: its zone is {} already", *zone_));
    } else {
      zone_ = zone.zone;
      say(Step::Kind::matched, fmt::format("to be tracked in zone {}", zone.zone));
    }
    return {};
  }

  template <typename Say>
  std::optional<Ended> apply(const UnknownTarget& target, const Live& live, const Rule& rule, Hook at,
                             std::size_t place, const Say& say) {
    if (target.words.starts_with("-g ")) {  // as a jump, but RETURN there ends this chain, too
      const std::string chain_name = target.words.substr(3);
      say(Step::Kind::matched, fmt::format("on to {}", chain_name));
      return enter(chain_name, live, rule, at, place);
    }
    if (changes_source(target.words)) {
      say(Step::Kind::decided, "its source is translated");
      return Ended::translated;
    }
    if (goes_on(target.words)) {
      say(Step::Kind::matched, "goes on");
      return {};
    }
    say(Step::Kind::matched, "what this does is not known");
    doubt(fmt::format("what `{}` of a rule in {} {} does is not known: taken as nothing", target.words,
                      name(rule.table), rule.chain));
    return {};
  }

  // ---- Notes

  void hook(std::string what) { note(Step::Kind::hook, std::move(what)); }
  void kernel(std::string what) { note(Step::Kind::kernel, std::move(what)); }
  void note(Step::Kind kind, std::string what) {
    Step step;
    step.kind = kind;
    step.text = std::move(what);
    trace_.steps.push_back(std::move(step));
  }

  void doubt(const std::string& what) {
    if (std::ranges::find(trace_.doubts, what) == trace_.doubts.end()) trace_.doubts.push_back(what);
  }

  void drop(std::string why) {
    trace_.ending.kind = Ending::Kind::dropped;
    trace_.ending.at = now_.destination;
    trace_.ending.why = std::move(why);
  }

  // The rule at `place`, and the jump that led to its chain.
  void captured_by(std::size_t place) {
    capture_.clear();
    if (!jumps_.empty()) capture_.push_back(jumps_.back());
    capture_.push_back(place);
  }

  [[nodiscard]] bool has_rules(Hook at, std::optional<Table> table = {}) const {
    return std::ranges::any_of(live_, [&](const Live* live) {
      return std::ranges::any_of(live->chains, [&](const LiveChain& chain) {
        return hook_of(chain.name) == at && (!table || chain.table == *table) && chain.families.contains(family()) &&
               !chain.rules.empty();
      });
    });
  }

  [[nodiscard]] Family family() const { return packet_.destination->family; }

  const PodView& pod_;
  std::span<const Live* const> live_;
  Packet packet_;

  PacketAtHook now_;
  bool by_lo_ = false;    // it went out by lo and came in again
  bool tracked_ = false;  // conntrack has seen it
  std::optional<std::uint16_t> zone_;
  bool destination_decided_ = false;  // by nat, for its connection
  bool source_decided_ = false;
  std::optional<Endpoint> translation_;       // of the connection's destination
  std::optional<Endpoint> original_;          // the destination before it
  std::optional<std::uint16_t> transparent_;  // the port of the socket that TPROXY chose
  std::string translated_by_;                 // if the connection is established
  std::optional<Ending> first_;               // of the connection's first packet, if this one is a later one

  std::vector<std::size_t> jumps_;       // the steps that led to the chain being walked
  std::vector<std::size_t> capture_;     // the steps that took the packet
  std::vector<std::size_t> left_alone_;  // RETURN and ACCEPT
  Trace trace_;
};

}  // namespace

Trace explain(const Packet& packet, const PodView& pod, std::span<const Live> live) {
  std::vector<const Live*> order;
  for (const Live& one : live) order.push_back(&one);
  Walk walk(packet, pod, order);
  Trace trace = walk.run();
  trace.ending.answers = walk.lost_answers(trace.ending);

  std::vector<Ending> endings{trace.ending};
  std::vector<const Live*> other = order;
  std::ranges::sort(other);
  do {
    Walk again(packet, pod, other);
    Ending ending = again.run().ending;
    ending.answers = again.lost_answers(ending);
    if (std::ranges::find(endings, ending) != endings.end()) continue;
    endings.push_back(ending);
    std::string names;
    for (const Live* one : other) names += fmt::format("{}{}", names.empty() ? "" : " before ", name(one->backend));
    trace.doubts.push_back(
        fmt::format("several backends hold rules, and which the kernel asks first cannot be seen; if {}: {}", names,
                    sentence(ending)));
  } while (std::ranges::next_permutation(other).found);
  return trace;
}

std::string sentence(const Ending& ending) {
  const std::string at = ending.at.text();
  const std::string untouched = ending.original ? "" : ", untouched";
  const std::string who = ending.listener.empty() ? "" : fmt::format(" ({})", ending.listener);
  const std::string original = ending.original ? fmt::format("; original destination {}", ending.original->text()) : "";
  const std::string answers = ending.answers.empty() ? "" : "; its answers are lost: " + ending.answers;
  switch (ending.kind) {
    case Ending::Kind::lands:
      if (ending.transparent) {
        return fmt::format("lands on port {}{} by TPROXY; original destination {}", ending.transparent_port, who, at);
      }
      return fmt::format("lands on {}{}{}{}", at, who, original, untouched);
    case Ending::Kind::leaves:
      return fmt::format("leaves the pod by {} to {}{}{}{}", ending.interface, at, original, untouched, answers);
    case Ending::Kind::forwarded:
      return fmt::format("is not for this pod: goes on by {} to {} if the pod forwards, else it is dropped{}",
                         ending.interface, at, answers);
    case Ending::Kind::dropped:
      return fmt::format("dropped: {}", ending.why);
    case Ending::Kind::unroutable:
      return fmt::format("never sent: {}", ending.why);
  }
  return "";
}

}  // namespace sidetrack
