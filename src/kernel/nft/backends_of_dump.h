// SPDX-License-Identifier: GPL-2.0-or-later
// One dump, divided between the two backends of nf_tables.
#pragma once

#include "kernel/known_sets.h"
#include "kernel/nft/dump.h"
#include "model/live.h"

namespace sidetrack::nft {

// The tables of iptables: ip and ip6 raw, mangle, nat, filter, security. All others that pods' packets pass are native.
[[nodiscard]] bool is_of_iptables(const TableKey& table);
[[nodiscard]] bool is_native(const TableKey& table);

// Rules that ask a set get its name from `sets`, where it is known.
[[nodiscard]] Live iptables_live(const Dump& seen, const KnownSets& sets);
[[nodiscard]] Live native_live(const Dump& seen);

}  // namespace sidetrack::nft
