// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/destination.h"

#include "rule/words.h"

namespace sidetrack {
namespace {

std::optional<PortRange> read_ports(std::string_view text) {
  const auto ranges = read_ranges<std::uint16_t>(text, '-');
  return ranges && ranges->size() == 1 ? std::optional(ranges->front()) : std::nullopt;
}

std::optional<AddressRange> read_addresses(std::string_view text) {
  const auto dash = text.find('-');
  const auto first = Address::parse(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : Address::parse(text.substr(dash + 1));
  if (!first || !last || first->family != last->family || *last < *first) return {};
  return AddressRange{*first, *last};
}

}  // namespace

bool read_destination(std::string_view text, std::optional<AddressRange>& addresses, std::optional<PortRange>& ports) {
  const bool brackets = text.starts_with('[');
  const auto bracket = text.find(']');
  if (brackets && bracket == std::string_view::npos) return false;
  const auto colon = brackets                            ? text.find(':', bracket)
                     : text.find(':') == text.rfind(':') ? text.find(':')
                                                         : std::string_view::npos;
  const std::string_view first = brackets ? text.substr(1, bracket - 1) : text.substr(0, colon);
  if (!first.empty() && !(addresses = read_addresses(first))) return false;
  if (colon != std::string_view::npos && !(ports = read_ports(text.substr(colon + 1)))) return false;
  return addresses || ports;
}

std::string destination_words(const std::optional<AddressRange>& addresses, const std::optional<PortRange>& ports) {
  std::string words;
  const bool brackets = addresses && addresses->family() == Family::ipv6 && ports;
  if (brackets) words += '[';
  if (addresses) words += addresses->first.text();
  if (addresses && addresses->first != addresses->last) words += '-' + addresses->last.text();
  if (brackets) words += ']';
  if (ports) words += ':' + text(*ports);
  return words;
}

}  // namespace sidetrack
