// SPDX-License-Identifier: GPL-2.0-or-later
// Reads commands of nft: `nft add rule inet t c tcp dport 80 drop` in a shell, files of `nft -f`, what Istio logs of
// the rules that it gave to nft.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/nft_listing.h"

namespace sidetrack {

class NftScript {
 public:
  // The tables that the commands change.
  explicit NftScript(std::vector<NftTable>& tables) : tables_(tables) {}

  // Takes a line that has commands off the lines, with those that belong to it, and changes the tables as they say.
  // Leaves open what it does not understand of a command. Returns false, and takes nothing, if the line has none.
  bool take(std::span<const PastedLine>& lines, const std::string& source);

  // Returns whether the tables that follow are a listing: the last command was `nft list`.
  [[nodiscard]] bool lists() const { return lists_; }
  // Returns whether the text makes all tables, after `flush ruleset`: blocks of one table add to each other.
  [[nodiscard]] bool builds_ruleset() const { return all_emptied_ && !lists_; }
  // Returns, once, whether they are all that there are: nft list ruleset
  bool begins_ruleset() { return std::exchange(lists_all_, false); }

 private:
  using Tokens = std::span<const NftToken>;
  // add rule inet t c accept
  struct Command {
    std::string_view verb, kind;
    std::uint8_t family = 0;
    std::string_view name{};  // of the table
    Tokens tokens{}, rest{};  // all of it, and what follows the table's name
  };

  [[nodiscard]] bool knows(std::string_view table_of_ipv4) const;
  [[nodiscard]] std::optional<Command> command_in(Tokens tokens) const;
  [[nodiscard]] bool has_command(const std::string& line) const;
  [[nodiscard]] bool goes_on(const std::string& text, bool is_open, const PastedLine& next) const;
  [[nodiscard]] bool is_whole_rule(const std::string& text) const;
  void apply(const Command& command);
  void remove_table(const Command& command);
  bool change_table(NftTable& table, const Command& command) const;
  static bool change_chain(NftTable& table, const Command& command);
  bool change_rule(NftTable& table, const Command& command) const;
  static bool change_set(NftTable& table, const Command& command);
  NftTable& table_of(const nft::TableKey& key);
  static NftChain& chain_of(NftTable& table, std::string_view name);

  std::vector<NftTable>& tables_;
  std::string emptied_{};  // the tables that were deleted, each with an end of line
  bool all_emptied_ = false;
  bool lists_ = false, lists_all_ = false;
  bool follows_error_ = false;
  bool is_cut_ = false;  // the last line
  std::string source_{};
};

}  // namespace sidetrack
