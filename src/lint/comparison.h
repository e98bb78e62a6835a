// SPDX-License-Identifier: GPL-2.0-or-later
// Everything with an option against everything without it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lint/finding.h"
#include "space/regions.h"

namespace sidetrack::lint {

// A value of a list as it was given, and the packets that it speaks of.
struct ListValue {
  std::string text;
  std::optional<Family> family;  // of an address
  space::Interval values;
};

// An option that was given, what it says, and how everything would be without it.
struct Option {
  std::string flag;   // "-x"
  std::string value;  // "10.0.0.0/8,10.1.0.0/16"; empty: none
  std::vector<ListValue> values{};
  std::vector<Direction> ways{Direction::out};          // of the packets that the values speak of,
  space::Field field = space::Field::destination_port;  // by what they have there
  Protocol protocol = Protocol::tcp;                    // which people send
  space::Side without{};
  // How everything would be without these values of it, by their places in `values`. None: as `without`, but for them.
  std::function<space::Side(const std::set<std::size_t>&)> without_values{};
  bool same_plan = false;               // without it, not even the rules differ
  bool only_by_plan = false;            // what it changes is seen in no packet: its rules decide
  bool only_covered = false;            // its values are compared with each other alone
  bool only_whole = false;              // its values are not asked about
  bool only_values = false;             // they alone are
  std::string cover{};                  // another value of its list that says the same, and more; empty: none does
  std::vector<std::string> usual{};     // values that nobody asked for
  std::optional<std::uint16_t> port{};  // to which what it is about goes
  // What else that has.
  std::vector<std::pair<space::Field, space::Interval>> about{};
};

// Moves to the end of the sides how everything would be without each of the options.
void add_without(std::vector<space::Side>& sides, std::vector<Option>& options);
// Options without effect, and values without effect of those that have one. The first side has all of them, the last
// ones are those of add_without(). `families`: that have rules.
[[nodiscard]] Findings without_effect(space::Regions& regions, Families families, const std::vector<Option>& options);

}  // namespace sidetrack::lint
