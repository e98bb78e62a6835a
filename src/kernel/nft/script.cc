// SPDX-License-Identifier: GPL-2.0-or-later
// Native rules as a script for `nft -f`.
#include "kernel/nft/script.h"

#include <fmt/format.h>

#include <iterator>

#include "kernel/nft/names.h"
#include "kernel/nft/native.h"
#include "rule/fold.h"

namespace sidetrack {
namespace {

using namespace nft;

using Text = std::back_insert_iterator<std::string>;

void print(const Set& set, Text text) {
  fmt::format_to(text, "\n\tset {} {{\n\t\ttype {}\n", set.name, set.type.name);
  if (set.interval) fmt::format_to(text, "\t\tflags interval\n");
  fmt::format_to(text, "\t\telements = {{\n");
  for (const std::string& value : set.texts()) fmt::format_to(text, "\t\t\t{},\n", value);
  fmt::format_to(text, "\t\t}}\n\t}}\n");
}

void print(const NativeRule& rule, Text text) {
  fmt::format_to(text, "\t\t");
  const char* space = "";
  for (const Statement& statement : rule.statements) {
    fmt::format_to(text, "{}{}", space, statement.text);
    space = " ";
  }
  if (!rule.comment.empty()) fmt::format_to(text, " comment \"{}\"", rule.comment);
  fmt::format_to(text, "\n");
}

void print(const NativeChain& chain, Text text) {
  fmt::format_to(text, "\n\tchain {} {{\n", chain.name);
  if (chain.hook) {
    fmt::format_to(text, "\t\t{}; policy accept;\n", hook_text(*chain.hook));
  }
  for (const NativeRule& rule : chain.rules) print(rule, text);
  fmt::format_to(text, "\t}}\n");
}

}  // namespace

std::string nft_script(const Ruleset& ruleset, const MeshRules& mesh) {
  const Ruleset folded = fold(ruleset);
  const NativeTable table = native(folded, mesh);
  std::string script;
  const Text text(script);
  fmt::format_to(text, "# One transaction: the table is replaced whole, whether it is there or not.\n");
  fmt::format_to(text, "add table inet {0}\ndelete table inet {0}\n", own_nft_table);
  if (table.chains.empty()) return script;
  fmt::format_to(text, "\ntable inet {} {{", own_nft_table);
  for (const Set& set : table.sets) {
    if (!set.anonymous) print(set, text);
  }
  for (const NativeChain& chain : table.chains) print(chain, text);
  fmt::format_to(text, "}}\n");
  return script;
}

}  // namespace sidetrack
