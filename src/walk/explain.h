// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel does with one packet, and which rule is the reason. Pure functions: the rules and the pod are given.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/catalogue.h"
#include "mesh/plan.h"
#include "model/address.h"
#include "model/packet.h"
#include "options/options.h"
#include "pod/pod_view.h"
#include "pod/routing.h"
#include "rule/live.h"
#include "rule/ruleset.h"

namespace sidetrack {

class Observer;
class FamilyRules;

// The packet of the command line: `out tcp 10.96.0.10:443`, `in tcp :8080`, `out udp [fd00::1]:53`, `lo tcp :8080`,
// `out icmp 10.0.0.1`. Strict: throws usage, naming the value and what was expected.
[[nodiscard]] Packet parse_packet(const PacketOptions& options);
// The same the other way round: what stands after `sidetrack explain`.
[[nodiscard]] std::string explain_words(const Packet& packet);
// The packet that these words ask about. Nothing: they ask about none.
[[nodiscard]] std::optional<Packet> as_asked(const Packet& packet);

// The rules of a plan as a backend holds them: -I resolved; iptables keeps the families apart, nftables folds lists.
[[nodiscard]] Live as_live(const Ruleset& ruleset, BackendKind backend);

// ---- The answer

// One thing that happens to the packet, in order.
struct Step {
  enum class Kind : std::uint8_t {
    hook,     // it comes to a hook
    kernel,   // what the kernel does beside the rules: conntrack, routing, address translation
    passed,   // a rule that does not match
    unknown,  // a rule of which it is not known whether it matches, or what it does
    matched,  // a rule that matches, and the walk goes on: a jump, a mark
    decided,  // a rule that matches and ends the walk of its chain or table
  };
  Kind kind = Kind::kernel;
  std::string text;  // hook, kernel: what happens; passed: why it does not match; else what the rule does

  // Of a rule:
  BackendKind backend = BackendKind::iptables_legacy;
  std::string table;  // as its tool names it: "nat", "inet filter"
  std::string chain;
  unsigned number = 0;             // in its chain, counted from 1; 0: the policy of the chain
  unsigned depth = 0;              // of jumps; 0: in a built-in chain
  const LiveRule* live = nullptr;  // the rule, in what explain() was given; nullptr: a policy
  const LiveChain* in = nullptr;   // its chain, there
  std::string rule;                // "-d 127.0.0.1/32 -j RETURN"; of a policy "DROP"
  Reason reason;                   // why the rule is there, as far as its shape tells
};

// Fills in the names of the table and the chain: steps of possibilities() have none.
void name_chain(Step& step);

// "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN", "-P OUTPUT DROP"; empty if it is no rule.
[[nodiscard]] std::string iptables_words(const Step& step);

// Where the packet ends.
// Says what the source of a packet was translated to.
struct NewSource {
  std::optional<Address> address;  // nothing: one of several, and the kernel chooses

  [[nodiscard]] std::string text() const { return address ? address->text() : "an address that the kernel chooses"; }
  friend bool operator==(const NewSource&, const NewSource&) = default;
};

struct Outcome {
  // What becomes of the answers of what takes it.
  enum class Answers : std::uint8_t {
    arrive,
    lost,
    unknown,
  };
  enum class Kind : std::uint8_t {
    lands,      // in this pod, at `at`
    leaves,     // the pod by `interface`, for `at`
    forwarded,  // not for this pod: goes on by `interface` to `at` if the pod forwards, else it is dropped
    dropped,
    unroutable,  // never sent: there is no route
    unknown,
  };
  Kind kind = Kind::lands;
  Endpoint at;
  std::string interface;
  std::vector<std::string> other_interfaces;  // that its connection may get instead, by a route with several next hops
  std::string listener;                       // lands: who has that port: "Envoy outbound", "the app"
  std::optional<Endpoint> original;           // SO_ORIGINAL_DST, if the destination was translated
  std::optional<NewSource> source;            // lands, leaves, forwarded: from where, if that was translated
  bool transparent = false;  // lands: by TPROXY at `port`; `at` is what the socket sees as its own address
  std::uint16_t transparent_port = 0;
  std::string why;  // dropped, unroutable; lands, if not where TPROXY sent it; unknown: the rule that is the reason,
                    // and what else may happen
  std::string subject;  // unknown: what it is about, whichever packet: "`-j CUSTOM`", "a route that is not followed"
  Answers answers = Answers::arrive;  // lands, leaves, forwarded
  std::string answers_why;            // unless they arrive

