// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/discovery_words.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "model/scan.h"

namespace sidetrack {
namespace {

using Word = std::string_view;
using Words = std::span<const Word>;

struct NamedType {
  Word name;
  std::uint8_t number;
};
constexpr NamedType type_names[] = {
    {"destination-unreachable", 1},
    {"packet-too-big", 2},
    {"time-exceeded", 3},
    {"ttl-exceeded", 3},
    {"parameter-problem", 4},
    {"echo-request", 128},
    {"echo-reply", 129},
    {"mld-listener-query", 130},
    {"mld-listener-report", 131},
    {"mld-listener-done", 132},
    {"mld-listener-reduction", 132},
    {"nd-router-solicit", 133},
    {"router-solicitation", 133},
    {"nd-router-advert", 134},
    {"router-advertisement", 134},
    {"nd-neighbor-solicit", 135},
    {"neighbor-solicitation", 135},
    {"neighbour-solicitation", 135},
    {"nd-neighbor-advert", 136},
    {"neighbor-advertisement", 136},
    {"neighbour-advertisement", 136},
    {"nd-redirect", 137},
    {"redirect", 137},
    {"router-renumbering", 138},
    {"ind-neighbor-solicit", 141},
    {"ind-neighbor-advert", 142},
    {"mld2-listener-report", 143},
    {"no-route", 0},  // a code
};

std::optional<std::uint8_t> number(Word word) {
  const auto* found = std::ranges::find(type_names, word, &NamedType::name);
  if (found != std::end(type_names)) return found->number;
  return word.starts_with("0x") ? to_number<std::uint8_t>(word.substr(2), 16) : to_number<std::uint8_t>(word);
}

// 135, 133-137, nd-router-solicit-nd-redirect
Truth is_in(Word range, std::uint8_t value) {
  if (const auto one = number(range)) return known(*one == value);
  for (std::size_t at = range.find('-'); at != Word::npos; at = range.find('-', at + 1)) {
    const auto first = number(range.substr(0, at));
    const auto last = number(range.substr(at + 1));
    if (first && last) return known(*first <= value && value <= *last);
  }
  return Truth::unknown;
}

// { nd-neighbor-solicit, nd-neighbor-advert }
Truth is_in_list(Words items, std::uint8_t value) {
  Truth result = Truth::no;
  for (Word item : items) {
    if (item.ends_with(',')) item.remove_suffix(1);
    const Truth one = is_in(item, value);
    if (one == Truth::unknown) return one;
    if (one == Truth::yes) result = one;
  }
  return result;
}

Truth compared(std::uint8_t value, Word comparison, Word with) {
  const auto other = number(with);
  if (!other) return Truth::unknown;
  if (comparison == "<" || comparison == "lt") return known(value < *other);
  if (comparison == ">" || comparison == "gt") return known(value > *other);
  if (comparison == "<=") return known(value <= *other);
  if (comparison == ">=") return known(value >= *other);
  return Truth::unknown;
}

// -m icmp6 ! --icmpv6-type 135/0, -m hl --hl-eq 255
Truth of_iptables(Words words, std::uint8_t type) {
  if (words.size() > 2 && words[0] == "-m" && (words[1] == "icmp6" || words[1] == "icmpv6" || words[1] == "hl"))
    words = words.subspan(2);
  const bool negated = !words.empty() && words[0] == "!";
  if (negated) words = words.subspan(1);
  if (words.size() != 2) return Truth::unknown;
  Word option = words[0];
  const Word value = words[1];
  if (option == "--icmpv6-type") {
    const std::size_t slash = value.find('/');
    const auto asked = number(value.substr(0, slash));
    const auto code = slash != Word::npos ? number(value.substr(slash + 1)) : 0;
    return asked && code ? negated_if(negated, known(*asked == type && *code == 0)) : Truth::unknown;
  }
  constexpr Word hop_limit = "--hl-";
  if (!option.starts_with(hop_limit)) return Truth::unknown;
  option.remove_prefix(hop_limit.size());
  return negated_if(negated, option == "eq" ? is_in(value, 255) : compared(255, option, value));
}

// icmpv6 type != { 133, 134 }, ip6 hoplimit 255
Truth of_nft(Words words, std::uint8_t value) {
  const bool negated = words[0] == "!=";
  if (negated || words[0] == "==") words = words.subspan(1);
  if (words.size() == 1) return negated_if(negated, is_in(words[0], value));
  if (words.size() == 2 && !negated) return compared(value, words[0], words[1]);
  if (words.size() < 3 || words.front() != "{" || words.back() != "}") return Truth::unknown;
  return negated_if(negated, is_in_list(words.subspan(1, words.size() - 2), value));
}

}  // namespace

Truth truth_of_discovery(std::string_view words, std::uint8_t type) {
  const std::vector<Word> all = split_words(words);
  if (all.size() > 2 && all[0] == "icmpv6" && all[1] == "type") return of_nft(Words(all).subspan(2), type);
  if (all.size() > 2 && all[0] == "icmpv6" && all[1] == "code") return of_nft(Words(all).subspan(2), 0);
  if (all.size() > 2 && all[0] == "ip6" && all[1] == "hoplimit") return of_nft(Words(all).subspan(2), 255);
  return of_iptables(all, type);
}

}  // namespace sidetrack
