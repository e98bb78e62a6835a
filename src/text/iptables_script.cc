// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/iptables_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "rule/words.h"
#include "text/iptables_list.h"
#include "text/pasted_lines.h"
#include "text/read_rule.h"
#include "text/refused_place.h"
#include "text/refused_words.h"

namespace sidetrack {
namespace {

using Kind = ChainOperation::Kind;
using Views = std::span<const std::string_view>;

// Of a prompt, a log's time and level, `kubectl exec` before a command.
constexpr std::size_t most_words_before = 16;
constexpr std::size_t most_notes = 5;  // about lines that are passed by

struct Verb {
  std::string_view letter;
  std::string_view word;
  Kind kind;
};
constexpr Verb verbs[] = {
    {"-A", "--append", Kind::append},     {"-I", "--insert", Kind::insert},
    {"-R", "--replace", Kind::replace},   {"-D", "--delete", Kind::remove},
    {"-N", "--new-chain", Kind::declare}, {"-P", "--policy", Kind::policy},
    {"-F", "--flush", Kind::flush},       {"-X", "--delete-chain", Kind::remove_chain},
};

const Verb* verb_of(std::string_view word) {
  const auto* found =
      std::ranges::find_if(verbs, [&](const Verb& each) { return word == each.letter || word == each.word; });
  return found != std::end(verbs) ? found : nullptr;
}

// Returns where the letter is whose value is the rest of the word, as A in -nvAINPUT.
std::size_t letter_with_value(std::string_view word) {
  constexpr std::string_view without_value = "nvx46", with_value = "AIRDNPFXtsdpiojgm";
  const auto letter = word.starts_with('-') ? word.find_first_not_of(without_value, 1) : std::string_view::npos;
  const bool has_value = letter != std::string_view::npos && with_value.find(word[letter]) != std::string_view::npos;
  return has_value ? letter : std::string_view::npos;
}

// -A, --append, -AINPUT
bool begins_with_verb(std::string_view word) {
  const auto letter = letter_with_value(word);
  return verb_of(word) != nullptr ||
         (letter != std::string_view::npos && verb_of(std::string{'-', word[letter]}) != nullptr);
}

std::optional<Verdict> policy_of(std::string_view word) {
  if (word == "ACCEPT") return Verdict::accept;
  if (word == "DROP") return Verdict::drop;
  return {};
}

// [12:340]
std::optional<Counters> counters_of(std::string_view word) {
  if (!word.starts_with('[') || !word.ends_with(']')) return {};
  const auto colon = word.find(':');
  if (colon == std::string_view::npos) return {};
  const auto packets = to_number<std::uint64_t>(word.substr(1, colon - 1));
  const auto bytes = to_number<std::uint64_t>(word.substr(colon + 1, word.size() - colon - 2));
  if (!packets || !bytes) return {};
  return Counters{*packets, *bytes};
}

struct Program {
  std::optional<Family> family;
  std::optional<BackendKind> backend;
  bool lists_all = false;  // iptables-save, or the input of iptables-restore
};

// /usr/sbin/ip6tables-legacy-save; the file /tmp/iptables-rules-1.txt of istio-init
std::optional<Program> program_of(std::string_view word) {
  constexpr std::string_view around = "`'\"$(),;";
  while (!word.empty() && around.find(word.front()) != std::string_view::npos) word.remove_prefix(1);
  while (!word.empty() && around.find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  word.remove_prefix(word.rfind('/') + 1);
  Program program;
  const bool ipv6 = word.starts_with("ip6tables");
  if (!ipv6 && !word.starts_with("iptables")) return {};
  program.family = ipv6 ? Family::ipv6 : Family::ipv4;
  for (const std::string_view part : split(word.substr(ipv6 ? 9 : 8), "-")) {
    if (part == "legacy") program.backend = BackendKind::iptables_legacy;
    if (part == "nft") program.backend = BackendKind::iptables_nft;
    program.lists_all |= part == "save" || part == "restore" || part == "rules";
    if (part == "rules") break;
    if (part != "legacy" && part != "nft" && part != "save" && part != "restore") return {};
  }
  return program;
}

// ENVOY_PORT=15001, of which istio-init prints many
bool is_setting(Views words) {
  constexpr std::string_view of_names = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const auto end = words[0].find_first_not_of(of_names);
  return words.size() == 1 && end != 0 && end != std::string_view::npos && words[0][end] == '=';
}

// v1.8.9: iptables-nft says "(nf_tables)" behind it since 1.8.8, and there is none before 1.8.
bool is_version_of_legacy(std::string_view word) {
  const std::vector<std::string_view> parts = split(word, "v.");
  const auto part = [&](std::size_t i) { return i < parts.size() ? to_number<unsigned>(parts[i]) : std::nullopt; };
  if (!word.starts_with('v') || part(0) != 1U || !part(1) || !part(2)) return false;
  return *part(1) < 8 || *part(1) > 8 || *part(2) >= 8;
}

// Tells whether iptables, or istio-init of it, says that it has changed nothing. To delete what is not there is no
// failure.
bool tells_of_failure(std::string_view line) {
  constexpr std::string_view words[] = {"unable to initialize table",
                                        "can't initialize ip",
                                        "Failed to execute: ip",
                                        "failed to execute: ip",
                                        "-restore: line ",
                                        "-restore v",
                                        "Permission denied (you must be root)"};
  return contains_any(line, words);
}

// Tells whether the words are of a sentence, and not a prompt or what a log has before each line.
bool is_prose(Views words) {
  constexpr std::ptrdiff_t most_of_a_log = 2;
  const auto is_word = [](std::string_view word) {
    return std::ranges::all_of(word.substr(1), [](unsigned char c) { return std::islower(c) != 0; }) &&
           std::isalpha(static_cast<unsigned char>(word[0])) != 0;
  };
  return std::ranges::count_if(words, is_word) > most_of_a_log;
}

// Tells whether a shell does not always run what follows, or not once.
bool branches(std::string_view word) {
  constexpr std::string_view words[] = {"if", "else", "elif", "case", "for", "while", "until", "exit", "return"};
  return std::ranges::find(words, word) != std::end(words) || word.ends_with("()");
}

// IPv6:, a heading
std::optional<Family> family_of_heading(Views words) {
  if (words.size() != 1) return {};
  if (words[0] == "IPv4:" || words[0] == "ipv4:") return Family::ipv4;
  if (words[0] == "IPv6:" || words[0] == "ipv6:") return Family::ipv6;
  return {};
}

// Where a shell's command ends: ; && || | > 2> and a comment
std::size_t end_of_command(std::string_view text) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && i > 0 && text[i - 1] == ' ') {
      return i;
    } else if (c == ';' || c == '&' || c == '|' || c == '>') {
      const bool descriptor = c == '>' && i > 1 && text[i - 1] >= '0' && text[i - 1] <= '9' && text[i - 2] == ' ';
      return descriptor ? i - 1 : i;
    }
  }
  return text.size();
}

