// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sidetrack {

// Returns the port of a service that `iptables -L` without -n, older nft or a script names: "domain" is 53. Names and
// numbers are IANA's. The machine's own /etc/services is not asked: the text is of another one.
[[nodiscard]] std::optional<std::uint16_t> port_of_service(std::string_view name);

// Returns ports with the names of services in iptables' lists and ranges as numbers, and ranges with both ends:
// "ssh,8000:http-alt" is "22,8000:8080", "1024:" is "1024:65535". Other words stay.
[[nodiscard]] std::string with_port_numbers(std::string_view ports);

}  // namespace sidetrack
