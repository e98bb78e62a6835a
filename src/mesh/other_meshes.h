// SPDX-License-Identifier: GPL-2.0-or-later
// Meshes, and tools like them, whose rules in iptables are known by the names of their chains. They are not ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rule/live.h"

namespace sidetrack {

// "Linkerd"; empty: none of them has chains of such a name.
[[nodiscard]] std::string_view mesh_of_chain(std::string_view chain);
// That in whose chain a rule stands, or to whose chain it jumps.
[[nodiscard]] std::string_view mesh_of_rule(const Rule& rule);

// Names what listens at a port of the proxy where that mesh's rules lead there: "Linkerd outbound"; empty: nothing that
// is known. Nothing: its proxy has the ports of Istio's.
[[nodiscard]] std::optional<std::string_view> port_of_mesh(std::string_view mesh, std::uint16_t port);

// Adds those with a rule that leads to a chain of theirs, each once.
void add_other_meshes(const Live& live, std::vector<std::string_view>& meshes);

}  // namespace sidetrack
