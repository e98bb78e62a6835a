// SPDX-License-Identifier: GPL-2.0-or-later
// The model: rules as plain values, in the words of `iptables -S`. No kernel header is needed to read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/address.h"
#include "model/range.h"

namespace sidetrack {

// The tables that plans write to, in the order in which the kernel walks them; then iptables' others, and `other` for a
// table of nf_tables that is none of iptables' (LiveChain::table_name tells which).
enum class Table : std::uint8_t { raw, mangle, nat, filter, security, other };
inline constexpr Table all_tables[] = {Table::raw, Table::mangle, Table::nat};
[[nodiscard]] std::string_view name(Table table);
[[nodiscard]] bool is_written(Table table);                  // one of those that plans write to
[[nodiscard]] bool is_written(std::string_view table_name);  // the same by its name

// IANA's numbers. Plans use these; rules that are read may hold any other number, which has no name here.
enum class Protocol : std::uint8_t { icmp = 1, tcp = 6, udp = 17, icmpv6 = 58 };
[[nodiscard]] std::string_view name(Protocol protocol);

enum class End : std::uint8_t { source, destination };
enum class InterfaceDirection : std::uint8_t { in, out };
enum class OwnerKind : std::uint8_t { uid, gid };

// ---- Matches. Those that hold several values match any one of them (none of them when negated). iptables can hold
// one value (ports: up to 15, by multiport); nf_tables holds any number, as a set.

struct InterfaceMatch {  // -i eth0, ! -o lo; a name that ends in + matches every name that begins so
  InterfaceDirection direction = InterfaceDirection::in;
  std::string name;
  bool negated = false;
  friend bool operator==(const InterfaceMatch&, const InterfaceMatch&) = default;
};
struct AddressMatch {  // -s 127.0.0.6/32, ! -d ::1/128
  End end = End::destination;
  std::vector<AddressRange> ranges;  // all of one family
  bool negated = false;
  friend bool operator==(const AddressMatch&, const AddressMatch&) = default;
};
struct ProtocolMatch {  // -p tcp
  Protocol protocol = Protocol::tcp;
  bool negated = false;
  friend bool operator==(const ProtocolMatch&, const ProtocolMatch&) = default;
};
struct PortMatch {  // --dport 53, ! --sport 15053, -m multiport ! --dports 53,15008
  End end = End::destination;
  std::vector<PortRange> ports;
  bool negated = false;
  friend bool operator==(const PortMatch&, const PortMatch&) = default;
};
struct OwnerMatch {  // -m owner ! --uid-owner 1337
  OwnerKind kind = OwnerKind::uid;
  std::vector<IdRange> ids;
  bool negated = false;
  friend bool operator==(const OwnerMatch&, const OwnerMatch&) = default;
};
struct ConntrackStateMatch {  // -m conntrack --ctstate RELATED,ESTABLISHED
  enum State : std::uint8_t { invalid = 1, established = 2, related = 4, new_ = 8, untracked = 16 };
  std::uint8_t states = 0;  // State bits
  bool negated = false;
  friend bool operator==(const ConntrackStateMatch&, const ConntrackStateMatch&) = default;
};
struct ConntrackDirectionMatch {  // -m conntrack --ctdir REPLY: against the direction in which the connection began
  bool reply = true;
  friend bool operator==(const ConntrackDirectionMatch&, const ConntrackDirectionMatch&) = default;
};
// Marks and masks are in host byte order, here and in the targets below.
struct MarkMatch {  // -m mark --mark 1337
  std::uint32_t value = 0;
  std::uint32_t mask = 0xffffffff;
  bool negated = false;
  friend bool operator==(const MarkMatch&, const MarkMatch&) = default;
};
struct ConnmarkMatch {  // -m connmark --mark 1337
  std::uint32_t value = 0;
  std::uint32_t mask = 0xffffffff;
  bool negated = false;
  friend bool operator==(const ConnmarkMatch&, const ConnmarkMatch&) = default;
};
struct SocketMatch {  // -m owner --socket-exists: a socket of this network namespace sends it
  bool negated = false;
  friend bool operator==(const SocketMatch&, const SocketMatch&) = default;
};
inline constexpr std::uint16_t unknown_set = 0xffff;  // IPSET_INVALID_ID
struct SetMatch {  // -m set --match-set NAME dst: an address that is in a set of ip_set
  End end = End::destination;
  std::string name;  // empty: the kernel was not asked for it
  // The kernel's number of the set, which its rules have in place of the name.
  std::uint16_t index = unknown_set;
  // What the set holds; nothing: not known, or more than addresses. No part of the rule.
  std::optional<std::vector<AddressRange>> members{};
  bool negated = false;
  friend bool operator==(const SetMatch& a, const SetMatch& b) {
    const bool named = !a.name.empty() && !b.name.empty();
    return a.end == b.end && a.negated == b.negated && (named ? a.name == b.name : a.index == b.index);
  }
};
struct CgroupMatch {  // -m cgroup ! --path kubepods/pod1: the sender's cgroup (v2) is this one or below it
  std::string path;   // within the hierarchy, without a slash at its ends; empty: none is known that has the number
  // In this kernel, by which nf_tables knows it; 0: not known. Where the path is, it is no part of what the match says.
  std::uint64_t id = 0;
  bool negated = false;
  friend bool operator==(const CgroupMatch& a, const CgroupMatch& b) {
    return a.path == b.path && a.negated == b.negated && (!a.path.empty() || a.id == b.id);
  }
};

// Read back from the kernel, and in no plan: shown in their words, never edited, never sent.

struct CommentMatch {  // -m comment --comment "some words": holds always
  std::string text;
  friend bool operator==(const CommentMatch&, const CommentMatch&) = default;
};
struct UnknownMatch {  // one that is not understood entirely: whether it holds cannot be known
  std::string words;
  friend bool operator==(const UnknownMatch&, const UnknownMatch&) = default;
};

using Match = std::variant<InterfaceMatch, AddressMatch, ProtocolMatch, PortMatch, OwnerMatch, ConntrackStateMatch,
                           ConntrackDirectionMatch, MarkMatch, ConnmarkMatch, SocketMatch, SetMatch, CgroupMatch,
                           CommentMatch, UnknownMatch>;

// Whether a cgroup is the one of that path or below it.
[[nodiscard]] bool is_within_cgroup(std::string_view path, std::string_view of);

[[nodiscard]] bool is_negated(const Match& match);
// Whether it asks what connection tracking knows of the packet.
[[nodiscard]] bool asks_connection(const Match& match);
// `-d 0.0.0.0/0`, `-i +`: words that leave no trace in the kernel.
[[nodiscard]] bool matches_everything(const Match& match);

// ---- Targets.

enum class Verdict : std::uint8_t { accept, drop, return_ };

struct Jump {
  std::string chain;
  bool is_goto = false;  // -g, goto: what returns from there returns from here, too
  friend bool operator==(const Jump&, const Jump&) = default;
};
struct Redirect {  // REDIRECT --to-ports
  std::uint16_t port = 0;
  friend bool operator==(const Redirect&, const Redirect&) = default;
};
struct Tproxy {  // TPROXY --tproxy-mark MARK/MASK --on-port PORT
  std::uint16_t port = 0;
  std::uint32_t mark = 0;
  std::uint32_t mask = 0xffffffff;
  friend bool operator==(const Tproxy&, const Tproxy&) = default;
};
struct SetMark {  // MARK --set-xmark MARK/MASK: mark = (mark & ~MASK) ^ MARK
  std::uint32_t mark = 0;
  std::uint32_t mask = 0xffffffff;
  friend bool operator==(const SetMark&, const SetMark&) = default;
};
enum class Connmark : std::uint8_t { save, restore };  // CONNMARK --save-mark, --restore-mark
struct SetConnmark {  // CONNMARK --set-xmark MARK/MASK: the connection's mark = (mark & ~MASK) ^ MARK
  std::uint32_t mark = 0;
  std::uint32_t mask = 0xffffffff;
  friend bool operator==(const SetConnmark&, const SetConnmark&) = default;
};
struct CtZone {  // CT --zone
  std::uint16_t zone = 0;
  friend bool operator==(const CtZone&, const CtZone&) = default;
};

struct Nat {  // DNAT, SNAT, MASQUERADE, REDIRECT to several ports; what is not given stays, or is the kernel's choice
  End end = End::destination;
  std::optional<AddressRange> addresses;
  std::optional<PortRange> ports;
  std::string words;  // those of iptables or nft
  friend bool operator==(const Nat&, const Nat&) = default;
};

// Read back from the kernel, and in no plan, as the matches of that kind. `words` are those of iptables or nft.

struct NonTerminating {  // no target, LOG, NFLOG, TRACE, CLASSIFY …: the next rule is looked at, the packet goes its
                         // way
  std::string words;     // empty: a rule without a target, which only counts
  friend bool operator==(const NonTerminating&, const NonTerminating&) = default;
};
struct Notrack {  // CT --notrack: conntrack and nat leave the packet alone, if they have not seen it yet
  friend bool operator==(const Notrack&, const Notrack&) = default;
};
struct Reject {  // REJECT: dropped, and the sender is told
  std::string words;
  friend bool operator==(const Reject&, const Reject&) = default;
};
struct UnknownTarget {  // one that is not understood entirely: what becomes of the packet cannot be known
  std::string words;
  friend bool operator==(const UnknownTarget&, const UnknownTarget&) = default;
};

using Target = std::variant<Verdict, Jump, Redirect, Tproxy, SetMark, Connmark, CtZone, NonTerminating, SetConnmark,
                            Notrack, Reject, Nat, UnknownTarget>;

// SNAT --to-source ADDRESS
[[nodiscard]] Nat source_nat(const Address& address);

// Whether all of the rule is understood: its matches, with what their sets hold, and its target.
struct Rule;
[[nodiscard]] bool is_understood(const Rule& rule);

// The port of this host to which REDIRECT or TPROXY leads.
[[nodiscard]] std::optional<std::uint16_t> listening_port(const Target& target);

// What tells why a rule is there; reason_of() and describe() of mesh/ say it in words.
enum class MeshRule : std::uint8_t;  // mesh/catalogue.h
struct RuleOrigin {
  MeshRule rule{};             // which of Istio's rules it was made as; 0: not known
  const char* flag = nullptr;  // what asked for it, if another than usual: a string literal
  std::string comment;         // that another program gave it
};

struct Rule {
  Families families;
  Table table = Table::nat;
  std::string chain;
  std::vector<Match> matches;  // in the order in which iptables-restore text shows them
  Target target = Verdict::return_;
  RuleOrigin origin;
  std::optional<unsigned> insert_at;  // -I CHAIN N, counted from 1; otherwise appended
  // Of one that is put back: behind so many rules of others in its chain, see splice(). All rules of a chain have it.
  std::optional<std::size_t> after_others{};

  // Equal in what they do: the origin, the way into the chain (-A, -I) and the order of the words do not count.
  // (The order among matches of the same kind does.) Neither do words that match everything: `-d 0.0.0.0/0`, `-i +`.
  friend bool operator==(const Rule& a, const Rule& b);
};

// Equal but for the families: a rule for both stands once in the table of each.
[[nodiscard]] bool same_effect(const Rule& a, const Rule& b);

// Rules in the order in which they are built, as iptables-restore takes them.
struct Ruleset {
  std::vector<Rule> rules;
  bool folded = false;  // by fold(), or as a table that holds such rules had them: they stay as they are
};

// A chain as the kernel walks it, -I resolved.
struct Chain {
  Table table = Table::nat;
  std::string name;
  std::vector<const Rule*> rules;
};

// The chains of one table that rules of any of `families` use: built-in ones (PREROUTING, INPUT, FORWARD, OUTPUT,
// POSTROUTING) and our own, in the order in which upstream creates them: chains that hold rules by first use, then
// chains that are only jumped to. The pointers are into `ruleset`.
[[nodiscard]] std::vector<Chain> chains(const Ruleset& ruleset, Table table, Families families);
[[nodiscard]] bool is_builtin(std::string_view chain);

}  // namespace sidetrack
