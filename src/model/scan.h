// SPDX-License-Identifier: GPL-2.0-or-later
// Text taken apart. Streams would do it, too, and bring 0.6 MB along.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sidetrack {

// The whole text as an integer; nothing if it is anything else, or too large.
template <typename Number>
[[nodiscard]] std::optional<Number> to_number(std::string_view text, int base = 10) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Its parts between any of the separators, without empty ones.
[[nodiscard]] inline std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> all;
  for (auto at = text.find_first_not_of(separators); at != std::string_view::npos;) {
    const auto end = text.find_first_of(separators, at);
    all.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(separators, end);
  }
  return all;
}
// Its parts between these separators, empty ones, too: at least one.
[[nodiscard]] inline std::vector<std::string_view> split_at_each(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    all.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return all;
}
[[nodiscard]] inline std::vector<std::string_view> split_words(std::string_view text) { return split(text, " \t\n"); }
[[nodiscard]] inline std::vector<std::string_view> split_lines(std::string_view text) { return split(text, "\n"); }

// "kubepods/pod1" of "/kubepods/pod1/"
[[nodiscard]] inline std::string without_slashes(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

}  // namespace sidetrack
