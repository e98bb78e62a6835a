// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/read_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"

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

template <typename Number>
std::optional<Number> number(std::string_view text) {
  return text.starts_with("0x") ? to_number<Number>(text.substr(2), 16) : to_number<Number>(text);
}

// Each item, or nothing if one of them is not understood.
template <typename Value, typename Read>
std::optional<std::vector<Value>> each(std::string_view list, const Read& read) {
  std::vector<Value> values;
  for (const std::string_view item : split_at_each(list, ',')) {
    const std::optional<Value> value = read(item);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

template <typename Number>
std::optional<std::vector<Range<Number>>> ranges(std::string_view list, char dash) {
  return each<Range<Number>>(list, [&](std::string_view item) -> std::optional<Range<Number>> {
    const auto at = item.find(dash);
    const auto first = number<Number>(item.substr(0, at));
    const auto last = at == std::string_view::npos ? first : number<Number>(item.substr(at + 1));
    if (!first || !last || *first > *last) return {};
    return Range<Number>{*first, *last};
  });
}

std::optional<AddressRange> address_range(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return AddressRange::parse(text);
  const auto first = Address::parse(text.substr(0, dash));
  const auto last = Address::parse(text.substr(dash + 1));
  if (!first || !last || first->family != last->family || *last < *first) return {};
  return AddressRange{*first, *last};
}

struct Masked {
  std::uint32_t value;
  std::uint32_t mask;
};
std::optional<Masked> masked(std::string_view text) {
  const auto slash = text.find('/');
  const auto value = number<std::uint32_t>(text.substr(0, slash));
  const auto mask = slash == std::string_view::npos ? 0xffffffffU : number<std::uint32_t>(text.substr(slash + 1));
  if (!value || !mask) return {};
  return Masked{*value, *mask};
}

std::optional<Protocol> protocol(std::string_view text) {
  for (const Protocol known : {Protocol::icmp, Protocol::tcp, Protocol::udp, Protocol::icmpv6}) {
    if (name(known) == text) return known;
  }
  const auto value = number<std::uint8_t>(text);
  if (!value) return {};
  return static_cast<Protocol>(*value);
}

std::optional<std::uint8_t> states(std::string_view list) {
  static constexpr std::pair<std::string_view, std::uint8_t> names[] = {
      {"INVALID", ConntrackStateMatch::invalid},     {"NEW", ConntrackStateMatch::new_},
      {"RELATED", ConntrackStateMatch::related},     {"ESTABLISHED", ConntrackStateMatch::established},
      {"UNTRACKED", ConntrackStateMatch::untracked},
  };
  std::uint8_t bits = 0;
  for (const std::string_view item : split_at_each(list, ',')) {
    const auto* found = std::ranges::find(names, item, &std::pair<std::string_view, std::uint8_t>::first);
    if (found == std::end(names)) return {};
    bits |= found->second;
  }
  return bits;
}

// One option of a match and its value.
std::optional<Match> match(std::string_view module, std::string_view option, std::string_view value, bool negated) {
  if (option == "-i" || option == "-o") {
    return InterfaceMatch{option == "-i" ? InterfaceDirection::in : InterfaceDirection::out, std::string(value),
                          negated};
  }
  if (option == "-s" || option == "-d") {
    auto all = each<AddressRange>(value, address_range);
    if (!all || std::ranges::any_of(*all, [&](const auto& one) { return one.family() != all->front().family(); }))
      return {};
    return AddressMatch{option == "-s" ? End::source : End::destination, *std::move(all), negated};
  }
  if (option == "-p") {
    const auto known = protocol(value);
    if (known) return ProtocolMatch{*known, negated};
  }
  if (option == "--sport" || option == "--dport" || option == "--sports" || option == "--dports") {
    auto ports = ranges<std::uint16_t>(value, ':');
    if (ports) return PortMatch{option[2] == 's' ? End::source : End::destination, *std::move(ports), negated};
  }
  if (option == "--uid-owner" || option == "--gid-owner") {
    auto ids = ranges<std::uint32_t>(value, '-');
    if (ids) return OwnerMatch{option == "--uid-owner" ? OwnerKind::uid : OwnerKind::gid, *std::move(ids), negated};
  }
  if (option == "--path" && module == "cgroup") return CgroupMatch{std::string(value), 0, negated};
  if (option == "--ctstate") {
    const auto bits = states(value);
    if (bits) return ConntrackStateMatch{*bits, negated};
  }
  if (option == "--ctdir" && !negated && (value == "REPLY" || value == "ORIGINAL"))
    return ConntrackDirectionMatch{value == "REPLY"};
  if (option == "--mark" && (module == "mark" || module == "connmark")) {
    const auto bits = masked(value);
    if (bits && module == "mark") return MarkMatch{bits->value, bits->mask, negated};
    if (bits) return ConnmarkMatch{bits->value, bits->mask, negated};
  }
  if (option == "--comment" && !negated) return CommentMatch{std::string(value)};
  return {};
}

std::string joined(std::span<const std::string> words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<Match> matches(std::span<const std::string> words) {
  static constexpr std::string_view modules[] = {"multiport", "owner",  "conntrack", "mark",
                                                 "connmark",  "cgroup", "comment"};
  std::vector<Match> result;
  std::string_view module;
  for (std::size_t i = 0; i < words.size();) {
    if (words[i] == "-m" && i + 1 < words.size() && std::ranges::find(modules, words[i + 1]) != std::end(modules)) {
      module = words[i + 1];
      i += 2;
      continue;
    }
    const bool negated = words[i] == "!";
    const std::size_t option = i + (negated ? 1 : 0);
    const auto found =
        option + 1 < words.size() ? match(module, words[option], words[option + 1], negated) : std::optional<Match>();
    if (!found) {  // where it ends is not known either
      result.emplace_back(UnknownMatch{joined(words.subspan(i))});
      return result;
    }
    result.push_back(*found);
    i = option + 2;
  }
  return result;
}

// What may stand after -j, with so many words after the name.
std::optional<Target> target_of(std::span<const std::string> words) {
  const std::string_view name = words[1];
  const auto options = words.subspan(2);
  const auto is = [&](std::size_t at, std::string_view option) { return at < options.size() && options[at] == option; };
  if (options.empty()) {
    if (name == "ACCEPT") return Verdict::accept;
    if (name == "DROP") return Verdict::drop;
    if (name == "RETURN") return Verdict::return_;
  }
  if (name == "REDIRECT" && options.size() == 2 && is(0, "--to-ports")) {
    const auto port = number<std::uint16_t>(options[1]);
    if (port) return Redirect{*port};
  }
  if (name == "TPROXY" && options.size() == 4 && is(0, "--tproxy-mark") && is(2, "--on-port")) {
    const auto bits = masked(options[1]);
    const auto port = number<std::uint16_t>(options[3]);
    if (bits && port) return Tproxy{*port, bits->value, bits->mask};
  }
  if ((name == "MARK" || name == "CONNMARK") && options.size() == 2 && (is(0, "--set-mark") || is(0, "--set-xmark"))) {
    const auto bits = masked(options[1]);
    if (bits && name == "MARK") return SetMark{bits->value, bits->mask};
    if (bits) return SetConnmark{bits->value, bits->mask};
  }
  if (name == "CONNMARK" && options.size() == 1 && (is(0, "--save-mark") || is(0, "--restore-mark")))
    return is(0, "--save-mark") ? Connmark::save : Connmark::restore;
  if (name == "CT" && options.size() == 2 && is(0, "--zone")) {
    const auto zone = number<std::uint16_t>(options[1]);
    if (zone) return CtZone{*zone};
  }
  if (name == "CT" && options.size() == 1 && is(0, "--notrack")) return Notrack{};
  if (name == "REJECT") return Reject{joined(words)};
  if (name == "LOG" || name == "NFLOG" || name == "TRACE") return NonTerminating{joined(words)};
  // A chain has no options. Extensions have names of capitals, too: whoever holds the chains decides.
  if (options.empty()) return Jump{std::string(name), words[0] == "-g"};
  return {};
}

}  // namespace

Rule read_rule(std::string_view text) {
  const Words all = split(text);
  std::span<const std::string> words(all);
  const auto refuse = [&] {
    throw Error(ExitCode::usage,
                fmt::format("'{}': expected a rule as iptables -S writes it: -A CHAIN …", excerpt(text)));
  };
  if (words.size() < 2 || (words[0] != "-A" && words[0] != "-I")) refuse();
  Rule rule;
  rule.chain = words[1];
  if (words[0] == "-I") {
    const auto place = words.size() > 2 ? number<unsigned>(words[2]) : std::nullopt;
    if (!place || *place == 0) refuse();
    rule.insert_at = place;
    words = words.subspan(1);
  }
  words = words.subspan(2);
  const auto target = std::ranges::find_if(words, [](const std::string& word) { return word == "-j" || word == "-g"; });
  const auto before = static_cast<std::size_t>(target - words.begin());
  if (before > 0 && !words[0].starts_with('-') && words[0] != "!") refuse();
  rule.matches = matches(words.first(before));
  if (target == words.end()) {
    rule.target = NonTerminating{};
  } else {
    const auto after = words.subspan(before);
    const auto known = after.size() > 1 ? target_of(after) : std::nullopt;
    rule.target = known ? *known : Target(UnknownTarget{joined(after)});
  }
  return rule;
}

}  // namespace sidetrack
