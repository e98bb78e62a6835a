// SPDX-License-Identifier: GPL-2.0-or-later
// The values of options, parsed strictly. Every function here throws Error (usage) for what does not parse.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "model/scan.h"
#include "options/flags.h"

namespace sidetrack::options {

// One value, or one item of a list.
struct Item {
  Item(const Given& whole) : Item(whole, whole.text) {}  // NOLINT: one value is the whole text
  Item(const Given& given_, std::string_view text_, std::string_view file_ = {}, std::size_t line_ = 0)
      : given(given_), text(text_), file(file_), line(line_) {}
  const Given& given;
  std::string_view text;
  std::string_view file;  // of a list given as @FILE
  std::size_t line;       // counts from 1
};

// "-p, --envoy-port", or the variable that the value comes from
[[nodiscard]] std::string name_of(const Given& given);

// "-p, --envoy-port: '70000': expected a port from 1 to 65535"
[[noreturn]] void refuse(const Item& item, std::string_view expected, std::string hint = {});

[[nodiscard]] std::optional<bool> to_boolean(std::string_view text);  // as Go's strconv.ParseBool
bool boolean(const Item& item);                                       // the same
std::uint16_t port(const Item& item);
PortRange port_range(const Item& item);  // 80, 9000-9100
std::uint32_t mark(const Item& item);
std::uint32_t route_table(const Item& item);
std::uint32_t id(const Item& item);  // of a user or a group
IdRange id_range(const Item& item);  // 101, 1000-1999
std::uint32_t process_id(const Item& item);
Address address(const Item& item);
AddressRange range(const Item& item);
AddressRange loopback_prefix(const Item& item);
std::string interface(const Item& item);
// As /proc/PID/cgroup has it, or the path of its directory: without slashes at its ends, /sys/fs/cgroup left as it is.
std::string cgroup(const Item& item);
GivenPod::Own own_address(const Item& item);  // 10.244.1.7/24%eth0
// Adds to the pod a route ("10.0.0.0/8 via 10.244.0.1 dev eth0") or a rule ("fwmark 1337 lookup 133", which is of both
// families), as `ip route` and `ip rule` print it.
void route(const Item& item, GivenPod& pod);
std::string namespace_name(const Item& item);  // of Kubernetes: a label of RFC 1123
// As Go's time.ParseDuration; never negative. What exceeds the range of the type is its longest.
std::chrono::nanoseconds duration(const Item& item);

// The place of the text among "a|b|c".
std::size_t choice(const Item& item, std::string_view choices);

// Without spaces, tabs and ends of lines around it.
[[nodiscard]] std::string_view without_blanks(std::string_view text);

// Every item of a comma-separated list, without surrounding blanks and without empty ones. "@FILE" stands for the items
// in that file, which are separated by commas or lines; '#' starts a comment there.
void each_item(const Given& given, const std::function<void(const Item&)>& use);

}  // namespace sidetrack::options
