// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/universe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "model/stable_sort.h"

namespace sidetrack::space {
namespace {

constexpr Value all_bits(int bits) { return bits == 128 ? ~Value{0} : (Value{1} << bits) - 1; }

// ---- Marks: sets of numbers by their bits, as unions of "these bits are so, the others any".

struct Cube {
  std::uint32_t value = 0;
  std::uint32_t mask = 0;  // the bits that are fixed
};

constexpr std::size_t most_cubes = 32768;

// Those of the cube in which these bits are so, and the others.
void split(const Cube& cube, const Cube& by, std::vector<Cube>& in, std::vector<Cube>& out) {
  Cube rest = cube;
  for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((by.mask & bit) == 0) continue;
    if ((rest.mask & bit) != 0) {
      if (((rest.value ^ by.value) & bit) == 0) continue;
      out.push_back(rest);
      return;
    }
    out.push_back({(rest.value & ~bit) | (~by.value & bit), rest.mask | bit});
    rest = {(rest.value & ~bit) | (by.value & bit), rest.mask | bit};
  }
  in.push_back(rest);
}

std::string hex(std::uint32_t value, std::uint32_t mask) {
  return mask == ~0U ? fmt::format("{:#x}", value) : fmt::format("{:#x}/{:#x}", value, mask);
}

// What rules ask of marks and cgroups, and make of marks.
class Uses : public Asked {
 public:
  std::vector<Cube> asked;
  std::vector<SetMark> changes;
  std::vector<std::uint32_t> parts;  // of marks, which one has of another one
  std::vector<std::string> cgroups;

  // `reroutes`: packets whose mark is another one may take another route.
  explicit Uses(bool reroutes) : reroutes_(reroutes) {}

  void add(const Rule& rule) {
    for (const Match& match : rule.matches) ask(match, *this);
    if (const auto* set = std::get_if<SetMark>(&rule.target)) change(set->mark, set->mask);
    if (const auto* set = std::get_if<SetConnmark>(&rule.target)) change(set->mark, set->mask);
    if (const auto* set = std::get_if<Tproxy>(&rule.target)) change(set->mark, set->mask);
    if (const auto* copy = std::get_if<Connmark>(&rule.target)) {
      for (const std::uint32_t part : {copy->nfmask, ~copy->nfmask, copy->ctmask, ~copy->ctmask}) parts.push_back(part);
    }
  }

  void mark(std::uint32_t value, std::uint32_t mask) override {
    if (mask != 0 && (value & ~mask) == 0) asked.push_back({value, mask});
  }
  void connmark(std::uint32_t value, std::uint32_t mask) override { mark(value, mask); }
  void cgroup(const std::string& path) override {
    if (!path.empty() && std::ranges::find(cgroups, path) == cgroups.end()) cgroups.push_back(path);
  }
  // Their values are told apart as they are.
  void interface(InterfaceDirection, const std::string&) override {}
  void addresses(End, const std::vector<AddressRange>&) override {}
  void address_type(const AddressTypeMatch&) override {}
  void ends(const ConnectionMatch&) override {}
  void protocol(Protocol) override {}
  void ports(End, const std::vector<PortRange>&) override {}
  void ids(OwnerKind, const std::vector<IdRange>&) override {}
  void socket() override {}
  void connection() override {}

 private:
  void change(std::uint32_t value, std::uint32_t mask) {
    changes.push_back({value, mask});
    if (reroutes_) this->mark(value & mask, mask);  // whether it is what it was
  }

