// SPDX-License-Identifier: GPL-2.0-or-later
// All traffic of a pod, parted into regions of packets that end alike.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "model/error.h"
#include "pod/pod_view.h"
#include "rule/live.h"
#include "space/cell.h"
#include "space/chain_paths.h"
#include "space/diagram.h"
#include "space/ending.h"
#include "space/join.h"
#include "space/known_steps.h"
#include "space/states.h"

namespace sidetrack {
struct RulesByFamily;
}

namespace sidetrack::space {

// A pod and all rules that its packets meet. Where one of its routes has several next hops, packets take any of them:
// what becomes of them is known where it is the same by each.
struct Side {
  PodView pod;
  std::vector<Live> live;
};

// Returns a list of them. An initializer list would copy each, with all its rules.
template <typename... Sides>
[[nodiscard]] std::vector<Side> list_of(Sides... sides) {
  std::vector<Side> all;
  all.reserve(sizeof...(sides));
  (all.push_back(std::move(sides)), ...);
  return all;
}

// What decides about a region, and how it ends.
struct Decision {
  Ending ending;
  const Step* step = nullptr;  // the rule or policy; nullptr: no rule does
  bool inherited = false;      // from a state on: the last rule before it that left the packet alone, if one did
};

inline constexpr Leaf no_such_packet =
    1;  // `out` to an address of the pod, unless it is bound, is `lo`, and only that is

enum class Scope : std::uint8_t {
  everything,  // all that `explain` can be asked about
  // What programs do and networks carry: new connections, from addresses that the sender has, by sockets that are not
  // bound to an interface, to hosts; inbound, to addresses of the pod.
  ordinary,
  connections,  // the same, and later packets of a connection
  invalid,      // as ordinary, but invalid instead of new
};

// Regions of one side or of two, over one universe.
class Regions {
 public:
  // Throws TooManyRegions, as all that follows packets does, once more than `most` packets would have to be followed,
  // or as many rules asked one by one as take as long.
  explicit Regions(std::vector<Side> sides, std::size_t most = ~std::size_t{0});
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  ~Regions();

  using Node = Diagrams::Node;

  // The diagram of a side: its leaves are decisions. Where another side than the first one can be told to treat packets
  // as that does, its decisions are those of the first one.
  [[nodiscard]] Node of(std::size_t side, Scope scope = Scope::everything);
  // The same of the packets of these boxes alone; all others are no such packet.
  [[nodiscard]] Node of(std::size_t side, std::span<const Box> boxes);
  // What becomes of one packet.
  [[nodiscard]] Leaf at(std::size_t side, const Point& point);
  [[nodiscard]] const Decision& decision(Leaf leaf) const { return decisions_[leaf]; }
  // The same number for all decisions that end alike.
  [[nodiscard]] Leaf by_ending(Leaf leaf) const { return endings_[leaf]; }
  // Tells whether it is known that packets end alike on two sides. Equal unknown endings may stand for different ones:
  // what a rule does of which the effect is unknown, the rules that come next see, and they may differ. So may the
  // packets of which too many paths are possible, and those that rules match which ask for more marks than are told
  // apart.
  [[nodiscard]] bool end_alike(Leaf one, Leaf other) const;

  // Tells whether it is known from the rules alone, without following a packet, that both sides treat all packets
  // alike.
  [[nodiscard]] bool are_known_alike(std::size_t one, std::size_t other);
  // The packets of those of which the first side's diagram was asked for that the other side may treat otherwise: yes,
  // no.
  [[nodiscard]] Node may_differ(std::size_t other);

  [[nodiscard]] const Universe& universe() const { return universe_; }
  [[nodiscard]] Sets& sets() { return sets_; }
  [[nodiscard]] const Sets& sets() const { return sets_; }
  [[nodiscard]] Diagrams& diagrams() { return diagrams_; }
  [[nodiscard]] const Side& side(std::size_t number) const { return sides_[number]; }
  [[nodiscard]] std::size_t sides() const { return sides_.size(); }
  // The diagram with no_such_packet wherever a packet is not ordinary in that pod.
  [[nodiscard]] Node ordinary_part(Node root, const PodView& pod);
  // All packets of a way and family; those that are ordinary (see Scope) in this pod.
  [[nodiscard]] const Box& everything(Direction way, Family family) const {
    return wholes_[2 * static_cast<std::size_t>(way) + static_cast<std::size_t>(value_of(family))];
  }
  // All of them, one of each way and family.
  [[nodiscard]] const std::vector<Box>& wholes() const { return wholes_; }
  [[nodiscard]] Box ordinary(const PodView& pod, Direction way, Family family);
  // The source ports of clients: what kernels choose.
  [[nodiscard]] Sets::Id client_ports(const PodView& pod) {
    return sets_.of({{by_kernel, by_kernel}, {pod.ephemeral_ports.first, pod.ephemeral_ports.last}});
  }
  [[nodiscard]] std::size_t followed() const { return followed_; }  // packets

