// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/refused_words.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "model/printable.h"
#include "model/range.h"
#include "rule/match.h"
#include "rule/words.h"
#include "text/services.h"

namespace sidetrack {
namespace {

// An option as a rule has it.
struct Use {
  std::string_view value;
  std::string_view module = {};  // after which -m or -j
  bool negated = false;
};

// Returns what is expected instead of the value; nullptr: the value is right, as far as is known.
using Fault = const char* (*)(const Use& use);

bool is_number(std::string_view text) { return !text.empty() && text.front() >= '0' && text.front() <= '9'; }

const char* fault_of_range(std::string_view value) {
  const std::string ports = with_port_numbers(value);
  const auto colon = ports.find(':');
  const std::string first = ports.substr(0, colon);
  const std::string last = colon == std::string::npos ? first : ports.substr(colon + 1);
  if (!is_number(first) || !is_number(last)) return nullptr;
  if (!read_number<std::uint16_t>(first) || !read_number<std::uint16_t>(last)) return "ports of 0 to 65535";
  return read_ranges<std::uint16_t>(ports, ':') ? nullptr : "the lowest port first";
}

const char* fault_of_ports(const Use& use) {
  constexpr std::ptrdiff_t most_ports = 15;  // XT_MULTI_PORTS
  if (std::ranges::count(use.value, ',') + std::ranges::count(use.value, ':') >= most_ports)
    return "15 ports at most, of which a range takes two";
  for (const std::string_view one : split_at_each(use.value, ',')) {
    if (const char* fault = fault_of_range(one)) return fault;
  }
  return nullptr;
}

const char* fault_of_port(const Use& use) {
  if (use.module == "multiport") return fault_of_ports(use);  // --dport for --dports
  if (use.value.find(',') != std::string_view::npos) return "one port or range, or -m multiport";
  return fault_of_range(use.value);
}

// Names of hosts are not looked up.
const char* fault_of_addresses(const Use& use) {
  for (const std::string_view one : split_at_each(use.value, ',')) {
    const auto slash = one.find('/');
    const std::string_view address = one.substr(0, slash);
    const bool is_ipv4 = address.find_first_not_of("0123456789.") == std::string_view::npos;
    if (!is_ipv4 && address.find(':') == std::string_view::npos) continue;
    if (is_ipv4) {
      const auto parts = split_at_each(address, '.');
      if (parts.size() > 4 || std::ranges::any_of(parts, [](auto part) { return !read_number<std::uint8_t>(part); }))
        return "an address";
    } else if (!Address::parse(address)) {
      return "an address";
    }
    const std::string_view length = slash == std::string_view::npos ? "" : one.substr(slash + 1);
    const auto bits = read_number<std::uint32_t>(length);
    if (bits && *bits > (is_ipv4 ? 32U : 128U)) return is_ipv4 ? "a prefix of 0 to 32" : "a prefix of 0 to 128";
  }
  return use.negated && use.value.find(',') != std::string_view::npos ? "one address behind !" : nullptr;
}

const char* fault_of_protocol(const Use& use) {
  return is_number(use.value) && !read_number<std::uint8_t>(use.value) ? "the name of a protocol, or 0 to 255"
                                                                       : nullptr;
}

const char* fault_of_mark(const Use& use) {
  return is_number(use.value) && !read_masked(use.value) ? "MARK or MARK/MASK, of 32 bits" : nullptr;
}

const char* fault_of_new_ports(const Use& use) {
  const std::string_view value = use.value;
  const bool is_wrong =
      is_number(value) && value.find('/') == std::string_view::npos && !read_ranges<std::uint16_t>(value, '-');
  return is_wrong ? "a port of 0 to 65535, or FIRST-LAST" : nullptr;
}

const char* fault_of_destination(const Use& use) {
  const std::string_view value = use.value;
  if (value.starts_with('[') || std::ranges::count(value, ':') > 1) return nullptr;  // IPv6
  const auto colon = value.find(':');
  const std::string_view address = value.substr(0, value.find_first_of(":-"));
  if (const char* fault = address.empty() ? nullptr : fault_of_addresses({address})) return fault;
  return colon == std::string_view::npos ? nullptr : fault_of_new_ports({value.substr(colon + 1)});
}

struct Option {
  std::string_view name;
  Fault fault;
  bool of_ports = false;  // needs a protocol that has them
};
constexpr Option options[] = {
    {"--sport", fault_of_port, true},
    {"--dport", fault_of_port, true},
    {"--sports", fault_of_ports, true},
    {"--dports", fault_of_ports, true},
    {"--ports", fault_of_ports, true},
    {"-s", fault_of_addresses},
    {"-d", fault_of_addresses},
    {"-p", fault_of_protocol},
    {"--mark", fault_of_mark},
    {"--to-ports", fault_of_new_ports},
    {"--to-destination", fault_of_destination},
};

// Lists targets that need an option, with one that they take.
constexpr std::pair<std::string_view, std::string_view> needs[] = {
    {"DNAT", "--to-destination"}, {"SNAT", "--to-source"}, {"MARK", "--set-xmark"},
    {"CONNMARK", "--save-mark"},  {"TPROXY", "--on-port"}, {"NETMAP", "--to"},
};

bool is_of_script(std::string_view word) { return word.find('$') != std::string_view::npos; }

bool has_ports(std::string_view protocol) {
  constexpr std::uint8_t all[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE};
  const auto match = ProtocolMatch::from_iptables({{}, "-p", protocol});
  return match &&
         std::ranges::find(all, static_cast<std::uint8_t>(std::get<ProtocolMatch>(*match).protocol)) != std::end(all);
}

}  // namespace

bool takes_text(std::string_view option) { return option == "--comment" || option == "--log-prefix"; }

std::string why_refused(std::span<const std::string> words) {
  std::vector<std::string_view> met;  // of the whole rule, and of the module
  std::string_view module, protocol, first_of_ports;
  bool is_other_protocol = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view value = i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    if (takes_text(word)) {
      ++i;
    } else if (word == "-m" || word == "-j" || word == "-g") {
      module = value;
      std::erase_if(met, [](std::string_view option) { return option.starts_with("--"); });
      const auto* need = std::ranges::find(needs, module, &std::pair<std::string_view, std::string_view>::first);
      if (word == "-j" && need != std::end(needs) && i + 2 == words.size())
        return fmt::format("'-j {}': expected an option, as {}", need->first, need->second);
      ++i;
    }
    const auto* option = std::ranges::find(options, word, &Option::name);
    if (option == std::end(options)) continue;
    const bool is_negated = i > 0 && words[i - 1] == "!";
    const std::string said = fmt::format("'{}{} {}'", exclamation(is_negated), word, printable(value));
    if (value.empty() || value == "!") continue;  // ! 80, as before iptables 1.4.3
    if (std::ranges::find(met, word) != met.end()) return said + ": expected the option once";
    met.push_back(word);
    if (const char* fault = option->fault({value, module, is_negated}))
      return fmt::format("{}: expected {}", said, fault);
    if (word == "-p") {
      protocol = value;
      is_other_protocol = is_negated;
    }
    if (option->of_ports && first_of_ports.empty()) first_of_ports = word;
    ++i;
  }
  const bool is_known = std::ranges::none_of(words, is_of_script);
  if (!first_of_ports.empty() && is_known && (is_other_protocol || !has_ports(protocol)))
    return fmt::format("'{}': expected a protocol that has ports, as -p tcp", first_of_ports);
  return "";
}

}  // namespace sidetrack
