// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "mesh/plan.h"
#include "options/options.h"
#include "walk/explain.h"

namespace sidetrack {

// Options as they are given on the command line, separated by blanks (there is no shell: `*` is a star), variables of
// the environment among them (NAME=value), through the real parser. Both families unless they say otherwise.
[[nodiscard]] Plan planned(std::string_view options);
// The same, as far as it is parsed: `line` gets the configuration.
[[nodiscard]] HostFacts asked(std::string_view options, CommandLine& line);

// A packet as `explain` is asked about it. What has no flag is added as "sport 53", "connmark 1337", "no-socket".
[[nodiscard]] Packet packet_of(std::string_view words);

// Where the packet ends under the rules of these options, in the pod of the documentation addresses.
[[nodiscard]] Trace ask(std::string_view options, std::string_view packet, BackendKind backend);

}  // namespace sidetrack
