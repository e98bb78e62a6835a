// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct MarkMatch {          // -m mark --mark 1337
  std::uint32_t value = 0;  // host byte order, as the mask
  std::uint32_t mask = 0xffffffff;
  bool negated = false;
  friend bool operator==(const MarkMatch&, const MarkMatch&) = default;

  static constexpr Facts reads = facts::mark;
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
  void take_value(const MarkMatch& from);
};

struct ConnmarkMatch {      // -m connmark --mark 1337
  std::uint32_t value = 0;  // host byte order, as the mask
  std::uint32_t mask = 0xffffffff;
  bool negated = false;
  friend bool operator==(const ConnmarkMatch&, const ConnmarkMatch&) = default;

  static constexpr Facts reads = facts::connection | facts::connmark;
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
  void take_value(const ConnmarkMatch& from);
};

}  // namespace sidetrack
