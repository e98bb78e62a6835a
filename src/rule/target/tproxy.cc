// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/tproxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/xt_TPROXY.h>

#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_tproxy_target_info_v1> tproxy{"TPROXY", 1, 2};
static_assert(xt::aligned(sizeof(xt_tproxy_target_info_v1)) == 32);

}  // namespace

std::string Tproxy::to_iptables() const {
  return fmt::format("-j TPROXY --tproxy-mark {}/{:#x} --on-port {}", mark, mask, port);
}

std::optional<Target> Tproxy::from_iptables(TargetWords words) {
  if (words.size() % 2 != 0 || words[1] != "TPROXY") return {};
  std::optional<Masked> bits;
  std::optional<std::uint16_t> port;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const bool anywhere = words[i] == "--on-ip" && (words[i + 1] == "0.0.0.0" || words[i + 1] == "::");
    if (words[i] == "--tproxy-mark") {
      bits = read_masked(words[i + 1]);
    } else if (words[i] == "--on-port") {
      port = read_number<std::uint16_t>(words[i + 1]);
    } else if (!anywhere) {
      return {};
    }
  }
  if (!bits || !port) return {};
  return Tproxy{*port, bits->value, bits->mask};
}

xt::Sources Tproxy::sources() {
  static constexpr xt::Source all[] = {{"TPROXY", "xt_TPROXY", "CONFIG_NETFILTER_XT_TARGET_TPROXY"}};
  return all;
}

// The port in network order.
xt::Extension Tproxy::to_xt(Family) const {
  xt_tproxy_target_info_v1 info{};
  info.mark_mask = mask;
  info.mark_value = mark;
  info.lport = htons(port);
  return tproxy.encode(info);
}

std::optional<Target> Tproxy::from_xt(const xt::ExtensionView& extension, Family family) {
  const auto info = tproxy.decode(extension);
  if (!info) return {};
  const Tproxy target{ntohs(info->lport), info->mark_value, info->mark_mask};
  if (xt::is_exactly(target.to_xt(family), extension)) return target;
  return UnknownTarget{fmt::format("-j TPROXY --on-port {} --on-ip {} --tproxy-mark {:#x}/{:#x}", target.port,
                                   xt::address_in(family, &info->laddr).text(), target.mark, target.mask)};
}

// tproxy ip to :15006 meta mark set 0x00000539 accept: where no transparent socket is found, the rule ends before the
// mark
void Tproxy::to_nft(nft::RuleWriter& writer) const {
  const std::optional<Family> one = writer.only_family();
  const char* words = !one ? "" : *one == Family::ipv4 ? "ip " : "ip6 ";
  writer.add(
      fmt::format("tproxy {}to :{}", words, port),
      {nft::Load{nft::Data::network(port)}, nft::TproxyTo{one ? nft::nfproto(*one) : std::uint32_t{NFPROTO_UNSPEC}}});
  if (mask != 0 || mark != 0) SetMark{mark, mask}.to_nft(writer);
  Verdict::accept.to_nft(writer);
}

}  // namespace sidetrack
