// SPDX-License-Identifier: GPL-2.0-or-later
// Rules in the bytes of each backend, and read again, without a kernel.
#pragma once

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <libnftnl/expr.h>
#include <linux/netfilter.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "apply/diff.h"
#include "kernel/nft/codec.h"
#include "kernel/nft/iptables_rule.h"
#include "kernel/nft/kernel_table.h"
#include "kernel/nft/names.h"
#include "kernel/nft/rule_reader.h"
#include "kernel/survey.h"
#include "mesh/istio_rules.h"
#include "rule/fold.h"
#include "rule/iptables.h"
#include "rule/nft/fields.h"
#include "rule/xt/entry.h"

namespace sidetrack::nft {

// What the kernel lists of a rule.
inline std::vector<std::byte> bytes_of(std::span<const Expression> expressions) {
  alignas(nlmsghdr) static std::array<char, 64UL * 1024> buffer;
  nlmsghdr* message = mnl_nlmsg_put_header(buffer.data());
  for (const Expression& each : expressions) {
    const std::unique_ptr<nftnl_expr, Free<nftnl_expr_free>> made(encode(each));
    nlattr* element = mnl_attr_nest_start(message, NFTA_LIST_ELEM);
    nftnl_expr_build_payload(message, made.get());
    mnl_attr_nest_end(message, element);
  }
  const auto* begin = static_cast<const std::byte*>(mnl_nlmsg_get_payload(message));
  return {begin, begin + mnl_nlmsg_get_payload_len(message)};
}

inline std::string name_of(const Set& set) { return set.anonymous ? fmt::format("__set{}", set.id) : set.name; }

// The table as the kernel holds it.
inline KernelTable stored(const NativeTable& table) {
  KernelTable made;
  made.key = {NFPROTO_INET, own_nft_table};
  for (const Set& set : table.sets) {
    KernelSet& held = made.sets[name_of(set)];
    held.key_size = set.type.size;
    for (const auto& [first, last] : set.values) {
      KernelElement& element = held.elements.emplace_back();
      element.first.assign(first.view().begin(), first.view().end());
      element.last.assign(last.view().begin(), last.view().end());
    }
  }
  for (const NativeChain& chain : table.chains) {
    KernelChain& held = made.chains.emplace_back();
    held.name = chain.name;
    held.hook = chain.hook;
    for (const NativeRule& rule : chain.rules) {
      std::vector<Expression> expressions;
      for (const Statement& statement : rule.statements) {
        for (Expression expression : statement.expressions) {
          if (auto* lookup = std::get_if<Lookup>(&expression)) {
            for (const Set& set : table.sets) {
              if (set.id == lookup->id) lookup->set = name_of(set);
            }
          }
          expressions.push_back(std::move(expression));
        }
      }
      held.rules.push_back({0, bytes_of(expressions), rule.comment});
    }
  }
  return made;
}

}  // namespace sidetrack::nft

namespace sidetrack {

inline std::string lost_between(const Rule& rule, const Rule& read) {
  return same_effect(read, rule) ? "" : iptables_words(rule) + "\n" + iptables_words(read) + "\n";
}

inline std::string lost_in_legacy(const Rule& rule, Family family) {
  std::string label;
  if (const auto* jump = std::get_if<Jump>(&rule.target)) label = jump->chain;
  if (const auto* verdict = std::get_if<Verdict>(&rule.target))
    label = *verdict == Verdict::accept ? "ACCEPT" : *verdict == Verdict::drop ? "DROP" : "RETURN";
  auto bytes = xt::encode_entry(rule, family);
  // The kernel has no name in a standard target.
  if (!label.empty()) std::fill(bytes.end() - 40 + 2, bytes.end() - 40 + 2 + 29, std::byte{});
  const xt::DecodedEntry decoded = xt::decode_entry(bytes, label, family);
  return lost_between(rule, {rule.families, rule.table, rule.chain, decoded.matches, decoded.target, {}, {}});
}

inline std::string lost_in_iptables_nft(const Rule& rule, Family family) {
  const std::map<std::string, nft::KernelSet> none;
  nft::KernelRule stored;
  stored.expressions = nft::bytes_of(nft::iptables_rule(rule, family).expressions);
  const auto read = nft::read_rule(stored, {family, rule.table, rule.chain, {}, none, false});
  if (read.size() != 1) return iptables_words(rule) + ": becomes several\n";
  return lost_between(rule, read.front().rule);
}

inline std::string lost_in_nftables(const Ruleset& wanted) {
  Live live;
  live.backend = BackendKind::nftables;
  nft::Reading reading;
  live.chains = nft::rules_of(nft::stored(nft::native(wanted, istio_rules)), reading, istio_rules);
  for (LiveChain& chain : live.chains) {
    for (LiveRule& rule : chain.rules) rule.ours = true;
  }
  std::string lost;
  for (const ChainDiff& chain : diff(live, wanted).chains) {
    for (const DiffLine& line : chain.lines) {
      if (line.kind != DiffLine::Kind::same) lost += iptables_words(line.rule) + "\n";
    }
  }
  if (fold(wanted).rules != wanted.rules) lost += "folding again changes something\n";
  return lost;
}

// The rules that do not come back as they were; empty: all do.
inline std::string lost_in_bytes(BackendKind backend, const Ruleset& ruleset) {
  const Ruleset wanted = canonical(backend, ruleset);
  if (backend == BackendKind::nftables) return lost_in_nftables(wanted);
  std::string lost;
  for (const Rule& rule : wanted.rules) {
    for (const Family family : rule.families.list())
      lost += backend == BackendKind::iptables_nft ? lost_in_iptables_nft(rule, family) : lost_in_legacy(rule, family);
  }
  return lost;
}

}  // namespace sidetrack
