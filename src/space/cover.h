// SPDX-License-Identifier: GPL-2.0-or-later
// Regions as a person would say them: few, as large as they can be, and overlapping where they end alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "space/regions.h"

namespace sidetrack::space {

// All packets of the box end so, except for those of lines that follow it; fields that do not matter are whole.
struct Line {
  Box box{};
  Ending ending;
  std::vector<const Step*> steps;  // what decides about it, about the largest part first; empty: not all by rules
  double share = 0;                // of the section
  bool has_exceptions = false;     // some of the lines that follow end otherwise
};

// One way, family and protocol.
struct Section {
  Direction way = Direction::out;
  Family family = Family::ipv4;
  std::size_t protocol = 0;    // as Field::protocol
  std::string forwarded_from;  // in: by that interface come packets that are not for the pod; empty: they are for it
  Line rest;                   // what no line says; its box is the whole section: other values do not count
  std::vector<Line> lines;
};

// The box with each field as large as it can be within the whole one, where nothing but leaves that pass is in it.
[[nodiscard]] Box widened(Regions& regions, Regions::Node root, Box box, const Box& whole,
                          const std::function<bool(Leaf)>& passes);

struct SectionOptions {
  std::vector<Direction> ways;
  bool forwarded = true;  // and what the pod forwards
  bool plain = false;     // only by sockets that choose neither mark nor address, and by interfaces with addresses
  // Where there are many lines, some may have exceptions; otherwise all packets of each line end alike.
  bool exceptions = false;
  // A leaf that ends for the caller's purpose as this one does, the same for all of a kind.
  std::function<Leaf(Leaf)> like = [](Leaf leaf) { return leaf; };
};
// Of ordinary packets (see Scope).
[[nodiscard]] std::vector<Section> sections(Regions& regions, std::size_t side, const SectionOptions& options);

}  // namespace sidetrack::space
