// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod/route.h"

#include <fmt/format.h>

#include "pod/ztunnel.h"

namespace sidetrack {

std::string table_name(std::uint32_t table) {
  switch (table) {
    case local_table:
      return "local";
    case main_table:
      return "main";
    case default_table:
      return "default";
    default:
      return std::to_string(table);
  }
}

Route local_default(Family family, std::uint32_t table) {
  Route route{AddressRange::prefix(Address::any(family), 0), "lo", Route::Kind::local, table};
  route.origin = RoutingOrigin::ours;
  return route;
}

bool is_of_ambient(const Route& route) { return route.table == ztunnel_route_table; }

std::string ip_arguments(const Route& route) {
  static constexpr const char* kinds[] = {"", "local ", "blackhole ", "unreachable ", "prohibit ", "throw ", ""};
  const auto after = [](const std::string& words) { return words.empty() ? "" : words + " "; };
  return fmt::format("{}{}{} {}{}table {}", kinds[static_cast<std::size_t>(route.kind)], after(route.type),
                     route.to.prefix_length() == 0 ? "default" : route.to.text(), after(route.more),
                     route.device.empty() ? "" : "dev " + route.device + " ", table_name(route.table));
}

std::string ip_words(const Route& route) {
  return fmt::format("ip{} route {}", route.family() == Family::ipv6 ? " -6" : "", ip_arguments(route));
}

}  // namespace sidetrack
