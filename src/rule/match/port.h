// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct PortMatch {  // --dport 53, ! --sport 15053, -m multiport ! --dports 53,15008
  End end = End::destination;
  std::vector<PortRange> ports;
  bool negated = false;
  friend bool operator==(const PortMatch&, const PortMatch&) = default;

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
  void take_value(const PortMatch& from);
  [[nodiscard]] auto& list() { return ports; }
  [[nodiscard]] const auto& list() const { return ports; }
  [[nodiscard]] bool is_like(const PortMatch& other) const;
};

struct EitherPortMatch {  // -m multiport ! --ports 53,80: its source port, its destination port or both
  std::vector<PortRange> ports;
  bool negated = false;
  friend bool operator==(const EitherPortMatch&, const EitherPortMatch&) = default;

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
  void take_value(const EitherPortMatch& from);
};

}  // namespace sidetrack
