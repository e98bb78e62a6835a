// SPDX-License-Identifier: GPL-2.0-or-later
// What a base chain does with all packets that come to it in one state: a diagram whose leaves are the rules that
// match, worked out from the rules at once instead of packet by packet.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rule/facts.h"
#include "space/diagram.h"
#include "walk/observer.h"
#include "walk/rule_walk.h"

namespace sidetrack::space {

// Tells whether packets that come to a base chain in one state go on alike by both paths, but for the rule that is the
// reason for what becomes of them.
[[nodiscard]] bool leads_alike(const ChainPath& a, const ChainPath& b);

class ChainPaths {
 public:
  ChainPaths(const Universe& universe, Sets& sets, Diagrams& diagrams)
      : universe_(universe), sets_(sets), diagrams_(diagrams) {}

  // The diagram of the chain for packets that come to it as this one does, with any values in their own fields: its
  // leaves are numbers of paths. Nothing: rules there decide by more than that, and the chain is to be asked rule by
  // rule. `own_mark`: what the packet set out with.
  [[nodiscard]] std::optional<Diagrams::Node> of(const BaseChain& base, ChainIndex& chains, const WalkState& packet,
                                                 std::uint32_t own_mark);
  [[nodiscard]] const ChainPath& path(Leaf leaf) const { return paths_[leaf].path; }
  // The packets that may go on otherwise by the chain of another side that was paired with the chain: yes, no.
  struct Difference {
    std::size_t side;
    Diagrams::Node packets;
    friend bool operator==(const Difference&, const Difference&) = default;
  };
  // The same diagram, and its leaf for the packet that was asked about, which comes there as `packet`.
  struct Place {
    std::optional<Diagrams::Node> root;
    Leaf leaf = 0;
    std::span<const Difference> differences{};  // valid as long as this is
    std::size_t leaves = 0;                     // of the diagram
  };
  [[nodiscard]] Place place_of(const BaseChain& base, ChainIndex& chains, const WalkState& packet, const Packet& asked,
                               const Point& point);

  struct Chain {
    BaseChain base;
    ChainIndex& chains;
  };
  // The chain that another side has at the same place.
  struct Pair {
    std::size_t side;
    BaseChain other;  // without a chain: it has none
    ChainIndex* chains;
  };
  // From now on tells what the other chain does otherwise with packets of the family. To be called before either is
  // asked about.
  void pair(const LiveChain& one, Family family, const Pair& pair) { pairs_[{&one, family}].push_back(pair); }
  // Tells whether it is known that any packet, however it comes there, goes on alike by both, whichever rule is the
  // reason. Nothing is known of chains that ask for marks or for the packet's connection.
  [[nodiscard]] bool lead_alike(const Chain& one, const Chain& other, const PodView& pod, Family family);

 private:
  // What rules may change of a packet while they are asked, and others of the chain ask for.
  struct View {
    MarkChange mark;
    std::optional<std::uint32_t> connmark;
    bool untracked = false;
    friend auto operator<=>(const View&, const View&) = default;
  };
  enum class Kind : std::uint8_t {
    next,   // the next rule of the chain is asked
    back,   // none of this chain any more
    final,  // of none
    fork,   // by two paths: whether the last rule matches is unknown
  };
  struct Path {
    Kind kind = Kind::next;
    View view;               // next, back: as the rules leave the packet
    bool is_reason = false;  // its last rule is what decides about the packet, or leaves it alone
    bool changes = false;    // rules of it change the packet
    ChainPath path;
    Leaf taken = 0;           // fork: what follows if it does
    Leaf passed = 0;          // fork: if it does not
    std::vector<View> views;  // fork: of all ends that are `next`, sorted
    std::size_t forks = 0;    // fork: how many, one after the other
    // Tells whether the last of its rules decides about the packet.
    [[nodiscard]] bool decides() const { return kind == Kind::final && !path.accepts; }
    [[nodiscard]] std::span<const View> nexts() const {
      if (kind == Kind::next) return {&view, 1};
      return views;
    }
    friend bool operator==(const Path&, const Path&) = default;
  };
  // What rules of a chain, and of those that it jumps to, are like.
  struct Looked {
    bool can = true;  // they can be worked out so
    std::size_t rules = 0;
    Facts asked = facts::none;  // by matches
    bool interfaces[2] = {};    // asked for, by InterfaceDirection
    bool addresses[2] = {};     // by End
    bool ports[2] = {};
    bool ends = false;  // of connections
    bool owners = false;
    Facts changed = facts::none;  // by rules after which others are asked
    bool saves_marks = false;     // to connections
    bool exempts = false;         // from connection tracking
    [[nodiscard]] bool asks_marks() const { return (asked & facts::mark) != 0; }
    void add(const Looked& other);  // what is asked for there, too
    // Whether what is asked of marks depends on rules that change them.
    [[nodiscard]] bool changes_marks() const {
      return asks_marks() && (changed & (facts::mark | facts::connmark)) != 0;
    }
  };
  class Look;
  class Build;

  // `is_later`: of packets that are not the first of their connection.
  const Looked& look_at(const BaseChain& base, ChainIndex& chains, Family family, bool is_later);
  struct Known {
    std::optional<Diagrams::Node> root;
    std::vector<Difference> differences;
    std::size_t leaves = 0;
  };
  const Known& known(const BaseChain& base, ChainIndex& chains, const WalkState& packet, std::uint32_t own_mark);
  std::vector<Difference> differences(const Chain& one, const std::vector<Pair>& pairs, WalkState packet,
                                      std::uint32_t own_mark);
  Diagrams::Node differing(const Chain& one, const Pair& other, const WalkState& packet, std::uint32_t own_mark);
  // Tells whether it is known that packets go on alike by both, whichever rule is the reason.
  [[nodiscard]] bool go_alike(Leaf one, Leaf other, Verdict policy) const;
  Leaf number_of(Path path);
  Leaf number_of_fork(Path path);
  Leaf number_of_unknown(Path path);
  Leaf joined(Leaf first, Leaf then);
  bool list(Leaf leaf, std::size_t most, ChainPath& listed) const;

  const Universe& universe_;
  Sets& sets_;
  Diagrams& diagrams_;
  std::unordered_map<std::string, Known> known_;
  std::map<std::pair<const LiveChain*, Family>, std::vector<Pair>> pairs_;
  std::deque<Path> paths_{1};                             // by leaf; the first is none
  std::unordered_multimap<std::uint64_t, Leaf> numbers_;  // by hash of their rules
  std::size_t joined_rules_ = 0;                          // of paths that were forks
  Memo joined_;
  std::unordered_map<const Match*, Sets::Id> listed_;
  std::map<std::tuple<const LiveChain*, Family, bool>, Looked> looked_;
};

}  // namespace sidetrack::space
