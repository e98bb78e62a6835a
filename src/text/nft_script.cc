// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_script.h"

#include <linux/netfilter.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "kernel/nft/names.h"
#include "kernel/nft/nf_tables.h"
#include "model/scan.h"
#include "text/nft_lines.h"

namespace sidetrack {
namespace {

constexpr std::size_t most_words_before_verb = 16;  // a prompt, a log's time and level
constexpr std::string_view change_verbs[] = {"add",     "create", "insert",  "delete",
                                             "destroy", "flush",  "replace", "rename"};
constexpr std::string_view object_kinds[] = {"table",     "chain",   "rule",  "set",   "map", "element", "ruleset",
                                             "flowtable", "counter", "quota", "limit", "ct",  "secmark", "synproxy"};
constexpr std::string_view last_words[] = {"accept", "drop", "return", "continue"};

// nft, /usr/sbin/nft, `nft, nft>
bool is_nft(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of("`'\"$("), word.size()));
  word.remove_prefix(word.rfind('/') + 1);
  return word == "nft" || word == "nft>";
}

// Returns how many tokens are `sudo nft -a`, before a command.
std::size_t words_of_nft(std::span<const NftToken> tokens) {
  const auto nft =
      std::ranges::find_if(tokens.first(std::min(tokens.size(), most_words_before_verb)), is_nft, &NftToken::text);
  if (nft == tokens.end() || !is_nft(nft->text)) return 0;
  const auto next =
      std::find_if(nft + 1, tokens.end(), [](const NftToken& each) { return !each.text.starts_with('-'); });
  return static_cast<std::size_t>(next - tokens.begin());
}

// Returns the line without a comment of a script.
std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    const bool begins_word = line[i] == '#' && (i == 0 || line[i - 1] == ' ');
    const bool is_prompt = i > 0 && line.substr(i).starts_with("# nft ");
    if (!quoted && begins_word && !is_prompt) return line.substr(0, i);
  }
  return line;
}

// Returns what a shell gives to nft, with ; for its && and ||: without quotes and backslashes, but for quotes around a
// part of a command, which people write without others.
std::string without_shell(std::string_view text) {
  std::string made;
  char quote = '\0';
  bool quoted = false;  // for nft
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = quote != '\'' && text[i] == '\\' && i + 1 < text.size();
    if (escaped) ++i;
    const char c = text[i];
    const std::string_view before = std::string_view(made).substr(0, made.find_last_not_of(' ') + 1);
    const std::string_view word = before.substr(before.rfind(' ') + 1);
    const bool opens_command = quote == '\0' && !quoted && (is_nft(word) || word.starts_with('-'));
    const bool is_of_shell = c == '\'' ? !quoted && quote != '"' : c == '"' && (quote == c || opens_command);
    if (!escaped && is_of_shell) {
      quote = quote == c ? '\0' : c;
    } else if (quote == '\0' && !quoted && (text.substr(i).starts_with("&&") || text.substr(i).starts_with("||"))) {
      made += ';';
      ++i;
    } else if (c != '`') {
      if (c == '"') quoted = !quoted;
      made += c;
    }
  }
  return made;
}

NftTokens tokens_of_script(std::string_view line) {
  const bool of_shell = words_of_nft(nft_tokens(line)) > 0;
  return nft_tokens(without_comment(of_shell ? without_shell(line) : std::string(line)));
}

// Takes a command off the tokens: it ends at a ; outside of braces, and at what a shell takes, 2>/dev/null.
std::span<const NftToken> take_command(std::span<const NftToken>& tokens) {
  std::size_t size = 0, end = tokens.size();
  for (int depth = 0; size < tokens.size(); ++size) {
    const NftToken& each = tokens[size];
    if (each.quoted) continue;
    depth += each.text == "{" ? 1 : each.text == "}" ? -1 : 0;
    if (depth <= 0 && each.text == ";") break;
    if (each.text.find(">/") != std::string::npos || each.text == "2>&1") end = std::min(end, size);
  }
  const auto command = tokens.first(std::min(size, end));
  tokens = tokens.subspan(std::min(size + 1, tokens.size()));
  return command;
}

std::string_view unquoted(std::span<const NftToken> tokens, std::size_t at) {
  return at < tokens.size() && !tokens[at].quoted ? std::string_view(tokens[at].text) : std::string_view();
}

// Tells whether it may be the name of something, and is no variable and no `handle 3`.
bool is_name(std::span<const NftToken> tokens) {
  constexpr std::string_view marks = "{};,()";
  return !tokens.empty() && !tokens[0].text.empty() && !tokens[0].text.starts_with('$') && tokens[0].text != "handle" &&
         marks.find(tokens[0].text[0]) == std::string_view::npos;
}

