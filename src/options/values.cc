// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"

namespace sidetrack::options {
namespace {

template <typename Value>
Value accepted(const std::optional<Value>& value, const Item& item, std::string_view expected) {
  if (!value) refuse(item, expected);
  return *value;
}

// No address, port or number without a ':' has a letter in it: this is a word, probably the name of a file.
bool is_word(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return text.find(':') == std::string_view::npos && std::ranges::any_of(text, letter);
}

// The classic accident: -b * without quotes becomes -b CMakeLists.txt src tests. Among the names of interfaces the name
// of a file is nothing special, and the shell splits no name at its blanks.
std::string hint_about_expansion(const Item& item) {
  const Flag& flag = item.given.flag;
  const bool from_shell = item.given.variable.empty() && item.file.empty();
  const bool names = flag.value == "NAMES";
  if (flag.kind != Kind::list || flag.group != Group::traffic || names || !from_shell || !is_word(item.text)) return {};
  const auto option = short_name(flag);
  if (flag.value.find('*') != std::string_view::npos) {
    return fmt::format("if the shell expanded a bare * to file names, quote it: {} '*'", option);
  }
  return fmt::format("if the shell expanded a bare * to file names: this option takes no *; {} '' is the empty list",
                     option);
}

// A leading 0 is octal to iptables and ip, decimal to others: refused.
template <typename T>
std::optional<T> decimal(std::string_view text) {
  return text.size() > 1 && text.front() == '0' ? std::nullopt : to_number<T>(text);
}

std::optional<std::uint32_t> decimal_or_hexadecimal(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) return to_number<std::uint32_t>(text.substr(2), 16);
  return decimal<std::uint32_t>(text);
}

struct Unit {
  std::string_view name;
  std::uint64_t nanoseconds;
};
constexpr Unit unit_table[] = {
    {"ns", 1},         {"us", 1'000},        {"µs", 1'000},         {"μs", 1'000},
    {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};

std::string_view take_while(std::string_view& text, bool (*wanted)(char)) {
  const auto end = std::ranges::find_if_not(text, wanted);
  const auto taken = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(taken.size());
  return taken;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_unit_character(char c) { return c != '.' && !is_digit(c); }

// "1m30s", "1.5h", "0"; nothing if it does not parse. What exceeds 2^63 - 1 nanoseconds (292 years) is that long.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return std::chrono::nanoseconds(0);
  if (text.empty()) return std::nullopt;
  std::uint64_t total = 0;
  while (!text.empty()) {
    const auto whole = take_while(text, is_digit);
    std::string_view fraction;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      fraction = take_while(text, is_digit);
    }
    if (whole.empty() && fraction.empty()) return std::nullopt;
    const auto unit = std::ranges::find(unit_table, take_while(text, is_unit_character), &Unit::name);
    if (unit == std::end(unit_table)) return std::nullopt;

    const auto count = whole.empty() ? std::uint64_t{0} : to_number<std::uint64_t>(whole);
    const bool fits = count && *count <= most / unit->nanoseconds;
    std::uint64_t part = fits ? *count * unit->nanoseconds : most;
    std::uint64_t weight = fits ? unit->nanoseconds : 0;
    for (const char digit : fraction) {
      weight /= 10;
      part += static_cast<std::uint64_t>(digit - '0') * weight;
    }
    total = part > most - total ? most : total + part;
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

// 1337, 0x111/0xfff
bool read_mark(std::string_view text, PolicyRule& rule) {
  const auto number = [](std::string_view digits) {
    return digits.starts_with("0x") ? to_number<std::uint32_t>(digits.substr(2), 16) : to_number<std::uint32_t>(digits);
  };
  const auto slash = std::min(text.find('/'), text.size());
  const auto mark_of = number(text.substr(0, slash));
  const auto mask = slash < text.size() ? number(text.substr(slash + 1)) : 0xffffffff;
  if (!mark_of || !mask) return false;
  rule.mark = *mark_of;
  rule.mask = *mask;
  return true;
}

std::optional<std::uint32_t> table_number(std::string_view word) {
  for (const std::uint32_t table : {local_table, main_table, default_table}) {
    if (word == table_name(table)) return table;
  }
  return to_number<std::uint32_t>(word);
}

// Lists what says nothing about where a packet goes: the word, and whether a value follows.
constexpr std::pair<std::string_view, bool> of_no_account[] = {
    {"proto", true},  {"scope", true},      {"pref", true},     {"mtu", true},         {"onlink", false},
    {"error", true},  {"expires", true},    {"advmss", true},   {"hoplimit", true},    {"linkdown", false},
    {"dead", false},  {"pervasive", false}, {"offload", false}, {"rt_offload", false}, {"rt_trap", false},
    {"weight", true}, {"nhid", true}};

bool read_route(std::span<const std::string_view> words, Route& route, std::optional<std::uint32_t>& metric,
                bool& dead) {
  constexpr std::string_view kinds[] = {"unicast", "local", "blackhole", "unreachable", "prohibit", "throw"};
  const auto* kind = std::ranges::find(kinds, words[0]);
  if (kind != std::end(kinds)) {
    route.kind = static_cast<Route::Kind>(kind - kinds);
    words = words.subspan(1);
  }
  if (words.empty()) return false;
  const std::string_view to = words[0];
  std::size_t hops = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto* ignored = std::ranges::find(of_no_account, words[i], &std::pair<std::string_view, bool>::first);
    const bool is_ignored = ignored != std::end(of_no_account);
    dead = dead || words[i] == "dead";
    if (is_ignored && !ignored->second) continue;
    if (i + 1 == words.size()) return false;
    if (words[i] == "nexthop" && ++i + 1 == words.size()) return false;
    hops += words[i - 1] == "nexthop" ? 1 : 0;
    const std::string_view option = words[i], given = words[++i];
    if (option == "dev" && hops > 1) {
      route.other_devices.emplace_back(given);
    } else if (option == "dev") {
      route.device = given;
    } else if (option == "via" && hops > 1 && Address::parse(given)) {
    } else if (option == "via" && (route.gateway = Address::parse(given))) {
    } else if (option == "src" && (route.source = Address::parse(given))) {
    } else if (option == "metric" && (metric = to_number<std::uint32_t>(given))) {
    } else if (const auto table = option == "table" ? table_number(given) : std::nullopt) {
      route.table = *table;
    } else if (!is_ignored) {
      return false;
    }
  }
  const auto beside = route.gateway ? route.gateway : route.source;
  const auto range = to == "default" ? AddressRange::prefix(Address::any(beside ? beside->family : Family::ipv4), 0)
                                     : AddressRange::parse(to);
  if (!range) return false;
  route.to = *range;
  const auto fits = [&](const auto& address) { return !address || address->family == range->family(); };
  return fits(route.gateway) && fits(route.source);
}

// 32765:	from all fwmark 0x539 lookup 133
std::optional<PolicyRule> read_policy_rule(std::span<const std::string_view> words) {
  PolicyRule rule;
  if (words.empty() || !words[0].ends_with(':')) return {};
  rule.priority = to_number<std::uint32_t>(words[0].substr(0, words[0].size() - 1));
  words = words.subspan(1);
  if (!rule.priority) return {};
  if (!words.empty() && words[0] == "not") {
    rule.inverted = true;
    words = words.subspan(1);
  }
  bool has_action = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    constexpr std::string_view refusals[] = {"blackhole", "unreachable", "prohibit"};
    const auto* refusal = std::ranges::find(refusals, words[i]);
    if (refusal != std::end(refusals)) {
      rule.action = static_cast<PolicyRule::Action>(1 + (refusal - refusals));
      has_action = true;
      continue;
    }
    if (i + 1 == words.size()) return {};
    const std::string_view option = words[i], given = words[++i];
    std::optional<AddressRange>* const range = option == "from" ? &rule.from : option == "to" ? &rule.to : nullptr;
    if (range != nullptr) {
      if (given != "all" && !(*range = AddressRange::parse(given))) return {};
    } else if (option == "fwmark") {
      if (!read_mark(given, rule)) return {};
    } else if (option == "iif" || option == "oif") {
      (option == "iif" ? rule.in : rule.out) = given;
    } else if (option == "suppress_prefixlength") {
      if (!(rule.suppressed = to_number<int>(given))) return {};
    } else if (option == "lookup" || option == "table") {
      const auto table = table_number(given);
      if (!table) return {};
      rule.table = *table;
      has_action = true;
    } else if (option != "proto") {
      rule.more += fmt::format("{}{} {}", rule.more.empty() ? "" : " ", option, given);
    }
  }
  return has_action ? std::optional(rule) : std::nullopt;
}

void route_line(const Item& item, GivenPod& pod) {
  const auto words = split_words(item.text);
  if (auto rule = read_policy_rule(words)) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const auto fits = [&](const auto& range) { return !range || range->family() == family; };
      rule->family = family;
      if (fits(rule->from) && fits(rule->to)) pod.policy_rules.push_back(*rule);
    }
    return;
  }
  if (words.size() == 4 && words[0] == "fwmark" && (words[2] == "lookup" || words[2] == "table")) {
    const auto table = table_number(words[3]);
    PolicyRule rule;
    if (table && read_mark(words[1], rule)) {
      for (const Family family : {Family::ipv4, Family::ipv6})
        pod.policy_rules.push_back(fwmark_rule(family, rule.mark, *table, rule.mask));
      return;
    }
  }
  Route made;
  std::optional<std::uint32_t> metric;
  bool dead = false;  // its interface is down: the kernel passes it by
  const bool leads_nowhere = !words.empty() && (words[0] == "blackhole" || words[0] == "unreachable" ||
                                                words[0] == "prohibit" || words[0] == "throw");
  if (!leads_nowhere) made.device = usual_interface;
  if (words.empty() || !read_route(words, made, metric, dead))
    refuse(item, "a route or a policy rule as ip prints it",
           "for example 'default via 10.244.1.1 dev eth0', 'local default dev lo table 133', 'fwmark 1337 lookup 133'");
  if (dead) return;
  constexpr std::uint32_t usual_of_ipv6 = 1024;  // IP6_RT_PRIO_USER
  const std::uint32_t of = metric.value_or(made.family() == Family::ipv6 ? usual_of_ipv6 : 0);
  const auto place = std::ranges::upper_bound(pod.metrics, of);
  pod.routes.insert(pod.routes.begin() + (place - pod.metrics.begin()), std::move(made));
  pod.metrics.insert(place, of);
}

}  // namespace

