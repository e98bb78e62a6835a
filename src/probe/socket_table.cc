// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/socket_table.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "model/error.h"
#include "model/scan.h"
#include "system/known_file.h"

namespace sidetrack::probe {
namespace {

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
  return hexadecimal(endpoint.address.view()) + fmt::format(":{:04X}", endpoint.port.value_or(0));
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

std::string read_table(KnownFile file) {
  KnownText read = read_known_file(file);
  if (read.error == 0 || read.error == ENOENT) return std::move(read.text);
  throw system_error(read.error, fmt::format("cannot read {}", path_of(file)));
}

// "  0: LOCAL REMOTE STATE …"
std::optional<Endpoint> local_end(KnownFile file, const std::string& remote) {
  const std::string table = read_table(file);
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
  if (client.address.family == Family::ipv6) return local_end(KnownFile::tcp6_sockets, remote);
  const auto found = local_end(KnownFile::tcp_sockets, remote);
  return found ? found : local_end(KnownFile::tcp6_sockets, mapped() + remote);
}

std::set<std::uint16_t> peer_ports() {
  std::set<std::uint16_t> ports;
  for (const KnownFile file : {KnownFile::tcp_sockets, KnownFile::tcp6_sockets}) {
    const std::string table = read_table(file);
    for (const std::string_view line : split_lines(table)) {
      const auto columns = split_words(line);
      if (columns.size() > 2 && columns[0] != "sl") ports.insert(endpoint_of(columns[2]).port.value());
    }
  }
  return ports;
}

}  // namespace sidetrack::probe
