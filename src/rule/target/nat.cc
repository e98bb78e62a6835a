// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/nat.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>

#include <algorithm>
#include <stdexcept>

#include "model/printable.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/target/destination.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

// IPv4 has kept the struct of the first days. Ports in network order.
static_assert(xt::aligned(sizeof(nf_nat_ipv4_multi_range_compat)) == 24);
static_assert(xt::aligned(sizeof(nf_nat_range)) == 40);

struct NatTarget {
  std::string_view name;
  End end;
  std::string_view to_address;  // its option; empty: it takes ports alone
  Nat::To to = Nat::To::given;
};
constexpr NatTarget nat_targets[] = {{"DNAT", End::destination, "--to-destination"},
                                     {"SNAT", End::source, "--to-source"},
                                     {"MASQUERADE", End::source, "", Nat::To::own},
                                     {"REDIRECT", End::destination, "", Nat::To::own},
                                     {"NETMAP", End::destination, "--to", Nat::To::network}};

const NatTarget* nat_target(std::string_view name) {
  const auto* found = std::ranges::find(nat_targets, name, &NatTarget::name);
  return found != std::end(nat_targets) ? found : nullptr;
}

struct NatFlag {
  unsigned bit;
  std::string_view option;
};
constexpr NatFlag nat_flags[] = {{NF_NAT_RANGE_PROTO_RANDOM, "--random"},
                                 {NF_NAT_RANGE_PROTO_RANDOM_FULLY, "--random-fully"},
                                 {NF_NAT_RANGE_PERSISTENT, "--persistent"}};

// In the words of iptables: "-j DNAT --to-destination 10.0.0.1:80 --random"
Nat nat_of(const NatTarget& target, std::optional<AddressRange> addresses, std::optional<PortRange> ports,
           unsigned flags, std::uint16_t base = 0) {
  std::string words = fmt::format("-j {}", target.name);
  if (target.to_address.empty()) {
    if (ports) words += " --to-ports " + text(*ports);
  } else {
    words += fmt::format(" {} {}", target.to_address,
                         target.to == Nat::To::network ? addresses->text() : destination_words(addresses, ports));
    if (base != 0) words += fmt::format("/{}", base);
  }
  for (const NatFlag& flag : nat_flags) {
    if ((flags & flag.bit) != 0) words += fmt::format(" {}", flag.option);
  }
  Nat nat{target.end, addresses, ports, std::move(words), target.to, (flags & NF_NAT_RANGE_PROTO_RANDOM_ALL) != 0, {}};
  if (base != 0) nat.base = base;
  return nat;
}

struct NatRange {
  unsigned flags;
  Address first, last;
  PortRange ports;
  std::uint16_t base = 0;  // the port that the first one of `ports` stands for, the next one for the next
};

NatRange nat_range(const nf_nat_ipv4_multi_range_compat& info) {
  const auto& range = info.range[0];
  return {range.flags,
          xt::address_in(Family::ipv4, &range.min_ip),
          xt::address_in(Family::ipv4, &range.max_ip),
          {ntohs(range.min.all), ntohs(range.max.all)}};
}
NatRange nat_range(const nf_nat_range& info, Family family) {
  return {info.flags,
          xt::address_in(family, &info.min_addr),
          xt::address_in(family, &info.max_addr),
          {ntohs(info.min_proto.all), ntohs(info.max_proto.all)}};
}

std::optional<NatRange> decode_nat(const xt::ExtensionView& extension, Family family) {
  if (extension.revision == 0 && family == Family::ipv4) {
    const xt::Spec<nf_nat_ipv4_multi_range_compat> spec{extension.name, 0};
    const auto info = spec.decode(extension);
    if (info && info->rangesize == 1) return nat_range(*info);
  } else if (extension.revision <= 1) {
    const xt::Spec<nf_nat_range> spec{extension.name, extension.revision};
    if (const auto info = spec.decode(extension)) return nat_range(*info, family);
  } else if (extension.revision == 2) {
    const xt::Spec<nf_nat_range2> spec{extension.name, 2};
    if (const auto info = spec.decode(extension)) {
      nf_nat_range range;
      static_assert(offsetof(nf_nat_range2, base_proto) == offsetof(nf_nat_range, max_proto) + sizeof range.max_proto);
      std::memcpy(&range, &*info, sizeof range);
      NatRange decoded = nat_range(range, family);
      decoded.base = ntohs(info->base_proto.all);
      return decoded;
    }
  }
  return std::nullopt;
}

