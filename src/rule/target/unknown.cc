// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/unknown.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_TEE.h>
#include <linux/netfilter_ipv4/ipt_REJECT.h>
#include <linux/netfilter_ipv6/ip6t_REJECT.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "model/printable.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

// What lets the packet go on, to the next rule. What some of these change (TOS, TTL, MSS) no match of the model sees.
// TEE sends a copy to another host.
constexpr std::string_view non_terminating[] = {
    "LOG", "NFLOG",  "ULOG",        "TRACE",    "AUDIT",   "CLASSIFY",    "TOS", "DSCP",    "ECN",       "TTL",
    "HL",  "TCPMSS", "TCPOPTSTRIP", "CHECKSUM", "SECMARK", "CONNSECMARK", "LED", "RATEEST", "IDLETIMER", "TEE",
};

// ipt_reject_info and ip6t_reject_info
struct RejectInfo {
  std::uint32_t with;
};
constexpr const char* with_icmp[] = {
    "icmp-net-unreachable", "icmp-host-unreachable", "icmp-proto-unreachable", "icmp-port-unreachable",
    "echo-reply",           "icmp-net-prohibited",   "icmp-host-prohibited",   "tcp-reset",
    "icmp-admin-prohibited"};
constexpr const char* with_icmpv6[] = {
    "icmp6-no-route",         "icmp6-adm-prohibited", "icmp6-not-neighbour", "icmp6-addr-unreachable",
    "icmp6-port-unreachable", "echo-reply",           "tcp-reset",           "icmp6-policy-fail",
    "icmp6-reject-route"};

// -j TEE --gateway 10.0.0.1 --oif eth0
std::optional<std::string> tee_words(const xt::ExtensionView& extension, Family family) {
  static constexpr xt::Spec<xt_tee_tginfo> tee{"TEE", 1, 8};
  const auto info = tee.decode(extension);
  if (!info) return {};
  std::string words = "-j TEE --gateway " + xt::address_in(family, &info->gw).text();
  const std::string device(info->oif, strnlen(info->oif, sizeof info->oif));
  return device.empty() ? words : words + " --oif " + device;
}

}  // namespace

std::string NonTerminating::to_iptables() const { return printable(words); }

std::optional<Target> NonTerminating::from_iptables(TargetWords words) {
  const std::string& name = words[1];
  const bool without_options = name == "LOG" || name == "NFLOG" || name == "TRACE";  // others may be chains
  const bool is_known = std::ranges::find(non_terminating, name) != std::end(non_terminating);
  if (words[0] != "-j" || !(words.size() == 2 ? without_options : is_known)) return {};
  return NonTerminating{joined_words(words)};
}

xt::Sources NonTerminating::sources() { return {}; }
xt::Extension NonTerminating::to_xt(Family) const { xt::refuse(to_iptables()); }

std::optional<Target> NonTerminating::from_xt(const xt::ExtensionView& extension, Family family) {
  if (const auto words = tee_words(extension, family)) return NonTerminating{*words};
  if (std::ranges::find(non_terminating, extension.name) == std::end(non_terminating)) return {};
  return NonTerminating{unknown_words(xt::ExtensionKind::target, extension)};
}

void NonTerminating::to_nft(nft::RuleWriter& writer) const {
  if (!words.empty()) writer.refuse();
}

std::string Reject::to_iptables() const { return printable(words); }

std::optional<Target> Reject::from_iptables(TargetWords words) {
  if (words[1] != "REJECT") return {};
  return Reject{joined_words(words)};
}

xt::Sources Reject::sources() { return {}; }
xt::Extension Reject::to_xt(Family) const { xt::refuse(to_iptables()); }

std::optional<Target> Reject::from_xt(const xt::ExtensionView& extension, Family family) {
  static constexpr xt::Spec<RejectInfo> reject{"REJECT", 0};
  static_assert(sizeof(RejectInfo) == sizeof(ipt_reject_info) && sizeof(RejectInfo) == sizeof(ip6t_reject_info));
  if (extension.name != "REJECT") return {};
  const auto info = reject.decode(extension);
  const auto names = family == Family::ipv4 ? std::span<const char* const>(with_icmp) : std::span(with_icmpv6);
  if (!info || info->with >= names.size()) return Reject{unknown_words(xt::ExtensionKind::target, extension)};
  return Reject{fmt::format("-j REJECT --reject-with {}", names[info->with])};
}

void Reject::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }

std::string UnknownTarget::to_iptables() const { return printable(words); }
std::optional<Target> UnknownTarget::from_iptables(TargetWords words) { return UnknownTarget{joined_words(words)}; }
xt::Sources UnknownTarget::sources() { return {}; }
xt::Extension UnknownTarget::to_xt(Family) const { xt::refuse(to_iptables()); }

// Any that no other kind has understood.
std::optional<Target> UnknownTarget::from_xt(const xt::ExtensionView& extension, Family) {
  return UnknownTarget{unknown_words(xt::ExtensionKind::target, extension)};
}

void UnknownTarget::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }

}  // namespace sidetrack
