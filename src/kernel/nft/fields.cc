// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace sidetrack::nft {
namespace {

constexpr std::string_view hooks[] = {"prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"};
constexpr std::pair<ChainType, const char*> types[] = {
    {ChainType::filter, "filter"}, {ChainType::nat, "nat"}, {ChainType::route, "route"}};

}  // namespace

std::string_view name(const Expression& expression) {
  struct Names {
    std::string_view operator()(const MetaLoad&) const { return "meta"; }
    std::string_view operator()(const MetaStore&) const { return "meta"; }
    std::string_view operator()(const CtLoad&) const { return "ct"; }
    std::string_view operator()(const CtStore&) const { return "ct"; }
    std::string_view operator()(const PayloadLoad&) const { return "payload"; }
    std::string_view operator()(const Bitwise&) const { return "bitwise"; }
    std::string_view operator()(const ToNetworkOrder&) const { return "byteorder"; }
    std::string_view operator()(const Compare&) const { return "cmp"; }
    std::string_view operator()(const CompareRange&) const { return "range"; }
    std::string_view operator()(const Lookup&) const { return "lookup"; }
    std::string_view operator()(const Load&) const { return "immediate"; }
    std::string_view operator()(const Decide&) const { return "immediate"; }
    std::string_view operator()(const Count&) const { return "counter"; }
    std::string_view operator()(const RedirectTo&) const { return "redir"; }
    std::string_view operator()(const TproxyTo&) const { return "tproxy"; }
    std::string_view operator()(const XtMatch&) const { return "match"; }
    std::string_view operator()(const XtTarget&) const { return "target"; }
  };
  return std::visit(Names{}, expression);
}

std::string text(const TableKey& table) {
  static constexpr std::pair<std::uint8_t, const char*> families[] = {
      {NFPROTO_INET, "inet"}, {NFPROTO_IPV4, "ip"},       {NFPROTO_IPV6, "ip6"},
      {NFPROTO_ARP, "arp"},   {NFPROTO_NETDEV, "netdev"}, {NFPROTO_BRIDGE, "bridge"},
  };
  const auto* found = std::ranges::find(families, table.family, &std::pair<std::uint8_t, const char*>::first);
  if (found == std::end(families)) return fmt::format("family {} {}", table.family, table.name);
  return fmt::format("{} {}", found->second, table.name);
}

void compare_prefix(const AddressRange& range, const Field& field, bool negated, std::vector<Expression>& expressions) {
  const int length = range.prefix_length().value_or(range.first.bits());
  const std::uint32_t operation = negated ? NFT_CMP_NEQ : NFT_CMP_EQ;
  const auto address = range.first.view();
  if (length % 8 == 0 && length != 0) {
    const std::size_t size = static_cast<std::size_t>(length) / 8;
    expressions.emplace_back(PayloadLoad{field.base, field.offset, static_cast<std::uint32_t>(size)});
    expressions.emplace_back(Compare{operation, Data(address.first(size))});
    return;
  }
  Data none;
  none.size = static_cast<std::uint8_t>(field.size);
  expressions.emplace_back(field.load());
  expressions.emplace_back(Bitwise{Data(range.mask().view()), none});
  expressions.emplace_back(Compare{operation, Data(address)});
}

// NF_NETDEV_INGRESS and NF_NETDEV_EGRESS are 0 and 1, NF_ARP_IN and NF_ARP_OUT, too; NF_INET_INGRESS is 5.
std::uint32_t hook_number(Hook hook) { return static_cast<std::uint32_t>(hook); }

std::optional<Hook> hook_of(std::uint8_t family, std::uint32_t number) {
  if (family == NFPROTO_NETDEV && number <= 1) return number == 0 ? Hook::ingress : Hook::egress;
  if (family == NFPROTO_ARP && number <= 1) return number == 0 ? Hook::input : Hook::output;
  if (family == NFPROTO_NETDEV || family == NFPROTO_ARP || number > static_cast<std::uint32_t>(Hook::ingress))
    return std::nullopt;
  return static_cast<Hook>(number);
}

const char* type_name(ChainType type) {
  return std::ranges::find(types, type, &std::pair<ChainType, const char*>::first)->second;
}

std::optional<ChainType> type_named(std::string_view name) {
  const auto* found = std::ranges::find_if(types, [&](const auto& type) { return type.second == name; });
  if (found == std::end(types)) return std::nullopt;
  return found->first;
}

std::string hook_text(const HookPoint& point) {
  return fmt::format("type {} hook {} priority {}", type_name(point.type), hooks[static_cast<std::size_t>(point.hook)],
                     point.priority);
}

std::string comment(const Reason& reason) {
  constexpr std::size_t longest = 127;
  std::string text = reason.flag.empty() ? reason.sentence : reason.flag + ": " + reason.sentence;
  // nft prints a comment between quotes, and cannot read one that holds some.
  for (char& c : text) {
    if (c == '"') c = '\'';
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  if (text.size() > longest) {
    text.resize(longest);
    // Not in the middle of a UTF-8 character, whose further bytes begin with the bits 10.
    std::size_t last = text.size();
    while (last > 0 && (static_cast<unsigned char>(text[last - 1]) & 0xc0) == 0x80) --last;
    if (last > 0 && static_cast<unsigned char>(text[last - 1]) >= 0x80) text.resize(last - 1);
  }
  return text;
}

Reason reason_of(std::string_view comment) {
  const bool flag = comment.starts_with('-') || comment.starts_with("ISTIO_");
  const auto colon = comment.find(": ");
  const bool has_flag = flag && colon != std::string_view::npos;
  Reason reason{std::string(comment.substr(0, has_flag ? colon : 0)),
                std::string(comment.substr(has_flag ? colon + 2 : 0))};
  reason.shortened = reason.sentence.find("…") != std::string::npos;
  return reason;
}

}  // namespace sidetrack::nft
