// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "library/packets.h"

namespace sidetrack::cli {

std::vector<Live> read_live(const CommandLine& line) {
  std::vector<std::string> unseen;
  std::vector<Live> live = live_rules(open_kernel(line, false)->survey(), unseen);
  for (const std::string& warning : unseen) warn(warning);
  return live;
}

}  // namespace sidetrack::cli
