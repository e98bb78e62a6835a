// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/match/tcp_flags.h"

#include <fmt/format.h>
#include <linux/netfilter/xt_tcpudp.h>

#include <span>

#include "rule/nft/comparison.h"
#include "rule/nft/fields.h"
#include "rule/nft/writer.h"
#include "rule/xt/spec.h"

namespace sidetrack {
namespace {

constexpr xt::Spec<xt_tcp> flags_spec{"tcp", 0};
constexpr std::uint8_t fin = 0x01, syn = 0x02, rst = 0x04, psh = 0x08, ack = 0x10, urg = 0x20, ece = 0x40, cwr = 0x80;

// By their bits, which is how iptables lists them; it has no names for ECE and CWR.
constexpr std::string_view all_flags[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};

std::string flag_names(std::uint8_t bits) { return bits == 0 ? "NONE" : *bit_names(bits, all_flags); }

std::optional<std::uint32_t> read_flags(std::string_view list) {
  if (list == "NONE") return 0;
  if (list == "ALL") return fin | syn | rst | psh | ack | urg;
  return read_bits(list, all_flags);
}

// Holds what is known of a packet's flags by the place that it has in its connection: the first packet has SYN alone,
// its answer SYN and ACK, a later one, either way, ACK, and FIN if it is the last, which carries data, too. RST, which
// carries none, is not asked about. ECE and CWR are as ends agree on ECN.
struct KnownFlags {
  std::uint8_t known = 0;
  std::uint8_t set = 0;
};
std::span<const KnownFlags> flags_of(const PacketAtHook& packet) {
  constexpr std::uint8_t asked = fin | syn | rst | ack;
  static constexpr KnownFlags first[] = {{static_cast<std::uint8_t>(~(ece | cwr)), syn}};
  static constexpr KnownFlags answers[] = {
      {static_cast<std::uint8_t>(~ece), syn | ack}, {asked, ack}, {asked, ack | fin}};
  static constexpr KnownFlags any[] = {{}};
  constexpr std::span all(answers);
  switch (packet.state) {
    case ConnectionState::new_:
      return first;
    case ConnectionState::reply:
      if (packet.answer == AnswerPlace::any) return all;
      return packet.answer == AnswerPlace::later ? all.subspan(1) : all.first(1);
    case ConnectionState::established:
      return all.subspan(1);
    case ConnectionState::invalid:
      break;
  }
  return any;
}

}  // namespace

std::string TcpFlagsMatch::to_iptables() const {
  return fmt::format("{}--tcp-flags {} {}", exclamation(negated), flag_names(mask), flag_names(flags));
}

std::optional<Match> TcpFlagsMatch::from_iptables(const MatchOption& option) {
  if (option.name == "--syn") return TcpFlagsMatch{fin | syn | rst | ack, syn, option.negated};
  if (option.name != "--tcp-flags") return {};
  const auto space = option.value.find(' ');
  if (space == std::string_view::npos) return {};
  const auto mask = read_flags(option.value.substr(0, space));
  const auto flags = read_flags(option.value.substr(space + 1));
  if (!mask || !flags) return {};
  return TcpFlagsMatch{static_cast<std::uint8_t>(*mask), static_cast<std::uint8_t>(*flags), option.negated};
}

xt::Sources TcpFlagsMatch::sources() { return {}; }  // PortMatch has that of tcp

// `--dport 80 --syn` is one extension.
void TcpFlagsMatch::to_xt(const Rule&, std::vector<xt::Extension>& extensions) const {
  const auto ports = extensions.empty() ? std::nullopt : flags_spec.decode(extensions.back());
  xt_tcp info{};
  info.spts[1] = info.dpts[1] = 65535;
  if (ports && ports->flg_mask == 0 && ports->flg_cmp == 0 && (ports->invflags & XT_TCP_INV_FLAGS) == 0) {
    info = *ports;
    extensions.pop_back();
  }
  info.flg_mask = mask;
  info.flg_cmp = flags;
  if (negated) info.invflags = static_cast<std::uint8_t>(info.invflags | XT_TCP_INV_FLAGS);
  extensions.push_back(flags_spec.encode(info));
}

// PortMatch reads all of an extension tcp.
std::optional<std::vector<Match>> TcpFlagsMatch::from_xt(const xt::ExtensionView&, Family) { return {}; }

// @th,104,8 & 0x17 == 0x2
void TcpFlagsMatch::to_nft(nft::RuleWriter& writer) const {
  std::vector<nft::Expression> expressions;
  writer.require_protocol(expressions);
  expressions.emplace_back(nft::tcp_flags);
  expressions.emplace_back(nft::Bitwise{nft::Data::host(mask), nft::Data::host(std::uint8_t{0})});
  expressions.push_back(nft::equal(negated, nft::Data::host(flags)));
  writer.add(fmt::format("tcp flags & {:#x} {} {:#x}", mask, negated ? "!=" : "==", flags), std::move(expressions));
}

std::optional<nft::Alternatives> TcpFlagsMatch::from_nft(const nft::Comparison& comparison) {
  const nft::Value& value = comparison.value;
  if (!comparison.is_tcp_flags || !comparison.is_one_value()) return {};
  TcpFlagsMatch match{0xff, static_cast<std::uint8_t>(nft::number_of(value, comparison.bounds.front().first)),
                      comparison.negated};
  if (value.changed()) {
    if (nft::number_of(value, value.xor_value) != 0) return {};
    match.mask = static_cast<std::uint8_t>(nft::number_of(value, value.mask));
  }
  return nft::only(match);
}

// xt asks for -p tcp with flags; nf_tables takes the byte that is there.
Truth TcpFlagsMatch::truth(const PacketAtHook& packet) const {
  if (packet.protocol != Protocol::tcp) return packet.native ? Truth::unknown : Truth::no;
  std::optional<Truth> of_all;
  for (const auto& [known_bits, set] : flags_of(packet)) {
    const bool differs = (flags & ~mask) != 0 || ((set ^ flags) & mask & known_bits) != 0;
    const Truth one = !differs && (mask & ~known_bits) != 0 ? Truth::unknown : known(!differs != negated);
    if (of_all.value_or(one) != one) return Truth::unknown;
    of_all = one;
  }
  return *of_all;
}

std::string TcpFlagsMatch::why_not(const PacketAtHook& packet) const {
  if (packet.protocol != Protocol::tcp) return "it is no TCP";
  switch (packet.state) {
    case ConnectionState::new_:
      return "the first packet of a connection has the flag SYN alone";
    case ConnectionState::reply:
      if (packet.answer == AnswerPlace::any) return "an answer has the flag ACK, not RST, and SYN or FIN at most";
      if (packet.answer == AnswerPlace::first) return "the answer to a first packet has the flags SYN and ACK";
      [[fallthrough]];
    default:
      return "a later packet of a connection has the flag ACK, neither SYN nor RST, and FIN at most";
  }
}

void TcpFlagsMatch::ask(Asked& asked) const {
  asked.protocol(Protocol::tcp);
  asked.connection();
}
void TcpFlagsMatch::take_value(const TcpFlagsMatch&) {}  // no option gives it

}  // namespace sidetrack