bool is_body(std::span<const NftToken> tokens) {
  return tokens.size() > 1 && unquoted(tokens, 0) == "{" && unquoted(tokens, tokens.size() - 1) == "}";
}

// Tells a command that names a table that is not known from prose: nft add rule T C tcp dport 80 accept
bool is_whole_command(std::string_view kind, std::span<const NftToken> tokens) {
  if (tokens.empty()) return false;
  const auto body = tokens.subspan(1);
  if (body.empty() || is_body(body) || unquoted(body, 0) == "handle") return kind != "rule" || !body.empty();
  const auto is_understood = [](const NftStatement& each) { return !each.word.empty() && !each.parts.empty(); };
  return kind == "rule" && std::ranges::any_of(read_nft_rule(body).statements, is_understood);
}

// nft 1.0.6 counts an index among the rules that it has flushed in the same run, too.
void flush(NftChain& chain) {
  chain.is_open = chain.is_open || !chain.rules.empty();
  chain.rules.clear();
}

// Leaves open what the rules before and behind the known ones are.
void leave_chain_open(NftChain& chain, std::string words) {
  chain.is_open = true;
  chain.rules.insert(chain.rules.begin(), opaque_nft_rule(std::move(words)));
}

void leave_table_open(NftTable& table, std::string_view why) {
  table.assumed_empty = false;
  leave_open(table, why);
}

}  // namespace

bool NftScript::knows(std::string_view table_of_ipv4) const {
  const nft::TableKey key{NFPROTO_IPV4, std::string(table_of_ipv4)};
  return nft::is_of_iptables(key) || std::ranges::find(tables_, key, &NftTable::key) != tables_.end();
}

// A family tells commands from prose, else that they begin a line, and that the table is known.
std::optional<NftScript::Command> NftScript::command_in(Tokens tokens) const {
  const std::size_t of_nft = words_of_nft(tokens);
  tokens = tokens.subspan(of_nft);
  for (std::size_t i = 0; i < std::min(tokens.size(), most_words_before_verb + 1); ++i) {
    const bool has_verb = is_one_of(unquoted(tokens, i), change_verbs);
    const std::string_view kind = unquoted(tokens, has_verb ? i + 1 : i);
    const bool has_kind = is_one_of(kind, object_kinds);
    const bool is_first = i == 0 || std::isdigit(static_cast<unsigned char>(tokens[0].text[0])) != 0;
    if (!has_kind && !(has_verb && of_nft > 0 && i == 0)) continue;  // nft add inet t c accept
    if (!has_verb && i > 0) continue;                                // table inet t
    Command command{has_verb ? unquoted(tokens, i) : "add", has_kind ? kind : "rule"};
    command.tokens = tokens.subspan(i);
    command.rest = tokens.subspan(i + (has_verb ? 1U : 0U) + (has_kind ? 1U : 0U));
    const auto family = nft::family_named(unquoted(command.rest, 0));
    command.family = family.value_or(NFPROTO_IPV4);
    if (kind == "ruleset") return command.verb == "flush" && is_first ? std::optional(command) : std::nullopt;
    if (family) command.rest = command.rest.subspan(1);
    if (command.rest.empty()) return {};
    command.name = command.rest[0].text;
    command.rest = command.rest.subspan(1);
    const bool is_plain = has_verb && (knows(command.name) || (kind == "table" && command.rest.empty()));
    const bool is_whole = of_nft > 0 && has_kind && is_whole_command(kind, command.rest);
    if (family || (is_first && (is_plain || is_whole))) return command;
    return {};
  }
  return {};
}

bool NftScript::has_command(const std::string& line) const {
  if (line.starts_with('-')) return false;          // of iptables
  const NftTokens tokens = tokens_of_script(line);  // none of a line that is a comment
  for (Tokens rest = tokens; !rest.empty();) {
    if (command_in(take_command(rest))) return true;
  }
  return false;
}

bool NftScript::goes_on(const std::string& text, bool is_open, const PastedLine& next) const {
  if (opens_nft_table(next.text) || has_command(next.text)) return false;
  if (is_open) return true;
  const NftTokens tokens = nft_tokens(text), more = nft_tokens(next.text);
  if (tokens.empty() || more.empty() || std::ranges::find(tokens, "rule", &NftToken::text) == tokens.end())
    return false;
  if (is_one_of(unquoted(tokens, tokens.size() - 1), last_words)) return false;
  return begins_nft_statement(unquoted(more, 0)) || !is_whole_rule(text) || is_whole_rule(text + ' ' + next.text);
}

