// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

enum class Family : std::uint8_t { ipv4 = 1, ipv6 = 2 };

// A set of families: none, one or both.
class Families {
 public:
  constexpr Families() = default;
  constexpr Families(Family family) : bits_(static_cast<std::uint8_t>(family)) {}  // NOLINT: a family is a set of one

  static constexpr Families both() { return Families(Family::ipv4) | Family::ipv6; }

  [[nodiscard]] constexpr bool contains(Family family) const {
    return (bits_ & static_cast<std::uint8_t>(family)) != 0;
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] std::vector<Family> list() const;  // IPv4 first

  friend constexpr Families operator|(Families a, Families b) { return from_bits(a.bits_ | b.bits_); }
  friend constexpr Families operator&(Families a, Families b) { return from_bits(a.bits_ & b.bits_); }
  friend constexpr bool operator==(Families, Families) = default;

 private:
  static constexpr Families from_bits(int bits) {
    Families families;
    families.bits_ = static_cast<std::uint8_t>(bits);
    return families;
  }
  std::uint8_t bits_ = 0;
};

[[nodiscard]] std::string_view name(Family family);   // "ipv4", "ipv6"
[[nodiscard]] std::string_view title(Family family);  // "IPv4", "IPv6"
[[nodiscard]] std::string names(Families families, std::string_view between = ", ");
[[nodiscard]] int domain(Family family);  // AF_INET, AF_INET6

// Adds 1 to a number in network byte order. False if it was the highest of its size: it is 0 then.
bool increment(std::span<std::uint8_t> number);

// An IPv4 or IPv6 address. Bytes are in network order; an IPv4 address uses the first four, the rest are zero.
struct Address {
  Family family = Family::ipv4;
  std::array<std::uint8_t, 16> bytes{};

  static std::optional<Address> parse(std::string_view text);
  static Address any(Family family);       // 0.0.0.0, ::
  static Address loopback(Family family);  // 127.0.0.1, ::1
  // 127.0.0.6, ::6: where Envoy passes inbound traffic on to the app from (its InboundPassthroughCluster).
  static Address passthrough(Family family);
  [[nodiscard]] std::string text() const;  // as inet_ntop(3) writes it
  [[nodiscard]] int bits() const { return family == Family::ipv4 ? 32 : 128; }
  [[nodiscard]] std::size_t size() const { return family == Family::ipv4 ? 4 : 16; }
  [[nodiscard]] std::span<const std::uint8_t> view() const { return std::span(bytes).first(size()); }
  // The IPv4 address in ::ffff:0:0/96, by which sockets of IPv6 name it.
  [[nodiscard]] std::optional<Address> unmapped() const;
  [[nodiscard]] bool is_loopback() const;    // 127.0.0.0/8, ::1
  [[nodiscard]] bool is_link_local() const;  // 169.254.0.0/16, fe80::/10

  friend auto operator<=>(const Address&, const Address&) = default;
};

// All addresses from first to last, both included, of one family. A CIDR is the range whose ends share a prefix:
// the form that the command line takes and that xtables can hold. Sets of nf_tables hold any range.
struct AddressRange {
  Address first;
  Address last;

  // "10.0.0.0/8", "fd00::/8", or a bare address; bits after the prefix are cleared, as the kernel keeps it.
  static std::optional<AddressRange> parse(std::string_view text);
  static AddressRange prefix(const Address& address, int prefix_length);
  static AddressRange single(const Address& address) { return {address, address}; }

  [[nodiscard]] Family family() const { return first.family; }
  [[nodiscard]] std::optional<int> prefix_length() const;  // nothing if this range is not a CIDR
  [[nodiscard]] Address mask() const;                      // of a CIDR
  [[nodiscard]] bool contains(const Address& address) const {
    return address.family == family() && first <= address && address <= last;
  }
  [[nodiscard]] std::string text() const;  // "10.0.0.0/8", or "10.0.0.1-10.0.0.9" if it is not a CIDR

  friend auto operator<=>(const AddressRange&, const AddressRange&) = default;
};

// Sorted, with overlapping and adjacent ranges made one: what an interval set of nf_tables holds.
[[nodiscard]] std::vector<AddressRange> merged(std::vector<AddressRange> ranges);

}  // namespace sidetrack
