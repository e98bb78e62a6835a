// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

// Whether a cgroup is the one of that path or below it.
[[nodiscard]] bool is_within_cgroup(std::string_view path, std::string_view of);

struct CgroupMatch {  // -m cgroup ! --path kubepods/pod1: the sender's cgroup (v2) is this one or below it
  std::string path;   // within the hierarchy, without a slash at its ends; empty: none is known that has the number
  // In this kernel, by which nf_tables knows it; 0: not known. Where the path is, it is no part of what the match says.
  std::uint64_t id = 0;
  bool negated = false;
  friend bool operator==(const CgroupMatch& a, const CgroupMatch& b) {
    return a.path == b.path && a.negated == b.negated && (!a.path.empty() || a.id == b.id);
  }

  static constexpr Facts reads = facts::packet | facts::socket;
  MATCH_FUNCTIONS(CgroupMatch);
};

}  // namespace sidetrack
