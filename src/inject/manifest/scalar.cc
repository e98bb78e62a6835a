// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/scalar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "model/scan.h"

namespace sidetrack::manifest {
namespace {

// The three cases of each, and no others: "nULL" is a string.
constexpr std::string_view nulls[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view trues[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::string_view falses[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view no_json_numbers[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                                "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

bool is_in(std::span<const std::string_view> list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::pair<std::array<std::string_view, 2>, int> base_table[] = {
    {{"0x", "0X"}, 16}, {{"0b", "0B"}, 2}, {{"0o", "0O"}, 8}};

struct Integer {
  bool negative;
  int base;
  std::string digits;
};

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  return digits;
}

bool are_digits(std::string_view text, int base) {
  const auto fits = [base](char c) {
    const int value = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : base;
    return value < base;
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

std::optional<Integer> integer(std::string_view text) {
  const std::string plain = without_underscores(text);
  std::string_view left = plain;
  Integer made{left.starts_with('-'), 10, {}};
  if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
  for (const auto& [prefixes, base] : base_table) {
    if (!left.starts_with(prefixes[0]) && !left.starts_with(prefixes[1])) continue;
    made.base = base;
    left.remove_prefix(2);
    break;
  }
  // 0644 as in YAML 1.1; 0899 is no octal number, but the regular expression of floats takes it.
  if (made.base == 10 && left.size() > 1 && left[0] == '0') made.base = 8;
  if (!are_digits(left, made.base)) return std::nullopt;
  // Too large for 64 bits it is a float, if it looks like one, as 0555…; decimal it stays what it is.
  const auto value = to_number<std::uint64_t>(left, made.base);
  if (made.base != 10 && (!value || (made.negative && *value > std::uint64_t{1} << 63))) return std::nullopt;
  made.digits = left;
  return made;
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_float(std::string_view text) {
  const std::string plain = without_underscores(text);
  std::string_view left = plain;
  if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
  const bool whole = !take_digits(left).empty();
  bool fraction = false;
  if (left.starts_with('.')) {
    left.remove_prefix(1);
    fraction = !take_digits(left).empty();
  }
  if (!whole && !fraction) return false;
  if (left.starts_with('e') || left.starts_with('E')) {
    left.remove_prefix(1);
    if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
    if (take_digits(left).empty()) return false;
  }
  return left.empty();
}

// A float as JSON writes it: digits before and after the point, no plus sign, no zeros before.
std::string json_float(std::string_view text) {
  const std::string plain = without_underscores(text);
  std::string_view left = plain;
  std::string made = left.starts_with('-') ? "-" : "";
  if (left.starts_with('-') || left.starts_with('+')) left.remove_prefix(1);
  std::string_view whole = take_digits(left);
  while (whole.size() > 1 && whole[0] == '0') whole.remove_prefix(1);
  made += whole.empty() ? "0" : whole;
  if (left.starts_with('.')) {
    left.remove_prefix(1);
    const std::string_view fraction = take_digits(left);
    if (!fraction.empty()) (made += '.') += fraction;
  }
  return made += left;
}

}  // namespace

bool is_true(std::string_view boolean) { return is_in(trues, boolean); }

Node::Type type_of_plain(std::string_view text) {
  if (is_in(nulls, text)) return Node::Type::null;
  if (is_in(trues, text) || is_in(falses, text)) return Node::Type::boolean;
  if (is_in(no_json_numbers, text)) return Node::Type::number;
  const char first = text[0];
  if (!is_digit(first) && first != '-' && first != '+' && first != '.') return Node::Type::string;
  const bool is_number = integer(text) || is_float(text);
  return is_number && std::isfinite(std::strtod(json_number(text).c_str(), nullptr)) ? Node::Type::number
                                                                                     : Node::Type::string;
}

std::string json_number(std::string_view text) {
  if (is_in(no_json_numbers, text)) return std::string(text);
  const auto whole = integer(text);
  if (!whole) return json_float(text);
  const auto value = to_number<std::uint64_t>(whole->digits, whole->base);
  return (whole->negative && value != 0U ? "-" : "") + (value ? std::to_string(*value) : whole->digits);
}

std::string key_of_plain(std::string_view text) {
  switch (type_of_plain(text)) {
    case Node::Type::boolean:
      return is_true(text) ? "true" : "false";
    case Node::Type::number:
      return json_number(text);
    default:
      return std::string(text);
  }
}

}  // namespace sidetrack::manifest
