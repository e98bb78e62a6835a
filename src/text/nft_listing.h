// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/nft_tables.h"
#include "text/pasted_lines.h"

namespace sidetrack {

struct NftToken {
  std::string text;
  bool quoted = false;
  bool spaced = true;       // follows a blank
  bool apart = false;       // follows several
  bool ends_blank = false;  // a blank is all that follows
};
using NftTokens = std::vector<NftToken>;

// Returns the words, what stands between quotes, and each of {};,() on its own, without `# handle 3` at the end.
[[nodiscard]] NftTokens nft_tokens(std::string_view line);
[[nodiscard]] std::string nft_words(std::span<const NftToken> tokens);

[[nodiscard]] inline bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}
[[nodiscard]] bool begins_nft_statement(std::string_view word);
// Reads the statements of a rule that nft is given. What is not understood is kept as words.
[[nodiscard]] NftRule read_nft_rule(std::span<const NftToken> tokens);
// Reads `type nat hook output priority dstnat; policy accept;`. Returns false if a number or a policy is not known.
[[nodiscard]] bool read_nft_base(std::span<const NftToken> tokens, bool of_bridge, NftChain& chain);
// Reads `type ipv4_addr; flags interval; elements = { 10.0.0.1 }`.
void read_nft_set(std::span<const NftToken> tokens, NftSet& set);
// Reads `{ 80, 443 }`. Returns nothing for what is not understood.
[[nodiscard]] std::optional<NftNode> read_nft_elements(std::span<const NftToken> tokens);

// Whether a table begins in the line, "table ip nat {", with a prompt or a log's time before it.
[[nodiscard]] bool opens_nft_table(std::string_view line);

// Adds a chain that may decide at each hook, as one may be missing from the text. Adds none twice, and none to
// tables of frames.
void leave_open(NftTable& table, std::string_view why);

// Takes one table off the lines, of which the first opens it. A statement that is not understood is kept as words, with
// what it may be a part of. Throws Error (usage) for what is nested too deeply.
[[nodiscard]] NftTable take_nft_table(std::span<const PastedLine>& lines);

}  // namespace sidetrack
