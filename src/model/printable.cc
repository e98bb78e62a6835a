// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace sidetrack {
namespace {

constexpr std::size_t longest_value = 80;

// What a text begins with: a character, or a byte that is part of none.
struct Piece {
  std::size_t size = 1;
  bool valid = false;
  std::uint32_t code = 0;  // the byte, if it is not valid
};

std::uint8_t byte_at(std::string_view text, std::size_t place) { return static_cast<std::uint8_t>(text[place]); }

// RFC 3629: no longer form than needed, no surrogates, nothing above U+10FFFF.
Piece first_of(std::string_view text) {
  const std::uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) return {1, true, lead};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {1, false, lead};
  std::uint32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return {1, false, lead};
    code = code << 6 | (byte_at(text, i) & 0x3f);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[size] || code > 0x10ffff || surrogate) return {1, false, lead};
  return {size, true, code};
}

struct Codes {
  std::uint32_t first;
  std::uint32_t last;
};
constexpr Codes hidden[] = {
    {0x00, 0x1f},        // ASCII's control characters
    {0x7f, 0x9f},        // DEL, C1
    {0xad, 0xad},        // soft hyphen
    {0x61c, 0x61c},      // Arabic letter mark
    {0x200b, 0x200f},    // zero width; left-to-right, right-to-left mark
    {0x2028, 0x202e},    // line and paragraph separator; embedding, override
    {0x2060, 0x206f},    // invisible operators; isolates
    {0xfeff, 0xfeff},    // byte order mark
    {0xfff9, 0xfffb},    // interlinear annotation
    {0xe0000, 0xe007f},  // tags
};

bool is_hidden(std::uint32_t code) {
  return std::ranges::any_of(hidden, [&](const Codes& range) { return range.first <= code && code <= range.last; });
}

std::string escape(const Piece& piece) {
  if (!piece.valid || piece.code < 0x80) return fmt::format("\\x{:02x}", piece.code);
  if (piece.code < 0x10000) return fmt::format("\\u{:04x}", piece.code);
  return fmt::format("\\U{:08x}", piece.code);
}

bool is_plain(char c) { return c >= ' ' && c <= '~'; }

// Takes off what the text begins with that needs no look.
std::string_view take_plain(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_plain);
  const std::string_view plain = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(plain.size());
  return plain;
}

// How many of the first bytes stay whatever they are.
using Kept = std::size_t (*)(std::string_view rest);

std::size_t nothing(std::string_view) { return 0; }
std::size_t layout(std::string_view rest) { return rest.front() == '\n' || rest.front() == '\t' ? 1 : 0; }
// "\033[1m", "\033[32m", "\033[0m"
std::size_t layout_and_style(std::string_view rest) {
  if (!rest.starts_with("\033[")) return layout(rest);
  std::size_t end = 2;
  while (end < rest.size() && end < 4 && rest[end] >= '0' && rest[end] <= '9') ++end;
  return end > 2 && end < rest.size() && rest[end] == 'm' ? end + 1 : 0;
}

std::string escaped(std::string_view text, Kept kept) {
  std::string result(take_plain(text));
  for (; !text.empty(); result += take_plain(text)) {
    if (const std::size_t size = kept(text); size > 0) {
      result += text.substr(0, size);
      text.remove_prefix(size);
      continue;
    }
    const Piece piece = first_of(text);
    if (piece.valid && !is_hidden(piece.code)) {
      result += text.substr(0, piece.size);
    } else {
      result += escape(piece);
    }
    text.remove_prefix(piece.size);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, nothing); }
std::string printable_lines(std::string_view text) { return escaped(text, layout); }
std::string printable_page(std::string_view text) { return escaped(text, layout_and_style); }

std::string excerpt(std::string_view value) {
  std::string_view rest = value;
  for (std::size_t shown = 0; shown < longest_value && !rest.empty(); ++shown) rest.remove_prefix(first_of(rest).size);
  const std::string begin = printable(value.substr(0, value.size() - rest.size()));
  return rest.empty() ? begin : fmt::format("{}… ({} bytes)", begin, value.size());
}

std::string valid_utf8(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<std::uint8_t>(c) < 0x80; })) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const Piece piece = first_of(text);
    result += piece.valid ? std::string(text.substr(0, piece.size)) : escape(piece);
    text.remove_prefix(piece.size);
  }
  return result;
}

std::string printable_json(std::string_view document) {
  std::string result(take_plain(document));
  for (; !document.empty(); result += take_plain(document)) {
    const Piece piece = first_of(document);
    const auto add = [&](std::uint32_t unit) { fmt::format_to(std::back_inserter(result), "\\u{:04x}", unit); };
    if (piece.code == '\n' || !is_hidden(piece.code)) {
      result += document.substr(0, piece.size);
    } else if (piece.code < 0x10000) {
      add(piece.code);
    } else {  // as UTF-16
      add(0xd800 + ((piece.code - 0x10000) >> 10));
      add(0xdc00 + (piece.code & 0x3ff));
    }
    document.remove_prefix(piece.size);
  }
  return result;
}

}  // namespace sidetrack
