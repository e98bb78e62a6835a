// SPDX-License-Identifier: GPL-2.0-or-later
// Rules of legacy iptables as the kernel hands them out: any bytes as an entry, and as one extension. What is
// understood entirely means the same after it is written and read again.
#include <algorithm>
#include <stdexcept>

#include "fuzz.h"
#include "rule/iptables.h"
#include "rule/xt/entry.h"
#include "rule/xt/rule_extensions.h"

using namespace sidetrack;

namespace {

constexpr std::string_view extensions[] = {
    "tcp",   "udp",      "multiport", "owner",    "conntrack", "mark",     "connmark",   "REDIRECT", "TPROXY",
    "MARK",  "CONNMARK", "CT",        "comment",  "DNAT",      "SNAT",     "MASQUERADE", "REJECT",   "LOG",
    "NFLOG", "iprange",  "NOTRACK",   "addrtype", "state",     "CLASSIFY", "TRACE",      "?"};

std::string label_of(const Target& target) {
  if (const auto* jump = std::get_if<Jump>(&target)) return jump->chain;
  const auto* verdict = std::get_if<Verdict>(&target);
  if (verdict == nullptr) return "";
  return *verdict == Verdict::accept ? "ACCEPT" : *verdict == Verdict::drop ? "DROP" : "RETURN";
}

void write_and_read(const xt::DecodedEntry& decoded, Family family) {
  Rule rule{family, Table::nat, "C", decoded.matches, decoded.target, {}, {}};
  static_cast<void>(iptables_words(rule));
  if (!is_understood(rule)) return;
  std::vector<std::byte> bytes;
  try {
    bytes = xt::encode_entry(rule, family);
  } catch (const std::logic_error&) {  // what is only read
    return;
  }
  if (const auto* jump = std::get_if<Jump>(&rule.target); jump != nullptr && jump->is_goto) return;  // no plan has it
  // The kernel has no name in a standard target.
  const std::string label = label_of(rule.target);
  if (!label.empty()) std::fill(bytes.end() - 40 + 2, bytes.end() - 40 + 2 + 29, std::byte{});
  const xt::DecodedEntry again = xt::decode_entry(bytes, label, family);
  const Rule reread{family, Table::nat, "C", again.matches, again.target, {}, {}};
  fuzz::require(same_effect(reread, rule), iptables_words(rule) + "\n" + iptables_words(reread));
}

void entry(std::span<const std::byte> bytes, Family family) {
  for (const std::string_view label : {"", "ACCEPT", "ISTIO_OUTPUT"}) {
    try {
      const xt::DecodedEntry decoded = xt::decode_entry(bytes, label, family);
      static_cast<void>(xt::copy_entry(bytes, label, family));
      write_and_read(decoded, family);
    } catch (const Error& error) {
      fuzz::require_readable(error);
    }
  }
}

void extension(fuzz::Choices& choices, Family family) {
  const std::string_view name = choices.of(extensions);
  const auto revision = static_cast<std::uint8_t>(choices.below(6));
  constexpr std::size_t sizes[] = {8, 16, 24, 32, 40, 48, 56, 72, 168, 4, 0, 256, 44};
  const std::size_t size = choices.of(sizes);
  const auto given = choices.bytes(size);
  std::vector<std::byte> bytes(size);
  std::ranges::transform(given, bytes.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
  const xt::ExtensionView view(name, revision, bytes);
  for (const Protocol protocol : {Protocol::tcp, Protocol::udp}) {
    xt::DecodedEntry decoded;
    decoded.matches.push_back(ProtocolMatch{protocol, false});
    for (Match& match : xt::decode_match(view, family)) decoded.matches.push_back(std::move(match));
    decoded.target = xt::decode_target(view, family);
    write_and_read(decoded, family);
    decoded.target = Verdict::return_;
    write_and_read(decoded, family);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Family family = (data[0] & 1U) != 0 ? Family::ipv6 : Family::ipv4;
  if ((data[0] & 2U) != 0) {
    fuzz::Choices choices({data + 1, size - 1});
    extension(choices, family);
  } else {
    entry(std::as_bytes(std::span(data + 1, size - 1)), family);
  }
  return 0;
}
