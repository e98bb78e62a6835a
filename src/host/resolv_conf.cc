// SPDX-License-Identifier: GPL-2.0-or-later
#include "host/resolv_conf.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "sidetrack/error.h"

namespace sidetrack::host {
namespace {

constexpr std::string_view blanks = " \t\r\n";

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const auto word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

std::vector<Address> name_servers(const std::string& path, std::vector<std::string>& warnings) {
  const auto unreadable = [&](int error) {
    return system_error(error, fmt::format("cannot read the name servers of {}", path), ExitCode::failed,
                        "--dns-server names them, --capture-all-dns captures DNS to any server");
  };
  const std::unique_ptr<FILE, decltype(&fclose)> file(fopen(path.c_str(), "re"), fclose);
  if (!file) throw unreadable(errno);

  std::vector<Address> servers;
  char* buffer = nullptr;
  std::size_t capacity = 0;
  errno = 0;
  for (ssize_t length = 0; (length = getline(&buffer, &capacity, file.get())) >= 0;) {
    std::string_view line(buffer, static_cast<std::size_t>(length));
    if (take_word(line) != "nameserver") continue;  // '#' and ';' at the start of a line make a comment
    const auto word = take_word(line);              // what follows is ignored, as the C library does
    if (const auto server = Address::parse(word.substr(0, word.find('%')))) {
      servers.push_back(*server);
    } else {
      warnings.push_back(fmt::format("{}: '{}' is no address: this name server is passed over", path, word));
    }
  }
  const int error = ferror(file.get()) != 0 ? errno : 0;
  free(buffer);
  if (error != 0) throw unreadable(error);
  return servers;
}

}  // namespace sidetrack::host