// A shell's quotes for those of iptables-save.
std::string with_double_quotes(std::string_view text) {
  std::string made(text);
  if (made.find('"') == std::string::npos) std::ranges::replace(made, '\'', '"');
  return made;
}

// --append=OUTPUT as --append OUTPUT, but between quotes.
std::string with_separate_values(std::string_view line) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::string made(line);
  bool quoted = false;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] == '"') quoted = !quoted;
    if (quoted || !std::string_view(made).substr(i).starts_with(" --")) continue;
    i = std::min(made.find_first_not_of(letters, i + 1), made.size()) - 1;
    if (i + 1 < made.size() && made[i + 1] == '=') made[i + 1] = ' ';
  }
  return made;
}

// -AINPUT -jDROP as -A INPUT -j DROP, but between quotes and where another option's value is.
std::string with_separate_letters(std::string_view line) {
  constexpr std::string_view of_texts[] = {"--comment", "--log-prefix", "--nflog-prefix", "--string", "--hex-string"};
  std::string made;
  char quote = '\0';
  std::string_view before;
  for (const std::string_view word : split_at_each(line, ' ')) {
    const bool is_text = quote != '\0' || std::ranges::find(of_texts, before) != std::end(of_texts);
    const auto letter = is_text ? std::string_view::npos : letter_with_value(word);
    if (word.data() != line.data()) made += ' ';
    if (letter != std::string_view::npos) {
      if (letter > 1) made.append(word, 0, letter).append(" ");
      made.append("-").append(word, letter, 1);
      if (letter + 1 < word.size()) made += ' ';
      made.append(word, letter + 1);
    } else {
      made += word;
    }
    for (const char c : word) {
      if (quote == '\0' ? c == '"' || c == '\'' : c == quote) quote = quote == '\0' ? c : '\0';
    }
    if (!word.empty()) before = word;
  }
  return made;
}

