// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {

using namespace words;

// -A PREROUTING -i INTERFACE -j RETURN, -A OUTPUT -o INTERFACE -j RETURN
void excluded_interfaces(Builder& build) {
  std::vector<Table> tables{Table::nat};
  if (build.tproxy()) tables.push_back(Table::mangle);
  for (Table table : tables) {
    for (const std::string& name : build.config.exclude_interfaces) {
      build.add(MeshRule::excluded_interface_in, {in(name)}, {.table = table});
      build.add(MeshRule::excluded_interface_out, {out(name)}, {.table = table});
    }
  }
}

// -I PREROUTING 1 -i INTERFACE -j RETURN: not inbound to this pod, whatever outbound_included_ranges makes of it
void virtual_interfaces(Builder& build) {
  for (const std::string& name : build.config.virtual_interfaces) {
    build.add(MeshRule::virtual_machine_return, {in(name)});
  }
}

}  // namespace sidetrack
