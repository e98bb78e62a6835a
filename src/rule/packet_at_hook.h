// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/packet.h"
#include "model/range.h"

namespace sidetrack {

class Observer;
struct PodView;

// Says what address translation makes of a connection: an end of its first packet, before and after.
struct Translation {
  Endpoint before;
  Endpoint after;
  bool after_known = true;  // false: the kernel chooses
  friend bool operator==(const Translation&, const Translation&) = default;
};
struct Connection {
  std::optional<Translation> destination;
  std::optional<Translation> source;
  friend bool operator==(const Connection&, const Connection&) = default;
};

// Tells what rules have made of the mark that a packet set out with.
struct MarkChange {
  std::uint32_t own = ~0U;   // the bits that are as the packet set out with them, or their inverse
  std::uint32_t others = 0;  // the rest of them; of the packet's own, which are inverted
  [[nodiscard]] std::uint32_t of(std::uint32_t mark) const { return (mark & own) ^ others; }
  void set(std::uint32_t value, std::uint32_t mask) {
    own &= ~mask;
    others = (others & ~mask) ^ value;
  }
  friend auto operator<=>(const MarkChange&, const MarkChange&) = default;
};

// Which of the answers of a connection a packet is: the first one of TCP has the flag SYN.
enum class AnswerPlace : std::uint8_t { any, first, later };

// A packet as a rule sees it at one hook.
struct PacketAtHook {
  Protocol protocol = Protocol::tcp;
  Endpoint source;  // without a port: it is one of `ephemeral_ports`
  Endpoint destination;
  PortRange ephemeral_ports{1, 65535};
  std::string in;   // empty in OUTPUT and POSTROUTING
  std::string out;  // empty in PREROUTING and INPUT
  std::uint32_t mark = 0;
  std::uint32_t own_bits = 0;  // of the mark, for the observer: MarkChange::own
  std::optional<Owner> owner;  // of the socket; nothing once the packet came in by an interface, lo too (skb_orphan)
  std::optional<std::string> cgroup;  // of the socket; nothing: not known
  ConnectionState state = ConnectionState::new_;
  AnswerPlace answer = AnswerPlace::any;  // of state reply
  std::optional<std::uint32_t> connmark;  // nothing: no connection (state invalid)
  Connection connection;                  // as far as rules have translated it
  bool native = false;                    // the rule is of native nf_tables expressions, not of xt's
  bool tracked = true;                    // conntrack has seen it; before that it is invalid, and has no connmark
  bool untracked = false;                 // a rule keeps conntrack from it
  bool owner_known = true;                // false: whether there is an owner, and who, is not known
  bool source_known = true;               // false: its source address is one that the kernel chose
  const PodView* pod = nullptr;           // not owned; nullptr: nothing is known of it
  Observer* observer = nullptr;           // of the walk, not owned; it may be nobody

  [[nodiscard]] const Endpoint& at(End end) const { return end == End::source ? source : destination; }
  [[nodiscard]] MarkChange mark_change(std::uint32_t set_out_with) const {
    return {own_bits, mark ^ (set_out_with & own_bits)};
  }
  // Changes the mark as MARK --set-xmark does.
  void set_mark(std::uint32_t value, std::uint32_t mask) {
    mark = (mark & ~mask) ^ value;
    own_bits &= ~mask;
  }
  friend bool operator==(const PacketAtHook&, const PacketAtHook&) = default;
};

enum class Truth : std::uint8_t { no, yes, unknown };
[[nodiscard]] constexpr Truth known(bool holds) { return holds ? Truth::yes : Truth::no; }
[[nodiscard]] constexpr Truth negated_if(bool negated, Truth truth) {
  return truth == Truth::unknown ? truth : known((truth == Truth::yes) != negated);
}

// Why connection tracking knows nothing of the packet; nullptr: it knows its connection.
[[nodiscard]] const char* without_connection(const PacketAtHook& packet);

}  // namespace sidetrack
