// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "mesh/plan.h"
#include "model/config.h"

namespace sidetrack {

// A part of a drawing, from 0,0 on.
struct Drawn {
  double width = 0;
  double height = 0;
  std::string body;  // empty: there is nothing to draw
};

// Draws how a connection goes in to the app and out from it, through the proxy if the rules capture it, and on each
// part of its way the rules that decide: those that explain() names for such packets, in an assumed pod.
[[nodiscard]] Drawn connections_picture(const Plan& plan, const Config& config, Families families);

}  // namespace sidetrack
