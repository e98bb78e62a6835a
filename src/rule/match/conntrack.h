// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct ConntrackStateMatch {  // -m conntrack --ctstate RELATED,ESTABLISHED
  enum State : std::uint8_t {
    invalid = 1,
    established = 2,
    related = 4,
    new_ = 8,
    untracked = 16,
    snat = 32,  // of iptables: it has a connection that is translated
    dnat = 64,
  };
  std::uint8_t states = 0;  // State bits
  bool negated = false;
  friend bool operator==(const ConntrackStateMatch&, const ConntrackStateMatch&) = default;

  static constexpr Facts reads = facts::connection;
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
  void take_value(const ConntrackStateMatch& from);
};

struct ConntrackDirectionMatch {  // -m conntrack --ctdir REPLY: against the direction in which the connection began
  bool reply = true;
  friend bool operator==(const ConntrackDirectionMatch&, const ConntrackDirectionMatch&) = default;

  static constexpr Facts reads = facts::connection;
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
  void take_value(const ConntrackDirectionMatch& from);
};

}  // namespace sidetrack
