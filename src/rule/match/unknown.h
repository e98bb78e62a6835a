// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct UnknownMatch {  // one that is not understood entirely: whether it holds is unknown; only read
  std::string words;
  friend bool operator==(const UnknownMatch&, const UnknownMatch&) = default;

  static constexpr Facts reads = facts::packet;
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
  void take_value(const UnknownMatch& from);
};

}  // namespace sidetrack
