// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <span>

#include "mesh/builder.h"

namespace sidetrack {
namespace {

using namespace words;

// Each rule stands once in a built-in chain: of identical ones there, others are another program's.
bool is_repeated(const std::string& name, std::span<const std::string> before) {
  return std::ranges::find(before, name) != before.end();
}

}  // namespace

// -A PREROUTING -i INTERFACE -j RETURN, -A OUTPUT -o INTERFACE -j RETURN
void excluded_interfaces(Builder& build) {
  std::vector<Table> tables{Table::nat};
  if (build.tproxy()) tables.push_back(Table::mangle);
  const std::vector<std::string>& names = build.config.exclude_interfaces;
  for (Table table : tables) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (is_repeated(names[i], std::span(names).first(i))) continue;
      if (table != Table::nat || !is_repeated(names[i], build.config.virtual_interfaces))
        build.add(MeshRule::excluded_interface_in, {in(names[i])}, {.table = table});
      build.add(MeshRule::excluded_interface_out, {out(names[i])}, {.table = table});
    }
  }
}

// -I PREROUTING 1 -i INTERFACE -j RETURN: not inbound to this pod, whatever outbound_included_ranges makes of it
void virtual_interfaces(Builder& build) {
  const std::vector<std::string>& names = build.config.virtual_interfaces;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_repeated(names[i], std::span(names).first(i))) build.add(MeshRule::virtual_machine_return, {in(names[i])});
  }
}

}  // namespace sidetrack