  const bool reroutes_;
};

// What was asked after a change was, of the mark before it, another question.
bool close(std::vector<Cube>& asked, const std::vector<SetMark>& changes, const std::vector<std::uint32_t>& parts) {
  const auto less = [](const Cube& a, const Cube& b) {
    return std::pair(a.value, a.mask) < std::pair(b.value, b.mask);
  };
  std::set<Cube, decltype(less)> all(asked.begin(), asked.end(), less);
  std::vector<Cube> fresh(all.begin(), all.end());
  while (!fresh.empty()) {
    const Cube cube = fresh.back();
    fresh.pop_back();
    bool are_few = true;
    const auto add = [&](std::uint32_t value, std::uint32_t mask) {
      const Cube before{value & mask, mask};
      if (mask == 0 || !all.insert(before).second) return;
      fresh.push_back(before);
      are_few = all.size() <= 64;
    };
    for (const SetMark& change : changes) {
      const std::uint32_t differs = cube.value ^ change.mark;
      if ((differs & cube.mask & change.mask) == 0) add(differs, cube.mask & ~change.mask);  // else never
    }
    for (const std::uint32_t part : parts) add(cube.value, cube.mask & part);
    if (!are_few) return false;
  }
  asked.assign(all.begin(), all.end());
  return true;
}

}  // namespace

Box intersection(Sets& sets, const Box& a, const Box& b) {
  Box made{};
  for (std::size_t i = 0; i < field_count; ++i) made[i] = sets.intersection(a[i], b[i]);
  return made;
}

bool is_within(const Sets& sets, const Box& part, const Box& whole) {
  // Asked first: destinations tell most boxes apart.
  if (!sets.is_within(part[index(Field::destination)], whole[index(Field::destination)])) return false;
  for (std::size_t i = 0; i < field_count; ++i) {
    if (!sets.is_within(part[i], whole[i])) return false;
  }
  return true;
}

double share_of(const Sets& sets, const Box& part, const Box& whole) {
  double share = 1;
  for (std::size_t i = 0; i < field_count; ++i) share *= sets.share(part[i], whole[i]);
  return share;
}

Family family_of(const Sets& sets, const Box& box) {
  return sets.contains(box[index(Field::family)], value_of(Family::ipv4)) ? Family::ipv4 : Family::ipv6;
}

std::string_view way_words(Value way) {
  static constexpr std::string_view words[] = {"outbound", "inbound", "to itself"};  // as Direction
  return words[static_cast<std::size_t>(way)];
}

std::string_view protocol_words(Value protocol) {
  static constexpr std::string_view words[protocol_count] = {"tcp", "udp", "icmp"};
  return words[static_cast<std::size_t>(protocol)];
}

bool is_empty(const Box& box) { return std::ranges::find(box, Sets::empty) != box.end(); }

Value value_of(const Address& address) {
  Value value = 0;
  for (const std::uint8_t byte : address.view()) value = value << 8 | byte;
  return value;
}

Address address_of(Family family, Value value) {
  Address address;
  address.family = family;
  for (std::size_t i = address.size(); i-- > 0; value >>= 8) address.bytes[i] = static_cast<std::uint8_t>(value & 0xff);
  return address;
}

Intervals intervals_of(std::span<const AddressRange> ranges) {
  if (ranges.size() == 1) return {{value_of(ranges.front().first), value_of(ranges.front().last)}};
  Intervals all;
  for (const AddressRange& range : ranges) all.push_back({value_of(range.first), value_of(range.last)});
  return normal(std::move(all));
}

Universe::Universe(std::span<const PodView* const> pods, std::span<const std::span<const Live>> lives) {
  for (const PodView* pod : pods) {
    for (const Interface& interface : pod->interfaces) {
      if (std::ranges::find(interfaces, interface.name) == interfaces.end()) interfaces.push_back(interface.name);
    }
  }
  part_values(lives, pods);
}

