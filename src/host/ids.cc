// SPDX-License-Identifier: GPL-2.0-or-later
// fgetpwent(3) would take -1 and numbers beyond 32 bits for some uid; getpwnam(3) would ask the name service switch,
// that is load modules and perhaps ask a server.
#include "host/ids.h"

#include "model/scan.h"

namespace sidetrack::host {

std::optional<std::string_view> id_of(std::string_view name, std::string_view database) {
  for (std::string_view line : split_lines(database)) {
    if (line.substr(0, line.find(':')) != name || line.size() == name.size()) continue;
    line.remove_prefix(name.size() + 1);
    const std::size_t password = line.find(':');
    if (password == std::string_view::npos) return "";
    line.remove_prefix(password + 1);
    return line.substr(0, line.find(':'));
  }
  return std::nullopt;
}

}  // namespace sidetrack::host
