// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <unordered_map>

#include "evaluate/match.h"
#include "evaluate/observer.h"
#include "space/diagram.h"

namespace sidetrack::space {

// All packets that go the way of the one that is followed: what was asked of that one has the same answer for each of
// them. Its way, family and state are theirs.
//
// Whose value a rule sees is told by the value: one that is equal to one of the packet's own is taken for it. A
// constant that happens to be equal makes the cell smaller than it has to be, never larger.
class Cell : public Observer {
 public:
  // Sets of matches that were worked out for one packet serve the next.
  using Known = std::unordered_map<const Match*, Sets::Id>;

  Cell(const Universe& universe, Sets& sets, Known& known, const Point& point);
  [[nodiscard]] const Box& box() const { return box_; }

  void interface(Sets::Id values) { narrow({Field::interface, values}); }  // whether it is one of these

  void match(const Match& match, const PacketAtHook& packet) override;
  void no_match(std::span<const Match* const> failing, const PacketAtHook& packet) override;
  void address(const Address& value, std::span<const AddressRange> ranges) override;
  void has_ports() override;
  void protocol() override;
  void interface() override;
  void source() override;
  void mark() override;

 private:
  // What one answer says of the packet.
  struct Narrowing {
    Field field;
    Sets::Id values;  // the value is one of these, or none of them
  };
  using Narrowings = std::vector<Narrowing>;
  struct Asked;

  [[nodiscard]] Narrowings of(const Match& match, const PacketAtHook& packet);
  [[nodiscard]] Sets::Id narrowed(const Narrowing& narrowing);
  void narrow(const Narrowing& narrowing) { box_[index(narrowing.field)] = narrowed(narrowing); }
  [[nodiscard]] double left_by(const Narrowings& narrowings);
  void of_address(Narrowings& result, const Address& value, Sets::Id values);
  Sets::Id set_of(const Match& match);
  Sets::Id with_ports();

  const Universe& universe_;
  Sets& sets_;
  Known& known_;
  Point point_;
  Packet packet_;
  Box box_{};
};

}  // namespace sidetrack::space
