// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/names.h"

#include <fmt/format.h>
#include <linux/netfilter.h>

#include <algorithm>

#include "kernel/nft/native.h"

namespace sidetrack::nft {
namespace {

constexpr std::string_view hooks[] = {"prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"};

using NamedFamily = std::pair<std::string_view, std::uint8_t>;
constexpr NamedFamily nft_families[] = {{"inet", NFPROTO_INET}, {"ip", NFPROTO_IPV4},       {"ip6", NFPROTO_IPV6},
                                        {"arp", NFPROTO_ARP},   {"netdev", NFPROTO_NETDEV}, {"bridge", NFPROTO_BRIDGE}};

}  // namespace

std::string text(const TableKey& table) {
  const auto* found = std::ranges::find(nft_families, table.family, &NamedFamily::second);
  if (found == std::end(nft_families)) return fmt::format("family {} {}", table.family, table.name);
  return fmt::format("{} {}", found->first, table.name);
}

std::optional<std::uint8_t> family_named(std::string_view name) {
  const auto* found = std::ranges::find(nft_families, name, &NamedFamily::first);
  return found != std::end(nft_families) ? std::optional(found->second) : std::nullopt;
}

// NF_NETDEV_INGRESS and NF_NETDEV_EGRESS are 0 and 1, NF_ARP_IN and NF_ARP_OUT, too; NF_INET_INGRESS is 5.
// NF_BR_PRE_ROUTING and those after it have the numbers of NF_INET_PRE_ROUTING …
std::uint32_t hook_number(Hook hook) { return static_cast<std::uint32_t>(hook); }

std::optional<Hook> hook_of(std::uint8_t family, std::uint32_t number) {
  if (family == NFPROTO_NETDEV && number <= 1) return number == 0 ? Hook::ingress : Hook::egress;
  if (family == NFPROTO_ARP && number <= 1) return number == 0 ? Hook::input : Hook::output;
  if (family == NFPROTO_NETDEV || family == NFPROTO_ARP || number > static_cast<std::uint32_t>(Hook::ingress))
    return std::nullopt;
  return static_cast<Hook>(number);
}

std::optional<ChainType> type_named(std::string_view wanted) {
  const auto* found = std::ranges::find(all_chain_types, wanted, [](ChainType type) { return name(type); });
  if (found == std::end(all_chain_types)) return std::nullopt;
  return *found;
}

std::optional<Hook> hook_called(std::string_view name) {
  const auto* found = std::ranges::find(hooks, name);
  return found != std::end(hooks) ? std::optional(static_cast<Hook>(found - hooks)) : std::nullopt;
}

std::string hook_text(const HookPoint& point) {
  return fmt::format("type {} hook {} priority {}", name(point.type), hooks[static_cast<std::size_t>(point.hook)],
                     point.priority);
}

std::string comment(const std::string& flag, const std::string& sentence) {
  constexpr std::size_t longest = 127;
  std::string text = flag.empty() ? sentence : flag + ": " + sentence;
  // nft prints a comment between quotes, and cannot read one that holds some.
  for (char& c : text) {
    if (c == '"') c = '\'';
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  if (text.size() > longest) {
    constexpr std::string_view rest = " …";
    const auto end = text.find_last_of(' ', longest - rest.size());  // whole words, and so whole UTF-8 characters
    text.resize(end == std::string::npos ? 0 : end);
    text += rest;
  }
  return text;
}

}  // namespace sidetrack::nft
