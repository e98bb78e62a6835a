// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/nft/writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/error.h"
#include "rule/fold.h"
#include "rule/iptables.h"
#include "rule/nft/fields.h"

namespace sidetrack::nft {

std::pair<std::string, Lookup> Sets::holding(Set set, bool negated, const std::string& name) {
  if (!set.anonymous) {
    const auto same = std::ranges::find_if(
        all_, [&](const Set& other) { return other.type.number == set.type.number && other.values == set.values; });
    if (same != all_.end()) return {"@" + same->name, {same->name, negated, same->id}};
  }
  set.id = static_cast<std::uint32_t>(all_.size() + 1);
  set.name = set.anonymous ? "__set%d" : unused(name);
  std::string text = set.anonymous ? fmt::format("{{ {} }}", fmt::join(set.texts(), ", ")) : "@" + set.name;
  Lookup lookup{set.name, negated, set.id};
  all_.push_back(std::move(set));
  return {std::move(text), std::move(lookup)};
}

std::string Sets::unused(const std::string& name) {
  std::string candidate = name;
  for (int n = 2; !names_.insert(candidate).second; ++n) candidate = fmt::format("{}-{}", name, n);
  return candidate;
}

Compare equal(bool negated, const Data& value) { return {std::uint32_t{negated ? NFT_CMP_NEQ : NFT_CMP_EQ}, value}; }

std::string chain_name(Table table, const std::string& chain) { return fmt::format("{}-{}", name(table), chain); }

RuleWriter::RuleWriter(const Rule& rule, Families arriving, Sets& sets, const char* set_name)
    : rule_(rule), sets_(sets), set_name_(set_name) {
  for (const Match& match : rule.matches) {
    has_address_ = has_address_ || std::holds_alternative<AddressMatch>(match);
    has_port_ = has_port_ || std::holds_alternative<PortMatch>(match);
    if (const auto* protocol = std::get_if<ProtocolMatch>(&match); protocol != nullptr && !protocol->negated) {
      protocol_ = protocol->protocol;
    }
  }
  if (rule.families != arriving && rule.families != Families::both() && !has_address_) {
    only_family_ = rule.families.list().front();
    // meta nfproto ipv4
    add(fmt::format("meta nfproto {}", name(*only_family_)), {});
    require_family(*only_family_, statements_.back().expressions);
  }
}

std::optional<Family> RuleWriter::only_family() const {
  if (has_address_) return rule_.families.list().front();
  return only_family_;
}

void RuleWriter::require_family(Family family, std::vector<Expression>& expressions) {
  if (std::exchange(family_required_, true)) return;
  expressions.emplace_back(MetaLoad{NFT_META_NFPROTO});
  expressions.emplace_back(equal(false, Data::host(nfproto(family))));
}

Protocol RuleWriter::protocol_of_ports() const {
  if (protocol_ && has_ports(*protocol_)) return *protocol_;
  throw Error(ExitCode::usage, "a match of ports without -p tcp or -p udp: " + iptables_words(rule_));
}

void RuleWriter::require_protocol(std::vector<Expression>& expressions) {
  const Protocol protocol = protocol_of_ports();
  if (std::exchange(protocol_required_, true)) return;
  expressions.emplace_back(MetaLoad{NFT_META_L4PROTO});
  expressions.emplace_back(equal(false, Data::host(static_cast<std::uint8_t>(protocol))));
}

void RuleWriter::refuse() const {
  throw Error(ExitCode::failed, "a rule that is not understood cannot be written: " + iptables_words(rule_));
}

void RuleWriter::compare(const EncodedRange& value, bool negated, std::vector<Expression>& expressions) {
  if (value.first == value.last) {
    expressions.emplace_back(equal(negated, value.first));
  } else if (negated) {
    expressions.emplace_back(CompareRange{true, value.first, value.last});
  } else {
    expressions.emplace_back(Compare{NFT_CMP_GTE, value.first});
    expressions.emplace_back(Compare{NFT_CMP_LTE, value.last});
  }
}

// Returns the name of the set that holds the rule's values.
std::string RuleWriter::name_of_set(const std::string& suffix) const {
  if (set_name_ == nullptr) return chain_name(rule_.table, rule_.chain) + suffix;
  for (const Match& match : rule_.matches) {
    const auto* owner = std::get_if<OwnerMatch>(&match);
    if (owner != nullptr)
      return fmt::format("{}-{}s{}", set_name_, owner->kind == OwnerKind::uid ? "uid" : "gid", suffix);
  }
  return set_name_ + suffix;
}

// A named set is a tree of intervals, also of single values. Of those alone the kernel would make a hash table, which
// it enlarges in the background while we read back: a dump then lacks some and shows others twice. Ports it would
// keep in a bitmap with a list that it walks for each new one: 32,768 take five seconds (Linux 6.18).
std::string RuleWriter::look_up(Set set, bool negated, const std::string& suffix,
                                std::vector<Expression>& expressions) {
  set.anonymous = set.values.size() <= longest_in_a_rule;
  set.interval = set.interval || !set.anonymous;
  const std::string name = set.anonymous ? "" : name_of_set(suffix);
  auto [text, lookup] = sets_.holding(std::move(set), negated, name);
  expressions.emplace_back(std::move(lookup));
  return text;
}

}  // namespace sidetrack::nft
