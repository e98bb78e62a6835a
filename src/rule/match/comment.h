// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct CommentMatch {  // -m comment --comment "some words": holds always; only read
  std::string text;
  friend bool operator==(const CommentMatch&, const CommentMatch&) = default;

  static constexpr Facts reads = facts::none;
  MATCH_FUNCTIONS(CommentMatch);
};

}  // namespace sidetrack
