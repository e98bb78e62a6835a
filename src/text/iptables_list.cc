// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/iptables_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "model/address.h"
#include "model/scan.h"
#include "rule/match/tcp_flags.h"

namespace sidetrack {
namespace {

using Views = std::span<const std::string_view>;

bool is_address(std::string_view word) {
  if (word.starts_with('!')) word.remove_prefix(1);
  if (word == "anywhere" || word == "localhost" || word == "loopback/8" || AddressRange::parse(word)) return true;
  const auto slash = std::min(word.find('/'), word.size());  // 10.0.0.10/255.0.0.255
  return slash < word.size() && Address::parse(word.substr(0, slash)) && Address::parse(word.substr(slash + 1));
}

// "!127.0.0.1" with -d: "! -d 127.0.0.1"; nothing of what says any
std::string option(std::string_view name, std::string_view value, std::string_view loopback = {}) {
  if (value == "*" || value == "any" || value == "0.0.0.0/0" || value == "::/0" || value == "anywhere" ||
      value == "all" || value == "0")
    return "";
  const bool negated = value.starts_with('!');
  std::string_view of = value.substr(negated ? 1 : 0);
  if (of == "localhost") of = loopback;
  if (of == "loopback/8") of = "127.0.0.0/8";
  return fmt::format("{}{} {} ", negated ? "! " : "", name, of);
}

// How an extension prints its part of the line, and its words; {} stands for one word.
struct Printed {
  std::string_view listed;
  std::string_view words;
  bool of_target = false;
};
constexpr Printed printed[] = {
    {"owner UID match {}", "-m owner --uid-owner {} "},
    {"owner GID match {}", "-m owner --gid-owner {} "},
    {"! owner UID match {}", "-m owner ! --uid-owner {} "},
    {"! owner GID match {}", "-m owner ! --gid-owner {} "},
    {"owner socket exists", "-m owner --socket-exists "},
    {"multiport dports {}", "-m multiport --dports {} "},
    {"multiport sports {}", "-m multiport --sports {} "},
    {"multiport ports {}", "-m multiport --ports {} "},
    {"multiport dports !{}", "-m multiport ! --dports {} "},
    {"multiport sports !{}", "-m multiport ! --sports {} "},
    {"multiport ports !{}", "-m multiport ! --ports {} "},
    {"multiport dports ! {}", "-m multiport ! --dports {} "},
    {"multiport sports ! {}", "-m multiport ! --sports {} "},
    {"ADDRTYPE match", "-m addrtype "},
    {"src-type {}", "--src-type {} "},
    {"dst-type {}", "--dst-type {} "},
    {"src-type !{}", "! --src-type {} "},
    {"dst-type !{}", "! --dst-type {} "},
    {"limit-in", "--limit-iface-in "},
    {"limit-out", "--limit-iface-out "},
    {"source IP range {}", "-m iprange --src-range {} "},
    {"destination IP range {}", "-m iprange --dst-range {} "},
    {"source IP range ! {}", "-m iprange ! --src-range {} "},
    {"destination IP range ! {}", "-m iprange ! --dst-range {} "},
    {"! state {}", "-m state ! --state {} "},
    {"state {}", "-m state --state {} "},
    {"ctstate {}", "-m conntrack --ctstate {} "},
    {"! ctstate {}", "-m conntrack ! --ctstate {} "},
    {"mark match {}", "-m mark --mark {} "},
    {"mark match !{}", "-m mark ! --mark {} "},
    {"mark match ! {}", "-m mark ! --mark {} "},
    {"connmark match {}", "-m connmark --mark {} "},
    {"connmark match !{}", "-m connmark ! --mark {} "},
    {"connmark match ! {}", "-m connmark ! --mark {} "},
    {"redir ports {}", "--to-ports {}", true},
    {"MARK set {}", "--set-mark {}", true},
    {"MARK xset {}", "--set-xmark {}", true},
    {"CONNMARK set {}", "--set-mark {}", true},
    {"CONNMARK xset {}", "--set-xmark {}", true},
    {"CONNMARK save", "--save-mark", true},
    {"CONNMARK restore", "--restore-mark", true},
    {"CT zone {}", "--zone {}", true},
    {"CT notrack", "--notrack", true},
    {"NOTRACK", "", true},
    {"reject-with {}", "--reject-with {}", true},
    {"masq ports: {}", "--to-ports {}", true},
    {"random", "--random", true},
    {"random-fully", "--random-fully", true},
};

// How many words the part takes; 0 if they are other ones. Sets `value`.
std::size_t matches(const Printed& part, Views words, std::string_view& value) {
  const std::vector<std::string_view> expected = split(part.listed, " ");
  if (words.size() < expected.size()) return 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto hole = expected[i].find("{}");
    const std::string_view before = expected[i].substr(0, hole);
    const bool fits = hole == std::string_view::npos ? words[i] == before : words[i].starts_with(before);
    if (!fits) return 0;
    if (hole == std::string_view::npos) continue;
    value = words[i].substr(before.size());
    if (value.empty()) return 0;
  }
  // "!" is of another row.
  return value.starts_with('!') ? 0 : expected.size();
}

// dpt:80, spts:1024:65535, dpt:!53, flags:!0x17/0x02
std::string of_header(std::string_view word) {
  const auto colon = word.find(':');
  const std::string_view kind = word.substr(0, colon);
  if (kind == "flags" && colon != std::string_view::npos) {
    const std::string_view flags = word.substr(colon + 1);
    const bool negated = flags.starts_with('!');
    const std::string_view numbers = flags.substr(negated ? 1 : 0);
    if (numbers.size() != std::string_view("0x17/0x02").size()) return "";
    const auto mask = to_number<std::uint8_t>(numbers.substr(2, 2), 16);
    const auto set = to_number<std::uint8_t>(numbers.substr(7), 16);
    return mask && set ? TcpFlagsMatch{*mask, *set, negated}.to_iptables() + " " : "";
  }
  if (colon == std::string_view::npos || (kind != "dpt" && kind != "dpts" && kind != "spt" && kind != "spts"))
    return "";
  return option(kind[0] == 'd' ? "--dport" : "--sport", word.substr(colon + 1));
}

// Targets that do something else with other options.
constexpr std::string_view with_options[] = {"REDIRECT", "DNAT", "SNAT",     "MASQUERADE",
                                             "TPROXY",   "MARK", "CONNMARK", "CT"};

// What follows the destination.
void read_end(Views words, std::string_view target, std::string& match, std::string& target_words) {
  while (!words.empty()) {
    std::string_view value;
    std::size_t used = 0;
    if (words[0] == "/*") {
      const auto end = std::ranges::find(words, "*/");
      used = static_cast<std::size_t>(end - words.begin()) + (end != words.end() ? 1 : 0);
      match += "-m comment --comment \"";
      for (const char c : fmt::format("{}", fmt::join(words.begin() + 1, end, " "))) {
        if (c == '"' || c == '\\') match += '\\';
        match += c;
      }
      match += "\" ";
    } else if (words[0] == "tcp" || words[0] == "udp") {  // -m tcp; what it asks for follows, if anything
      used = 1;
    } else if (const std::string listed = of_header(words[0]); !listed.empty()) {
      match += listed;
      used = 1;
    } else if (words[0] == "[goto]") {
      used = 1;  // asked before
    } else if (words[0].starts_with("to:") && (target == "DNAT" || target == "SNAT")) {
      target_words += fmt::format(" {} {}", target == "DNAT" ? "--to-destination" : "--to-source", words[0].substr(3));
      used = 1;
    } else if (words[0] == "TPROXY" && words.size() > 4 && words[1] == "redirect" && words[3] == "mark") {
      const auto colon = words[2].rfind(':');
      target_words += fmt::format(" --on-port {} --on-ip {} --tproxy-mark {}", words[2].substr(colon + 1),
                                  words[2].substr(0, std::min(colon, words[2].size())), words[4]);
      used = 5;
    } else {
      for (const Printed& part : printed) {
        used = matches(part, words, value);
        if (used == 0) continue;
        const std::string made = fmt::format(fmt::runtime(part.words), value);
        if (part.of_target) {
          target_words += " " + made;
        } else {
          match += made;
        }
        break;
      }
    }
    if (used == 0) {  // for an unknown match; the options of the target are not known either then
      const std::string unknown = fmt::format("[{}]", fmt::join(words, " "));
      match += fmt::format("-m {} ", unknown);
      if (std::ranges::find(with_options, target) != std::end(with_options)) target_words += " " + unknown;
      return;
    }
    words = words.subspan(used);
  }
}

}  // namespace

