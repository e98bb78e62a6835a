// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/interface.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "model/error.h"
#include "model/interface_pattern.h"
#include "model/printable.h"
#include "rule/iptables.h"
#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "system/descriptor.h"

namespace sidetrack {
namespace {

constexpr std::uint32_t loopback_index = 1;  // LOOPBACK_IFINDEX, in every namespace

// Asks as if_indextoname(3), by a socket that every sandbox that reads rules allows.
std::optional<std::string> name_of_interface(std::uint32_t number) {
  if (number == loopback_index) return "lo";
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(number);
  if (!any.valid() || ioctl(any.get(), SIOCGIFNAME, &request) != 0) return std::nullopt;
  return request.ifr_name;
}

// "eth0" for the name with its final zero, "eth+" where a name is compared only so far.
std::optional<std::string> compared_name(const nft::Bounds& bounds) {
  const auto& [first, last] = bounds;
  const std::size_t end = std::min(first.find('\0'), first.size());
  std::string name = first.substr(0, end);
  if (name.empty() || first.find_first_not_of('\0', end) != std::string::npos) return std::nullopt;
  if (end < first.size() && first == last) {
    if (name.ends_with('+')) return std::nullopt;  // would read as a wildcard
    return name;
  }
  const bool rest_is_any = last.starts_with(name) && last.find_first_not_of('\xff', end) == std::string::npos;
  if (first.size() >= IFNAMSIZ && first == last) return std::nullopt;  // longer than any name
  if (!rest_is_any) return std::nullopt;
  return name + '+';
}

// The direction that a key of meta is about, and whether its values are names, or else numbers of interfaces.
struct Key {
  std::uint32_t key;
  InterfaceDirection direction;
  bool by_name;
};
constexpr Key keys[] = {
    {NFT_META_IIFNAME, InterfaceDirection::in, true},
    {NFT_META_OIFNAME, InterfaceDirection::out, true},
    {NFT_META_IIF, InterfaceDirection::in, false},
    {NFT_META_OIF, InterfaceDirection::out, false},
};

}  // namespace

std::string InterfaceMatch::to_iptables() const {
  return fmt::format("{}-{} {}", exclamation(negated), direction == InterfaceDirection::in ? "i" : "o",
                     printable(name));
}

std::optional<Match> InterfaceMatch::from_iptables(const MatchOption& option) {
  if (option.name != "-i" && option.name != "-o") return {};
  return InterfaceMatch{option.name == "-i" ? InterfaceDirection::in : InterfaceDirection::out,
                        std::string(option.value), option.negated};
}

xt::Sources InterfaceMatch::sources() { return {}; }
void InterfaceMatch::to_xt(const Rule&, std::vector<xt::Extension>&) const {}
std::optional<std::vector<Match>> InterfaceMatch::from_xt(const xt::ExtensionView&, Family) { return {}; }

// iifname "eth0", oifname != "eth*": a name that may go on is compared as far as it is given
void InterfaceMatch::to_nft(nft::RuleWriter& writer) const {
  const bool wildcard = name.ends_with('+');
  const std::string_view given = std::string_view(name).substr(0, name.size() - (wildcard ? 1 : 0));
  if (given.empty()) throw Error(ExitCode::usage, "no packet can match: " + iptables_words(writer.rule()));
  nft::Data data = nft::Data::text(given);
  if (!wildcard) data.size = IFNAMSIZ;
  const bool in = direction == InterfaceDirection::in;
  writer.add(
      fmt::format("{} {}\"{}{}\"", in ? "iifname" : "oifname", nft::not_equal(negated), given, wildcard ? "*" : ""),
      {nft::MetaLoad{in ? std::uint32_t{NFT_META_IIFNAME} : std::uint32_t{NFT_META_OIFNAME}},
       nft::equal(negated, data)});
}

std::optional<nft::Alternatives> InterfaceMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  const auto* found = std::ranges::find(keys, value.key, &Key::key);
  if (value.of != nft::Value::Of::meta || found == std::end(keys) || value.changed()) return {};
  std::vector<Match> matches;
  for (const nft::Bounds& each : comparison.bounds) {
    const auto number = [&] {
      return each.first == each.second ? name_of_interface(nft::number_of(value, each.first)) : std::nullopt;
    };
    const auto name = found->by_name ? compared_name(each) : number();
    if (!name) return {};
    matches.emplace_back(InterfaceMatch{found->direction, *name, comparison.negated});
  }
  return nft::each_of(std::move(matches), comparison.negated);
}

Truth InterfaceMatch::truth(const PacketAtHook& packet) const {
  return known(matches_interface(name, direction == InterfaceDirection::in ? packet.in : packet.out) != negated);
}

std::string InterfaceMatch::why_not(const PacketAtHook& packet) const {
  const bool in = direction == InterfaceDirection::in;
  const std::string& has = in ? packet.in : packet.out;
  if (has.empty()) return in ? "no interface yet: it is sent from here" : "no interface yet: it is not routed";
  return fmt::format("it {} by {}", in ? "comes in" : "goes out", has);
}

void InterfaceMatch::ask(Asked& asked) const { asked.interface(direction, name); }
void InterfaceMatch::take_value(const InterfaceMatch& from) { name = from.name; }

}  // namespace sidetrack
