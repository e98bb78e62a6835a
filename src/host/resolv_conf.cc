// SPDX-License-Identifier: GPL-2.0-or-later
#include "host/resolv_conf.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/printable.h"

namespace sidetrack::host {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const auto word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace

std::vector<Address> name_servers(std::string_view text, const std::string& name, std::vector<std::string>& warnings) {
  std::vector<Address> servers;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (take_word(line) != "nameserver") continue;  // '#' and ';' at the start of a line make a comment
    const auto word = take_word(line);              // what follows is ignored, as the C library does
    if (const auto server = Address::parse(word.substr(0, word.find('%')))) {
      servers.push_back(*server);
    } else {
      warnings.push_back(fmt::format("{}: '{}' is not an address: name server ignored", name, excerpt(word)));
    }
  }
  return servers;
}

}  // namespace sidetrack::host
