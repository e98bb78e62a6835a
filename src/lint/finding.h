// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack::lint {

// What can be wrong. Scripts ignore findings by these numbers: none is used anew.
enum class Code : std::uint8_t {
  option_without_effect = 1,
  value_without_effect,
  loop,
  escape,
  family_not_captured,
  proxy_port_captured,
  probe_port_captured,
  runs_as_proxy,
  taken_by_others,
  proxy_hindered,
  not_known,
  forwarded_replies_lost,
  forwarded_captured,
};

// All text is string literals.
struct CodeInfo {
  Code code;
  std::string_view name;     // "ST001"
  std::string_view title;    // "option without effect"
  std::string_view meaning;  // a sentence
};
[[nodiscard]] std::span<const CodeInfo> codes();
[[nodiscard]] const CodeInfo& info(Code code);

struct Finding {
  Code code{};
  std::string subject;  // what it is about: "-x 10.1.0.0/16", "outbound tcp, IPv6", "container web"
  std::string message;  // what is wrong with it
  std::string witness;  // a packet that shows it: what stands after `sidetrack explain`; empty: there is none
  std::string ending;   // what becomes of that, and what explain says: "leaves untouched, by eth0"
  std::string remedy;   // what to do
  // Counts those behind it that differ in their packets and rules alone, as of 1,500 services, and are not listed.
  std::size_t more = 0;
};
using Findings = std::vector<Finding>;

// "ST004 outbound tcp, IPv4: asked to be captured by -i '*'; `out tcp 10.1.2.3:80 …` leaves untouched, by eth0"
[[nodiscard]] std::string one_line(const Finding& finding);

}  // namespace sidetrack::lint
