// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_lines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/nft_listing.h"

namespace sidetrack {
namespace {

// Joins the lines of a chain's rule that a mail or an editor has wrapped: they are indented otherwise than the chain's
// first line.
class Unwrapper {
 public:
  std::vector<PastedLine> join(std::vector<PastedLine> lines) && {
    std::vector<PastedLine> made;
    for (PastedLine& line : lines) {
      // A warning on standard error parts a rule, too: it is taken out where rules are read.
      const bool wrapped = is_wrapped(line) && made.back().text.find('#') == std::string::npos &&
                           !stands_for_lines(line.text) && !stands_for_lines(made.back().text);
      depth_ += opened_braces(line.text);
      if (wrapped) {
        made.back().text += " " + line.text;
        made.back().ends_blank = line.ends_blank;
        made.back().ends_text = line.ends_text;
      } else {
        made.push_back(std::move(line));
      }
    }
    return made;
  }

 private:
  bool is_wrapped(const PastedLine& line) {
    if (opens_nft_table(line.text)) {
      depth_ = 0;  // that before has no end
      table_margin_ = line.margin;
    }
    if (depth_ < 2) is_first_ = true;
    if (depth_ != 2 || line.text.starts_with('}') || line.text.starts_with('#')) return false;
    if (std::exchange(is_first_, false)) margin_ = line.margin;
    // One blank more is where nft leaves out a match of iptables.
    const std::size_t other = std::max(line.margin, margin_) - std::min(line.margin, margin_);
    return margin_ > table_margin_ && other > 1;
  }

  int depth_ = 0;
  std::size_t table_margin_ = 0;
  bool is_first_ = true;    // the next line is a chain's or set's first one
  std::size_t margin_ = 0;  // of that line
};

// "table inet t {" and what it holds, up to its last brace: a chain's statements end at each ; outside other braces.
class Spreader {
 public:
  explicit Spreader(std::vector<PastedLine>& lines) : lines_(lines) {}

  void take(const PastedLine& line) {
    if (opens_nft_table(line.text)) depth_ = 0;  // that before has no end
    std::string_view rest = line.text;
    while (!rest.empty()) {
      // flush table inet t; table inet t { … }
      const auto end = depth_ == 0 ? rest.substr(0, rest.find('{')).rfind(';') : std::string_view::npos;
      if (end != std::string_view::npos && opens_table(rest)) {
        put(line, rest.substr(0, end), false);
        rest.remove_prefix(end + 1);
      }
      if (depth_ == 0 && !opens_table(rest)) {
        lines_.push_back({line.number, std::string(rest), line.ends_blank, line.ends_text});
        return;
      }
      rest.remove_prefix(take_part(line, rest));
    }
  }

 private:
  static bool opens_table(std::string_view text) {
    const auto table = text.find("table ");
    const auto brace = table != std::string_view::npos ? text.find('{', table) : table;
    return brace != std::string_view::npos && opens_nft_table(std::string(text.substr(0, brace)) + " {");
  }

  // Returns how much of it was taken.
  std::size_t take_part(const PastedLine& line, std::string_view rest) {
    char quote = '\0';
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const char c = rest[i];
      if (quote != '\0' || c == '"') {
        quote = quote == '\0' ? c : c == quote ? '\0' : quote;
      } else if (c == '#') {
        break;  // nothing but a comment follows, or what iptables has there
      } else if (c == '{' && ++depth_ <= 2) {
        return put_to(line, rest, i + 1);
      } else if (c == '}' && depth_ > 0 && --depth_ < 2) {
        if (rest.find_first_not_of(' ') == i) return put_to(line, rest, i + 1);
        ++depth_;
        put(line, rest.substr(0, i), false, true);
        return i;
      } else if (c == ';' && (depth_ == 1 || depth_ == 2)) {
        return put_to(line, rest, i + 1);
      }
    }
    return put_to(line, rest, rest.size());
  }

  // What follows the part on the same line is `# handle 3`, if anything.
  std::size_t put_to(const PastedLine& line, std::string_view rest, std::size_t size) {
    const auto next = rest.find_first_not_of(" ;", size);
    if (next == std::string_view::npos || rest[next] == '#') size = rest.size();
    put(line, rest.substr(0, size), size == rest.size());
    return size;
  }

  void put(const PastedLine& line, std::string_view part, bool is_last, bool lacks_end = false) {
    const auto start = part.find_first_not_of(" ;");
    if (start == std::string_view::npos) return;
    part.remove_suffix(part.size() - 1 - part.find_last_not_of(" ;"));
    PastedLine& made = lines_.emplace_back(line.number, std::string(part.substr(start)));
    made.ends_blank = is_last && line.ends_blank;
    made.ends_text = is_last && line.ends_text;
    made.lacks_end = lacks_end;
  }

  std::vector<PastedLine>& lines_;
  int depth_ = 0;
};

}  // namespace

int opened_braces(std::string_view line) {
  int opened = 0;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '#') break;
    opened += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
  return opened;
}

std::vector<PastedLine> as_nft_lists(std::vector<PastedLine> lines) {
  std::vector<PastedLine> made;
  Spreader spreader(made);
  for (const PastedLine& line : Unwrapper().join(std::move(lines))) spreader.take(line);
  return made;
}

}  // namespace sidetrack