// Tells -j and --to-ports from bullets, lines of dashes and -bash-4.2$.
bool is_option(std::string_view word) {
  const auto letter = word.find_first_not_of('-');
  const bool is_named = letter == 1 ? word.size() == 2 : letter == 2 && word.size() > 3;
  return is_named && verb_of(word) == nullptr && word != "-t";
}

// Options of matches that take no value: `iptables -m MATCH -h` lists them without one.
constexpr std::string_view bare_options =
    " -f --syn --rsource --rdest --set --rcheck --update --remove --rttl --reap --loose "
    "--validmark --accept-local --invert --icase --kerneltz --contiguous --connlimit-saddr "
    "--connlimit-daddr --transparent --nowildcard --socket-exists --restore-skmark "
    "--physdev-is-in --physdev-is-out --physdev-is-bridged --limit-iface-in --limit-iface-out "
    "--hashlimit-rate-match --ahres --fragres --fragfirst --fragmore --fraglast --strict "
    "--next --return-nomatch ";

bool is_bare(std::string_view option) {
  return bare_options.find(fmt::format(" {} ", option)) != std::string_view::npos;
}

// # Generated by iptables-save v1.8.9 on …, behind the time of a log, too
bool is_comment_line(std::string_view line) {
  constexpr std::string_view words[] = {" # Generated by ", " # Completed on "};
  return line.starts_with('#') || line.starts_with("//") || contains_any(line, words);
}

// Tells whether the line goes on with the rule of the line before, which a mail or an editor has wrapped.
bool goes_on(std::string_view before, std::string_view line) {
  const auto starts_rule = [](std::string_view word) { return begins_with_verb(word) || program_of(word); };
  const std::vector<std::string_view> rule = split(before, " "), words = split(line, " ");
  constexpr std::string_view starts_another = "#:*[";
  if (words.empty() || words.back() == "COMMIT" || stands_for_lines(line) ||
      starts_another.find(words[0][0]) != std::string_view::npos || is_comment_line(line) ||
      std::ranges::none_of(rule, begins_with_verb) || std::ranges::any_of(words, starts_rule))
    return false;
  const std::string_view before_last = rule.size() > 1 ? rule[rule.size() - 2] : "";
  constexpr std::string_view of_two_values[] = {"--tcp-flags", "--match-set", "-P", "--policy"};
  const bool lacks_value = std::ranges::find(of_two_values, before_last) != std::end(of_two_values);
  return is_option(words[0]) || words[0] == "!" || (is_option(rule.back()) && !is_bare(rule.back())) ||
         rule.back().ends_with(',') || lacks_value;
}

std::vector<PastedLine> without_wraps(std::vector<PastedLine> lines) {
  std::vector<PastedLine> made;
  std::size_t last = 0;
  for (PastedLine& line : lines) {
    const bool is_next = line.number == std::exchange(last, line.number) + 1;
    if (!is_next || made.empty() || !goes_on(made.back().text, line.text)) {
      made.push_back(std::move(line));
      continue;
    }
    PastedLine& rule = made.back();
    rule.text += (rule.text.ends_with(',') ? "" : " ") + line.text;
    rule.ends_text = line.ends_text;
  }
  return made;
}

// What a rule of which nothing is understood is shown as.
Rule opaque_rule(std::string_view chain, std::string_view words) {
  Rule rule;
  rule.chain = chain;
  rule.matches = {UnknownMatch{std::string(words)}};
  rule.target = UnknownTarget{"[unknown target]"};
  return rule;
}

class Reader {
 public:
  explicit Reader(const RulesText& text) : text_(text) {}

  IptablesScript read() && {
    std::vector<PastedLine> lines = pasted_lines(text_.text);
    const auto width = width_of(lines);
    for (const PastedLine& line : without_wraps(std::move(lines))) {
      number_ = line.number;
      is_at_width_ = line.text.size() == width;
      ends_text_ = line.ends_text;
      if (tells_of_failure(line.text))
        note(fmt::format("'{}': the rules are taken to be there anyway", excerpt(line.text)));
      const std::string text = with_separate_values(line.text);
      take(std::ranges::any_of(split(text, " "), begins_with_verb) ? with_separate_letters(text) : text);
    }
    if (in_listing_) {
      Section& last = script_.sections.back();
      const bool is_last = last_statement_ == number_ || last.operations.back().line == number_;
      last.end = is_last ? Edge::assumed : Edge::shown;  // not even a prompt follows
    }
    if (branching_line_ != 0 && std::ranges::any_of(script_.sections, &Section::of_commands))
      script_.notes.push_back(
          fmt::format("{}:{}: the script branches: all its commands are assumed to have run, once and in this order",
                      excerpt(text_.name), branching_line_));
    if (skipped_ > most_notes)
      script_.notes.push_back(
          fmt::format("{}: {} more lines are no rules of iptables", excerpt(text_.name), skipped_ - most_notes));
    return std::move(script_);
  }

