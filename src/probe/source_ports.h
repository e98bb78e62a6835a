// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <set>
#include <utility>

namespace sidetrack::probe {

// The ports that attempts are made from, each from one of its own: what an earlier attempt or another connection has
// left in the table of sockets would be taken for what became of a later one from the same port.
class SourcePorts {
 public:
  explicit SourcePorts(std::set<std::uint16_t> used = {}) : used_(std::move(used)) {}

  // False if it has been used before.
  [[nodiscard]] bool take(std::uint16_t port) { return used_.insert(port).second; }

 private:
  std::set<std::uint16_t> used_;
};

}  // namespace sidetrack::probe