// Tells whether all of it is one rule that is understood.
bool NftScript::is_whole_rule(const std::string& text) const {
  const NftTokens tokens = tokens_of_script(text);
  Tokens rest = tokens;
  const auto command = command_in(take_command(rest));
  if (!command || command->kind != "rule" || !rest.empty() || command->rest.size() < 2) return false;
  const NftRule rule = read_nft_rule(command->rest.subspan(1));
  return std::ranges::none_of(rule.statements, [](const NftStatement& each) {
    return each.word.empty() || (each.word == "match" && each.parts.empty());  // not understood
  });
}

bool NftScript::take(std::span<const PastedLine>& lines, const std::string& source) {
  std::string text = lines.front().text;
  if (!has_command(text)) {
    follows_error_ = text.find("Error: ") != std::string::npos;
    const NftTokens tokens = nft_tokens(text);
    const std::size_t start = words_of_nft(tokens);
    if (start == 0 || unquoted(tokens, start) != "list") return false;
    lists_ = true;
    lists_all_ = unquoted(tokens, start + 1) == "ruleset";
    return false;
  }
  text = without_comment(text);
  int open = opened_braces(text);
  lists_ = lists_all_ = false;
  source_ = source;
  is_cut_ = lines.front().ends_text;
  std::size_t number = lines.front().number;
  for (lines = lines.subspan(1); !lines.empty(); lines = lines.subspan(1)) {
    const PastedLine& next = lines.front();
    if ((open <= 0 && next.number != number + 1) || !goes_on(text, open > 0, next)) break;
    number = next.number;
    is_cut_ = next.ends_text;
    text += ' ';
    text += without_comment(next.text);
    open += opened_braces(next.text);
  }
  is_cut_ = is_cut_ || open > 0;
  const NftTokens tokens = tokens_of_script(text);
  for (Tokens rest = tokens; !rest.empty();) {
    if (const auto command = command_in(take_command(rest))) apply(*command);
  }
  follows_error_ = false;
  return true;
}

void NftScript::apply(const Command& command) {
  if (command.kind == "ruleset") {
    const bool of_all = command.rest.empty();
    std::erase_if(tables_, [&](const NftTable& each) { return of_all || each.key.family == command.family; });
    all_emptied_ = all_emptied_ || of_all;
    return;
  }
  // Leaves open what a command that failed changes: nft prints the error, and then the command.
  const bool is_known = !follows_error_ && !command.name.empty() && command.name[0] != '$' && command.name != "handle";
  const bool of_table = command.kind == "table";
  if (is_known && of_table && (command.verb == "delete" || command.verb == "destroy")) return remove_table(command);
  NftTable& table = is_known || follows_error_ ? table_of({command.family, std::string(command.name)})
                                               : table_of({NFPROTO_INET, "[not known]"});
  const bool is_done = is_known && (of_table                  ? change_table(table, command)
                                    : command.kind == "chain" ? change_chain(table, command)
                                    : command.kind == "rule"  ? change_rule(table, command)
                                                              : change_set(table, command));
  if (!is_done) leave_table_open(table, nft_words(command.tokens));
}

void NftScript::remove_table(const Command& command) {
  const nft::TableKey key{command.family, std::string(command.name)};
  emptied_ += nft::text(key) + "\n";
  const auto table = std::ranges::find(tables_, key, &NftTable::key);
  if (table != tables_.end()) tables_.erase(table);
}

bool NftScript::change_table(NftTable& table, const Command& command) const {
  if (command.verb == "flush") {
    table.is_flushed = true;
    table.assumed_empty = false;
    for (NftChain& each : table.chains) {
      if (!each.is_cut_off()) flush(each);
    }
    return true;
  }
  const Tokens body = command.rest;
  for (const NftToken& each : body) {
    if (each.text == "dormant") table.dormant = true;
    if (each.text == "chain") return false;
  }
  const bool is_whole = body.empty() ? !is_cut_ : is_body(body);  // table ip nat, of which the brace is cut off
  return is_whole && (command.verb == "add" || command.verb == "create");
}