  // Tells whether it arrives at a socket, here or elsewhere, which may answer.
  [[nodiscard]] bool arrives() const { return kind <= Kind::forwarded; }

  // Whether the packet ends alike: who listens and why it is so are texts, which do not count, nor does its source. Of
  // what is unknown the reason is all there is.
  friend bool operator==(const Outcome& a, const Outcome& b);
};

// The subject of a packet that can go more ways than are followed.
inline constexpr std::string_view too_many_ways = "where it ends, by too many possible paths";
// And that of one that no rule of the pod decides about.
inline constexpr std::string_view many_receivers =
    "which hosts receive what is sent to no address, a broadcast or a multicast address";

// Returns by which interface it leaves or goes on: "eth0", "eth0 or eth1".
[[nodiscard]] std::string ways_out(const Outcome& outcome);
[[nodiscard]] std::string joined_ways(std::vector<std::string> interfaces);

// The same, whatever becomes of the answers.
[[nodiscard]] bool same_place(const Outcome& a, const Outcome& b);

// "lands on 127.0.0.1:15001 (Envoy outbound); original destination 10.96.0.10:443"
[[nodiscard]] std::string sentence(const Outcome& outcome);

struct Trace {
  Packet packet;  // with what was left out filled in
  std::vector<Step> steps;
  Outcome outcome;
  std::vector<std::size_t> decisive;  // the steps that are the reason for the outcome; empty: no rule is
  std::vector<std::string> doubts;    // what was taken for granted
  bool translated = false;            // its destination
};

// One of the ways that a packet may go.
struct Possibility {
  Trace trace;
  std::vector<std::string> unknowns;  // what is unknown and was taken to be one way or the other: "`-m bpf`"
  std::vector<std::size_t> taken;     // of `unknowns`: which way
  bool known = false;                 // the observer knows what becomes of it: the trace says no more
};

// Walks the packet through every base chain of everything in `live`, in the kernel's order: by hook, by priority; the
// chains of type nat where the kernel's address translation is, -100 and 100.
//
// What is unknown (a match or a target that is not understood, a port that the kernel chooses, the owner of the
// socket that answers, which of two chains of equal priority was registered last and so is asked first:
// nf_hook_entries_grow) is tried both ways. If all ways end alike, that is the answer; else the outcome is `unknown`,
// and the steps end with the rule that is the reason.
//
// Throws usage if the pod cannot have such a packet (lo to an address that is not the pod's).
[[nodiscard]] Trace explain(const Packet& packet, const PodView& pod, std::span<const Live> live);

// Returns the same without the steps of rules that do not match, of which there may be thousands. `rules`: of the
// packet's family, for many packets of one pod.
[[nodiscard]] Trace explain_briefly(const Packet& packet, const PodView& pod, FamilyRules& rules);

// Returns all the ways that it may go, each to its end or to where the observer knows the rest; one if nothing is
// unknown. The traces lack the rules that do not match, and all texts: the observer hears what is asked of the packet.
// `rules`: those of the packet's family. `guide`: see Forks::look_for_state().
[[nodiscard]] std::vector<Possibility> possibilities(const Packet& packet, const PodView& pod, FamilyRules& rules,
                                                     Observer& observer, std::vector<std::size_t> guide = {});

// For a plan without a pod: lo, and eth0 with the addresses that are set aside for documentation (192.0.2.2/24,
// 2001:db8::2/64) and the default route; interfaces that the rules name, or others besides these; policy rules, routes
// and addresses as planned.
[[nodiscard]] PodView assumed_pod(const Plan& plan);
[[nodiscard]] PodView assumed_pod(const Plan& plan, const std::set<std::string>& interfaces);
// Those that the rules name.
[[nodiscard]] std::set<std::string> named_interfaces(const Plan& plan);
// One more interface of such a pod, if it has none of that name: with a network and a default route.
void assume_interface(PodView& pod, const std::string& name);

}  // namespace sidetrack
