// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "walk/explain.h"

namespace sidetrack::space {

// What becomes of all packets of a region: an Outcome without what differs from packet to packet.
struct Ending {
  Outcome::Kind kind = Outcome::Kind::lands;
  bool translated = false;
  std::optional<Address> to;          // translated: its new destination; nothing: as it was
  std::optional<std::uint16_t> port;  // translated: and port; nothing: as it was
  std::optional<NewSource> from;      // lands, leaves, forwarded: its new source
  bool transparent = false;
  std::uint16_t transparent_port = 0;
  std::string interface;  // leaves, forwarded
  Outcome::Answers answers = Outcome::Answers::arrive;
  std::vector<Ending> either;         // unknown: it is one of these
  std::vector<std::string> unknowns;  // unknown: for want of this
  std::size_t ways = 0;               // either: a hash of which is which (see Choice); no part of what is compared

  std::string listener;  // translated, transparent: who has that port; no part of what is compared

  friend bool operator==(const Ending& a, const Ending& b);
};

// Tells whether it lands where rules have sent it.
[[nodiscard]] inline bool is_captured(const Ending& ending) {
  return ending.kind == Outcome::Kind::lands && (ending.translated || ending.transparent);
}

// Returns the same for endings that are equal.
[[nodiscard]] std::size_t hash_of(const Ending& ending);

// Says what is unknown where packets may go several ways.
struct Choice {
  std::vector<std::string> unknowns;
  std::size_t ways = 0;  // a hash of which is which
};
// Returns what parts these ways.
[[nodiscard]] Choice choice_of(const std::vector<Possibility>& all);

// Returns the ending of packets that end in one of two ways.
[[nodiscard]] Ending either_of(const Ending& a, const Ending& b, const Choice& choice);

// Returns the ending of a packet that may go any of these ways, each followed to its end.
[[nodiscard]] Ending ending_of(const std::vector<Possibility>& all);

// "127.0.0.1:15001 (Envoy outbound)", "leaves untouched, by eth0", "dropped"
[[nodiscard]] std::string ending_text(const Ending& ending);

// "`-m bpf [rev 1, 528 bytes: 01]`, `-j CUSTOM`": what is not known, in short.
[[nodiscard]] std::string unknown_words(const Ending& ending);

}  // namespace sidetrack::space
