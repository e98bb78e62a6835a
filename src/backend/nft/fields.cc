// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/nft/fields.h"

#include <algorithm>
#include <array>

namespace sidetrack::nft {
namespace {

// In the order of the kernel's hook numbers.
constexpr std::array<std::pair<const char*, std::string_view>, 5> hooks = {{{"prerouting", "PREROUTING"},
                                                                            {"input", "INPUT"},
                                                                            {"forward", "FORWARD"},
                                                                            {"output", "OUTPUT"},
                                                                            {"postrouting", "POSTROUTING"}}};

// iptables' own: NF_IP_PRI_RAW, _MANGLE, _NAT_DST, _NAT_SRC.
std::int32_t priority_of(Table table, std::string_view chain) {
  switch (table) {
    case Table::raw:
      return -300;
    case Table::mangle:
      return -150;
    case Table::nat:
      return chain == "INPUT" || chain == "POSTROUTING" ? 100 : -100;
  }
  return 0;
}

// A chain of type route looks up the route again when a rule changed the mark.
const char* type_of(Table table, std::string_view chain) {
  if (table == Table::nat) return "nat";
  return table == Table::mangle && chain == "OUTPUT" ? "route" : "filter";
}

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
    std::string_view operator()(const Other& other) const { return other.name; }
  };
  return std::visit(Names{}, expression);
}

std::string text(const TableKey& table) {
  const char* family = table.family == NFPROTO_INET ? "inet " : table.family == NFPROTO_IPV4 ? "ip " : "ip6 ";
  return family + table.name;
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

std::optional<Hook> hook_of(Table table, const std::string& chain) {
  for (std::uint32_t number = 0; number < hooks.size(); ++number) {
    if (hooks[number].second == chain) {
      return Hook{type_of(table, chain), hooks[number].first, number, priority_of(table, chain)};
    }
  }
  return std::nullopt;
}

bool hooked_as_iptables(const std::optional<Hook>& hook, Table table, const std::string& chain) {
  const std::optional<Hook> own = hook_of(table, chain);
  if (!own || !hook) return own.has_value() == hook.has_value();
  return hook->type == own->type && hook->number == own->number && hook->priority == own->priority;
}

std::string_view builtin_name(std::uint32_t hook) { return hook < hooks.size() ? hooks[hook].second : ""; }

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
  if (!flag || colon == std::string_view::npos) return {"", std::string(comment)};
  return {std::string(comment.substr(0, colon)), std::string(comment.substr(colon + 2))};
}

}  // namespace sidetrack::nft
