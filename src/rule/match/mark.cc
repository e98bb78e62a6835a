// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/mark.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_connmark.h>
#include <linux/netfilter/xt_mark.h>

#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_mark_mtinfo1> mark{"mark", 1, 3};
constexpr xt::Spec<xt_connmark_mtinfo1> connmark{"connmark", 1, 3};
static_assert(xt::aligned(sizeof(xt_mark_mtinfo1)) == 16);
static_assert(xt::aligned(sizeof(xt_connmark_mtinfo1)) == 16);

// What both kinds share, with the same fields.

template <typename Kind>
std::optional<Match> read_option(const MatchOption& option, std::string_view module) {
  if (option.name != "--mark" || option.module != module) return {};
  const auto bits = read_masked(option.value);
  if (!bits) return {};
  return Kind{bits->value, bits->mask, option.negated};
}

template <typename Info, typename Kind>
Info encoded(const Kind& match) {
  Info info{};
  info.mark = match.value;
  info.mask = match.mask;
  info.invert = xt::flag(match.negated);
  return info;
}

template <typename Kind, typename Info>
std::optional<std::vector<Match>> decoded(const std::optional<Info>& info) {
  if (!info || info->invert > 1) return {};
  return std::vector<Match>{Kind{info->mark, info->mask, info->invert != 0}};
}

// meta mark 0x00000539, meta mark & 0x000000ff != 0x00000039
template <typename Kind>
void write(const Kind& match, std::string_view field, nft::Expression load, nft::RuleWriter& writer) {
  const bool is_masked = match.mask != all_bits;
  std::vector<nft::Expression> expressions{std::move(load)};
  if (is_masked) expressions.emplace_back(nft::Bitwise{nft::Data::host(match.mask), nft::Data::host(std::uint32_t{0})});
  expressions.emplace_back(nft::equal(match.negated, nft::Data::host(match.value)));
  const char* operation = match.negated ? "!= " : is_masked ? "== " : "";
  writer.add(fmt::format("{}{} {}{:#010x}", field, is_masked ? fmt::format(" & {:#010x}", match.mask) : "", operation,
                         match.value),
             std::move(expressions));
}

template <typename Kind>
std::optional<nft::Alternatives> compared(const nft::Comparison& comparison) {
  // A rule for each of several marks would look again at what the one before may have set.
  if (!comparison.is_one_value()) return {};
  const nft::Value& value = comparison.value;
  Kind match{nft::number_of(value, comparison.bounds.front().first), all_bits, comparison.negated};
  if (value.changed()) {
    match.mask = nft::number_of(value, value.mask);
    match.value ^= nft::number_of(value, value.xor_value);
  }
  return nft::only(match);
}

}  // namespace

std::string MarkMatch::to_iptables() const {
  return fmt::format("-m mark {}--mark {}", exclamation(negated), masked(value, mask));
}
std::optional<Match> MarkMatch::from_iptables(const MatchOption& option) {
  return read_option<MarkMatch>(option, "mark");
}
xt::Sources MarkMatch::sources() {
  static constexpr xt::Source all[] = {{"mark", "xt_mark", "CONFIG_NETFILTER_XT_MARK"}};
  return all;
}
void MarkMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  extensions.push_back(sidetrack::mark.encode(encoded<xt_mark_mtinfo1>(*this)));
}
std::optional<std::vector<Match>> MarkMatch::from_xt(const xt::ExtensionView& extension, Family) {
  return decoded<MarkMatch>(sidetrack::mark.decode(extension));
}
void MarkMatch::to_nft(nft::RuleWriter& writer) const {
  write(*this, "meta mark", nft::MetaLoad{NFT_META_MARK}, writer);
}
std::optional<nft::Alternatives> MarkMatch::from_nft(const nft::Comparison& comparison) {
  if (!comparison.value.is_meta(NFT_META_MARK)) return {};
  return compared<MarkMatch>(comparison);
}
Truth MarkMatch::truth(const PacketAtHook& packet) const { return known(((packet.mark & mask) == value) != negated); }
std::string MarkMatch::why_not(const PacketAtHook& packet) const {
  return packet.mark == 0 ? "it has no mark" : fmt::format("its mark is {}", packet.mark);
}
void MarkMatch::ask(Asked& asked) const { asked.mark(value, mask); }
void MarkMatch::take_value(const MarkMatch& from) { value = from.value; }

std::string ConnmarkMatch::to_iptables() const {
  return fmt::format("-m connmark {}--mark {}", exclamation(negated), masked(value, mask));
}
std::optional<Match> ConnmarkMatch::from_iptables(const MatchOption& option) {
  return read_option<ConnmarkMatch>(option, "connmark");
}
xt::Sources ConnmarkMatch::sources() {
  static constexpr xt::Source all[] = {{"connmark", "xt_connmark", "CONFIG_NETFILTER_XT_CONNMARK"}};
  return all;
}
void ConnmarkMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  extensions.push_back(connmark.encode(encoded<xt_connmark_mtinfo1>(*this)));
}
std::optional<std::vector<Match>> ConnmarkMatch::from_xt(const xt::ExtensionView& extension, Family) {
  return decoded<ConnmarkMatch>(connmark.decode(extension));
}
// ct mark 0x00000539
void ConnmarkMatch::to_nft(nft::RuleWriter& writer) const { write(*this, "ct mark", nft::CtLoad{NFT_CT_MARK}, writer); }
std::optional<nft::Alternatives> ConnmarkMatch::from_nft(const nft::Comparison& comparison) {
  if (!comparison.value.is_ct(NFT_CT_MARK)) return {};
  return compared<ConnmarkMatch>(comparison);
}
// Without a connection neither `--mark` nor `! --mark` holds (net/netfilter/xt_connmark.c; nft_ct breaks off too).
Truth ConnmarkMatch::truth(const PacketAtHook& packet) const {
  return known(packet.tracked && packet.connmark && ((*packet.connmark & mask) == value) != negated);
}
std::string ConnmarkMatch::why_not(const PacketAtHook& packet) const {
  if (const char* without = without_connection(packet)) return without;
  return *packet.connmark == 0 ? "its connection has no mark"
                               : fmt::format("its connection's mark is {}", *packet.connmark);
}
void ConnmarkMatch::ask(Asked& asked) const { asked.connmark(value, mask); }
void ConnmarkMatch::take_value(const ConnmarkMatch& from) { value = from.value; }

}  // namespace sidetrack
