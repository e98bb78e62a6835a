// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_lines.h"

#include <string_view>

#include "text/nft_listing.h"

namespace sidetrack {
namespace {

// "table inet t {" and what it holds, up to its last brace: a chain's statements end at each ; outside other braces.
class Spreader {
 public:
  explicit Spreader(std::vector<PastedLine>& lines) : lines_(lines) {}

  void take(const PastedLine& line) {
    if (opens_nft_table(line.text)) depth_ = 0;  // that before has no end
    std::string_view rest = line.text;
    while (!rest.empty()) {
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
        return put_to(line, rest, i);
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

  void put(const PastedLine& line, std::string_view part, bool is_last) {
    const auto start = part.find_first_not_of(" ;");
    if (start == std::string_view::npos) return;
    part.remove_suffix(part.size() - 1 - part.find_last_not_of(" ;"));
    PastedLine& made = lines_.emplace_back(line.number, std::string(part.substr(start)));
    made.ends_blank = is_last && line.ends_blank;
    made.ends_text = is_last && line.ends_text;
  }

  std::vector<PastedLine>& lines_;
  int depth_ = 0;
};

}  // namespace

std::vector<PastedLine> as_nft_lists(const std::vector<PastedLine>& lines) {
  std::vector<PastedLine> made;
  Spreader spreader(made);
  for (const PastedLine& line : lines) spreader.take(line);
  return made;
}

}  // namespace sidetrack