  // Each region once, as disjoint boxes of one way and family, with all packets of that.
  void for_each(Node root, const std::function<void(const Box& box, const Box& whole, Leaf leaf)>& one);

  // One packet of the box, of values that people use where there are such.
  [[nodiscard]] Point example(const Box& box) const;

  // Returns the rule of the step as it stands in its chain, with its number: the one that this packet meets, where
  // several were joined (see join.h). The step decides about the packet, and is of that side.
  [[nodiscard]] LiveRule deciding_rule(std::size_t side, const Step& step, const Point& point);
  [[nodiscard]] bool is_joined(const LiveRule* rule) const { return joined_rules_.contains(rule); }

 private:
  static Universe universe_of(const std::vector<Side>& sides);
  struct Pod;       // what is worked out once for a side, by one next hop of each route
  struct Followed;  // a packet
  struct Passing;
  struct Branch;
  struct Transition;
  struct State;
  static constexpr Leaf yes = Diagrams::yes;
  static constexpr Leaf no = Diagrams::no;
  Followed follow(const Point& point, Pod& pod, States::Number target);
  void require_room(const Pod& pod) const;
  void follow_all(Pod& pod, Node region, const Box& whole);
  Transition transition(Pod& pod, States::Number state, Node open, const Box& whole);
  bool work_out(Pod& pod, States::Number number);
  Leaf passed(Leaf leaf, const Passing& passing);
  Leaf end_of(const Leg& leg, const std::vector<Possibility>& all);
  std::vector<Branch> branches_of(const Leg& leg, std::span<const Way> ways, const std::vector<Possibility>& all);
  Leaf either(Leaf one, Leaf other, const Choice& choice);
  static Node further(Pod& pod, const Branch& branch);
  Node either(Pod& pod, std::span<const Branch> branches, const Choice& choice);
  Node outside(std::span<const Box> boxes);
  Node outside_ordinary(const PodView& pod, Scope scope = Scope::ordinary);
  Node completed(Node outside, std::size_t side);
  Node completed_by_hops(Node outside, std::size_t side);
  bool pair(RulesByFamily& rules, std::size_t other, RulesByFamily& other_rules);
  static bool find_same_neighbours(RulesByFamily& rules, const PodView& pod, RulesByFamily& other_rules);
  Node completed(Node outside, Pod& pod);
  Leaf at(Pod& pod, const Point& point, States::Number from, std::map<States::Number, Leaf>& known);
  using Pods = std::span<const std::unique_ptr<Pod>>;
  Leaf either(std::size_t side, std::size_t hop, Leaf one, Leaf other);
  [[nodiscard]] static std::string of_these_hops(const std::string& ways, Pods pods);
  Leaf leaf_of(Ending ending, const Step* step, bool inherited);  // `step`: one of steps_

  JoinedRules joined_rules_;
  std::vector<Side> sides_;
  Universe universe_;
  Value unmarked_;  // the class of 0
  Sets sets_;
  Diagrams diagrams_;
  ChainPaths paths_;
  std::vector<Box> wholes_;  // by way and family
  Cell::Known known_;
  std::vector<std::vector<std::unique_ptr<Pod>>> pods_;  // of the sides
  std::vector<bool> is_paired_;                          // what the side does otherwise than the first one is found out
  KnownSteps steps_;
  std::vector<Decision> decisions_;
  std::vector<Leaf> endings_;
  std::unordered_map<std::size_t, std::vector<Leaf>> by_hash_;  // of their endings: one of each
  std::map<std::tuple<Leaf, std::size_t, const Step*, bool>, Leaf>
      by_reason_;  // `ways` of an ending, `step`, `inherited`
  std::size_t followed_ = 0;
  std::size_t bytes_of_transitions_ = 0;
  std::size_t most_followed_;
};

}  // namespace sidetrack::space
