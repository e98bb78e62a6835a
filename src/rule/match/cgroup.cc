// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/cgroup.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_cgroup.h>

#include <algorithm>
#include <stdexcept>

#include "model/printable.h"
#include "model/scan.h"
#include "rule/nft/comparison.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_cgroup_info_v2> cgroup{"cgroup", 2, 12};  // a gap, and the kernel's own pointer
static_assert(xt::aligned(sizeof(xt_cgroup_info_v2)) == 528);
static_assert(offsetof(xt_cgroup_info_v2, path) + XT_CGROUP_PATH_MAX == sizeof(xt_cgroup_info_v2) - 12);

}  // namespace

bool is_within_cgroup(std::string_view path, std::string_view of) {
  return path.starts_with(of) && (path.size() == of.size() || path[of.size()] == '/');
}

std::string CgroupMatch::to_iptables() const {
  // Without a path in no words of iptables, as it has none for it.
  if (path.empty()) return fmt::format("{}[cgroup {}, whose path is not known]", exclamation(negated), id);
  // Plain where a shell and iptables-restore take it so.
  const bool plain = path.find_first_of(" \t\"'") == std::string::npos;
  return fmt::format("-m cgroup {}--path {}", exclamation(negated), plain ? printable(path) : in_quotes(path));
}

std::optional<Match> CgroupMatch::from_iptables(const MatchOption& option) {
  if (option.name != "--path" || option.module != "cgroup") return {};
  return CgroupMatch{without_slashes(option.value), 0, option.negated};
}

xt::Sources CgroupMatch::sources() {
  static constexpr xt::Source all[] = {{"cgroup", "xt_cgroup", "CONFIG_NETFILTER_XT_MATCH_CGROUP"}};
  return all;
}

void CgroupMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  xt_cgroup_info_v2 info{};
  if (path.size() >= sizeof info.path) throw std::logic_error("a cgroup's path of more than 511 characters");
  info.has_path = 1;
  info.invert_path = xt::flag(negated);
  std::ranges::copy(path, std::begin(info.path));
  extensions.push_back(cgroup.encode(info));
}

// `--cgroup CLASSID` is about the net_cls controller of cgroup v1.
std::optional<std::vector<Match>> CgroupMatch::from_xt(const xt::ExtensionView& extension, Family) {
  const auto info = cgroup.decode(extension);
  if (!info || info->has_path != 1 || info->has_classid != 0 || info->invert_path > 1 || info->invert_classid != 0)
    return {};
  std::string_view path(info->path, strnlen(info->path, sizeof info->path));
  if (std::ranges::any_of(std::string_view(info->path, sizeof info->path).substr(path.size()),
                          [](char c) { return c != '\0'; }))
    return {};
  return std::vector<Match>{CgroupMatch{without_slashes(path), 0, info->invert_path != 0}};
}

// socket cgroupv2 level 2 "kubepods/pod1"
void CgroupMatch::to_nft(nft::RuleWriter& writer) const {
  const auto level = static_cast<std::uint32_t>(std::ranges::count(path, '/') + 1);
  writer.add(fmt::format("socket cgroupv2 level {} {}\"{}\"", level, nft::not_equal(negated), path),
             {nft::CgroupLoad{level}, nft::equal(negated, nft::Data::host(id))});
}

// The kernel has the number of the cgroup alone.
std::optional<nft::Alternatives> CgroupMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  CgroupMatch match{"", 0, comparison.negated};
  const std::string& id = comparison.bounds.front().first;
  if (value.of != nft::Value::Of::socket || value.changed() || !comparison.is_one_value() ||
      id.size() != sizeof match.id)
    return {};  // several of them, or a part of the number
  std::memcpy(&match.id, id.data(), sizeof match.id);
  if (comparison.context.cgroups != nullptr) match.path = comparison.context.cgroups->path(match.id, value.offset);
  return nft::only(std::move(match));
}

// Without a socket neither holds (net/netfilter/xt_cgroup.c; nft_socket breaks off too).
Truth CgroupMatch::truth(const PacketAtHook& packet) const {
  if (!packet.owner_known) return Truth::unknown;
  if (!packet.owner) return Truth::no;
  if (!packet.cgroup || path.empty()) return Truth::unknown;
  return known(is_within_cgroup(*packet.cgroup, path) != negated);
}

std::string CgroupMatch::why_not(const PacketAtHook& packet) const {
  if (!packet.owner) return "no process sent it, so it has no cgroup";
  return fmt::format("its cgroup is /{}", packet.cgroup.value_or(""));
}

void CgroupMatch::ask(Asked& asked) const { asked.cgroup(path); }

void CgroupMatch::take_value(const CgroupMatch& from) {
  path = from.path;
  id = from.id;
}

}  // namespace sidetrack
