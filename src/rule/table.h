// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sidetrack {

// The tables that plans write to, in the order in which the kernel walks them; then iptables' others, and `other` for a
// table of nf_tables that is none of iptables' (LiveChain::table_name tells which).
enum class Table : std::uint8_t { raw, mangle, nat, filter, security, other };
inline constexpr Table all_tables[] = {Table::raw, Table::mangle, Table::nat};
// Lists the tables in which rules are removed: Istio up to 1.4 wrote to filter, too.
inline constexpr Table changed_tables[] = {Table::raw, Table::mangle, Table::nat, Table::filter};

[[nodiscard]] constexpr std::string_view name(Table table) {
  constexpr std::string_view names[] = {"raw", "mangle", "nat", "filter", "security", "other"};
  return names[static_cast<std::size_t>(table)];
}
// Returns iptables' table of that name.
[[nodiscard]] constexpr std::optional<Table> table_named(std::string_view word) {
  for (const Table table : {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security}) {
    if (name(table) == word) return table;
  }
  return std::nullopt;
}
// Whether it is one of those that plans write to.
[[nodiscard]] constexpr bool is_written(Table table) {
  return std::ranges::find(all_tables, table) != std::end(all_tables);
}
[[nodiscard]] constexpr bool is_written(std::string_view table_name) {
  return std::ranges::any_of(all_tables, [&](Table table) { return name(table) == table_name; });
}

}  // namespace sidetrack
