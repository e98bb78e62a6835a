// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <optional>
#include <string>

#include "model/error.h"
#include "rule/live.h"

namespace sidetrack::nft {

// The message of a transaction that the kernel refused.
struct Refused {
  BackendKind backend = BackendKind::nftables;
  int error = 0;
  std::string step;                     // "the chain nat-OUTPUT of the table inet sidetrack"
  const Rule* rule = nullptr;           // if it was one
  const nlmsghdr* message = nullptr;    // as it was sent
  std::optional<std::uint32_t> offset;  // of the attribute at fault, if the kernel said it
  std::string flag{};                   // that asked for the rule: "-d 15020"
};

// An Error that names the rule, the expression or extension in it, the option that asked for it, and what to load.
[[nodiscard]] Error nft_refusal(const Refused& refused);

}  // namespace sidetrack::nft