std::optional<Target> decode_nat(const xt::ExtensionView& extension, Family family, const NatTarget& target) {
  const auto range = decode_nat(extension, family);
  constexpr unsigned known = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_PROTO_RANDOM_ALL |
                             NF_NAT_RANGE_PERSISTENT | NF_NAT_RANGE_PROTO_OFFSET;
  if (!range || (range->flags & ~known) != 0) return std::nullopt;
  if ((range->base != 0) != ((range->flags & NF_NAT_RANGE_PROTO_OFFSET) != 0)) return std::nullopt;
  const auto has = [&](unsigned bit) { return (range->flags & bit) != 0; };
  const Address none{family, {}};
  if (!has(NF_NAT_RANGE_MAP_IPS) && (range->first != none || range->last != none)) return std::nullopt;
  if (!has(NF_NAT_RANGE_PROTO_SPECIFIED) && range->ports != PortRange{}) return std::nullopt;
  if (range->last < range->first || range->ports.last < range->ports.first) return std::nullopt;
  if (target.to_address.empty() && has(NF_NAT_RANGE_MAP_IPS)) return std::nullopt;
  const bool is_network = AddressRange{range->first, range->last}.prefix_length().has_value();
  if (target.to == Nat::To::network && (!has(NF_NAT_RANGE_MAP_IPS) || !is_network)) return std::nullopt;
  return nat_of(
      target, has(NF_NAT_RANGE_MAP_IPS) ? std::optional(AddressRange{range->first, range->last}) : std::nullopt,
      has(NF_NAT_RANGE_PROTO_SPECIFIED) ? std::optional(range->ports) : std::nullopt, range->flags, range->base);
}

// To one address or one port. `revision` is that for IPv6.
xt::Extension encode_nat(std::string_view name, std::uint8_t revision, unsigned flags, const Address& address,
                         std::uint16_t port = 0) {
  if (address.family == Family::ipv4) {
    nf_nat_ipv4_multi_range_compat info{};
    info.rangesize = 1;
    auto& range = info.range[0];
    range.flags = flags;
    std::memcpy(&range.min_ip, address.bytes.data(), address.size());
    range.max_ip = range.min_ip;
    range.min.all = range.max.all = htons(port);
    return xt::Spec<nf_nat_ipv4_multi_range_compat>{name, 0}.encode(info);
  }
  nf_nat_range info{};
  info.flags = flags;
  std::memcpy(&info.min_addr, address.bytes.data(), address.size());
  info.max_addr = info.min_addr;
  info.min_proto.all = info.max_proto.all = htons(port);
  return xt::Spec<nf_nat_range>{name, revision}.encode(info);
}

}  // namespace

std::string Redirect::to_iptables() const { return fmt::format("-j REDIRECT --to-ports {}", port); }

std::optional<Target> Redirect::from_iptables(TargetWords words) {
  if (words.size() != 4 || words[1] != "REDIRECT" || words[2] != "--to-ports") return {};
  const auto port = read_number<std::uint16_t>(words[3]);
  if (!port) return {};
  return Redirect{*port};
}

xt::Sources Redirect::sources() {
  static constexpr xt::Source all[] = {{"REDIRECT", "xt_REDIRECT", "CONFIG_NETFILTER_XT_TARGET_REDIRECT"}};
  return all;
}

xt::Extension Redirect::to_xt(Family family) const {
  return encode_nat("REDIRECT", 0, NF_NAT_RANGE_PROTO_SPECIFIED, {family, {}}, port);
}

