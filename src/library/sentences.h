// SPDX-License-Identifier: GPL-2.0-or-later
// What came of a command, in a sentence.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apply/apply.h"
#include "apply/diff.h"

namespace sidetrack {

using Milliseconds = std::chrono::duration<double, std::milli>;

// apply: "installed 18 rules in nat (ipv4) through iptables-nft in 0.8 ms". Without a time, nothing says how long it
// took.
[[nodiscard]] std::string applied(const ApplyResult& result, std::optional<Milliseconds> took = {});
// apply --check: "the kernel would accept 18 rules in nat (ipv4) through iptables-nft; nothing was changed"
[[nodiscard]] std::string checked(const ApplyResult& result);
// clean: "removed all rules and routes of the mesh from nftables"; --mesh: "removed all rules of Linkerd from
// iptables-nft"
[[nodiscard]] std::string cleaned(const ApplyResult& result, std::string_view mesh = {});
// verify: "rules and routes are as requested, through iptables-nft"
[[nodiscard]] std::string verified(const PodDiff& pod_diff, std::string_view options = "these options");

// What the user should know and is no error, a sentence each.
[[nodiscard]] std::vector<std::string> warnings(const ApplyResult& result);
// `command` is the one that would make the change.
[[nodiscard]] std::vector<std::string> warnings(const PodDiff& pod_diff, std::string_view command = "apply");

}  // namespace sidetrack
