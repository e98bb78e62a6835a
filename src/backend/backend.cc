// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/backend.h"

namespace sidetrack {

std::string_view name(BackendKind kind) {
  switch (kind) {
    case BackendKind::iptables_legacy:
      return "iptables-legacy";
    case BackendKind::iptables_nft:
      return "iptables-nft";
    case BackendKind::nftables:
      return "nftables";
  }
  return "";
}

std::vector<Families> scopes(BackendKind kind) {
  if (kind == BackendKind::nftables) return {Families::both()};
  return {Family::ipv4, Family::ipv6};
}

}  // namespace sidetrack
