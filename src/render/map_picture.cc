// SPDX-License-Identifier: GPL-2.0-or-later
// The map as a drawing: a card for each section, whose rows are what becomes of a part of it, and on the right where
// these parts end.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "render/map_parts.h"

namespace sidetrack {
namespace {

constexpr std::size_t widest_row = 60;  // characters
constexpr double row_line = 15;
constexpr double row_padding = 10;
constexpr double of_title = 26;
constexpr double section_gap = 18;
constexpr double arrow_width = 160;

struct Destination {
  std::string text;
  Fate fate{};
  double wanted = 0;  // the sum of the heights of what leads to it
  double count = 0;
  double y = 0;
};

// Each once, in the order in which they are met.
std::vector<Destination> ends_of(const std::vector<MapSection>& sections) {
  std::vector<Destination> all;
  for (const MapSection& section : sections) {
    for (const MapRow& row : section.rows) {
      if (std::ranges::find(all, row.end, &Destination::text) == all.end()) all.push_back({row.end, row.fate});
    }
  }
  return all;
}

std::vector<std::string> lines_of(const MapRow& row) {
  std::vector<std::string> lines = wrapped(row.words, widest_row);
  if (!row.why.empty()) lines.push_back(fmt::format("({})", row.why));
  return lines;
}

double width_of_lines(const std::vector<std::string>& lines) {
  std::size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  return static_cast<double>(longest) * sentence_character;
}

}  // namespace

std::string map_svg(space::Regions& regions, std::size_t side, const MapOptions& options) {
  bool left_out = false;
  const std::vector<MapSection> sections = map_sections(regions, side, options, left_out);
  std::vector<Destination> ends = ends_of(sections);
  double card = 200;
  for (const MapSection& section : sections) {
    card = std::max(card, width_of_lines({section.title}) + 2 * row_padding);
    for (const MapRow& row : section.rows) card = std::max(card, width_of_lines(lines_of(row)) + 2 * row_padding);
  }
  double pill = 100;
  for (const Destination& end : ends) pill = std::max(pill, width_of_lines({end.text}) + 2 * row_padding);

  std::string cards;
  struct Arrow {
    double from;
    std::size_t to;
  };
  std::vector<Arrow> all;
  double y = section_gap;
  for (const MapSection& section : sections) {
    std::string rows;
    double at = y + of_title;
    for (const MapRow& row : section.rows) {
      const std::vector<std::string> lines = lines_of(row);
      const double height = static_cast<double>(lines.size()) * row_line + row_padding;
      rows += separator(section_gap, at, card);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool is_why = !row.why.empty() && i + 1 == lines.size();
        rows += text_at(section_gap + row_padding, at + row_padding / 2 + static_cast<double>(i) * row_line + 11,
                        is_why ? "why" : "sentence", lines[i]);
      }
      const auto to = static_cast<std::size_t>(std::ranges::find(ends, row.end, &Destination::text) - ends.begin());
      all.push_back({at + height / 2, to});
      ends[to].wanted += at + height / 2;
      ends[to].count += 1;
      at += height;
    }
    cards += box(section_gap, y, card, at - y, 6, Fate::call);
    cards += text_at(section_gap + row_padding, y + 17, "band", section.title);
    cards += rows;
    y = at + section_gap;
  }
  // Each beside what leads to it, as far as there is room.
  std::multimap<double, Destination*> order;
  for (Destination& end : ends) order.emplace(end.wanted / end.count, &end);
  double free = section_gap;
  for (const auto& [wanted, end] : order) {
    end->y = std::max(free, wanted - of_title / 2);
    free = end->y + of_title + section_gap;
  }
  const double left = section_gap + card + arrow_width;
  const double width = left + pill + section_gap;
  const double height = std::max(y, free);
  std::string text;
  for (const Arrow& each : all) {
    const Destination& end = ends[each.to];
    text += arrow(curve(section_gap + card, each.from, left, end.y + of_title / 2), end.fate, false);
  }
  text += cards;
  for (const Destination& end : ends) {
    text += box(left, end.y, pill, of_title, 6, end.fate);
    text += text_at(left + row_padding, end.y + 17, "sentence", end.text);
  }
  return picture("What becomes of all traffic", width, height, text);
}

}  // namespace sidetrack
