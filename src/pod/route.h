// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"

namespace sidetrack {

// <linux/rtnetlink.h>: RT_TABLE_LOCAL, RT_TABLE_MAIN, RT_TABLE_DEFAULT
inline constexpr std::uint32_t local_table = 255;
inline constexpr std::uint32_t main_table = 254;
inline constexpr std::uint32_t default_table = 253;
[[nodiscard]] std::string table_name(std::uint32_t table);  // "main", "133"

// Who made a policy rule or a route.
enum class RoutingOrigin : std::uint8_t {
  other,  // another program: it is not ours to remove
  ours,   // Sidetrack, or Istio in the pod of a sidecar
  agent,  // the node's agent, in an ambient pod, and it counts as ours: it has no tag of ours
};

// ip route add [KIND] TO dev DEVICE table TABLE
struct Route {
  enum class Kind : std::uint8_t {
    unicast,
    local,  // stays here
    blackhole,
    unreachable,
    prohibit,
    throw_,   // the next policy rule is asked
    unknown,  // asks for more than the destination, or is of another type
  };
  AddressRange to;  // a CIDR
  std::string device;
  Kind kind = Kind::unicast;
  std::uint32_t table = main_table;
  std::optional<Address> gateway{};
  std::optional<Address> source{};  // src: of what is sent by it
  // It has several next hops, of which each connection gets one: `device` is that of the first one, these are the rest.
  std::vector<std::string> other_devices{};
  RoutingOrigin origin = RoutingOrigin::other;
  // unknown, as `ip` shows it: its type, and what else it asks for.
  std::string type{};
  std::string more{};

  [[nodiscard]] Family family() const { return to.family(); }
  [[nodiscard]] bool is_ours() const { return origin != RoutingOrigin::other; }
  // Returns whether one of its next hops is by this interface.
  [[nodiscard]] bool has_hop_by(const std::string& name) const {
    return device == name || std::ranges::find(other_devices, name) != other_devices.end();
  }
  // Returns the interfaces of its next hops, in their order.
  [[nodiscard]] std::vector<std::string> devices() const {
    std::vector<std::string> all{device};
    all.insert(all.end(), other_devices.begin(), other_devices.end());
    return all;
  }
  friend bool operator==(const Route&, const Route&) = default;
};

// Returns ours, by which all packets that look up the table stay: ip route add local default dev lo table TABLE.
[[nodiscard]] Route local_default(Family family, std::uint32_t table);

// Tells whether it is that of an ambient pod, whoever made it.
[[nodiscard]] bool is_of_ambient(const Route& route);

// Returns what `ip route add` takes: "local default dev lo table 133".
[[nodiscard]] std::string ip_arguments(const Route& route);
[[nodiscard]] std::string ip_words(const Route& route);  // "ip route local default dev lo table 133"

}  // namespace sidetrack
