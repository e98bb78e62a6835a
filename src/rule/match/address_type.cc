// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/address_type.h"

#include <fmt/format.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/xt_addrtype.h>
#include <linux/rtnetlink.h>

#include <algorithm>

#include "pod/local_ranges.h"
#include "pod/pod_view.h"
#include "rule/match/within.h"
#include "rule/nft/comparison.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_addrtype_info> addrtype_of_ipv4{"addrtype", 0};  // only read
constexpr xt::Spec<xt_addrtype_info_v1> addrtype{"addrtype", 1};
static_assert(XT_ADDRTYPE_LOCAL == 1 << RTN_LOCAL && XT_ADDRTYPE_PROHIBIT == 1 << RTN_PROHIBIT);

// By their numbers.
constexpr std::string_view type_names[] = {"UNSPEC",    "UNICAST",     "LOCAL",    "BROADCAST", "ANYCAST", "MULTICAST",
                                           "BLACKHOLE", "UNREACHABLE", "PROHIBIT", "THROW",     "NAT",     "XRESOLVE"};
constexpr std::string_view limit_options[] = {"--limit-iface-in", "--limit-iface-out"};  // by InterfaceDirection

constexpr unsigned bits(auto... types) { return (0U | ... | (1U << types)); }

using Answer = AddressTypeMatch::Answer;

// Lists what the kernel answers, in the order in which it looks.
class Answers {
 public:
  Answers(unsigned types, bool native, const PodView& pod, Family family, const std::string& device)
      : types_(types), native_(native), pod_(pod), family_(family), device_(device) {}

  std::vector<Answer> take() && {
    const AddressRange all = AddressRange::prefix(Address::any(family_), 0);
    add(AddressRange::single(all.first), of(family_ == Family::ipv4 ? RTN_BROADCAST : RTN_UNSPEC));
    if (family_ == Family::ipv4) {
      add(AddressRange::single(all.last), of(RTN_BROADCAST));
      add(*AddressRange::parse("224.0.0.0/4"), of(RTN_MULTICAST));
    } else {
      add(*AddressRange::parse("::ffff:0:0/96"), of(RTN_BLACKHOLE));  // ipv6_addr_type has no type for it
      add(*AddressRange::parse("ff00::/8"), of(RTN_MULTICAST));
    }
    table_local();
    if (family_ == Family::ipv6) other_tables();
    add(all, of(RTN_UNICAST));
    return std::move(answers_);
  }

 private:
  [[gnu::noinline]] void add(const AddressRange& range, Truth truth) {
    if (answers_.empty() || answers_.back().truth != truth) answers_.push_back({truth, {}});
    answers_.back().ranges.push_back(range);
  }

  [[nodiscard]] bool has(unsigned type) const { return (types_ >> type & 1) != 0; }

  // Whether an address of the type is one of those that the rule asks for.
  [[nodiscard, gnu::noinline]] Truth of(unsigned type) const {
    if (family_ == Family::ipv4) return known(has(type));
    return native_ ? of_fib6(type) : of_addrtype6(type);
  }

  // addrtype_mt6: of what the address itself says all must hold, of what its route says one.
  [[nodiscard]] Truth of_addrtype6(unsigned type) const {
    const unsigned is = type == RTN_LOCAL ? unsigned{RTN_UNICAST} : type;
    for (const unsigned asked : {RTN_MULTICAST, RTN_UNICAST, RTN_UNSPEC}) {
      if (has(asked) && asked != is) return Truth::no;
    }
    if ((types_ & bits(RTN_LOCAL, RTN_ANYCAST, RTN_UNREACHABLE)) == 0) return Truth::yes;
    if (type == RTN_LOCAL && has(RTN_LOCAL)) return Truth::yes;
    return (types_ & bits(RTN_ANYCAST, RTN_UNREACHABLE)) != 0 ? Truth::unknown : Truth::no;
  }

  // nft_fib6_eval_type: without a route to it, it is none of its own kind.
  [[nodiscard]] Truth of_fib6(unsigned type) const {
    if (type == RTN_LOCAL || type == RTN_MULTICAST) return known(has(type));
    constexpr unsigned by_route =
        bits(RTN_UNSPEC, RTN_UNICAST, RTN_ANYCAST, RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW);
    const unsigned asked = types_ & by_route;
    return asked == 0 ? Truth::no : asked == by_route ? Truth::yes : Truth::unknown;
  }

