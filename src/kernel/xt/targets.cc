// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "kernel/xt/catalogue.h"
#include "model/iptables.h"

namespace sidetrack::xt {
namespace {

constexpr std::uint32_t all_bits = 0xffffffff;

bool is_exactly(const Extension& encoded, const ExtensionView& extension) {
  return encoded.name == extension.name && encoded.revision == extension.revision &&
         std::ranges::equal(encoded.data, extension.data);
}

// ---- REDIRECT, and what else speaks of a range of addresses and ports: MASQUERADE, DNAT, SNAT. IPv4 has kept the
// struct of the first days. Ports in network order.

Extension encode_redirect(const Redirect& redirect, Family family) {
  if (family == Family::ipv4) {
    nf_nat_ipv4_multi_range_compat info{};
    info.rangesize = 1;
    info.range[0].flags = NF_NAT_RANGE_PROTO_SPECIFIED;
    info.range[0].min.all = info.range[0].max.all = htons(redirect.port);
    return redirect_ipv4.encode(info);
  }
  nf_nat_range info{};
  info.flags = NF_NAT_RANGE_PROTO_SPECIFIED;
  info.min_proto.all = info.max_proto.all = htons(redirect.port);
  return redirect_ipv6.encode(info);
}

struct NatRange {
  unsigned flags;
  Address first, last;
  PortRange ports;
};

Address address_of(Family family, const void* bytes) {
  Address address{family, {}};
  std::memcpy(address.bytes.data(), bytes, address.size());
  return address;
}

NatRange nat_range(const nf_nat_ipv4_multi_range_compat& info) {
  const auto& range = info.range[0];
  return {range.flags,
          address_of(Family::ipv4, &range.min_ip),
          address_of(Family::ipv4, &range.max_ip),
          {ntohs(range.min.all), ntohs(range.max.all)}};
}
NatRange nat_range(const nf_nat_range& info, Family family) {
  return {info.flags,
          address_of(family, &info.min_addr),
          address_of(family, &info.max_addr),
          {ntohs(info.min_proto.all), ntohs(info.max_proto.all)}};
}

std::optional<NatRange> decode_nat(const ExtensionView& extension, Family family) {
  if (extension.revision == 0 && family == Family::ipv4) {
    const Spec<nf_nat_ipv4_multi_range_compat> spec{extension.name, 0};
    const auto info = spec.decode(extension);
    if (info && info->rangesize == 1) return nat_range(*info);
  } else if (extension.revision <= 1) {
    const Spec<nf_nat_range> spec{extension.name, extension.revision};
    if (const auto info = spec.decode(extension)) return nat_range(*info, family);
  } else if (extension.revision == 2) {
    const Spec<nf_nat_range2> spec{extension.name, 2};
    if (const auto info = spec.decode(extension); info && info->base_proto.all == 0) {
      nf_nat_range range;
      static_assert(offsetof(nf_nat_range2, base_proto) == offsetof(nf_nat_range, max_proto) + sizeof range.max_proto);
      std::memcpy(&range, &*info, sizeof range);
      return nat_range(range, family);
    }
  }
  return std::nullopt;
}

// "-j DNAT --to-destination 10.0.0.1:80 --random"; `to_address` is empty for targets that take ports alone.
std::optional<Target> decode_nat(const ExtensionView& extension, Family family, End end, std::string_view to_address) {
  const auto range = decode_nat(extension, family);
  constexpr unsigned known =
      NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED | NF_NAT_RANGE_PROTO_RANDOM_ALL | NF_NAT_RANGE_PERSISTENT;
  if (!range || (range->flags & ~known) != 0) return std::nullopt;
  const auto has = [&](unsigned bit) { return (range->flags & bit) != 0; };
  const Address none{family, {}};
  if (!has(NF_NAT_RANGE_MAP_IPS) && (range->first != none || range->last != none)) return std::nullopt;
  if (!has(NF_NAT_RANGE_PROTO_SPECIFIED) && range->ports != PortRange{}) return std::nullopt;
  if (range->last < range->first || range->ports.last < range->ports.first) return std::nullopt;
  std::string words = fmt::format("-j {}", extension.name);
  if (to_address.empty()) {
    if (has(NF_NAT_RANGE_MAP_IPS)) return std::nullopt;
    if (has(NF_NAT_RANGE_PROTO_SPECIFIED)) words += " --to-ports " + text(range->ports);
  } else {
    words += fmt::format(" {} ", to_address);
    const bool brackets = family == Family::ipv6 && has(NF_NAT_RANGE_PROTO_SPECIFIED);
    if (has(NF_NAT_RANGE_MAP_IPS)) {
      if (brackets) words += '[';
      words += range->first.text();
      if (range->first != range->last) words += '-' + range->last.text();
      if (brackets) words += ']';
    }
    if (has(NF_NAT_RANGE_PROTO_SPECIFIED)) words += ':' + text(range->ports);
  }
  if (has(NF_NAT_RANGE_PROTO_RANDOM)) words += " --random";
  if (has(NF_NAT_RANGE_PROTO_RANDOM_FULLY)) words += " --random-fully";
  if (has(NF_NAT_RANGE_PERSISTENT)) words += " --persistent";
  Nat nat{end, {}, {}, std::move(words)};
  if (has(NF_NAT_RANGE_MAP_IPS)) nat.addresses = AddressRange{range->first, range->last};
  if (has(NF_NAT_RANGE_PROTO_SPECIFIED)) nat.ports = range->ports;
  return nat;
}

std::optional<Target> decode_redirect(const ExtensionView& extension, Family family) {
  auto target = decode_nat(extension, family, End::destination, "");
  if (!target) return std::nullopt;
  const auto& ports = std::get<Nat>(*target).ports;
  if (ports && ports->first == ports->last) {
    const Redirect redirect{ports->first};
    if (is_exactly(encode_redirect(redirect, family), extension)) return redirect;
  }
  return target;
}

// SNAT --to-source ADDRESS
Extension encode_source_nat(const Nat& nat, Family family) {
  if (!nat.addresses || nat != source_nat(nat.addresses->first) || nat.addresses->family() != family)
    throw std::logic_error("not a translation that can be sent: " + nat.words);
  const Address& to = nat.addresses->first;
  if (family == Family::ipv4) {
    nf_nat_ipv4_multi_range_compat info{};
    info.rangesize = 1;
    info.range[0].flags = NF_NAT_RANGE_MAP_IPS;
    std::memcpy(&info.range[0].min_ip, to.bytes.data(), to.size());
    info.range[0].max_ip = info.range[0].min_ip;
    return snat_ipv4.encode(info);
  }
  nf_nat_range info{};
  info.flags = NF_NAT_RANGE_MAP_IPS;
  std::memcpy(&info.min_addr, to.bytes.data(), to.size());
  info.max_addr = info.min_addr;
  return snat_ipv6.encode(info);
}

// ---- TPROXY: `--on-port 15006 --tproxy-mark 0x539/0xffffffff`. The port in network order.

Extension encode_tproxy(const Tproxy& target) {
  xt_tproxy_target_info_v1 info{};
  info.mark_mask = target.mask;
  info.mark_value = target.mark;
  info.lport = htons(target.port);
  return tproxy.encode(info);
}

std::optional<Target> decode_tproxy(const ExtensionView& extension, Family family) {
  const auto info = tproxy.decode(extension);
  if (!info) return std::nullopt;
  const Tproxy target{ntohs(info->lport), info->mark_value, info->mark_mask};
  if (is_exactly(encode_tproxy(target), extension)) return target;
  return UnknownTarget{fmt::format("-j TPROXY --on-port {} --on-ip {} --tproxy-mark {:#x}/{:#x}", target.port,
                                   address_of(family, &info->laddr).text(), target.mark, target.mask)};
}

// ---- MARK --set-mark V: clears the bits of the mask, then sets those of the value.

std::optional<Target> decode_mark(const ExtensionView& extension) {
  const auto info = set_mark.decode(extension);
  if (!info) return std::nullopt;
  return SetMark{info->mark, info->mask};
}

// ---- CONNMARK --save-mark, --restore-mark, --set-xmark. Revision 1 has no shift.

Extension encode_connmark(Connmark action) {
  xt_connmark_tginfo2 info{};
  info.ctmask = info.nfmask = all_bits;
  info.mode = action == Connmark::save ? XT_CONNMARK_SAVE : XT_CONNMARK_RESTORE;
  return set_connmark.encode(info);
}

Extension encode_connmark(const SetConnmark& target) {
  xt_connmark_tginfo2 info{};
  info.ctmark = target.mark;
  info.ctmask = target.mask;
  info.nfmask = all_bits;
  info.mode = XT_CONNMARK_SET;
  return set_connmark.encode(info);
}

template <typename Info>
std::optional<Target> decode_connmark(const Info& info) {
  const bool all = info.ctmask == all_bits && info.nfmask == all_bits;
  // The mask of the packet's mark is not used then: iptables writes all bits, others none.
  if (info.mode == XT_CONNMARK_SET && (info.nfmask == all_bits || info.nfmask == 0)) {
    return SetConnmark{info.ctmark, info.ctmask};
  }
  if (info.mode != XT_CONNMARK_SAVE && info.mode != XT_CONNMARK_RESTORE) return std::nullopt;
  if (info.ctmark != 0) return std::nullopt;
  const bool save = info.mode == XT_CONNMARK_SAVE;
  if (all) return save ? Connmark::save : Connmark::restore;
  return UnknownTarget{fmt::format("-j CONNMARK --{}-mark --nfmask {:#x} --ctmask {:#x}", save ? "save" : "restore",
                                   info.nfmask, info.ctmask)};
}

std::optional<Target> decode_connmark(const ExtensionView& extension) {
  static constexpr Spec<xt_connmark_tginfo1> before{"CONNMARK", 1, 3};
  if (const auto info = before.decode(extension)) return decode_connmark(*info);
  if (const auto info = set_connmark.decode(extension); info && info->shift_bits == 0 && info->shift_dir == 0) {
    return decode_connmark(*info);
  }
  return std::nullopt;
}

// ---- CT --zone 1. After the first 64 bytes the kernel keeps a pointer of its own.

Extension encode_zone(const CtZone& target) {
  xt_ct_target_info_v1 info{};
  info.zone = target.zone;
  return ct.encode(info);
}

Extension encode_notrack() {
  xt_ct_target_info_v1 info{};
  info.flags = XT_CT_NOTRACK;
  return ct.encode(info);
}

std::optional<Target> decode_ct(const ExtensionView& extension) {
  constexpr std::size_t user_part = offsetof(xt_ct_target_info_v1, ct);
  const bool known = extension.revision == 1 || extension.revision == 2;  // no difference in what is used here
  if (!known || extension.data.size() != sizeof(xt_ct_target_info_v1)) return std::nullopt;
  xt_ct_target_info_v1 info{};
  std::memcpy(&info, extension.data.data(), user_part);
  const auto is = [&](const Extension& encoded) { return std::memcmp(encoded.data.data(), &info, user_part) == 0; };
  if (is(encode_zone({info.zone}))) return CtZone{info.zone};
  info.flags = static_cast<std::uint16_t>(info.flags & ~XT_CT_NOTRACK_ALIAS);  // -j NOTRACK
  if (is(encode_notrack())) return Notrack{};
  return std::nullopt;
}

// ---- What lets the packet go on, to the next rule. What some of these change (TOS, TTL, MSS) no match of the model
// sees. TEE is none of them: the host that gets the copy may answer it, with a reset for one.

constexpr std::string_view non_terminating[] = {
    "LOG", "NFLOG",  "ULOG",        "TRACE",    "AUDIT",   "CLASSIFY",    "TOS", "DSCP",    "ECN",       "TTL",
    "HL",  "TCPMSS", "TCPOPTSTRIP", "CHECKSUM", "SECMARK", "CONNSECMARK", "LED", "RATEEST", "IDLETIMER",
};

std::optional<Target> decode_known(const ExtensionView& extension, Family family) {
  if (extension.name == "REDIRECT") return decode_redirect(extension, family);
  if (extension.name == "MASQUERADE") return decode_nat(extension, family, End::source, "");
  if (extension.name == "DNAT") return decode_nat(extension, family, End::destination, "--to-destination");
  if (extension.name == "SNAT") return decode_nat(extension, family, End::source, "--to-source");
  if (extension.name == "CONNMARK") return decode_connmark(extension);
  if (extension.name == "CT") return decode_ct(extension);
  if (extension.name == "TPROXY") return decode_tproxy(extension, family);
  if (extension.name == "MARK") return decode_mark(extension);
  if (extension.name == "REJECT") return Reject{unknown_words(ExtensionKind::target, extension)};
  if (std::ranges::find(non_terminating, extension.name) != std::end(non_terminating)) {
    return NonTerminating{unknown_words(ExtensionKind::target, extension)};
  }
  return std::nullopt;
}

// Each kind of target as an extension.
struct TargetEncoder {
  Family family;

