// SPDX-License-Identifier: GPL-2.0-or-later
#include "host/resolv_conf.h"

#include <fmt/format.h>

#include "model/printable.h"
#include "model/scan.h"

namespace sidetrack::host {

std::vector<Address> name_servers(std::string_view text, const std::string& name, std::vector<std::string>& warnings) {
  std::vector<Address> servers;
  for (const std::string_view line : split_lines(text)) {
    auto words = split(line, " \t\r");
    if (words.empty() || words[0] != "nameserver") continue;  // '#' and ';' at the start of a line make a comment
    words.emplace_back();  // what follows the address is ignored, as the C library does
    if (const auto server = Address::parse(words[1].substr(0, words[1].find('%')))) {
      servers.push_back(*server);
    } else {
      warnings.push_back(fmt::format("{}: '{}' is not an address: name server ignored", name, excerpt(words[1])));
    }
  }
  return servers;
}

}  // namespace sidetrack::host
