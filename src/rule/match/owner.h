// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct OwnerMatch {  // -m owner ! --uid-owner 1337
  OwnerKind kind = OwnerKind::uid;
  std::vector<IdRange> ids;
  bool negated = false;
  friend bool operator==(const OwnerMatch&, const OwnerMatch&) = default;

  static constexpr Facts reads = facts::packet | facts::socket;
  MATCH_FUNCTIONS(OwnerMatch);
  [[nodiscard]] auto& list() { return ids; }
  [[nodiscard]] const auto& list() const { return ids; }
  [[nodiscard]] bool is_like(const OwnerMatch& other) const;
};

struct SocketMatch {  // -m owner --socket-exists: a socket of this network namespace sends it
  bool negated = false;
  friend bool operator==(const SocketMatch&, const SocketMatch&) = default;

  static constexpr Facts reads = facts::packet | facts::socket;
  MATCH_FUNCTIONS(SocketMatch);
};

}  // namespace sidetrack