 private:
  // Returns where the longest lines end if they are several: by the width of a terminal, perhaps.
  static std::optional<std::size_t> width_of(const std::vector<PastedLine>& lines) {
    std::size_t longest = 0, count = 0;
    for (const PastedLine& line : lines) {
      if (line.text.size() > longest) count = 0;
      longest = std::max(longest, line.text.size());
      if (line.text.size() == longest) ++count;
    }
    return count > 1 ? std::optional(longest) : std::nullopt;
  }

  // A line may have several commands.
  void take(std::string_view line) {
    is_next_command_ = false;
    while (!line.empty()) {
      line = take_first(line);
      is_next_command_ = true;
    }
  }

  // Returns what follows the first command.
  std::string_view take_first(std::string_view line) {
    const std::vector<std::string_view> words = split(line, " ");
    const bool is_comment = is_comment_line(line) || (!words.empty() && words[0] == "echo");
    if (is_comment && line.find("legacy tables present") != std::string_view::npos) {
      note(
          "the tables of iptables-legacy that the pod has are assumed to be empty, unless the text has them: ask for "
          "the output of: iptables-legacy-save; ip6tables-legacy-save");
      return {};
    }
    if (const auto family = family_of_heading(words)) return command({family, {}, true}, line, is_comment);
    for (std::size_t i = 0; i < std::min(words.size(), most_words_before + 1); ++i) {
      const auto rest = line.substr(static_cast<std::size_t>(words[i].data() - line.data()));
      if (const auto program = program_of(words[i])) return command(*program, rest, is_comment);
      // $IPTABLES -t nat -A …
      if (words[i] == "-t" && i + 1 < words.size() && table_named(words[i + 1])) return command({}, rest, is_comment);
      const bool is_open = in_table_ || in_listing_;
      if (!is_comment && (is_open || !is_prose(Views(words).first(i))) && statement(Views(words).subspan(i), rest)) {
        last_statement_ = number_;
        return {};
      }
    }
    if (words.empty() || is_next_command_ || omits(line)) return {};
    if (is_comment || is_setting(words) || ends_row(words, line)) return {};
    is_row_skipped_ = !in_table_ && is_row(words);
    if (in_table_ || is_row_skipped_) add_opaque(words, line);
    // The end of a rule that was wrapped, perhaps.
    const bool may_be_end = in_listing_ && listed_chain_.empty() && number_ == last_statement_ + 1;
    if (may_be_end && std::ranges::any_of(words, is_option) && !is_prose(words))
      script_.sections.back().operations.back().rule.target = UnknownTarget{"[unknown target]"};
    if (branches(words[0]) && branching_line_ == 0) branching_line_ = number_;
    if (++skipped_ > most_notes) return {};
    constexpr std::string_view of_ip[] = {" rule ", " route "};
    const bool is_of_ip = words[0] == "ip" && contains_any(line, of_ip);
    note(fmt::format("'{}' is {}", excerpt(line), is_of_ip ? "not read: --route takes it" : "no rule of iptables"));
    return {};
  }

  // Takes a line that stands for others.
  bool omits(std::string_view line) {
    if (!stands_for_lines(line)) return false;
    const bool is_open = in_table_ || in_listing_ || (!script_.sections.empty() && script_.sections.back().of_commands);
    if (!is_open) {
      note("lines are omitted here: tables that the text lacks may be among them");
      return true;
    }
    ChainOperation& made = script_.sections.back().operations.emplace_back();
    made.kind = Kind::omit;
    made.chain = in_listing_ ? listed_chain_ : "";
    made.line = number_;
    note("lines are omitted here: what they do is not known; ask for the output of: iptables-save; ip6tables-save");
    return true;
  }