void Universe::part_values(std::span<const std::span<const Live>> lives, std::span<const PodView* const> pods) {
  const std::vector<PolicyRule> usual = default_rules();
  Uses all(std::ranges::any_of(pods, [&](const PodView* pod) { return pod->rules != usual; }));
  for (const std::span<const Live> live : lives) {
    for (const Live& one : live) {
      for (const LiveChain& chain : one.chains) {
        for (const LiveRule& rule : chain.rules) all.add(rule.rule);
      }
    }
  }
  std::ranges::move(all.cgroups, std::back_inserter(cgroups));
  for (const PodView* pod : pods) {
    for (const PolicyRule& rule : pod->rules) all.mark(rule.mark & rule.mask, rule.mask);
  }
  std::vector<std::vector<Cube>> classes{{Cube{}}};
  marks_known = close(all.asked, all.changes, all.parts);
  if (!marks_known) all.asked.clear();
  for (const Cube& asked : all.asked) {
    std::vector<std::vector<Cube>> finer;
    std::size_t cubes = 0;
    for (const auto& one : classes) {
      std::vector<Cube> in;
      std::vector<Cube> out;
      for (const Cube& cube : one) split(cube, asked, in, out);
      cubes += in.size() + out.size();
      if (!in.empty()) finer.push_back(std::move(in));
      if (!out.empty()) finer.push_back(std::move(out));
    }
    classes = std::move(finer);
    marks_known = cubes <= most_cubes;
    if (!marks_known) break;
  }
  if (!marks_known) {
    asked_.clear();
    classes = {{Cube{}}};
  } else {
    for (const Cube& cube : all.asked) asked_.push_back({cube.value, cube.mask});
  }
  for (const auto& one : classes) {
    const auto zero = std::ranges::find(one, 0U, &Cube::value);
    marks.push_back(zero != one.end() ? 0 : one.front().value);
    answers_.push_back(answers_of(marks.back()));
  }
}

Universe::Answers Universe::answers_of(std::uint32_t mark) const {
  Answers answers;
  for (const Bits& bits : asked_) answers.emplace_back((mark & bits.mask) == bits.value);
  return answers;
}

// "0x539", "0x1/0x1 but not 0x5", "any but 0x539"; of what follows from another nothing.
std::string Universe::words_of(const Answers& answers) const {
  // Whether all marks of `a` are some of `b`; whether one mark can be of both.
  const auto is_part = [](const Bits& a, const Bits& b) {
    return (b.mask & ~a.mask) == 0 && (a.value & b.mask) == b.value;
  };
  const auto meet = [](const Bits& a, const Bits& b) { return ((a.value ^ b.value) & a.mask & b.mask) == 0; };
  Bits all{0, 0};  // of the questions that are answered by yes
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (answers[i] == true) all = {all.value | asked_[i].value, all.mask | asked_[i].mask};
  }
  std::string is;
  std::string is_not;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const bool follows = !answers[i] || (!*answers[i] && !meet(all, asked_[i])) || [&] {
      for (std::size_t j = 0; j < asked_.size(); ++j) {
        if (i == j || answers[i] != answers[j]) continue;
        if (*answers[i] ? is_part(asked_[j], asked_[i]) : is_part(asked_[i], asked_[j])) return true;
      }
      return false;
    }();
    if (follows) continue;
    std::string& text = *answers[i] ? is : is_not;
    text += (text.empty() ? "" : *answers[i] ? " and " : " or ") + hex(asked_[i].value, asked_[i].mask);
  }
  if (is.empty()) return is_not.empty() ? "" : "any but " + is_not;
  return is_not.empty() ? is : is + " but not " + is_not;
}

Value Universe::mark_class(std::uint32_t mark) const {
  return static_cast<Value>(std::ranges::find(answers_, answers_of(mark)) - answers_.begin());
}

Intervals Universe::marks_with(const MarkChange& made, std::uint32_t value, std::uint32_t mask) const {
  Intervals all;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if ((made.of(marks[i]) & mask) == value) all.push_back({i, i});
  }
  return normal(std::move(all));
}

