// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/utf16.h"

#include <cstdint>

namespace sidetrack {
namespace {

void append_utf8(std::string& text, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto follow = [&](unsigned shift) { add(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | (code >> 6));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    follow(6);
  } else {
    add(0xf0 | (code >> 18));
    follow(12);
    follow(6);
  }
  follow(0);
}

bool is_between(std::uint32_t unit, std::uint32_t first, std::uint32_t last) { return first <= unit && unit <= last; }

}  // namespace

std::string without_utf16(std::string text) {
  const bool is_little = text.starts_with("\xff\xfe");
  if (!is_little && !text.starts_with("\xfe\xff")) return text;
  const auto unit_at = [&](std::size_t i) -> std::uint32_t {
    const auto byte = [&](std::size_t at) -> std::uint32_t { return static_cast<std::uint8_t>(text[at]); };
    return is_little ? byte(i) | byte(i + 1) << 8U : byte(i) << 8U | byte(i + 1);
  };
  std::string made;
  for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
    std::uint32_t code = unit_at(i);
    const bool is_high = is_between(code, 0xd800, 0xdbff);
    if (is_high && i + 3 < text.size() && is_between(unit_at(i + 2), 0xdc00, 0xdfff)) {
      code = 0x10000 + ((code - 0xd800) << 10) + (unit_at(i + 2) - 0xdc00);
      i += 2;
    } else if (is_between(code, 0xd800, 0xdfff)) {
      code = 0xfffd;
    }
    append_utf8(made, code);
  }
  return made;
}

}  // namespace sidetrack