bool NftScript::change_chain(NftTable& table, const Command& command) {
  if (!is_name(command.rest)) return false;
  const std::string& name = command.rest[0].text;
  const Tokens body = command.rest.subspan(1);
  auto chain = std::ranges::find(table.chains, name, &NftChain::name);
  if (command.verb == "add" || command.verb == "create") {
    if (chain == table.chains.end()) {
      table.chains.emplace_back().name = name;
      chain = std::prev(table.chains.end());
    }
    return body.empty() || (is_body(body) && read_nft_base(body, table.key.family == NFPROTO_BRIDGE, *chain));
  }
  if (chain == table.chains.end()) return false;
  if (command.verb == "flush") return flush(*chain), true;
  if (command.verb != "delete" && command.verb != "destroy") return false;
  table.chains.erase(chain);
  return true;
}

bool NftScript::change_rule(NftTable& table, const Command& command) const {
  if (!is_name(command.rest)) return false;
  NftChain& chain = chain_of(table, command.rest[0].text);
  Tokens rest = command.rest.subspan(1);
  const std::string_view place = unquoted(rest, 0);
  const bool has_place = rest.size() > 1 && (place == "index" || place == "position" || place == "handle");
  // Counted from 0. Handles are not known.
  const auto index = has_place && place == "index" ? to_number<std::size_t>(rest[1].text) : std::nullopt;
  if (has_place) {
    rest = rest.subspan(2);
    table.assumed_empty = table.assumed_empty || table.is_flushed;
  }
  const std::string_view verb = command.verb;
  const bool inserts = verb == "insert", adds = verb == "add" || verb == "create";
  const bool is_anywhere = has_place && (!index || *index >= chain.rules.size() || chain.is_open);
  if (is_anywhere || !(has_place || inserts || adds)) return leave_chain_open(chain, nft_words(command.tokens)), true;
  const auto at = static_cast<std::ptrdiff_t>(index.value_or(0));
  if (verb == "delete" || verb == "destroy") return chain.rules.erase(chain.rules.begin() + at), true;
  if (rest.empty()) return false;
  const bool is_whole = !is_cut_ || is_one_of(unquoted(rest, rest.size() - 1), last_words);
  NftRule rule = is_whole ? read_nft_rule(rest) : opaque_nft_rule(nft_words(rest) + " [cut off]");
  rule.of_command = true;
  if (verb == "replace") return chain.rules[index.value_or(0)] = std::move(rule), true;
  const auto begin = chain.rules.begin();
  chain.rules.insert(inserts ? begin + at : index ? begin + at + 1 : chain.rules.end(), std::move(rule));
  return true;
}

bool NftScript::change_set(NftTable& table, const Command& command) {
  const bool adds = command.verb == "add" || command.verb == "create";
  const bool of_elements = command.kind == "element";
  if (!of_elements && command.kind != "set" && command.kind != "map") {
    if (adds) ++table.other_objects;
    return true;
  }
  if (!is_name(command.rest)) return false;
  const std::string& name = command.rest[0].text;
  const Tokens body = command.rest.subspan(1);
  auto set = std::ranges::find(table.sets, name, &NftSet::name);
  const bool is_new = set == table.sets.end();
  NftSet more{name};
  if (of_elements) {
    more.elements = read_nft_elements(body);
  } else if (adds) {
    read_nft_set(body, more);
  }
  if (is_new && adds && !of_elements) {
    table.sets.push_back(std::move(more));
  } else if (!is_new && command.verb == "flush") {
    set->elements = NftNode("set");
  } else if (!is_new && adds && set->elements && more.elements) {
    std::ranges::move(more.elements->parts, std::back_inserter(set->elements->parts));
    set->changes = set->changes || more.changes;
  } else if (!is_new && (adds || of_elements)) {
    set->elements.reset();
  } else if (!is_new) {
    table.sets.erase(set);
  }
  return of_elements || !adds ||
         is_body(body);  // a rule that looks up a set which is not in the text is not understood
}

NftTable& NftScript::table_of(const nft::TableKey& key) {
  auto table = std::ranges::find(tables_, key, &NftTable::key);
  if (table == tables_.end()) {
    tables_.push_back({key, source_});
    table = std::prev(tables_.end());
    table->assumed_empty = !all_emptied_ && emptied_.find(nft::text(key) + "\n") == std::string::npos;
  }
  table->of_commands = true;
  return *table;
}

NftChain& NftScript::chain_of(NftTable& table, std::string_view name) {
  auto chain = std::ranges::find(table.chains, name, &NftChain::name);
  if (chain != table.chains.end()) return *chain;
  constexpr std::string_view why = "[rules that the text does not show]";
  leave_table_open(table, why);
  NftChain& made = table.chains.emplace_back();
  made.name = name;
  leave_chain_open(made, std::string(why));
  return made;
}

}  // namespace sidetrack
