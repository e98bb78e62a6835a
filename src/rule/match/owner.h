// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct OwnerMatch {  // -m owner ! --uid-owner 1337
  OwnerKind kind = OwnerKind::uid;
  std::vector<IdRange> ids;
  bool negated = false;
  friend bool operator==(const OwnerMatch&, const OwnerMatch&) = default;

  static constexpr Facts reads = facts::packet | facts::socket;
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
  void take_value(const OwnerMatch& from);
  [[nodiscard]] auto& list() { return ids; }
  [[nodiscard]] const auto& list() const { return ids; }
  [[nodiscard]] bool is_like(const OwnerMatch& other) const;
};

struct SocketMatch {  // -m owner --socket-exists: a socket of this network namespace sends it
  bool negated = false;
  friend bool operator==(const SocketMatch&, const SocketMatch&) = default;

  static constexpr Facts reads = facts::packet | facts::socket;
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
  void take_value(const SocketMatch& from);
};

}  // namespace sidetrack