  Extension operator()(const Redirect& target) const { return encode_redirect(target, family); }
  Extension operator()(const Tproxy& target) const { return encode_tproxy(target); }
  Extension operator()(const SetMark& target) const { return set_mark.encode({target.mark, target.mask}); }
  Extension operator()(Connmark target) const { return encode_connmark(target); }
  Extension operator()(const CtZone& target) const { return encode_zone(target); }
  Extension operator()(const SetConnmark& target) const { return encode_connmark(target); }
  Extension operator()(const Nat& target) const { return encode_source_nat(target, family); }
  Extension operator()(const Notrack&) const { return encode_notrack(); }
  // No extensions, or only read.
  Extension operator()(Verdict target) const { refuse(target); }
  Extension operator()(const Jump& target) const { refuse(target); }
  Extension operator()(const NonTerminating& target) const { refuse(target); }
  Extension operator()(const Reject& target) const { refuse(target); }
  Extension operator()(const UnknownTarget& target) const { refuse(target); }

  [[noreturn]] static void refuse(const Target& target) {
    throw std::logic_error("not an extension that can be sent: " + iptables_words(target));
  }
};

}  // namespace

Extension target_of(const Target& target, Family family) { return std::visit(TargetEncoder{family}, target); }

Target decode_target(const ExtensionView& extension, Family family) {
  if (auto target = decode_known(extension, family)) return *std::move(target);
  return UnknownTarget{unknown_words(ExtensionKind::target, extension)};
}

}  // namespace sidetrack::xt
