// SPDX-License-Identifier: GPL-2.0-or-later
// What nft lists, whichever of its two forms a text has: statements by the names that they have in `nft -j`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/nft/native.h"

namespace sidetrack {

// Holds a value as nft prints it (80, 10.0.0.0/8, 1024-65535, tcp), which has no parts, or one that has parts:
//
//   payload PROTOCOL FIELD, meta KEY, ct KEY [DIRECTION], socket KEY, fib RESULT FLAG…   a key
//   concat, list, set, | & ^                                           of any
//   : KEY DATA                                                         an element of a map
//   elem VALUE                                                         one that expires, or has a condition
//   map KEY SET                                                        what the map has for the key
struct NftNode {
  std::string word;
  std::vector<NftNode> parts;

  // Not inline, of which there would be hundreds.
  NftNode();
  explicit NftNode(std::string_view word_of, std::vector<NftNode> parts_of = {});
  NftNode(const NftNode& other);
  NftNode(NftNode&& other) noexcept;
  NftNode& operator=(const NftNode& other);
  NftNode& operator=(NftNode&& other) noexcept;
  ~NftNode();

  // Empty if it has none of that number.
  [[nodiscard]] const std::string& text(std::size_t part) const {
    static const std::string none;
    return part < parts.size() ? parts[part].word : none;
  }
};

//   match OPERATION LEFT RIGHT, vmap KEY SET, mangle KEY VALUE, counter PACKETS BYTES, counter NAME, jump CHAIN,
//   dnat TO FLAG…, tproxy TO, xt TYPE NAME, set
//
// One that is not understood has no word; a condition that is not is "match" without parts.
struct NftStatement : NftNode {
  std::string words{};  // as the text has it
};

struct NftRule {
  std::vector<NftStatement> statements;
  std::string comment;
  // Of extensions of iptables, which nft 1.0.6 does not print if it has none of iptables' libraries.
  bool lacks_target = false;
  bool may_lack_match = false;  // or has a comment of iptables
  bool of_command = false;      // nft was given it: in a table of iptables, too, it is not iptables'
};

// Returns a rule of which nothing is known but its words.
[[nodiscard]] NftRule opaque_nft_rule(std::string words);

struct NftChain {
  std::string name;
  std::string type, hook;  // of a base chain: "nat", "output"
  std::int32_t priority = 0;
  bool drops = false;  // by its policy
  std::vector<std::string> devices{};
  std::vector<NftRule> rules{};
  bool is_open = false;  // has, or had, rules at places that are not known

  // Whether it stands for those that the text may lack.
  [[nodiscard]] bool is_cut_off() const { return name.ends_with(" [cut off]"); }
};

// A set or a map.
struct NftSet {
  std::string name;
  std::optional<NftNode> elements{NftNode("set")};  // nothing: not understood
  bool changes = false;                             // packets add to it, or its elements expire
};

struct NftTable {
  nft::TableKey key;
  std::string source;  // "FILE:LINE"
  bool dormant = false;
  bool lost_flags = false;        // it has some, and the text does not say which
  bool lacks_extensions = false;  // of iptables, in some of the rules
  bool has_end = true;
  bool of_commands = false;    // that changed it, or made it
  bool assumed_empty = false;  // before the commands
  bool is_flushed = false;     // by them
  std::vector<NftChain> chains{};
  std::vector<NftSet> sets{};
  std::size_t other_objects = 0;  // counters, quotas, …
  std::size_t omits_at = 0;       // the first line that stands for others: "[...]"; 0: none
};

// Marks the sets to which rules of the table add elements: nft 1.0.6 writes no flag for them in JSON.
void mark_changing_sets(NftTable& table);

}  // namespace sidetrack
