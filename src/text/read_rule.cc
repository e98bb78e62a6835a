// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/read_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/printable.h"
#include "text/services.h"

namespace sidetrack {
namespace {

using Words = std::vector<std::string>;

// As iptables-save writes them: a word with spaces stands in quotes, with \ before quotes and backslashes.
Words split(std::string_view text) {
  Words words;
  bool quoted = false;
  bool open = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '\\' && quoted && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  return words;
}

// What people and scripts write for the words of iptables-save.
using Alias = std::pair<std::string_view, std::string_view>;
constexpr Alias aliases[] = {
    {"--source", "-s"},
    {"--src", "-s"},
    {"--destination", "-d"},
    {"--dst", "-d"},
    {"--in-interface", "-i"},
    {"--out-interface", "-o"},
    {"--protocol", "-p"},
    {"--proto", "-p"},
    {"--match", "-m"},
    {"--jump", "-j"},
    {"--goto", "-g"},
    {"--source-port", "--sport"},
    {"--source-ports", "--sports"},
    {"--destination-port", "--dport"},
    {"--destination-ports", "--dports"},
    {"--to-port", "--to-ports"},
};

constexpr std::string_view port_options[] = {"--sport", "--dport", "--sports", "--dports", "--ports"};

constexpr std::string_view comment_option = "--comment";  // any word is its value

bool ends_match(std::string_view word) { return word == "-m" || word == "-j" || word == "-g"; }

std::size_t count_of_values(std::string_view option) {
  if (option == "--socket-exists" || option == "--syn" || read_limit(option)) return 0;
  return option == "--tcp-flags" ? 2 : 1;
}

// Whether there are types of addresses, which the option limits to an interface.
bool limits_types(std::span<Match> matches, InterfaceDirection limit) {
  bool found = false;
  for (Match& match : matches) {
    auto* types = std::get_if<AddressTypeMatch>(&match);
    if (types != nullptr) types->limit = limit;
    found = found || types != nullptr;
  }
  return found;
}

// Those before the target. Of a match that is not understood all words up to the next one.
std::vector<Match> matches(std::span<const std::string> words, std::size_t& i) {
  std::vector<Match> result;
  std::string_view module;
  std::size_t of_module = 0;  // where its words begin,
  std::size_t before = 0;     // and how many matches there were
  while (i < words.size() && words[i] != "-j" && words[i] != "-g") {
    std::size_t start = i;
    if (words[i] == "-m") {
      join_if_odd(result, before);
      of_module = i;
      before = result.size();
    }
    if (words[i] == "-m" && i + 1 < words.size() && !ends_match(words[i + 1])) {
      module = words[i + 1];
      i += 2;
      const bool bare = i == words.size() || ends_match(words[i]);
      if (bare && (module == "tcp" || module == "udp")) continue;  // -p says it
    }
    if (i + 1 < words.size() && words[i] == "-p" && (words[i + 1] == "all" || words[i + 1] == "0")) {
      i += 2;  // any
      continue;
    }
    const bool negated = i < words.size() && words[i] == "!";
    std::optional<Match> found;
    std::size_t next = i + (negated ? 1 : 0);
    if (next < words.size()) {
      const std::string& option = words[next++];
      // -d ! 10.0.0.0/8, as before iptables 1.4.3
      const bool late = option != comment_option && next < words.size() && words[next] == "!";
      if (late) ++next;
      if (const auto limit = read_limit(option); limit && limits_types(std::span(result).subspan(before), *limit)) {
        i = next;
        continue;
      }
      const std::size_t values = count_of_values(option);
      if (next + values <= words.size()) {
        const bool has_ports = std::ranges::find(port_options, option) != std::end(port_options);
        const std::string value =
            has_ports ? with_port_numbers(words[next]) : joined_words(words.subspan(next, values));
        found = read_match({module, option, value, negated != late});
      }
      next += values;
    }
    if (found) {
      result.push_back(*std::move(found));
      i = next;
      continue;
    }
    i = std::max(i, start + 1);
    while (i < words.size() && !ends_match(words[i])) ++i;
    if (module == "owner") {  // --suppl-groups changes what --gid-owner says
      start = of_module;
      result.resize(before);
    }
    result.emplace_back(UnknownMatch{joined_words(words.subspan(start, i - start))});
  }
  join_if_odd(result, before);
  return result;
}

// Makes -A OUTPUT -p tcp -j REDIRECT --to-ports 15001 of -A OUTPUT -j REDIRECT --to-ports 15001 -p tcp.
void put_target_last(Words& words) {
  const auto is_target = [](const std::string& word) { return word == "-j" || word == "-g"; };
  const auto target = std::ranges::find_if(words, is_target);
  const auto rest = std::find_if(target == words.end() ? target : target + 1, words.end(), [](const std::string& word) {
    return word == "!" || (word.size() == 2 && word[0] == '-' && word[1] != '-');
  });
  const bool is_first =
      rest != words.end() && target[-1] != comment_option && std::none_of(rest, words.end(), is_target);
  if (is_first) std::rotate(target, rest, words.end());
}

}  // namespace

std::vector<std::string> rule_words(std::string_view text) {
  Words all = split(text);
  for (std::size_t i = 2; i < all.size(); ++i) {
    const auto* alias = std::ranges::find(aliases, all[i], &Alias::first);
    if (alias != std::end(aliases) && all[i - 1] != comment_option) all[i] = alias->second;
    if (all[i] == "--to" && all[i - 1] == "REDIRECT") all[i] = "--to-ports";
    if (all[i] == "--to" && all[i - 1] == "DNAT") all[i] = "--to-destination";
  }
  put_target_last(all);
  return all;
}

Rule read_rule(std::string_view text) {
  const Words all = rule_words(text);
  std::span<const std::string> words(all);
  const auto refuse = [&] {
    throw Error(ExitCode::usage,
                fmt::format("'{}': expected a rule as iptables -S writes it: -A CHAIN …", excerpt(text)));
  };
  if (words.size() < 2 || (words[0] != "-A" && words[0] != "-I")) refuse();
  Rule rule;
  rule.chain = words[1];
  if (words[0] == "-I") {
    const auto place = words.size() > 2 ? read_number<unsigned>(words[2]) : std::nullopt;
    if (!place || *place == 0) refuse();
    rule.insert_at = place;
    words = words.subspan(1);
  }
  words = words.subspan(2);
  std::size_t target = 0;
  if (!words.empty() && !words[0].starts_with('-') && words[0] != "!") refuse();
  rule.matches = matches(words, target);
  const auto after = words.subspan(target);
  if (after.empty()) {
    rule.target = NonTerminating{};
  } else {
    rule.target = after.size() > 1 ? read_target(after) : Target(UnknownTarget{joined_words(after)});
  }
  return rule;
}

}  // namespace sidetrack
