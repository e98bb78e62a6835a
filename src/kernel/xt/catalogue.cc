// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/xt/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace sidetrack::xt {

std::string unknown_words(ExtensionKind kind, const ExtensionView& extension) {
  std::size_t used = extension.data.size();
  while (used > 0 && extension.data[used - 1] == std::byte{}) --used;
  std::string hex;
  for (std::byte byte : extension.data.first(used)) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return fmt::format("{} {} [rev {}, {} bytes: {}]", kind == ExtensionKind::match ? "-m" : "-j", extension.name,
                     extension.revision, extension.data.size(), hex.empty() ? "all zero" : hex);
}

Source source_of(ExtensionKind kind, std::string_view name) {
  struct Row {
    ExtensionKind kind;
    std::string_view name;
    Source source;
  };
  using enum ExtensionKind;
  static constexpr Row rows[] = {
      {match, "tcp", {"xt_tcpudp", "CONFIG_NETFILTER_XTABLES"}},
      {match, "udp", {"xt_tcpudp", "CONFIG_NETFILTER_XTABLES"}},
      {match, "multiport", {"xt_multiport", "CONFIG_NETFILTER_XT_MATCH_MULTIPORT"}},
      {match, "owner", {"xt_owner", "CONFIG_NETFILTER_XT_MATCH_OWNER"}},
      {match, "conntrack", {"xt_conntrack", "CONFIG_NETFILTER_XT_MATCH_CONNTRACK"}},
      {match, "mark", {"xt_mark", "CONFIG_NETFILTER_XT_MARK"}},
      {match, "cgroup", {"xt_cgroup", "CONFIG_NETFILTER_XT_MATCH_CGROUP"}},
      {match, "connmark", {"xt_connmark", "CONFIG_NETFILTER_XT_CONNMARK"}},
      {match, "set", {"xt_set", "CONFIG_NETFILTER_XT_SET"}},
      {target, "SNAT", {"xt_nat", "CONFIG_NETFILTER_XT_NAT"}},
      {target, "REDIRECT", {"xt_REDIRECT", "CONFIG_NETFILTER_XT_TARGET_REDIRECT"}},
      {target, "TPROXY", {"xt_TPROXY", "CONFIG_NETFILTER_XT_TARGET_TPROXY"}},
      {target, "MARK", {"xt_mark", "CONFIG_NETFILTER_XT_MARK"}},
      {target, "CONNMARK", {"xt_connmark", "CONFIG_NETFILTER_XT_CONNMARK"}},
      {target, "CT", {"xt_CT", "CONFIG_NETFILTER_XT_TARGET_CT"}},
  };
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.kind == kind && row.name == name; });
  return found != std::end(rows) ? found->source : Source{};
}

}  // namespace sidetrack::xt
