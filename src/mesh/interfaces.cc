// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {

using namespace words;

// 1. -A PREROUTING -i IF -j RETURN, -A OUTPUT -o IF -j RETURN
void excluded_interfaces(Builder& build) {
  std::vector<Table> tables{Table::nat};
  if (build.tproxy()) tables.push_back(Table::mangle);
  for (Table table : tables) {
    for (const std::string& name : build.config.exclude_interfaces) {
      const std::string flag = "-c " + name;
      build.append(table, prerouting, {in(name)}, Verdict::return_,
                   {flag, "what comes in by " + name + " is left alone"});
      build.append(table, output, {out(name)}, Verdict::return_, {flag, "what goes out by " + name + " is left alone"});
    }
  }
}

// 2. -I PREROUTING 1 -i IF -j RETURN: not inbound to this pod, whatever step 16 makes of it
void virtual_interfaces(Builder& build) {
  for (const std::string& name : build.config.virtual_interfaces) {
    build.insert(build.facts.families, Table::nat, prerouting, 1, {in(name)}, Verdict::return_,
                 {"-k " + name, "what comes from the virtual machine behind " + name + " is not inbound traffic"});
  }
}

}  // namespace sidetrack