  static bool is_understood(const std::optional<ListedRule>& row) {
    return row && row->words.find("-m [") == std::string::npos;
  }

  // Takes a further part of a row of -L that was wrapped, maybe more than once. Returns whether it is one.
  bool ends_row(Views words, std::string_view line) {
    const bool is_next = in_listing_ && !last_listed_.empty() && number_ == last_row_ + 1;
    if (!is_next || is_counted(words)) return false;
    const std::string whole = fmt::format("{} {}", last_listed_, line);
    const auto rule = read_listed_rule(whole);
    // What follows a whole row may be a prompt, and where no other row is in parts, prose.
    const bool is_prompt = line.find_first_of("$#@>") != std::string_view::npos;
    const bool is_open = is_counted(split(last_listed_, " ")) && !is_understood(read_listed_rule(last_listed_));
    if (!is_understood(rule) && (is_prompt || !(is_wrapped_ || is_open || begins_extension(line)))) return false;
    is_wrapped_ = true;
    if (std::exchange(is_row_skipped_, false) && skipped_-- <= most_notes) script_.notes.pop_back();
    script_.sections.back().operations.pop_back();
    if (rule) {
      add_row(*rule);
    } else {
      append(opaque_rule(listed_chain_, whole));
    }
    take_for_row(whole);
    return true;
  }

  void take_for_row(std::string_view line) {
    last_listed_ = line;
    last_row_ = number_;
  }

  // Tells whether they begin as a row of -L -v: 12 340 RETURN
  static bool is_counted(Views words) { return words.size() > 2 && read_count(words[0]) && read_count(words[1]); }

  // Tells a row of -L that is not understood from prose that follows.
  [[nodiscard]] bool is_row(Views words) const {
    if (!in_listing_ || listed_chain_.empty()) return false;
    const auto is_of_row = [](std::string_view word) {
      return word == "--" || word == "anywhere" || word == "0.0.0.0/0" || word == "::/0";
    };
    return is_counted(words) || std::ranges::any_of(words, is_of_row);
  }

  // Takes a line for a rule: of the chain that is listed, or that it names, or else of all built-in ones.
  void add_opaque(Views words, std::string_view line) {
    const Section& section = script_.sections.back();
    if (!in_table_) {
      take_for_row(line);
      return append(opaque_rule(listed_chain_, line));
    }
    std::vector<std::string> chains;
    for (const std::string_view word : words.first(std::min<std::size_t>(words.size(), 3))) {
      const bool is_known =
          std::ranges::find(section.operations, word, &ChainOperation::chain) != section.operations.end() ||
          builtin_hook(*section.table, word);
      if (is_known) chains.assign(1, std::string(word));
    }
    if (chains.empty()) chains = builtin_chains(*section.table);
    for (const std::string& chain : chains) append(opaque_rule(chain, line));
  }

  void append(Rule rule) {
    ChainOperation& made = script_.sections.back().operations.emplace_back();
    made.kind = Kind::append;
    made.chain = rule.chain;
    made.line = number_;
    made.rule = std::move(rule);
  }

  // *nat   :OUTPUT ACCEPT [0:0]   [0:0] -A OUTPUT …   -A OUTPUT …   COMMIT
  bool statement(Views words, std::string_view rest) {
    const std::string_view first = words[0];
    if (first == "COMMIT" && words.size() == 1) return commit();
    if (first.starts_with('*') && words.size() == (first == "*" ? 2U : 1U)) {
      const auto table = table_named(first == "*" ? words[1] : first.substr(1));
      if (table) open_table(*table);
      return table.has_value();
    }
    const bool declares = first.starts_with(':') && first.size() > 1 && words.size() > 1;
    if (declares && (in_table_ || (words.size() > 2 && counters_of(words[2])))) return declare(words);
    if (first == "Chain" && words.size() > 3 && words[2].starts_with('(')) return open_chain(words);
    if (in_listing_ && !listed_chain_.empty() && listed(words, rest)) return true;
    Counters counters;
    if (const auto found = counters_of(first); found && words.size() > 1) {
      counters = *found;
      words = words.subspan(1);
      rest.remove_prefix(static_cast<std::size_t>(words[0].data() - rest.data()));
    }
    const Verb* verb = verb_of(words[0]);
    if (verb == nullptr || words.size() < 2 || words[1].starts_with('-')) return false;
    if (verb->kind == Kind::policy && (words.size() < 3 || !policy_of(words[2]))) return false;
    const bool has_rule = words.size() > 2 && verb->kind == Kind::append;
    if (has_rule && !in_table_ && !in_listing_ && words[2] != "!" && !words[2].starts_with('-')) return false;  // prose
    if (!in_table_) open_listing(*verb, words[1]);
    add(script_.sections.back(), *verb, rest, counters);
    return true;
  }

