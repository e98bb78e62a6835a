// SPDX-License-Identifier: GPL-2.0-or-later
// Short names for the parts of a rule, so that the plan reads like the list of rules that it builds.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "pod/ztunnel.h"
#include "rule/ruleset.h"

namespace sidetrack::words {

inline constexpr const char* prerouting = "PREROUTING";
inline constexpr const char* output = "OUTPUT";
inline constexpr const char* input = "INPUT";
inline constexpr const char* postrouting = "POSTROUTING";
inline constexpr const char* istio_postrouting = "ISTIO_POSTRT";
inline constexpr const char* istio_inbound = "ISTIO_INBOUND";
inline constexpr const char* istio_in_redirect = "ISTIO_IN_REDIRECT";
inline constexpr const char* istio_output = "ISTIO_OUTPUT";
inline constexpr const char* istio_redirect = "ISTIO_REDIRECT";
inline constexpr const char* istio_output_dns = "ISTIO_OUTPUT_DNS";
inline constexpr const char* istio_divert = "ISTIO_DIVERT";
inline constexpr const char* istio_tproxy = "ISTIO_TPROXY";
inline constexpr const char* istio_drop = "ISTIO_DROP";
inline constexpr const char* istio_prert = "ISTIO_PRERT";  // of ambient pods

// A match in its negated form: except(destination(range)) is `! -d RANGE`.
template <typename M>
M except(M match) {
  match.negated = true;
  return match;
}

inline InterfaceMatch in(const std::string& name) { return {InterfaceDirection::in, name, false}; }    // -i NAME
inline InterfaceMatch out(const std::string& name) { return {InterfaceDirection::out, name, false}; }  // -o NAME
inline AddressMatch source(const AddressRange& range) { return {End::source, {range}, false}; }
inline AddressMatch destination(const AddressRange& range) { return {End::destination, {range}, false}; }
inline constexpr ProtocolMatch tcp{Protocol::tcp, false};
inline constexpr ProtocolMatch udp{Protocol::udp, false};
inline PortMatch sport(PortRange ports) { return {End::source, {ports}, false}; }
inline PortMatch dport(PortRange ports) { return {End::destination, {ports}, false}; }
inline PortMatch dports(std::uint16_t a, std::uint16_t b) {  // -m multiport --dports A,B
  return {End::destination, {a, b}, false};
}
inline OwnerMatch owner(OwnerKind kind, IdRange ids) { return {kind, {ids}, false}; }
inline CgroupMatch cgroup(const Cgroup& of) { return {of.path, of.id, false}; }
inline ConntrackStateMatch ctstate(int states) { return {static_cast<std::uint8_t>(states), false}; }
inline constexpr ConntrackDirectionMatch an_answer{true};  // -m conntrack --ctdir REPLY
inline MarkMatch mark(std::uint32_t value) { return {value, 0xffffffff, false}; }
inline ConnmarkMatch connmark(std::uint32_t value) { return {value, 0xffffffff, false}; }
inline constexpr MarkMatch of_ztunnel{ztunnel_mark, ztunnel_mask, false};  // -m mark --mark 0x539/0xfff

}  // namespace sidetrack::words
