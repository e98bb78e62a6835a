// SPDX-License-Identifier: GPL-2.0-or-later
// What a text of iptables says, line by line: iptables-save, `iptables -S`, `iptables -L -n -v`, what iptables-restore
// takes, commands of a script or of a log.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "rule/live.h"
#include "text/read_rules.h"

namespace sidetrack {

struct ChainOperation {
  enum class Kind { declare, policy, append, insert, replace, remove, flush, remove_chain };
  Kind kind{};
  std::string chain;
  std::size_t line = 0;
  Verdict policy = Verdict::accept;
  Rule rule{};  // of append, insert, replace and remove; its table and family are not known here
  std::optional<std::size_t> number{};  // of insert, replace and remove: the rule's place, counted from 1
  Counters counters{};
};

// Lines about one table of one family.
struct Section {
  std::string source;                    // "FILE:LINE"
  std::size_t text = 0;                  // its number
  unsigned listing = 0;                  // those of one number were printed together: they are of one family
  std::optional<BackendKind> backend{};  // the last three: nothing if neither the lines nor the command say it
  std::optional<Family> family{};
  std::optional<Table> table{};
  bool is_whole = false;     // it lists all chains of the table, as iptables-save and -S do
  bool is_complete = true;   // false: it lacks its COMMIT
  bool lacks_start = false;  // it has that, but neither *TABLE nor policies
  bool of_commands = false;  // iptables -t nat -A …
  bool is_listing = false;   // what -S or -L prints
  bool has_gap = false;      // "..." stands for some of its lines
  bool ends_text = false;    // nothing follows it, not even a prompt: its end may be missing
  bool of_chain = false;     // iptables -t nat -S CHAIN: of the other chains it says nothing
  std::vector<ChainOperation> operations{};
};

struct IptablesScript {
  std::vector<Section> sections;
  std::vector<std::string> notes;  // what was passed by, for people
};

// Throws Error (usage) for what leaves out too much, as `iptables -L` without -v does the interfaces.
[[nodiscard]] IptablesScript read_iptables_script(const RulesText& text);

}  // namespace sidetrack
