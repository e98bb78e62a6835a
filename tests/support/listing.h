// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel holds, as the tools of the field list it. None of it brings a legacy table to life.
#pragma once

#include <map>
#include <string>

#include "support/namespace.h"

namespace sidetrack::netns {

// Text without the comment lines of iptables-save, which hold the time.
[[nodiscard]] std::string without_time(const std::string& text);

// Each unit that changes at once, by its name: a table of legacy iptables of one family ("iptables-legacy ipv4 nat"),
// or all of nf_tables ("nf_tables").
[[nodiscard]] std::map<std::string, std::string> atoms(const Namespace& where);

// The same, without tables of legacy iptables that hold nothing, which no program can remove again; and, as one unit
// more, what we may change of policy rules, routes and addresses.
[[nodiscard]] std::map<std::string, std::string> state(const Namespace& where);

// All of it in one text, with handles and counters, policy rules, routes and the addresses of lo.
[[nodiscard]] std::string listing(const Namespace& where);

}  // namespace sidetrack::netns
