// SPDX-License-Identifier: GPL-2.0-or-later
// Random rules of other programs, in tables before and after ours.
#pragma once

#include <string>
#include <vector>

#include "support/namespace.h"
#include "support/packets.h"

namespace sidetrack::netns {

// A program of iptables or nft, and what it reads from its standard input.
struct Foreign {
  std::vector<std::string> program;
  std::string rules;
};

// By iptables-legacy, iptables-nft and nft, of both families. They speak of values that packets of a Pod have, and of
// some that they do not have.
[[nodiscard]] std::vector<Foreign> foreign_rules(Dice& dice);

// Loads those that this kernel and these programs take. Returns them all as text.
std::string load(const Namespace& ns, const std::vector<Foreign>& all);

}  // namespace sidetrack::netns
