// SPDX-License-Identifier: GPL-2.0-or-later
// The words of expressions that are only read; of iptables where the rule is one of its tables, else of nft.
#pragma once

#include <string>

#include "kernel/nft/raw_expression.h"

namespace sidetrack::nft {

// "-m limit --limit 5/min", "limit rate 5/minute burst 5 packets"
[[nodiscard]] std::string limit_words(const RawExpression& limit, bool native);

// "-j NFLOG --nflog-prefix seen --nflog-group 3", "log prefix \"seen\" group 3"
[[nodiscard]] std::string log_words(const RawExpression& log, bool native);

// "quota over 1000 bytes", "ct count 10", "update @seen": of what the rule goes on after or not.
[[nodiscard]] std::string condition_words(const RawExpression& condition);
// "reject with icmp port-unreachable", "reject with tcp reset". `ipv4`: whether packets of that family may come there,
// which type icmp is for, else icmpv6.
[[nodiscard]] std::string reject_words(const RawExpression& reject, bool ipv4);
// "queue num 1-3 bypass": of what ends a rule.
[[nodiscard]] std::string end_words(const RawExpression& end);

}  // namespace sidetrack::nft
