// SPDX-License-Identifier: GPL-2.0-or-later
// Every extension that this program sends: its name, the revision and the struct, and the size that the kernel
// insists on. The revisions are those that iptables 1.8.9 sends, which every kernel since 4.17 has. An older one would
// do for CONNMARK, but iptables 1.8.9 lists it without its words.
#pragma once

#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_CT.h>
#include <linux/netfilter/xt_TPROXY.h>
#include <linux/netfilter/xt_cgroup.h>
#include <linux/netfilter/xt_connmark.h>
#include <linux/netfilter/xt_conntrack.h>
#include <linux/netfilter/xt_mark.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_owner.h>
#include <linux/netfilter/xt_set.h>
#include <linux/netfilter/xt_tcpudp.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "kernel/xt/extension.h"

namespace sidetrack::xt {

// XT_ALIGN: on every 64-bit machine, and on 32-bit ones with 64-bit alignment, a multiple of 8.
constexpr std::size_t aligned(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

template <typename Info>
struct Spec {
  static_assert(std::is_trivially_copyable_v<Info>);
  std::string_view name;
  std::uint8_t revision;
  std::size_t padding = 0;  // bytes at the end of the struct that no field covers: the kernel is sent zeros there

  [[nodiscard]] Extension encode(const Info& info) const {
    Extension extension{std::string(name), revision, std::vector<std::byte>(aligned(sizeof info))};
    std::memcpy(extension.data.data(), &info, sizeof info - padding);
    return extension;
  }

  // The struct, if `extension` is this one, and nothing else is in its bytes.
  [[nodiscard]] std::optional<Info> decode(const ExtensionView& extension) const {
    const bool of_size = extension.data.size() == sizeof(Info) || extension.data.size() == aligned(sizeof(Info));
    if (extension.name != name || extension.revision != revision || !of_size) return std::nullopt;
    for (const std::byte rest : extension.data.subspan(sizeof(Info) - padding)) {
      if (rest != std::byte{}) return std::nullopt;
    }
    Info info;
    std::memcpy(&info, extension.data.data(), sizeof info);
    return info;
  }
};

// clang-format off
inline constexpr Spec<xt_tcp>                         tcp{"tcp", 0};
inline constexpr Spec<xt_udp>                         udp{"udp", 0, 1};
inline constexpr Spec<xt_multiport_v1>                multiport{"multiport", 1};
inline constexpr Spec<xt_owner_match_info>            owner{"owner", 1, 2};
inline constexpr Spec<xt_conntrack_mtinfo3>           conntrack{"conntrack", 3, 2};
inline constexpr Spec<xt_mark_mtinfo1>                mark{"mark", 1, 3};
inline constexpr Spec<xt_connmark_mtinfo1>            connmark{"connmark", 1, 3};
inline constexpr Spec<xt_set_info_match_v4>           set{"set", 4, 4};
inline constexpr Spec<nf_nat_ipv4_multi_range_compat> snat_ipv4{"SNAT", 0};
inline constexpr Spec<nf_nat_range>                   snat_ipv6{"SNAT", 1};
inline constexpr Spec<xt_cgroup_info_v2>              cgroup{"cgroup", 2, 12};  // a gap, and the kernel's own pointer
inline constexpr Spec<nf_nat_ipv4_multi_range_compat> redirect_ipv4{"REDIRECT", 0};
inline constexpr Spec<nf_nat_range>                   redirect_ipv6{"REDIRECT", 0};
inline constexpr Spec<xt_tproxy_target_info_v1>       tproxy{"TPROXY", 1, 2};
inline constexpr Spec<xt_mark_tginfo2>                set_mark{"MARK", 2};
inline constexpr Spec<xt_connmark_tginfo2>            set_connmark{"CONNMARK", 2, 1};
inline constexpr Spec<xt_ct_target_info_v1>           ct{"CT", 2};

static_assert(aligned(sizeof(xt_tcp)) == 16);
static_assert(aligned(sizeof(xt_udp)) == 16);
static_assert(aligned(sizeof(xt_multiport_v1)) == 48);
static_assert(aligned(sizeof(xt_owner_match_info)) == 24);
static_assert(aligned(sizeof(xt_conntrack_mtinfo3)) == 168);
static_assert(aligned(sizeof(xt_mark_mtinfo1)) == 16);
static_assert(aligned(sizeof(xt_connmark_mtinfo1)) == 16);
static_assert(aligned(sizeof(xt_set_info_match_v4)) == 48);
static_assert(aligned(sizeof(xt_cgroup_info_v2)) == 528);
static_assert(offsetof(xt_cgroup_info_v2, path) + XT_CGROUP_PATH_MAX == sizeof(xt_cgroup_info_v2) - 12);
static_assert(aligned(sizeof(nf_nat_ipv4_multi_range_compat)) == 24);
static_assert(aligned(sizeof(nf_nat_range)) == 40);
static_assert(aligned(sizeof(xt_tproxy_target_info_v1)) == 32);
static_assert(aligned(sizeof(xt_mark_tginfo2)) == 8);
static_assert(aligned(sizeof(xt_connmark_tginfo2)) == 16);
static_assert(aligned(sizeof(xt_ct_target_info_v1)) == 72);
// clang-format on

// Whether all bytes of a part of a struct are zero.
template <typename Part>
[[nodiscard]] bool is_zero(const Part& part) {
  static const Part zero{};
  return std::memcmp(&part, &zero, sizeof part) == 0;
}

// "-m NAME [rev 1, 152 bytes: 6162…]", "-j NAME […]": an extension that only its bytes can describe.
[[nodiscard]] std::string unknown_words(ExtensionKind kind, const ExtensionView& extension);

}  // namespace sidetrack::xt
