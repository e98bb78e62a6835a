// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct TcpFlagsMatch {    // --tcp-flags FIN,SYN,RST,ACK SYN, which is --syn: those of `mask` that a packet has are
                          // `flags`
  std::uint8_t mask = 0;  // the bits of the TCP header's byte 13: RFC 9293, section 3.1
  std::uint8_t flags = 0;
  bool negated = false;
  friend bool operator==(const TcpFlagsMatch&, const TcpFlagsMatch&) = default;

  static constexpr Facts reads = facts::packet | facts::flags;
  [[nodiscard]] std::string to_iptables() const;
  [[nodiscard]] static std::optional<Match> from_iptables(const MatchOption& option);
  [[nodiscard]] static xt::Sources sources();
  void to_xt(const Rule& rule, std::vector<xt::Extension>& extensions) const;
  [[nodiscard]] static std::optional<std::vector<Match>> from_xt(const xt::ExtensionView& extension, Family family);
  void to_nft(nft::RuleWriter& writer) const;
  [[nodiscard]] static std::optional<std::vector<std::vector<Match>>> from_nft(const nft::Comparison& comparison);
  [[nodiscard]] Truth truth(const PacketAtHook& packet) const;
  [[nodiscard]] std::string why_not(const PacketAtHook& packet) const;
  void ask(Asked& asked) const;
  void take_value(const TcpFlagsMatch& from);
};

}  // namespace sidetrack
