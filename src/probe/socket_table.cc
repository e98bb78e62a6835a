// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/socket_table.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/scan.h"
#include "system/descriptor.h"

namespace sidetrack::probe {
namespace {

// Those of this thread: /proc/net would be those of the process's first one.
constexpr const char* tcp = "/proc/thread-self/net/tcp";
constexpr const char* tcp6 = "/proc/thread-self/net/tcp6";

// proc_net_tcp(5): each 32 bits of an address as a number of this machine, in hexadecimal.
std::string hexadecimal(std::span<const std::uint8_t> address) {
  std::string text;
  for (std::size_t i = 0; i + 4 <= address.size(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, &address[i], sizeof word);
    text += fmt::format("{:08X}", word);
  }
  return text;
}

// ::ffff:0:0/96, as the table writes it: 0000000000000000FFFF0000, on a big-endian machine 00000000000000000000FFFF
const std::string& mapped() {
  static constexpr std::uint8_t prefix[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static const std::string text = hexadecimal(prefix);
  return text;
}

std::string hexadecimal(const Endpoint& endpoint) {
  return hexadecimal(endpoint.address.view()) + fmt::format(":{:04X}", endpoint.port);
}

Endpoint endpoint_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string_view address = text.substr(0, colon);
  if (address.starts_with(mapped())) address.remove_prefix(mapped().size());
  Endpoint result{{address.size() == 8 ? Family::ipv4 : Family::ipv6, {}},
                  to_number<std::uint16_t>(text.substr(colon + 1), 16).value_or(0)};
  for (std::size_t i = 0; i + 8 <= address.size(); i += 8) {
    const auto word = to_number<std::uint32_t>(address.substr(i, 8), 16).value_or(0);
    std::memcpy(&result.address.bytes[i / 2], &word, sizeof word);
  }
  return result;
}

std::string read_all(const char* path) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return {};  // tcp6 without IPv6 in the kernel
    throw system_error(errno, fmt::format("cannot read {}", path));
  }
  std::string text;
  char buffer[16384];
  ssize_t size = 0;
  while ((size = read(file.get(), buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(size));
  return text;
}

// "  0: LOCAL REMOTE STATE …"
std::optional<Endpoint> find(const char* path, const std::string& remote) {
  const std::string table = read_all(path);
  const std::string column = " " + remote + " ";
  for (std::size_t at = 0; (at = table.find(column, at)) != std::string::npos; ++at) {
    if (table[at - 1] == ':') continue;  // the client itself: after the number of the line comes LOCAL
    const std::size_t begin = table.rfind(' ', at - 1) + 1;
    return endpoint_of(std::string_view(table).substr(begin, at - begin));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Endpoint> other_end(const Endpoint& client) {
  const std::string remote = hexadecimal(client);
  if (client.address.family == Family::ipv6) return find(tcp6, remote);
  const auto found = find(tcp, remote);
  return found ? found : find(tcp6, mapped() + remote);
}

std::set<std::uint16_t> peer_ports() {
  std::set<std::uint16_t> ports;
  for (const char* path : {tcp, tcp6}) {
    const std::string table = read_all(path);
    for (const std::string_view line : split_lines(table)) {
      const auto columns = split_words(line);
      if (columns.size() > 2 && columns[0] != "sl") ports.insert(endpoint_of(columns[2]).port);
    }
  }
  return ports;
}

}  // namespace sidetrack::probe
