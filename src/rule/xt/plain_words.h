// SPDX-License-Identifier: GPL-2.0-or-later
// The words of iptables for extensions that are only read: nothing here knows what they do to a packet.
#pragma once

#include <optional>
#include <string>

#include "rule/xt/extension.h"

namespace sidetrack::xt {

// "-m limit --limit 5/min", "-j NFLOG --nflog-prefix seen --nflog-group 3"; nothing if they are not known here, or
// would leave out something that the extension says.
[[nodiscard]] std::optional<std::string> plain_words(ExtensionKind kind, const ExtensionView& extension);

}  // namespace sidetrack::xt