  // __inet_dev_addr_type, and RTF_LOCAL of IPv6: the longest prefix counts, and what is there by another interface than
  // was asked for is unicast. So is what a route refuses.
  void table_local() {
    std::vector<std::pair<AddressRange, Truth>> found;
    const auto note = [&](const AddressRange& to, unsigned type, bool counts) {
      found.emplace_back(to, of(counts ? type : unsigned{RTN_UNICAST}));
    };
    for (const Interface& interface : pod_.interfaces) {
      const bool counts = device_.empty() || device_ == interface.name;
      for (const AddressRange& own : own_ranges({&interface, 1}, family_)) note(own, RTN_LOCAL, counts);
      if (family_ == Family::ipv6) continue;
      for (const AddressRange& last : broadcast_ranges(interface, pod_.first_is_broadcast))
        note(last, RTN_BROADCAST, counts);
    }
    for (const Route& route : pod_.routes) {
      if (route.table != local_table || route.family() != family_) continue;
      const bool is_of_device = family_ == Family::ipv4 && route.has_hop_by(device_);
      if (route.kind == Route::Kind::unknown) {
        found.emplace_back(route.to, Truth::unknown);
      } else {
        note(route.to, RTN_LOCAL, route.kind == Route::Kind::local && (device_.empty() || is_of_device));
      }
    }
    const std::optional<bool> is_one = family_ == Family::ipv4 ? pod_.has_one_table() : false;
    if (is_one != false) {
      for (const Route* route : main_routes_within_local(pod_))
        found.emplace_back(route->to,
                           is_one ? of(route->kind == Route::Kind::local ? RTN_LOCAL : RTN_UNICAST) : Truth::unknown);
    }
    // Not sorted: of so few that takes less code.
    for (int length = Address::any(family_).bits(); length >= 0; --length) {
      for (const auto& [to, truth] : found) {
        if (to.prefix_length() == length) add(to, truth);
      }
    }
  }

  // IPv6 asks them all, without a mark.
  void other_tables() {
    for (const Route& route : pod_.routes) {
      const auto asks = [&](const PolicyRule& rule) {
        return rule.family == Family::ipv6 && rule.table == route.table && (rule.mark & rule.mask) == 0;
      };
      const bool is_local = route.kind == Route::Kind::local && route.family() == Family::ipv6;
      if (is_local && route.table != local_table && std::ranges::any_of(pod_.rules, asks))
        add(route.to, of(RTN_LOCAL) == of(RTN_UNICAST) ? of(RTN_LOCAL) : Truth::unknown);
    }
  }

  const unsigned types_;
  const bool native_;
  const PodView& pod_;
  const Family family_;
  const std::string& device_;  // empty: any
  std::vector<Answer> answers_;
};

std::optional<std::vector<Match>> decode(const xt_addrtype_info_v1& info) {
  constexpr unsigned limits = XT_ADDRTYPE_LIMIT_IFACE_IN | XT_ADDRTYPE_LIMIT_IFACE_OUT;
  constexpr unsigned inverted = XT_ADDRTYPE_INVERT_SOURCE | XT_ADDRTYPE_INVERT_DEST;
  if ((info.flags & ~(limits | inverted)) != 0 || (info.flags & limits) == limits) return {};
  std::optional<InterfaceDirection> limit;
  if ((info.flags & XT_ADDRTYPE_LIMIT_IFACE_IN) != 0) limit = InterfaceDirection::in;
  if ((info.flags & XT_ADDRTYPE_LIMIT_IFACE_OUT) != 0) limit = InterfaceDirection::out;
  std::vector<Match> matches;
  const auto add = [&](End end, std::uint16_t types, unsigned inverts) {
    if (types != 0) matches.emplace_back(AddressTypeMatch{end, types, (info.flags & inverts) != 0, limit});
  };
  add(End::source, info.source, XT_ADDRTYPE_INVERT_SOURCE);
  add(End::destination, info.dest, XT_ADDRTYPE_INVERT_DEST);
  const bool all_named = ((info.source | info.dest) >> std::size(type_names)) == 0;
  if (!all_named || matches.empty()) return {};
  return matches;
}

}  // namespace

std::optional<InterfaceDirection> read_limit(std::string_view option) {
  const auto* found = std::ranges::find(limit_options, option);
  if (found == std::end(limit_options)) return {};
  return static_cast<InterfaceDirection>(found - std::begin(limit_options));
}

std::vector<Answer> AddressTypeMatch::answers(const PacketAtHook& packet) const {
  const Family family = packet.at(end).address.family;
  if (packet.pod == nullptr) return {{Truth::unknown, {AddressRange::prefix(Address::any(family), 0)}}};
  static const std::string any;
  const std::string& device = !limit ? any : *limit == InterfaceDirection::in ? packet.in : packet.out;
  return Answers(types, packet.native, *packet.pod, family, device).take();
}

