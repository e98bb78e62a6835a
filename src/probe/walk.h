// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "probe/endpoint.h"
#include "probe/identity.h"
#include "sidetrack/ruleset.h"

namespace sidetrack::probe {

// The first packet of a connection, at one hook.
struct Packet {
  Protocol protocol = Protocol::tcp;
  Endpoint from;
  Endpoint to;
  std::string in;   // interfaces; empty: none
  std::string out;  // "lo"
  Identity owner;
  std::uint32_t mark = 0;
};

// What the rules of one table do with it.
struct Walk {
  Target end = Verdict::accept;    // Redirect, Tproxy, or a verdict
  std::uint32_t mark = 0;          // the packet's, then
  std::vector<const Rule*> rules;  // the jumps there and the rule that decides
};

// From the built-in chain `hook` on. What is left to the end of that chain, or returned there, is accepted.
[[nodiscard]] Walk walk(const Ruleset& ruleset, Table table, const char* hook, const Packet& packet);

}  // namespace sidetrack::probe