  // Chain OUTPUT (policy ACCEPT 0 packets, 0 bytes), Chain ISTIO_OUTPUT (1 references)
  bool open_chain(Views words) {
    const auto policy = words[2] == "(policy" ? policy_of(words[3]) : std::nullopt;
    const Verb& verb = *verb_of(policy ? "-P" : "-N");
    in_table_ = false;
    open_listing(verb, words[1]);
    listed_chain_ = words[1];
    last_listed_.clear();
    add(script_.sections.back(), verb, fmt::format("{} {} {}", verb.letter, words[1], words[3]), {});
    if (!policy) script_.sections.back().operations.back().number = to_number<std::size_t>(words[2].substr(1));
    return true;
  }

  // A line below it.
  bool listed(Views words, std::string_view line) {
    is_wrapped_ = is_wrapped_ || (words.size() == 1 && words[0] == "destination");  // the last column's name alone
    if (words[0] == "pkts" || words[0] == "destination") return true;
    if (words[0] == "target" && words.size() > 3)
      refuse(
          "iptables -L without -v does not print the interfaces of rules: expected the output of iptables-save, or of "
          "iptables -t nat -L -n -v",
          "ask for the output of: iptables-save; ip6tables-save");
    const auto rule = read_listed_rule(line);
    if (!rule) return false;
    take_for_row(line);
    add_row(*rule);
    return true;
  }

  void add_row(const ListedRule& row) {
    Section& section = script_.sections.back();
    if (!section.family) section.family = row.family;
    add(section, *verb_of("-A"), fmt::format("-A {} {}", listed_chain_, row.words), row.counters);
  }

  bool commit() {
    if (in_table_) script_.sections.back().end = Edge::shown;
    if (in_listing_) script_.sections.back().start = script_.sections.back().is_whole ? Edge::shown : Edge::missing;
    in_table_ = in_listing_ = false;
    return true;
  }

  // :OUTPUT ACCEPT [0:0], :ISTIO_OUTPUT - [0:0]
  bool declare(Views words) {
    const auto policy = policy_of(words[1]);
    if (!policy && words[1] != "-") return false;
    if (!in_table_) open_listing(*verb_of(policy ? "-P" : "-N"), words[0].substr(1));  // the line *TABLE is missing
    Section& section = script_.sections.back();
    section.is_whole |= policy.has_value();
    ChainOperation& made = section.operations.emplace_back();
    made.kind = policy ? Kind::policy : Kind::declare;
    made.chain = words[0].substr(1);
    made.line = number_;
    made.policy = policy.value_or(Verdict::accept);
    return true;
  }

  void add(Section& section, const Verb& verb, std::string_view text, Counters counters) {
    std::vector<std::string> words;
    for (const std::string_view word : split(text, " ")) words.emplace_back(word);
    ChainOperation made;
    made.kind = verb.kind;
    made.chain = words.size() > 1 ? words[1] : "";
    made.line = number_;
    made.counters = counters;
    if (ends_text_ && verb.kind == Kind::append && words.size() == 2) {  // its name may be cut
      made.kind = Kind::omit;
      made.chain.clear();
      section.operations.push_back(std::move(made));
      return;
    }
    if (verb.kind == Kind::policy) {
      made.policy = policy_of(words[2]).value_or(Verdict::accept);
      section.is_whole |= !section.of_commands;
    }
    if (verb.kind == Kind::append || verb.kind == Kind::insert || verb.kind == Kind::replace ||
        verb.kind == Kind::remove) {
      std::size_t start = 2;
      if (verb.kind != Kind::append && words.size() > 2) made.number = to_number<std::size_t>(words[2]);
      if (made.number) ++start;
      made.rule = rule_of(section.table, words[1], std::span(words).subspan(start), made.counters);
    }
    section.operations.push_back(std::move(made));
  }

