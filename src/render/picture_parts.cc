// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/picture_parts.h"

#include <fmt/format.h>

#include "model/scan.h"

namespace sidetrack {
namespace {

struct FateColors {
  const char* fill;
  const char* stroke;
};

struct Palette {
  const char* page;
  const char* text;
  const char* quiet;  // conditions and reasons
  const char* line;   // between the rules of a card
  FateColors fates[5];
};

// As GitHub's pages are, in light and in dark.
constexpr Palette light = {"#ffffff",
                           "#1f2328",
                           "#57606a",
                           "#d0d7de",
                           {{"#dafbe1", "#2da44e"},
                            {"#ddf4ff", "#0969da"},
                            {"#f6f8fa", "#57606a"},
                            {"#fff8c5", "#9a6700"},
                            {"#ffebe9", "#cf222e"}}};
constexpr Palette dark = {"#0d1117",
                          "#e6edf3",
                          "#9198a1",
                          "#30363d",
                          {{"#12261e", "#3fb950"},
                           {"#10233f", "#58a6ff"},
                           {"#161b22", "#8b949e"},
                           {"#272115", "#d29922"},
                           {"#2d1418", "#f85149"}}};

constexpr const char* fate_names[] = {"onward", "proxy", "call", "change", "drop"};
const char* fate_name(Fate fate) { return fate_names[static_cast<std::size_t>(fate)]; }

std::string style_of(const Palette& palette) {
  std::string rules = fmt::format(
      "text {{ fill: {1} }} text.condition, text.why {{ fill: {2} }} .line {{ stroke: {3} }} .page, rect.card {{ fill: "
      "{0} "
      "}}\n",
      palette.page, palette.text, palette.quiet, palette.line);
  for (std::size_t i = 0; i < std::size(fate_names); ++i) {
    rules += fmt::format(".{0} {{ fill: {1}; stroke: {2} }} .to-{0} {{ fill: {2} }}\n", fate_names[i],
                         palette.fates[i].fill, palette.fates[i].stroke);
  }
  return rules;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string_view(&c, 1);
  }
  return result;
}

}  // namespace

std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::vector<std::string> wrapped(const std::string& sentence, std::size_t width) {
  const auto words = split(sentence, " ");
  return wrapped(std::vector<std::string>(words.begin(), words.end()), width);
}

std::string text_at(double x, double y, std::string_view style, std::string_view words) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\">{}</text>\n", x, y, style, escaped(words));
}

std::string box(double x, double y, double width, double height, double radius, Fate fate, std::string_view more) {
  return fmt::format(
      "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"{:.0f}\" class=\"{}{}\"/>\n", x, y,
      width, height, radius, fate_name(fate), more);
}

std::string arrow(std::string_view path, Fate fate, bool has_head) {
  const std::string head = has_head ? fmt::format(" marker-end=\"url(#to-{})\"", fate_name(fate)) : "";
  return fmt::format("<path d=\"{}\" class=\"{} arrow\"{}/>\n", path, fate_name(fate), head);
}

std::string separator(double x, double y, double width) {
  return fmt::format("<path d=\"M{:.0f} {:.0f}h{:.0f}\" class=\"line\"/>\n", x, y, width);
}

std::string curve(double x, double y, double to_x, double to_y) {
  const double middle = (x + to_x) / 2;
  return fmt::format("M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}", x, y, middle, y, middle, to_y, to_x,
                     to_y);
}

std::string picture(std::string_view title, double width, double height, std::string_view body) {
  std::string markers;
  for (const char* fate : fate_names) {
    markers += fmt::format(
        "<marker id=\"to-{0}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" class=\"to-{0}\"/></marker>\n",
        fate);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\">\n"
      "<title>{2}</title>\n"
      "<style>\n"
      "text {{ font: 12px Helvetica, Arial, sans-serif }} text.band {{ font: bold 13px Helvetica, Arial, sans-serif "
      "}}\n"
      "text.chain {{ font: bold 12px monospace }} text.condition {{ font: 10px monospace }}\n"
      "path.arrow, rect.pod {{ fill: none; stroke-width: 1.5 }} rect.pod {{ stroke-dasharray: 6 4 }}\n"
      "{3}@media (prefers-color-scheme: dark) {{\n{4}}}\n"
      "</style>\n"
      "<defs>\n{5}</defs>\n"
      "<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n"
      "{6}</svg>\n",
      width, height, title, style_of(light), style_of(dark), markers, body);
}

}  // namespace sidetrack
