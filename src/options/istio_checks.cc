// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/istio_checks.h"

#include <algorithm>
#include <cstdint>

#include "model/address.h"
#include "model/scan.h"
#include "options/values.h"

namespace sidetrack {
namespace {

template <typename Accepts>
bool all_items(std::string_view list, const Accepts& accepts) {
  return std::ranges::all_of(split_at_each(list, ','), accepts);
}

bool is_mode(std::string_view text) { return text == "REDIRECT" || text == "TPROXY" || text == "NONE"; }

// Of netip.ParsePrefix: with its length, and with nothing around it.
bool is_range(std::string_view text) {
  return text.find('/') != std::string_view::npos && AddressRange::parse(text).has_value();
}
bool are_ranges(std::string_view text) { return text.empty() || all_items(text, is_range); }
bool are_ranges_or_all(std::string_view text) { return text == "*" || are_ranges(text); }

bool is_port(std::string_view text) { return to_number<std::uint16_t>(trimmed(text)).has_value(); }
bool are_ports(std::string_view text) { return trimmed(text).empty() || all_items(text, is_port); }
bool are_ports_or_all(std::string_view text) { return text == "*" || are_ports(text); }

bool is_interface(std::string_view text) {
  constexpr std::size_t longest = 15;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string_view name = trimmed(text);
  return !name.empty() && name.size() <= longest && is_letter(name[0]) && std::ranges::all_of(name, [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  });
}
bool are_interfaces(std::string_view text) { return text.empty() || all_items(text, is_interface); }

bool is_template(std::string_view text) { return !trimmed(text).empty(); }
bool are_templates(std::string_view text) { return all_items(text, is_template); }

bool is_number(std::string_view text) { return to_number<std::uint32_t>(text).has_value(); }

bool is_boolean(std::string_view text) { return options::to_boolean(text).has_value(); }

struct Check {
  std::string_view annotation;
  bool (*accepts)(std::string_view value);
  std::string_view expected;
};
constexpr std::string_view ranges = "address ranges with their lengths, as 10.0.0.0/8,10.1.2.3/32, without blanks";
constexpr std::string_view ports = "ports from 0 to 65535, separated by commas";
constexpr std::string_view interfaces = "names of interfaces that begin with a letter";
constexpr std::string_view a_number = "a number from 0 to 4294967295";
constexpr std::string_view quantity = "a quantity, as 100m or 1Gi";
constexpr Check checks[] = {
    {mode_annotation, is_mode, "one of REDIRECT|TPROXY|NONE"},
    {status_port_annotation, is_port, "a port from 0 to 65535"},
    {"readiness.status.sidecar.istio.io/initialDelaySeconds", is_number, a_number},
    {"readiness.status.sidecar.istio.io/periodSeconds", is_number, a_number},
    {"readiness.status.sidecar.istio.io/failureThreshold", is_number, a_number},
    {"traffic.sidecar.istio.io/includeOutboundIPRanges", are_ranges_or_all, ranges},
    {"traffic.sidecar.istio.io/excludeOutboundIPRanges", are_ranges, ranges},
    {"traffic.sidecar.istio.io/includeInboundPorts", are_ports_or_all, ports},
    {"traffic.sidecar.istio.io/excludeInboundPorts", are_ports, ports},
    {"traffic.sidecar.istio.io/excludeOutboundPorts", are_ports, ports},
    {"traffic.sidecar.istio.io/excludeInterfaces", are_interfaces, interfaces},
    {"traffic.sidecar.istio.io/kubevirtInterfaces", are_interfaces, interfaces},
    {"istio.io/reroute-virtual-interfaces", are_interfaces, interfaces},
    {templates_annotation, are_templates, "names of templates, separated by commas"},
    {"prometheus.istio.io/merge-metrics", is_boolean, "true or false"},
    {"sidecar.istio.io/proxyCPU", is_quantity, quantity},
    {"sidecar.istio.io/proxyMemory", is_quantity, quantity},
    {"sidecar.istio.io/proxyCPULimit", is_quantity, quantity},
    {"sidecar.istio.io/proxyMemoryLimit", is_quantity, quantity},
};

}  // namespace

bool is_quantity(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const auto take_digits = [&] {
    const auto count = std::min(text.find_first_not_of(digits), text.size());
    text.remove_prefix(count);
    return count;
  };
  auto count = take_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    count += take_digits();
  }
  if (count == 0) return false;
  constexpr std::string_view units[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                        "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  if (std::ranges::find(units, text) != std::end(units)) return true;
  if (!text.starts_with('e') && !text.starts_with('E')) return false;
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return take_digits() > 0 && text.empty();
}

void check_as_istio(const Annotations& annotations) {
  for (const Check& check : checks) {
    const auto value = find(annotations, check.annotation);
    if (value && !check.accepts(*value))
      options::refuse(given_by(check.annotation, *value), check.expected,
                      "Istio's injector refuses the pod; --injector sidetrack answers for Sidetrack's");
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks[] = {" ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\u0085",
                                         "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
                                         "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A", "\u2028",
                                         "\u2029", "\u202F", "\u205F", "\u3000"};
  const auto* const end = std::end(blanks);
  const auto at_begin = [&](std::string_view blank) { return text.starts_with(blank); };
  const auto at_end = [&](std::string_view blank) { return text.ends_with(blank); };
  for (const auto* found = blanks; (found = std::ranges::find_if(blanks, at_begin)) != end;)
    text.remove_prefix(found->size());
  for (const auto* found = blanks; (found = std::ranges::find_if(blanks, at_end)) != end;)
    text.remove_suffix(found->size());
  return text;
}

}  // namespace sidetrack
