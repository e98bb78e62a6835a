// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/xt/entry.h"

#include <fmt/format.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "model/error.h"
#include "rule/xt/rule_extensions.h"
#include "rule/xt/spec.h"

namespace sidetrack::xt {
namespace {

// What differs between the families: the names of the structs, and that IPv6 says in a flag whether the protocol
// counts.
struct Ipv4 {
  using Entry = ipt_entry;
  static constexpr Family family = Family::ipv4;
  static constexpr int proto_flag = 0;
  static constexpr int goto_flag = IPT_F_GOTO;
  static ipt_ip& header(Entry& entry) { return entry.ip; }
  static std::string other_words(const ipt_ip& ip) {
    constexpr int known_inversions = IPT_INV_MASK & ~IPT_INV_TOS;
    if ((ip.flags & ~IPT_F_GOTO) == IPT_F_FRAG && (ip.invflags & ~known_inversions) == 0) {
      return (ip.invflags & IPT_INV_FRAG) != 0 ? "! -f" : "-f";
    }
    return fmt::format("[flags {:#x} inverted {:#x}]", ip.flags, ip.invflags);
  }
};
struct Ipv6 {
  using Entry = ip6t_entry;
  static constexpr Family family = Family::ipv6;
  static constexpr int proto_flag = IP6T_F_PROTO;
  static constexpr int goto_flag = IP6T_F_GOTO;
  static ip6t_ip6& header(Entry& entry) { return entry.ipv6; }
  static std::string other_words(const ip6t_ip6& ip) {
    return fmt::format("[flags {:#x} inverted {:#x} tos {:#x}]", ip.flags, ip.invflags, ip.tos);
  }
};
static_assert(sizeof(ipt_entry) == 112 && sizeof(ip6t_entry) == 168);
static_assert(sizeof(xt_entry_match) == 32 && sizeof(xt_entry_target) == 32 && sizeof(xt_standard_target) == 40);

// The bits of `invflags` are the same in both families.
constexpr int inv_in = IPT_INV_VIA_IN, inv_out = IPT_INV_VIA_OUT, inv_source = IPT_INV_SRCIP,
              inv_destination = IPT_INV_DSTIP, inv_protocol = XT_INV_PROTO;
static_assert(inv_in == IP6T_INV_VIA_IN && inv_out == IP6T_INV_VIA_OUT && inv_source == IP6T_INV_SRCIP &&
              inv_destination == IP6T_INV_DSTIP);

template <typename Info>
std::span<std::byte> bytes_of(Info& info) {
  return std::as_writable_bytes(std::span(&info, 1));
}

// ---- the header

// "eth0" is compared with its terminating zero, "eth+" without: the mask says how many bytes count.
void set_interface(char (&name)[IFNAMSIZ], unsigned char (&mask)[IFNAMSIZ], const std::string& wanted) {
  if (wanted.empty() || wanted.size() >= IFNAMSIZ) throw std::logic_error("not an interface name: " + wanted);
  std::ranges::copy(wanted, name);
  const std::size_t compared = wanted.back() == '+' ? wanted.size() - 1 : wanted.size() + 1;
  std::fill_n(mask, compared, static_cast<unsigned char>(0xff));
}

template <typename Header>
void encode_header(const Rule& rule, Family family, int proto_flag, Header& header) {
  int inverted = 0;
  const auto invert = [&](bool negated, int bit) { inverted |= negated ? bit : 0; };
  for (const Match& match : rule.matches) {
    if (const auto* interface = std::get_if<InterfaceMatch>(&match)) {
      const bool in = interface->direction == InterfaceDirection::in;
      set_interface(in ? header.iniface : header.outiface, in ? header.iniface_mask : header.outiface_mask,
                    interface->name);
      invert(interface->negated, in ? inv_in : inv_out);
    } else if (const auto* address = std::get_if<AddressMatch>(&match)) {
      if (address->ranges.size() != 1 || address->ranges.front().family() != family ||
          !address->ranges.front().prefix_length()) {
        throw std::logic_error("an address match of iptables holds one CIDR of the rule's family");
      }
      const AddressRange& range = address->ranges.front();
      const bool source = address->end == End::source;
      std::ranges::copy(std::as_bytes(range.first.view()), bytes_of(source ? header.src : header.dst).begin());
      std::ranges::copy(std::as_bytes(range.mask().view()), bytes_of(source ? header.smsk : header.dmsk).begin());
      invert(address->negated, source ? inv_source : inv_destination);
    } else if (const auto* protocol = std::get_if<ProtocolMatch>(&match)) {
      header.proto = static_cast<std::uint16_t>(protocol->protocol);
      header.flags = static_cast<std::uint8_t>(header.flags | proto_flag);
      invert(protocol->negated, inv_protocol);
    }
  }
  header.invflags = static_cast<std::uint8_t>(inverted);
}

// "eth0", "eth+"; as bytes where the mask is another one than those have. Nothing if none is asked for.
std::optional<Match> interface_match(InterfaceDirection direction, const char (&name)[IFNAMSIZ],
                                     const unsigned char (&mask)[IFNAMSIZ], bool negated) {
  const auto compared = static_cast<std::size_t>(std::ranges::find(mask, 0) - std::begin(mask));
  if (compared == 0 && std::ranges::count(mask, 0) == IFNAMSIZ) {
    if (!negated) return std::nullopt;
    return InterfaceMatch{direction, "+", true};  // no packet
  }
  std::string text(name, strnlen(name, compared));
  if (text.size() == compared) text += '+';
  if (!text.empty() && text.size() < IFNAMSIZ) {
    char wanted_name[IFNAMSIZ]{};
    unsigned char wanted_mask[IFNAMSIZ]{};
    set_interface(wanted_name, wanted_mask, text);
    const bool same = std::ranges::equal(wanted_mask, mask) && std::memcmp(wanted_name, name, compared) == 0;
    if (same) return InterfaceMatch{direction, std::move(text), negated};
  }
  std::string bytes;
  for (std::size_t i = 0; i < IFNAMSIZ; ++i) {
    bytes += fmt::format("{:02x}/{:02x} ", static_cast<unsigned char>(name[i]), mask[i]);
  }
  bytes.pop_back();
  return UnknownMatch{
      fmt::format("{}-{} [{}]", negated ? "! " : "", direction == InterfaceDirection::in ? 'i' : 'o', bytes)};
}

// 10.0.0.0/8; as words if the mask has holes.
Match address_match(End end, const Address& address, const Address& mask, bool negated) {
  const auto network = network_with_mask(address, mask);
  // Bits after the mask are compared with zeros: such a rule never matches.
  if (network && network->first == address) return AddressMatch{end, {*network}, negated};
  return UnknownMatch{
      fmt::format("{}-{} {}/{}", negated ? "! " : "", end == End::source ? 's' : 'd', address.text(), mask.text())};
}

Match protocol_match(unsigned number, bool negated) {
  if (number <= 255) return ProtocolMatch{static_cast<Protocol>(number), negated};
  return UnknownMatch{fmt::format("{}-p {}", negated ? "! " : "", number)};
}

// In the order of `iptables -S`.
template <typename F, typename Header>
void decode_header(Header header, std::vector<Match>& matches) {
  const auto has = [&](int bit) { return (header.invflags & bit) != 0; };
  const auto address = [&](End end, auto& field, auto& mask_field, int inv) {
    const Address value = address_in(F::family, &field), mask = address_in(F::family, &mask_field);
    if (mask != Address{F::family, {}} || has(inv)) matches.push_back(address_match(end, value, mask, has(inv)));
  };
  const auto interface = [&](InterfaceDirection direction, auto& name, auto& mask, int inv) {
    if (auto match = interface_match(direction, name, mask, has(inv))) matches.push_back(*std::move(match));
  };
  address(End::source, header.src, header.smsk, inv_source);
  address(End::destination, header.dst, header.dmsk, inv_destination);
  interface(InterfaceDirection::in, header.iniface, header.iniface_mask, inv_in);
  interface(InterfaceDirection::out, header.outiface, header.outiface_mask, inv_out);
  const bool any_protocol = header.proto == 0 || (header.flags & F::proto_flag) != F::proto_flag;
  if (!any_protocol) matches.push_back(protocol_match(header.proto, has(inv_protocol)));
  constexpr int known_flags = F::proto_flag | F::goto_flag;
  constexpr int known_inversions = inv_in | inv_out | inv_source | inv_destination | inv_protocol;
  const bool odd = (header.flags & ~known_flags) != 0 || (header.invflags & ~known_inversions) != 0 ||
                   (any_protocol && has(inv_protocol));
  if (odd) matches.push_back(UnknownMatch{F::other_words(header)});
}

// ---- matches and targets: a header of 32 bytes, then the extension's struct

template <typename Header>  // xt_entry_match or xt_entry_target: the same fields
void append_extension(std::vector<std::byte>& bytes, const Extension& extension) {
  Header header{};
  header.u.user.revision = extension.revision;
  std::ranges::copy(extension.name, header.u.user.name);
  // match_size and target_size share their place: the first two bytes.
  const auto size = static_cast<std::uint16_t>(sizeof header + extension.data.size());
  std::memcpy(&header, &size, sizeof size);
  const std::span<const std::byte> header_bytes = bytes_of(header);
  bytes.insert(bytes.end(), header_bytes.begin(), header_bytes.end());
  bytes.insert(bytes.end(), extension.data.begin(), extension.data.end());
}
static_assert(offsetof(xt_entry_match, u.user.match_size) == 0 && offsetof(xt_entry_target, u.user.target_size) == 0);
static_assert(offsetof(xt_entry_match, u.user.name) == offsetof(xt_entry_target, u.user.name) &&
              offsetof(xt_entry_match, u.user.revision) == offsetof(xt_entry_target, u.user.revision));

ExtensionView view_of(std::span<const std::byte> bytes) {
  const auto* name = reinterpret_cast<const char*>(bytes.data()) + offsetof(xt_entry_match, u.user.name);
  return {{name, strnlen(name, XT_EXTENSION_MAXNAMELEN)},
          std::to_integer<std::uint8_t>(bytes[offsetof(xt_entry_match, u.user.revision)]),
          bytes.subspan(sizeof(xt_entry_match))};
}

std::uint16_t size_of(std::span<const std::byte> bytes) {
  std::uint16_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  return size;
}

// A standard target: four bytes after the header, which libiptc fills in from the label.
Extension standard_target(std::string_view label) {
  if (label.size() >= XT_EXTENSION_MAXNAMELEN) throw std::logic_error("a chain's name is too long");
  return {std::string(label), 0, std::vector<std::byte>(sizeof(xt_standard_target) - sizeof(xt_entry_target))};
}

Extension encode_target(const Target& target, Family family) {
  if (const auto* verdict = std::get_if<Verdict>(&target)) return standard_target(verdict->name());
  if (const auto* jump = std::get_if<Jump>(&target)) return standard_target(jump->chain);
  return target_of(target, family);
}

Target decode_label(std::string_view label, bool goes_to) {
  for (const Verdict verdict : {Verdict::accept, Verdict::drop, Verdict::return_}) {
    if (label == verdict.name()) return verdict;
  }
  if (label.empty()) return NonTerminating{};
  if (label == "QUEUE") return UnknownTarget{"-j QUEUE"};
  return Jump{std::string(label), goes_to};
}

// ---- the whole

template <typename F>
std::vector<std::byte> encode(const Rule& rule) {
  typename F::Entry entry{};
  encode_header(rule, F::family, F::proto_flag, F::header(entry));
  std::vector<std::byte> bytes(sizeof entry);
  for (const Extension& match : matches_of(rule)) append_extension<xt_entry_match>(bytes, match);
  entry.target_offset = static_cast<std::uint16_t>(bytes.size());
  append_extension<xt_entry_target>(bytes, encode_target(rule.target, F::family));
  entry.next_offset = static_cast<std::uint16_t>(bytes.size());
  std::ranges::copy(bytes_of(entry), bytes.begin());
  return bytes;
}

void require_fit(bool fits) {
  if (!fits)
    throw Error(ExitCode::failed, "iptables-legacy: the kernel has a malformed entry: an offset is out of bounds");
}

// Its target lies within `bytes`.
template <typename F>
typename F::Entry entry_of(std::span<const std::byte> bytes) {
  typename F::Entry entry;
  require_fit(bytes.size() >= sizeof entry + sizeof(xt_entry_target));
  std::memcpy(&entry, bytes.data(), sizeof entry);
  require_fit(entry.target_offset >= sizeof entry && entry.target_offset <= bytes.size() - sizeof(xt_entry_target));
  return entry;
}

template <typename F>
DecodedEntry decode(std::span<const std::byte> bytes, std::string_view label) {
  auto entry = entry_of<F>(bytes);
  DecodedEntry decoded;
  decode_header<F>(F::header(entry), decoded.matches);
  auto rest = bytes.subspan(sizeof entry, entry.target_offset - sizeof entry);
  while (rest.size() >= sizeof(xt_entry_match)) {
    const std::size_t size = size_of(rest);
    require_fit(size >= sizeof(xt_entry_match) && size <= rest.size());
    for (Match& match : decode_match(view_of(rest.first(size)), F::family)) decoded.matches.push_back(std::move(match));
    rest = rest.subspan(size);
  }
  const ExtensionView target = view_of(bytes.subspan(entry.target_offset));
  const bool goes_to = (F::header(entry).flags & F::goto_flag) != 0;
  decoded.target = target.name.empty() ? decode_label(label, goes_to) : decode_target(target, F::family);
  return decoded;
}

template <typename F>
std::vector<std::byte> copy(std::span<const std::byte> bytes, std::string_view label) {
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  const auto target = std::span(result).subspan(entry_of<F>(bytes).target_offset);
  if (view_of(target).name.empty()) {
    // The kernel copies names with their terminating zero alone: what follows is whatever was in memory.
    const auto name = target.subspan(offsetof(xt_entry_target, u.user.name), XT_EXTENSION_MAXNAMELEN);
    std::ranges::fill(name, std::byte{});
    std::ranges::copy(std::as_bytes(std::span(label)), name.begin());
  }
  return result;
}

}  // namespace

std::vector<std::byte> encode_entry(const Rule& rule, Family family) {
  return family == Family::ipv4 ? encode<Ipv4>(rule) : encode<Ipv6>(rule);
}

DecodedEntry decode_entry(std::span<const std::byte> entry, std::string_view label, Family family) {
  return family == Family::ipv4 ? decode<Ipv4>(entry, label) : decode<Ipv6>(entry, label);
}

std::vector<std::byte> copy_entry(std::span<const std::byte> entry, std::string_view label, Family family) {
  return family == Family::ipv4 ? copy<Ipv4>(entry, label) : copy<Ipv6>(entry, label);
}

}  // namespace sidetrack::xt
