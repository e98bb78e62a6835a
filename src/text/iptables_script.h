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
  enum class Kind { declare, policy, append, insert, replace, remove, flush, remove_chain, omit };
  Kind kind{};
  std::string chain;  // of omit: that whose rules the text omits here; empty if it is not known
  std::size_t line = 0;
  Verdict policy = Verdict::accept;
  Rule rule{};  // of append, insert, replace and remove; its table and family are not known here
  std::optional<std::size_t> number{};  // of insert, replace and remove: the rule's place, counted from 1
  Counters counters{};
};

// Whether a text shows that no line is missing where it begins or ends: by *TABLE and COMMIT, policies of all built-in
// chains, what follows. "assumed": it shows neither that nor the opposite.
enum class Edge { shown, assumed, missing };

// Lines about one table of one family.
struct Section {
  std::string source;                    // "FILE:LINE"
  std::size_t text = 0;                  // its number
  unsigned listing = 0;                  // those of one number were printed together: they are of one family
  std::optional<BackendKind> backend{};  // the last three: nothing if neither the lines nor the command say it
  std::optional<Family> family{};
  std::optional<Table> table{};
  bool is_whole = false;  // it lists all chains of the table, as iptables-save and -S do
  Edge start = Edge::shown;
  Edge end = Edge::shown;
  bool of_commands = false;  // iptables -t nat -A …
  bool is_listing = false;   // what -S or -L prints
  bool of_chain = false;     // iptables -t nat -S CHAIN: of the other chains it says nothing
  std::vector<ChainOperation> operations{};

  // Tells whether chains have their rules in the order in which they are declared. What iptables-restore takes has
  // none.
  [[nodiscard]] bool is_ordered() const { return is_whole || is_listing; }
};

struct IptablesScript {
  std::vector<Section> sections;
  std::vector<std::string> notes;  // what was passed by, for people
};

// Throws Error (usage) for what leaves out too much, as `iptables -L` without -v does the interfaces.
[[nodiscard]] IptablesScript read_iptables_script(const RulesText& text);

}  // namespace sidetrack