std::string AddressTypeMatch::to_iptables() const {
  std::string text = fmt::format("-m addrtype {}--{}-type {}", exclamation(negated), end == End::source ? "src" : "dst",
                                 bit_names(types, type_names).value_or(""));
  if (limit) text += fmt::format(" {}", limit_options[static_cast<std::size_t>(*limit)]);
  return text;
}

std::optional<Match> AddressTypeMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--src-type" && option.name != "--dst-type") return {};
  const auto types = read_bits(option.value, type_names);
  if (!types) return {};
  return AddressTypeMatch{option.name == "--src-type" ? End::source : End::destination,
                          static_cast<std::uint16_t>(*types), option.negated};
}

xt::Sources AddressTypeMatch::sources() {
  static constexpr xt::Source all[] = {{"addrtype", "xt_addrtype", "CONFIG_NETFILTER_XT_MATCH_ADDRTYPE"}};
  return all;
}

void AddressTypeMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  xt_addrtype_info_v1 info{};
  const bool source = end == End::source;
  (source ? info.source : info.dest) = types;
  if (negated) info.flags |= source ? XT_ADDRTYPE_INVERT_SOURCE : XT_ADDRTYPE_INVERT_DEST;
  if (limit == InterfaceDirection::in) info.flags |= XT_ADDRTYPE_LIMIT_IFACE_IN;
  if (limit == InterfaceDirection::out) info.flags |= XT_ADDRTYPE_LIMIT_IFACE_OUT;
  extensions.push_back(addrtype.encode(info));
}

std::optional<std::vector<Match>> AddressTypeMatch::from_xt(const xt::ExtensionView& extension, Family) {
  if (const auto info = addrtype.decode(extension)) return decode(*info);
  const auto info = addrtype_of_ipv4.decode(extension);
  if (!info) return {};
  xt_addrtype_info_v1 same{info->source, info->dest, 0};
  if (info->invert_source != 0) same.flags |= XT_ADDRTYPE_INVERT_SOURCE;
  if (info->invert_dest != 0) same.flags |= XT_ADDRTYPE_INVERT_DEST;
  return decode(same);
}

void AddressTypeMatch::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }  // only read

// fib daddr type { local, broadcast }, fib saddr . iif type != local
std::optional<nft::Alternatives> AddressTypeMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  constexpr std::uint32_t ends = NFTA_FIB_F_SADDR | NFTA_FIB_F_DADDR, limits = NFTA_FIB_F_IIF | NFTA_FIB_F_OIF;
  const std::uint32_t flags = value.key;
  const bool one_end = (flags & ends) == NFTA_FIB_F_SADDR || (flags & ends) == NFTA_FIB_F_DADDR;
  if (value.of != nft::Value::Of::fib || value.changed() || !one_end || (flags & ~(ends | limits)) != 0) return {};
  if ((flags & limits) == limits) return {};
  AddressTypeMatch match{(flags & NFTA_FIB_F_SADDR) != 0 ? End::source : End::destination, 0, comparison.negated};
  if ((flags & limits) != 0)
    match.limit = (flags & NFTA_FIB_F_IIF) != 0 ? InterfaceDirection::in : InterfaceDirection::out;
  for (const auto& [first, last] : comparison.bounds) {
    const std::uint32_t type = nft::number_of(value, first);
    if (first != last || type >= std::size(type_names)) return {};
    match.types = static_cast<std::uint16_t>(match.types | 1U << type);
  }
  return nft::only(match);
}

Truth AddressTypeMatch::truth(const PacketAtHook& packet) const {
  if (end == End::source && !packet.source_known) return Truth::unknown;
  const Address& address = packet.at(end).address;
  for (const Answer& answer : answers(packet)) {
    if (std::ranges::none_of(answer.ranges, [&](const AddressRange& range) { return range.contains(address); }))
      continue;
    return answer.truth == Truth::unknown ? Truth::unknown : known((answer.truth == Truth::yes) != negated);
  }
  return Truth::unknown;
}

std::string AddressTypeMatch::why_not(const PacketAtHook& packet) const { return address_words(packet, end); }

void AddressTypeMatch::ask(Asked& asked) const {
  if (limit) asked.interface(*limit, "+");
  asked.address_type(*this);
}
void AddressTypeMatch::take_value(const AddressTypeMatch&) {}  // no option gives it

}  // namespace sidetrack