  // Takes the counters of `iptables -S -v` out: -c 12 340.
  Rule rule_of(std::optional<Table> table, const std::string& chain, std::span<const std::string> words,
               Counters& counters) {
    std::string text = fmt::format("-A {}", chain);
    std::size_t quotes = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool counted = quotes % 2 == 0 && words[i] == "-c" && i + 2 < words.size();
      const auto packets = counted ? to_number<std::uint64_t>(words[i + 1]) : std::nullopt;
      const auto bytes = counted ? to_number<std::uint64_t>(words[i + 2]) : std::nullopt;
      if (packets && bytes) {
        counters = {*packets, *bytes};
        i += 2;
        continue;
      }
      quotes += static_cast<std::size_t>(std::ranges::count(words[i], '"'));
      text += " " + words[i];
    }
    try {
      Rule rule = read_rule(text);
      // Where it was cut off is not known.
      const std::string_view last = words.empty() ? std::string_view() : words.back();
      const bool breaks_off = is_at_width_ || last.ends_with("...") || last.ends_with("…");
      std::string why;
      if (!breaks_off && !ends_text_) {
        const std::vector<std::string> all = rule_words(text);
        why = why_refused(all);
        if (why.empty()) why = why_refused_at(table, chain, all);
      }
      if (!why.empty()) {
        note(why + ": iptables does not take this rule, and what it does is unknown");
        return opaque_rule(chain, joined_words(words));
      }
      const bool ends_unknown = !rule.matches.empty() && std::holds_alternative<UnknownMatch>(rule.matches.back());
      const bool is_cut = breaks_off || (ends_unknown && (ends_text_ || (last.starts_with('-') && !is_bare(last))));
      if (is_cut && rule.target == Target(NonTerminating{})) rule.target = UnknownTarget{"[unknown target]"};
      return rule;
    } catch (const Error&) {
      return opaque_rule(chain, joined_words(words));
    }
  }

  // iptables -t nat -A OUTPUT …; what only lists tells what the next lines are.
  std::string_view command(const Program& program, std::string_view text, bool is_comment) {
    const std::size_t end = end_of_command(text);
    const std::string line = with_double_quotes(text.substr(0, end));
    std::optional<Table> table;
    bool names_table = false;
    const Verb* verb = nullptr;
    bool lists = false;
    bool of_chain = false;
    bool has_target = false;  // without a verb that is known
    std::string kept;
    const std::vector<std::string_view> words = split(line, " ");
    for (std::size_t i = words.front() == "-t" ? 0 : 1; i < words.size(); ++i) {
      const std::string_view word = words[i];
      const bool has_next = i + 1 < words.size();
      if ((word == "-t" || word == "--table") && has_next) {
        table = table_named(words[++i]);
        names_table = true;
      } else if (word.starts_with("--table=") || (word.starts_with("-t") && word.size() > 2)) {
        table = table_named(word.substr(word.starts_with("--") ? 8 : 2));
        names_table = true;
      } else if (verb == nullptr && (word == "-w" || word == "--wait") && has_next) {
        if (to_number<unsigned>(words[i + 1])) ++i;
      } else if (verb == nullptr && verb_of(word) != nullptr) {
        verb = verb_of(word);
        kept = word;
      } else if (verb != nullptr) {
        kept += fmt::format(" {}", word);
      } else {
        has_target |= word == "-j" || word == "-g" || word == "--jump" || word == "--goto";
        const bool letters = word.starts_with('-') && !word.starts_with("--");
        const bool lists_here =
            word.starts_with("--list") || (letters && word.find_first_of("SL") != std::string_view::npos);
        of_chain |= lists_here && has_next && !words[i + 1].starts_with('-');
        lists |= lists_here;
      }
    }
    const bool of_all_chains = verb != nullptr && (verb->kind == Kind::flush || verb->kind == Kind::remove_chain);
    if (verb != nullptr && names_table && !table) {
      note(fmt::format("'{}' is of a table that is not known", excerpt(line)));
    } else if (verb != nullptr && !is_comment && (of_all_chains || kept.find(' ') != std::string::npos)) {
      if (!script_.sections.empty() && !script_.sections.back().of_commands)
        note(fmt::format("'{}' is taken for a command that was run after what is above", excerpt(line)));
      add(commands(program, table.value_or(Table::filter)), *verb, kept, {});
    } else if (verb == nullptr && !is_comment && has_target) {
      note(fmt::format("'{}' is no rule of iptables", excerpt(line)));
    } else if (verb == nullptr && (!is_comment || lists || program.lists_all)) {
      const bool of_both = is_next_command_ && context_.family != program.family;  // iptables-save; ip6tables-save
      context_ = {of_both ? std::nullopt : program.family, program.backend, table, {}};
      if (lists && !names_table && !program.lists_all) context_.table = Table::filter;
      context_.of_chain = of_chain;
      if (text.find("(nf_tables)") != std::string_view::npos) {
        context_.backend = BackendKind::iptables_nft;
      } else if (!context_.backend && words.size() > 1 && is_version_of_legacy(words[1])) {
        context_.backend = BackendKind::iptables_legacy;
      }
      ++listing_;
      in_table_ = in_listing_ = false;
      const bool restores = words.front().find("-restore") != std::string_view::npos;
      if (!is_comment && restores && (is_next_command_ || text.find('<') != std::string_view::npos))
        note(fmt::format("what '{}' loads is not read: give that file, too", excerpt(line)));
    }
    const auto next = text.find_first_not_of(";&|> ", end);
    if (is_comment || next == std::string_view::npos) return {};
    return text.substr(next);
  }

  Section& open(std::optional<Table> table) {
    Section& section = script_.sections.emplace_back();
    section.source = fmt::format("{}:{}", excerpt(text_.name), number_);
    section.listing = listing_;
    section.backend = context_.backend;
    section.family = context_.family;
    section.of_chain = context_.of_chain;
    section.table = table;
    return section;
  }

  // One that a listing has already begins the next listing.
  void begin(Table table) {
    if (context_.opened.insert(table).second) return;
    ++listing_;
    context_.family.reset();
    context_.opened = {table};
  }

  void open_table(Table table) {
    begin(table);
    open(table).end = Edge::missing;  // until COMMIT
    in_table_ = true;
    in_listing_ = false;
  }

  // -S prints the policies first.
  void open_listing(const Verb& verb, std::string_view chain) {
    if (in_listing_) {
      const auto& before = script_.sections.back().operations;
      const bool again = verb.kind == Kind::policy && std::ranges::any_of(before, [&](const ChainOperation& each) {
                           return (listed_chain_.empty() && each.kind != Kind::policy) || each.chain == chain;
                         });
      if (!again) return;
    }
    listed_chain_.clear();
    begin(context_.table.value_or(Table::other));
    Section& section = open(context_.table);
    section.is_listing = true;
    section.start = Edge::assumed;
    context_.table.reset();
    in_listing_ = true;
  }

  Section& commands(const Program& program, Table table) {
    in_table_ = in_listing_ = false;
    if (!script_.sections.empty()) {
      Section& last = script_.sections.back();
      if (last.of_commands && last.family == program.family && last.table == table && last.backend == program.backend)
        return last;
    }
    Section& section = open(table);
    section.family = program.family;
    section.backend = program.backend;
    section.of_commands = true;
    return section;
  }

  [[noreturn]] void refuse(std::string_view what, const char* hint) const {
    throw Error(ExitCode::usage, fmt::format("{}:{}: {}", excerpt(text_.name), number_, what), hint);
  }

  void note(const std::string& words) {
    script_.notes.push_back(fmt::format("{}:{}: {}", excerpt(text_.name), number_, words));
  }

  // What the last command or header says of the lines that follow.
  struct Context {
    std::optional<Family> family{};
    std::optional<BackendKind> backend{};
    std::optional<Table> table{};
    std::set<Table> opened{};
    bool of_chain = false;
  };

  const RulesText& text_;
  IptablesScript script_;
  Context context_;
  std::size_t number_ = 0;
  std::size_t last_statement_ = 0;  // its line
  bool is_at_width_ = false;        // the line ends where others do that are as long
  bool ends_text_ = false;          // the line has no end
  unsigned listing_ = 0;
  bool in_table_ = false;           // after *nat, before COMMIT
  bool in_listing_ = false;         // in the lines of -S or -L
  std::string listed_chain_;        // of -L
  std::string last_listed_;         // its line before, if that was a rule,
  std::size_t last_row_ = 0;        // and its number
  bool is_row_skipped_ = false;     // the last line that was skipped is a part of that row
  bool is_wrapped_ = false;         // by a mail or an editor, as rows before show
  bool is_next_command_ = false;    // of a line
  std::size_t branching_line_ = 0;  // the first; 0: there is none
  std::size_t skipped_ = 0;
};

}  // namespace

IptablesScript read_iptables_script(const RulesText& text) { return Reader(text).read(); }

}  // namespace sidetrack
