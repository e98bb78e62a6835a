// SPDX-License-Identifier: GPL-2.0-or-later
// What a packet is made of, as numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/packet.h"
#include "pod/pod_view.h"
#include "rule/live.h"
#include "rule/packet_at_hook.h"
#include "space/interval_set.h"

namespace sidetrack::space {

// As numbers: way: Direction. family: see value_of(). state: see connection_states. protocol: tcp, udp, icmp.
// interface: see Universe::interfaces. source: 0: the kernel chooses it (out, lo), or any host (in). source_port: 0:
// the kernel chooses it. mark: a class of marks, see Universe::marks. cgroup: see Universe::cgroups.
using Field = PacketField;
inline constexpr std::size_t field_count = 13;
[[nodiscard]] constexpr std::size_t index(Field field) { return static_cast<std::size_t>(field); }

inline constexpr ConnectionState connection_states[] = {ConnectionState::new_, ConnectionState::established,
                                                        ConnectionState::invalid};
inline constexpr std::size_t protocol_count = 3;
[[nodiscard]] constexpr Value value_of(Family family) { return family == Family::ipv4 ? 0 : 1; }
[[nodiscard]] constexpr Family family_of(Value value) { return value == 0 ? Family::ipv4 : Family::ipv6; }
inline constexpr Value tcp = 0;  // of Field::protocol
inline constexpr Value udp = 1;
inline constexpr Value icmp = 2;       // of the family
inline constexpr Value unbound = 0;    // of Field::interface: a socket that is bound to none
inline constexpr Value by_kernel = 0;  // of Field::source and source_port: the kernel chooses it
// "outbound", "inbound", "to itself"; "tcp", "udp", "icmp".
[[nodiscard]] std::string_view way_words(Value way);
[[nodiscard]] std::string_view protocol_words(Value protocol);

using Point = std::array<Value, field_count>;
using Box = std::array<Sets::Id, field_count>;  // the product of these sets
[[nodiscard]] Box intersection(Sets& sets, const Box& a, const Box& b);
[[nodiscard]] bool is_within(const Sets& sets, const Box& part, const Box& whole);
// How much of the whole one it is: that of each field, multiplied.
[[nodiscard]] double share_of(const Sets& sets, const Box& part, const Box& whole);
[[nodiscard]] bool is_empty(const Box& box);
// Of a box of one family.
[[nodiscard]] Family family_of(const Sets& sets, const Box& box);

// All packets of one question. Two sides of a comparison share one.
class Universe {
 public:
  Universe(std::span<const PodView* const> pods, std::span<const std::span<const Live>> lives);

  [[nodiscard]] Interval domain(Field field, Family family) const;
  [[nodiscard]] Packet packet(const Point& point) const;
  // The same, with ports whatever the protocol.
  [[nodiscard]] Packet packet_with_ports(const Point& point) const;
  // Whether such a packet can be: `in` comes by an interface that is not lo, the others are bound to none or to one.
  [[nodiscard]] bool can_be(Direction way, Value interface) const;

  std::vector<std::string> interfaces{""};  // "": not bound
  std::vector<std::string> cgroups{""};     // "": in none that a rule asks for
  std::vector<std::uint32_t> marks;  // one of each class that nothing tells apart: no rule, nor what rules make of them
  bool marks_known = true;  // false: they are too many to tell apart: rules that ask for one cannot be followed

  [[nodiscard]] Value mark_class(std::uint32_t mark) const;
  // Returns the classes of marks of which these bits are so after that change, and the cgroups that are within the
  // path.
  [[nodiscard]] Intervals marks_with(const MarkChange& made, std::uint32_t value, std::uint32_t mask) const;
  [[nodiscard]] Intervals cgroups_within(const std::string& path) const;
  // Returns the words of classes of marks, as few as hold for these alone: "0x2/0x2" of all in which that bit is set.
  [[nodiscard]] std::vector<std::string> mark_words(std::span<const Interval> classes) const;

 private:
  struct Bits {
    std::uint32_t value;
    std::uint32_t mask;
  };
  void part_values(std::span<const std::span<const Live>> lives, std::span<const PodView* const> pods);
  using Answers = std::vector<std::optional<bool>>;  // to asked_; nothing: either
  [[nodiscard]] Answers answers_of(std::uint32_t mark) const;
  [[nodiscard]] std::string words_of(const Answers& answers) const;

  std::vector<Bits> asked_;  // what is asked of marks: mark & mask == value
  std::vector<Answers> answers_;
};

[[nodiscard]] Value value_of(const Address& address);
[[nodiscard]] Address address_of(Family family, Value value);
[[nodiscard]] Intervals intervals_of(std::span<const AddressRange> ranges);
template <typename Number>
[[nodiscard]] Intervals intervals_of(const std::vector<Range<Number>>& ranges) {
  Intervals all;
  for (const Range<Number>& range : ranges) all.push_back({range.first, range.last});
  return normal(std::move(all));
}

}  // namespace sidetrack::space
