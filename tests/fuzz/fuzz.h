// SPDX-License-Identifier: GPL-2.0-or-later
// What the fuzzers share. A fuzzer takes any bytes, and checks what has to hold for all of them: what is accepted and
// printed reads back as the same, what is refused is named, and nothing but the project's Error is thrown (any other
// exception ends the program).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::fuzz {

// Ends the program if it does not hold.
inline void require(bool holds, std::string_view what, std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: does not hold: %.*s\n", at.file_name(), static_cast<unsigned>(at.line()),
               static_cast<int>(what.size()), what.data());
  std::abort();
}

// A sentence that a terminal may show, of a length that does not depend on the value.
inline void require_readable(const Error& error) {
  constexpr std::size_t longest = 2000;
  const std::string_view what = error.what();
  require(!what.empty() && what.size() <= longest, what);
  require(printable(what) == what, what);
  require(error.hint().size() <= longest && printable(error.hint()) == error.hint(), error.hint());
}

// The next line, without its end; nothing after the last.
inline std::optional<std::string_view> take_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  return line;
}

// Choices made from the input; zeros after its end.
class Choices {
 public:
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  std::size_t below(std::size_t limit) { return byte() % limit; }
  bool yes() { return (byte() & 1U) != 0; }
  std::uint32_t number() {  // most often a small one, or one at an edge
    constexpr std::uint32_t edges[] = {0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x10000, 0xffff, 0x100, 1337};
    const std::uint8_t first = byte();
    if (first < 0xe0) return first;
    if (first < 0xf0) return edges[first % 8];
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8U | byte();
    return value;
  }
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto taken = bytes_.first(count < bytes_.size() ? count : bytes_.size());
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  template <typename T, std::size_t N>
  const T& of(const T (&all)[N]) {
    return all[below(N)];
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace sidetrack::fuzz
