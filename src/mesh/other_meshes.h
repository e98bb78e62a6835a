// SPDX-License-Identifier: GPL-2.0-or-later
// Meshes, and tools like them, whose rules in iptables are known by the names of their chains. They are not ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ports.h"
#include "rule/live.h"
#include "rule/mesh_rules.h"

namespace sidetrack {

// "Linkerd"; empty: none of them has chains of such a name.
[[nodiscard]] std::string_view mesh_of_chain(std::string_view chain);
// That in whose chain a rule stands, to whose chain it jumps, or whose comment it has.
[[nodiscard]] std::string_view mesh_of_rule(const Rule& rule);
// Whether it is the name of one of them.
[[nodiscard]] bool is_other_mesh(std::string_view name);

// Returns the ports of the proxy to which a rule leads: of the mesh that made it, or Istio's.
[[nodiscard]] std::span<const NamedPort> known_ports(const Rule& rule);
// Returns "traffic of Linkerd's proxy, uid 2102, is not captured"; empty: the rule is not about that.
[[nodiscard]] std::string sentence_of_other_mesh(const Rule& rule);

// Adds those with a rule that leads to a chain of theirs, each once.
void add_other_meshes(const Live& live, std::vector<std::string_view>& meshes);

// Returns the word by which `clean --mesh` knows that mesh: "linkerd"; empty: it does not remove its rules.
[[nodiscard]] std::string_view option_of_mesh(std::string_view name);
// Returns that mesh's rules for `clean --mesh`: the chains that its program makes, what leads to them from built-in
// chains, and rules there that its program marks or that are of its shape alone.
[[nodiscard]] MeshRules rules_of_mesh(std::string_view option);
// Returns what may be that mesh's and is not removed, as nothing tells, a sentence each.
[[nodiscard]] std::vector<std::string> left_by_mesh(const MeshRules& mesh, std::span<const Live* const> seen);

}  // namespace sidetrack
