// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>

#include "rule/ruleset.h"

namespace sidetrack {

// How many values a list may have to stand in its rule as it was asked for. The backend nftables makes a named set of a
// longer one.
inline constexpr std::size_t longest_in_a_rule = 16;

// The same decisions in as few rules as nf_tables needs: rules that end alike and differ in one value of one match
// (addresses, ports, ids) become one rule over all these values, so that a list costs one lookup however long it is.
//
// The result is in the order in which the kernel walks it: table by table, chain by chain, `-I` resolved. Values are
// sorted and overlapping ones joined, of a long list of ports neighbours too; `! --gid-owner 1 ! --gid-owner 2` in one
// rule becomes one match that holds both; a match that every packet passes (`-d 0.0.0.0/0`, `-i +`) is left out; a rule
// is for those families alone whose packets come to its chain. It is what the backend nftables programs and reads back,
// and folding it again changes nothing.
//
// Rules are joined only where their order cannot matter: when every rule in between has the same target, or can match
// no packet that the moved rule matches. The kernel may then ask a chain of ours once where iptables asked it twice.
[[nodiscard]] Ruleset fold(const Ruleset& ruleset);

}  // namespace sidetrack
