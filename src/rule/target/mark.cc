// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/target/mark.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_connmark.h>
#include <linux/netfilter/xt_mark.h>

#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_mark_tginfo2> set_mark{"MARK", 2};
constexpr xt::Spec<xt_connmark_tginfo2> set_connmark{"CONNMARK", 2, 1};
constexpr xt::Spec<xt_connmark_tginfo1> set_connmark_before{"CONNMARK", 1, 3};  // without a shift
static_assert(xt::aligned(sizeof(xt_mark_tginfo2)) == 8);
static_assert(xt::aligned(sizeof(xt_connmark_tginfo2)) == 16);

constexpr xt::Source connmark_sources[] = {{"CONNMARK", "xt_connmark", "CONFIG_NETFILTER_XT_CONNMARK"}};

// --set-xmark VALUE/MASK: the mask's bits become 0, then the value's are inverted. --set-mark VALUE/MASK: the value's
// bits become 1, the others of the mask 0. The others are --set-xmark N/0, N/N and 0/~N.
std::optional<Masked> read_set_mark(TargetWords words, std::string_view name) {
  if (words.size() != 4 || words[1] != name) return {};
  auto bits = read_masked(words[3]);
  const std::string& option = words[2];
  if (!bits || option == "--set-xmark") return bits;
  if (option == "--set-mark") return Masked{bits->value, bits->mask | bits->value};
  if (option == "--xor-mark") return Masked{bits->value, 0};
  if (option == "--or-mark") return Masked{bits->value, bits->value};
  if (option == "--and-mark") return Masked{0, ~bits->value};
  return {};
}

// meta mark set 0x00000539, ct mark set ct mark & 0xfffff000 ^ 0x00000111
void write(std::string_view field, std::uint32_t mark, std::uint32_t mask, nft::Expression load, nft::Expression store,
           nft::RuleWriter& writer) {
  if (mask == all_bits) {
    return writer.add(fmt::format("{} set {:#010x}", field, mark),
                      {nft::Load{nft::Data::host(mark)}, std::move(store)});
  }
  writer.add(fmt::format("{0} set {0} & {1:#010x} ^ {2:#010x}", field, ~mask, mark),
             {std::move(load), nft::Bitwise{nft::Data::host(~mask), nft::Data::host(mark)}, std::move(store)});
}

bool inverts_nothing(const Connmark& made) {
  return (made.kind == Connmark::Kind::save ? made.nfmask & ~made.ctmask : made.ctmask & ~made.nfmask) == 0;
}

// What the kernel's CONNMARK says: `Info` is of revision 1 or 2, which share these fields.
template <typename Info>
std::optional<Target> decoded(const Info& info) {
  // The mask of the packet's mark is not used then: iptables writes all bits, others none.
  if (info.mode == XT_CONNMARK_SET && (info.nfmask == all_bits || info.nfmask == 0)) {
    return SetConnmark{info.ctmark, info.ctmask};
  }
  if (info.mode != XT_CONNMARK_SAVE && info.mode != XT_CONNMARK_RESTORE) return {};
  if (info.ctmark != 0) return {};
  const bool save = info.mode == XT_CONNMARK_SAVE;
  const Connmark made{save ? Connmark::Kind::save : Connmark::Kind::restore, info.nfmask, info.ctmask};
  if (inverts_nothing(made)) return made;
  return UnknownTarget{fmt::format("-j CONNMARK --{}-mark --nfmask {:#x} --ctmask {:#x}", save ? "save" : "restore",
                                   info.nfmask, info.ctmask)};
}

}  // namespace

std::string SetMark::to_iptables() const {
  if (mask == all_bits) return fmt::format("-j MARK --set-mark {}", mark);
  return fmt::format("-j MARK --set-xmark {:#x}/{:#x}", mark, mask);
}
std::optional<Target> SetMark::from_iptables(TargetWords words) {
  const auto bits = read_set_mark(words, "MARK");
  if (!bits) return {};
  return SetMark{bits->value, bits->mask};
}
xt::Sources SetMark::sources() {
  static constexpr xt::Source all[] = {{"MARK", "xt_mark", "CONFIG_NETFILTER_XT_MARK"}};
  return all;
}
xt::Extension SetMark::to_xt(Family) const { return set_mark.encode({mark, mask}); }
std::optional<Target> SetMark::from_xt(const xt::ExtensionView& extension, Family) {
  const auto info = set_mark.decode(extension);
  if (!info) return {};
  return SetMark{info->mark, info->mask};
}
void SetMark::to_nft(nft::RuleWriter& writer) const {
  write("meta mark", mark, mask, nft::MetaLoad{NFT_META_MARK}, nft::MetaStore{NFT_META_MARK}, writer);
}

