// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "model/error.h"
#include "model/printable.h"
#include "options/values.h"
#include "system/read_write.h"

namespace sidetrack::options {
namespace {

// A million IPv4 ranges take 18 MB. Without a limit /dev/zero would be read until the container is out of memory.
constexpr std::size_t largest_file = 32U << 20;

// What some editors begin a file of UTF-8 with.
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::string read_file(const Given& given, const std::string& path) {
  std::string text;
  if (const int error = read_named(path == "-" ? "./-" : path, largest_file, text); error != 0) {
    throw Error(ExitCode::usage,
                fmt::format("{}: cannot read the list {}: {}", name_of(given), excerpt(path), errno_words(error)));
  }
  return text;
}

// The text up to the separator, which is taken away with it.
std::string_view take_until(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

void each_item(const Given& given, const std::function<void(const Item&)>& use) {
  const auto each_of_line = [&](std::string_view text, std::string_view file, std::size_t line) {
    while (!text.empty()) {
      const auto item = without_blanks(take_until(text, ','));
      if (!item.empty()) use(Item{given, item, file, line});
    }
  };
  if (!given.text.starts_with('@')) return each_of_line(given.text, {}, 0);

  const std::string path(given.text.substr(1));
  if (path.empty()) refuse(given, "the name of a file after the @");
  const std::string text = read_file(given, path);
  std::string_view left = text;
  if (left.starts_with(byte_order_mark)) left.remove_prefix(byte_order_mark.size());
  for (std::size_t line = 1; !left.empty(); ++line) {
    std::string_view content = take_until(left, '\n');
    if (content.find('\0') != std::string_view::npos) {
      throw Error(ExitCode::usage,
                  fmt::format("{}: {}, line {}: a zero byte: expected a list as text", name_of(given), path, line),
                  "save the file as UTF-8");
    }
    each_of_line(take_until(content, '#'), path, line);
  }
}

}  // namespace sidetrack::options