std::optional<Target> Redirect::from_xt(const xt::ExtensionView& extension, Family family) {
  if (extension.name != "REDIRECT") return {};
  auto target = decode_nat(extension, family, *nat_target("REDIRECT"));
  if (!target) return {};
  const auto& ports = std::get<Nat>(*target).ports;
  if (ports && ports->first == ports->last) {
    const Redirect redirect{ports->first};
    if (xt::is_exactly(redirect.to_xt(family), extension)) return redirect;
  }
  return target;
}

// redirect to :15001
void Redirect::to_nft(nft::RuleWriter& writer) const {
  writer.add(fmt::format("redirect to :{}", port), {nft::Load{nft::Data::network(port)}, nft::RedirectTo{}});
}

Nat native_nat(End end, Nat::To to, std::optional<AddressRange> addresses, std::optional<PortRange> ports,
               unsigned flags) {
  const auto* target = std::ranges::find_if(
      nat_targets, [&](const NatTarget& each) { return each.to == to && (each.end == end || to == Nat::To::network); });
  return nat_of(*target, addresses, ports, flags);
}

Nat source_nat(const Address& address) {
  return {End::source, AddressRange::single(address), {}, "-j SNAT --to-source " + address.text()};
}

std::string Nat::to_iptables() const { return printable(words); }

std::optional<Target> Nat::from_iptables(TargetWords words) {
  const NatTarget* target = words[0] == "-j" ? nat_target(words[1]) : nullptr;
  if (target == nullptr) return {};
  std::optional<AddressRange> addresses;
  std::optional<PortRange> ports;
  unsigned flags = 0;
  std::uint16_t base = 0;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto* flag = std::ranges::find(nat_flags, words[i], &NatFlag::option);
    const std::string_view option = words[i];
    if (flag != std::end(nat_flags)) {
      flags |= flag->bit;
    } else if (++i == words.size()) {
      return {};
    } else if (target->to == Nat::To::network) {
      addresses = AddressRange::parse(words[i]);
      if (option != target->to_address || !addresses) return {};
    } else if (const auto slash = words[i].rfind('/'); slash != std::string::npos) {  // 10.0.0.1:8000-8099/80
      const auto number = read_number<std::uint16_t>(std::string_view(words[i]).substr(slash + 1));
      const bool is_read = number && read_destination(words[i].substr(0, slash), addresses, ports) && ports;
      if (option != target->to_address || !is_read) return {};
      base = *number;
    } else if (option == "--to-ports" && target->to_address.empty()) {
      if (!read_destination(":" + words[i], addresses, ports)) return {};
    } else if (option != target->to_address || !read_destination(words[i], addresses, ports)) {
      return {};
    }
  }
  const bool translates = addresses || ports || target->to_address.empty();
  if (!translates) return {};
  return nat_of(*target, addresses, ports, flags, base);
}

xt::Sources Nat::sources() {
  static constexpr xt::Source all[] = {{"SNAT", "xt_nat", "CONFIG_NETFILTER_XT_NAT"}};
  return all;
}

// SNAT --to-source ADDRESS
xt::Extension Nat::to_xt(Family family) const {
  if (!addresses || *this != source_nat(addresses->first) || addresses->family() != family)
    throw std::logic_error("not a translation that can be sent: " + words);
  return encode_nat("SNAT", 1, NF_NAT_RANGE_MAP_IPS, addresses->first);
}

std::optional<Target> Nat::from_xt(const xt::ExtensionView& extension, Family family) {
  const NatTarget* target = nat_target(extension.name);
  if (target == nullptr) return {};
  return decode_nat(extension, family, *target);
}

// snat ip to 169.254.7.127
void Nat::to_nft(nft::RuleWriter& writer) const {
  if (!addresses || *this != source_nat(addresses->first)) writer.refuse();
  const Address& address = addresses->first;
  writer.add(fmt::format("snat {} to {}", address.family == Family::ipv4 ? "ip" : "ip6", address.text()),
             {nft::Load{nft::Data(address.view())}, nft::SnatTo{nft::nfproto(address.family)}});
}

}  // namespace sidetrack
