// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rule/match.h"
#include "space/chain_paths.h"
#include "space/diagram.h"
#include "space/known_steps.h"
#include "space/states.h"
#include "walk/explain.h"
#include "walk/observer.h"

namespace sidetrack::space {

// A part of a packet's way, from one checkpoint to the next.
struct Leg {
  States::Number from = States::start;
  Box box{};  // all packets that go from there to the same state,
  // and have these leaves of the chains on the way, whose rules are not in the box; first of that with the most.
  std::vector<std::pair<Diagrams::Node, Leaf>> paths;
  std::size_t most_leaves = 0;
  std::vector<ChainPaths::Difference> differences{};  // of those chains
  std::size_t steps = 0;                              // of the trace, before it
  const Step* left_alone = nullptr;                   // by the last rule of it that does so
  bool decided = false;                               // see Checkpoint, where it begins
};

// Says where a packet that left the last leg's state by one of several ways goes on.
struct Way {
  States::Number next;
  const Step* left_alone = nullptr;  // as in Leg
  std::vector<std::size_t> choices;  // since the start
};

// Hears what is asked of a packet that is followed: those that answer alike go the same way. Its way, family and state
// are theirs.
//
// Whose value a rule sees is told by the value: one that is equal to one of the packet's own is taken for it. A
// constant that happens to be equal makes the cell smaller than it has to be, never larger.
class Cell : public Observer {
 public:
  // Sets of matches that were worked out for one packet serve the next.
  using Known = std::unordered_map<const Match*, Sets::Id>;

  Cell(const Universe& universe, Sets& sets, Diagrams& diagrams, ChainPaths& paths, Known& known, KnownSteps& steps,
       States& states, const Point& point, const Packet& packet, States::Number target);

  // Returns them in the order in which they were taken; none if nothing was unknown.
  [[nodiscard]] const std::vector<Way>& ways() const { return ways_; }

  [[nodiscard]] std::vector<Leg> take_legs() {
    exclude_all();
    return std::move(legs_);
  }

  void interface(Sets::Id values) { narrow({Field::interface, values}); }  // whether it is one of these

  const ChainPath* path(const BaseChain& base, ChainIndex& chains, const WalkState& packet) override;
  void match(const Match& match, const PacketAtHook& packet) override;
  void no_match(std::span<const Match* const> failing, const PacketAtHook& packet) override;
  void address(const Address& value, std::span<const AddressRange> ranges) override;
  void has_ports() override;
  void protocol() override;
  void interface() override;
  void source() override;
  void mark() override;
  void mark(std::uint32_t now, std::uint32_t own, std::uint32_t value, std::uint32_t mask) override;
  void begins() override {
    exclude_all();
    at_ = Place{target_ == States::start};
  }
  bool wants_end() override { return at_.is_past_target; }
  bool wants_checkpoint() override { return at_.is_past_target || ++at_.passed >= states_.depth(target_); }
  bool checkpoint(const Checkpoint& checkpoint) override;

 private:
  // What one answer says of the packet.
  struct Narrowing {
    Field field;
    Sets::Id values;  // the value is one of these, or none of them
  };
  using Narrowings = std::vector<Narrowing>;
  class AskedOf;

  [[nodiscard]] Narrowings of(const Match& match, const PacketAtHook& packet);
  [[nodiscard]] bool is_one(const Narrowing& narrowing) const {
    return sets_.contains(narrowing.values, point_[index(narrowing.field)]);
  }
  [[nodiscard]] Box& box() { return legs_[at_.leg].box; }
  void add_leg(States::Number from, const Checkpoint& checkpoint);
  void narrow(const Narrowing& narrowing);
  void exclude(std::size_t field);
  void exclude_all();
  [[nodiscard]] double left_by(const Narrowings& narrowings);
  void of_address(Narrowings& result, const Address& value, Sets::Id values);
  Sets::Id with_ports();

  const Universe& universe_;
  Sets& sets_;
  Diagrams& diagrams_;
  ChainPaths& paths_;
  Known& known_;
  KnownSteps& steps_;
  States& states_;
  const States::Number target_;  // it is followed from there on, up to a state where that was done before
  Point point_;
  Packet packet_;
  Box whole_{};  // of each leg, before anything is asked
  std::vector<Leg> legs_;
  std::vector<Way> ways_;
  std::set<States::Number> searched_;  // states from which the target was looked for
  struct Place {
    bool is_past_target;       // what is asked before narrows nothing
    std::uint32_t passed = 0;  // checkpoints before the target
    std::size_t leg = 0;
    bool has_asked = false;  // in that leg: something that parts packets
  };
  Place at_;
  // By field, what is still to be taken from the box of this leg: a set of thousands of intervals is not made anew for
  // each that goes.
  std::array<std::vector<Sets::Id>, field_count> excluded_;
};

}  // namespace sidetrack::space
