// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/address.h"
#include "model/range.h"

namespace sidetrack {

// Reads where NAT leads, in the words of iptables and nft: 10.0.0.1-10.0.0.9:80-90, :80, [fd00::1]:80, fd00::1. False
// for anything else.
[[nodiscard]] bool read_destination(std::string_view text, std::optional<AddressRange>& addresses,
                                    std::optional<PortRange>& ports);
// Writes it so.
[[nodiscard]] std::string destination_words(const std::optional<AddressRange>& addresses,
                                            const std::optional<PortRange>& ports);

}  // namespace sidetrack