std::string name_of(const Given& given) {
  return given.variable.empty() ? spelled(given.flag) : std::string(given.variable);
}

void refuse(const Item& item, std::string_view expected, std::string hint) {
  const std::string where = item.file.empty() ? "" : fmt::format(" {}, line {}:", excerpt(item.file), item.line);
  const std::string value = item.text.empty() ? "no value" : fmt::format("'{}'", excerpt(item.text));
  if (hint.empty()) hint = hint_about_expansion(item);
  throw Error(ExitCode::usage, fmt::format("{}:{} {}: expected {}", name_of(item.given), where, value, expected),
              std::move(hint));
}

std::optional<bool> to_boolean(std::string_view text) {
  static constexpr std::string_view yes[] = {"1", "t", "T", "true", "TRUE", "True"};
  static constexpr std::string_view no[] = {"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(yes, text) != std::end(yes)) return true;
  return std::ranges::find(no, text) != std::end(no) ? std::optional(false) : std::nullopt;
}

bool boolean(const Item& item) { return accepted(to_boolean(item.text), item, "true or false"); }

std::uint16_t port(const Item& item) {
  const auto value = decimal<std::uint16_t>(item.text);
  if (!value || *value == 0) refuse(item, "a port from 1 to 65535");
  return *value;
}

PortRange port_range(const Item& item) {
  // By a dash, as nft writes it; by a colon, as iptables does, to say how it is written here.
  const auto range_of = [&](char sign) -> std::optional<PortRange> {
    const auto at = item.text.find(sign);
    const auto first = decimal<std::uint16_t>(item.text.substr(0, at));
    const auto last = at == std::string_view::npos ? first : decimal<std::uint16_t>(item.text.substr(at + 1));
    return first && last && *first != 0 && *last != 0 ? std::optional(PortRange{*first, *last}) : std::nullopt;
  };
  const auto range = range_of('-');
  if (!range) {
    std::string hint;
    if (const auto by_colon = range_of(':')) {
      const auto& [first, last] = *by_colon;
      hint = first <= last ? fmt::format("write the range with a dash: {}-{}", first, last)
                           : fmt::format("write two ports with a comma: {},{}", first, last);
    }
    refuse(item, "a port from 1 to 65535, or a range such as 9000-9100", std::move(hint));
  }
  if (range->first > range->last) {
    refuse(item, "the lower port of a range first", fmt::format("write {}-{}", range->last, range->first));
  }
  return *range;
}

std::uint32_t mark(const Item& item) {
  const auto value = decimal_or_hexadecimal(item.text);
  // Every packet starts with mark 0: rules for it would match them all.
  if (!value || *value == 0) refuse(item, "a mark from 1 to 4294967295, decimal or 0x...");
  return *value;
}

std::uint32_t route_table(const Item& item) {
  const auto value = decimal_or_hexadecimal(item.text);
  // RT_TABLE_UNSPEC is 0. In the kernel's own tables default, main and local (253 to 255, linux/rtnetlink.h) the local
  // default route would take all traffic, not only what is marked.
  const bool own = value && *value >= 253 && *value <= 255;
  if (!value || *value == 0 || own) {
    refuse(item,
           "a routing table from 1 to 4294967295, decimal or 0x..., other than 253 to 255 (default, main, local)");
  }
  return *value;
}

std::uint32_t id(const Item& item) {
  const auto value = decimal<std::uint32_t>(item.text);
  // The kernel takes (uid_t)-1 for no id at all.
  if (!value || *value == std::numeric_limits<std::uint32_t>::max()) {
    refuse(item, "a number from 0 to 4294967294", is_word(item.text) ? "give the number: id NAME prints it" : "");
  }
  return *value;
}

IdRange id_range(const Item& item) {
  constexpr std::string_view expected = "a number from 0 to 4294967294, or a range such as 1000-1999";
  const auto dash = item.text.find('-');
  const auto first = decimal<std::uint32_t>(item.text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : decimal<std::uint32_t>(item.text.substr(dash + 1));
  if (!first || !last || std::max(*first, *last) == std::numeric_limits<std::uint32_t>::max()) {
    refuse(item, expected, is_word(item.text) ? "give the number: id NAME prints it" : "");
  }
  if (*first > *last) refuse(item, "the lower id of a range first", fmt::format("write {}-{}", *last, *first));
  return {*first, *last};
}

std::uint32_t process_id(const Item& item) {
  const auto value = decimal<std::int32_t>(item.text);
  if (!value || *value < 1) refuse(item, "a process id");
  return static_cast<std::uint32_t>(*value);
}

Address address(const Item& item) { return accepted(Address::parse(item.text), item, "an IPv4 or IPv6 address"); }

AddressRange range(const Item& item) {
  return accepted(AddressRange::parse(item.text), item, "an address range such as 10.0.0.0/8 or fd00::/8");
}

GivenPod::Own own_address(const Item& item) {
  const auto percent = std::min(item.text.find('%'), item.text.size());
  const auto slash = std::min(item.text.find('/'), percent);
  const auto own = Address::parse(item.text.substr(0, slash));
  const auto length = own && slash < percent ? to_number<int>(item.text.substr(slash + 1, percent - slash - 1))
                                             : std::optional(own ? own->bits() : 0);
  if (!own || !length || *length < 1 || *length > own->bits())
    refuse(item, "an address of the pod, such as 10.244.1.7/24 or 10.244.1.7/24%eth0");
  GivenPod::Own made{usual_interface, {*own, *length}};
  if (percent < item.text.size()) {
    Item name = item;
    name.text = item.text.substr(percent + 1);
    made.interface = interface(name);
  }
  return made;
}

void route(const Item& item, GivenPod& pod) {
  if (item.text.empty()) route_line(item, pod);
  std::vector<std::string> lines;
  for (const std::string_view line : split(item.text, "\n")) {
    const bool goes_on = !lines.empty() && std::isspace(static_cast<unsigned char>(line[0])) != 0;  // \tnexthop via …
    if (goes_on) {
      lines.back() += line;
    } else if (line.find("ip route") == std::string_view::npos && line.find("ip rule") == std::string_view::npos) {
      lines.emplace_back(line);  // and no prompt
    }
  }
  for (const std::string& line : lines) route_line({item.given, line}, pod);
}

AddressRange loopback_prefix(const Item& item) {
  const auto value = AddressRange::parse(item.text);
  const auto loopback = AddressRange::prefix({Family::ipv4, {127}}, 8);
  if (!value || !loopback.contains(value->first) || !loopback.contains(value->last)) {
    refuse(item, "an IPv4 loopback prefix from 127.0.0.0/8 to 127.x.x.x/32");
  }
  return *value;
}

// What the kernel takes for a name (dev_valid_name in net/core/dev.c), as far as iptables, nft and every listing can
// say it: iptables-restore and nft read a '"' as the end of the name, nft a '*' as any further characters, unless a '\'
// is before it. An '@' would begin the name of a file.
std::string interface(const Item& item) {
  const auto bad = [](char c) {
    return c <= ' ' || c > '~' || std::string_view("/:\"*\\").find(c) != std::string::npos;
  };
  if (item.text == "+") {
    refuse(item, "the name of an interface, or a prefix followed by '+'", "'+' alone is every interface");
  }
  if (item.text.empty() || item.text.size() > 15 || item.text == "." || item.text == ".." ||
      item.text.starts_with('@') || std::ranges::any_of(item.text, bad)) {
    std::string hint;
    if (item.text.ends_with('*') && item.text.size() > 1) {
      hint = fmt::format("{}+ stands for every interface with that prefix",
                         excerpt(item.text.substr(0, item.text.size() - 1)));
    } else if (item.text.starts_with('@')) {
      hint = "@FILE stands alone: give the option once more for it";
    }
    refuse(item, "an interface name of 1 to 15 printable ASCII characters, no spaces and none of / : \" * \\",
           std::move(hint));
  }
  return std::string(item.text);
}

std::string cgroup(const Item& item) {
  // What xt_cgroup holds (XT_CGROUP_PATH_MAX), with its final zero.
  constexpr std::size_t longest = 511;
  std::string path = without_slashes(item.text);
  const auto bad = [](char c) { return c <= ' ' || c > '~' || c == '"' || c == '\\'; };
  bool odd = item.text.empty() || path.size() > longest || std::ranges::any_of(path, bad);
  for (const std::string_view name : split_at_each(path, '/'))
    odd = odd || (name.empty() && !path.empty()) || name == "." || name == "..";
  if (odd) {
    refuse(item,
           "the path of a cgroup, as kubepods/pod1, of at most 511 printable ASCII characters, no spaces, no \" or \\, "
           "no . or .. as a name");
  }
  return path;
}

std::string namespace_name(const Item& item) {
  const auto bad = [](char c) { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'; };
  constexpr std::size_t longest = 63;
  if (item.text.empty() || item.text.size() > longest || item.text.starts_with('-') || item.text.ends_with('-') ||
      std::ranges::any_of(item.text, bad)) {
    refuse(item, "the name of a Kubernetes namespace, of a-z, 0-9 and '-'");
  }
  return std::string(item.text);
}

std::chrono::nanoseconds duration(const Item& item) {
  return accepted(parse_duration(item.text), item, "a duration such as 5s, 500ms or 1m30s");
}

std::size_t choice(const Item& item, std::string_view choices) {
  const auto all = each_choice(choices);
  const auto found = std::ranges::find(all, item.text);
  if (found == all.end()) refuse(item, fmt::format("one of {}", choices));
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace sidetrack::options
