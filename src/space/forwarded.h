// SPDX-License-Identifier: GPL-2.0-or-later
// What hosts behind the pod send, such as containers in it: no part of Scope::ordinary.
#pragma once

#include <string>
#include <vector>

#include "space/regions.h"

namespace sidetrack::space {

// New connections that come in by an interface which is not the way out, from networks that the pod reaches by it, to
// others: one box of each interface and family.
[[nodiscard]] std::vector<Box> forwarded(Regions& regions, const PodView& pod);

// By which they come in.
[[nodiscard]] const std::string& interface_of(const Regions& regions, const Box& box);

// New DNS queries by udp that come in by an interface from networks that the pod reaches by it: one box of each.
[[nodiscard]] std::vector<Box> forwarded_dns(Regions& regions, const PodView& pod);

// Whether such packets go on by another interface than they came in by, and no reply comes back.
[[nodiscard]] bool loses_forwarded_replies(Regions& regions, const Box& queries, const Ending& ending);

}  // namespace sidetrack::space
