// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <linux/netfilter/xt_conntrack.h>

#include "rule/xt/spec.h"

namespace sidetrack {

inline constexpr xt::Spec<xt_conntrack_mtinfo3> conntrack_spec{"conntrack", 3, 2};
static_assert(xt::aligned(sizeof(xt_conntrack_mtinfo3)) == 168);

}  // namespace sidetrack