std::optional<std::uint64_t> read_count(std::string_view word) {
  constexpr std::string_view suffixes = "KMGT";
  std::uint64_t factor = 1;
  if (const auto suffix = word.empty() ? std::string_view::npos : suffixes.find(word.back());
      suffix != std::string_view::npos) {
    for (std::size_t i = 0; i <= suffix; ++i) factor *= 1000;
    word.remove_suffix(1);
  }
  const auto number = to_number<std::uint64_t>(word);
  if (!number || *number > UINT64_MAX / factor) return {};
  return *number * factor;
}

bool begins_extension(std::string_view line) {
  const std::string_view first = line.substr(0, line.find(' '));
  if (first == "tcp" || first == "udp" || first == "/*" || !of_header(first).empty()) return true;
  return std::ranges::any_of(
      printed, [&](const Printed& part) { return part.listed.substr(0, part.listed.find(' ')) == first; });
}

std::optional<ListedRule> read_listed_rule(std::string_view line) {
  const std::vector<std::string_view> all = split(line, " ");
  const Views words(all);
  if (words.size() < 7) return {};
  const auto packets = read_count(words[0]), bytes = read_count(words[1]);
  if (!packets || !bytes) return {};
  std::size_t source = 5;
  while (source + 1 < words.size() && !(is_address(words[source]) && is_address(words[source + 1]))) ++source;
  if (source + 1 >= words.size() || source > 7) return {};
  // TARGET PROTOCOL OPTIONS, of which ip6tables prints no options and some rules have no target.
  Views before = words.subspan(2, source - 4);
  const bool fragments = !before.empty() && (before.back() == "-f" || before.back() == "!f");
  const bool has_options = before.size() > 1 && (before.back() == "--" || fragments);
  if (has_options) before = before.first(before.size() - 1);
  if (before.empty() || before.size() > 2) return {};
  const std::string_view target = before.size() == 2 ? before[0] : "";
  ListedRule rule;
  const bool is_ipv6 =
      words[source].find(':') != std::string_view::npos || (!has_options && words[source] == "anywhere");
  rule.family = is_ipv6 ? Family::ipv6 : Family::ipv4;
  const std::string_view loopback = has_options ? "127.0.0.1" : "::1";
  rule.counters = {*packets, *bytes};
  std::string& match = rule.words;
  match = option("-s", words[source], loopback) + option("-d", words[source + 1], loopback) +
          option("-i", words[source - 2]) + option("-o", words[source - 1]) + option("-p", before.back());
  if (fragments) match += "-m [fragments] ";
  std::string target_words;
  const Views end = words.subspan(source + 2);
  if (std::ranges::count(end, "*/") > 1) match += "-m [comment] ";  // where it ends is not known
  read_end(end, target, match, target_words);
  if (!target.empty()) {
    const bool is_goto = std::ranges::find(end, "[goto]") != end.end();
    match += fmt::format("{} {}{}", is_goto ? "-g" : "-j", target, target_words);
  }
  return rule;
}

}  // namespace sidetrack