// Takes the answers of one class, less each without which they still hold for none but these: first those that say
// most, which are yes about many bits; then the same of the classes that are left.
std::vector<std::string> Universe::mark_words(std::span<const Interval> classes) const {
  constexpr std::size_t most_asked = 64;  // each costs a look at all classes
  std::vector<std::string> words;
  std::vector<bool> others(marks.size(), true), left(marks.size(), false);
  for (const Interval& each : classes) {
    for (auto i = static_cast<std::size_t>(each.first); i <= each.last; ++i) {
      others[i] = false;
      left[i] = true;
    }
  }
  const auto hold_for = [&](const Answers& answers, const Answers& of) {
    return std::ranges::equal(answers, of, [](auto one, auto other) { return !one || one == other; });
  };
  std::vector<std::size_t> in_order(asked_.size() <= most_asked ? asked_.size() : 0);
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!left[i]) continue;
    Answers answers = answers_[i];
    sort_stably(in_order, std::greater<>(),
                [&](std::size_t j) { return std::pair(answers[j], std::popcount(asked_[j].mask)); });
    for (const std::size_t j : in_order) {
      const auto before = std::exchange(answers[j], std::nullopt);
      for (std::size_t k = 0; k < marks.size() && !answers[j]; ++k) {
        if (others[k] && hold_for(answers, answers_[k])) answers[j] = before;
      }
    }
    for (std::size_t k = 0; k < marks.size(); ++k) left[k] = left[k] && !hold_for(answers, answers_[k]);
    words.push_back(words_of(answers));
  }
  return words;
}

Intervals Universe::cgroups_within(const std::string& path) const {
  Intervals all;
  for (std::size_t i = 0; i < cgroups.size(); ++i) {
    if (is_within_cgroup(cgroups[i], path)) all.push_back({i, i});
  }
  return normal(std::move(all));
}

Interval Universe::domain(Field field, Family family) const {
  switch (field) {
    case Field::way:
      return {0, 2};
    case Field::family:
      return {0, 1};
    case Field::state:
      return {0, std::size(connection_states) - 1};
    case Field::protocol:
      return {0, protocol_count - 1};
    case Field::interface:
      return {0, interfaces.size() - 1};
    case Field::uid:
    case Field::gid:
      return {0, all_bits(32) - 1};  // (uid_t)-1 is nobody's
    case Field::source:
    case Field::destination:
      return {0, all_bits(family == Family::ipv4 ? 32 : 128)};
    case Field::source_port:
      return {0, all_bits(16)};
    case Field::destination_port:
      return {1, all_bits(16)};
    case Field::mark:
      return {0, marks.size() - 1};
    case Field::cgroup:
      return {0, cgroups.size() - 1};
  }
  return {0, 0};
}

Packet Universe::packet(const Point& point) const {
  Packet packet = packet_with_ports(point);
  if (!has_ports(packet.protocol)) packet.source_port = packet.destination_port = std::nullopt;
  return packet;
}

Packet Universe::packet_with_ports(const Point& point) const {
  const auto of = [&](Field field) { return point[index(field)]; };
  const Family family = family_of(of(Field::family));
  const Protocol protocols[protocol_count] = {Protocol::tcp, Protocol::udp,
                                              family == Family::ipv4 ? Protocol::icmp : Protocol::icmpv6};
  Packet packet;
  packet.direction = static_cast<Direction>(of(Field::way));
  packet.protocol = protocols[static_cast<std::size_t>(of(Field::protocol))];
  packet.state = connection_states[static_cast<std::size_t>(of(Field::state))];
  packet.destination = address_of(family, of(Field::destination));
  if (of(Field::source) != 0) packet.source = address_of(family, of(Field::source));
  if (of(Field::source_port) != by_kernel) packet.source_port = static_cast<std::uint16_t>(of(Field::source_port));
  packet.destination_port = static_cast<std::uint16_t>(of(Field::destination_port));
  if (packet.direction != Direction::in) {
    packet.owner = Owner{static_cast<std::uint32_t>(of(Field::uid)), static_cast<std::uint32_t>(of(Field::gid))};
    if (cgroups.size() > 1) packet.cgroup = cgroups[static_cast<std::size_t>(of(Field::cgroup))];
  }
  packet.interface = interfaces[static_cast<std::size_t>(of(Field::interface))];
  packet.mark = marks[static_cast<std::size_t>(of(Field::mark))];
  return packet;
}

bool Universe::can_be(Direction way, Value interface) const {
  const std::string& name = interfaces[static_cast<std::size_t>(interface)];
  switch (way) {
    case Direction::in:
      return !name.empty() && name != "lo";
    case Direction::out:
      return true;
    case Direction::lo:
      return name.empty();
  }
  return false;
}

}  // namespace sidetrack::space
