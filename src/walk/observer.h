// SPDX-License-Identifier: GPL-2.0-or-later
// Who is told what of a packet decides about its way, while it is followed: every packet that answers what was asked as
// this one does goes the same way. So one walk speaks for a whole region of packets.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"
#include "rule/live.h"
#include "rule/ruleset.h"

namespace sidetrack {

struct BaseChain;
struct PacketAtHook;
struct Trace;
struct WalkState;
class ChainIndex;
class Forks;

// A place between two rules' tables, where a packet's way so far is told by its state alone.
struct Checkpoint {
  // All that decides about its further way beside its own fields, as bytes: packets that come here with the same ones
  // and answer alike from here on go the same way.
  std::string_view state;
  // The way so far. Its last rule that leaves the packet alone is the reason for the outcome if none follows, unless
  // that is in the state (`decided`).
  const Trace& trace;
  std::optional<std::size_t> left_alone;  // a step of it
  Forks& forks;                           // what was chosen on it
  bool decided = false;
};

struct RuleInChain {
  const LiveRule* rule = nullptr;
  const LiveChain* in = nullptr;
  // The match of which it is unknown whether it holds; how many of the next rules follow only if it does, and how many
  // behind those only if it does not.
  std::optional<std::size_t> unknown{};
  std::size_t then = 0;
  std::size_t otherwise = 0;
  // If it does, none follows but those: the packet is accepted then, or else left to the policy.
  std::optional<bool> accepts{};
  // Tells whether as many rules follow, whether the match holds or not.
  [[nodiscard]] bool goes_on_as(const RuleInChain& other) const {
    return then == other.then && otherwise == other.otherwise && accepts == other.accepts;
  }
  friend auto operator<=>(const RuleInChain&, const RuleInChain&) = default;
};

// The rules of a base chain, and of those that it jumps to, that a packet meets and that do something, in order.
struct ChainPath {
  std::vector<RuleInChain> rules;
  bool meets_state = false;  // see PacketState
  bool unknown = false;      // whether the last one matches is unknown, and what follows it
  bool accepts = false;      // the packet is accepted after the last one
  friend bool operator==(const ChainPath&, const ChainPath&) = default;
};

class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // The rules of the chain that match, if the observer knows them: no other is asked, and none of its matches. Where
  // the path is unknown, what follows it is asked as usual, as are all rules for nullptr.
  virtual const ChainPath* path(const BaseChain& base, ChainIndex& chains, const WalkState& packet) = 0;
  // A rule matches, or it is unknown whether it does: what this match holds for was asked.
  virtual void match(const Match& match, const PacketAtHook& packet) = 0;
  // A rule does not match: `failing` do not hold, and any one of them is reason enough.
  virtual void no_match(std::span<const Match* const> failing, const PacketAtHook& packet) = 0;
  // Whether the address is in one of these, all of its own family.
  virtual void address(const Address& value, std::span<const AddressRange> ranges) = 0;
  virtual void has_ports() = 0;  // whether the protocol has
  virtual void protocol() = 0;   // which one it is
  virtual void interface() = 0;  // by which it comes, or to which its socket is bound
  virtual void source() = 0;     // whether the sender chose its source address, or the kernel does
  virtual void mark() = 0;       // its mark
  // Whether these bits of the mark that it has now are so. `own`: see MarkChange.
  virtual void mark(std::uint32_t now, std::uint32_t own, std::uint32_t value, std::uint32_t mask) = 0;

  // A walk begins. Where something is unknown there is more than one, which are alike up to there.
  virtual void begins() = 0;
  // Tells whether what becomes of the packet at the end of this walk is asked for.
  virtual bool wants_end() = 0;
  // Tells at each checkpoint whether to be told of it.
  virtual bool wants_checkpoint() = 0;
  // False: what becomes of the packet from here on is known, and it need not be followed further.
  virtual bool checkpoint(const Checkpoint& checkpoint) = 0;
};

// Wants to be told nothing. A walk with an observer makes no texts, which among thousands of rules take the most time.
class NullObserver : public Observer {
 public:
  const ChainPath* path(const BaseChain& /*base*/, ChainIndex& /*chains*/, const WalkState& /*packet*/) override {
    return nullptr;
  }
  void match(const Match& /*match*/, const PacketAtHook& /*packet*/) override {}
  void no_match(std::span<const Match* const> /*failing*/, const PacketAtHook& /*packet*/) override {}
  void address(const Address& /*value*/, std::span<const AddressRange> /*ranges*/) override {}
  void has_ports() override {}
  void protocol() override {}
  void interface() override {}
  void source() override {}
  void mark() override {}
  void mark(std::uint32_t /*now*/, std::uint32_t /*own*/, std::uint32_t /*value*/, std::uint32_t /*mask*/) override {}
  void begins() override {}
  bool wants_end() override { return true; }
  bool wants_checkpoint() override { return false; }
  bool checkpoint(const Checkpoint& /*checkpoint*/) override { return true; }
};

}  // namespace sidetrack
