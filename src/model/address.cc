// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>

#include "model/scan.h"

namespace sidetrack {
namespace {

// The address with every bit after the first `prefix_length` cleared, or set.
Address with_host_bits(Address address, int prefix_length, bool set) {
  const auto whole = static_cast<std::size_t>(prefix_length / 8);  // bytes of the network alone
  if (whole >= address.size()) return address;
  auto& byte = address.bytes[whole];
  const int host_bits = 0xff >> prefix_length % 8;
  byte = static_cast<std::uint8_t>(set ? byte | host_bits : byte & ~host_bits);
  std::fill(address.bytes.begin() + whole + 1, address.bytes.begin() + address.size(), set ? 0xff : 0);
  return address;
}

// The address after this one; nothing after the last.
std::optional<Address> successor(Address address) {
  return increment(std::span(address.bytes).first(address.size())) ? std::optional(address) : std::nullopt;
}

}  // namespace

bool increment(std::span<std::uint8_t> number) {
  for (std::size_t i = number.size(); i-- > 0;) {
    if (++number[i] != 0) return true;
  }
  return false;
}

std::vector<Family> Families::list() const {
  std::vector<Family> families;
  for (Family family : {Family::ipv4, Family::ipv6}) {
    if (contains(family)) families.push_back(family);
  }
  return families;
}

std::string_view name(Family family) { return family == Family::ipv4 ? "ipv4" : "ipv6"; }
std::string_view title(Family family) { return family == Family::ipv4 ? "IPv4" : "IPv6"; }

std::string names(Families families, std::string_view between) {
  std::string text;
  for (Family family : families.list()) text.append(text.empty() ? "" : between).append(name(family));
  return text;
}

int domain(Family family) { return family == Family::ipv4 ? AF_INET : AF_INET6; }

std::optional<Address> Address::parse(std::string_view text) {
  const std::string copy(text);  // inet_pton(3) reads as far as a zero byte: what follows one is no address
  if (copy.find('\0') != std::string::npos) return std::nullopt;
  for (Family family : {Family::ipv4, Family::ipv6}) {
    Address address{family, {}};
    if (inet_pton(domain(family), copy.c_str(), address.bytes.data()) == 1) return address;
  }
  return std::nullopt;
}

Address Address::any(Family family) { return {family, {}}; }

Address Address::loopback(Family family) {
  Address address = any(family);
  if (family == Family::ipv4) address.bytes[0] = 127;
  address.bytes[address.size() - 1] = 1;
  return address;
}

Address Address::passthrough(Family family) {
  Address address = loopback(family);
  address.bytes[address.size() - 1] = 6;
  return address;
}

std::string Address::text() const {
  char buffer[INET6_ADDRSTRLEN];
  return inet_ntop(domain(family), bytes.data(), buffer, sizeof buffer);
}

std::optional<Address> Address::unmapped() const {
  static constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (family != Family::ipv6 || !std::equal(prefix.begin(), prefix.end(), bytes.begin())) return {};
  Address address{Family::ipv4, {}};
  std::copy_n(bytes.begin() + prefix.size(), 4, address.bytes.begin());
  return address;
}

bool Address::is_loopback() const {
  static const AddressRange loopback[] = {*AddressRange::parse("127.0.0.0/8"), *AddressRange::parse("::1/128")};
  return std::ranges::any_of(loopback, [&](const AddressRange& range) { return range.contains(*this); });
}

bool Address::is_link_local() const {
  static const AddressRange link_local[] = {*AddressRange::parse("169.254.0.0/16"), *AddressRange::parse("fe80::/10")};
  return std::ranges::any_of(link_local, [&](const AddressRange& range) { return range.contains(*this); });
}

std::optional<AddressRange> AddressRange::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = Address::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  if (slash == std::string_view::npos) return single(*address);
  const std::string_view digits = text.substr(slash + 1);
  const auto length = to_number<unsigned>(digits);
  const bool octal = digits.size() > 1 && digits.front() == '0';  // to iptables: /010 would be /8 there
  if (!length || octal || *length > static_cast<unsigned>(address->bits())) return std::nullopt;
  return prefix(*address, static_cast<int>(*length));
}

AddressRange AddressRange::prefix(const Address& address, int prefix_length) {
  return {with_host_bits(address, prefix_length, false), with_host_bits(address, prefix_length, true)};
}

std::optional<int> AddressRange::prefix_length() const {
  std::size_t same = 0;  // bytes
  while (same < first.size() && first.bytes[same] == last.bytes[same]) ++same;
  if (same == first.size()) return first.bits();
  const int length =
      static_cast<int>(same) * 8 + std::countl_zero(static_cast<std::uint8_t>(first.bytes[same] ^ last.bytes[same]));
  return prefix(first, length) == *this ? std::optional(length) : std::nullopt;
}

Address AddressRange::mask() const {
  return with_host_bits(with_host_bits(Address{family(), {}}, 0, true), prefix_length().value_or(first.bits()), false);
}

std::string AddressRange::text() const {
  if (const auto length = prefix_length()) return first.text() + "/" + std::to_string(*length);
  return first.text() + "-" + last.text();
}

std::vector<AddressRange> merged(std::vector<AddressRange> ranges) {
  if (!std::ranges::is_sorted(ranges)) std::ranges::sort(ranges);  // lists from files often are
  std::vector<AddressRange> result;
  for (const AddressRange& range : ranges) {
    if (!result.empty() && result.back().family() == range.family()) {
      AddressRange& before = result.back();
      const auto after = successor(before.last);
      if (!after || range.first <= *after) {
        before.last = std::max(before.last, range.last);
        continue;
      }
    }
    result.push_back(range);
  }
  return result;
}

}  // namespace sidetrack