std::string Connmark::to_iptables() const {
  const std::string words = kind == Kind::save ? "-j CONNMARK --save-mark" : "-j CONNMARK --restore-mark";
  if (nfmask == all_bits && ctmask == all_bits) return words;
  return words + fmt::format(" --nfmask {:#x} --ctmask {:#x}", nfmask, ctmask);
}
std::optional<Target> Connmark::from_iptables(TargetWords words) {
  if (words.size() % 2 == 0 || words[1] != "CONNMARK") return {};
  if (words[2] != "--save-mark" && words[2] != "--restore-mark") return {};
  Connmark made = words[2] == "--save-mark" ? save : restore;
  for (std::size_t i = 3; i < words.size(); i += 2) {
    const auto bits = read_number<std::uint32_t>(words[i + 1]);
    const bool of_both = words[i] == "--mask";
    if (!bits || (!of_both && words[i] != "--nfmask" && words[i] != "--ctmask")) return {};
    if (of_both || words[i] == "--nfmask") made.nfmask = *bits;
    if (of_both || words[i] == "--ctmask") made.ctmask = *bits;
  }
  return inverts_nothing(made) ? std::optional(made) : std::nullopt;
}
xt::Sources Connmark::sources() { return connmark_sources; }
xt::Extension Connmark::to_xt(Family) const {
  xt_connmark_tginfo2 info{};
  info.ctmask = ctmask;
  info.nfmask = nfmask;
  info.mode = kind == Kind::save ? XT_CONNMARK_SAVE : XT_CONNMARK_RESTORE;
  return set_connmark.encode(info);
}
// Reads SetConnmark, too.
std::optional<Target> Connmark::from_xt(const xt::ExtensionView& extension, Family) {
  if (const auto info = set_connmark_before.decode(extension)) return decoded(*info);
  if (const auto info = set_connmark.decode(extension); info && info->shift_bits == 0 && info->shift_dir == 0) {
    return decoded(*info);
  }
  return {};
}
void Connmark::to_nft(nft::RuleWriter& writer) const {
  if (nfmask != all_bits || ctmask != all_bits) writer.refuse();
  if (kind == Kind::save) {
    writer.add("ct mark set meta mark", {nft::MetaLoad{NFT_META_MARK}, nft::CtStore{NFT_CT_MARK}});
  } else {
    writer.add("meta mark set ct mark", {nft::CtLoad{NFT_CT_MARK}, nft::MetaStore{NFT_META_MARK}});
  }
}

std::string SetConnmark::to_iptables() const { return fmt::format("-j CONNMARK --set-xmark {:#x}/{:#x}", mark, mask); }
std::optional<Target> SetConnmark::from_iptables(TargetWords words) {
  const auto bits = read_set_mark(words, "CONNMARK");
  if (!bits) return {};
  return SetConnmark{bits->value, bits->mask};
}
xt::Sources SetConnmark::sources() { return connmark_sources; }
xt::Extension SetConnmark::to_xt(Family) const {
  xt_connmark_tginfo2 info{};
  info.ctmark = mark;
  info.ctmask = mask;
  info.nfmask = all_bits;
  info.mode = XT_CONNMARK_SET;
  return set_connmark.encode(info);
}
std::optional<Target> SetConnmark::from_xt(const xt::ExtensionView&, Family) { return {}; }  // Connmark does
void SetConnmark::to_nft(nft::RuleWriter& writer) const {
  write("ct mark", mark, mask, nft::CtLoad{NFT_CT_MARK}, nft::CtStore{NFT_CT_MARK}, writer);
}

}  // namespace sidetrack
