// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/conntrack.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_CT.h>

#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_ct_target_info_v1> ct{"CT", 2};
static_assert(xt::aligned(sizeof(xt_ct_target_info_v1)) == 72);

constexpr xt::Source ct_sources[] = {{"CT", "xt_CT", "CONFIG_NETFILTER_XT_TARGET_CT"}};

// After the first 64 bytes the kernel keeps a pointer of its own.
constexpr std::size_t user_part = offsetof(xt_ct_target_info_v1, ct);

bool is(const xt_ct_target_info_v1& info, const xt::Extension& encoded) {
  return std::memcmp(encoded.data.data(), &info, user_part) == 0;
}

}  // namespace

std::string CtZone::to_iptables() const { return fmt::format("-j CT --zone {}", zone); }

std::optional<Target> CtZone::from_iptables(TargetWords words) {
  if (words.size() != 4 || words[1] != "CT" || words[2] != "--zone") return {};
  const auto zone = read_number<std::uint16_t>(words[3]);
  if (!zone) return {};
  return CtZone{*zone};
}

xt::Sources CtZone::sources() { return ct_sources; }

xt::Extension CtZone::to_xt(Family) const {
  xt_ct_target_info_v1 info{};
  info.zone = zone;
  return ct.encode(info);
}

// Reads both kinds. Revisions 1 and 2 have no difference in what is used here.
std::optional<Target> CtZone::from_xt(const xt::ExtensionView& extension, Family family) {
  const bool is_known = extension.name == "CT" && (extension.revision == 1 || extension.revision == 2);
  if (!is_known || extension.data.size() != sizeof(xt_ct_target_info_v1)) return {};
  xt_ct_target_info_v1 info{};
  std::memcpy(&info, extension.data.data(), user_part);
  if (is(info, CtZone{info.zone}.to_xt(family))) return CtZone{info.zone};
  info.flags = static_cast<std::uint16_t>(info.flags & ~XT_CT_NOTRACK_ALIAS);  // -j NOTRACK
  if (is(info, Notrack{}.to_xt(family))) return Notrack{};
  return {};
}

// ct zone set 1
void CtZone::to_nft(nft::RuleWriter& writer) const {
  writer.add(fmt::format("ct zone set {}", zone), {nft::Load{nft::Data::host(zone)}, nft::CtStore{NFT_CT_ZONE}});
}

std::string Notrack::to_iptables() const { return "-j CT --notrack"; }

std::optional<Target> Notrack::from_iptables(TargetWords words) {
  const bool by_ct = words.size() == 3 && words[1] == "CT" && words[2] == "--notrack";
  const bool by_name = words.size() == 2 && words[0] == "-j" && words[1] == "NOTRACK";
  if (!by_ct && !by_name) return {};
  return Notrack{};
}

xt::Sources Notrack::sources() { return ct_sources; }

xt::Extension Notrack::to_xt(Family) const {
  xt_ct_target_info_v1 info{};
  info.flags = XT_CT_NOTRACK;
  return ct.encode(info);
}

std::optional<Target> Notrack::from_xt(const xt::ExtensionView&, Family) { return {}; }  // CtZone does
void Notrack::to_nft(nft::RuleWriter& writer) const { writer.refuse(); }

}  // namespace sidetrack
