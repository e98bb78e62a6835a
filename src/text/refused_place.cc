// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/refused_place.h"

#include <fmt/format.h>

#include "model/printable.h"
#include "rule/hook.h"
#include "rule/words.h"
#include "text/refused_words.h"

namespace sidetrack {
namespace {

constexpr unsigned bit(Hook hook) { return 1U << static_cast<unsigned>(hook); }
constexpr unsigned bit(Table table) { return 1U << static_cast<unsigned>(table); }
constexpr unsigned pre = bit(Hook::prerouting), in = bit(Hook::input), forward = bit(Hook::forward);
constexpr unsigned out = bit(Hook::output), post = bit(Hook::postrouting), any_hook = pre | in | forward | out | post;
constexpr unsigned raw = bit(Table::raw), mangle = bit(Table::mangle), nat = bit(Table::nat);
constexpr unsigned filter = bit(Table::filter), any_table = raw | mangle | nat | filter | bit(Table::security);

// Where a rule may be that has this option, with this value. Those of -j and -m are .hooks and .table of the kernel's
// xt_NAME.c (of DNAT, xt_nat.c); the others are tested by iptables.
struct Place {
  std::string_view option;
  std::string_view value;  // empty: any
  unsigned tables;
  unsigned hooks = any_hook;
};
constexpr Place places[] = {
    {"-j", "REDIRECT", nat, pre | out},
    {"-j", "DNAT", nat, pre | out},
    {"-j", "SNAT", nat, in | post},
    {"-j", "MASQUERADE", nat, post},
    {"-j", "NETMAP", nat},
    {"-j", "DROP", any_table & ~nat},
    {"-j", "TPROXY", mangle, pre},
    {"-j", "REJECT", filter, in | forward | out},
    {"-j", "CT", raw},
    {"-j", "NOTRACK", raw},
    {"-j", "TOS", mangle},
    {"-j", "DSCP", mangle},
    {"-j", "TTL", mangle},
    {"-j", "HL", mangle},
    {"-j", "CHECKSUM", mangle},
    {"-j", "CLASSIFY", any_table, forward | out | post},
    {"-m", "owner", any_table, out | post},
    {"-m", "socket", any_table, pre | in},
    {"-m", "mac", any_table, pre | in | forward},
    {"-m", "rpfilter", raw | mangle, pre},
    {"-i", "", any_table, pre | in | forward},
    {"-o", "", any_table, forward | out | post},
    {"--limit-iface-in", "", any_table, pre | in | forward},
    {"--limit-iface-out", "", any_table, forward | out | post},
};

// "PREROUTING or OUTPUT of nat", "raw or mangle"
std::string words_of(const Place& place) {
  constexpr std::string_view table_names[] = {name(Table::raw), name(Table::mangle), name(Table::nat),
                                              name(Table::filter), name(Table::security)};
  const std::string_view hook_names[] = {name(Hook::prerouting), name(Hook::input), name(Hook::forward),
                                         name(Hook::output), name(Hook::postrouting)};
  const std::string table = place.tables == any_table ? "" : bit_names(place.tables, table_names, " or ").value_or("");
  if (place.hooks == any_hook) return "the table " + table;
  return bit_names(place.hooks, hook_names, " or ").value_or("") + (table.empty() ? "" : " of " + table);
}

}  // namespace

std::string why_refused_at(std::optional<Table> table, std::string_view chain, std::span<const std::string> words) {
  const auto hook = hook_named(chain);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view option = words[i];
    const std::string_view value = i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    if (takes_text(option)) ++i;
    if ((option == "-j" || option == "-g") && hook_named(value))
      return fmt::format("'{} {}': expected a target, or a chain that is not built in", option, value);
    for (const Place& place : places) {
      if (place.option != option || (!place.value.empty() && place.value != value)) continue;
      const bool is_there = (!table || (place.tables & bit(*table)) != 0) && (!hook || (place.hooks & bit(*hook)) != 0);
      if (!is_there) return fmt::format("'{} {}': expected {}", option, printable(value), words_of(place));
    }
  }
  return "";
}

}  // namespace sidetrack
